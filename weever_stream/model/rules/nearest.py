"""The nearest right name, for the end of an error message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(wrong: str, right: Iterable[str]) -> str:
    """`: did you mean "zip"?`, or nothing where no name is near.

    >>> did_you_mean("ziip", ["zip", "city"])
    ': did you mean "zip"?'
    """
    by_lower = {name.lower(): name for name in right}
    near = get_close_matches(wrong.lower(), by_lower, n=1, cutoff=0.6)
    return f': did you mean "{by_lower[near[0]]}"?' if near else ""

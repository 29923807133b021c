"""Redaction: values of the columns under `redact` leave the monitor as a keyed hash only."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from weever_stream.model.errors import WeeverError
from weever_stream.model.rules.predicate import Value

SECRET = "WEEVER_REDACT_SECRET"


class Redaction:
    """Equal values stay equal; without the secret they cannot be guessed.

    >>> redaction = Redaction(["ssn"], secret="s")
    >>> shown = redaction.masked({"id": 1, "ssn": "078-05-1120"})
    >>> shown["id"], shown["ssn"] == redaction.masked({"ssn": "078-05-1120"})["ssn"], len(shown["ssn"])
    (1, True, 20)
    >>> redaction.value("ssn", 5) == redaction.value("ssn", Decimal("5.0"))
    True
    """

    def __init__(self, columns: Iterable[str], secret: str | None = None) -> None:
        self.columns = frozenset(columns)
        secret = secret or os.environ.get(SECRET)
        if self.columns and not secret:
            raise WeeverError(f"the rules redact columns: set {SECRET} in the environment to the secret of the hash")
        self._secret = hashlib.blake2b((secret or "").encode()).digest()

    def masked(self, row: dict[str, Value]) -> dict[str, Value]:
        """The row itself where no column is redacted."""
        if not self.columns:
            return row
        return {name: self.value(name, value) for name, value in row.items()}

    def value(self, name: str, value: Value) -> Value:
        if name not in self.columns or value is None:
            return value
        text = str(Fraction(value)) if _is_finite_number(value) else str(value)
        data = text.encode("utf-8", "surrogatepass")
        return "hash" + hashlib.blake2b(data, key=self._secret, digest_size=8).hexdigest()


def _is_finite_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal) and math.isfinite(value)

"""Every error a user can cause or meet, under one root.

The command line prints `str(error)` as one line (a file with several mistakes: one line a mistake) and exits with 2.
"""

from __future__ import annotations

from dataclasses import dataclass


class WeeverError(Exception):
    """Root of all errors of weever_stream. `message` says what is wrong and, where it can, what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake at one place of a rule file. Lines and columns count from 1; 0 means "no place known"."""

    line: int
    column: int
    message: str
    file: str = "<rules>"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.message}".replace("\n", "\\n")


class RuleError(WeeverError):
    """A rule file (or a single rule) that is refused, with every mistake that was found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class ChangeError(WeeverError):
    """A change that cannot be used. `index` is its place in the batch; the batch was not applied."""

    def __init__(self, reason: str, *, index: int, position: str | None = None) -> None:
        place = f"change {index}" if position is None else f"change {index} ({position})"
        super().__init__(f"{place}: {reason}")
        self.reason = reason
        self.index = index
        self.position = position


class StateError(WeeverError):
    """Saved state that cannot be read: foreign bytes, an unknown version, or rules that do not fit."""


class InvariantError(WeeverError):
    """An index or the engine contradicts itself. Never the user's fault; the state must not be trusted."""

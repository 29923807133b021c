"""Predicates: `left op right` over two rows t and u (the contract's t and t')."""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Row = Literal["t", "u"]
Value = Any  # bool | int | float | Decimal | str | date | datetime; None is NULL


class Operator(enum.Enum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def mirrored(self) -> Operator:
        """The operator after swapping both sides: a < b is b > a."""
        return _MIRRORED[self]

    @property
    def is_inequality(self) -> bool:
        return self not in (Operator.EQ, Operator.NE)

    def holds(self, left: Value, right: Value) -> bool:
        """Exact comparison of two comparable values; with NULL (or NaN) never true.

        >>> Operator.NE.holds(1, None), Operator.LT.holds(2**53, 2.0**53 + 2)
        (False, True)
        """
        if left is None or right is None or left != left or right != right:
            return False
        return bool(FUNCTIONS[self](left, right))

    def __str__(self) -> str:
        return self.value


_MIRRORED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
FUNCTIONS: dict[Operator, Callable[[Value, Value], Any]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


_PLAIN_NAME = re.compile(r"[^\W\d]\w*")  # as in grammar.lark; str.isidentifier takes more


@dataclass(frozen=True)
class Column:
    row: Row
    name: str

    @property
    def swapped(self) -> Column:
        return Column("u" if self.row == "t" else "t", self.name)

    def __str__(self) -> str:
        name = self.name if _PLAIN_NAME.fullmatch(self.name) else '"' + self.name.replace('"', '""') + '"'
        return f"t.{name}" if self.row == "t" else f"t'.{name}"


@dataclass(frozen=True)
class Constant:
    value: Value

    @property
    def swapped(self) -> Constant:
        return self

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, int | float):
            return repr(self.value)
        text = str(self.value)
        return text if type(self.value).__name__ == "Decimal" else "'" + text.replace("'", "''") + "'"


Term = Column | Constant


@dataclass(frozen=True)
class Predicate:
    """A comparison of two terms.

    Made by `Predicate.of`, which puts it into its normal form: a column of t stands left of a column of u, a column
    left of a constant, and of two columns of one row the smaller name left. Equal meaning, equal object.
    """

    left: Term
    op: Operator
    right: Term

    @staticmethod
    def of(left: Term, op: Operator, right: Term) -> Predicate:
        """
        >>> str(Predicate.of(Column("u", "a"), Operator.LT, Column("t", "b")))
        "t.b > t'.a"
        """
        if _rank(right) < _rank(left):
            left, op, right = right, op.mirrored, left
        return Predicate(left, op, right)

    @property
    def rows(self) -> frozenset[Row]:
        return frozenset(term.row for term in (self.left, self.right) if isinstance(term, Column))

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(term for term in (self.left, self.right) if isinstance(term, Column))

    @property
    def is_cross(self) -> bool:
        """True where both rows are named: a predicate over the pair, not a filter on one row."""
        return len(self.rows) == 2

    @property
    def swapped(self) -> Predicate:
        """The same predicate with t and u exchanged."""
        return Predicate.of(self.left.swapped, self.op, self.right.swapped)

    def holds(self, t: dict[str, Value], u: dict[str, Value]) -> bool:
        return self.op.holds(_value(self.left, t, u), _value(self.right, t, u))

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Differ:
    """At least one of these columns differs between t and u: the right side of an FD with several columns.

    `Differ.of(("c",))` is just the predicate t.c != u.c, so one column never makes a Differ.
    """

    names: tuple[str, ...]

    @staticmethod
    def of(names: tuple[str, ...]) -> Differ | Predicate:
        names = tuple(dict.fromkeys(sorted(names)))
        if len(names) == 1:
            return Predicate.of(Column("t", names[0]), Operator.NE, Column("u", names[0]))
        return Differ(names)

    @property
    def parts(self) -> tuple[Predicate, ...]:
        return tuple(Predicate.of(Column("t", name), Operator.NE, Column("u", name)) for name in self.names)

    @property
    def rows(self) -> frozenset[Row]:
        return frozenset(("t", "u"))

    @property
    def is_cross(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    @property
    def swapped(self) -> Differ:
        return self

    def holds(self, t: dict[str, Value], u: dict[str, Value]) -> bool:
        return any(part.holds(t, u) for part in self.parts)

    def __str__(self) -> str:
        return "(" + " or ".join(str(part) for part in self.parts) + ")"


Condition = Predicate | Differ


def columns_of(conditions: tuple[Condition, ...]) -> Iterator[Column]:
    for condition in conditions:
        yield from condition.columns


def _rank(term: Term) -> tuple[int, str, str]:
    if isinstance(term, Constant):
        return (2, type(term.value).__name__, str(term.value))
    return (0 if term.row == "t" else 1, term.name, "")


def _value(term: Term, t: dict[str, Value], u: dict[str, Value]) -> Value:
    if isinstance(term, Constant):
        return term.value
    return (t if term.row == "t" else u).get(term.name)

"""What a conjunction of conditions says: can it hold at all, and does one condition follow from others?

The answers are sound, not complete: "unsatisfiable" and "entailed" are proofs, their opposites are not. Columns are
points on an ordered line; integers, booleans and dates are known to have gaps between their values. A comparison with
NULL is never true, so a condition follows from others only where they make sure that its columns hold values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import product

from weever_stream.model.rules.predicate import Column, Condition, Constant, Differ, Operator, Predicate, Term, Value
from weever_stream.model.types import ColumnType, Family, family_of

Columns = Mapping[str, ColumnType]
NEGATED = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}
_MOST_CHOICES = 256
_MOST_ROUNDS = 64
_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}


def satisfiable(conditions: Iterable[Condition], columns: Columns) -> bool:
    """False where no two rows can ever make all conditions true.

    >>> a, b = Column("t", "a"), Column("u", "a")
    >>> satisfiable([Predicate.of(a, Operator.LT, b), Predicate.of(a, Operator.GT, b)], {})
    False
    """
    return any(_Order(choice, columns).consistent() for choice in _choices(tuple(conditions)))


def entails(premises: Sequence[Condition], condition: Condition, columns: Columns) -> bool:
    """True where every pair that makes the premises true makes the condition true as well."""
    if condition in premises:
        return True
    if isinstance(condition, Differ):
        within = any(_within(premise, condition) for premise in premises)
        return within or any(entails(premises, part, columns) for part in condition.parts)
    if not set(condition.columns) <= required(premises):
        return False
    opposite = Predicate(condition.left, NEGATED[condition.op], condition.right)
    return not satisfiable((*premises, opposite), columns)


def core(conditions: Sequence[Condition], columns: Columns) -> tuple[Condition, ...]:
    """The part of an unsatisfiable conjunction that is enough to make it so; no part of it can go."""
    kept = list(conditions)
    for condition in reversed(conditions):
        rest = [other for other in kept if other is not condition]
        if not satisfiable(rest, columns):
            kept = rest
    return tuple(kept)


def reasons(premises: Sequence[Condition], condition: Condition, columns: Columns) -> tuple[Condition, ...]:
    """The premises that are enough for the condition to follow."""
    kept = list(premises)
    for premise in premises:
        rest = [other for other in kept if other is not premise]
        if entails(rest, condition, columns):
            kept = rest
    return tuple(kept)


def required(conditions: Iterable[Condition]) -> set[Column]:
    """The columns that hold a value wherever the conditions are true."""
    return {column for condition in conditions if isinstance(condition, Predicate) for column in condition.columns}


def _within(premise: Condition, condition: Differ) -> bool:
    return isinstance(premise, Differ) and set(premise.names) <= set(condition.names)


def _choices(conditions: tuple[Condition, ...]) -> Iterator[tuple[Predicate, ...]]:
    """The conjunctions of plain predicates whose disjunction the conditions are."""
    parts = [condition.parts if isinstance(condition, Differ) else (condition,) for condition in conditions]
    if math.prod(map(len, parts)) > _MOST_CHOICES:
        parts = [options for options in parts if len(options) == 1]
    return product(*parts)


class _Order:
    """The order that a conjunction of predicates asks of its terms.

    `_below[i][j]` is 1 where term i is at most term j, 2 where it is smaller, 0 where nothing is known.
    Cost: cubic in the number of terms, of which a rule has a dozen.
    """

    def __init__(self, predicates: Sequence[Predicate], columns: Columns) -> None:
        self._columns = columns
        terms = [term for p in predicates for term in (p.left, p.right)]
        terms += [_EMPTY for term in terms if self._family(term) is Family.STRING][:1]
        self._terms: list[Term] = list(dict.fromkeys(terms))
        self._index = {term: count for count, term in enumerate(self._terms)}
        self._below = [[0] * len(self._terms) for _ in self._terms]
        self._apart: set[tuple[int, int]] = set()
        for predicate in predicates:
            self._add(self._index[predicate.left], predicate.op, self._index[predicate.right])
        self._add_constants()
        self._close()

    def consistent(self) -> bool:
        below = self._below
        if any(below[i][i] == 2 for i in range(len(below))):
            return False
        if any(i == j or (below[i][j] and below[j][i]) for i, j in self._apart):
            return False
        return self._discrete_consistent()

    def _family(self, term: Term) -> Family | None:
        if isinstance(term, Constant):
            return family_of(term.value)
        return self._columns[term.name].family if term.name in self._columns else None

    def _add(self, left: int, op: Operator, right: int) -> None:
        if op in (Operator.GT, Operator.GE):
            left, op, right = right, op.mirrored, left
        if op is Operator.NE:
            self._apart.add((left, right))
        else:
            self._below[left][right] = max(self._below[left][right], 2 if op is Operator.LT else 1)
        if op is Operator.EQ:
            self._below[right][left] = max(self._below[right][left], 1)

    def _add_constants(self) -> None:
        """Adds what is known of the constants themselves: 1 < 2, and no string is below ''."""
        constants = [(i, term) for i, term in enumerate(self._terms) if isinstance(term, Constant)]
        for (i, a), (j, b) in product(constants, constants):
            if family_of(a.value) is not family_of(b.value):
                self._apart.add((i, j))
            elif a.value <= b.value:
                self._add(i, Operator.LT if a.value < b.value else Operator.EQ, j)
        for i, term in enumerate(self._terms):
            if _EMPTY in self._index and isinstance(term, Column) and self._family(term) is Family.STRING:
                self._add(self._index[_EMPTY], Operator.LE, i)

    def _close(self) -> None:
        below, size = self._below, range(len(self._below))
        for k, i in product(size, size):
            if first := below[i][k]:
                for j in size:
                    if below[k][j]:
                        below[i][j] = max(below[i][j], first, below[k][j])

    def _discrete_consistent(self) -> bool:
        """Narrows each integer, boolean and date column to the range it can lie in; False where one is empty."""
        ranges = {i: _domain(self._columns.get(term.name)) for i, term in self._discrete()}
        for _ in range(_MOST_ROUNDS):
            before = {i: tuple(bounds) for i, bounds in ranges.items()}
            for i in ranges:
                self._narrow(i, ranges)
            if any(low > high for low, high in ranges.values()):
                return False
            if before == {i: tuple(bounds) for i, bounds in ranges.items()}:
                break
        return True

    def _discrete(self) -> Iterator[tuple[int, Column]]:
        for i, term in enumerate(self._terms):
            if isinstance(term, Column) and _is_discrete(self._columns.get(term.name)):
                yield i, term

    def _narrow(self, i: int, ranges: dict[int, list[float]]) -> None:
        bounds = ranges[i]
        for j, other in enumerate(self._terms):
            low, high = self._bounds_of(j, other, ranges)
            if self._below[j][i] and low is not None:
                bounds[0] = max(bounds[0], math.floor(low) + 1 if self._below[j][i] == 2 else math.ceil(low))
            if self._below[i][j] and high is not None:
                bounds[1] = min(bounds[1], math.ceil(high) - 1 if self._below[i][j] == 2 else math.floor(high))
            if low is not None and low == high and ((i, j) in self._apart or (j, i) in self._apart):
                bounds[0] += bounds[0] == low
                bounds[1] -= bounds[1] == low

    def _bounds_of(self, j: int, term: Term, ranges: dict[int, list[float]]) -> tuple[Value, Value]:
        """The smallest and the largest value of a term, as numbers; None where it has none."""
        if j in ranges:
            low, high = ranges[j]
            return None if math.isinf(low) else low, None if math.isinf(high) else high
        point = _point(term.value) if isinstance(term, Constant) else None
        return point, point


_EMPTY = Constant("")


def _is_discrete(type_: ColumnType | None) -> bool:
    return type_ is not None and (type_.name in _BITS or type_.family in (Family.BOOL, Family.DATE))


def _domain(type_: ColumnType | None) -> list[float]:
    if type_ is not None and type_.family is Family.BOOL:
        return [0, 1]
    if type_ is not None and type_.name in _BITS:
        limit = 1 << (_BITS[type_.name] - 1)
        return [-limit, limit - 1]
    if type_ is not None and type_.family is Family.DATE:
        return [date.min.toordinal(), date.max.toordinal()]
    return [-math.inf, math.inf]


def _point(value: Value) -> Value:
    """A constant as a number on the line of the discrete values; None where it has no place there."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal()
    return None if isinstance(value, str | datetime) else value

"""Plain English for one violation: the `message` of an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weever_stream.model.rules.constraint import DenialConstraint, RuleClass
from weever_stream.model.rules.predicate import Differ, Operator, Predicate, Row, Value
from weever_stream.model.rules.sentences import HIDDEN, WORDS


@dataclass(frozen=True, slots=True)
class Said:
    """What one row brings to the messages it is in; made once, however many those are."""

    who: str
    shared: str  # the values of the columns in which both rows agree
    own: str  # the other values
    terms: tuple[tuple[str, Value], ...]  # the row's side of each comparison, as text and as value


@dataclass(frozen=True)
class _Comparison:
    """One comparison of the two rows; those of a Differ are said only where the values differ."""

    predicate: Predicate
    optional: bool


class Message:
    """Writes the messages of a rule. Values of redacted columns are never shown.

    >>> from weever_stream.model.rules.building import dependency
    >>> message = Message(DenialConstraint("r", dependency(["zip"], ["city"])))
    >>> t = message.said({"id": 17}, {"zip": "90001", "city": "LA"}, "t")
    >>> message.of(t, message.said({"id": 42}, {"zip": "90001", "city": "SF"}, "u"))
    'zip 90001 has city LA (id 17) and city SF (id 42)'
    """

    def __init__(self, constraint: DenialConstraint, redact: Iterable[str] = ()) -> None:
        self._hidden = frozenset(redact)
        self._constraint = constraint
        self._is_dependency = constraint.rule_class in (RuleClass.KEY, RuleClass.FUNCTIONAL)
        agreed = [p for p in constraint.equalities if len({column.name for column in p.columns}) == 1]
        self._same = [predicate.columns[0].name for predicate in agreed]
        self._other = [name for name in constraint.columns if name not in self._same]
        self._compared = [
            _Comparison(predicate, isinstance(condition, Differ))
            for condition in constraint.conditions
            if condition.is_cross and condition not in agreed and not self._is_dependency
            for predicate in (condition.parts if isinstance(condition, Differ) else (condition,))
        ]
        columns = [comparison.predicate.columns for comparison in self._compared]
        self._names = {"t": [t.name for t, _ in columns], "u": [u.name for _, u in columns]}

    def said(self, key: Mapping[str, Value], row: Mapping[str, Value], side: Row) -> Said:
        """What a row says as t or as u. Values may have the form that events show them in."""
        own: Iterable[str] = self._other
        if not self._is_dependency and not self._compared and not self._constraint.is_single:
            filters = self._constraint.filters_t if side == "t" else self._constraint.filters_u
            own = dict.fromkeys(column.name for predicate in filters for column in predicate.columns)
        return Said(
            self._cells(key, key),
            self._cells(row, self._same),
            self._cells(row, own),
            tuple((f"{name} {self._shown(name, row.get(name))}", row.get(name)) for name in self._names[side]),
        )

    def of(self, t: Said, u: Said | None) -> str:
        if u is None:
            cells = ", ".join(filter(None, (t.shared, t.own)))
            return f"{t.who} breaks {self._constraint.id}: {cells}"
        if self._is_dependency:
            if not self._other:
                return f"{t.shared} is in {t.who} and in {u.who}"
            return f"{t.shared} has {t.own} ({t.who}) and {u.own} ({u.who})"
        shared = f"with {t.shared}, " if t.shared else ""
        if self._compared:
            return f"{shared}{t.who} and {u.who}: {self._comparisons(t, u)}"
        return f"{shared}{t.who} ({t.own}) and {u.who} ({u.own}) break {self._constraint.id}"

    def of_group(self, group: Mapping[str, Value], pairs: int, rows: int) -> str:
        """The message of a group event."""
        counted = f"{rows} rows in {pairs} pairs" if pairs != 1 else f"{rows} rows in 1 pair"
        return f"{self._cells(group, group)}: {counted} break {self._constraint.id}"

    def _comparisons(self, t: Said, u: Said) -> str:
        return " and ".join(
            f"{left} {WORDS[comparison.predicate.op]} {right}"
            for comparison, (left, a), (right, b) in zip(self._compared, t.terms, u.terms, strict=True)
            if not comparison.optional or Operator.NE.holds(a, b)
        )

    def _cells(self, row: Mapping[str, Any], names: Iterable[str]) -> str:
        return ", ".join([f"{name} {self._shown(name, row.get(name))}" for name in names])

    def _shown(self, name: str, value: Value) -> str:
        return HIDDEN if name in self._hidden else "NULL" if value is None else str(value)

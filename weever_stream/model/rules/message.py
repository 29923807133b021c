"""Plain English for one violation: the `message` of an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from weever_stream.model.rules.constraint import DenialConstraint, RuleClass
from weever_stream.model.rules.predicate import Differ, Operator, Row, Value
from weever_stream.model.rules.sentences import HIDDEN, WORDS

Values = Mapping[str, Value]


class Said(NamedTuple):
    """What one row brings to the messages it is in; made once, however many those are."""

    who: str
    shared: str  # the values of the columns in which both rows agree
    own: str  # the other values
    terms: tuple[tuple[str, Value], ...]  # the row's side of each comparison, as text and as value


class Cells:
    """Writes some cells of a row; hidden ones without their values.

    >>> Cells(["zip", "ssn"], frozenset(["ssn"])).of({"zip": "90001", "ssn": "078-05-1120"})
    'zip 90001, ssn (hidden)'
    """

    def __init__(self, names: Iterable[str], hidden: frozenset[str]) -> None:
        names = tuple(names)
        shown = [name for name in names if name not in hidden]
        self._get = itemgetter(*shown) if shown else None
        self._form = ", ".join(name.replace("%", "%%") + f" {HIDDEN if name in hidden else '%s'}" for name in names)

    def of(self, row: Values) -> str:
        return self._form % (self._get(row) if self._get else ())


class Message:
    """Writes the messages of a rule. Values of redacted columns are never shown.

    >>> from weever_stream.model.rules.building import dependency
    >>> message = Message(DenialConstraint("r", dependency(["zip"], ["city"])))
    >>> t = message.said({"id": 17}, {"zip": "90001", "city": "LA"}, "t")
    >>> message.of(t, message.said({"id": 42}, {"zip": "90001", "city": "SF"}, "u"))
    'zip 90001 has city LA (id 17) and city SF (id 42)'
    """

    def __init__(self, constraint: DenialConstraint, redact: Iterable[str] = ()) -> None:
        self._constraint, self._hidden = constraint, frozenset(redact)
        self._is_dependency = constraint.rule_class in (RuleClass.KEY, RuleClass.FUNCTIONAL)
        agreed = [p for p in constraint.equalities if len({column.name for column in p.columns}) == 1]
        same = tuple(predicate.columns[0].name for predicate in agreed)
        self._other = tuple(name for name in constraint.columns if name not in same)
        self._shared = Cells(same, self._hidden)
        self._compared = [
            (predicate, isinstance(condition, Differ))
            for condition in constraint.conditions
            if condition.is_cross and condition not in agreed
            for predicate in (condition.parts if isinstance(condition, Differ) else (condition,))
        ]
        self._own = {side: Cells(self._own_columns(side), self._hidden) for side in SIDES}
        self._terms = {side: tuple(self._terms_of(side)) for side in SIDES}
        self._keys: dict[tuple[str, ...], Cells] = {}

    def _own_columns(self, side: Row) -> tuple[str, ...]:
        """All but the shared ones; where constants alone decide, those that are compared with them."""
        if self._compared or self._constraint.is_single:
            return self._other
        filters = self._constraint.filters_t if side == "t" else self._constraint.filters_u
        return tuple(dict.fromkeys(column.name for predicate in filters for column in predicate.columns))

    def _terms_of(self, side: Row) -> Iterable[tuple[str, Cells]]:
        """A row's side of each comparison; a dependency says all of its columns instead."""
        for predicate, _ in () if self._is_dependency else self._compared:
            name = next(column.name for column in predicate.columns if column.row == side)
            yield name, Cells([name], self._hidden)

    def said(self, key: Values, row: Values, side: Row) -> Said:
        """What a row says as t or as u. Values may have the form that events show them in."""
        texts = {name: "NULL" if row[name] is None else row[name] for name in row} if None in row.values() else row
        terms = tuple([(cell.of(texts), row[name]) for name, cell in self._terms[side]])
        return Said(self._of_key(key), self._shared.of(texts), self._own[side].of(texts), terms)

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

    def of_group(self, group: Values, pairs: int, rows: int) -> str:
        """The message of a group event."""
        counted = f"{rows} rows in {pairs} pairs" if pairs != 1 else f"{rows} rows in 1 pair"
        return f"{self._of_key(group)}: {counted} break {self._constraint.id}"

    def _comparisons(self, t: Said, u: Said) -> str:
        """Of the columns that may differ only those that do."""
        compared = zip(self._compared, t.terms, u.terms, strict=True)
        return " and ".join(
            f"{left} {WORDS[predicate.op]} {right}"
            for (predicate, is_optional), (left, a), (right, b) in compared
            if not is_optional or Operator.NE.holds(a, b)
        )

    def _of_key(self, key: Values) -> str:
        names = tuple(key)
        if names not in self._keys:
            self._keys[names] = Cells(names, self._hidden)
        return self._keys[names].of(key)


SIDES: tuple[Row, Row] = ("t", "u")

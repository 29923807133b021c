"""Plain English for a rule, and for one violation of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weever_stream.model.rules.constraint import DenialConstraint, RuleClass
from weever_stream.model.rules.predicate import (
    Column,
    Condition,
    Constant,
    Differ,
    Operator,
    Predicate,
    Row,
    Term,
    Value,
)

_WORDS = {
    Operator.EQ: "equals",
    Operator.NE: "differs from",
    Operator.LT: "is less than",
    Operator.LE: "is at most",
    Operator.GT: "is greater than",
    Operator.GE: "is at least",
}
_SAME_COLUMN = {
    Operator.EQ: "the same",
    Operator.NE: "a different",
    Operator.LT: "a smaller",
    Operator.LE: "a smaller or equal",
    Operator.GT: "a greater",
    Operator.GE: "a greater or equal",
}
HIDDEN = "(hidden)"


@dataclass(frozen=True)
class _HiddenConstant(Constant):
    def __str__(self) -> str:
        return HIDDEN


def sentence(constraint: DenialConstraint, redact: Collection[str] = ()) -> str:
    """What must never be, as one sentence. Constants that redacted columns are compared with are not shown.

    >>> from weever_stream.model.rules.building import dependency
    >>> sentence(DenialConstraint("r", dependency(["zip"], ["city"])))
    'No two rows with the same zip have a different city.'
    """
    first, second = (_filtered(filters, redact) for filters in (constraint.filters_t, constraint.filters_u))
    if constraint.is_single:
        return f"No row has {first}."
    cross = [c for c in constraint.conditions if c.is_cross]
    if constraint.rule_class in (RuleClass.KEY, RuleClass.FUNCTIONAL):
        common = f", both with {first}," if first else ""
        return f"No two rows{common} {_dependency(constraint, cross)}."
    if not cross:
        both = f"No two rows both have {first}."
        return both if constraint.is_symmetric else f"No row has {first} while another row has {second}."
    sides = "".join(f", where {name} has {said}" for name, said in (("t", first), ("t'", second)) if said)
    return f"No row t has, towards another row t', {_and(_cross(c) for c in cross)}{sides}."


def denial(constraint: DenialConstraint, redact: Collection[str] = ()) -> str:
    """The rule as it is evaluated, without the constants that redacted columns are compared with."""
    return "not(" + _and(str(_masked(condition, redact)) for condition in constraint.conditions) + ")"


def not_evaluated(constraint: DenialConstraint, redact: Collection[str] = ()) -> list[str]:
    """The predicates that were written but are not evaluated, each with the reason; constants hidden likewise."""
    known = (*constraint.conditions, *constraint.where, *(dropped.condition for dropped in constraint.dropped))
    masks = {str(c): str(_masked(c, redact)) for c in (*known, *(c.swapped for c in known))}
    texts = []
    for dropped in constraint.dropped:
        text = f"{dropped.condition} ({dropped.reason})"
        for clear in sorted(masks, key=len, reverse=True):
            text = text.replace(clear, masks[clear])
        texts.append(text)
    return texts


def _masked(condition: Condition, redact: Collection[str]) -> Condition:
    if isinstance(condition, Differ) or not isinstance(condition.right, Constant):
        return condition
    hidden = any(column.name in redact for column in condition.columns)
    return Predicate(condition.left, condition.op, _HiddenConstant(None)) if hidden else condition


def _filtered(filters: Iterable[Predicate], redact: Collection[str]) -> str:
    masked = (_masked(predicate, redact) for predicate in filters)
    return _and(_filter(predicate) for predicate in masked if isinstance(predicate, Predicate))


def _dependency(constraint: DenialConstraint, cross: Sequence[Condition]) -> str:
    same = "the same " + _and(_names(constraint.equalities))
    rest = [c for c in cross if c not in constraint.equalities]
    return f"with {same} have {_cross(rest[0])}" if rest else f"have {same}"


def _cross(condition: Condition) -> str:
    if isinstance(condition, Differ):
        return "a different " + " or ".join(condition.names)
    left, right = condition.columns
    if left.name == right.name:
        return f"{_SAME_COLUMN[condition.op]} {left.name}"
    article = "an" if left.name[:1].lower() in ("a", "e", "i", "o", "u") else "a"
    return f"{article} {left.name} that {_WORDS[condition.op]} the {right.name} of t'"


def _filter(predicate: Predicate) -> str:
    return f"{_plain(predicate.left)} {predicate.op} {_plain(predicate.right)}"


def _plain(term: Term) -> str:
    return term.name if isinstance(term, Column) else str(term)


def _names(predicates: Iterable[Predicate]) -> list[str]:
    return [predicate.columns[0].name for predicate in predicates]


def _and(parts: Iterable[str]) -> str:
    return " and ".join(parts)


class Message:
    """The `message` of a rule's events. Values of redacted columns are never shown.

    Rows come as events show them: `{"key": {...}, "row": {...}}`.
    """

    def __init__(self, constraint: DenialConstraint, redact: Iterable[str] = ()) -> None:
        self._hidden = frozenset(redact)
        self._constraint = constraint
        self._is_dependency = constraint.rule_class in (RuleClass.KEY, RuleClass.FUNCTIONAL)
        self._same = _names(constraint.equalities)
        self._other = [name for name in constraint.columns if name not in self._same]
        self._compared = [self._of_cross(c) for c in constraint.conditions if c.is_cross]

    def of(self, t: Mapping[str, Any], u: Mapping[str, Any] | None) -> str:
        """
        >>> from weever_stream.model.rules.building import dependency
        >>> message = Message(DenialConstraint("r", dependency(["zip"], ["city"])))
        >>> message.of({"key": {"id": 17}, "row": {"zip": "90001", "city": "LA"}},
        ...            {"key": {"id": 42}, "row": {"zip": "90001", "city": "SF"}})
        'zip 90001 has city LA (id 17) and city SF (id 42)'
        """
        if u is None:
            return f"{self._who(t)} breaks {self._constraint.id}: {self._cells(t, self._constraint.columns)}"
        if not self._compared:
            return f"{self._filtered(t, 't')} and {self._filtered(u, 'u')} break {self._constraint.id}"
        if not self._is_dependency:
            return f"{self._who(t)} and {self._who(u)}: {_and(say(t['row'], u['row']) for say in self._compared)}"
        shared = self._cells(t, self._same)
        if not self._other:
            return f"{shared} is in {self._who(t)} and in {self._who(u)}"
        first, second = self._cells(t, self._other), self._cells(u, self._other)
        return f"{shared} has {first} ({self._who(t)}) and {second} ({self._who(u)})"

    def of_group(self, group: Mapping[str, Value], pairs: int, rows: int) -> str:
        """The message of a group event."""
        shared = ", ".join(f"{name} {self._shown(name, value)}" for name, value in group.items())
        counted = f"{rows} rows in {pairs} pairs" if pairs != 1 else f"{rows} rows in 1 pair"
        return f"{shared}: {counted} break {self._constraint.id}"

    def _filtered(self, row: Mapping[str, Any], side: Row) -> str:
        """A row of a rule that compares the two rows with constants alone."""
        filters = self._constraint.filters_t if side == "t" else self._constraint.filters_u
        names = dict.fromkeys(column.name for predicate in filters for column in predicate.columns)
        return f"{self._who(row)} ({self._cells(row, names)})"

    def _who(self, row: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {self._shown(name, value)}" for name, value in row["key"].items())

    def _cells(self, row: Mapping[str, Any], names: Iterable[str]) -> str:
        return ", ".join(f"{name} {self._shown(name, row['row'].get(name))}" for name in names)

    def _shown(self, name: str, value: Value) -> str:
        return HIDDEN if name in self._hidden else "NULL" if value is None else str(value)

    def _of_cross(self, condition: Condition) -> _Comparison:
        return _Comparison(condition, self._shown)


class _Comparison:
    """A cross-row condition that holds, said with the values of two rows.

    Events may show a value in another form (a hash, a text), so that it cannot be compared again: all that is left
    of it is whether two values are the same.
    """

    def __init__(self, condition: Condition, shown: Any) -> None:
        self._condition = condition
        self._shown = shown

    def __call__(self, t: Mapping[str, Value], u: Mapping[str, Value]) -> str:
        if isinstance(self._condition, Predicate):
            return self._said(self._condition, t, u)
        differ = (p for p in self._condition.parts if p.holds(dict(t), dict(u)))
        return _and(self._said(p, t, u) for p in differ)

    def _said(self, predicate: Predicate, t: Mapping[str, Value], u: Mapping[str, Value]) -> str:
        left, right = predicate.columns
        values = self._shown(left.name, t.get(left.name)), self._shown(right.name, u.get(right.name))
        return f"{left.name} {values[0]} {_WORDS[predicate.op]} {right.name} {values[1]}"

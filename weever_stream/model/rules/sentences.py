"""Plain English for a rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from weever_stream.model.rules.constraint import DenialConstraint, RuleClass
from weever_stream.model.rules.predicate import (
    Column,
    Condition,
    Constant,
    Differ,
    Operator,
    Predicate,
    Term,
)

WORDS = {
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
    return "not(" + _and(str(masked(condition, redact)) for condition in constraint.conditions) + ")"


def not_evaluated(constraint: DenialConstraint, redact: Collection[str] = ()) -> list[str]:
    """The predicates that were written but are not evaluated, each with the reason; constants hidden likewise."""
    return [f"{predicate} ({reason})" for predicate, reason in dropped_parts(constraint, redact)]


def dropped_parts(constraint: DenialConstraint, redact: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    known = (*constraint.conditions, *constraint.where, *(dropped.condition for dropped in constraint.dropped))
    masks = {str(c): str(masked(c, redact)) for c in (*known, *(c.swapped for c in known))}
    for dropped in constraint.dropped:
        reason = dropped.reason
        for clear in sorted(masks, key=len, reverse=True):
            reason = reason.replace(clear, masks[clear])
        yield masks[str(dropped.condition)], reason


def masked(condition: Condition, redact: Collection[str]) -> Condition:
    if isinstance(condition, Differ) or not isinstance(condition.right, Constant):
        return condition
    hidden = any(column.name in redact for column in condition.columns)
    return Predicate(condition.left, condition.op, _HiddenConstant(None)) if hidden else condition


def _filtered(filters: Iterable[Predicate], redact: Collection[str]) -> str:
    shown = (masked(predicate, redact) for predicate in filters)
    return _and(_filter(predicate) for predicate in shown if isinstance(predicate, Predicate))


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
    return f"{article} {left.name} that {WORDS[condition.op]} the {right.name} of t'"


def _filter(predicate: Predicate) -> str:
    return f"{_plain(predicate.left)} {predicate.op} {_plain(predicate.right)}"


def _plain(term: Term) -> str:
    return term.name if isinstance(term, Column) else str(term)


def _names(predicates: Iterable[Predicate]) -> list[str]:
    return [predicate.columns[0].name for predicate in predicates]


def _and(parts: Iterable[str]) -> str:
    return " and ".join(parts)

"""One constraint from the parts of a rule: row names, `where`, normal form."""

from __future__ import annotations

from collections.abc import Sequence

from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.logic import Columns
from weever_stream.model.rules.normal import mirror, normal_form
from weever_stream.model.rules.predicate import Column, Condition, Differ, Operator, Predicate
from weever_stream.model.rules.shape import RuleShape


def make_constraint(
    shape: RuleShape, denied: Sequence[Condition], where: Sequence[Predicate], columns: Columns, key: Sequence[str] = ()
) -> DenialConstraint:
    """The rule in normal form. Raises MeaninglessError where it says nothing."""
    conditions, dropped = normal_form(with_where(denied, where), columns, key)
    return DenialConstraint(
        id=shape.id,
        conditions=conditions,
        where=tuple(where),
        severity=shape.severity,
        description=shape.description,
        tags=shape.tags,
        tolerate=shape.tolerate,
        emit=shape.emit,
        max_pairs=shape.max_pairs,
        dropped=dropped,
    )


def with_where(denied: Sequence[Condition], where: Sequence[Predicate]) -> tuple[Condition, ...]:
    """The denied conditions and the filter on each row that the rule names. A rule over one row names t."""
    rows = frozenset().union(*(condition.rows for condition in denied))
    conditions = mirror(denied) if rows == {"u"} else tuple(denied)
    filters = [*where, *mirror(where)] if len(rows) == 2 else where
    return (*conditions, *(f for f in dict.fromkeys(filters) if f not in conditions))


def same(names: Sequence[str]) -> tuple[Condition, ...]:
    """Both rows agree on each of these columns."""
    return tuple(Predicate.of(Column("t", name), Operator.EQ, Column("u", name)) for name in names)


def dependency(left: Sequence[str], right: Sequence[str]) -> tuple[Condition, ...]:
    """What `left -> right` denies: rows that agree on the left and differ somewhere on the right."""
    return (*same(left), Differ.of(tuple(right)))

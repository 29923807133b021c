"""Probes: a condition as seen from one row that asks for its partners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from weever_stream.engine.domain import Ids, Mask
from weever_stream.engine.table import Table
from weever_stream.model.rules.predicate import Column, Condition, Constant, Differ, Operator, Predicate

Role = Literal["t", "u"]


@dataclass(frozen=True)
class Probe:
    """`own op other`: own is a column of the asking row, other one of its partner. `any_of` is for Differ alone."""

    own: str
    op: Operator
    other: str
    any_of: tuple[str, ...] = ()

    @staticmethod
    @cache
    def of(condition: Condition, role: Role) -> Probe:
        """The condition for a row in this role.

        >>> p = Predicate.of(Column("t", "a"), Operator.LT, Column("u", "b"))
        >>> str(Probe.of(p, "t")), str(Probe.of(p, "u"))
        ('a < b', 'b > a')
        """
        if isinstance(condition, Differ):
            return Probe(condition.names[0], Operator.NE, condition.names[0], condition.names)
        left, right = condition.left, condition.right
        assert isinstance(left, Column)
        assert isinstance(right, Column)
        if role == "t":
            return Probe(left.name, condition.op, right.name)
        return Probe(right.name, condition.op.mirrored, left.name)

    @property
    def parts(self) -> tuple[Probe, ...]:
        return tuple(Probe(name, Operator.NE, name) for name in self.any_of) or (self,)

    @property
    def others(self) -> tuple[str, ...]:
        return self.any_of or (self.other,)

    def __str__(self) -> str:
        return " or ".join(f"{part.own} {part.op} {part.other}" for part in self.parts)


def passes(table: Table, filters: tuple[Predicate, ...], rids: Ids) -> Mask:
    """Which of these rows satisfy every one-row predicate."""
    result = np.ones(len(rids), dtype=bool)
    for predicate in filters:
        left, right = predicate.left, predicate.right
        if isinstance(left, Constant):
            raise AssertionError(f"a comparison of constants reached the engine: {predicate}")
        if isinstance(right, Constant):
            codes = np.full(len(rids), table.constants[left.name, right], dtype=np.int32)
        else:
            codes = table.columns[right.name].codes[rids]
        result &= table.domains[left.name].compare(predicate.op, table.columns[left.name].codes[rids], codes)
    return result

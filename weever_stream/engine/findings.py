"""What a search finds, kept in the form that each rule's `emit` needs and no larger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Ids
from weever_stream.engine.probe import Role
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Value

Pairs = NDArray[np.int64]  # t's row id in the upper half, u's in the lower
Label = tuple[Value, ...]
NOBODY = 0xFFFFFFFF  # stands for u where a single row breaks a rule


def packed(t: Ids, u: Ids) -> Pairs:
    return np.asarray((t.astype(np.int64) << 32) | u.astype(np.int64))


def unpacked(pairs: Pairs) -> tuple[Ids, Ids]:
    return pairs >> 32, pairs & 0xFFFFFFFF


class Findings:
    """A collector: pairs for `emit: pairs`, partners per row for `rows`, pairs per group for `groups`, and the number
    of violations for every rule."""

    def __init__(self, table: Table, constraints: Mapping[str, DenialConstraint]) -> None:
        self._table, self._constraints = table, constraints
        self._pairs: dict[str, list[Pairs]] = {rule: [] for rule in constraints}
        self.totals: Counter[str] = Counter()
        self.groups: dict[str, Counter[Label]] = {
            rule: Counter() for rule, c in constraints.items() if c.emit is Emit.GROUPS
        }

    def wants_rows(self, rule: str) -> bool:
        return self._constraints[rule].emit in (Emit.PAIRS, Emit.ROWS)

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        self.totals[rule] += len(own)
        constraint = self._constraints[rule]
        if constraint.emit is Emit.GROUPS:
            for rid, partners in zip(*np.unique(own, return_counts=True), strict=True):
                self.groups[rule][self._label(constraint, role, int(rid))] += int(partners)
        elif self.wants_rows(rule):
            t, u = (own, other) if role == "t" else (other, own)
            if constraint.is_symmetric:
                t, u = np.minimum(own, other), np.maximum(own, other)
            self._pairs[rule].append(packed(t, u))

    def add_count(self, rule: str, role: Role, own: int, partners: int) -> None:
        self.totals[rule] += partners
        if partners and rule in self.groups:
            self.groups[rule][self._label(self._constraints[rule], role, own)] += partners

    def add_single(self, rule: str, rids: Ids) -> None:
        self.totals[rule] += len(rids)
        self._pairs[rule].append(packed(rids, np.full(len(rids), NOBODY)))

    def pairs(self, rule: str) -> Pairs:
        found = self._pairs[rule]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def _label(self, constraint: DenialConstraint, role: Role, own: int) -> Label:
        """The group of a pair: t's values of the equality columns, which u holds in its own columns as well."""
        as_t = tuple(self._table.value(p.columns[0].name, own) for p in constraint.equalities)
        as_u = tuple(self._table.value(p.columns[1].name, own) for p in constraint.equalities)
        if constraint.is_symmetric:
            return min(as_t, as_u)
        return as_t if role == "t" else as_u

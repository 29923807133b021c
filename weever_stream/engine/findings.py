"""What a search finds, kept in the form that each rule's `emit` needs and no larger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Ids
from weever_stream.engine.probe import Role
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Value

Pairs = NDArray[np.int64]  # t's row id in the upper half, u's in the lower
Label = tuple[Value, ...]
NO_PAIRS: Pairs = np.empty(0, dtype=np.int64)
NOBODY = 0xFFFFFFFF  # stands for u where a single row breaks a rule


def packed(t: Ids, u: Ids) -> Pairs:
    return np.asarray((t.astype(np.int64) << 32) | u.astype(np.int64))


def unpacked(pairs: Pairs) -> tuple[Ids, Ids]:
    return pairs >> 32, pairs & 0xFFFFFFFF


class Collector(Protocol):
    """Takes what a search finds. `wants_rows(rule)` is false where the number of partners is enough."""

    def wants_rows(self, rule: str) -> bool: ...

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        """Pairs of an asking row in this role and another row."""

    def add_counts(self, rule: str, role: Role, own: Ids, halves: Ids) -> None:
        """Twice the number of pairs that each of these rows is in; a pair of two asking rows may come in two halves.
        The rows look alike to the rule and stand in one partition."""


class Findings:
    """A collector: pairs for `emit: pairs` and `rows`, pairs per group for `groups`, and the number of violations for
    every rule."""

    def __init__(self, table: Table, constraints: Mapping[str, DenialConstraint]) -> None:
        self._table, self._constraints = table, constraints
        self._pairs: dict[str, list[Pairs]] = {rule: [] for rule in constraints}
        self._halves: Counter[str] = Counter()
        self._group_halves: dict[str, Counter[Label]] = {
            rule: Counter() for rule, c in constraints.items() if c.emit is Emit.GROUPS
        }
        self._labels: dict[tuple[str, Role, tuple[int, ...]], Label] = {}

    def wants_rows(self, rule: str) -> bool:
        return rule in self._constraints and self._constraints[rule].emit in (Emit.PAIRS, Emit.ROWS)

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        if rule not in self._constraints:
            return
        self._halves[rule] += 2 * len(own)
        if self.wants_rows(rule):
            t, u = (own, other) if role == "t" else (other, own)
            if self._constraints[rule].is_symmetric:
                t, u = np.minimum(own, other), np.maximum(own, other)
            self._pairs[rule].append(packed(t, u))
        elif rule in self._group_halves:
            rids, partners = np.unique(own, return_counts=True)
            for rid, count in zip(rids.tolist(), partners.tolist(), strict=True):
                self._group_halves[rule][self._label(rule, role, rid)] += 2 * count

    def add_counts(self, rule: str, role: Role, own: Ids, halves: Ids) -> None:
        if rule not in self._constraints:
            return
        found = int(halves.sum())
        self._halves[rule] += found
        if found and rule in self._group_halves:
            self._group_halves[rule][self._label(rule, role, int(own[0]))] += found

    def add_single(self, rule: str, rids: Ids) -> None:
        self._halves[rule] += 2 * len(rids)
        self._pairs[rule].append(packed(rids, np.full(len(rids), NOBODY)))

    def total(self, rule: str) -> int:
        return self._halves[rule] // 2

    def pairs(self, rule: str) -> Pairs:
        found = self._pairs[rule]
        return np.concatenate(found) if found else NO_PAIRS

    def groups(self, rule: str) -> Counter[Label]:
        return Counter({label: halves // 2 for label, halves in self._group_halves[rule].items()})

    def _label(self, rule: str, role: Role, own: int) -> Label:
        """The group of a pair: t's values of the equality columns, which u holds in its own columns as well."""
        equalities = self._constraints[rule].equalities
        names = [name for p in equalities for name in (p.columns[0].name, p.columns[1].name)]
        codes = tuple(int(self._table.columns[name].codes[own]) for name in names)
        known = self._labels.get((rule, role, codes))
        if known is None:
            values = [self._table.value(name, own) for name in names]
            as_t, as_u = tuple(values[::2]), tuple(values[1::2])
            known = min(as_t, as_u) if self._constraints[rule].is_symmetric else as_t if role == "t" else as_u
            self._labels[rule, role, codes] = known
        return known


class Involved:
    """A collector: which rows are in a violation of one rule."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._rows: list[Ids] = []

    def wants_rows(self, rule: str) -> bool:
        del rule
        return False

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        del role, other
        if rule == self._rule:
            self._rows.append(np.unique(own))

    def add_counts(self, rule: str, role: Role, own: Ids, halves: Ids) -> None:
        del role
        if rule == self._rule:
            self._rows.append(own[halves > 0])

    def count(self) -> int:
        return len(np.unique(np.concatenate(self._rows))) if self._rows else 0

"""What a search finds, kept in the form that each rule's `emit` needs and no larger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from weever_stream.engine.bitmaps import bitmap_of, ids_of
from weever_stream.engine.domain import Ids, grown
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
    """Takes what a search finds, each pair once."""

    def wants(self, rule: str) -> Emit | None:
        """In which form; None where the rule is of no interest."""

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        """Pairs of an asking row in this role and another row."""

    def add_counts(self, rule: str, role: Role, own: Ids, counts: Ids) -> None:
        """How many pairs each of these rows is in. They look alike to the rule and stand in one partition."""

    def add_rows(self, rule: str, rids: Ids, counts: Ids, found: Ids, told: Ids) -> None:
        """What `add_counts` told, for `emit: rows`: asking rows with their numbers of pairs, and the other rows of
        these pairs with theirs."""


class Degrees:
    """In how many pairs each row was found, and the last of the asking rows that it was found with.

    Arrays over all row ids that are used again and again; a bitmap knows which places were touched.
    """

    def __init__(self) -> None:
        self._touched = BitMap()
        self._count: NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self._last: NDArray[np.int64] = np.zeros(16, dtype=np.int64)

    def reserve(self, rows: int) -> None:
        self._count, self._last = grown(self._count, rows, 0), grown(self._last, rows, 0)

    def add(self, rids: Ids, counts: Ids, turn: int) -> None:
        """Different rows, found in so many pairs with asking rows of which `turn` was the last."""
        self._touched |= bitmap_of(rids)
        self._count[rids] += counts
        self._last[rids] = np.maximum(self._last[rids], turn)

    def add_pairs(self, rids: Ids, turns: Ids) -> None:
        self._touched |= bitmap_of(rids)
        np.add.at(self._count, rids, np.int64(1))
        np.maximum.at(self._last, rids, turns)

    def take(self) -> tuple[Ids, Ids, Ids]:
        """Rows, numbers of pairs and turns; then all is zero again."""
        rids = ids_of(self._touched).astype(np.int64)
        counts, turns = self._count[rids], self._last[rids]
        self._count[rids] = self._last[rids] = 0
        self._touched = BitMap()
        return rids, counts, turns


class Findings:
    """A collector: pairs for `emit: pairs`, pairs of each row for `rows`, pairs of each group for `groups`, and the
    number of violations for every rule."""

    def __init__(
        self,
        table: Table,
        constraints: Mapping[str, DenialConstraint],
        degrees: Mapping[str, Degrees] | None = None,
        turns: Ids | None = None,
    ) -> None:
        """For rules with `emit: rows`: where to add up degrees, and the turn of each row that asks (0: it does not)."""
        self._table, self._constraints = table, constraints
        self._degrees = degrees or {}
        self._turns: Ids = NO_PAIRS if turns is None else turns
        self._pairs: defaultdict[str, list[Pairs]] = defaultdict(list)
        self.totals: Counter[str] = Counter()
        self.groups: defaultdict[str, Counter[Label]] = defaultdict(Counter)
        self._labels: dict[tuple[str, Role, tuple[int, ...]], Label] = {}

    def wants(self, rule: str) -> Emit | None:
        return self._constraints[rule].emit if rule in self._constraints else None

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        self.totals[rule] += len(own)
        emit = self.wants(rule)
        if emit is Emit.PAIRS:
            t, u = (own, other) if role == "t" else (other, own)
            if self._constraints[rule].is_symmetric:
                t, u = np.minimum(own, other), np.maximum(own, other)
            self._pairs[rule].append(packed(t, u))
        elif emit is Emit.ROWS:
            self._degrees[rule].add_pairs(own, self._turns[other])
            self._degrees[rule].add_pairs(other, self._turns[own])
        elif emit is Emit.GROUPS:
            rids, counts = np.unique(own, return_counts=True)
            for rid, count in zip(rids.tolist(), counts.tolist(), strict=True):
                self.groups[rule][self._label(rule, role, rid)] += count

    def add_counts(self, rule: str, role: Role, own: Ids, counts: Ids) -> None:
        found = int(counts.sum())
        self.totals[rule] += found
        if found and self.wants(rule) is Emit.GROUPS:
            self.groups[rule][self._label(rule, role, int(own[0]))] += found

    def add_rows(self, rule: str, rids: Ids, counts: Ids, found: Ids, told: Ids) -> None:
        self._degrees[rule].add(rids, counts, int(self._turns[found].max()))
        self._degrees[rule].add(found, told, int(self._turns[rids].max()))

    def add_single(self, rule: str, rids: Ids) -> None:
        self.totals[rule] += len(rids)
        self._pairs[rule].append(packed(rids, np.full(len(rids), NOBODY)))

    def pairs(self, rule: str) -> Pairs:
        found = self._pairs[rule]
        return np.concatenate(found) if found else NO_PAIRS

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

    def wants(self, rule: str) -> Emit | None:
        return Emit.COUNTS if rule == self._rule else None

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None:
        del rule, role, other
        self._rows.append(np.unique(own))

    def add_counts(self, rule: str, role: Role, own: Ids, counts: Ids) -> None:
        del rule, role
        self._rows.append(own[counts > 0])

    def add_rows(self, rule: str, rids: Ids, counts: Ids, found: Ids, told: Ids) -> None:
        """Counts are wanted, so nobody tells of rows."""
        raise AssertionError(rule, rids, counts, found, told)

    def count(self) -> int:
        return len(np.unique(np.concatenate(self._rows))) if self._rows else 0

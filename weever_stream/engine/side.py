"""One side of a route: which rows are in which partition, and the zone of values that each partition spans.

Zones give constant-time proofs of "no partner" before any set is built: one value on the right side of an FD, a
minimum or maximum that an inequality cannot pass. They only widen until a partition is empty, so they are safe bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Codes, Ids, Mask, grown
from weever_stream.engine.partition import Partition
from weever_stream.engine.probe import Probe
from weever_stream.engine.table import Table
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.predicate import Operator, Predicate

NOWHERE = -1


class Zone:
    """Smallest and largest code (or order key) of one column in each partition."""

    def __init__(self) -> None:
        self.low: NDArray[np.float64] = np.full(16, np.inf)
        self.high: NDArray[np.float64] = np.full(16, -np.inf)

    def widen(self, pids: Ids, values: NDArray[np.float64]) -> None:
        np.minimum.at(self.low, pids, values)
        np.maximum.at(self.high, pids, values)

    def reserve(self, size: int) -> None:
        self.low, self.high = grown(self.low, size, np.inf), grown(self.high, size, -np.inf)

    def clear(self, pids: Ids) -> None:
        self.low[pids], self.high[pids] = np.inf, -np.inf


class Side:
    """Membership as linked lists in arrays (first by partition; next and previous by row), so that a row costs a few
    bytes and a batch is linked at once."""

    def __init__(self, table: Table, columns: tuple[str, ...], filters: tuple[Predicate, ...]) -> None:
        self._table = table
        self.columns, self.filters = columns, filters
        self.pid_of: NDArray[np.int32] = np.full(16, NOWHERE, dtype=np.int32)
        self._next: NDArray[np.int32] = np.full(16, NOWHERE, dtype=np.int32)
        self._previous: NDArray[np.int32] = np.full(16, NOWHERE, dtype=np.int32)
        self._first: NDArray[np.int32] = np.full(16, NOWHERE, dtype=np.int32)
        self.count: NDArray[np.int32] = np.zeros(16, dtype=np.int32)
        self.hashed: set[str] = set()
        self.ordered: set[str] = set()
        self._code_zones: dict[str, Zone] = {}
        self._order_zones: dict[str, Zone] = {}
        self.partitions: dict[int, Partition] = {}

    def serve(self, probe: Probe) -> None:
        """Prepares this side to be asked by a probe."""
        kind, zones = (self.ordered, self._order_zones) if probe.op.is_inequality else (self.hashed, self._code_zones)
        for name in probe.others:
            kind.add(name)
            zones.setdefault(name, Zone())

    def _zones(self) -> Iterable[Zone]:
        yield from self._code_zones.values()
        yield from self._order_zones.values()

    def reserve(self, partitions: int) -> None:
        """Room for the table's row ids and for so many partitions."""
        rows = self._table.capacity
        self.pid_of, self._next = grown(self.pid_of, rows, NOWHERE), grown(self._next, rows, NOWHERE)
        self._previous = grown(self._previous, rows, NOWHERE)
        self._first, self.count = grown(self._first, partitions, NOWHERE), grown(self.count, partitions, 0)
        for zone in self._zones():
            zone.reserve(partitions)

    def add(self, rids: Ids, pids: Ids) -> None:
        """Rows whose cells stand in the table join their partitions."""
        if not len(rids):
            return
        by_pid = np.argsort(pids, kind="stable")
        rids, pids = rids[by_pid], pids[by_pid]
        self._link(rids, pids)
        self._widen(rids, pids)
        if self.partitions:
            self._tell_partitions(rids, pids, Partition.add)

    def _link(self, rids: Ids, pids: Ids) -> None:
        starts = np.flatnonzero(np.r_[True, pids[1:] != pids[:-1]])
        ends = np.r_[starts[1:], len(pids)] - 1
        heads = pids[starts]
        self.pid_of[rids] = pids
        self._previous[rids[1:]], self._next[rids[:-1]] = rids[:-1], rids[1:]
        old = self._first[heads]
        self._next[rids[ends]], self._previous[rids[starts]] = old, NOWHERE
        linked = old >= 0
        self._previous[old[linked]] = rids[ends][linked]
        self._first[heads] = rids[starts]
        self.count[heads] += (ends - starts + 1).astype(np.int32)

    def _widen(self, rids: Ids, pids: Ids) -> None:
        for zones, of_order in ((self._code_zones, False), (self._order_zones, True)):
            for name, zone in zones.items():
                column = self._table.columns[name]
                codes = column.codes[rids]
                known = codes >= 0
                values = column.domain.keys[codes[known]] if of_order else codes[known].astype(np.float64)
                zone.widen(pids[known], values)

    def remove(self, rids: Ids) -> Ids:
        """Rows leave their partitions, while their cells still stand in the table; answers partitions now empty."""
        if not len(rids):
            return rids
        pids = self.pid_of[rids].astype(np.int64)
        if self.partitions:
            by_pid = np.argsort(pids, kind="stable")
            self._tell_partitions(rids[by_pid], pids[by_pid], Partition.remove)
        self._unlink(rids.tolist(), pids.tolist())
        np.subtract.at(self.count, pids, 1)
        self.pid_of[rids] = NOWHERE
        empty = np.unique(pids[self.count[pids] == 0])
        for zone in self._zones():
            zone.clear(empty)
        return empty

    def _unlink(self, rids: list[int], pids: list[int]) -> None:
        first, following, previous = self._first.data, self._next.data, self._previous.data
        for rid, pid in zip(rids, pids, strict=True):
            before, after = previous[rid], following[rid]
            if before < 0:
                first[pid] = after
            else:
                following[before] = after
            if after >= 0:
                previous[after] = before

    def _tell_partitions(self, rids: Ids, pids: Ids, change: Callable[[Partition, Ids], None]) -> None:
        cuts = np.flatnonzero(pids[1:] != pids[:-1]) + 1
        for share in np.split(np.arange(len(pids)), cuts):
            pid = int(pids[share[0]])
            partition = self.partitions.get(pid)
            if partition is not None:
                change(partition, rids[share])
                if not len(partition):
                    del self.partitions[pid]

    def members(self, pids: Ids) -> tuple[Ids, Ids]:
        """All rows of these partitions: positions in `pids`, and row ids. Cost: one array step per longest list."""
        at, rows = np.arange(len(pids)), self._first[pids].astype(np.int64)
        found_at, found_rows = [], []
        while len(rows):
            known = rows >= 0
            at, rows = at[known], rows[known]
            found_at.append(at)
            found_rows.append(rows)
            rows = self._next[rows].astype(np.int64)
        return np.concatenate(found_at or [at]), np.concatenate(found_rows or [rows])

    def partition(self, pid: int) -> Partition:
        """The indexes of a partition, built now if nobody asked before."""
        found = self.partitions.get(pid)
        if found is None:
            members = np.flatnonzero(self.pid_of == pid)
            found = self.partitions[pid] = Partition(self._table, self.hashed, self.ordered, members)
        return found

    def may_match(self, probe: Probe, codes: dict[str, Codes], pids: Ids) -> Mask:
        """False where the zone of the partition proves that no row of it can satisfy the probe. O(1) a row."""
        if probe.any_of:
            return np.asarray(np.logical_or.reduce([self.may_match(part, codes, pids) for part in probe.parts]))
        own = codes[probe.own]
        if not probe.op.is_inequality:
            return _may_equal(self._code_zones[probe.other], probe.op, own, pids)
        domain = self._table.columns[probe.own].domain
        return _may_exceed(self._order_zones[probe.other], probe.op, domain.keys[own], pids, domain.exact)

    def check(self) -> None:
        for pid in np.flatnonzero(self.count):
            members = np.sort(self.members(np.array([pid]))[1])
            if not np.array_equal(members, np.flatnonzero(self.pid_of == pid)) or len(members) != self.count[pid]:
                raise InvariantError(f"side {self.columns}: the list of partition {pid} is wrong")
            if int(pid) in self.partitions:
                self.partitions[int(pid)].check(members)
        if np.count_nonzero(self.pid_of >= 0) != self.count.sum():
            raise InvariantError(f"side {self.columns}: counts do not add up")


def _may_equal(zone: Zone, op: Operator, own: Codes, pids: Ids) -> Mask:
    low, high = zone.low[pids], zone.high[pids]
    if op is Operator.EQ:
        return np.asarray((own >= 0) & (low <= own) & (own <= high))
    return np.asarray((own >= 0) & (low <= high) & ((low != own) | (high != own)))


def _may_exceed(zone: Zone, op: Operator, own: NDArray[np.float64], pids: Ids, exact: bool) -> Mask:
    if op in (Operator.LT, Operator.LE):
        bound = zone.high[pids]
        return np.asarray(own < bound if op is Operator.LT and exact else own <= bound)
    bound = zone.low[pids]
    return np.asarray(own > bound if op is Operator.GT and exact else own >= bound)

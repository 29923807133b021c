"""One side of a route: the rows that can be met there, partition by partition, and what each partition can answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from weever_stream.engine.domain import Ids, Mask
from weever_stream.engine.grouping import by_label, cut
from weever_stream.engine.partition import LocalIds, Partition
from weever_stream.engine.probe import Probe, Role
from weever_stream.engine.slots import Slots
from weever_stream.engine.table import Table
from weever_stream.engine.zone import CodeZone, OrderZone, Zone
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.predicate import Predicate

WORTH = 100
"""A search costs as much as looking at this many rows (about). So a partition of n rows has its bounds made anew when
n / WORTH searches were not turned away."""


class Side:
    """Slots, zones, and an indexed Partition where one was asked for."""

    def __init__(self, table: Table, columns: tuple[str, ...], filters: tuple[Predicate, ...]) -> None:
        self._table = table
        self.columns, self.filters = columns, filters
        self.slots = Slots()
        self.hashed: dict[str, CodeZone] = {}
        self.ordered: dict[str, OrderZone] = {}
        self.frontiers: dict[tuple[str, Role], tuple[Probe, Probe]] = {}
        self.partitions: dict[int, Partition] = {}
        self._local_ids = LocalIds()

    def serve(self, probe: Probe) -> None:
        """Prepares this side to be asked by a probe."""
        for name in probe.others:
            self.slots.keep(name, self._table.columns[name])
            if probe.op.is_inequality:
                self.ordered.setdefault(name, OrderZone(self._table.columns[name]))
            else:
                self.hashed.setdefault(name, CodeZone(self._table.columns[name]))

    def serve_both(self, rule: str, role: Role, first: Probe, second: Probe) -> None:
        """Prepares this side to be asked by two inequalities of a rule at once."""
        self.frontiers[rule, role] = (first, second)

    def _zones(self) -> Iterable[Zone]:
        yield from self.hashed.values()
        yield from self.ordered.values()

    def reserve(self, partitions: int) -> None:
        """Room for the table's row ids and for so many partitions."""
        self.slots.reserve(self._table.capacity, partitions)
        self._local_ids.reserve(self._table.capacity)
        for zone in self._zones():
            zone.reserve(partitions)

    def add(self, rids: Ids, pids: Ids) -> None:
        """Rows whose cells stand in the table join their partitions."""
        if not len(rids):
            return
        rids, heads, starts, sizes = by_label(rids, pids)
        self.slots.add(rids, heads, sizes)
        for zone in self._zones():
            zone.widen(heads, starts, rids)
        self._tell_partitions(rids, heads, starts, Partition.add)

    def remove(self, rids: Ids) -> Ids:
        """Rows leave their partitions, while their cells still stand in the table; answers partitions now empty."""
        if not len(rids):
            return rids
        rids, heads, starts, sizes = by_label(rids, self.slots.pid_of[rids])
        self._tell_partitions(rids, heads, starts, Partition.remove)
        self.slots.remove(rids, heads, sizes)
        empty: Ids = heads[self.slots.count[heads] == 0]
        for zone in self._zones():
            zone.clear(empty)
        for pid in empty.tolist() if self.partitions else ():
            self.partitions.pop(pid, None)
        return empty

    def _tell_partitions(self, rids: Ids, heads: Ids, starts: Ids, change: Callable[[Partition, Ids], None]) -> None:
        if not self.partitions:
            return
        for pid, share in zip(heads.tolist(), cut(rids, starts), strict=True):
            if pid in self.partitions:
                change(self.partitions[pid], share)

    def partition(self, pid: int) -> Partition:
        """What is known of a partition beyond its zones, made now if nobody asked before."""
        found = self.partitions.get(pid)
        if found is None:
            rids = self.slots.of(pid)
            found = Partition(self._table, self._local_ids, self.hashed, self.ordered, self.frontiers.values(), rids)
            self.partitions[pid] = found
        elif found.left and found.asked * WORTH >= found.size:
            self._narrow(pid, found)
        return found

    def _narrow(self, pid: int, partition: Partition) -> None:
        """Makes the bounds of a partition anew: rows have left it, and rows that it could not turn away are many."""
        rids, at = self.slots.of(pid), np.array([pid])
        for zone in self._zones():
            zone.clear(at)
            zone.widen(at, np.array([0]), rids)
        partition.narrow(rids)

    def may_match(self, probe: Probe, rids: Ids, pids: Ids) -> Mask:
        """False where the zone of the partition proves that no row of it can satisfy the probe. O(1) a row."""
        if probe.any_of:
            return np.asarray(np.logical_or.reduce([self.may_match(part, rids, pids) for part in probe.parts]))
        zone = (self.ordered if probe.op.is_inequality else self.hashed)[probe.other]
        return zone.may_match(probe.op, self._table.columns[probe.own].codes[rids], pids)

    def check(self) -> None:
        self.slots.check()
        for pid in np.flatnonzero(self.slots.count).tolist():
            self._check_bounds(pid)
            if pid in self.partitions:
                self.partitions[pid].check(self.slots.of(pid))
        if any(self.slots.count[pid] == 0 for pid in self.partitions):
            raise InvariantError(f"side {self.columns}: an empty partition was left behind")

    def _check_bounds(self, pid: int) -> None:
        rids = self.slots.of(pid)
        zones: list[tuple[str, Zone]] = [*self.hashed.items(), *self.ordered.items()]
        for name, zone in zones:
            column = self._table.columns[name]
            codes = column.codes[rids]
            held = column.domain.keys[codes[codes >= 0]] if isinstance(zone, OrderZone) else codes[codes >= 0]
            if len(held) and not (zone.low[pid] <= held.min() and held.max() <= zone.high[pid]):
                raise InvariantError(f"side {self.columns}: a value of {name} lies outside the zone of partition {pid}")


"""Slots: which rows stand in which partition, the rows of one partition side by side in one array.

Partition p holds `rows[start[p] : start[p] + count[p]]`, with room for `room[p]`; one that outgrows its room moves to
the end, and the array is packed anew when most of it lies idle. So a batch joins, leaves or is read in a few array
operations, whatever the number of partitions that it touches. A lane holds the codes of one column in the same places,
so that a partition's cells are read in one stretch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import NULL, Codes, Ids, grown
from weever_stream.engine.table import CellColumn
from weever_stream.model.errors import InvariantError

NOWHERE = -1
Numbers = NDArray[np.int32]


def spans(starts: Ids, sizes: Ids) -> Ids:
    """start, start + 1, ..., start + size - 1 of each span, one after the other.

    >>> spans(np.array([10, 50]), np.array([3, 2])).tolist()
    [10, 11, 12, 50, 51]
    """
    if len(starts) == 1:
        return np.arange(starts[0], starts[0] + sizes[0])
    ends = sizes.cumsum()
    result = np.arange(ends[-1] if len(ends) else 0)
    result += np.repeat(starts - ends + sizes, sizes)
    return result


class Slots:
    """The rows of each partition, in no particular order. Row ids and partition numbers are dense.

    The cells of a row must not change while it stands in a slot.
    """

    def __init__(self, *, idle: int = 1024) -> None:
        """Up to `idle` slots (and three for each row held) may lie idle."""
        self._idle = idle
        self._lanes: dict[str, tuple[CellColumn, Codes]] = {}
        self.pid_of: Numbers = np.full(16, NOWHERE, dtype=np.int32)
        self.count: Numbers = np.zeros(16, dtype=np.int32)
        self._rows: Numbers = np.empty(16, dtype=np.int32)
        self._slot_of: Numbers = np.full(16, NOWHERE, dtype=np.int32)
        self._start: Numbers = np.zeros(16, dtype=np.int32)
        self._room: Numbers = np.zeros(16, dtype=np.int32)
        self._end = 0
        self._held = 0

    def keep(self, name: str, column: CellColumn) -> None:
        """Opens a lane for a column, before there are rows."""
        self._lanes.setdefault(name, (column, np.full(len(self._rows), NULL, dtype=np.int32)))

    def lane(self, name: str) -> Codes:
        """The code of a column in each slot."""
        return self._lanes[name][1]

    def reserve(self, rows: int, partitions: int) -> None:
        self.pid_of, self._slot_of = grown(self.pid_of, rows, NOWHERE), grown(self._slot_of, rows, NOWHERE)
        self.count, self._room = grown(self.count, partitions, 0), grown(self._room, partitions, 0)
        self._start = grown(self._start, partitions, 0)

    def add(self, rids: Ids, pids: Ids, sizes: Ids) -> None:
        """New rows, sorted by partition: the first sizes[0] join pids[0], and so on."""
        if self._end > 4 * self._held + self._idle:
            self._pack()
        needed = self.count[pids] + sizes
        cramped = needed > self._room[pids]
        if cramped.any():
            self._move(pids[cramped], needed[cramped])
        at = spans(self._start[pids] + self.count[pids], sizes)
        self._rows[at], self._slot_of[rids] = rids, at
        for column, lane in self._lanes.values():
            lane[at] = column.codes[rids]
        self.pid_of[rids] = np.repeat(pids, sizes)
        self.count[pids] = needed
        self._held += len(rids)

    def remove(self, rids: Ids, pids: Ids, sizes: Ids) -> None:
        """Rows leave, sorted by partition as in `add`; the last rows of each partition fill the holes."""
        self.count[pids] -= sizes.astype(np.int32)
        ends = self._start[pids] + self.count[pids]
        slots = self._slot_of[rids]
        self._slot_of[rids] = self.pid_of[rids] = NOWHERE
        last = spans(ends, sizes)
        last = last[self._slot_of[self._rows[last]] >= 0]
        holes = slots[slots < np.repeat(ends, sizes)]
        self._rows[holes] = movers = self._rows[last]
        self._slot_of[movers] = holes
        for _, lane in self._lanes.values():
            lane[holes] = lane[last]
        self._held -= len(rids)

    def members(self, pids: Ids) -> tuple[Ids, Ids]:
        """All rows of these partitions: for each its place in `pids`, and its slot. Cost: a few ns a row."""
        sizes = self.count[pids]
        return np.repeat(np.arange(len(pids)), sizes), spans(self._start[pids], sizes)

    def rows(self, slots: Ids) -> Ids:
        return self._rows[slots].astype(np.int64)

    def of(self, pid: int) -> Ids:
        start = self._start[pid]
        return self._rows[start : start + self.count[pid]].astype(np.int64)

    def _move(self, pids: Ids, needed: Ids) -> None:
        """Gives each of these partitions a larger room at the end: twice of what it needs, unless it is its first."""
        room = np.where(self._room[pids] > 0, 2 * needed, needed)
        self._place(pids, room, spans(self._start[pids], self.count[pids]))

    def _pack(self) -> None:
        pids = np.flatnonzero(self.count)
        self._room[:] = self._end = 0
        counts = self.count[pids]
        self._place(pids, counts + counts // 4, spans(self._start[pids], counts))

    def _place(self, pids: Ids, room: Ids, old: Ids) -> None:
        """Puts partitions at the end, with the rows from these old slots."""
        rows = self._rows[old]
        ends = self._end + room.cumsum()
        size = int(ends[-1]) if len(ends) else 0
        self._rows = grown(self._rows, size, NOWHERE)
        for name, (column, lane) in self._lanes.items():
            self._lanes[name] = column, grown(lane, size, NULL)
        self._start[pids], self._room[pids] = ends - room, room
        new = spans(self._start[pids], self.count[pids])
        self._rows[new], self._slot_of[rows] = rows, new
        for _, lane in self._lanes.values():
            lane[new] = lane[old]
        self._end = max(self._end, size)

    def check(self) -> None:
        """Raises InvariantError unless every row stands in one slot of its partition, and rooms do not overlap."""
        pids = np.flatnonzero(self.count)
        at, slots = self.members(pids)
        rows = self.rows(slots)
        if not (np.array_equal(self.pid_of[rows], pids[at]) and len(np.unique(rows)) == len(rows) == self._held):
            raise InvariantError("slots: a partition holds a row that stands elsewhere, or twice")
        if np.count_nonzero(self.pid_of >= 0) != self._held:
            raise InvariantError(f"slots: {self._held} rows held, {np.count_nonzero(self.pid_of >= 0)} placed")
        if not np.array_equal(self._rows[self._slot_of[rows]], rows):
            raise InvariantError("slots: a row's slot holds another row")
        if not all(np.array_equal(lane[slots], column.codes[rows]) for column, lane in self._lanes.values()):
            raise InvariantError("slots: a lane holds other codes than the table")
        taken = np.flatnonzero(self._room)
        taken = taken[np.argsort(self._start[taken])]
        ends = self._start[taken] + self._room[taken]
        if (self.count > self._room).any() or (ends[:-1] > self._start[taken][1:]).any():
            raise InvariantError("slots: rooms overlap or are too small")

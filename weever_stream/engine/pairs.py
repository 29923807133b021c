"""Pairs of rows that are compared directly, a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Ids, Mask, compare_keys
from weever_stream.engine.probe import Probe
from weever_stream.engine.slots import Slots
from weever_stream.engine.table import Table

FEW = 10  # one pair in so many is worth picking out; else comparing all of them is faster


class Pairs:
    """Each of some rows with every row of its partition. A column is fetched once, whoever asks for it."""

    def __init__(self, table: Table, slots: Slots, rids: Ids, pids: Ids) -> None:
        self._table, self._slots, self._rids = table, slots, rids
        self._at, self._other = slots.members(pids)
        self._cells: dict[tuple[str, bool, bool], NDArray[Any]] = {}

    def rows(self, chosen: Ids) -> tuple[Ids, Ids]:
        """The asking row and the other one of each chosen pair."""
        return self._rids[self._at[chosen]], self._slots.rows(self._other[chosen])

    def holding(self, probes: Sequence[Probe], asking: Mask) -> Ids:
        """The pairs of the marked rows for which every probe holds."""
        mask = np.ones(len(self._at), dtype=bool) if asking.all() else asking[self._at]
        chosen: Ids | None = None
        for probe in probes:
            if chosen is not None:
                chosen = chosen[self._holds(probe, chosen)]
                continue
            mask &= self._holds(probe, None)
            if FEW * np.count_nonzero(mask) < len(mask):
                chosen = np.flatnonzero(mask)
        return np.flatnonzero(mask) if chosen is None else chosen

    def _holds(self, probe: Probe, chosen: Ids | None) -> Mask:
        masks = [self._part_holds(part, chosen) for part in probe.parts]
        return masks[0] if len(masks) == 1 else np.asarray(np.logical_or.reduce(masks))

    def _part_holds(self, probe: Probe, chosen: Ids | None) -> Mask:
        domain = self._table.columns[probe.own].domain
        by_key = probe.op.is_inequality and domain.exact
        own, other = self._fetched(probe.own, True, by_key), self._fetched(probe.other, False, by_key)
        if chosen is not None:
            own, other = own[chosen], other[chosen]
        return compare_keys(probe.op, own, other) if by_key else domain.compare(probe.op, own, other)

    def _fetched(self, name: str, is_own: bool, by_key: bool) -> NDArray[Any]:
        """Codes, or order keys, of one side of all pairs."""
        wanted = (name, is_own, by_key)
        found = self._cells.get(wanted)
        if found is None:
            column = self._table.columns[name]
            found = column.codes[self._rids] if is_own else self._slots.lane(name)[self._other]
            if by_key:
                found = column.domain.keys[found]
            self._cells[wanted] = found = found[self._at] if is_own else found
        return found

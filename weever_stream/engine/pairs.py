"""Pairs of rows that are compared directly, a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Ids, Mask, compare_keys
from weever_stream.engine.probe import Probe
from weever_stream.engine.table import Table


class Pairs:
    """Pair i is the asking row `rids[at[i]]` and the row `other[i]`. A column is fetched once, whoever asks for it."""

    def __init__(self, table: Table, rids: Ids, at: Ids, other: Ids) -> None:
        self._table, self._rids = table, rids
        self.at, self.other = at, other
        self._cells: dict[tuple[str, bool, bool], NDArray[Any]] = {}

    @property
    def own(self) -> Ids:
        return self._rids[self.at]

    def holding(self, probes: Sequence[Probe], chosen: Ids | None) -> Ids:
        """Those of the chosen pairs (None: of all) for which every probe holds."""
        for probe in probes:
            mask = self._holds(probe, chosen)
            chosen = np.flatnonzero(mask) if chosen is None else chosen[mask]
            if not len(chosen):
                break
        return np.arange(len(self.at)) if chosen is None else chosen

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
            found = column.codes[self._rids if is_own else self.other]
            if by_key:
                found = column.domain.keys[found]
            self._cells[wanted] = found = found[self.at] if is_own else found
        return found

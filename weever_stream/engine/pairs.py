"""Pairs of rows that are compared directly, a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weever_stream.engine.domain import Codes, Ids, Mask
from weever_stream.engine.probe import Probe
from weever_stream.engine.table import Table


class Pairs:
    """Pair i is the asking row `rids[at[i]]` and the row `other[i]`. A column is fetched once, whoever asks for it."""

    def __init__(self, table: Table, rids: Ids, at: Ids, other: Ids) -> None:
        self._table, self._rids = table, rids
        self.at, self.other = at, other
        self._own_codes: dict[str, Codes] = {}
        self._other_codes: dict[str, Codes] = {}

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
        own, other = self._own(probe.own), self._other(probe.other)
        if chosen is not None:
            own, other = own[chosen], other[chosen]
        return self._table.columns[probe.own].domain.compare(probe.op, own, other)

    def _own(self, name: str) -> Codes:
        found = self._own_codes.get(name)
        if found is None:
            found = self._own_codes[name] = self._table.columns[name].codes[self._rids][self.at]
        return found

    def _other(self, name: str) -> Codes:
        found = self._other_codes.get(name)
        if found is None:
            found = self._other_codes[name] = self._table.columns[name].codes[self.other]
        return found

"""The frontier: a constant-time proof of "no partner" for two inequalities at once, where each alone proves nothing.

Of all rows with a smaller salary, is there one with a higher rate? Only the highest rate so far matters, and it changes
at few places: those rows are the frontier. A batch asks with one binary search a row. A frontier keeps its bounds when
rows leave, as zones do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Ids, Mask
from weever_stream.engine.probe import Probe
from weever_stream.engine.table import Table
from weever_stream.model.rules.predicate import Operator

Keys = NDArray[np.float64]

_NOBODY: Keys = np.empty(0)
_LEAST_RECENT = 256
_SHARE_RECENT = 16  # recent points are merged into the old ones when they are more than one in so many


@dataclass(frozen=True)
class Axis:
    """One inequality as a direction: `own op other` says that `other` comes before `own` here.

    With `reach`, an axis says the opposite: that `other` comes after `own`.
    """

    probe: Probe
    reach: bool

    @property
    def _sign(self) -> int:
        descends = self.probe.op in (Operator.LT, Operator.LE)
        return 1 if descends == self.reach else -1

    def own(self, table: Table, rids: Ids) -> Keys:
        column = table.columns[self.probe.own]
        return self._sign * column.domain.keys[column.codes[rids]]

    def other(self, table: Table, rids: Ids) -> Keys:
        column = table.columns[self.probe.other]
        return self._sign * column.domain.keys[column.codes[rids]]

    def is_strict(self, table: Table) -> bool:
        """False where equal keys may satisfy the inequality; of inexact keys that is never known."""
        return self.probe.op in (Operator.LT, Operator.GT) and table.columns[self.probe.other].domain.exact


class Frontier:
    """For rows that ask by two inequalities, `first` and `second`, among the rows that were added.

    Points of the frontier are sorted; both coordinates rise. New points are kept apart until they are many, so that
    adding a few costs little.
    """

    def __init__(self, table: Table, first: Probe, second: Probe, rids: Ids | None = None) -> None:
        self._table = table
        self._x, self._y = Axis(first, reach=False), Axis(second, reach=True)
        self._old = self._recent = (_NOBODY, _NOBODY)
        if rids is not None:
            self.add(rids)

    def __len__(self) -> int:
        return len(self._old[0]) + len(self._recent[0])

    def add(self, rids: Ids) -> None:
        x, y = self._x.other(self._table, rids), self._y.other(self._table, rids)
        new = (x == x) & (y > self._best(x, strict=False))  # NULL is NaN here, and in no comparison
        if not new.any():
            return
        self._recent = _merged(self._recent, (x[new], y[new]))
        if len(self._recent[0]) > _LEAST_RECENT + len(self._old[0]) // _SHARE_RECENT:
            self._old, self._recent = _merged(self._old, self._recent), (_NOBODY, _NOBODY)

    def may_match(self, rids: Ids) -> Mask:
        """False where no row that was added satisfies both inequalities with the asking row. O(log n) a row."""
        best = self._best(self._x.own(self._table, rids), strict=self._x.is_strict(self._table))
        own = self._y.own(self._table, rids)
        return np.asarray(best > own if self._y.is_strict(self._table) else best >= own)

    def _best(self, x: Keys, *, strict: bool) -> Keys:
        """The greatest second coordinate among points before x (or at x, unless strict)."""
        side: Literal["left", "right"] = "left" if strict else "right"
        best = np.full(len(x), -np.inf)
        for xs, ys in (self._old, self._recent):
            if len(xs):
                at = np.searchsorted(xs, x, side=side)
                best = np.where(at > 0, np.maximum(best, ys[at - 1]), best)
        return best


def _merged(a: tuple[Keys, Keys], b: tuple[Keys, Keys]) -> tuple[Keys, Keys]:
    """The frontier of both: by rising x, only the points with a greater y than all before."""
    x, y = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
    order = np.lexsort((-y, x))
    x, y = x[order], y[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(y)[:-1]])
    rises = y > before
    return x[rises], y[rises]

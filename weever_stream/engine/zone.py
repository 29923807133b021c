"""Zones: what values a partition can hold, as a smallest and a largest one. They prove "no partner" in constant time:
one value on the right side of an FD, a minimum or maximum that an inequality cannot pass.

A zone widens with every row and keeps its bounds when rows leave, until somebody narrows it: always a safe bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import NULL, Codes, Ids, Mask, grown
from weever_stream.engine.table import CellColumn
from weever_stream.model.rules.predicate import Operator


class CodeZone:
    """Smallest and largest code of a column in each partition: for = and !=."""

    def __init__(self, column: CellColumn) -> None:
        self._column = column
        self._least: int = np.iinfo(np.int32).max
        self.low: Codes = np.full(16, self._least, dtype=np.int32)
        self.high: Codes = np.full(16, NULL, dtype=np.int32)

    def reserve(self, partitions: int) -> None:
        self.low, self.high = grown(self.low, partitions, self._least), grown(self.high, partitions, NULL)

    def widen(self, pids: Ids, starts: Ids, rids: Ids) -> None:
        """Rows join, sorted by partition: from starts[0] on those of pids[0], and so on."""
        codes = self._column.codes[rids]
        present = np.where(codes < 0, self._least, codes)
        if len(starts) < len(codes):
            present, codes = np.minimum.reduceat(present, starts), np.maximum.reduceat(codes, starts)
        self.low[pids] = np.minimum(self.low[pids], present)
        self.high[pids] = np.maximum(self.high[pids], codes)

    def clear(self, pids: Ids) -> None:
        self.low[pids], self.high[pids] = self._least, NULL

    def may_match(self, op: Operator, own: Codes, pids: Ids) -> Mask:
        low, high = self.low[pids], self.high[pids]
        if op is Operator.EQ:
            return np.asarray((own >= 0) & (low <= own) & (own <= high))
        return np.asarray((own >= 0) & (low <= high) & ((low != own) | (high != own)))


class OrderZone:
    """Smallest and largest order key of a column in each partition: for inequalities."""

    def __init__(self, column: CellColumn) -> None:
        self._column = column
        self.low: NDArray[np.float64] = np.full(16, np.inf)
        self.high: NDArray[np.float64] = np.full(16, -np.inf)

    def reserve(self, partitions: int) -> None:
        self.low, self.high = grown(self.low, partitions, np.inf), grown(self.high, partitions, -np.inf)

    def widen(self, pids: Ids, starts: Ids, rids: Ids) -> None:
        """As CodeZone.widen. The key of NULL is NaN, which fmin and fmax pass over."""
        keys = self._column.domain.keys[self._column.codes[rids]]
        least = greatest = keys
        if len(starts) < len(keys):
            least, greatest = np.fmin.reduceat(keys, starts), np.fmax.reduceat(keys, starts)
        self.low[pids] = np.fmin(self.low[pids], least)
        self.high[pids] = np.fmax(self.high[pids], greatest)

    def clear(self, pids: Ids) -> None:
        self.low[pids], self.high[pids] = np.inf, -np.inf

    def may_match(self, op: Operator, own: Codes, pids: Ids) -> Mask:
        """Keys that are not exact may tie where values differ, so a tie rules nothing out then."""
        domain = self._column.domain
        keys = domain.keys[own]
        bound: Any = self.high[pids] if op in (Operator.LT, Operator.LE) else self.low[pids]
        if domain.exact and op is Operator.LT:
            return np.asarray(keys < bound)
        if domain.exact and op is Operator.GT:
            return np.asarray(keys > bound)
        return np.asarray(keys <= bound if op in (Operator.LT, Operator.LE) else keys >= bound)


Zone = CodeZone | OrderZone

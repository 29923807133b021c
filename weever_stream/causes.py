"""Which change of a batch is behind what happened to a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weever_stream.announcer import Announcer
from weever_stream.engine.domain import Ids
from weever_stream.engine.findings import Label
from weever_stream.engine.shard import Outcome
from weever_stream.model.changes import Cause, ChangeBatch, Key
from weever_stream.model.rules.constraint import DenialConstraint


class Causes:
    """The changes of a batch, as reasons of what it did: for each row the last change of its key.

    A change that leaves the columns of a rule as they were is no reason for what happened to that rule.
    """

    def __init__(self, announcer: Announcer, outcome: Outcome, read: ChangeBatch, last: Mapping[Key, int]) -> None:
        self._announcer, self._outcome, self._read, self._last = announcer, outcome, read, last
        self._parts: dict[int, tuple[Cause, dict[str, Any]]] = {}
        self._weights: dict[tuple[str, str], Ids] = {}

    def of_rows(self, rids: Ids, constraint: DenialConstraint, op: str) -> Ids:
        """For each row a number that is the greater, the better the last change of it explains what happened: the
        index of the change, and more if it is the delete that ended a violation; -1 where the row did not change."""
        weights = self._weights.get((constraint.id, op))
        if weights is None:
            weights = self._weights[constraint.id, op] = self._weighed(constraint, op)
        return weights[np.minimum(rids, len(weights) - 1)]

    def _weighed(self, constraint: DenialConstraint, op: str) -> Ids:
        """The number of every row; the last one stands for NOBODY."""
        keys, ops = self._announcer.table.keys, self._read.ops
        rids = self._changed(constraint)
        last = np.fromiter((self._last[keys[rid]] for rid in rids.tolist()), dtype=np.int64, count=len(rids))
        indexes = np.where(last >= 0, last, ~last)
        if op == "retracted" and "delete" in ops:
            indexes += len(ops) * np.array([op == "delete" for op in ops])[indexes]
        result: Ids = np.full(len(keys) + 1, -1, dtype=np.int64)
        result[rids] = indexes
        return result

    def _changed(self, constraint: DenialConstraint) -> Ids:
        """The rows in which a column of the rule has changed, or that have come or gone."""
        table, outcome = self._announcer.table, self._outcome
        same = [outcome.old[name] == table.columns[name].codes[outcome.old_rids] for name in constraint.columns]
        unchanged = outcome.old_rids[np.logical_and.reduce(same)]
        return np.concatenate([np.setdiff1d(outcome.new_rids, unchanged), outcome.gone])

    def of_pairs(self, t: Ids, u: Ids, constraint: DenialConstraint, op: str) -> Ids:
        """The index of the change that explains each pair best."""
        best = np.maximum(self.of_rows(t, constraint, op), self.of_rows(u, constraint, op))
        indexes: Ids = best % len(self._read.keys)
        return indexes

    def of_groups(self, constraint: DenialConstraint, op: str) -> dict[Label, int]:
        """For each group that a changed row was in (op "retracted") or is in ("new"): the index of the best change."""
        table, outcome = self._announcer.table, self._outcome
        columns = [[column.name for column in predicate.columns] for predicate in constraint.equalities]
        rids = outcome.old_rids if op == "retracted" else outcome.new_rids
        image = outcome.old if op == "retracted" else table.image(rids)
        weights = self.of_rows(rids, constraint, op).tolist()
        best: dict[Label, int] = {}
        for side in range(2):
            cells = [table.domains[names[side]].decoded(image[names[side]]) for names in columns]
            for label, weight in zip(zip(*cells, strict=True), weights, strict=True):
                best[label] = max(weight, best.get(label, weight))
        return {label: weight % len(self._read.keys) for label, weight in best.items()}

    def part(self, index: int) -> tuple[Cause, dict[str, Any]]:
        """A change as it stands in events."""
        found = self._parts.get(index)
        if found is None:
            cause = self._read.cause(index)
            key = self._announcer.masked_key(cause.key if isinstance(cause.key, tuple) else (cause.key,))
            found = self._parts[index] = cause, {"op": cause.op, "key": key, "position": cause.position}
        return found

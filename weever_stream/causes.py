"""Which change of a batch is behind what happened to a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weever_stream.announcer import Announcer
from weever_stream.engine.domain import Ids, Mask
from weever_stream.engine.findings import NOBODY, Label
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
        self._changed: dict[str, Mask] = {}

    def of_rows(self, rids: Ids, constraint: DenialConstraint, op: str) -> Ids:
        """For each row a number that is the greater, the better the last change of it explains what happened: the
        index of the change, and more if it is the delete that ended a violation; -1 where the row did not change."""
        keys, changed = self._announcer.table.keys, self._changed_rows(constraint)
        size, ops = len(self._read.keys), self._read.ops
        weights = {NOBODY: -1}
        for rid in set(rids.tolist()) - {NOBODY}:
            if not changed[rid]:
                weights[rid] = -1
                continue
            at = self._last[keys[rid]]
            index = at if at >= 0 else ~at
            weights[rid] = index + size if op == "retracted" and ops[index] == "delete" else index
        return np.fromiter(map(weights.__getitem__, rids.tolist()), dtype=np.int64, count=len(rids))

    def _changed_rows(self, constraint: DenialConstraint) -> Mask:
        found = self._changed.get(constraint.id)
        if found is None:
            table, outcome = self._announcer.table, self._outcome
            found = self._changed[constraint.id] = np.zeros(table.capacity, dtype=bool)
            found[outcome.new_rids] = found[outcome.gone] = True
            same = [outcome.old[name] == table.columns[name].codes[outcome.old_rids] for name in constraint.columns]
            found[outcome.old_rids[np.logical_and.reduce(same)]] = False
            found[outcome.gone] = True
        return found

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

"""Violation events: what one batch did to the rules, in the format that consumers read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from weever_stream.announcer import Announcer, digest, key_json
from weever_stream.causes import Causes
from weever_stream.engine.domain import Codes, Ids
from weever_stream.engine.findings import NOBODY, Label, unpacked
from weever_stream.engine.grouping import cut
from weever_stream.engine.shard import Change, Outcome
from weever_stream.model.changes import Cause, ChangeBatch, Key
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.message import Said
from weever_stream.model.rules.predicate import Row, Value

Event = dict[str, Any]
"""A row that is in several events of a batch is one object in all of them: events are there to be read."""
Announced = tuple[Event, Cause]


class _Shown(NamedTuple):
    """A row in the form that events need, prepared once."""

    key: str
    event: Event
    said: Said


class BatchEvents:
    """The events of one batch."""

    def __init__(
        self, announcer: Announcer, outcome: Outcome, read: ChangeBatch, last: Mapping[Key, int], batch: int, stamp: int
    ) -> None:
        self._announcer, self._outcome, self._read = announcer, outcome, read
        self._batch, self._stamp = batch, stamp
        self._causes = Causes(announcer, outcome, read, last)

    def all(self) -> Iterator[Announced]:
        """Each event with the change behind it, in a fixed order."""
        for rule, change in self._outcome.changes.items():
            constraint = self._announcer.rules.by_id[rule]
            if constraint.emit is Emit.COUNTS:
                continue
            yield from self._announced(constraint, change, "retracted")
            yield from self._announced(constraint, change, "new")
            if constraint.emit is Emit.GROUPS:
                yield from self._of_groups(constraint, change)

    def _announced(self, constraint: DenialConstraint, change: Change, op: str) -> list[Announced]:
        pairs = change.opened if op == "new" else change.retracted
        if not len(pairs):
            return []
        t, u = unpacked(pairs)
        omitted: dict[int, int] = {}
        partners = u
        if constraint.emit is Emit.ROWS and not constraint.is_single:
            partners = change.gained if op == "new" else change.lost
        indexes = self._causes.of_pairs(t, partners, constraint, op)
        if op == "new" and constraint.emit is Emit.PAIRS and not constraint.is_single and len(t) > constraint.max_pairs:
            kept, omitted = self._capped(constraint, t, u)
            t, u, indexes = t[kept], u[kept], indexes[kept]
        events = _RuleEvents(self._announcer, self._outcome, constraint, op)
        return sorted(self._written(events, t, u, indexes, omitted), key=_by_id)

    def _written(
        self, events: _RuleEvents, t: Ids, u: Ids, indexes: Ids, omitted: Mapping[int, int]
    ) -> Iterator[Announced]:
        for place, (event, index) in enumerate(zip(events.of(t, u), indexes.tolist(), strict=True)):
            cause = self._finish(event, index, events.op)
            if place in omitted:
                event["omitted"] = omitted[place]
            yield event, cause

    def _finish(self, event: Event, index: int, op: str) -> Cause:
        cause, event["cause"] = self._causes.part(index)
        event["ts_ms"], event["detected_ms"], event["batch"] = cause.ts_ms, self._stamp, self._batch
        if op == "retracted":
            event["reason"] = "deleted" if cause.op == "delete" else "repaired"
        return cause

    def _capped(self, constraint: DenialConstraint, t: Ids, u: Ids) -> tuple[Ids, dict[int, int]]:
        """Places of at most `max_pairs` openings for one change, and how many are missing, by the last one kept."""
        first, second = (self._causes.of_rows(rids, constraint, "new") for rids in (t, u))
        index = np.maximum(first, second)
        partner = np.where(first == index, u, t)
        rank = self._announcer.table.rank
        order = np.lexsort((rank(t), rank(partner), index))
        kept: list[Ids] = []
        omitted, total = {}, 0
        for share in cut(order, np.flatnonzero(np.diff(index[order], prepend=-2))):
            kept.append(share[: constraint.max_pairs])
            total += len(kept[-1])
            if len(share) > constraint.max_pairs:
                omitted[total - 1] = len(share) - constraint.max_pairs
        return np.concatenate(kept), omitted

    def _of_groups(self, constraint: DenialConstraint, change: Change) -> Iterator[Announced]:
        names = [predicate.columns[0].name for predicate in constraint.equalities]
        found: list[tuple[str, Label, tuple[int, int]]] = []
        found += [("retracted", label, (0, 0)) for label in change.retracted_groups]
        found += [("new", label, size) for label, size in change.opened_groups.items()]
        causes = {op: self._causes.of_groups(constraint, op) for op in {op for op, _, _ in found}}
        for op, label, (pairs, rows) in found:
            group = dict(zip(names, label, strict=True))
            event = _head(self._announcer.rules.dataset, constraint, op)
            shown = self._announcer.redaction.masked(group)
            event["id"] = self._announcer.violation_id(constraint.id, shown.values(), None)
            event["message"] = self._announcer.messages[constraint.id].of_group(group, pairs, rows)
            event |= {"group": shown, "pairs": pairs, "rows": rows}
            yield event, self._finish(event, causes[op][label], op)


class _RuleEvents:
    """Events of one rule and one op without their causes; each row is prepared once."""

    def __init__(self, announcer: Announcer, outcome: Outcome, constraint: DenialConstraint, op: str) -> None:
        self._announcer, self._outcome, self._constraint, self.op = announcer, outcome, constraint, op
        self._message = announcer.messages[constraint.id]
        self._head = _head(announcer.rules.dataset, constraint, op)
        self._id_head = announcer.id_head(constraint.id)
        self._rows: dict[int, tuple[Value, ...]] = {}
        self._shown: dict[tuple[int, Row], _Shown] = {}

    def of(self, t: Ids, u: Ids) -> Iterator[Event]:
        self._rows = self._cells(np.unique(np.concatenate([t, u[u != NOBODY]])))
        for pair in zip(t.tolist(), u.tolist(), strict=True):
            first, second = self._announcer.oriented(self._constraint, *pair)
            yield self._event(self._show(first, "t"), None if second == NOBODY else self._show(second, "u"))

    def _event(self, t: _Shown, u: _Shown | None) -> Event:
        event = self._head.copy()
        event["id"] = digest(self._id_head, t.key, u.key if u else "null")
        event["message"] = self._message.of(t.said, u.said if u else None)
        event["t"], event["u"] = t.event, u.event if u else None
        return event

    def _show(self, rid: int, side: Row) -> _Shown:
        found = self._shown.get((rid, side))
        if found is None:
            named = dict(zip(self._announcer.rules.key, self._announcer.key_tuple(rid), strict=True))
            row = dict(zip(self._constraint.columns, self._rows[rid], strict=True))
            masked = self._announcer.redaction.masked
            shown = {"key": masked(named), "row": masked(row)}
            id_part = key_json(tuple(shown["key"].values()))
            found = self._shown[rid, side] = _Shown(id_part, shown, self._message.said(named, row, side))
        return found

    def _cells(self, rids: Ids) -> dict[int, tuple[Value, ...]]:
        """The cells of these rows; a retraction shows them as they were when they broke the rule."""
        domains, columns = self._announcer.table.domains, self._constraint.columns
        cells = [domains[name].decoded(self._codes(name, rids)) for name in columns]
        return dict(zip(rids.tolist(), zip(*cells, strict=True), strict=True))

    def _codes(self, name: str, rids: Ids) -> Codes:
        codes = self._announcer.table.columns[name].codes[rids]
        old_rids = self._outcome.old_rids
        if self.op == "retracted" and len(old_rids):
            order = old_rids.argsort()
            at = np.searchsorted(old_rids, rids, sorter=order) % len(order)
            was = old_rids[order[at]] == rids
            codes[was] = self._outcome.old[name][order[at[was]]]
        return codes


def _head(dataset: str, constraint: DenialConstraint, op: str) -> Event:
    """What all events of a rule start with; `id` and `message` are still to come."""
    return {
        "v": 1,
        "id": "",
        "op": op,
        "dataset": dataset,
        "rule": constraint.id,
        "rule_version": constraint.version,
        "severity": constraint.severity.value,
        "message": "",
    }


def _by_id(found: Announced) -> str:
    return str(found[0]["id"])

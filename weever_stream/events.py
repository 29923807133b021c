"""Violation events: what one batch did to the rules, in the format that consumers read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from weever_stream.engine.domain import Ids
from weever_stream.engine.findings import NOBODY, Pairs, unpacked
from weever_stream.engine.shard import Change, Outcome
from weever_stream.engine.table import Table
from weever_stream.model.changes import Cause, ChangeBatch, Key
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Value
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.rules.sentences import Message
from weever_stream.redaction import Redaction

Event = dict[str, Any]
KeyTuple = tuple[Value, ...]


class Announcer:
    """Writes the events of a rule set; holds what stays the same from batch to batch."""

    def __init__(self, rules: Rules, table: Table, redaction: Redaction) -> None:
        self.rules, self.table, self.redaction = rules, table, redaction
        self.messages = {constraint.id: Message(constraint, rules.redact) for constraint in rules}

    def key_tuple(self, rid: int) -> KeyTuple:
        key: Any = self.table.keys[rid]
        return (key,) if len(self.rules.key) == 1 else key

    def key_of(self, rid: int) -> dict[str, Value]:
        return dict(zip(self.rules.key, self.key_tuple(rid), strict=True))

    def oriented(self, constraint: DenialConstraint, t: int, u: int) -> tuple[int, int]:
        """A symmetric pair is reported with the smaller key as t."""
        if u != NOBODY and constraint.is_symmetric and self.key_tuple(u) < self.key_tuple(t):
            return u, t
        return t, u

    def masked(self, row: Event) -> Event:
        return {"key": self.redaction.masked(row["key"]), "row": self.redaction.masked(row["row"])}


class BatchEvents:
    """The events of one batch."""

    def __init__(
        self,
        announcer: Announcer,
        outcome: Outcome,
        read: ChangeBatch,
        last: Mapping[Key, int],
        *,
        batch: int,
        stamp: int,
    ) -> None:
        self._announcer, self._outcome, self._read = announcer, outcome, read
        self._batch, self._stamp = batch, stamp
        self._rules, self._table = announcer.rules, announcer.table
        self._index_of = _Indexes(last)
        self._old = {rid: at for at, rid in enumerate(outcome.old_rids.tolist())}

    def all(self) -> Iterator[tuple[Event, Cause]]:
        """Each event with the change behind it, in a fixed order."""
        for rule, change in self._outcome.changes.items():
            constraint = self._rules.by_id[rule]
            if constraint.emit is Emit.COUNTS:
                continue
            yield from sorted(self._of_pairs(constraint, change.retracted, "retracted"), key=_by_id)
            opened = self._capped if constraint.emit is Emit.PAIRS else self._opened
            yield from sorted(opened(constraint, change.opened), key=_by_id)
            yield from self._of_groups(constraint, change)

    def _of_pairs(self, constraint: DenialConstraint, pairs: Pairs, op: str) -> Iterator[tuple[Event, Cause]]:
        t, u = unpacked(pairs)
        for a, b in zip(t.tolist(), u.tolist(), strict=True):
            yield self._event(constraint, op, *self._announcer.oriented(constraint, a, b))

    def _opened(self, constraint: DenialConstraint, pairs: Pairs) -> Iterator[tuple[Event, Cause]]:
        return self._of_pairs(constraint, pairs, "new")

    def _capped(self, constraint: DenialConstraint, pairs: Pairs) -> Iterator[tuple[Event, Cause]]:
        """At most `max_pairs` openings for one change; the last one kept says how many are missing."""
        if len(pairs) <= constraint.max_pairs:
            yield from self._opened(constraint, pairs)
            return
        t, u = unpacked(pairs)
        index = np.maximum(self._indexes(t), self._indexes(u))
        partner = np.where(self._indexes(t) == index, u, t)
        order = np.lexsort((self._table.rank(np.minimum(partner, self._table.capacity - 1)), index))
        for share in np.split(order, np.flatnonzero(np.diff(index[order])) + 1):
            kept = list(self._of_pairs(constraint, pairs[share[: constraint.max_pairs]], "new"))
            if len(share) > constraint.max_pairs:
                kept[-1][0]["omitted"] = len(share) - constraint.max_pairs
            yield from kept

    def _indexes(self, rids: Ids) -> Ids:
        keys = self._table.keys
        found = (-1 if rid == NOBODY else self._index_of.get(keys[rid], -1) for rid in rids.tolist())
        return np.fromiter(found, dtype=np.int64, count=len(rids))

    def _event(self, constraint: DenialConstraint, op: str, t: int, u: int) -> tuple[Event, Cause]:
        first, second = self._row(constraint, t, op), None if u == NOBODY else self._row(constraint, u, op)
        keys = (self._announcer.key_tuple(t), None if u == NOBODY else self._announcer.key_tuple(u))
        message = self._announcer.messages[constraint.id].of(first, second)
        event = self._head(constraint, op, violation_id(self._rules.dataset, constraint.id, *keys), message)
        masked = self._announcer.masked
        event |= {"t": masked(first), "u": None if second is None else masked(second)}
        cause = self._cause(t, u, op)
        return event | self._tail(cause, op), cause

    def _of_groups(self, constraint: DenialConstraint, change: Change) -> Iterator[tuple[Event, Cause]]:
        names = [predicate.columns[0].name for predicate in constraint.equalities]
        found = [("retracted", label, (0, 0)) for label in change.retracted_groups]
        found += [("new", label, size) for label, size in change.opened_groups.items()]
        for op, label, (pairs, rows) in found:
            group = dict(zip(names, label, strict=True))
            message = self._announcer.messages[constraint.id].of_group(group, pairs, rows)
            event = self._head(constraint, op, violation_id(self._rules.dataset, constraint.id, label, None), message)
            event |= {"group": self._announcer.redaction.masked(group), "pairs": pairs, "rows": rows}
            cause = self._last_cause()
            yield event | self._tail(cause, op), cause

    def _head(self, constraint: DenialConstraint, op: str, id_: str, message: str) -> Event:
        return {
            "v": 1,
            "id": id_,
            "op": op,
            "dataset": self._rules.dataset,
            "rule": constraint.id,
            "rule_version": constraint.version,
            "severity": constraint.severity.value,
            "message": message,
        }

    def _tail(self, cause: Cause, op: str) -> Event:
        key = cause.key if isinstance(cause.key, tuple) else (cause.key,)
        named = self._announcer.redaction.masked(dict(zip(self._rules.key, key, strict=True)))
        tail: Event = {
            "cause": {"op": cause.op, "key": named, "position": cause.position},
            "ts_ms": cause.ts_ms,
            "detected_ms": self._stamp,
            "batch": self._batch,
        }
        if op == "retracted":
            tail["reason"] = "deleted" if cause.op == "delete" else "repaired"
        return tail

    def _row(self, constraint: DenialConstraint, rid: int, op: str) -> Event:
        """Key and cells; a retraction shows the row as it was when it broke the rule."""
        at = self._old.get(rid) if op == "retracted" else None
        row = {}
        for name in constraint.columns:
            column = self._table.columns[name]
            code = int(column.codes[rid]) if at is None else int(self._outcome.old[name][at])
            row[name] = column.domain.decode(code)
        return {"key": self._announcer.key_of(rid), "row": row}

    def _cause(self, t: int, u: int, op: str) -> Cause:
        """The later change of the two rows; for a retraction a delete goes first."""
        keys = [self._table.keys[rid] for rid in (t, u) if rid != NOBODY]
        found = [self._read.cause(self._index_of[key]) for key in keys if key in self._index_of]
        if not found:
            return self._last_cause()
        return max(found, key=lambda cause: (op == "retracted" and cause.op == "delete", cause.index))

    def _last_cause(self) -> Cause:
        return self._read.cause(len(self._read.keys) - 1)


def violation_id(dataset: str, rule: str, t: tuple[Value, ...], u: tuple[Value, ...] | None) -> str:
    """32 hex digits from the dataset, the rule and the two keys alone."""
    text = json.dumps([dataset, rule, t, u], default=str, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class _Indexes:
    """key -> index of the last change of that key."""

    def __init__(self, last: Mapping[Key, int]) -> None:
        self._last = last

    def __contains__(self, key: Key) -> bool:
        return key in self._last

    def __getitem__(self, key: Key) -> int:
        at = self._last[key]
        return at if at >= 0 else ~at

    def get(self, key: Key, default: int) -> int:
        return self[key] if key in self._last else default


def _by_id(found: tuple[Event, Cause]) -> str:
    return str(found[0]["id"])

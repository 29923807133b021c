"""The monitor: changes in, violation events out. The engine as a Python library."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weever_stream import snapshot
from weever_stream.engine.domain import Ids
from weever_stream.engine.findings import NOBODY, Pairs, unpacked
from weever_stream.engine.shard import Change, Delta, Outcome, Shard
from weever_stream.model.changes import Cause, ChangeBatch, ChangeReader, Key
from weever_stream.model.errors import StateError, WeeverError
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Value
from weever_stream.model.rules.ruleset import Rules

Event = dict[str, Any]


@dataclass(frozen=True, order=True)
class Violation:
    """A rule and the keys of the rows that break it; `u` is None for a rule over one row."""

    rule: str
    t: tuple[Value, ...]
    u: tuple[Value, ...] | None


class Monitor:
    """Keeps a table's last state and says which violations each batch of changes opens and ends.

    `apply` is all or nothing: a change that cannot be used raises ChangeError and nothing of the batch is taken.
    """

    def __init__(self, rules: Rules) -> None:
        if not rules.key:
            raise WeeverError("a monitor needs a key: name the key columns in the rule file (key: [id])")
        self.rules = rules
        self.batch = 0
        self.shard = Shard(rules.constraints, rules.used_columns)
        self._reader = ChangeReader(rules.key, rules.used_columns, rules.columns)

    @property
    def rows(self) -> int:
        return len(self.shard.table)

    def counts(self) -> dict[str, int]:
        """Open violations of each rule; a symmetric pair counts once."""
        return dict(self.shard.open)

    def apply(self, changes: Iterable[Mapping[str, Any]], *, detected_ms: int | None = None) -> list[Event]:
        """Applies a batch and answers its net violation events, in a fixed order."""
        read = self._reader.read(list(changes))
        last, delta = self._net(read)
        outcome = self.shard.apply(delta)
        stamp = int(time.time() * 1000) if detected_ms is None else detected_ms
        events = list(_Events(self, outcome, read, last, stamp).all())
        self.shard.settle(outcome)
        self.batch += 1
        return events

    def violations(self, rule: str) -> Iterator[Violation]:
        """What holds now, asked anew."""
        if rule not in self.rules.by_id:
            raise WeeverError(f'unknown rule "{rule}": the rules are {", ".join(self.rules.by_id)}')
        for t, u in self.shard.scan(rule):
            for a, b in zip(t.tolist(), u.tolist(), strict=True):
                yield self._violation(rule, a, b)

    def check(self) -> None:
        """Checks every index against the table and every count against a new search; raises InvariantError."""
        self.shard.check()

    def save(self) -> bytes:
        """The monitor's rows and place as versioned bytes; see `load`."""
        names = self.rules.used_columns
        table = self.shard.table
        header = {"batch": self.batch, "columns": list(names), "versions": self._versions()}
        rows = ((*self.key_tuple(rid), *(table.value(name, rid) for name in names)) for rid in table.ids.values())
        return snapshot.write(header, rows)

    @staticmethod
    def load(data: bytes, rules: Rules) -> Monitor:
        """A monitor as it was saved, under the same rules; raises StateError where bytes or rules do not fit."""
        header, rows = snapshot.read(data)
        monitor = Monitor(rules)
        if header["versions"] != monitor._versions() or header["columns"] != list(rules.used_columns):
            raise StateError("the monitor was saved under other rules: start anew, or load it with those rules")
        width = len(rules.key)
        keys = [row[0] if width == 1 else row[:width] for row in rows]
        cells = {name: [row[width + at] for row in rows] for at, name in enumerate(rules.used_columns)}
        monitor.shard.settle(monitor.shard.apply(Delta([], keys, cells)))
        monitor.batch = header["batch"]
        return monitor

    def _versions(self) -> dict[str, str]:
        return {constraint.id: constraint.version for constraint in self.rules}

    def _violation(self, rule: str, t: int, u: int) -> Violation:
        first, second = self._oriented(self.rules.by_id[rule], t, u)
        return Violation(rule, self.key_tuple(first), None if second == NOBODY else self.key_tuple(second))

    def _oriented(self, constraint: DenialConstraint, t: int, u: int) -> tuple[int, int]:
        """A symmetric pair is reported with the smaller key as t."""
        if u != NOBODY and constraint.is_symmetric and self.key_tuple(u) < self.key_tuple(t):
            return u, t
        return t, u

    def key_tuple(self, rid: int) -> tuple[Value, ...]:
        key: Any = self.shard.table.keys[rid]
        return (key,) if len(self.rules.key) == 1 else key

    def _net(self, read: ChangeBatch) -> tuple[dict[Key, int], Delta]:
        """The last image of each key that the batch touches, and the index of the change behind it."""
        if read.has_unchanged:
            read.fill_unchanged(self._row_of)
        last = read.last()
        known = self.shard.table.ids
        removed = [key for key, at in last.items() if at < 0 and key in known]
        written = {key: at for key, at in last.items() if at >= 0}
        order = list(written.values())
        cells: Mapping[str, Sequence[Value]] = read.cells
        if order != list(range(len(read.keys))):
            cells = {name: [values[at] for at in order] for name, values in read.cells.items()}
        return last, Delta(removed, list(written), cells)

    def _row_of(self, key: Key) -> Mapping[str, Value]:
        rid = self.shard.table.ids.get(key)
        return {} if rid is None else {name: self.shard.table.value(name, rid) for name in self.rules.used_columns}


class _Events:
    """The events of one batch."""

    def __init__(
        self, monitor: Monitor, outcome: Outcome, read: ChangeBatch, last: Mapping[Key, int], stamp: int
    ) -> None:
        self._monitor, self._outcome, self._read, self._stamp = monitor, outcome, read, stamp
        self._index_of = {key: at if at >= 0 else ~at for key, at in last.items()}
        self._table = monitor.shard.table
        self._old = {rid: at for at, rid in enumerate(outcome.old_rids.tolist())}

    def all(self) -> Iterator[Event]:
        for rule, change in self._outcome.changes.items():
            constraint = self._monitor.rules.by_id[rule]
            if constraint.emit is Emit.COUNTS:
                continue
            yield from sorted(self._of_pairs(constraint, change.retracted, "retracted"), key=_by_id)
            yield from sorted(self._capped(constraint, change.opened), key=_by_id)
            yield from self._of_groups(constraint, change)

    def _of_pairs(self, constraint: DenialConstraint, pairs: Pairs, op: str) -> Iterator[Event]:
        t, u = unpacked(pairs)
        for a, b in zip(t.tolist(), u.tolist(), strict=True):
            yield self._event(constraint, op, *self._monitor._oriented(constraint, a, b))

    def _capped(self, constraint: DenialConstraint, pairs: Pairs) -> Iterator[Event]:
        """At most `max_pairs` openings for one change; the last one kept says how many are missing."""
        if len(pairs) <= constraint.max_pairs:
            yield from self._of_pairs(constraint, pairs, "new")
            return
        t, u = unpacked(pairs)
        index = np.maximum(self._indexes(t), self._indexes(u))
        partner = np.where(self._indexes(t) == index, u, t)
        order = np.lexsort((self._table.rank(np.minimum(partner, self._table.capacity - 1)), index))
        for share in np.split(order, np.flatnonzero(np.diff(index[order])) + 1):
            kept = list(self._of_pairs(constraint, pairs[share[: constraint.max_pairs]], "new"))
            if len(share) > constraint.max_pairs:
                kept[-1]["omitted"] = len(share) - constraint.max_pairs
            yield from kept

    def _indexes(self, rids: Ids) -> Ids:
        keys = self._table.keys
        found = (-1 if rid == NOBODY else self._index_of.get(keys[rid], -1) for rid in rids.tolist())
        return np.fromiter(found, dtype=np.int64, count=len(rids))

    def _event(self, constraint: DenialConstraint, op: str, t: int, u: int) -> Event:
        second = None if u == NOBODY else self._row(constraint, u, op)
        cause = self._cause(t, u, op)
        keys = (self._monitor.key_tuple(t), None if u == NOBODY else self._monitor.key_tuple(u))
        event = self._head(constraint, op, violation_id(self._monitor.rules.dataset, constraint.id, *keys))
        event |= {"t": self._row(constraint, t, op), "u": second}
        return event | self._tail(cause, op)

    def _of_groups(self, constraint: DenialConstraint, change: Change) -> Iterator[Event]:
        names = [predicate.columns[0].name for predicate in constraint.equalities]
        found = [("retracted", label, (0, 0)) for label in change.retracted_groups]
        found += [("new", label, size) for label, size in change.opened_groups.items()]
        for op, label, (pairs, rows) in found:
            event = self._head(constraint, op, violation_id(self._monitor.rules.dataset, constraint.id, label, None))
            event |= {"group": dict(zip(names, label, strict=True)), "pairs": pairs, "rows": rows}
            yield event | self._tail(self._last_cause(), op)

    def _head(self, constraint: DenialConstraint, op: str, id_: str) -> Event:
        return {
            "v": 1,
            "id": id_,
            "op": op,
            "dataset": self._monitor.rules.dataset,
            "rule": constraint.id,
            "rule_version": constraint.version,
            "severity": constraint.severity.value,
        }

    def _tail(self, cause: Cause, op: str) -> Event:
        key = cause.key if isinstance(cause.key, tuple) else (cause.key,)
        names = self._monitor.rules.key
        tail: Event = {
            "cause": {"op": cause.op, "key": dict(zip(names, key, strict=True)), "position": cause.position},
            "ts_ms": cause.ts_ms,
            "detected_ms": self._stamp,
            "batch": self._monitor.batch,
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
        return {"key": dict(zip(self._monitor.rules.key, self._monitor.key_tuple(rid), strict=True)), "row": row}

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


def _by_id(event: Event) -> str:
    return str(event["id"])

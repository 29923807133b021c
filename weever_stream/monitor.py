"""The monitor: changes in, violation events out. The engine as a Python library."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weever_stream import snapshot
from weever_stream.announcer import Announcer
from weever_stream.engine.findings import NOBODY
from weever_stream.engine.numbering import UNKNOWN
from weever_stream.engine.shard import Delta, Shard
from weever_stream.events import BatchEvents, Event
from weever_stream.explain import Explanation, explanation
from weever_stream.model.changes import Cause, ChangeBatch, ChangeReader, Key
from weever_stream.model.errors import InvariantError, StateError, WeeverError
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Value
from weever_stream.model.rules.ruleset import Rules
from weever_stream.recount import recount
from weever_stream.redaction import Redaction

LOADED_AT_ONCE = 10_000


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
        self._announcer = Announcer(rules, self.shard.table, Redaction(rules.redact))
        self._causes: dict[str, Cause] = {}
        self._reader = ChangeReader(rules)
        self._is_halfway = False

    @property
    def rows(self) -> int:
        return len(self.shard.table)

    def counts(self) -> dict[str, int]:
        """Open violations of each rule; a symmetric pair counts once."""
        return dict(self.shard.open)

    def apply(self, changes: Iterable[Mapping[str, Any]], *, detected_ms: int | None = None) -> list[Event]:
        """Applies a batch and answers its net violation events, in a fixed order.

        Should anything fail once the rows have changed, no later batch is taken: its events would not add up.
        """
        if self._is_halfway:
            raise InvariantError("an earlier batch failed halfway: go on from the last saved monitor")
        read = self._reader.read(list(changes))
        last, delta = self._net(read)
        self._is_halfway = True
        outcome = self.shard.apply(delta)
        stamp = int(time.time() * 1000) if detected_ms is None else detected_ms
        batch = BatchEvents(self._announcer, outcome, read, last, self.batch, stamp)
        events = []
        for event, cause in batch.all():
            events.append(event)
            self._remember(event, cause)
        self.shard.settle(outcome)
        self._is_halfway = False
        self.batch += 1
        return events

    def _remember(self, event: Event, cause: Cause) -> None:
        """Keeps the change behind each violation that `explain` can be asked about, for as long as it is open."""
        if self.rules.by_id[event["rule"]].emit is not Emit.PAIRS:
            return
        if event["op"] == "new":
            self._causes[event["id"]] = cause
        else:
            self._causes.pop(event["id"], None)

    def violations(self, rule: str) -> Iterator[Violation]:
        """What holds now, asked anew; take it before the next batch."""
        self._constraint(rule)
        return (
            self._violation(rule, a, b)
            for t, u in self.shard.scan(rule)
            for a, b in zip(t.tolist(), u.tolist(), strict=True)
        )

    def check(self) -> None:
        """Checks every index against the table, and every count against one that is made without the engine.

        Raises InvariantError. The recount compares all pairs that agree on a rule's equalities: not for every batch.
        """
        self.shard.check()
        table = self.shard.table
        live = table.live().tolist()
        columns = {name: [table.value(name, rid) for rid in live] for name in self.rules.used_columns}
        for constraint in self.rules:
            found = recount(constraint, columns, len(live))
            if found != self.shard.open[constraint.id]:
                counted = self.shard.open[constraint.id]
                raise InvariantError(f"rule {constraint.id}: {counted} open violations counted, {found} recounted")

    def explain(self, violation: Violation) -> Explanation:
        """Both rows, every predicate with its values, the change behind it, and SQL that shows the same pair.

        Raises WeeverError where the violation does not hold now.
        """
        constraint = self._constraint(violation.rule)
        keys = [violation.t] if violation.u is None else [violation.t, violation.u]
        rows = [self._row_of(key[0] if len(key) == 1 else key) for key in keys]
        if not all(rows) or (violation.u is None) != constraint.is_single or not constraint.holds(rows[0], rows[-1]):
            raise WeeverError(f"{violation} does not hold now")
        shown = [self._announcer.masked_key(key).values() for key in keys]
        id_ = self._announcer.violation_id(constraint.id, shown[0], None if violation.u is None else shown[1])
        return explanation(self.rules, constraint, keys, rows, self._causes.get(id_), self._announcer.redaction)

    def save(self) -> bytes:
        """The monitor's rows and place as versioned bytes; see `load`."""
        names = self.rules.used_columns
        table = self.shard.table
        header: dict[str, Any] = self._terms() | {"batch": self.batch}
        header["causes"] = [[id_, *snapshot.tagged_row(cause)] for id_, cause in self._causes.items()]
        rows = (
            (*self._announcer.key_tuple(rid), *(table.value(name, rid) for name in names))
            for rid in table.live().tolist()
        )
        return snapshot.write(header, rows)

    @staticmethod
    def load(data: bytes, rules: Rules) -> Monitor:
        """A monitor as it was saved, under the same rules; raises StateError where bytes or rules do not fit."""
        header, rows = snapshot.read(data)
        monitor = Monitor(rules)
        if {name: header.get(name) for name in monitor._terms()} != monitor._terms():
            raise StateError("the monitor was saved under other rules: start anew, or load it with those rules")
        width = len(rules.key)
        for start in range(0, len(rows), LOADED_AT_ONCE):
            share = rows[start : start + LOADED_AT_ONCE]
            keys = [row[0] if width == 1 else row[:width] for row in share]
            cells = {name: [row[width + at] for row in share] for at, name in enumerate(rules.used_columns)}
            monitor._reader.learn({name: [row[at] for row in share] for at, name in enumerate(rules.key)} | cells)
            monitor.shard.settle(monitor.shard.apply(Delta([], keys, cells), listing=False))
        monitor.batch = header["batch"]
        for id_, *cause in header["causes"]:
            monitor._causes[id_] = Cause(*snapshot.untagged_row(cause))
        return monitor

    def _terms(self) -> dict[str, Any]:
        """What a saved monitor must share with the rules that it is loaded under."""
        columns = {name: type_.name for name, type_ in sorted(self.rules.columns.items())}
        versions = {constraint.id: [constraint.version, constraint.emit.value] for constraint in self.rules}
        key, used = list(self.rules.key), list(self.rules.used_columns)
        return {"dataset": self.rules.dataset, "key": key, "types": columns, "columns": used, "versions": versions}

    def _constraint(self, rule: str) -> DenialConstraint:
        if rule not in self.rules.by_id:
            raise WeeverError(f'unknown rule "{rule}": the rules are {", ".join(self.rules.by_id)}')
        return self.rules.by_id[rule]

    def _violation(self, rule: str, t: int, u: int) -> Violation:
        first, second = self._announcer.oriented(self.rules.by_id[rule], t, u)
        key = self._announcer.key_tuple
        return Violation(rule, key(first), None if second == NOBODY else key(second))

    def _net(self, read: ChangeBatch) -> tuple[dict[Key, int], Delta]:
        """The last image of each key that the batch touches, and the index of the change behind it."""
        if read.has_unchanged:
            read.fill_unchanged(self._row_of)
        last = read.last()
        if read.is_plain and len(last) == len(read.keys):
            return last, Delta([], read.keys, read.cells)
        removed = [key for key, at in last.items() if at < 0]
        written = {key: at for key, at in last.items() if at >= 0}
        order = list(written.values())
        return last, Delta(removed, list(written), {n: [cells[at] for at in order] for n, cells in read.cells.items()})

    def _row_of(self, key: Key) -> dict[str, Value]:
        table = self.shard.table
        rid = table.id_of(key)
        return {} if rid == UNKNOWN else {name: table.value(name, rid) for name in self.rules.used_columns}

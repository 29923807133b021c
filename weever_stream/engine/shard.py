"""The shard: signed rows in, signed violations out. The one class that the monitor, the Spark job and tests drive."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import Codes, Ids, grown
from weever_stream.engine.findings import NO_PAIRS, NOBODY, Degrees, Findings, Involved, Label, Pairs, packed, unpacked
from weever_stream.engine.probe import passes
from weever_stream.engine.route import Route, RouteSpec
from weever_stream.engine.table import Key, Table
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Value


@dataclass(frozen=True)
class Delta:
    """The net of one batch: keys that are gone (if they were there), and keys with their new cells, by column."""

    removed: Sequence[Key]
    written: Sequence[Key]
    cells: Mapping[str, Sequence[Value]]


@dataclass
class Change:
    """What one batch did to one rule. Row ids as in the shard's table; `u` is NOBODY where a row stands alone.

    For `emit: rows`, `gained` and `lost` name for each row the last of the changed rows that it met, or NOBODY.
    """

    opened: Pairs = field(default_factory=lambda: NO_PAIRS)
    retracted: Pairs = field(default_factory=lambda: NO_PAIRS)
    gained: Ids = field(default_factory=lambda: NO_PAIRS)
    lost: Ids = field(default_factory=lambda: NO_PAIRS)
    opened_groups: dict[Label, tuple[int, int]] = field(default_factory=dict)
    retracted_groups: list[Label] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """Net violations of a batch. Old cells stay readable until the shard is told to `settle`."""

    changes: Mapping[str, Change]
    gone: Ids
    new_rids: Ids
    old_rids: Ids
    old: Mapping[str, Codes]


class Shard:
    """Table, routes and open counts of a set of rules.

    The result of `apply` is the difference between what held before and what holds after, whatever the batch size.
    """

    def __init__(self, constraints: Sequence[DenialConstraint], names: Sequence[str]) -> None:
        self.constraints = {constraint.id: constraint for constraint in constraints}
        self.table = Table(names, constraints)
        self.singles = [c for c in constraints if c.is_single]
        self.routes = _routes(self.table, [c for c in constraints if not c.is_single])
        self.open: Counter[str] = Counter({constraint.id: 0 for constraint in constraints})
        self.groups: dict[str, Counter[Label]] = {c.id: Counter() for c in constraints if c.emit is Emit.GROUPS}
        by_row = [c.id for c in constraints if c.emit is Emit.ROWS and not c.is_single]
        self._degrees: dict[str, NDArray[np.int64]] = {rule: np.zeros(16, dtype=np.int64) for rule in by_row}
        self._gained, self._lost = ({rule: Degrees() for rule in by_row} for _ in range(2))

    def apply(self, delta: Delta, *, listing: bool = True) -> Outcome:
        """Removes and writes rows; answers the net change of every rule. Call `settle` with the outcome afterwards.

        Without `listing` the pairs of `emit: pairs` are counted alone.
        """
        table = self.table
        removed = table.ids_of(delta.removed)
        removed = removed[removed >= 0]
        written, known = table.allocate(delta.written)
        new = table.encode(delta.cells)
        if known.any():
            touched = {name: ~known | (codes != self._current(name, written, known)) for name, codes in new.items()}
        else:
            touched = dict.fromkeys(new, ~known)
        changed = np.logical_or.reduce([~known, *touched.values()])
        old_rids = np.concatenate([removed, written[known & changed]])
        old = table.image(old_rids)
        asking = np.concatenate([written, removed])  # in this order a delete is the last word on what it ended
        before, after = self._findings(self._lost, asking, listing), self._findings(self._gained, asking, listing)
        shares = [(route, _share(route, touched, known)) for route in self.routes]
        if len(old_rids):
            for route, share in shares:
                leaving = np.concatenate([removed, written[share & known]])
                route.search(leaving, before)
                route.remove(leaving)
            self._ask_singles(old_rids, before)
            table.erase(old_rids)
        table.write(written[changed], {name: codes[changed] for name, codes in new.items()})
        for route, share in shares:
            route.add(written[share])
            route.search(written[share], after)
            route.replan()
        self._ask_singles(written[changed], after)
        return Outcome(self._net(before, after, asking), removed, written[changed], old_rids, old)

    def settle(self, outcome: Outcome) -> None:
        """Ends the batch: old cells are forgotten."""
        self.table.settle(outcome.gone, outcome.old)

    def scan(self, rule: str, *, chunk: int = 128) -> Iterator[tuple[Ids, Ids]]:
        """Every open violation of a rule as arrays of row ids, asked anew; nothing is stored for it.

        The rows ask in small chunks: each may have as many partners as there are rows.
        """
        constraint = self.constraints[rule]
        live = self.table.live()
        done = np.zeros(self.table.capacity, dtype=bool)
        for start in range(0, len(live), chunk):
            found = Findings(self.table, {rule: replace(constraint, emit=Emit.PAIRS)})
            rids = live[start : start + chunk]
            self._ask(constraint, rids, found)
            t, u = unpacked(found.pairs(rule))
            if not constraint.is_single:
                kept = ~(done[t] | done[u])
                t, u = t[kept], u[kept]
            done[rids] = True
            yield t, u

    def _ask(self, constraint: DenialConstraint, rids: Ids, findings: Findings) -> None:
        if constraint.is_single:
            self._ask_single(constraint, rids, findings)
        else:
            self._route_of(constraint.id).search(rids, findings)

    def _route_of(self, rule: str) -> Route:
        return next(route for route in self.routes if rule in route.rules)

    def _current(self, name: str, rids: Ids, known: NDArray[np.bool_]) -> Codes:
        result = np.full(len(rids), -1, dtype=np.int32)
        result[known] = self.table.columns[name].codes[rids[known]]
        return result

    def _ask_singles(self, rids: Ids, findings: Findings) -> None:
        for constraint in self.singles:
            self._ask_single(constraint, rids, findings)

    def _ask_single(self, constraint: DenialConstraint, rids: Ids, findings: Findings) -> None:
        findings.add_single(constraint.id, rids[passes(self.table, constraint.filters_t, rids)])

    def _findings(self, degrees: Mapping[str, Degrees], asking: Ids, listing: bool) -> Findings:
        turns = np.zeros(self.table.capacity if degrees else 0, dtype=np.int64)
        for each in degrees.values():
            each.reserve(self.table.capacity)
            turns[asking] = np.arange(1, len(asking) + 1)
        constraints: Mapping[str, DenialConstraint] = self.constraints
        if not listing:
            constraints = {rule: _counting(constraint) for rule, constraint in self.constraints.items()}
        return Findings(self.table, constraints, degrees, turns)

    def _net(self, before: Findings, after: Findings, asking: Ids) -> dict[str, Change]:
        result = {}
        for rule, constraint in self.constraints.items():
            if rule not in before.totals and rule not in after.totals:
                continue
            self.open[rule] += after.totals[rule] - before.totals[rule]
            if constraint.emit is Emit.GROUPS:
                result[rule] = self._net_groups(rule, before.groups[rule], after.groups[rule])
            elif constraint.emit is Emit.ROWS and not constraint.is_single:
                result[rule] = self._net_rows(rule, asking)
            elif constraint.emit is not Emit.COUNTS:
                result[rule] = _net_pairs(before.pairs(rule), after.pairs(rule))
        return result

    def _net_rows(self, rule: str, asking: Ids) -> Change:
        degrees = self._degrees[rule] = grown(self._degrees[rule], self.table.capacity, 0)
        lost, fewer, ended_by = self._lost[rule].take()
        gained, more, begun_by = self._gained[rule].take()
        had_lost, had_gained = degrees[lost] > 0, degrees[gained] > 0
        degrees[lost] -= fewer
        degrees[gained] += more
        opened, retracted = ~had_gained & (degrees[gained] > 0), had_lost & (degrees[lost] == 0)
        return Change(
            _alone(gained[opened]),
            _alone(lost[retracted]),
            _at_turn(asking, begun_by[opened]),
            _at_turn(asking, ended_by[retracted]),
        )

    def _net_groups(self, rule: str, lost: Counter[Label], gained: Counter[Label]) -> Change:
        groups, change = self.groups[rule], Change()
        for label in sorted({*lost, *gained}):
            had = groups[label]
            groups[label] += gained[label] - lost[label]
            if not had and groups[label]:
                change.opened_groups[label] = (groups[label], self.involved(rule, label))
            elif had and not groups[label]:
                change.retracted_groups.append(label)
            if not groups[label]:
                del groups[label]
        return change

    def involved(self, rule: str, label: Label) -> int:
        """How many rows of a group take part in a violation of the rule. Asks each row of the group."""
        codes = {}
        for predicate, value in zip(self.constraints[rule].equalities, label, strict=True):
            name = predicate.columns[0].name
            codes[name] = int(self.table.columns[name].domain.encode([value])[0])
        rows = Involved(rule)
        self._route_of(rule).involved(rule, codes, rows)
        return rows.count()

    def check(self) -> None:
        """Every invariant of the table, the routes and the open counts."""
        self.table.check()
        for route in self.routes:
            route.check()
        for constraint in self.constraints.values():
            self._check_rule(constraint)

    def _check_rule(self, constraint: DenialConstraint) -> None:
        rule, live, degrees = constraint.id, self.table.live(), Degrees()
        degrees.reserve(self.table.capacity)
        turns = np.zeros(self.table.capacity, dtype=np.int64)
        found = Findings(self.table, {rule: _counting(constraint)}, {rule: degrees}, turns)
        self._ask(constraint, live, found)
        if found.totals[rule] != self.open[rule]:
            raise InvariantError(f"rule {rule}: {self.open[rule]} open violations, {found.totals[rule]} found")
        if constraint.emit is Emit.GROUPS and found.groups[rule] != self.groups[rule]:
            raise InvariantError(f"rule {rule}: {len(self.groups[rule])} groups, {len(found.groups[rule])} found")
        if rule in self._degrees:
            rids, counts, _ = degrees.take()
            kept = np.flatnonzero(self._degrees[rule])
            if not (np.array_equal(kept, rids[counts > 0]) and np.array_equal(self._degrees[rule][rids], counts)):
                raise InvariantError(f"rule {rule}: the rows that are in violations are kept wrongly")


def _alone(rids: Ids) -> Pairs:
    return packed(rids, np.full(len(rids), NOBODY))


def _at_turn(asking: Ids, turns: Ids) -> Ids:
    """The row that asked at each turn; NOBODY at turn 0."""
    return np.concatenate([[NOBODY], asking])[turns]


def _counting(constraint: DenialConstraint) -> DenialConstraint:
    return replace(constraint, emit=Emit.COUNTS) if constraint.emit is Emit.PAIRS else constraint


def _net_pairs(lost: Pairs, gained: Pairs) -> Change:
    if len(lost) and len(gained):
        return Change(np.setdiff1d(gained, lost, assume_unique=True), np.setdiff1d(lost, gained, assume_unique=True))
    return Change(gained, lost)


def _share(route: Route, touched: Mapping[str, NDArray[np.bool_]], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The written rows that look different to this route."""
    result = ~known
    for name in route.columns:
        result = result | touched[name]
    return result


def _routes(table: Table, constraints: Sequence[DenialConstraint]) -> list[Route]:
    by_spec: dict[RouteSpec, list[DenialConstraint]] = defaultdict(list)
    for constraint in constraints:
        by_spec[RouteSpec.of(constraint)].append(constraint)
    return [Route(table, spec, tuple(members)) for spec, members in by_spec.items()]

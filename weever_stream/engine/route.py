"""A route: rules whose rows meet under the same equality columns, and the search for partners there."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from pyroaring import BitMap

from weever_stream.engine.domain import NULL, Codes, Ids, Mask, grown
from weever_stream.engine.partition import Operands, Partition
from weever_stream.engine.probe import Probe, Role, passes
from weever_stream.engine.schedule import Prefix, Schedule, plan
from weever_stream.engine.side import NOWHERE, Side
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Condition, Predicate

SCAN_LIMIT = 64
"""A partition up to this size is searched by comparing its rows directly, a larger one through its indexes."""


class Collector(Protocol):
    """Takes what a search finds. `wants_rows(rule)` is false where the number of partners is enough."""

    def wants_rows(self, rule: str) -> bool: ...

    def add_pairs(self, rule: str, role: Role, own: Ids, other: Ids) -> None: ...

    def add_count(self, rule: str, role: Role, own: int, partners: int) -> None: ...


@dataclass(frozen=True)
class RouteSpec:
    """Equality columns of t and of u, position by position, and the one-row filters (both written over t)."""

    t_columns: tuple[str, ...]
    u_columns: tuple[str, ...]
    t_filters: tuple[Predicate, ...]
    u_filters: tuple[Predicate, ...]

    @staticmethod
    def of(constraint: DenialConstraint) -> RouteSpec:
        pairs = sorted({tuple(c.name for c in predicate.columns) for predicate in constraint.equalities})
        t_filters = sorted(constraint.filters_t, key=str)
        u_filters = sorted((predicate.swapped for predicate in constraint.filters_u), key=str)
        return RouteSpec(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs), tuple(t_filters), tuple(u_filters))

    @property
    def is_uniform(self) -> bool:
        """True where a row stands in the same partition as t and as u."""
        return self.t_columns == self.u_columns and self.t_filters == self.u_filters

    def residual(self, constraint: DenialConstraint) -> tuple[Condition, ...]:
        """What is left to ask once two rows have met."""
        return tuple(c for c in constraint.conditions if c.is_cross and c not in constraint.equalities)


class _Numbers(dict[Hashable, int]):
    """A key that is looked up for the first time gets the next free number."""

    def __init__(self) -> None:
        super().__init__()
        self.free: list[int] = []

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = self.free.pop() if self.free else len(self)
        return number


class PartitionNumbers:
    """Route key -> dense partition number. With one column its code is the number."""

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self.capacity = 1

    def of(self, codes: list[Codes], size: int) -> Ids:
        """Numbers of these keys, new ones added; NOWHERE where a column is NULL."""
        if not codes:
            return np.zeros(size, dtype=np.int64)
        if len(codes) == 1:
            self.capacity = max(self.capacity, int(codes[0].max(initial=0)) + 1)
            return codes[0].astype(np.int64)
        known = np.logical_and.reduce([column != NULL for column in codes])
        result = np.full(size, NOWHERE, dtype=np.int64)
        keys = _packed([column[known] for column in codes])
        result[known] = np.fromiter(map(self._numbers.__getitem__, keys), dtype=np.int64, count=len(keys))
        self.capacity = max(self.capacity, len(self._numbers) + len(self._numbers.free))
        return result

    def forget(self, codes: list[Codes]) -> None:
        """Frees the numbers of these keys; their partitions are empty."""
        if len(codes) < 2:
            return
        for key in set(_packed(codes)):
            self._numbers.free.append(self._numbers.pop(key))


def _packed(codes: list[Codes]) -> list[Hashable]:
    if len(codes) == 2:
        return list(((codes[0].astype(np.int64) << 32) | codes[1]).tolist())
    return list(zip(*(column.tolist() for column in codes), strict=True))


class Route:
    """Partitions of one RouteSpec and the rules that are asked in them."""

    def __init__(self, table: Table, spec: RouteSpec, constraints: tuple[DenialConstraint, ...]) -> None:
        self._table, self.spec, self.constraints = table, spec, constraints
        self.rules: Mapping[str, tuple[Condition, ...]] = {c.id: spec.residual(c) for c in constraints}
        self._symmetric = {c.id: c.is_symmetric for c in constraints}
        self.t_side = Side(table, spec.t_columns, spec.t_filters)
        self.u_side = self.t_side if spec.is_uniform else Side(table, spec.u_columns, spec.u_filters)
        self._numbers = PartitionNumbers()
        self._asking: Mask = np.zeros(16, dtype=bool)
        self.columns = tuple(dict.fromkeys(name for c in constraints for name in c.columns))
        for rule, role in self._probed():
            for condition in self.rules[rule]:
                self._other_side(role).serve(Probe.of(condition, role))
        self.schedule: Schedule = plan(self.rules, self.cardinality)

    def cardinality(self, name: str) -> int:
        return self._table.columns[name].distinct

    def replan(self) -> None:
        """Plans again where an order could have changed."""
        if self.schedule.could_change(self.cardinality):
            self.schedule = plan(self.rules, self.cardinality)

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.t_side,) if self.spec.is_uniform else (self.t_side, self.u_side)

    def _probed(self) -> Iterator[tuple[str, Role]]:
        for rule in self.rules:
            yield rule, "t"
            if not self._symmetric[rule]:
                yield rule, "u"

    def _other_side(self, role: Role) -> Side:
        return self.u_side if role == "t" else self.t_side

    def _own_side(self, role: Role) -> Side:
        return self.t_side if role == "t" else self.u_side

    def add(self, rids: Ids) -> None:
        """Rows that stand in the table join."""
        image = self._table.image(rids)
        for side in self.sides:
            inside = passes(self._table, side.filters, image, len(rids))
            pids = self._numbers.of([image[name][inside] for name in side.columns], int(inside.sum()))
            for each in self.sides:
                each.reserve(self._numbers.capacity)
            side.add(rids[inside][pids >= 0], pids[pids >= 0])

    def remove(self, rids: Ids) -> None:
        """Rows leave, while they still stand in the table."""
        for side in self.sides:
            inside = rids[side.pid_of[rids] >= 0]
            pids = side.pid_of[inside].astype(np.int64)
            empty = side.remove(inside)
            gone = np.isin(pids, empty)
            for other in self.sides:
                gone &= other.count[pids] == 0
            self._numbers.forget([self._table.columns[name].codes[inside[gone]] for name in side.columns])

    def search(self, rids: Ids, collector: Collector) -> None:
        """Tells the collector every pair of these rows with any row, each once."""
        self._asking = grown(self._asking, self._table.capacity, False)
        self._asking[rids] = True
        for role in ("t", "u"):
            rules = [rule for rule, probed in self._probed() if probed == role]
            if rules:
                self._search_role(rids, role, rules, collector)
        self._asking[rids] = False

    def _search_role(self, rids: Ids, role: Role, rules: list[str], collector: Collector) -> None:
        own_pids = self._own_side(role).pid_of[rids].astype(np.int64)
        rids, pids = rids[own_pids >= 0], own_pids[own_pids >= 0]
        side = self._other_side(role)
        hopeful = self._hopeful(rids, pids, role, rules)
        small = side.count[pids] <= SCAN_LIMIT
        scanned = small & np.logical_or.reduce(list(hopeful.values()))
        if scanned.any():
            self._scan(rids[scanned], pids[scanned], role, rules, collector)
        for rule in rules:
            hopeful[rule] &= ~small
        if any(mask.any() for mask in hopeful.values()):
            self._refine(rids, pids, role, hopeful, collector)

    def _hopeful(self, rids: Ids, pids: Ids, role: Role, rules: list[str]) -> dict[str, Mask]:
        """For each rule, the rows for which a partner is not ruled out in constant time."""
        side = self._other_side(role)
        company = side.count[pids] > (side.pid_of[rids] == pids)
        image = {name: self._table.columns[name].codes[rids] for name in self.columns}
        result = {}
        for rule in rules:
            mask = company.copy()
            for condition in self.rules[rule]:
                mask &= side.may_match(Probe.of(condition, role), image, pids)
            result[rule] = mask
        return result

    def _scan(self, rids: Ids, pids: Ids, role: Role, rules: list[str], collector: Collector) -> None:
        """Small partitions: compares every row with every member, all of the batch at once."""
        at, other = self._other_side(role).members(pids)
        own = rids[at]
        distinct = own != other
        own, other = own[distinct], other[distinct]
        known: dict[Probe, Mask] = {}
        for rule in rules:
            mask = self._counts_once(rule, role, own, other)
            for condition in self.rules[rule]:
                probe = Probe.of(condition, role)
                if probe not in known:
                    known[probe] = probe.holds(self._table, own, other)
                mask &= known[probe]
            if mask.any():
                collector.add_pairs(rule, role, own[mask], other[mask])

    def _counts_once(self, rule: str, role: Role, own: Ids | int, other: Ids) -> Mask:
        """Two rows of one batch ask for each other: drops the second finding of their pair."""
        asking = self._asking[other]
        if self._symmetric[rule]:
            return np.asarray(~asking | (own < other))
        return ~asking if role == "u" else np.ones(len(other), dtype=bool)

    def _refine(self, rids: Ids, pids: Ids, role: Role, hopeful: dict[str, Mask], collector: Collector) -> None:
        """Large partitions: the WEEVER refinement, partition by partition."""
        asked = np.flatnonzero(np.logical_or.reduce(list(hopeful.values())))
        asked = asked[np.argsort(pids[asked], kind="stable")]
        cuts = np.flatnonzero(np.diff(pids[asked])) + 1
        for share in np.split(asked, cuts):
            partition = self._other_side(role).partition(int(pids[share[0]]))
            rules_of = {
                int(rids[at]): [r for r in self.schedule.order if r in hopeful and hopeful[r][at]] for at in share
            }
            for rid, operands in self._ordered(partition, rids[share], role):
                self._refine_row(partition, rid, role, rules_of[rid], operands, collector)

    def _ordered(self, partition: Partition, rids: Ids, role: Role) -> Iterator[tuple[int, Operands]]:
        first = self._first_inequality(role)
        if first is None:
            yield from ((rid, {}) for rid in rids.tolist())
            return
        ordered, operands = partition.sweep(first, rids)
        yield from zip(ordered.tolist(), operands, strict=True)

    def _first_inequality(self, role: Role) -> Probe | None:
        for rule in self.schedule.order:
            for condition in self.schedule.steps[rule]:
                probe = Probe.of(condition, role)
                if probe.op.is_inequality:
                    return probe
        return None

    def _refine_row(
        self, partition: Partition, rid: int, role: Role, rules: list[str], operands: Operands, collector: Collector
    ) -> None:
        shared: dict[Prefix, BitMap | None] = {}
        for rule in rules:
            prefix = self.schedule.prefix_of(rule) if self.schedule.prefixes else None
            found: BitMap | None = None
            if prefix is not None:
                if prefix not in shared:
                    shared[prefix] = self._pipeline(partition, None, prefix.conditions, rid, role, operands)
                found = shared[prefix]
            found = self._pipeline(partition, found, self.schedule.remaining(rule, prefix), rid, role, operands)
            found = partition.ids if found is None else found
            if found:
                self._report(partition, found, rule, rid, role, collector)

    def _pipeline(
        self,
        partition: Partition,
        candidates: BitMap | None,
        conditions: tuple[Condition, ...],
        rid: int,
        role: Role,
        operands: Operands,
    ) -> BitMap | None:
        for condition in conditions:
            if candidates is not None and not candidates:
                break
            candidates = partition.refine(candidates, Probe.of(condition, role), rid, operands)
        return candidates

    def _report(
        self, partition: Partition, found: BitMap, rule: str, rid: int, role: Role, collector: Collector
    ) -> None:
        own = partition.local(rid)
        alone = self._symmetric[rule] or role == "u"
        if not alone and not collector.wants_rows(rule):
            collector.add_count(rule, role, rid, len(found) - (own is not None and own in found))
            return
        other = partition.rows(found)
        other = other[other != rid]
        if alone:
            other = other[self._counts_once(rule, role, rid, other)]
        if collector.wants_rows(rule):
            collector.add_pairs(rule, role, np.full(len(other), rid), other)
        else:
            collector.add_count(rule, role, rid, len(other))

    def check(self) -> None:
        for side in self.sides:
            side.check()

"""A route: rules whose rows meet under the same equality columns, and the search for partners there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weever_stream.engine.domain import NULL, Codes, Ids, Mask, grown
from weever_stream.engine.findings import Collector
from weever_stream.engine.grouping import by_label, cut
from weever_stream.engine.numbering import Numbering
from weever_stream.engine.pairs import Pairs
from weever_stream.engine.probe import Probe, Role, passes
from weever_stream.engine.question import Question, View
from weever_stream.engine.refinement import Refinement
from weever_stream.engine.schedule import Schedule, plan
from weever_stream.engine.side import Side
from weever_stream.engine.slots import NOWHERE
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Condition, Predicate

SCAN_LIMIT = {"=": 512, "<": 4096}
"""A partition up to this size is searched by comparing its rows directly, a larger one through its indexes. Where an
inequality is asked, a search through indexes costs more, and comparing pays for longer."""
PAIRS_AT_ONCE = 1 << 18
BUSY = 4096
"""Where so many pairs would be compared in one partition, its frontiers are asked first."""


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


class PartitionNumbers:
    """Route key -> dense partition number. With one column its code is the number."""

    def __init__(self) -> None:
        self._numbers = Numbering()
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
        result[known], _, _ = self._numbers.assign(_packed([column[known] for column in codes]))
        self.capacity = max(self.capacity, self._numbers.capacity)
        return result

    def forget(self, codes: list[Codes]) -> None:
        """Frees the numbers of these keys; their partitions are empty."""
        if len(codes) > 1:
            self._numbers.forget(dict.fromkeys(_packed(codes)))


def _packed(codes: list[Codes]) -> list[int] | list[tuple[int, ...]]:
    """Each key as one hashable thing: cheap for two columns."""
    if len(codes) == 2:
        packed: list[int] = ((codes[0].astype(np.int64) << 32) | codes[1]).tolist()
        return packed
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
        self.views = tuple(self._views())
        for view in self.views:
            for rule in view.rules:
                self._serve(view, rule)
        self.schedule: Schedule = plan(self.rules, self.cardinality)

    @property
    def scan_limit(self) -> int:
        """Keys that are not exact are compared value by value where they tie: then indexes pay sooner."""
        ordered = [self._table.columns[name].domain for side in self.sides for name in side.ordered]
        return SCAN_LIMIT["<" if ordered and all(domain.exact for domain in ordered) else "="]

    def _views(self) -> Iterator[View]:
        """Symmetric rules are asked as t alone: as u they would find the same."""
        yield View("t", self.t_side, self.u_side, tuple(self.rules))
        asymmetric = tuple(rule for rule in self.rules if not self._symmetric[rule])
        if asymmetric:
            yield View("u", self.u_side, self.t_side, asymmetric)

    def _serve(self, view: View, rule: str) -> None:
        probes = [Probe.of(condition, view.role) for condition in self.rules[rule]]
        for probe in probes:
            view.other.serve(probe)
        inequalities = [probe for probe in probes if probe.op.is_inequality]
        if len(inequalities) > 1:
            view.other.serve_both(rule, view.role, inequalities[0], inequalities[1])

    def cardinality(self, name: str) -> int:
        return self._table.columns[name].distinct

    def replan(self) -> None:
        """Plans again where an order could have changed."""
        if self.schedule.could_change(self.cardinality):
            self.schedule = plan(self.rules, self.cardinality)

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.t_side,) if self.spec.is_uniform else (self.t_side, self.u_side)

    def add(self, rids: Ids) -> None:
        """Rows that stand in the table join."""
        for side in self.sides:
            inside = rids[passes(self._table, side.filters, rids)] if side.filters else rids
            pids = self._numbers.of([self._table.columns[name].codes[inside] for name in side.columns], len(inside))
            for each in self.sides:
                each.reserve(self._numbers.capacity)
            placed = pids >= 0
            side.add(*(inside, pids) if placed.all() else (inside[placed], pids[placed]))

    def remove(self, rids: Ids) -> None:
        """Rows leave, while they still stand in the table."""
        for side in self.sides:
            inside = rids[side.slots.pid_of[rids] >= 0]
            pids = side.slots.pid_of[inside]
            empty = side.remove(inside)
            if len(empty) and len(side.columns) > 1:
                gone = np.isin(pids, empty)
                for other in self.sides:
                    gone &= other.slots.count[pids] == 0
                self._numbers.forget([self._table.columns[name].codes[inside[gone]] for name in side.columns])

    def search(self, rids: Ids, collector: Collector) -> None:
        """Tells the collector every pair of these rows with any row, each once."""
        self._asking = grown(self._asking, self._table.capacity, False)
        self._asking[rids] = True
        self._answer([self._question(view, rids) for view in self.views], collector, self._asking)
        self._asking[rids] = False

    def involved(self, rule: str, codes: Mapping[str, int], collector: Collector) -> None:
        """Asks every row of one partition by one rule; rows tell of each pair separately.

        `codes` are those of t's equality columns, or what u's hold in their place.
        """
        pid = self._numbers.of([np.array([codes[name]], dtype=np.int32) for name in self.spec.t_columns], 1)[0]
        rows = {side: side.slots.of(pid) for side in self.sides}
        everybody = np.unique(np.concatenate(list(rows.values())))
        for view in self.views:
            if rule in view.rules:
                rids = everybody if self._symmetric[rule] else rows[view.own]
                nobody = np.zeros(self._table.capacity, dtype=bool)
                self._answer([self._question(view, rids, (rule,))], collector, nobody)

    def _question(self, view: View, rids: Ids, rules: Sequence[str] | None = None) -> Question:
        """The rows that have company there, and whom they may hope to find."""
        slots = view.other.slots
        pids = view.own.slots.pid_of[rids]
        company = (pids >= 0) & (slots.count[pids] > (slots.pid_of[rids] == pids))
        if not company.all():
            rids, pids = rids[company], pids[company]
        hopeful = {}
        for rule in rules or view.rules if len(rids) else ():
            hopeful[rule] = np.ones(len(rids), dtype=bool)
            for condition in self.rules[rule]:
                hopeful[rule] &= view.other.may_match(Probe.of(condition, view.role), rids, pids)
        return Question(view, rids, pids, hopeful)

    def _answer(self, questions: Sequence[Question], collector: Collector, asking: Mask) -> None:
        """Rows marked as asking ask themselves: a pair of two of them is told once."""
        for question in questions:
            self._ask_frontiers(question)
        hopeful = [question for question in questions if any(mask.any() for mask in question.hopeful.values())]
        if self.spec.is_uniform and hopeful:
            self._compare(hopeful, collector, asking)
        else:
            for question in hopeful:
                self._compare([question], collector, asking)
        for question in hopeful:
            large = question.view.other.slots.count[question.pids] > self.scan_limit
            if large.any() and question.anybody(large).any():
                Refinement(self._table, self.schedule, question, self._symmetric, asking, collector).run(large)

    def _ask_frontiers(self, question: Question) -> None:
        """Takes hope from rows whose two inequalities no row of their partition satisfies together."""
        side = question.view.other
        rules = [rule for rule in question.hopeful if (rule, question.view.role) in side.frontiers]
        if not rules:
            return
        asked = np.flatnonzero(np.logical_or.reduce([question.hopeful[rule] for rule in rules]))
        places, pids, starts, sizes = by_label(asked, question.pids[asked])
        busy = sizes * side.slots.count[pids] >= BUSY
        shares = cut(places, starts)
        for at in np.flatnonzero(busy).tolist():
            partition, share = side.partition(int(pids[at])), shares[at]
            for rule in rules:
                frontier = partition.frontiers[side.frontiers[rule, question.view.role]]
                question.hopeful[rule][share] &= frontier.may_match(question.rids[share])
                partition.asked += int(np.count_nonzero(question.hopeful[rule][share]))

    def _compare(self, questions: Sequence[Question], collector: Collector, asking: Mask) -> None:
        """Small partitions: every row with every member. The questions are those of the same rows in one place."""
        first = questions[0]
        slots = first.view.other.slots
        sizes = slots.count[first.pids]
        wanted = np.logical_or.reduce([question.anybody(sizes <= self.scan_limit) for question in questions])
        chosen = np.flatnonzero(wanted)
        for share in _shares(chosen, sizes[chosen]):
            pairs = Pairs(self._table, slots, first.rids[share], first.pids[share])
            for question in questions:
                for rule, hopeful in question.hopeful.items():
                    self._tell(question.view.role, rule, hopeful[share], pairs, collector, asking)

    def _tell(self, role: Role, rule: str, hopeful: Mask, pairs: Pairs, collector: Collector, asking: Mask) -> None:
        if not hopeful.any() or not collector.wants(rule):
            return
        probes = [Probe.of(condition, role) for condition in self.schedule.steps[rule]]
        own, other = pairs.rows(pairs.holding(probes, hopeful))
        kept = own != other
        if self._symmetric[rule]:
            kept &= ~asking[other] | (own < other)
        elif role == "u":
            kept &= ~asking[other]
        if kept.any():
            collector.add_pairs(rule, role, own[kept], other[kept])

    def check(self) -> None:
        for side in self.sides:
            side.check()


def _shares(chosen: Ids, sizes: Ids) -> Iterator[Ids]:
    """The chosen rows in shares of about PAIRS_AT_ONCE pairs."""
    if len(chosen):
        yield from cut(chosen, np.flatnonzero(np.diff(sizes.cumsum() // PAIRS_AT_ONCE, prepend=-1)))

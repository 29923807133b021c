"""The baseline: the paper's design done plainly, in Python on pyroaring.

Table-wide indexes (value -> bitmap of row numbers for = and !=, an LT-tree for each inequality column), one row at a
time, predicates in the paper's classes and by cardinality, refinement of one bitmap until it is empty. A new row is
probed as t and as u; same-column = and != refine both at once, and a symmetric rule is probed once. The pairs of a rule
that emits pairs are listed in `pairs`; of others they are only counted. On delete the same question is asked again
after the row has left the indexes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from benchmarks.paper_lt_tree import PaperLTTree
from weever_stream import Rules
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.predicate import Column, Operator, Predicate

REPLAN_EVERY = 1024
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """One refinement: the row's own value at `own` against the partners' column `other`: own op other."""

    own: int
    op: Operator
    other: int

    @property
    def refines_both(self) -> bool:
        return self.own == self.other and not self.op.is_inequality


@dataclass
class Indexes:
    """Everything that is known of one column. Only what some predicate asks for is kept."""

    hashed: dict[Any, BitMap] | None = None
    tree: PaperLTTree | None = None
    nulls: BitMap = field(default_factory=BitMap)

    def add(self, row_id: int, value: Any) -> None:
        if value is None:
            self.nulls.add(row_id)
            return
        if self.hashed is not None:
            ids = self.hashed.get(value)
            if ids is None:
                self.hashed[value] = BitMap((row_id,))
            else:
                ids.add(row_id)
        if self.tree is not None:
            self.tree.insert(row_id, value)

    def remove(self, row_id: int, value: Any) -> None:
        if value is None:
            self.nulls.discard(row_id)
            return
        if self.hashed is not None:
            ids = self.hashed[value]
            ids.discard(row_id)
            if not ids:
                del self.hashed[value]
        if self.tree is not None:
            self.tree.delete(row_id, value)

    def equal(self, value: Any) -> BitMap | None:
        assert self.hashed is not None
        return self.hashed.get(value)

    def bulk(self, values: Sequence[Any]) -> None:
        """Row n has the n-th value; the indexes must be empty."""
        rows: defaultdict[Any, list[int]] = defaultdict(list)
        for row_id, value in enumerate(values):
            rows[value].append(row_id)
        self.nulls = BitMap(rows.pop(None, ()))
        sets = {value: BitMap(ids) for value, ids in rows.items()}
        if self.tree is not None:
            self.tree = PaperLTTree.bulk(sets)
        if self.hashed is not None:
            self.hashed = {value: BitMap(ids) for value, ids in sets.items()} if self.tree is not None else sets

    @property
    def cardinality(self) -> int:
        return len(self.hashed) if self.hashed is not None else len(self.tree or ())


class PlainRule:
    """One constraint: its filters, and its cross-row predicates as steps for both roles."""

    def __init__(self, constraint: DenialConstraint, positions: dict[str, int]) -> None:
        self.constraint = constraint
        self.names = list(positions)
        self.cross = [_step(c, positions) for c in constraint.conditions if c.is_cross]
        self.passing = {role: BitMap() for role, filters in self._filters() if filters}
        self.schedules: list[tuple[str, list[Step]]] = []
        self.shared: list[Step] = []

    def _filters(self) -> Iterator[tuple[str, tuple[Predicate, ...]]]:
        yield "t", self.constraint.filters_t
        yield "u", self.constraint.filters_u

    def plan(self, columns: Sequence[Indexes]) -> None:
        """The paper's order: by class, then by cardinality; what refines both roles alike is done once, first."""
        steps = sorted(self.cross, key=lambda step: _rank(step, columns))
        shared = 0
        while shared < len(steps) and steps[shared].refines_both:
            shared += 1
        self.shared, rest = steps[:shared], steps[shared:]
        self.schedules = [("t", rest)]
        if not self.constraint.is_symmetric:
            self.schedules.append(("u", [Step(s.other, s.op.mirrored, s.own) for s in rest]))

    def passes(self, role: str, row: Row) -> bool:
        if not (filters := dict(self._filters())[role]):
            return True
        values = dict(zip(self.names, row, strict=True))
        return all(predicate.holds(values, values) for predicate in filters)

    def note(self, row_id: int, row: Row) -> None:
        for role, ids in self.passing.items():
            if self.passes(role, row):
                ids.add(row_id)

    def forget(self, row_id: int) -> None:
        for ids in self.passing.values():
            ids.discard(row_id)


class Plain:
    """All rules of one table over rows that are tuples of the named columns."""

    def __init__(self, rules: Rules, names: Sequence[str]) -> None:
        positions = {name: n for n, name in enumerate(names)}
        self.rules = [PlainRule(constraint, positions) for constraint in rules]
        self.columns = [Indexes() for _ in names]
        self.rows: dict[int, Row] = {}
        self.ids = BitMap()
        self.pairs: list[tuple[str, int, int]] = []
        self._changes = 0
        for rule in self.rules:
            for step in rule.cross:
                self._prepare(step)

    def _prepare(self, step: Step) -> None:
        for column in (self.columns[step.own], self.columns[step.other]):
            if step.op.is_inequality and column.tree is None:
                column.tree = PaperLTTree()
            elif not step.op.is_inequality and column.hashed is None:
                column.hashed = {}

    def load(self, rows: Iterable[Row]) -> None:
        """Fills the empty indexes in bulk, without looking for violations."""
        self.rows = dict(enumerate(rows))
        self.ids = BitMap(range(len(self.rows)))
        for at, column in enumerate(self.columns):
            column.bulk([row[at] for row in self.rows.values()])
        for rule in self.rules:
            if rule.passing:
                for row_id, row in self.rows.items():
                    rule.note(row_id, row)

    def insert(self, row_id: int, row: Row) -> list[int]:
        """The number of violations that the row opens, for each rule."""
        found = self._probe(row_id, row)
        self.rows[row_id] = row
        self.ids.add(row_id)
        for column, value in zip(self.columns, row, strict=True):
            column.add(row_id, value)
        for rule in self.rules:
            rule.note(row_id, row)
        return found

    def delete(self, row_id: int) -> list[int]:
        """The number of violations that end with the row, for each rule."""
        row = self.rows.pop(row_id)
        self.ids.discard(row_id)
        for column, value in zip(self.columns, row, strict=True):
            column.remove(row_id, value)
        for rule in self.rules:
            rule.forget(row_id)
        return self._probe(row_id, row)

    def _probe(self, row_id: int, row: Row) -> list[int]:
        if self._changes % REPLAN_EVERY == 0:
            for rule in self.rules:
                rule.plan(self.columns)
        self._changes += 1
        smaller: dict[tuple[int, Any], BitMap] = {}
        return [self._probe_rule(rule, row_id, row, smaller) for rule in self.rules]

    def _probe_rule(self, rule: PlainRule, row_id: int, row: Row, smaller: dict[tuple[int, Any], BitMap]) -> int:
        if rule.constraint.is_single:
            return int(rule.passes("t", row))
        both = self._refine(None, rule.shared, row, smaller)
        if both is not None and not both:
            return 0
        found = 0
        for role, steps in rule.schedules:
            if rule.passes(role, row):
                partners = self._refine(self._start(rule, role, both), steps, row, smaller)
                partners = self.ids if partners is None else partners
                found += len(partners)
                if partners and rule.constraint.emit is Emit.PAIRS:
                    self._list(rule.constraint, role, row_id, partners)
        return found

    def _list(self, constraint: DenialConstraint, role: str, row_id: int, partners: BitMap) -> None:
        """The pairs as (rule, t, u); a symmetric one with the smaller id first."""
        for other in partners:
            t, u = (row_id, other) if role == "t" else (other, row_id)
            if constraint.is_symmetric and u < t:
                t, u = u, t
            self.pairs.append((constraint.id, t, u))

    def _start(self, rule: PlainRule, role: str, both: BitMap | None) -> BitMap | None:
        passing = rule.passing.get("u" if role == "t" else "t")
        if passing is None:
            return both
        return passing if both is None else both & passing

    def _refine(
        self, ids: BitMap | None, steps: list[Step], row: Row, smaller: dict[tuple[int, Any], BitMap]
    ) -> BitMap | None:
        """The ids that also satisfy the steps; None stands for all rows, so that nothing is copied in vain."""
        for step in steps:
            value = row[step.own]
            if value is None:
                return BitMap()
            column = self.columns[step.other]
            if step.op is Operator.EQ:
                operand = column.equal(value)
                if operand is None:
                    return BitMap()
                ids = operand if ids is None else ids & operand
            elif step.op is Operator.NE:
                ids = self._without(ids, column.nulls, column.equal(value))
            else:
                ids = self._compare(ids, step, value, smaller)
            if not ids:
                break
        return ids

    def _compare(
        self, ids: BitMap | None, step: Step, value: Any, smaller: dict[tuple[int, Any], BitMap]
    ) -> BitMap | None:
        """One inequality. The operand "smaller than" does not depend on the rule and is built once for a row."""
        column = self.columns[step.other]
        tree = column.tree
        assert tree is not None
        below = smaller.get((step.other, value))
        if below is None:
            below = smaller[step.other, value] = tree.smaller(value)
        if step.op is Operator.GT:
            return below if ids is None else ids & below
        if step.op is Operator.GE:
            operand = below | tree.equal(value)
            return operand if ids is None else ids & operand
        equal = tree.equal(value) if step.op is Operator.LT else None
        return self._without(ids, column.nulls, below, equal)

    def _without(self, ids: BitMap | None, *operands: BitMap | None) -> BitMap:
        ids = self.ids if ids is None else ids
        for operand in operands:
            if operand:
                ids = ids - operand
        return ids


def _step(condition: object, positions: dict[str, int]) -> Step:
    assert isinstance(condition, Predicate), "the baseline takes plain predicates alone"
    t, u = condition.left, condition.right
    assert isinstance(t, Column)
    assert isinstance(u, Column)
    return Step(positions[t.name], condition.op, positions[u.name])


def _rank(step: Step, columns: Sequence[Indexes]) -> tuple[int, int]:
    """= before != before inequalities, same-column before cross-column; = by falling cardinality, others by rising."""
    kind = 0 if step.op is Operator.EQ else 2 if step.op is Operator.NE else 4
    cardinality = columns[step.other].cardinality
    return kind + (step.own != step.other), -cardinality if step.op is Operator.EQ else cardinality

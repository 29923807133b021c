"""The indexes and a plain dict are driven by the same random steps; every invariant is checked after each."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import chain
from operator import eq, gt
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyroaring import BitMap

from benchmarks.paper_lt_tree import PaperLTTree
from weever_stream.engine.domain import Domain
from weever_stream.engine.frontier import Frontier
from weever_stream.engine.hash_index import HashIndex
from weever_stream.engine.lt_tree import LTTree
from weever_stream.engine.probe import Probe
from weever_stream.engine.slots import Slots
from weever_stream.engine.table import CellColumn, Table
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Operator, Predicate

BIG = 2**53
NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(BIG - 2, BIG + 3),
    st.sampled_from([float(BIG), float(BIG + 2), 0.1, -0.0, 0.5, Decimal("0.1"), Decimal(BIG + 1), Decimal("0.5")]),
)
STRINGS = st.text(alphabet="ab\u00e9\uffff\U0001f600", max_size=2)
FEW = st.integers(0, 3)
MANY = st.integers(-(10**6), 10**6)
IDS = st.integers(0, 300)


class IndexMachine(RuleBasedStateMachine):
    """Inserts, deletes and asks; `make` builds the index under test."""

    make: Callable[[int], Any]

    @initialize(data=st.data(), values=st.sampled_from([NUMBERS, STRINGS, FEW, MANY]))
    def start(self, data: st.DataObject, values: st.SearchStrategy[Any]) -> None:
        self.values = values
        self.index = type(self).make(data.draw(st.integers(1, 4)))
        self.model: dict[int, Any] = {}

    def value(self, data: st.DataObject) -> Any:
        return data.draw(st.one_of(self.values, self.values, st.none()))

    @rule(data=st.data(), id_=IDS)
    def insert(self, data: st.DataObject, id_: int) -> None:
        if id_ not in self.model:
            self.model[id_] = self.value(data)
            self.index.insert(id_, self.model[id_])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.model)))
        self.index.delete(id_, self.model.pop(id_))

    @rule(data=st.data(), ids=st.lists(IDS, unique=True, max_size=40))
    def insert_many(self, data: st.DataObject, ids: list[int]) -> None:
        fresh = {id_: self.value(data) for id_ in ids if id_ not in self.model}
        self.bulk("insert", fresh)
        self.model |= fresh

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete_many(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True))
        self.bulk("delete", {id_: self.model.pop(id_) for id_ in ids})

    def bulk(self, what: str, items: dict[int, Any]) -> None:
        many = getattr(self.index, f"{what}_many", None)
        if many is not None:
            many(list(items), list(items.values()))
            return
        for id_, value in items.items():
            getattr(self.index, what)(id_, value)

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        value = data.draw(self.values)
        assert self.index.equal(value) == self.where(lambda held: held == value)
        if hasattr(self.index, "smaller"):
            self.ask_smaller(value)

    def ask_smaller(self, value: Any) -> None:
        assert self.index.smaller(value) == self.where(lambda held: held < value)
        assert self.index.smaller_or_equal(value) == self.where(lambda held: held <= value)
        self.index.smaller(value).add(999)  # the caller owns the sets: the tree must not notice
        self.index.equal(value).add(999)

    def where(self, holds: Callable[[Any], bool]) -> BitMap:
        return BitMap([id_ for id_, held in self.model.items() if held is not None and holds(held)])

    @invariant()
    def sound(self) -> None:
        if not hasattr(self, "index"):
            return
        self.index.check()
        assert self.index.ids == self.where(lambda _: True)
        assert self.index.nulls == BitMap(self.model) - self.index.ids
        if hasattr(self.index, "__len__"):
            assert len(self.index) == len({held for held in self.model.values() if held is not None})


class LTTreeMachine(IndexMachine):
    make = staticmethod(lambda load: LTTree(load=load))

    @rule(data=st.data())
    def sweep(self, data: st.DataObject) -> None:
        asked = sorted(data.draw(st.lists(self.values, max_size=8)))
        for value, (smaller, equal) in zip(asked, self.index.sweep(asked), strict=True):
            assert smaller == self.where(partial(gt, value))
            assert equal == self.where(partial(eq, value))

    @rule(data=st.data())
    def build_anew(self, data: st.DataObject) -> None:
        self.index = LTTree(self.model.items(), load=data.draw(st.integers(1, 4)))


class Coded:
    """A hash index of values: it holds their codes."""

    def __init__(self) -> None:
        self.index, self.domain = HashIndex(), Domain()

    def insert_many(self, ids: list[int], values: list[Any]) -> None:
        self.index.insert(np.array(ids, dtype=np.int64), self.domain.encode(values))

    def delete_many(self, ids: list[int], values: list[Any]) -> None:
        self.index.delete(np.array(ids, dtype=np.int64), self.domain.encode(values))

    def insert(self, id_: int, value: Any) -> None:
        self.insert_many([id_], [value])

    def delete(self, id_: int, value: Any) -> None:
        self.delete_many([id_], [value])

    def equal(self, value: Any) -> BitMap:
        return self.index.equal(int(self.domain.encode([value])[0]))

    def check(self) -> None:
        self.index.check()
        self.domain.check()

    ids = property(lambda self: self.index.ids)
    nulls = property(lambda self: self.index.nulls)

    def __len__(self) -> int:
        return len(self.index)


class HashIndexMachine(IndexMachine):
    make = staticmethod(lambda _load: Coded())


class SlotsMachine(RuleBasedStateMachine):
    """Rows join and leave partitions; a dict from row to partition knows where each must stand."""

    @initialize()
    def start(self) -> None:
        self.slots = Slots(idle=0)
        column = CellColumn(Domain())
        column.codes = np.arange(64, dtype=np.int32) * 3
        self.slots.keep("c", column)
        self.slots.reserve(64, 8)
        self.model: dict[int, int] = {}

    @rule(rows=st.dictionaries(st.integers(0, 63), st.integers(0, 7), min_size=1, max_size=40))
    def add(self, rows: dict[int, int]) -> None:
        fresh = {rid: pid for rid, pid in rows.items() if rid not in self.model}
        if fresh:
            self.slots.add(*self.sorted(fresh))
        self.model |= fresh

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        rids = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, unique=True))
        self.slots.remove(*self.sorted({rid: self.model.pop(rid) for rid in rids}))

    def sorted(self, rows: dict[int, int]) -> tuple[Any, Any, Any]:
        """Row ids by partition, the partitions, and how many rows each gets."""
        rids = sorted(rows, key=rows.__getitem__)
        pids, sizes = np.unique(list(rows.values()), return_counts=True)
        return np.array(rids), pids, sizes

    @invariant()
    def sound(self) -> None:
        if not hasattr(self, "slots"):
            return
        self.slots.check()
        at, slots = self.slots.members(np.arange(8))
        rids = self.slots.rows(slots)
        assert dict(zip(rids.tolist(), at.tolist(), strict=True)) == self.model
        assert self.slots.lane("c")[slots].tolist() == (rids * 3).tolist()
        assert [len(self.slots.of(pid)) for pid in range(8)] == self.slots.count[:8].tolist()


TestSlots = SlotsMachine.TestCase
TestSlots.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)

POINT = st.tuples(*[st.sampled_from([None, -1.0, 0.0, 1.5, 2, 3, 2**53, 2**53 + 1, float("inf"), float("-inf")])] * 2)
OPERATORS = st.sampled_from([Operator.LT, Operator.LE, Operator.GT, Operator.GE])


@settings(max_examples=500, deadline=None)
@given(st.lists(st.lists(POINT, max_size=8), max_size=4), st.lists(POINT, min_size=1, max_size=8), OPERATORS, OPERATORS)
def test_a_frontier_rules_out_nothing_that_holds(
    added: list[list[Any]], asked: list[Any], first: Operator, second: Operator
) -> None:
    """And where all keys are exact it rules out everything else."""
    table = Table(["a", "b"], [DenialConstraint("r", (on("a", first), on("b", second)))])
    frontier = Frontier(table, Probe.of(on("a", first), "t"), Probe.of(on("b", second), "t"))
    points = [*chain.from_iterable(added), *asked]
    rids, _ = table.allocate(list(range(len(points))))
    table.write(rids, table.encode({"a": [a for a, _ in points], "b": [b for _, b in points]}))
    start = 0
    for batch in added:
        frontier.add(rids[start : start + len(batch)])
        start += len(batch)
    held = points[:start]
    wanted = [any(first.holds(a, x) and second.holds(b, y) for x, y in held) for a, b in asked]
    found = frontier.may_match(rids[start:]).tolist()
    assert all(says for says, holds in zip(found, wanted, strict=True) if holds)
    if table.domains["a"].exact and table.domains["b"].exact and all(None not in point for point in asked):
        assert found == wanted


def on(name: str, op: Operator) -> Predicate:
    return Predicate.of(Column("t", name), op, Column("u", name))


class PaperLTTreeMachine(IndexMachine):
    make = staticmethod(lambda _load: PaperLTTree())


@pytest.mark.parametrize("machine", [LTTreeMachine, HashIndexMachine, PaperLTTreeMachine])
def test_index_agrees_with_a_dict(machine: type[IndexMachine]) -> None:
    relaxed = settings(max_examples=150, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=relaxed)

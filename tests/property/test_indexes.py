"""The indexes and a plain dict are driven by the same random steps; every invariant is checked after each."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from operator import eq, gt
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
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
from weever_stream.engine.hash_index import HashIndex
from weever_stream.engine.lt_tree import LTTree

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


class HashIndexMachine(IndexMachine):
    make = staticmethod(lambda _load: HashIndex())


class PaperLTTreeMachine(IndexMachine):
    make = staticmethod(lambda _load: PaperLTTree())


@pytest.mark.parametrize("machine", [LTTreeMachine, HashIndexMachine, PaperLTTreeMachine])
def test_index_agrees_with_a_dict(machine: type[IndexMachine]) -> None:
    relaxed = settings(max_examples=300, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=relaxed)

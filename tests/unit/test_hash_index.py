"""HashIndex: refusals and what is left behind."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from weever_stream.engine.hash_index import HashIndex
from weever_stream.model.errors import InvariantError


def test_insert_and_delete_leave_nothing_behind() -> None:
    index = HashIndex()
    index.insert(1, "a")
    index.insert_many([2, 3, 4], ["a", "b", None])
    assert (index.equal("a"), index.nulls, len(index)) == (BitMap([1, 2]), BitMap([4]), 2)
    index.delete_many([1, 3, 4], ["a", "b", None])
    index.delete(2, "a")
    index.check()
    assert (index._sets, index.ids, index.nulls) == ({}, BitMap(), BitMap())


@pytest.mark.parametrize(("id_", "value"), [(9, "a"), (0, "b"), (0, "z"), (0, None), (2, "a")])
def test_deleting_what_is_not_held_is_refused_and_changes_nothing(id_: int, value: str | None) -> None:
    index = HashIndex([(0, "a"), (1, "b"), (2, None)])
    with pytest.raises(InvariantError):
        index.delete(id_, value)
    with pytest.raises(InvariantError):
        index.delete_many([1, id_], ["b", value])
    index.check()
    assert (index.ids, index.nulls) == (BitMap([0, 1]), BitMap([2]))


def test_inserting_an_id_twice_is_refused() -> None:
    index = HashIndex([(0, "a"), (1, None)])
    for id_ in (0, 1):
        with pytest.raises(InvariantError):
            index.insert(id_, "b")
        with pytest.raises(InvariantError):
            index.insert_many([id_], ["b"])
    index.check()


def test_deleting_one_id_twice_in_a_batch_is_refused() -> None:
    index = HashIndex([(0, "a"), (1, "a")])
    with pytest.raises(InvariantError):
        index.delete_many([0, 0], ["a", "a"])
    assert index.ids == BitMap([0, 1])


def test_check_finds_damage() -> None:
    index = HashIndex([(0, "a")])
    index._sets["b"] = BitMap([0])
    with pytest.raises(InvariantError):
        index.check()

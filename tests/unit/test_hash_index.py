"""HashIndex: refusals and what is left behind."""

from __future__ import annotations

import numpy as np
import pytest
from pyroaring import BitMap

from weever_stream.engine.domain import NULL
from weever_stream.engine.hash_index import HashIndex
from weever_stream.model.errors import InvariantError


def index_of(*codes: int) -> HashIndex:
    """Ids from 0, each with its code."""
    index = HashIndex()
    index.insert(np.arange(len(codes)), np.array(codes))
    return index


def test_insert_and_delete_leave_nothing_behind() -> None:
    index = index_of(5, 5, 6, NULL)
    assert (index.equal(5), index.nulls, len(index)) == (BitMap([0, 1]), BitMap([3]), 2)
    index.delete(np.array([0, 2, 3]), np.array([5, 6, NULL]))
    index.delete(np.array([1]), np.array([5]))
    index.check()
    assert (index._sets, index.ids, index.nulls) == ({}, BitMap(), BitMap())


@pytest.mark.parametrize(("id_", "code"), [(9, 5), (0, 6), (0, 7), (0, NULL), (2, 5), (1, 6)])
def test_deleting_what_is_not_held_is_refused_and_changes_nothing(id_: int, code: int) -> None:
    index = index_of(5, 6, NULL)
    with pytest.raises(InvariantError):
        index.delete(np.array([1, id_]), np.array([6, code]))
    index.check()
    assert (index.ids, index.nulls) == (BitMap([0, 1]), BitMap([2]))


@pytest.mark.parametrize("ids", [[0], [1], [2, 2], [2, 0]])
def test_inserting_an_id_twice_is_refused(ids: list[int]) -> None:
    index = index_of(5, NULL)
    with pytest.raises(InvariantError):
        index.insert(np.array(ids), np.full(len(ids), 6))
    index.check()
    assert len(index) == 1


def test_check_finds_damage() -> None:
    index = index_of(5)
    index._sets[6] = BitMap([0])
    with pytest.raises(InvariantError):
        index.check()

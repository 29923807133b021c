"""LTTree: the cases that random steps rarely meet, or that deserve a name."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from pyroaring import BitMap

from weever_stream.engine.lt_tree import LTTree
from weever_stream.model.errors import InvariantError


def test_empty() -> None:
    tree = LTTree()
    assert tree.smaller(1) == tree.smaller_or_equal(1) == tree.equal(1) == BitMap()
    assert [tuple(map(list, pair)) for pair in tree.sweep([1, 2])] == [([], []), ([], [])]
    tree.check()


def test_numbers_compare_by_exact_value() -> None:
    big = 2**53
    tree = LTTree([(0, float(big)), (1, big + 1), (2, Decimal(big + 1)), (3, big), (4, Decimal("0.1")), (5, 0.1)])
    assert tree.equal(big) == BitMap([0, 3])
    assert tree.smaller(big + 1) == BitMap([0, 3, 4, 5])
    assert tree.equal(0.1) == BitMap([5])
    assert tree.smaller(0.1) == BitMap([4])


def test_a_value_with_many_ids_becomes_a_crowd_and_leaves() -> None:
    tree = LTTree(load=4)
    tree.insert_many(range(100), [7] * 100)
    tree.insert_many(range(100, 110), list(range(10)))
    tree.check()
    assert len(tree.equal(7)) == 101
    assert len(tree.smaller(8)) == 108
    tree.delete_many(range(100), [7] * 100)
    tree.check()
    assert tree.equal(7) == BitMap([107])


def test_value_around_a_crowd_opens_a_block() -> None:
    tree = LTTree([(i, 1) for i in range(50)], load=2)
    tree.insert(50, 2)
    tree.insert(51, 0)
    tree.check()
    assert tree.smaller(2) == BitMap(range(50)) | BitMap([51])


@pytest.mark.parametrize("step", ["one", "many"])
def test_deletes_leave_nothing_behind(step: str) -> None:
    tree = LTTree(((i, i % 37) for i in range(500)), load=3)
    ids = random.Random(0).sample(range(500), 500)
    if step == "many":
        tree.delete_many(ids, [i % 37 for i in ids])
    for id_ in ids if step == "one" else ():
        tree.delete(id_, id_ % 37)
    tree.check()
    assert (tree._blocks, tree._tops, tree._below) == ([], [], [BitMap()])


def test_mostly_empty_blocks_are_packed_again() -> None:
    tree = LTTree(((i, i) for i in range(4000)), load=8)
    gone = [i for i in range(4000) if i % 40]
    for start in range(0, len(gone), 50):
        tree.delete_many(gone[start : start + 50], gone[start : start + 50])
    tree.check()
    assert len(tree._blocks) <= 6 + 6 * 100 // 8
    assert tree.ids == BitMap(range(0, 4000, 40))


def test_blocks_grow_with_the_tree() -> None:
    tree = LTTree()
    for i in range(8000):
        tree.insert(i, (i * 7919) % 8000)
    tree.check()
    assert tree._load > 64
    assert len(tree._blocks) < 200


@pytest.mark.parametrize(("id_", "value"), [(9, 1), (0, 2), (0, 3), (0, None), (2, 1), (0, 99)])
def test_deleting_what_is_not_held_is_refused(id_: int, value: Any) -> None:
    items = [(0, 1), (1, 2), (2, None), (3, 4)]
    with pytest.raises(InvariantError):
        LTTree(items).delete(id_, value)
    with pytest.raises(InvariantError):
        LTTree([*items, *((i, 5) for i in range(10, 20))]).delete_many([id_, *range(10, 20)], [value, *[5] * 10])


def test_crowd_refuses_a_foreign_id() -> None:
    tree = LTTree([(i, 1) for i in range(50)] + [(50, 0), (51, 2)], load=4)
    for id_ in (50, 51, 52):
        with pytest.raises(InvariantError):
            tree.delete(id_, 1)


def test_inserting_an_id_twice_is_refused_and_changes_nothing() -> None:
    tree = LTTree([(0, 1), (1, None)])
    for id_ in (0, 1):
        with pytest.raises(InvariantError):
            tree.insert(id_, 5)
        with pytest.raises(InvariantError):
            tree.insert_many([7, id_], [1, 5])
    with pytest.raises(InvariantError):
        tree.insert_many([7, 7], [1, 1])
    tree.check()
    assert (tree.ids, tree.nulls) == (BitMap([0]), BitMap([1]))


def test_check_finds_damage() -> None:
    tree = LTTree(((i, i) for i in range(100)), load=4)
    tree._below[3].add(1000)
    with pytest.raises(InvariantError, match="running union"):
        tree.check()


def test_a_tree_that_outgrows_its_blocks_within_a_batch() -> None:
    rng = random.Random(3)
    values = [rng.randrange(100) for _ in range(20_000)]
    tree = LTTree(enumerate(values[:1_000]))
    for start in range(1_000, 20_000, 700):
        batch = range(start, min(start + 700, 20_000))
        tree.insert_many(batch, [values[id_] for id_ in batch])
    tree.check()
    assert len(tree.smaller(50)) == sum(value < 50 for value in values)

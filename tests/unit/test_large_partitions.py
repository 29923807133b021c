"""Partitions that grow and shrink beyond the sizes that property tests reach."""

from __future__ import annotations

from typing import Any

import pytest

from weever_stream import Monitor, Rules

HEAD = "version: 1\ndataset: d\nkey: [id]\nrules:\n  - "


def monitor(rule: str) -> Monitor:
    return Monitor(Rules.loads(f"{HEAD}{{id: r, {rule}}}"))


def inserts(start: int, count: int, **row: Any) -> list[dict[str, Any]]:
    return [{"op": "insert", "after": {"id": start + n} | row} for n in range(count)]


def deletes(start: int, stop: int) -> list[dict[str, Any]]:
    return [{"op": "delete", "key": {"id": n}} for n in range(start, stop)]


def test_rows_that_join_while_the_slots_are_packed_overwrite_nobody() -> None:
    found = monitor("unique: [g], emit: counts")
    found.apply(inserts(0, 2_000, g=0))
    found.apply(deletes(10, 2_000))
    found.apply(inserts(3_000, 40, g=0) + inserts(4_000, 30, g=1))
    assert found.counts() == {"r": 50 * 49 // 2 + 30 * 29 // 2}
    found.check()


@pytest.mark.parametrize("emit", ["counts", "groups", "rows", "pairs"])
def test_a_pair_of_one_batch_counts_once_though_its_rows_ask_partitions_of_different_size(emit: str) -> None:
    """One row looks in a partition that is searched through indexes, the other in one that is compared."""
    found = monitor(f"deny: \"t.g = t'.h and t.h = t'.g and t.s != t'.s\", emit: {emit}")
    found.apply(inserts(0, 600, g=1, h=2, s="y"))
    found.apply(inserts(1_000, 3, g=2, h=1, s="x") + inserts(2_000, 2, g=1, h=2, s="y"))
    assert found.counts() == {"r": 602 * 3}
    found.check()
    found.apply(deletes(1_000, 1_003))
    assert found.counts() == {"r": 0}


@pytest.mark.parametrize("deny", ["t.g = t'.g", "t.g = t'.g and t.n < t'.n", "t.g = t'.g and t.n <= t'.n"])
def test_rows_are_told_when_their_first_partner_comes_and_their_last_one_goes(deny: str) -> None:
    found = monitor(f'deny: "{deny}", emit: rows')
    size = 5_000
    rows = [{"op": "insert", "after": {"id": n, "g": 0, "n": n % 2}} for n in range(size)]
    assert len(found.apply(rows)) == size
    found.check()
    ended = found.apply(deletes(1, size))
    assert {event["reason"] for event in ended} == {"deleted"}
    assert len(ended) == size
    assert found.counts() == {"r": 0}


def test_the_bounds_of_a_partition_are_made_anew_after_an_outlier_has_left() -> None:
    """Its frontier would let every row pass to a search that finds nothing."""
    found = monitor("deny: \"t.g = t'.g and t.n > t'.n and t.m < t'.m\"")
    found.apply([{"op": "insert", "after": {"id": n, "g": 0, "n": n, "m": n}} for n in range(6_000)])
    assert len(found.apply(inserts(9_000, 1, g=0, n=-1, m=10_000))) == 6_000
    found.apply(deletes(9_000, 9_001))
    for start in range(6_000, 6_300, 100):
        rows = [{"op": "insert", "after": {"id": n, "g": 0, "n": n, "m": n}} for n in range(start, start + 100)]
        assert found.apply(rows) == []
    (partition,) = found.shard.routes[0].t_side.partitions.values()
    assert partition.left == 0
    found.check()

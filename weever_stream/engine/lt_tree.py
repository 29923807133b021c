"""The LT-tree: a sorted index that answers "which ids have a smaller value" with one copy and a few bits.

The paper keeps the ids of a left subtree in each node of a red-black tree. This one is flat: sorted values stand in
blocks, and before each block stands the running union of all ids in earlier blocks (its LT-set):

    below[0]   block 0   below[1]   block 1   below[2]   ...   below[-1], which is the set of all ids

    smaller(v) = below[b] | ids before v in block b,    where b is the first block whose greatest value is not below v

A value never spans two blocks. A block is a `Run` of many values, or a `Crowd`: one value with many ids. Costs below
count n ids in blocks of about sqrt(n) ids, so a change sets a bit in at most O(sqrt(n)) running unions, and a batch
changes each of them once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any, NoReturn

from pyroaring import BitMap

from weever_stream.engine.lt_block import Block, Run, cut
from weever_stream.model.errors import InvariantError

_LEAST_LOAD = 64  # blocks smaller than this save no time
_FEW = 4  # batches up to this size are single steps
_EMPTY = BitMap()  # never changed: `x | _EMPTY` is a copy several times faster than `x.copy()`


class LTTree:
    """Sorted index from values to ids. Values are anything Python orders totally; None goes into `nulls`.

    An id is held at most once. Sets returned by `smaller`, `smaller_or_equal` and `equal` belong to the caller;
    `ids` and `nulls` belong to the tree and are read-only.

    >>> tree = LTTree([(0, 50), (1, 25), (2, 10), (3, 25), (4, None)])
    >>> tree.smaller(50), tree.equal(25), tree.nulls
    (BitMap([1, 2, 3]), BitMap([1, 3]), BitMap([4]))
    """

    __slots__ = ("_below", "_blocks", "_fixed_load", "_load", "_outgrown", "_tops", "nulls")

    def __init__(self, items: Iterable[tuple[int, Any]] = (), *, load: int | None = None) -> None:
        """Build from (id, value) pairs: one sort and one pass, O(n log n). `load` fixes the size of blocks."""
        self._fixed_load = load
        self.nulls = BitMap()
        self._build([], array("I"))
        pairs = list(items)
        if pairs:
            ids, values = zip(*pairs, strict=True)
            self.insert_many(ids, values)

    def __repr__(self) -> str:
        return f"LTTree({len(self.ids)} ids in {len(self._blocks)} blocks, {len(self.nulls)} nulls)"

    @property
    def ids(self) -> BitMap:
        """All ids that have a value: a shared, read-only set. O(1)."""
        return self._below[-1]

    # -- questions ----------------------------------------------------------------------------------------------

    def smaller(self, value: Any) -> BitMap:
        """Ids whose value is smaller; the caller owns the set. O(log n) compares, one copy, O(sqrt(n)) bits.

        >>> LTTree(enumerate("bca")).smaller("c")
        BitMap([0, 2])
        """
        b = bisect_left(self._tops, value)
        result = self._below[b] | _EMPTY
        if b < len(self._blocks):
            block = self._blocks[b]
            if place := bisect_left(block.values, value):
                result.update(block.ids[:place])
        return result

    def smaller_or_equal(self, value: Any) -> BitMap:
        """Ids whose value is smaller or equal; the caller owns the set. Costs as `smaller`.

        >>> LTTree(enumerate("bca")).smaller_or_equal("b")
        BitMap([0, 2])
        """
        b = bisect_right(self._tops, value)
        result = self._below[b] | _EMPTY
        if b < len(self._blocks):
            block = self._blocks[b]
            if place := bisect_right(block.values, value):
                result.update(block.ids[:place])
        return result

    def equal(self, value: Any) -> BitMap:
        """Ids with this value; the caller owns the set. O(log n + size of the answer).

        >>> LTTree(enumerate("bcb")).equal("b")
        BitMap([0, 2])
        """
        b = bisect_left(self._tops, value)
        return self._blocks[b].equal(value) | _EMPTY if b < len(self._blocks) else BitMap()

    def sweep(self, values: Iterable[Any]) -> Iterator[tuple[BitMap, BitMap]]:
        """For ascending values: (ids smaller, ids equal), each operand grown out of the last one.

        Both sets belong to the tree and are valid until the next step: read them, do not change or keep them. The
        tree must not change meanwhile. A query in the block of the last one costs only the ids in between.

        >>> [(len(smaller), list(equal)) for smaller, equal in LTTree(enumerate("bcb")).sweep("abc")]
        [(0, []), (0, [0, 2]), (2, [1])]
        """
        tops, blocks = self._tops, self._blocks
        at, done, smaller = -1, 0, BitMap()
        for value in values:
            b = bisect_left(tops, value, max(at, 0))
            if b == len(blocks):
                yield self.ids, BitMap()
                continue
            if b != at:
                at, done, smaller = b, 0, self._below[b] | _EMPTY
            block = blocks[b]
            place = bisect_left(block.values, value, done)
            if place > done:
                smaller.update(block.ids[done:place])
                done = place
            yield smaller, block.equal(value, place)

    # -- changes ------------------------------------------------------------------------------------------------

    def insert(self, id_: int, value: Any) -> None:
        """Add one id that is not held yet. O(log n) compares, a bit set in each later union."""
        if id_ in self.ids or id_ in self.nulls:
            self._broken(f"id {id_} is already held")
        if value is None:
            self.nulls.add(id_)
            return
        b = self._block_for(value)
        self._blocks[b].put(id_, value)
        for union in self._below[b + 1 :]:
            union.add(id_)
        if self._split(b):
            self._review()

    def delete(self, id_: int, value: Any) -> None:
        """Remove one id held with this value; InvariantError if it is not. Costs as `insert`."""
        if value is None:
            if id_ not in self.nulls:
                self._broken(f"id {id_} is not held as NULL")
            self.nulls.remove(id_)
            return
        b = self._take(id_, value)
        for union in self._below[b + 1 :]:
            union.remove(id_)
        self._tidy(b)
        self._review()

    def insert_many(self, ids: Sequence[int], values: Sequence[Any]) -> None:
        """Add a batch of ids that are not held yet: one sort, one pass, each running union changed once.

        A batch as large as the tree rebuilds it. If an id is held already nothing is changed.

        >>> tree = LTTree()
        >>> tree.insert_many([7, 8, 9], [2, None, 1])
        >>> tree.smaller(2), tree.nulls
        (BitMap([9]), BitMap([8]))
        """
        fresh = BitMap(ids)
        if len(fresh) != len(ids) or not (fresh.isdisjoint(self.ids) and fresh.isdisjoint(self.nulls)):
            self._broken("a batch inserts an id that is already held, or one id twice")
        order, nulls = _ascending(values)
        self.nulls.update([ids[at] for at in nulls])
        if len(order) <= _FEW:
            for at in order:
                self.insert(ids[at], values[at])
        elif len(order) >= len(self.ids):
            self._build_with([values[at] for at in order], array("I", [ids[at] for at in order]))
        else:
            self._insert_sorted([ids[at] for at in order], [values[at] for at in order])

    def delete_many(self, ids: Sequence[int], values: Sequence[Any]) -> None:
        """Remove a batch of ids, each held with its value; InvariantError if one is not. Costs as `insert_many`.

        An id that is not held at all is found before anything is changed.
        """
        order, nulls = _ascending(values)
        gone_nulls, gone = BitMap([ids[at] for at in nulls]), BitMap([ids[at] for at in order])
        if len(gone_nulls) + len(gone) != len(ids) or not (gone_nulls <= self.nulls and gone <= self.ids):
            self._broken("a batch deletes an id that is not held, or one id twice")
        self.nulls -= gone_nulls
        if len(order) <= _FEW:
            for at in order:
                self.delete(ids[at], values[at])
        else:
            self._delete_sorted([ids[at] for at in order], [values[at] for at in order])

    # -- keeping shape ------------------------------------------------------------------------------------------

    def _insert_sorted(self, ids: list[int], values: list[Any]) -> None:
        """One pass over the ids, one over the running unions after the first changed block."""
        changed: dict[int, list[int]] = {}
        b = 0
        for id_, value in zip(ids, values, strict=True):
            b = self._block_for(value, b)
            self._blocks[b].put(id_, value)
            changed.setdefault(b, []).append(id_)
        seen = BitMap()
        for b in range(min(changed), len(self._blocks)):
            if b in changed:
                seen.update(changed[b])
            self._below[b + 1] |= seen
        split = [self._split(b) for b in sorted(changed, reverse=True)]
        if any(split):
            self._review()

    def _delete_sorted(self, ids: list[int], values: list[Any]) -> None:
        """The same for a delete, block by block. They are tidied up from the back, so that places stay true."""
        changed: dict[int, tuple[list[int], list[Any]]] = {}
        b = 0
        for id_, value in zip(ids, values, strict=True):
            b = bisect_left(self._tops, value, b)
            gone, theirs = changed.setdefault(b, ([], []))
            gone.append(id_)
            theirs.append(value)
        for b, (gone, theirs) in changed.items():
            if b == len(self._blocks) or not self._blocks[b].take_all(gone, theirs):
                self._broken(f"one of the ids {gone[:20]} is not held with its value")
        seen = BitMap()
        for b in range(min(changed), len(self._blocks)):
            if b in changed:
                seen.update(changed[b][0])
            self._below[b + 1] -= seen
        for b in sorted(changed, reverse=True):
            self._tidy(b)
        self._review()

    def _block_for(self, value: Any, start: int = 0) -> int:
        """The block that takes this value: the run around it, or the one before, or a new one between crowds."""
        b = bisect_left(self._tops, value, start)
        if b < len(self._blocks) and self._blocks[b].accepts(value):
            return b
        if b and isinstance(self._blocks[b - 1], Run):
            self._tops[b - 1] = value
            return b - 1
        self._blocks.insert(b, Run([], array("I")))
        self._tops.insert(b, value)
        self._below.insert(b, self._below[b] | _EMPTY)
        return b

    def _take(self, id_: int, value: Any) -> int:
        """Remove an id from its block; the number of the block."""
        b = bisect_left(self._tops, value)
        if b == len(self._blocks) or not self._blocks[b].take(id_, value):
            self._broken(f"id {id_} is not held with value {value!r}")
        return b

    def _split(self, b: int) -> bool:
        """Cut a block if it became too long; was it? O(sqrt(n)), once in as many inserts."""
        block = self._blocks[b]
        if len(block.ids) <= 2 * self._load:
            return False
        self._blocks[b : b + 1] = parts = list(cut(*block.flat(), self._load))
        self._tops[b : b + 1] = [part.top for part in parts]
        self._below[b + 1 : b + 1] = _running_unions(self._below[b], parts[:-1])
        return True

    def _tidy(self, b: int) -> None:
        """After a delete: drop the block if nothing is left in it, else correct its greatest value."""
        block = self._blocks[b]
        if len(block):
            self._tops[b] = block.top
        else:
            del self._blocks[b], self._tops[b], self._below[b + 1]

    def _review(self) -> None:
        """Build anew if the tree outgrew its load or blocks are mostly empty: once in O(n) changes."""
        many = len(self._blocks) > 6 + 6 * len(self.ids) // self._load
        if many or len(self.ids) > self._outgrown:
            self._build_with([], array("I"))

    def _build_with(self, values: list[Any], ids: array[int]) -> None:
        """Build anew from what is held and more. O(n): the sort finds two sorted runs."""
        for block in self._blocks:
            held_values, held_ids = block.flat()
            values += held_values
            ids += held_ids
        order = sorted(range(len(values)), key=values.__getitem__)
        self._build([values[at] for at in order], array("I", [ids[at] for at in order]))

    def _build(self, values: list[Any], ids: array[int]) -> None:
        """Lay out sorted values and their ids in full blocks. O(n)."""
        self._load = self._fixed_load or max(_LEAST_LOAD, 2 * isqrt(len(ids)))
        self._outgrown = max(4 * len(ids), 16 * self._load)
        self._blocks: list[Block] = list(cut(values, ids, self._load))
        self._tops: list[Any] = [block.top for block in self._blocks]
        self._below: list[BitMap] = [BitMap(), *_running_unions(_EMPTY, self._blocks)]

    # -- invariants ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise InvariantError, with a dump, unless every promise of the structure holds. O(n) and slow."""
        self._require(not _EMPTY, "the shared empty set was changed")
        self._require(len(self._below) == len(self._blocks) + 1 == len(self._tops) + 1, "lists differ in length")
        self._require(self._below[0] == _EMPTY, "something is below the first block")
        self._require(self.ids.isdisjoint(self.nulls), "an id is both null and not")
        for b, block in enumerate(self._blocks):
            self._check_block(b, block)
        for b, (lower, upper) in enumerate(pairwise(self._blocks)):
            self._require(lower.top < upper.flat()[0][0], f"block {b + 1} is not above block {b}")

    def _check_block(self, b: int, block: Block) -> None:
        """Length, order, greatest value and the step from one running union to the next."""
        values, ids = block.flat()
        self._require(0 < len(values) == len(ids), f"block {b} has {len(values)} values and {len(ids)} ids")
        self._require(len(block.ids) <= 2 * self._load, f"block {b} is too long")
        self._require(all(low <= high for low, high in pairwise(values)), f"values of block {b} are out of order")
        self._require(self._tops[b] == values[-1], f"greatest value of block {b} is not {self._tops[b]!r}")
        members = BitMap(ids)
        self._require(len(members) == len(ids), f"block {b} holds an id twice")
        self._require(members.isdisjoint(self._below[b]), f"block {b} holds an id of an earlier block")
        self._require(self._below[b + 1] == self._below[b] | members, f"running union after block {b}")

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            self._broken(message)

    def _broken(self, message: str) -> NoReturn:
        shown = zip(self._tops[:20], self._blocks[:20], strict=False)
        dump = "".join(f"\n  up to {top!r:.80}: {type(block).__name__} of {len(block)}" for top, block in shown)
        raise InvariantError(f"{self!r}: {message}{dump}")


def _ascending(values: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Places of the values in ascending order, and places of the NULLs."""
    places: Iterable[int] = range(len(values))
    nulls = [at for at in places if values[at] is None] if None in values else []
    if nulls:
        places = (at for at in places if values[at] is not None)
    return sorted(places, key=values.__getitem__), nulls


def _running_unions(below: BitMap, blocks: list[Block]) -> Iterator[BitMap]:
    """The union after each of the blocks, the first of which follows on `below`."""
    for block in blocks:
        below = below | _EMPTY
        below.update(block.flat()[1])
        yield below

"""The LT-tree: a sorted index that answers "which ids have a smaller value" with a few unions.

The paper keeps the ids of a left subtree in each node of a red-black tree. This one is flat. Sorted values stand in
blocks, blocks stand in groups, and each group carries the running union of all groups before it:

    smaller(v) = ids in earlier groups | ids of each earlier block of its group | ids before v in its block

so a query is a few unions with small sets, and a change touches one block and the later groups. A value never spans
two blocks. A value with many ids (more than a block's load) is *crowned*: it is the greatest value of its block, and
its ids stand only in the block's set, not one by one. Costs below count n ids, d distinct values, blocks of `load`
ids, groups of `fan` blocks and at most 16 * fan groups (beyond that neighbours are joined and `fan` is doubled).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import ne
from typing import Any, NoReturn

from pyroaring import BitMap

from weever_stream.model.errors import InvariantError

LOAD = 128
"""Ids in a freshly built block; a block is split when it holds more than twice as many."""
FAN = 2
"""Blocks in a freshly built group; a group is split when it holds more than twice as many."""

_FEW = 4  # batches up to this size are single steps
_WIDE = 16  # groups for each block of a group before the tree is widened
_EMPTY = BitMap()  # never changed: `x | _EMPTY` is a copy several times faster than `x.copy()`

Piece = tuple[Any, list[Any], "array[int]", BitMap]
"""A block in the making: greatest value, values that stand one by one, their ids, all ids."""


class LTTree:
    """Sorted index from values to ids. Values are anything Python orders totally; None goes into `nulls`.

    An id is held at most once. Sets returned by `smaller`, `smaller_or_equal` and `equal` belong to the caller;
    `ids` and `nulls` belong to the tree and are read-only.

    >>> tree = LTTree([(0, 50), (1, 25), (2, 10), (3, 25), (4, None)])
    >>> tree.smaller(50), tree.equal(25), tree.nulls
    (BitMap([1, 2, 3]), BitMap([1, 3]), BitMap([4]))
    >>> len(tree), tree.minimum, tree.maximum
    (3, 10, 50)
    """

    __slots__ = ("_below", "_distinct", "_fan", "_groups", "_load", "_start", "_tops", "_until_review", "ids", "nulls")

    def __init__(self, items: Iterable[tuple[int, Any]] = (), *, load: int = LOAD, fan: int = FAN) -> None:
        """Build from (id, value) pairs: one sort and one pass, O(n log n)."""
        self._load, self._fan, self._start = load, fan, fan
        self._groups: list[_Group] = []
        self._tops: list[Any] = []
        self._below: list[BitMap] = []
        self._distinct, self._until_review = 0, 8 * load
        self.ids, self.nulls = BitMap(), BitMap()
        pairs = list(items)
        if pairs:
            ids, values = zip(*pairs, strict=True)
            self.insert_many(ids, values)

    def __len__(self) -> int:
        """Number of distinct values, NULL not counted. O(1)."""
        return self._distinct

    def __repr__(self) -> str:
        return f"LTTree({len(self.ids)} ids, {self._distinct} values, {len(self.nulls)} nulls)"

    @property
    def minimum(self) -> Any:
        """The smallest value, or None when there is none. O(1)."""
        if not self._groups:
            return None
        first = self._groups[0]
        return first.values[0][0] if first.values[0] else first.tops[0]

    @property
    def maximum(self) -> Any:
        """The greatest value, or None when there is none. O(1)."""
        return self._tops[-1] if self._tops else None

    # -- questions ----------------------------------------------------------------------------------------------

    def smaller(self, value: Any) -> BitMap:
        """Ids whose value is smaller; the caller owns the set. O(log d) compares, O(fan) unions with small sets.

        >>> LTTree(enumerate("bca")).smaller("c")
        BitMap([0, 2])
        """
        g = bisect_left(self._tops, value)
        if g == len(self._tops):
            return self.ids | _EMPTY
        group = self._groups[g]
        b = bisect_left(group.tops, value)
        result = self._union(g, b)
        k = bisect_left(group.values[b], value)
        if k:
            result.update(group.ids[b][:k])
        return result

    def smaller_or_equal(self, value: Any) -> BitMap:
        """Ids whose value is smaller or equal; the caller owns the set. Costs as `smaller`.

        >>> LTTree(enumerate("bca")).smaller_or_equal("b")
        BitMap([0, 2])
        """
        g = bisect_left(self._tops, value)
        if g == len(self._tops):
            return self.ids | _EMPTY
        group = self._groups[g]
        b = bisect_left(group.tops, value)
        if group.tops[b] == value:
            return self._union(g, b + 1)
        result = self._union(g, b)
        k = bisect_right(group.values[b], value)
        if k:
            result.update(group.ids[b][:k])
        return result

    def _union(self, g: int, b: int) -> BitMap:
        """A fresh set of all ids before block b of group g."""
        if not b:
            return self._below[g] | _EMPTY
        members = self._groups[g].members
        result = self._below[g] | members[0]
        for block in members[1:b]:
            result |= block
        return result

    def equal(self, value: Any) -> BitMap:
        """Ids with this value; the caller owns the set. O(log d + size of the answer).

        >>> LTTree(enumerate("bcb")).equal("b")
        BitMap([0, 2])
        """
        g = bisect_left(self._tops, value)
        if g == len(self._tops):
            return BitMap()
        group = self._groups[g]
        return group.equal(bisect_left(group.tops, value), value)

    def sweep(self, values: Iterable[Any]) -> Iterator[tuple[BitMap, BitMap]]:
        """For ascending values: (ids smaller, ids equal), each operand grown out of the last one.

        Both sets belong to the tree and are valid until the next step: read them, do not change or keep them. The
        tree must not change meanwhile. A query in the block of the last one costs only the ids in between.

        >>> [(len(smaller), list(equal)) for smaller, equal in LTTree(enumerate("bcb")).sweep("abc")]
        [(0, []), (0, [0, 2]), (2, [1])]
        """
        at_group = at_block = done = -1
        smaller = BitMap()
        for value in values:
            g = bisect_left(self._tops, value)
            if g == len(self._tops):
                yield self.ids, BitMap()
                continue
            group = self._groups[g]
            b = bisect_left(group.tops, value)
            if g != at_group:
                smaller, done = self._union(g, b), 0
            elif b != at_block:
                for block in group.members[at_block:b]:
                    smaller |= block
                done = 0
            k = bisect_left(group.values[b], value, done)
            if k > done:
                smaller.update(group.ids[b][done:k])
            at_group, at_block, done = g, b, k
            yield smaller, group.equal(b, value)

    # -- changes ------------------------------------------------------------------------------------------------

    def insert(self, id_: int, value: Any) -> None:
        """Add one id that is not held yet. O(log d) compares, O(load) moved, a bit set for each later group."""
        if id_ in self.ids or id_ in self.nulls:
            self._broken(f"id {id_} is already held")
        if value is None:
            self.nulls.add(id_)
            return
        if not self._tops or value > self._tops[-1]:
            self._reach(value)
        g = bisect_left(self._tops, value)
        group = self._groups[g]
        b = bisect_left(group.tops, value)
        self._distinct += group.put(b, id_, value)
        for below in self._below[g + 1 :]:
            below.add(id_)
        self.ids.add(id_)
        if len(group.values[b]) > 2 * self._load:
            self._split(g)
            self._widen()

    def delete(self, id_: int, value: Any) -> None:
        """Remove one id held with this value; InvariantError if it is not. Costs as `insert`."""
        if id_ not in (self.nulls if value is None else self.ids):
            self._broken(f"id {id_} is not held with value {value!r}")
        if value is None:
            self.nulls.remove(id_)
            return
        g = bisect_left(self._tops, value)
        if g == len(self._tops):
            self._broken(f"id {id_} is not held with value {value!r}")
        group = self._groups[g]
        b = bisect_left(group.tops, value)
        self._distinct -= group.take(b, id_, value)
        for below in self._below[g + 1 :]:
            below.discard(id_)
        self.ids.remove(id_)
        group.tidy(b)
        self._tidy(g)
        self._review(1)

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
        self.nulls.update([ids[i] for i in nulls])
        if not order:
            return
        run = [values[i] for i in order]
        if len(order) <= _FEW:
            for i in order:
                self.insert(ids[i], values[i])
        elif len(order) >= len(self.ids):
            self._rebuild_with(run, array("I", [ids[i] for i in order]))
        else:
            self._insert_sorted(run, array("I", [ids[i] for i in order]))

    def delete_many(self, ids: Sequence[int], values: Sequence[Any]) -> None:
        """Remove a batch of ids, each held with its value; InvariantError if one is not. Costs as `insert_many`.

        An id that is not held at all is found before anything is changed.
        """
        order, nulls = _ascending(values)
        gone_nulls = BitMap([ids[i] for i in nulls])
        gone = array("I", [ids[i] for i in order])
        gone_set = BitMap(gone)
        if len(gone_nulls) + len(gone_set) != len(ids) or not (gone_nulls <= self.nulls and gone_set <= self.ids):
            self._broken("a batch deletes an id that is not held, or one id twice")
        self.nulls -= gone_nulls
        if len(order) <= _FEW:
            for i in order:
                self.delete(ids[i], values[i])
        else:
            self._delete_sorted([values[i] for i in order], gone)
            self._review(len(order))

    # -- keeping shape ------------------------------------------------------------------------------------------

    def _insert_sorted(self, values: list[Any], ids: array[int]) -> None:
        """One pass over the groups; what went into earlier groups is added to each later union at once."""
        if not self._tops or values[-1] > self._tops[-1]:
            self._reach(values[-1])
        touched = []
        for g, start, stop in self._shares(values):
            self._distinct += self._groups[g].put_sorted(values, ids, start, stop)
            touched.append((g, ids[start:stop]))
        self.ids |= self._carry(touched, BitMap.__ior__)
        for g, _ in reversed(touched):
            self._split(g)
        self._widen()

    def _delete_sorted(self, values: list[Any], ids: array[int]) -> None:
        """The same pass for a delete. Emptied groups go at its end, from the back so that places stay true."""
        if values[-1] > self._tops[-1]:
            self._broken(f"id {ids[-1]} is not held with value {values[-1]!r}")
        touched = []
        for g, start, stop in self._shares(values):
            self._distinct -= self._groups[g].take_sorted(values, ids, start, stop)
            touched.append((g, ids[start:stop]))
        self.ids -= self._carry(touched, BitMap.__isub__)
        for g, _ in reversed(touched):
            self._tidy(g)

    def _shares(self, values: list[Any]) -> Iterator[tuple[int, int, int]]:
        """Which stretch of the sorted values falls into which group: (group, start, stop)."""
        g = start = 0
        while start < len(values):
            g = bisect_left(self._tops, values[start], g)
            stop = bisect_right(values, self._tops[g], start)
            yield g, start, stop
            start = stop

    def _carry(self, touched: list[tuple[int, array[int]]], change: Callable[[BitMap, BitMap], BitMap]) -> BitMap:
        """Bring what changed in each group into the running unions after it; all ids that changed."""
        seen = BitMap()
        ends = [g for g, _ in touched[1:]] + [len(self._groups) - 1]
        for (g, ids), end in zip(touched, ends, strict=True):
            seen.update(ids)
            for later in range(g + 1, end + 1):
                self._below[later] = change(self._below[later], seen)
        return seen

    def _reach(self, value: Any) -> None:
        """Make the last block take a value greater than all others: raise its top, or open a block after a crown."""
        if not self._groups:
            self._groups, self._tops, self._below = [_Group()], [value], [BitMap()]
        group = self._groups[-1]
        if not group.tops or group.crowned(-1):
            group.append((value, [], array("I"), BitMap()))
            self._split_group(len(self._groups) - 1)
        self._groups[-1].tops[-1] = self._tops[-1] = value

    def _tidy(self, g: int) -> None:
        """After a delete: drop the group if nothing is left in it, else correct its top. O(1), or O(groups)."""
        group = self._groups[g]
        if group.tops:
            self._tops[g] = group.tops[-1]
        else:
            del self._groups[g], self._tops[g], self._below[g]

    def _split(self, g: int) -> None:
        """Cut every block of a group that is too wide, then the group itself if it became too long."""
        group = self._groups[g]
        for b in reversed(range(len(group.tops))):
            if len(group.values[b]) > 2 * self._load:
                group.split(b, self._load)
        self._split_group(g)

    def _split_group(self, g: int) -> None:
        """Cut a group of more than 2 * fan blocks into groups of fan. O(fan) unions."""
        long = self._groups[g]
        if len(long.tops) <= 2 * self._fan:
            return
        parts = [long.part(b, b + self._fan) for b in range(0, len(long.tops), self._fan)]
        below = [self._below[g]]
        for part in parts[:-1]:
            below.append(BitMap.union(below[-1], *part.members))
        self._groups[g : g + 1] = parts
        self._tops[g : g + 1] = [part.tops[-1] for part in parts]
        self._below[g : g + 1] = below

    def _widen(self) -> None:
        """Join neighbours while there are too many groups. O(groups), each time the tree has grown fourfold."""
        while len(self._groups) > _WIDE * self._fan:
            self._fan *= 2
            for left, right in zip(self._groups[::2], self._groups[1::2], strict=False):
                left.join(right)
            self._groups = self._groups[::2]
            self._below = self._below[::2]
            self._tops = [group.tops[-1] for group in self._groups]

    def _review(self, deleted: int) -> None:
        """Rebuild if deletes left mostly empty blocks. Asked once per n/2 deletes, so it costs O(1) a delete."""
        self._until_review -= deleted
        if self._until_review > 0:
            return
        blocks = sum(len(group.tops) for group in self._groups)
        if blocks > 4 + 4 * len(self.ids) // self._load:
            self._rebuild_with([], array("I"))
        self._until_review = max(8 * self._load, len(self.ids) // 2)

    def _rebuild_with(self, values: list[Any], ids: array[int]) -> None:
        """Build anew from what is held and more. O(n): the sort finds two sorted runs."""
        for group in self._groups:
            group.flatten(values, ids)
        order = sorted(range(len(values)), key=values.__getitem__)
        self._build([values[i] for i in order], array("I", [ids[i] for i in order]))

    def _build(self, values: list[Any], ids: array[int]) -> None:
        """Lay out sorted values and their ids in full blocks and groups. O(n)."""
        everything = _Group()
        for piece in _pieces(values, ids, self._load):
            everything.append(piece)
        self._fan = self._start
        while len(everything.tops) > _WIDE * self._fan * self._fan:
            self._fan *= 2
        self._groups, self._tops, self._below = [everything], everything.tops[-1:], [BitMap()]
        self._split_group(0)
        self.ids, self._distinct = BitMap(ids), _distinct(values)
        self._until_review = max(8 * self._load, len(ids) // 2)

    # -- invariants ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise InvariantError, with a dump, unless every promise of the structure holds. O(n) and slow."""
        self._check_groups()
        values, ids = self._flat()
        pairs = [(a, b) for a, b in pairwise(values) if b < a]
        self._require(not pairs, f"values out of order: {pairs[:3]}")
        self._require(len(BitMap(ids)) == len(ids), "an id is held twice")
        self._require(BitMap(ids) == self.ids, "ids differ from the ids in the blocks")
        self._require(self.ids.isdisjoint(self.nulls), "an id is both null and not")
        self._require(_distinct(values) == self._distinct, "wrong number of distinct values")
        self._require(not _EMPTY, "the shared empty set was changed")

    def _check_groups(self) -> None:
        """Running unions, tops and sizes."""
        self._require(len(self._groups) == len(self._tops) == len(self._below), "group lists differ in length")
        below = BitMap()
        for g, group in enumerate(self._groups):
            self._require(0 < len(group.tops) <= 2 * self._fan, f"group {g} has {len(group.tops)} blocks")
            self._require(self._tops[g] == group.tops[-1], f"top of group {g}")
            self._require(self._below[g] == below, f"running union of group {g}")
            problem = group.problem(2 * self._load)
            self._require(problem is None, f"group {g}: {problem}")
            below = BitMap.union(below, *group.members)

    def _flat(self) -> tuple[list[Any], array[int]]:
        values: list[Any] = []
        ids = array("I")
        for group in self._groups:
            group.flatten(values, ids)
        return values, ids

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            self._broken(message)

    def _broken(self, message: str) -> NoReturn:
        dump = "\n".join(f"  group {g}: {group!r}" for g, group in enumerate(self._groups[:20]))
        raise InvariantError(f"{self!r}: {message}\n{dump}")


class _Group:
    """Up to 2 * fan blocks, as parallel lists: greatest value, values and their ids one by one, set of all ids."""

    __slots__ = ("ids", "members", "tops", "values")

    def __init__(self) -> None:
        self.tops: list[Any] = []
        self.values: list[list[Any]] = []
        self.ids: list[array[int]] = []
        self.members: list[BitMap] = []

    def __repr__(self) -> str:
        blocks = zip(self.tops, self.ids, self.members, strict=True)
        return ", ".join(f"<={top!r}: {len(ids)} of {len(members)}" for top, ids, members in blocks)[:400]

    def crowned(self, b: int) -> bool:
        """Does the set of block b hold more ids than stand one by one?"""
        return len(self.members[b]) > len(self.ids[b])

    def append(self, piece: Piece) -> None:
        """Add a block at the end. O(1)."""
        top, values, ids, members = piece
        self.tops.append(top)
        self.values.append(values)
        self.ids.append(ids)
        self.members.append(members)

    def drop(self, b: int) -> None:
        """Forget a block. O(fan)."""
        del self.tops[b], self.values[b], self.ids[b], self.members[b]

    def part(self, start: int, stop: int) -> _Group:
        """A new group of some of the blocks."""
        part = _Group()
        part.tops, part.values = self.tops[start:stop], self.values[start:stop]
        part.ids, part.members = self.ids[start:stop], self.members[start:stop]
        return part

    def join(self, right: _Group) -> None:
        """Take over the blocks of the next group."""
        self.tops += right.tops
        self.values += right.values
        self.ids += right.ids
        self.members += right.members

    def equal(self, b: int, value: Any) -> BitMap:
        """A fresh set of the ids in block b with this value."""
        values = self.values[b]
        low = bisect_left(values, value)
        high = bisect_right(values, value, low)
        if high > low:
            return BitMap(self.ids[b][low:high])
        return self.crown(b) if self.tops[b] == value else BitMap()

    def crown(self, b: int) -> BitMap:
        """A fresh set of the ids that stand only in the set of block b."""
        return self.members[b] - BitMap(self.ids[b]) if self.ids[b] else self.members[b] | _EMPTY

    def put(self, b: int, id_: int, value: Any) -> bool:
        """Add an id to block b; is the value new? O(load) moved, O(log load) compared."""
        values, members = self.values[b], self.members[b]
        if self.tops[b] == value and len(members) > len(values):
            members.add(id_)
            return False
        members.add(id_)
        place = bisect_right(values, value)
        known = place > 0 and values[place - 1] == value
        values.insert(place, value)
        self.ids[b].insert(place, id_)
        return not known

    def take(self, b: int, id_: int, value: Any) -> bool:
        """Remove an id from block b; was it the value's last? Costs as `put`."""
        values, ids = self.values[b], self.ids[b]
        low = bisect_left(values, value)
        high = bisect_right(values, value, low)
        if low == high and self.tops[b] == value:
            return self._take_crown(b, id_)
        try:
            place = ids.index(id_, low, high)
        except ValueError:
            raise InvariantError(f"id {id_} is not held with value {value!r}") from None
        del values[place], ids[place]
        self.members[b].remove(id_)
        return high - low == 1

    def _take_crown(self, b: int, id_: int) -> bool:
        members, ids = self.members[b], self.ids[b]
        if id_ not in members or id_ in ids:
            raise InvariantError(f"id {id_} is not held with value {self.tops[b]!r}")
        members.remove(id_)
        return len(members) == len(ids)

    def put_sorted(self, values: list[Any], ids: array[int], start: int, stop: int) -> int:
        """Add values[start:stop], ascending; how many values are new?"""
        b = new = 0
        for i in range(start, stop):
            b = bisect_left(self.tops, values[i], b)
            new += self.put(b, ids[i], values[i])
        return new

    def take_sorted(self, values: list[Any], ids: array[int], start: int, stop: int) -> int:
        """Remove values[start:stop], ascending, and tidy up; how many values are gone?"""
        b = gone = 0
        touched = set()
        for i in range(start, stop):
            b = bisect_left(self.tops, values[i], b)
            gone += self.take(b, ids[i], values[i])
            touched.add(b)
        for b in sorted(touched, reverse=True):
            self.tidy(b)
        return gone

    def tidy(self, b: int) -> None:
        """After a delete: drop the block if nothing is left in it, else correct its top. O(1), or O(fan)."""
        if not self.members[b]:
            self.drop(b)
        elif not self.crowned(b):
            self.tops[b] = self.values[b][-1]

    def split(self, b: int, load: int) -> None:
        """Cut a block that is too wide into pieces of about `load` ids; its crown follows as a block of its own."""
        pieces = list(_pieces(self.values[b], self.ids[b], load))
        if self.crowned(b):
            pieces.append((self.tops[b], [], array("I"), self.crown(b)))
        cut = _Group()
        for piece in pieces:
            cut.append(piece)
        self.tops[b : b + 1], self.values[b : b + 1] = cut.tops, cut.values
        self.ids[b : b + 1], self.members[b : b + 1] = cut.ids, cut.members

    def flatten(self, values: list[Any], ids: array[int]) -> None:
        """Append all values, ascending, and their ids. O(ids)."""
        for b, top in enumerate(self.tops):
            values += self.values[b]
            ids += self.ids[b]
            if self.crowned(b):
                crown = self.crown(b)
                values += [top] * len(crown)
                ids.extend(crown)

    def problem(self, limit: int) -> str | None:
        """What is wrong with the blocks, if anything: sizes, tops, crowns, sets."""
        for b, (top, values, ids, members) in enumerate(
            zip(self.tops, self.values, self.ids, self.members, strict=True)
        ):
            if len(values) != len(ids) or len(values) > limit or not members:
                return f"block {b} has {len(values)} values, {len(ids)} ids, {len(members)} members"
            if not BitMap(ids) <= members:
                return f"set of block {b} lacks {BitMap(ids) - members}"
            if not self.crowned(b) and values[-1] != top:
                return f"top of block {b} is {top!r}, its last value {values[-1]!r}"
            if self.crowned(b) and values and not values[-1] < top:
                return f"crown of block {b} is not its greatest value"
        return None


def _ascending(values: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Places of the values in ascending order, and places of the NULLs."""
    places: Iterable[int] = range(len(values))
    nulls = [i for i in places if values[i] is None] if None in values else []
    if nulls:
        places = (i for i in places if values[i] is not None)
    return sorted(places, key=values.__getitem__), nulls


def _distinct(values: list[Any]) -> int:
    """Number of distinct values in a sorted list. O(n)."""
    return sum(map(ne, values, values[1:])) + 1 if values else 0


def _pieces(values: list[Any], ids: array[int], load: int) -> Iterator[Piece]:
    """Cut sorted values into even blocks of about `load` ids; a value with more ids becomes a crown. O(n).

    >>> [piece[:2] for piece in _pieces([1, 2, 2, 2, 2, 3], array("I", range(6)), 2)]
    [(2, [1]), (3, [3])]
    """
    size = -(-len(values) // max(1, round(len(values) / load)))
    start = 0
    while start < len(values):
        cut = min(start + size, len(values))
        top = values[cut - 1]
        low = bisect_left(values, top, start, cut)
        high = bisect_right(values, top, cut)
        if high - low > size:
            yield top, values[start:low], ids[start:low], BitMap(ids[start:high])
            start = high
            continue
        stop = high if high - start <= 2 * load or low == start else low
        yield values[stop - 1], values[start:stop], ids[start:stop], BitMap(ids[start:stop])
        start = stop

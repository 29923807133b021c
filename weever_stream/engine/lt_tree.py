"""The LT-tree: a sorted index that answers "which ids have a smaller value" with a few unions.

The paper keeps the ids of a left subtree in each node of a red-black tree. This one is flat. Sorted values stand in
blocks, blocks stand in groups, and both levels carry running unions:

    smaller(v) = ids in earlier groups | ids in earlier blocks of its group | ids before v in its block

so a query is one union of two sets and a few ids more, and a change touches only the later blocks of one group and
the later groups. A value never spans two blocks. A value with many ids (more than a block's load) keeps them in a set
of its own, the *crown* of its block; it is always the greatest value there. Costs below count n ids, d distinct
values, blocks of `load` ids and groups of `fan` blocks; "adds" are single-bit changes of one bitmap.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import ne
from typing import Any, NoReturn

from pyroaring import BitMap

from weever_stream.model.errors import InvariantError

LOAD = 128
"""Ids in a freshly built block; a block is split when it holds more than twice as many."""
FAN = 32
"""Blocks in a freshly built group; a group is split when it holds more than twice as many."""

_FEW = 4
_EMPTY = BitMap()  # never changed: `x | _EMPTY` is a copy several times faster than `x.copy()`

Piece = tuple[Any, list[Any], "array[int]", BitMap | None]
"""A block in the making: greatest value, light values, their ids, crown."""


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

    __slots__ = ("_below", "_distinct", "_fan", "_groups", "_load", "_tops", "_until_review", "ids", "nulls")

    def __init__(self, items: Iterable[tuple[int, Any]] = (), *, load: int = LOAD, fan: int = FAN) -> None:
        """Build from (id, value) pairs: one sort and one pass, O(n log n)."""
        self._load, self._fan = load, fan
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
        """Ids whose value is smaller; the caller owns the set. One union and at most 2 * load ids more.

        >>> LTTree(enumerate("bca")).smaller("c")
        BitMap([0, 2])
        """
        g = bisect_left(self._tops, value)
        if g == len(self._tops):
            return self.ids | _EMPTY
        group = self._groups[g]
        b = bisect_left(group.tops, value)
        result = self._below[g] | group.before[b]
        k = bisect_left(group.values[b], value)
        if k:
            result.update(group.ids[b][:k])
        return result

    def smaller_or_equal(self, value: Any) -> BitMap:
        """Ids whose value is smaller or equal; the caller owns the set. As `smaller`, and the crown's union.

        >>> LTTree(enumerate("bca")).smaller_or_equal("b")
        BitMap([0, 2])
        """
        g = bisect_left(self._tops, value)
        if g == len(self._tops):
            return self.ids | _EMPTY
        group = self._groups[g]
        b = bisect_left(group.tops, value)
        result = self._below[g] | group.before[b]
        k = bisect_right(group.values[b], value)
        if k:
            result.update(group.ids[b][:k])
        crown = group.crowns[b]
        if crown is not None and group.tops[b] == value:
            result |= crown
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
                smaller = self._below[g] | group.before[b]
                done = 0
            elif b != at_block:
                smaller |= group.before[b]
                done = 0
            k = bisect_left(group.values[b], value, done)
            if k > done:
                smaller.update(group.ids[b][done:k])
            at_group, at_block, done = g, b, k
            yield smaller, group.equal(b, value)

    # -- changes ------------------------------------------------------------------------------------------------

    def insert(self, id_: int, value: Any) -> None:
        """Add one id that is not held yet. O(log d), about fan adds in its group and one for each later group."""
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
        for before in group.before[b + 1 :]:
            before.add(id_)
        for below in self._below[g + 1 :]:
            below.add(id_)
        self.ids.add(id_)
        if len(group.values[b]) > 2 * self._load:
            self._split(g)

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
        for before in group.before[b + 1 :]:
            before.discard(id_)
        for below in self._below[g + 1 :]:
            below.discard(id_)
        self.ids.remove(id_)
        self._tidy(g, b)
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
            self.ids -= gone_set
            self._review(len(order))

    # -- keeping shape ------------------------------------------------------------------------------------------

    def _insert_sorted(self, values: list[Any], ids: array[int]) -> None:
        """One pass over the groups; what went into earlier groups is added to each later union at once."""
        if not self._tops or values[-1] > self._tops[-1]:
            self._reach(values[-1])
        seen, start = BitMap(), 0
        for g in range(bisect_left(self._tops, values[0]), len(self._groups)):
            if start:
                self._below[g] |= seen
            stop = bisect_right(values, self._tops[g], start)
            if stop > start:
                self._distinct += self._groups[g].put_sorted(values, ids, start, stop)
                seen.update(ids[start:stop])
                start = stop
        self.ids |= seen
        for g in reversed(range(len(self._groups))):
            if self._groups[g].widest() > 2 * self._load:
                self._split(g)

    def _delete_sorted(self, values: list[Any], ids: array[int]) -> None:
        """The same pass for a delete; emptied blocks go at its end, from the back so that places stay true."""
        seen, start = BitMap(), 0
        first = bisect_left(self._tops, values[0])
        for g in range(first, len(self._groups)):
            if start:
                self._below[g] -= seen
            stop = bisect_right(values, self._tops[g], start)
            if stop > start:
                self._distinct -= self._groups[g].take_sorted(values, ids, start, stop)
                seen.update(ids[start:stop])
                start = stop
        if start < len(values):
            self._broken(f"id {ids[start]} is not held with value {values[start]!r}")
        for g in reversed(range(first, len(self._groups))):
            for b in reversed(range(len(self._groups[g].tops))):
                self._tidy(g, b)

    def _reach(self, value: Any) -> None:
        """Make the last block take a value greater than all others: raise its top, or open a block after a crown."""
        if not self._groups:
            self._groups, self._tops, self._below = [_Group()], [value], [BitMap()]
        group = self._groups[-1]
        if not group.tops or group.crowns[-1] is not None:
            group.append((value, [], array("I"), None), self.ids - self._below[-1])
            self._split_group(len(self._groups) - 1)
        self._groups[-1].tops[-1] = self._tops[-1] = value

    def _tidy(self, g: int, b: int) -> None:
        """After a delete: drop the block if nothing is left in it, and its group with it; else correct its top."""
        group = self._groups[g]
        values = group.values[b]
        if group.crowns[b] is not None:
            return
        if values:
            group.tops[b] = values[-1]
        else:
            group.drop(b)
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
        """Cut a group of more than 2 * fan blocks until none is longer; O(blocks) unions of one group."""
        while len(self._groups[g].tops) > 2 * self._fan:
            left = self._groups[g]
            lower, right = left.halve()
            self._groups.insert(g + 1, right)
            self._tops[g : g + 1] = [left.tops[-1], right.tops[-1]]
            self._below.insert(g + 1, self._below[g] | lower)
            self._split_group(g + 1)

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
        self._groups, self._tops, self._below = [], [], []
        self._until_review = max(8 * self._load, len(ids) // 2)
        below, inside = BitMap(), BitMap()
        for number, piece in enumerate(_pieces(values, ids, self._load)):
            if number % self._fan == 0:
                below |= inside
                self._groups.append(_Group())
                self._tops.append(piece[0])
                self._below.append(below | _EMPTY)
                inside = BitMap()
            self._groups[-1].append(piece, inside | _EMPTY)
            self._tops[-1] = piece[0]
            inside |= _members(piece[2], piece[3])
        self.ids = BitMap(ids)
        self._distinct = _distinct(values)

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
            below |= group.members()

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
    """Up to 2 * fan blocks, as parallel lists; `before[b]` is the union of the group's blocks before b."""

    __slots__ = ("before", "crowns", "ids", "tops", "values")

    def __init__(self) -> None:
        self.tops: list[Any] = []
        self.before: list[BitMap] = []
        self.values: list[list[Any]] = []
        self.ids: list[array[int]] = []
        self.crowns: list[BitMap | None] = []

    def __repr__(self) -> str:
        blocks = zip(self.tops, self.values, self.crowns, strict=True)
        return ", ".join(f"<={top!r}: {len(v)}+{len(c or ())}" for top, v, c in blocks)[:400]

    def append(self, piece: Piece, before: BitMap) -> None:
        """Add a block at the end; `before` becomes the group's. O(1)."""
        top, values, ids, crown = piece
        self.tops.append(top)
        self.values.append(values)
        self.ids.append(ids)
        self.crowns.append(crown)
        self.before.append(before)

    def drop(self, b: int) -> None:
        """Forget a block. O(fan)."""
        del self.tops[b], self.before[b], self.values[b], self.ids[b], self.crowns[b]

    def equal(self, b: int, value: Any) -> BitMap:
        """A fresh set of the ids in block b with this value."""
        crown = self.crowns[b]
        if crown is not None and self.tops[b] == value:
            return crown | _EMPTY
        values = self.values[b]
        low = bisect_left(values, value)
        high = bisect_right(values, value, low)
        return BitMap(self.ids[b][low:high]) if high > low else BitMap()

    def put(self, b: int, id_: int, value: Any) -> bool:
        """Add an id to block b, not to the running unions; is the value new? O(load) moved, O(log load) compared."""
        crown = self.crowns[b]
        if crown is not None and self.tops[b] == value:
            crown.add(id_)
            return False
        values = self.values[b]
        place = bisect_right(values, value)
        known = place > 0 and values[place - 1] == value
        values.insert(place, value)
        self.ids[b].insert(place, id_)
        return not known

    def take(self, b: int, id_: int, value: Any) -> bool:
        """Remove an id from block b, not from the running unions; was it the value's last? Costs as `put`."""
        crown = self.crowns[b]
        if crown is not None and self.tops[b] == value:
            return self._take_crown(b, crown, id_)
        values = self.values[b]
        low = bisect_left(values, value)
        high = bisect_right(values, value, low)
        try:
            place = self.ids[b].index(id_, low, high)
        except ValueError:
            raise InvariantError(f"id {id_} is not held with value {value!r}") from None
        del values[place], self.ids[b][place]
        return high - low == 1

    def _take_crown(self, b: int, crown: BitMap, id_: int) -> bool:
        if id_ not in crown:
            raise InvariantError(f"id {id_} is not held with value {self.tops[b]!r}")
        crown.remove(id_)
        if crown:
            return False
        self.crowns[b] = None
        return True

    def put_sorted(self, values: list[Any], ids: array[int], start: int, stop: int) -> int:
        """Add values[start:stop], ascending, and correct the running unions; how many values are new?"""
        seen, first, new = BitMap(), start, 0
        for b in range(bisect_left(self.tops, values[start]), len(self.tops)):
            if start > first:
                self.before[b] |= seen
            end = bisect_right(values, self.tops[b], start, stop) if start < stop else start
            if end > start:
                for i in range(start, end):
                    new += self.put(b, ids[i], values[i])
                seen.update(ids[start:end])
                start = end
        return new

    def take_sorted(self, values: list[Any], ids: array[int], start: int, stop: int) -> int:
        """Remove values[start:stop], ascending, and correct the running unions; how many values are gone?"""
        seen, first, gone = BitMap(), start, 0
        for b in range(bisect_left(self.tops, values[start]), len(self.tops)):
            if start > first:
                self.before[b] -= seen
            end = bisect_right(values, self.tops[b], start, stop) if start < stop else start
            if end > start:
                for i in range(start, end):
                    gone += self.take(b, ids[i], values[i])
                seen.update(ids[start:end])
                start = end
        return gone

    def widest(self) -> int:
        """Number of light ids in the fullest block."""
        return max(map(len, self.values))

    def split(self, b: int, load: int) -> None:
        """Cut a block that is too wide into pieces of about `load` ids; its crown stays with the last."""
        pieces = list(_pieces(self.values[b], self.ids[b], load))
        crown = self.crowns[b]
        if crown is not None and pieces[-1][3] is None:
            pieces[-1] = (self.tops[b], *pieces[-1][1:3], crown)
        elif crown is not None:
            pieces.append((self.tops[b], [], array("I"), crown))
        before = [self.before[b]]
        for _, _, ids, piece_crown in pieces[:-1]:
            before.append(before[-1] | _members(ids, piece_crown))
        tops, values, arrays, crowns = zip(*pieces, strict=True)
        self.tops[b : b + 1], self.values[b : b + 1], self.ids[b : b + 1] = tops, values, arrays
        self.crowns[b : b + 1], self.before[b : b + 1] = crowns, before

    def halve(self) -> tuple[BitMap, _Group]:
        """Cut the second half off; (ids that stay, new group)."""
        middle = len(self.tops) // 2
        right = _Group()
        stay = self.before[middle]
        right.before = [before - stay for before in self.before[middle:]]
        del self.before[middle:]
        for name in ("tops", "values", "ids", "crowns"):
            mine = getattr(self, name)
            setattr(right, name, mine[middle:])
            del mine[middle:]
        return stay, right

    def members(self) -> BitMap:
        """All ids of the group, as a fresh set."""
        return self.before[-1] | _members(self.ids[-1], self.crowns[-1])

    def flatten(self, values: list[Any], ids: array[int]) -> None:
        """Append all values, ascending, and their ids. O(ids)."""
        for b, crown in enumerate(self.crowns):
            values += self.values[b]
            ids += self.ids[b]
            if crown is not None:
                values += [self.tops[b]] * len(crown)
                ids.extend(crown)

    def problem(self, limit: int) -> str | None:
        """What is wrong with the blocks, if anything: sizes, tops, crowns, running unions."""
        seen = BitMap()
        for b, (top, values, ids, crown) in enumerate(zip(self.tops, self.values, self.ids, self.crowns, strict=True)):
            if len(values) != len(ids) or len(values) > limit:
                return f"block {b} has {len(values)} values and {len(ids)} ids"
            if not values and not crown:
                return f"block {b} is empty"
            if crown is None and values[-1] != top:
                return f"top of block {b} is {top!r}, its last value {values[-1]!r}"
            if crown is not None and (not crown or (values and not values[-1] < top)):
                return f"crown of block {b}"
            if self.before[b] != seen:
                return f"running union of block {b}"
            seen |= _members(ids, crown)
        return None


def _ascending(values: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Places of the values in ascending order, and places of the NULLs."""
    places: Iterable[int] = range(len(values))
    nulls = [i for i in places if values[i] is None] if None in values else []
    if nulls:
        places = (i for i in places if values[i] is not None)
    return sorted(places, key=values.__getitem__), nulls


def _members(ids: array[int], crown: BitMap | None) -> BitMap:
    return BitMap(ids) if crown is None else BitMap(ids) | crown


def _distinct(values: list[Any]) -> int:
    """Number of distinct values in a sorted list. O(n)."""
    return sum(map(ne, values, values[1:])) + 1 if values else 0


def _pieces(values: list[Any], ids: array[int], load: int) -> Iterator[Piece]:
    """Cut sorted values into even blocks of about `load` ids; a value with more ids becomes a crown. O(n).

    >>> [(top, light, crown) for top, light, _, crown in _pieces([1, 2, 2, 2, 2, 3], array("I", range(6)), 2)]
    [(2, [1], BitMap([1, 2, 3, 4])), (3, [3], None)]
    """
    size = -(-len(values) // max(1, round(len(values) / load)))
    start = 0
    while start < len(values):
        cut = min(start + size, len(values))
        top = values[cut - 1]
        low = bisect_left(values, top, start, cut)
        high = bisect_right(values, top, cut)
        if high - low > size:
            yield top, values[start:low], ids[start:low], BitMap(ids[low:high])
            start = high
            continue
        stop = high if high - start <= 2 * load or low == start else low
        yield values[stop - 1], values[start:stop], ids[start:stop], None
        start = stop

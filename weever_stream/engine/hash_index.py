"""The hash index: value -> ids with that value, for = and != predicates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NoReturn

from pyroaring import BitMap

from weever_stream.model.errors import InvariantError

_NONE = BitMap()  # handed out for values that nobody has; never changed


class HashIndex:
    """Ids by value. Values are hashable, in practice an int code; None goes into `nulls`. An id is held once.

    Every set this class hands out (`equal`, `ids`, `nulls`) belongs to the index and is read-only: it may change with
    the next insert or delete. Use `index.equal(v) & candidates`, or `BitMap() | index.equal(v)` to own a copy.

    >>> index = HashIndex([(0, 7), (1, 8), (2, 7), (3, None)])
    >>> index.equal(7), index.equal(9), index.nulls, len(index)
    (BitMap([0, 2]), BitMap([]), BitMap([3]), 2)
    """

    __slots__ = ("_sets", "ids", "nulls")

    def __init__(self, items: Iterable[tuple[int, Hashable]] = ()) -> None:
        """Build from (id, value) pairs. O(n)."""
        self.ids, self.nulls = BitMap(), BitMap()
        self._sets: dict[Hashable, BitMap] = {}
        pairs = list(items)
        if pairs:
            ids, values = zip(*pairs, strict=True)
            self.insert_many(ids, values)

    def __len__(self) -> int:
        """Number of distinct values, NULL not counted. O(1)."""
        return len(self._sets)

    def __repr__(self) -> str:
        return f"HashIndex({len(self.ids)} ids, {len(self._sets)} values, {len(self.nulls)} nulls)"

    def equal(self, value: Hashable) -> BitMap:
        """Ids with this value: a shared, read-only set. O(1)."""
        return self._sets.get(value, _NONE)

    def insert(self, id_: int, value: Hashable) -> None:
        """Add one id that is not held yet. O(1)."""
        if id_ in self.ids or id_ in self.nulls:
            self._broken(f"id {id_} is already held")
        if value is None:
            self.nulls.add(id_)
            return
        self.ids.add(id_)
        held = self._sets.get(value)
        if held is None:
            self._sets[value] = BitMap((id_,))
        else:
            held.add(id_)

    def delete(self, id_: int, value: Hashable) -> None:
        """Remove one id held with this value; InvariantError if it is not. O(1)."""
        held = self.nulls if value is None else self._sets.get(value, _NONE)
        if id_ not in held:
            self._broken(f"id {id_} is not held with value {value!r}")
        held.remove(id_)
        if value is None:
            return
        self.ids.remove(id_)
        if not held:
            del self._sets[value]

    def insert_many(self, ids: Sequence[int], values: Sequence[Hashable]) -> None:
        """Add a batch of ids that are not held yet; each value's set is changed once. O(batch).

        If an id is held already nothing is changed.

        >>> index = HashIndex()
        >>> index.insert_many([4, 5, 6], ["a", "b", "a"])
        >>> index.equal("a")
        BitMap([4, 6])
        """
        fresh = BitMap(ids)
        if len(fresh) != len(ids) or not (fresh.isdisjoint(self.ids) and fresh.isdisjoint(self.nulls)):
            self._broken("a batch inserts an id that is already held, or one id twice")
        by_value = _by_value(ids, values)
        nulls = BitMap(by_value.pop(None, ()))
        self.nulls |= nulls
        self.ids |= fresh - nulls
        sets = self._sets
        for value, group in by_value.items():
            held = sets.get(value)
            if held is None:
                sets[value] = BitMap(group)
            elif len(group) == 1:
                held.add(group[0])
            else:
                held.update(group)

    def delete_many(self, ids: Sequence[int], values: Sequence[Hashable]) -> None:
        """Remove a batch of ids, each held with its value; InvariantError if one is not. O(batch).

        If one is not held with its value nothing is changed.
        """
        groups = {value: BitMap(group) for value, group in _by_value(ids, values).items()}
        for value, gone in groups.items():
            if not gone <= (self.nulls if value is None else self.equal(value)):
                self._broken(f"ids of a batch are not held with value {value!r}")
        if sum(map(len, groups.values())) != len(ids):
            self._broken("a batch deletes one id twice")
        nulls = groups.pop(None, _NONE)
        self.nulls -= nulls
        self.ids -= BitMap(ids) - nulls
        for value, gone in groups.items():
            held = self._sets[value]
            held -= gone
            if not held:
                del self._sets[value]

    def check(self) -> None:
        """Raise InvariantError unless every promise holds: no empty set, no id twice, `ids` is the union. O(n)."""
        if not all(self._sets.values()):
            self._broken("an empty set was left behind")
        if None in self._sets:
            self._broken("NULL is held as a value")
        if sum(map(len, self._sets.values())) != len(self.ids) or BitMap.union(_NONE, *self._sets.values()) != self.ids:
            self._broken("ids differ from the union of the sets, or an id is held twice")
        if not self.ids.isdisjoint(self.nulls):
            self._broken("an id is both null and not")
        if _NONE:
            self._broken("the shared empty set was changed")

    def _broken(self, message: str) -> NoReturn:
        dump = ", ".join(f"{value!r}: {held!r}"[:80] for value, held in list(self._sets.items())[:20])
        raise InvariantError(f"{self!r}: {message}\n  {dump}")


def _by_value(ids: Sequence[int], values: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Ids grouped by their value."""
    groups: dict[Hashable, list[int]] = {}
    for id_, value in zip(ids, values, strict=True):
        group = groups.get(value)
        if group is None:
            groups[value] = [id_]
        else:
            group.append(id_)
    return groups

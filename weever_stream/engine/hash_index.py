"""The hash index: code -> ids with that code, for = and != predicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from pyroaring import BitMap

from weever_stream.engine.bitmaps import bitmap_of
from weever_stream.engine.domain import NULL, Codes, Ids
from weever_stream.model.errors import InvariantError

_NONE = BitMap()  # handed out for codes that nobody has; never changed


class HashIndex:
    """Ids by dictionary code; those with NULL go into `nulls`. An id is held once.

    Every set this class hands out (`equal`, `ids`, `nulls`) belongs to the index and is read-only: it may change with
    the next insert or delete. Use `index.equal(code) & candidates`, or `BitMap() | index.equal(code)` to own a copy.

    >>> index = HashIndex()
    >>> index.insert(np.array([0, 1, 2, 3]), np.array([7, 8, 7, NULL]))
    >>> index.equal(7), index.equal(9), index.nulls, len(index)
    (BitMap([0, 2]), BitMap([]), BitMap([3]), 2)
    """

    __slots__ = ("_sets", "ids", "nulls")

    def __init__(self) -> None:
        self.ids, self.nulls = BitMap(), BitMap()
        self._sets: dict[int, BitMap] = {}

    def __len__(self) -> int:
        """Number of distinct codes, NULL not counted. O(1)."""
        return len(self._sets)

    def __repr__(self) -> str:
        return f"HashIndex({len(self.ids)} ids, {len(self._sets)} codes, {len(self.nulls)} nulls)"

    def equal(self, code: int) -> BitMap:
        """Ids with this code: a shared, read-only set. O(1)."""
        return self._sets.get(code, _NONE)

    def insert(self, ids: Ids, codes: Codes) -> None:
        """Add ids that are not held yet; each code's set is changed once. O(batch).

        If an id is held already nothing is changed.
        """
        fresh = bitmap_of(ids)
        if len(fresh) != len(ids) or not (fresh.isdisjoint(self.ids) and fresh.isdisjoint(self.nulls)):
            self._broken("an id is inserted that is already held, or one id twice")
        for code, group in _by_code(ids, codes):
            if code == NULL:
                self.nulls |= group
                fresh -= group
            elif code in self._sets:
                self._sets[code] |= group
            else:
                self._sets[code] = group
        self.ids |= fresh

    def delete(self, ids: Ids, codes: Codes) -> None:
        """Remove ids, each held with its code. O(batch).

        InvariantError if one is not held with its code; nothing is changed then.
        """
        groups = dict(_by_code(ids, codes))
        for code, gone in groups.items():
            if not gone <= (self.nulls if code == NULL else self.equal(code)):
                self._broken(f"ids are deleted that are not held with code {code}")
        if sum(map(len, groups.values())) != len(ids):
            self._broken("an id is deleted twice")
        for code, gone in groups.items():
            if code == NULL:
                self.nulls -= gone
                continue
            self.ids -= gone
            self._sets[code] -= gone
            if not self._sets[code]:
                del self._sets[code]

    def check(self) -> None:
        """Raise InvariantError unless every promise holds: no empty set, no id twice, `ids` is the union. O(n)."""
        if not all(self._sets.values()):
            self._broken("an empty set was left behind")
        if NULL in self._sets:
            self._broken("NULL is held as a code")
        if sum(map(len, self._sets.values())) != len(self.ids) or BitMap.union(_NONE, *self._sets.values()) != self.ids:
            self._broken("ids differ from the union of the sets, or an id is held twice")
        if not self.ids.isdisjoint(self.nulls):
            self._broken("an id is both null and not")
        if _NONE:
            self._broken("the shared empty set was changed")

    def _broken(self, message: str) -> NoReturn:
        dump = ", ".join(f"{code}: {held!r}"[:80] for code, held in list(self._sets.items())[:20])
        raise InvariantError(f"{self!r}: {message}\n  {dump}")


def _by_code(ids: Ids, codes: Codes) -> Iterator[tuple[int, BitMap]]:
    """The ids of each code."""
    order = codes.argsort(kind="stable")
    ids, codes = ids[order], codes[order]
    cuts = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    starts = [0, *cuts.tolist()] if len(codes) else []
    for start, stop in zip(starts, [*starts[1:], len(codes)], strict=False):
        yield int(codes[start]), bitmap_of(ids[start:stop])

"""The blocks of an LT-tree: a stretch of sorted values and their ids, and how to cut one."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

import numpy as np
from pyroaring import BitMap

_NONE = BitMap()  # handed out for values that nobody has; never changed


class Run:
    """A block of many values: one place for each id, by ascending value.

    >>> run = Run([1, 2, 2], array("I", [7, 8, 9]))
    >>> run.put(6, 1)
    >>> run.values, list(run.ids), run.equal(2)
    ([1, 1, 2, 2], [7, 6, 8, 9], BitMap([8, 9]))
    """

    __slots__ = ("ids", "values")

    def __init__(self, values: list[Any], ids: array[int]) -> None:
        self.values, self.ids = values, ids

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def top(self) -> Any:
        """The greatest value; the run must not be empty. O(1)."""
        return self.values[-1]

    def accepts(self, _value: Any) -> bool:
        """May a value up to the greatest one be put here? Into a run always."""
        return True

    def equal(self, value: Any, start: int = 0) -> BitMap:
        """Ids with this value, none of them before place `start`; read-only. O(log(length) + answer)."""
        low = bisect_left(self.values, value, start)
        high = bisect_right(self.values, value, low)
        return BitMap(self.ids[low:high]) if high > low else _NONE

    def put(self, id_: int, value: Any) -> None:
        """Add an id. O(log(length)) compares, O(length) moved."""
        place = bisect_right(self.values, value)
        self.values.insert(place, value)
        self.ids.insert(place, id_)

    def take(self, id_: int, value: Any) -> bool:
        """Remove an id; was it held with this value? Costs as `put`, and a look at each id of the value."""
        low = bisect_left(self.values, value)
        high = bisect_right(self.values, value, low)
        try:
            place = self.ids.index(id_, low, high)
        except ValueError:
            return False
        del self.values[place], self.ids[place]
        return True

    def take_all(self, ids: Sequence[int], values: Sequence[Any]) -> bool:
        """Remove ids, given by ascending value; were all held with their values? If not nothing is changed. O(length).

        >>> run = Run([1, 2, 2], array("I", [7, 8, 9]))
        >>> run.take_all([9], [1]), run.take_all([7, 9], [1, 2]), run.flat()
        (False, True, ([2], array('I', [8])))
        """
        held = np.frombuffer(self.ids, dtype=np.uint32)
        gone = np.isin(held, np.array(ids, dtype=np.uint32))
        if list(compress(self.values, gone.tolist())) != list(values):
            return False
        self.ids = array("I", held[~gone].tobytes())
        self.values = list(compress(self.values, (~gone).tolist()))
        return True

    def flat(self) -> tuple[list[Any], array[int]]:
        """Value and id of each id held, by ascending value. O(1)."""
        return self.values, self.ids


class Crowd:
    """A block of one value with many ids, which stand in a set. Seen as a run it has no places.

    >>> crowd = Crowd(5, BitMap([1, 2]))
    >>> crowd.accepts(5), crowd.accepts(4), crowd.take(9, 5), crowd.flat()
    (True, False, False, ([5, 5], array('I', [1, 2])))
    """

    __slots__ = ("members", "top")

    values: Sequence[Any] = ()
    ids = array("I")

    def __init__(self, value: Any, members: BitMap) -> None:
        self.top, self.members = value, members

    def __len__(self) -> int:
        return len(self.members)

    def accepts(self, value: Any) -> bool:
        """May a value up to the greatest one be put here? Only this one."""
        return bool(value == self.top)

    def equal(self, value: Any, _start: int = 0) -> BitMap:
        """Ids with this value; read-only. O(1)."""
        return self.members if value == self.top else _NONE

    def put(self, id_: int, _value: Any) -> None:
        """Add an id. O(1)."""
        self.members.add(id_)

    def take(self, id_: int, value: Any) -> bool:
        """Remove an id; was it held with this value? O(1)."""
        held = value == self.top and id_ in self.members
        if held:
            self.members.remove(id_)
        return held

    def take_all(self, ids: Sequence[int], values: Sequence[Any]) -> bool:
        """Remove ids; were all held with their values? If not nothing is changed. O(ids)."""
        gone = BitMap(ids)
        held = gone <= self.members and values[0] == self.top == values[-1]
        if held:
            self.members -= gone
        return bool(held)

    def flat(self) -> tuple[list[Any], array[int]]:
        """Value and id of each id held. O(length)."""
        return [self.top] * len(self.members), self.members.to_array()


Block = Run | Crowd


def cut(values: list[Any], ids: array[int], load: int) -> Iterator[Block]:
    """Cut sorted values into even runs of about `load` ids; a value with more ids becomes a crowd. O(n).

    A run is shorter than 2 * load: it is cut short of `load`, and then gets the other ids of its greatest value.

    >>> [block.flat()[0] for block in cut([1, 2, 2, 2, 2, 3], array("I", range(6)), 2)]
    [[1], [2, 2, 2, 2], [3]]
    """
    size = -(-len(values) // max(1, -(-len(values) // load)))
    start = 0
    while start < len(values):
        stop = min(start + size, len(values))
        top = values[stop - 1]
        low, high = bisect_left(values, top, start, stop), bisect_right(values, top, stop)
        if high - low <= load:
            yield Run(values[start:high], ids[start:high])
        else:
            if low > start:
                yield Run(values[start:low], ids[start:low])
            yield Crowd(top, BitMap(ids[low:high]))
        start = high

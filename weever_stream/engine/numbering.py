"""Numberings: hashable things under small dense integers: rows, dictionary codes, partitions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from weever_stream.model.errors import InvariantError

UNKNOWN = -1


class Numbering:
    """Gives each thing a number from 0; numbers of forgotten things are used again. Whole batches at once, because a
    call in Python for each thing would cost more than all the rest.

    >>> names = Numbering()
    >>> names.assign(["x", "y", "x"]), names.find(["y", "z"])
    (([0, 1, 0], ['x', 'y'], [0, 1]), [1, -1])
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._free: list[int] = []
        self.capacity = 0
        """One more than the largest number given so far."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, thing: Hashable) -> bool:
        return thing in self._numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers.values())

    def items(self) -> Iterable[tuple[Hashable, int]]:
        return self._numbers.items()

    def get(self, thing: Hashable) -> int:
        return self._numbers.get(thing, UNKNOWN)

    def find(self, things: Iterable[Hashable]) -> list[int]:
        """The number of each thing, UNKNOWN where it has none."""
        return list(map(self._numbers.get, things, repeat(UNKNOWN)))

    def assign(self, things: Sequence[Hashable]) -> tuple[list[int], list[Hashable], list[int]]:
        """The number of each thing; and the things that are new, each once, with the numbers they get.

        None stays UNKNOWN.
        """
        found = self.find(things)
        missing = found.count(UNKNOWN)
        if not missing:
            return found, [], []
        unknown: Iterable[Hashable] = things
        if missing < len(things):
            unknown = (thing for thing, number in zip(things, found, strict=True) if number == UNKNOWN)
        different = dict.fromkeys(unknown)
        different.pop(None, None)
        fresh = list(different)
        numbers = self._take(len(fresh))
        self._numbers.update(zip(fresh, numbers, strict=True))
        return numbers if len(fresh) == len(things) else self.find(things), fresh, numbers

    def forget(self, things: Iterable[Hashable]) -> None:
        """Frees the numbers of these different things."""
        self._free.extend(map(self._numbers.pop, things))

    def _take(self, count: int) -> list[int]:
        kept = max(0, len(self._free) - count)
        reused = self._free[kept:]
        del self._free[kept:]
        start = self.capacity
        self.capacity += count - len(reused)
        return [*reused, *range(start, self.capacity)]

    def check(self) -> None:
        """Raises InvariantError unless every number below the capacity is either in use or free, once."""
        if sorted([*self._numbers.values(), *self._free]) != list(range(self.capacity)):
            raise InvariantError(f"numbering: {len(self._numbers)} used and {len(self._free)} free of {self.capacity}")


def store(items: list[Any], numbers: Sequence[int], fresh: Sequence[Any]) -> None:
    """Puts things that `assign` has numbered at their numbers in a list: reused ones in place, the others at the end.

    >>> items = ["a", None]
    >>> store(items, [1, 2, 3], ["x", "y", "z"])
    >>> items
    ['a', 'x', 'y', 'z']
    """
    reused = next((place for place, number in enumerate(numbers) if number >= len(items)), len(numbers))
    for number, thing in zip(numbers[:reused], fresh, strict=False):
        items[number] = thing
    items.extend(fresh[reused:])

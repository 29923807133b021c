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
        self._mostly_new = False
        self.capacity = 0
        """One more than the largest number given so far."""

    def __len__(self) -> int:
        return len(self._numbers)

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
        if self._mostly_new and None not in things:
            return self._assign_new(things)
        found = self.find(things)
        missing = found.count(UNKNOWN)
        self._mostly_new = 2 * missing > len(things)
        if not missing:
            return found, [], []
        different = dict.fromkeys(thing for thing, number in zip(things, found, strict=True) if number == UNKNOWN)
        different.pop(None, None)
        fresh = list(different)
        numbers = self._take(len(fresh))
        self._numbers.update(zip(fresh, numbers, strict=True))
        return self.find(things), fresh, numbers

    def _assign_new(self, things: Sequence[Hashable]) -> tuple[list[int], list[Hashable], list[int]]:
        """The same in one pass, which pays where most things are new: each is offered a number, few are given back."""
        offered = self._take(len(things))
        found = list(map(self._numbers.setdefault, things, offered))
        if found == offered:
            return found, list(things), found
        fresh = [(thing, number) for thing, number, own in zip(things, found, offered, strict=True) if number == own]
        given = {number for _, number in fresh}
        self._free.extend(number for number in offered if number not in given)
        self._mostly_new = 2 * len(fresh) > len(things)
        return found, [thing for thing, _ in fresh], [number for _, number in fresh]

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

    def store(self, items: list[Any], numbers: Sequence[int], fresh: Sequence[Any]) -> None:
        """Puts what was numbered by `assign` at its numbers in a list that grows to this numbering's capacity.

        >>> names, items = Numbering(), []
        >>> _, fresh, numbers = names.assign(["x", "y"])
        >>> names.store(items, numbers, fresh)
        >>> items
        ['x', 'y']
        """
        room = self.capacity - len(items)
        if numbers[0] == len(items) and len(numbers) == room:
            items.extend(fresh)
            return
        items.extend([None] * room)
        for number, thing in zip(numbers, fresh, strict=True):
            items[number] = thing

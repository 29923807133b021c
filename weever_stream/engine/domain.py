"""Domains: the values of columns that are compared with each other, as small integers.

Columns that meet in a predicate share one domain, so two cells are equal exactly when their codes are. For order, each
value also has a float `order key` that never contradicts the exact order: a smaller key is a smaller value, and only
equal keys of different codes need a look at the values themselves (strings with a long common start, integers beyond
2^53). All comparisons of the engine are made here, on whole arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.predicate import Operator, Value

Codes = NDArray[np.int32]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

NULL = -1

_ARRAY_OPERATORS: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


def grown(array: NDArray[Any], size: int, fill: Any) -> NDArray[Any]:
    """The array with room for at least `size` items, by doubling, so that growing costs O(1) an item."""
    if len(array) >= size:
        return array
    larger = np.full(max(size, 2 * len(array), 16), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def order_key(value: Value) -> float:
    """A float that never contradicts the exact order of the values of one domain.

    >>> order_key("abc") < order_key("abd"), order_key(2**53) == order_key(2**53 + 1)
    (True, True)
    """
    if isinstance(value, str):
        return float(int.from_bytes(value[:6].encode("utf-8", "surrogatepass")[:6].ljust(6, b"\0"), "big"))
    if isinstance(value, datetime):
        elapsed = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
        return float((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds)
    if isinstance(value, date):
        return float(value.toordinal())
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _is_exact(value: Value, key: float) -> bool:
    """True where no other value of the domain can have the same order key."""
    if isinstance(value, str):
        return False
    if isinstance(value, datetime | date):
        return abs(key) < 2**53
    return bool(value == key and abs(key) < 2**53)


class _Dictionary(dict[Value, int]):
    """value -> code; a value that is looked up for the first time gets the next free code."""

    def __init__(self, domain: Domain) -> None:
        super().__init__({None: NULL})
        self._domain = domain

    def __missing__(self, value: Value) -> int:
        code = self[value] = self._domain._admit(value)
        return code


class Domain:
    """The dictionary of one set of comparable columns; only an `ordered` one keeps order keys.

    >>> domain = Domain()
    >>> domain.encode(["x", None, "y", "x"]).tolist()
    [0, -1, 1, 0]
    """

    def __init__(self, *, ordered: bool = True) -> None:
        self.values: list[Value] = []
        self.ordered = ordered
        self.keys: NDArray[np.float64] = np.full(16, np.nan)
        self.exact = True
        self._codes = _Dictionary(self)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._codes) - 1

    def encode(self, values: Sequence[Value]) -> Codes:
        """Codes of these values, new ones added. Cost: about 50 ns a value."""
        return np.fromiter(map(self._codes.__getitem__, values), dtype=np.int32, count=len(values))

    def decode(self, code: int) -> Value:
        return None if code == NULL else self.values[code]

    def forget(self, codes: Iterable[int]) -> None:
        """Frees codes that no cell holds any longer."""
        for code in codes:
            del self._codes[self.values[code]]
            self.values[code] = None
            if self.ordered:
                self.keys[code] = np.nan
            self._free.append(code)

    def compare(self, op: Operator, left: Codes, right: Codes) -> Mask:
        """`left op right`, cell by cell; never true with NULL. Cost: a few ns a pair."""
        if op is Operator.EQ:
            return np.asarray((left == right) & (left >= 0))
        if op is Operator.NE:
            return np.asarray((left != right) & (left >= 0) & (right >= 0))
        left_keys, right_keys = self.keys[left], self.keys[right]
        result: Mask = _ARRAY_OPERATORS[op](left_keys, right_keys)
        if not self.exact:
            self._settle_ties(op, left, right, (left_keys == right_keys) & (left != right), result)
        return result

    def _settle_ties(self, op: Operator, left: Codes, right: Codes, ties: Mask, result: Mask) -> None:
        values = self.values
        at = np.flatnonzero(ties)
        pairs = zip(left[at].tolist(), right[at].tolist(), strict=True)
        result[at] = [op.holds(values[a], values[b]) for a, b in pairs]

    def _admit(self, value: Value) -> int:
        if self._free:
            code = self._free.pop()
            self.values[code] = value
        else:
            code = len(self.values)
            self.values.append(value)
        if self.ordered:
            self._note_order(code, value)
        return code

    def _note_order(self, code: int, value: Value) -> None:
        if code + 2 > len(self.keys):
            # One slot stays unused at the end: NULL (-1) indexes it and finds a NaN, which no comparison accepts.
            self.keys = grown(self.keys, code + 2, np.nan)
        key = self.keys[code] = order_key(value)
        self.exact = self.exact and _is_exact(value, key)

    def check(self) -> None:
        """Every invariant of the dictionary."""
        for value, code in self._codes.items():
            if value is None:
                continue
            if self.values[code] != value or (self.ordered and self.keys[code] != order_key(value)):
                raise InvariantError(f"domain: value {value!r} has code {code}, which stands for {self.values[code]!r}")
        if len(self._codes) - 1 + len(self._free) != len(self.values) or not np.isnan(self.keys[-1]):
            raise InvariantError(
                f"domain: {len(self._codes) - 1} codes and {len(self._free)} free of {len(self.values)}"
            )

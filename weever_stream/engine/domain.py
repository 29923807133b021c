"""Domains: the values of columns that are compared with each other, as small integers.

Columns that meet in a predicate share one domain, so two cells are equal exactly when their codes are. For order, each
value also has a float `order key` that never contradicts the exact order: a smaller key is a smaller value, and only
equal keys of different codes need a look at the values themselves (strings with a long common start, integers beyond
2^53). All comparisons of the engine are made here, on whole arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.numbering import UNKNOWN, Numbering
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.predicate import FUNCTIONS, Operator, Value

Codes = NDArray[np.int32]
Ids = NDArray[np.signedinteger[Any]]
Mask = NDArray[np.bool_]

NULL = UNKNOWN

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


def compare_keys(op: Operator, left: NDArray[np.float64], right: NDArray[np.float64]) -> Mask:
    """`left op right` for order keys; all there is to a comparison in a domain whose keys are exact."""
    result: Mask = FUNCTIONS[op](left, right)
    return result


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


def order_keys(values: Sequence[Value]) -> NDArray[np.float64]:
    """`order_key` of each value."""
    if set(map(type, values)) <= {int, float}:
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    return np.fromiter(map(order_key, values), dtype=np.float64, count=len(values))


def _are_exact(values: Sequence[Value], keys: NDArray[np.float64]) -> bool:
    """True where no other value of the domain can have one of these order keys."""
    if isinstance(values[0], str) or not bool((np.abs(keys) < 2**53).all()):
        return False
    if isinstance(values[0], date) or set(map(type, values)) <= {int, float, bool}:
        return True
    return all(map(operator.eq, values, keys.tolist()))


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
        self._codes = Numbering()

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, values: Sequence[Value]) -> Codes:
        """Codes of these values, new ones added. Cost: about 50 ns a value, 200 ns a new one."""
        codes, fresh, numbers = self._codes.assign(values)
        if fresh:
            self._admit(fresh, numbers)
        return np.array(codes, dtype=np.int32)

    def decode(self, code: int) -> Value:
        return None if code == NULL else self.values[code]

    def decoded(self, codes: Codes) -> list[Value]:
        values = self.values
        return [None if code == NULL else values[code] for code in codes.tolist()]

    def forget(self, codes: list[int]) -> None:
        """Frees codes that no cell holds any longer."""
        values = self.values
        self._codes.forget([values[code] for code in codes])
        for code in codes:
            values[code] = None
        if self.ordered:
            self.keys[codes] = np.nan

    def compare(self, op: Operator, left: Codes, right: Codes) -> Mask:
        """`left op right`, cell by cell; never true with NULL. Cost: a few ns a pair."""
        if op is Operator.EQ:
            return np.asarray((left == right) & (left >= 0))
        if op is Operator.NE:
            return np.asarray((left != right) & (left >= 0) & (right >= 0))
        left_keys, right_keys = self.keys[left], self.keys[right]
        result = compare_keys(op, left_keys, right_keys)
        if not self.exact:
            self._settle_ties(op, left, right, (left_keys == right_keys) & (left != right), result)
        return result

    def _settle_ties(self, op: Operator, left: Codes, right: Codes, ties: Mask, result: Mask) -> None:
        values = self.values
        at = np.flatnonzero(ties)
        pairs = zip(left[at].tolist(), right[at].tolist(), strict=True)
        result[at] = [op.holds(values[a], values[b]) for a, b in pairs]

    def _admit(self, fresh: list[Any], codes: list[int]) -> None:
        values = self.values
        self._codes.store(values, codes, fresh)
        if self.ordered:
            # One slot stays unused at the end: NULL (-1) indexes it and finds a NaN, which no comparison accepts.
            self.keys = grown(self.keys, len(values) + 1, np.nan)
            self.keys[codes] = keys = order_keys(fresh)
            self.exact = self.exact and _are_exact(fresh, keys)

    def check(self) -> None:
        """Every invariant of the dictionary."""
        self._codes.check()
        for value, code in self._codes.items():
            if self.values[code] != value or (self.ordered and self.keys[code] != order_key(value)):
                raise InvariantError(f"domain: value {value!r} has code {code}, which stands for {self.values[code]!r}")
        if len(self.values) > self._codes.capacity or not np.isnan(self.keys[-1]):
            raise InvariantError(f"domain: {len(self.values)} values for {self._codes.capacity} codes")

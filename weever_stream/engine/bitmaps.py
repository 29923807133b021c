"""Between arrays of ids and compressed bitmaps."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap


def bitmap_of(ids: NDArray[np.integer]) -> BitMap:
    """About 7 ns an id, where BitMap(ids) takes 130.

    >>> bitmap_of(np.array([3, 1]))
    BitMap([1, 3])
    """
    return BitMap(array("I", ids.astype(np.uint32).tobytes()))


def ids_of(bitmap: BitMap) -> NDArray[np.uint32]:
    """Ascending."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)

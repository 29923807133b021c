"""Batches cut into groups: rows by partition, rows that look alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from weever_stream.engine.domain import Ids

_BOUND, _ZERO, _ONE = np.array([True]), np.array([0]), np.array([1])


def by_label(items: Ids, labels: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """Items sorted by label; the labels, each once; where each one's items start, and how many they are.

    >>> [part.tolist() for part in by_label(np.array([7, 8, 9]), np.array([1, 0, 1]))][1:]
    [[0, 1], [0, 1], [1, 2]]
    """
    if len(items) < 2:
        return items, labels, _ZERO[: len(items)], _ONE[: len(items)]
    order = labels.argsort()
    items, labels = items[order], labels[order]
    bounds = np.flatnonzero(np.concatenate([_BOUND, labels[1:] != labels[:-1], _BOUND]))
    return items, labels[bounds[:-1]], bounds[:-1], bounds[1:] - bounds[:-1]


def cut(items: Ids, starts: Ids) -> list[Ids]:
    """The stretches of an array that begin at these places; several times as fast as np.split.

    >>> [part.tolist() for part in cut(np.array([7, 8, 9]), np.array([0, 1]))]
    [[7], [8, 9]]
    """
    return [items[start:stop] for start, stop in pairwise([*starts.tolist(), len(items)])]

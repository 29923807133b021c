"""Counts a rule's violations from scratch, without the engine: rows that agree on the equalities, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Condition, Constant, Differ, Operator, Predicate, Term, Value
from weever_stream.model.types import family_of

Ranks = NDArray[np.int64]
Mask = NDArray[np.bool_]
UNKNOWN = -1
CHUNK = 4_000_000  # pairs that are compared at once

_COMPARE: dict[Operator, Any] = {
    Operator.EQ: np.equal,
    Operator.NE: np.not_equal,
    Operator.LT: np.less,
    Operator.LE: np.less_equal,
    Operator.GT: np.greater,
    Operator.GE: np.greater_equal,
}


def recount(constraint: DenialConstraint, columns: Mapping[str, Sequence[Value]], rows: int) -> int:
    """Open violations among these rows; a symmetric pair counts once. O(pairs that meet under the equalities)."""
    ranked = _Ranked(constraint, columns, rows)
    t_rows = np.flatnonzero(ranked.passing(constraint.filters_t))
    if constraint.is_single:
        return len(t_rows)
    u_rows = np.flatnonzero(ranked.passing(constraint.filters_u))
    cross = [c for c in constraint.conditions if c.is_cross and c not in constraint.equalities]
    total = 0
    for t, u in _meetings(ranked, constraint, t_rows, u_rows):
        step = max(1, CHUNK // len(u))
        total += sum(_broken(ranked, cross, t[at : at + step], u) for at in range(0, len(t), step))
    return total // 2 if constraint.is_symmetric else total


class _Ranked:
    """Cells as ranks among all values of their family, so that ranks compare as the values do."""

    def __init__(self, constraint: DenialConstraint, columns: Mapping[str, Sequence[Value]], rows: int) -> None:
        constants = [term.value for c in constraint.conditions for term in _terms(c) if isinstance(term, Constant)]
        families: dict[Any, set[Value]] = {}
        for value in [*constants, *(value for name in constraint.columns for value in columns[name])]:
            if value is not None and not isinstance(value, bool):
                families.setdefault(family_of(value), set()).add(value)
        self._rank = {value: rank for values in families.values() for rank, value in enumerate(sorted(values))}
        self.columns: dict[str, Ranks] = {
            name: np.array([self._of(value) for value in columns[name]], dtype=np.int64) for name in constraint.columns
        }
        self._rows = rows

    def _of(self, value: Value) -> int:
        if value is None:
            return UNKNOWN
        return int(value) if isinstance(value, bool) else self._rank[value]

    def passing(self, filters: Sequence[Predicate]) -> Mask:
        result = np.ones(self._rows, dtype=bool)
        for predicate in filters:
            left, right = self._operand(predicate.left), self._operand(predicate.right)
            result &= _COMPARE[predicate.op](left, right) & (left >= 0) & (right >= 0)
        return result

    def _operand(self, term: Term) -> Any:
        return self.columns[term.name] if isinstance(term, Column) else np.int64(self._of(term.value))


def _terms(condition: Condition) -> tuple[Term, ...]:
    return () if isinstance(condition, Differ) else (condition.left, condition.right)


def _meetings(ranked: _Ranked, constraint: DenialConstraint, t: Ranks, u: Ranks) -> list[tuple[Ranks, Ranks]]:
    """The rows that stand as t and as u under each combination of equality values; pairs of a row with itself alone
    are left out."""
    if not constraint.equalities:
        return [(t, u)] if len(t) and len(u) else []
    names = [[column.name for column in predicate.columns] for predicate in constraint.equalities]
    t_cells = np.stack([ranked.columns[left][t] for left, _ in names], axis=1)
    u_cells = np.stack([ranked.columns[right][u] for _, right in names], axis=1)
    t_known, u_known = (t_cells >= 0).all(axis=1), (u_cells >= 0).all(axis=1)
    t, u = t[t_known], u[u_known]
    cells = np.concatenate([t_cells[t_known], u_cells[u_known]])
    if not len(cells):
        return []
    _, groups = np.unique(cells, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    size = int(groups.max()) + 1
    t_groups, u_groups = groups[: len(t)], groups[len(t) :]
    t_counts, u_counts = np.bincount(t_groups, minlength=size), np.bincount(u_groups, minlength=size)
    t_sorted, u_sorted = t[np.argsort(t_groups, kind="stable")], u[np.argsort(u_groups, kind="stable")]
    t_ends, u_ends = np.cumsum(t_counts), np.cumsum(u_counts)
    return [
        (t_sorted[t_ends[g] - t_counts[g] : t_ends[g]], u_sorted[u_ends[g] - u_counts[g] : u_ends[g]])
        for g in np.flatnonzero(t_counts * u_counts).tolist()
    ]


def _broken(ranked: _Ranked, conditions: Sequence[Condition], t: Ranks, u: Ranks) -> int:
    """How many pairs of two different rows satisfy every condition."""
    mask = t[:, None] != u[None, :]
    for condition in conditions:
        parts = condition.parts if isinstance(condition, Differ) else (condition,)
        mask &= np.logical_or.reduce([_holds(ranked, part, t, u) for part in parts])
    return int(mask.sum())


def _holds(ranked: _Ranked, predicate: Predicate, t: Ranks, u: Ranks) -> Mask:
    """`predicate` for every pair: t's rows down, u's rows across."""
    sides = []
    for column in predicate.columns:
        is_t = column.row == "t"
        cells = ranked.columns[column.name][t if is_t else u]
        sides.append(cells[:, None] if is_t else cells[None, :])
    left, right = sides
    return np.asarray(_COMPARE[predicate.op](left, right) & (left >= 0) & (right >= 0))

"""The schedule: in which order the predicates of each rule are asked, and which prefixes rules share.

The order is the paper's: six classes, and inside them by cardinality. A common prefix is the start of one rule whose
predicates all occur in another; it is taken where the refinements it saves exceed the optimization potential lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from weever_stream.model.rules.predicate import Condition, Differ, Operator

Cardinality = Callable[[str], int]
CLASSES = (
    "same-column =",
    "cross-column =",
    "same-column !=",
    "cross-column !=",
    "same-column inequality",
    "cross-column inequality",
)


@dataclass(frozen=True)
class Prefix:
    """Conditions that `owner` starts with and that every rule of `users` contains."""

    owner: str
    conditions: tuple[Condition, ...]
    users: tuple[str, ...]

    @property
    def benefit(self) -> int:
        """Refinements saved: the first condition only copies its operand, so it saves nothing."""
        return (len(self.conditions) - 1) * len(self.users)


@dataclass(frozen=True)
class Schedule:
    """`steps` are each rule's conditions in order; `order` is the order of the rules; a rule in `shared` starts from
    that prefix's intermediate and asks only its other conditions."""

    steps: Mapping[str, tuple[Condition, ...]]
    order: tuple[str, ...]
    prefixes: tuple[Prefix, ...]
    planned_at: Mapping[str, int]
    slack: int

    def could_change(self, cardinality: Cardinality) -> bool:
        """False while no two cardinalities can have changed their order, near ties aside. O(columns)."""
        drift = max((abs(cardinality(name) - planned) for name, planned in self.planned_at.items()), default=0)
        return 2 * drift >= self.slack

    def remaining(self, rule: str, prefix: Prefix | None) -> tuple[Condition, ...]:
        if prefix is None:
            return self.steps[rule]
        return tuple(condition for condition in self.steps[rule] if condition not in prefix.conditions)

    def prefix_of(self, rule: str) -> Prefix | None:
        return next((p for p in self.prefixes if rule == p.owner or rule in p.users), None)


def class_of(condition: Condition) -> int:
    """The paper's class, 0 to 5 (see CLASSES).

    >>> class_of(Differ(("c", "d")))
    2
    """
    if isinstance(condition, Differ):
        return 2
    same = len({column.name for column in condition.columns}) == 1
    base = {Operator.EQ: 0, Operator.NE: 2}.get(condition.op, 4)
    return base if same else base + 1


def plan(rules: Mapping[str, tuple[Condition, ...]], cardinality: Cardinality) -> Schedule:
    """A schedule for the rules of one route. O(rules^2) set comparisons."""
    steps = {rule: tuple(sorted(conditions, key=_rank(cardinality))) for rule, conditions in rules.items()}
    everything = sorted({c for conditions in rules.values() for c in conditions}, key=_rank(cardinality))
    position = {condition: at for at, condition in enumerate(everything)}
    order = sorted(steps, key=lambda rule: (-position[steps[rule][0]] if steps[rule] else 1, rule))
    planned_at = {column.name: cardinality(column.name) for c in everything for column in c.columns}
    return Schedule(
        steps, tuple(order), _choose(_candidates(steps, order)), planned_at, _slack(everything, cardinality)
    )


def _rank(cardinality: Cardinality) -> Callable[[Condition], tuple[int, int, str]]:
    def rank(condition: Condition) -> tuple[int, int, str]:
        size = _size(condition, cardinality)
        kind = class_of(condition)
        return (kind, -size if kind < 2 else size, str(condition))

    return rank


def _size(condition: Condition, cardinality: Cardinality) -> int:
    return max(cardinality(column.name) for column in condition.columns)


def _slack(conditions: list[Condition], cardinality: Cardinality) -> int:
    """The smallest difference between neighbours of one class: less drift than half of it keeps the order.

    Of two that are close it does not matter which comes first, so a difference counts as a sixteenth at least.
    """
    gaps = []
    for a, b in pairwise(conditions):
        if class_of(a) == class_of(b):
            sizes = _size(a, cardinality), _size(b, cardinality)
            gaps.append(max(1, abs(sizes[0] - sizes[1]), max(sizes) // 16))
    return min(gaps, default=2**62)


def _candidates(steps: Mapping[str, tuple[Condition, ...]], order: list[str]) -> list[Prefix]:
    found = []
    for owner in order:
        lengths = {rule: _overlap(steps[owner], steps[rule]) for rule in order if rule != owner}
        for length in sorted(set(lengths.values()), reverse=True):
            users = tuple(rule for rule, n in lengths.items() if n >= length)
            if length >= 2:
                found.append(Prefix(owner, steps[owner][:length], users))
    return found


def _overlap(start: tuple[Condition, ...], conditions: tuple[Condition, ...]) -> int:
    """How many conditions of `start`, from its beginning, occur among the others."""
    length = 0
    while length < len(start) and start[length] in conditions:
        length += 1
    return length


def _choose(candidates: list[Prefix]) -> tuple[Prefix, ...]:
    """Takes a prefix where it saves more than what its owner could still gain from other prefixes."""
    chosen: list[Prefix] = []
    taken: set[str] = set()
    for candidate in candidates:
        users = tuple(rule for rule in candidate.users if rule not in taken)
        free = Prefix(candidate.owner, candidate.conditions, users)
        rivals = [p for p in candidates if candidate.owner in p.users and p.owner not in taken]
        potential = max((len(p.conditions) - 1 for p in rivals), default=0)
        if candidate.owner not in taken and users and free.benefit >= max(1, potential):
            chosen.append(free)
            taken |= {candidate.owner, *users}
    return tuple(chosen)

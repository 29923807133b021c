"""The normal form of a rule: merged, without redundant parts, and refused where it says nothing."""

from __future__ import annotations

from collections.abc import Sequence

from weever_stream.model.rules.constraint import DenialConstraint, Dropped
from weever_stream.model.rules.logic import Columns, core, entails, reasons, required, satisfiable
from weever_stream.model.rules.predicate import Condition, Constant, Differ, Operator, Predicate, Row, columns_of

Conditions = tuple[Condition, ...]


class MeaninglessError(Exception):
    """A rule that no row can violate, or that every row violates. The text says why."""


def normal_form(
    conditions: Sequence[Condition], columns: Columns, key: Sequence[str] = ()
) -> tuple[Conditions, tuple[Dropped, ...]]:
    """The conditions that are evaluated, and those that need not be, with the reason. Raises MeaninglessError."""
    dropped: list[Dropped] = []
    kept = _without_repeats(conditions, dropped)
    _check_key(kept, columns, key)
    _check_meaning(kept, columns)
    kept = _without_key(kept, key, dropped)
    kept = _merged(kept, dropped)
    kept = _shorter_differs(kept, columns, dropped)
    written = kept
    kept = _with_mirror(kept, columns)
    kept = _without_redundant(kept, written, columns, dropped)
    return kept, tuple(dropped)


def compare(constraints: Sequence[DenialConstraint], columns: Columns) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Which rules mean the same as an earlier one (by place: later, first), and sentences about implied ones."""
    duplicates: list[tuple[int, int]] = []
    warnings: list[str] = []
    gone: set[int] = set()
    for j, later in enumerate(constraints):
        for i, first in enumerate(constraints[:j]):
            if gone & {i, j}:
                continue
            forward, backward = implies(later, first, columns), implies(first, later, columns)
            if forward and backward:
                duplicates.append((j, i))
                gone.add(j)
            elif forward or backward:
                narrow, wide = (later, first) if forward else (first, later)
                warnings.append(f"rule {narrow.id} adds nothing: each of its violations is also one of rule {wide.id}")
    return duplicates, tuple(warnings)


def implies(narrow: DenialConstraint, wide: DenialConstraint, columns: Columns) -> bool:
    """True where every violation of `narrow` is one of `wide`, as it stands or with t and u exchanged."""
    if narrow.is_single != wide.is_single:
        return False
    names = {column.name for column in required(narrow.conditions)}
    if not {column.name for column in required(wide.conditions)} <= names:
        return False
    if _entails_all(narrow.conditions, wide.conditions, columns):
        return True
    return not wide.is_single and _entails_all(narrow.conditions, mirror(wide.conditions), columns)


def mirror(conditions: Sequence[Condition]) -> Conditions:
    return tuple(condition.swapped for condition in conditions)


def _entails_all(premises: Conditions, conditions: Conditions, columns: Columns) -> bool:
    return all(entails(premises, condition, columns) for condition in conditions)


def _without_repeats(conditions: Sequence[Condition], dropped: list[Dropped]) -> Conditions:
    kept: dict[Condition, None] = {}
    for condition in conditions:
        if condition in kept:
            dropped.append(Dropped(condition, "it is written twice"))
        kept[condition] = None
    return tuple(kept)


def _check_key(conditions: Conditions, columns: Columns, key: Sequence[str]) -> None:
    """Two rows never share a key, so a rule about rows that do has nothing to say."""
    if not key or _is_single(conditions):
        return
    apart = Differ.of(tuple(key))
    name = ", ".join(key)
    if satisfiable(conditions, columns) and not satisfiable((*conditions, apart), columns):
        raise MeaninglessError(f"it can never be violated: no two rows have the same {name}, which is the key")
    if conditions == (apart,):
        raise MeaninglessError(f"every pair of rows violates it: any two differ in {name}, which is the key")


def _without_key(conditions: Conditions, key: Sequence[str], dropped: list[Dropped]) -> Conditions:
    """The conditions without those that hold because any two rows differ in their key.

    They stay where nothing else says that the rule is over two rows.
    """
    implied = [c for c in conditions if key and c.is_cross and entails((Differ.of(tuple(key)),), c, {})]
    rest = tuple(c for c in conditions if c not in implied)
    if _rows(rest) != _rows(conditions):
        return conditions
    dropped.extend(Dropped(c, f"no two rows have the same {', '.join(key)}, which is the key") for c in implied)
    return rest


def _rows(conditions: Conditions) -> frozenset[Row]:
    return frozenset[Row]().union(*(condition.rows for condition in conditions))


def _check_meaning(conditions: Conditions, columns: Columns) -> None:
    if not satisfiable(conditions, columns):
        culprits = core(conditions, columns)
        said = f"{_listed(culprits)} cannot {'both' if len(culprits) == 2 else 'all'} hold"
        raise MeaninglessError(
            "it can never be violated: " + (said if len(culprits) > 1 else f"{culprits[0]} never holds")
        )
    if all(_always(condition, columns) for condition in conditions):
        who = "every row" if all(condition.rows <= {"t"} for condition in conditions) else "every pair of rows"
        names = ", ".join(dict.fromkeys(column.name for column in columns_of(conditions)))
        raise MeaninglessError(f"{who} {f'with a value in {names} ' if names else ''}violates it")


def _always(condition: Condition, columns: Columns) -> bool:
    """True where the condition holds for any values at all (NULL aside)."""
    return isinstance(condition, Predicate) and entails(_any_value(condition), condition, columns)


def _any_value(predicate: Predicate) -> Conditions:
    return tuple(Predicate(column, Operator.EQ, column) for column in predicate.columns)


_MERGED = {
    frozenset((Operator.LE, Operator.NE)): Operator.LT,
    frozenset((Operator.GE, Operator.NE)): Operator.GT,
    frozenset((Operator.LE, Operator.GE)): Operator.EQ,
}


def _merged(conditions: Conditions, dropped: list[Dropped]) -> Conditions:
    """`a <= b and a != b` as `a < b`, `a <= b and a >= b` as `a = b`."""
    for count, first in enumerate(conditions):
        for second in conditions[count + 1 :]:
            one = _merge(first, second)
            if one is not None:
                dropped.append(Dropped(first, f"with {second} it says {one}"))
                dropped.append(Dropped(second, f"with {first} it says {one}"))
                rest = tuple(one if c is first else c for c in conditions if c is not second and c != one)
                return _merged(rest if one in rest else (*rest, one), dropped)
    return conditions


def _merge(first: Condition, second: Condition) -> Predicate | None:
    if not isinstance(first, Predicate) or not isinstance(second, Predicate):
        return None
    op = _MERGED.get(frozenset((first.op, second.op)))
    if op is None or (first.left, first.right) != (second.left, second.right):
        return None
    return Predicate(first.left, op, first.right)


def _shorter_differs(conditions: Conditions, columns: Columns, dropped: list[Dropped]) -> Conditions:
    """Differs without the columns that cannot differ: in `a -> a, b` only b can."""
    kept: list[Condition] = []
    for condition in conditions:
        if not isinstance(condition, Differ):
            kept.append(condition)
            continue
        rest = tuple(other for other in conditions if other is not condition)
        able = [part for part in condition.parts if satisfiable((*rest, part), columns)]
        dropped.extend(Dropped(p, "it can never hold here") for p in condition.parts if p not in able)
        kept.append(Differ.of(tuple(part.columns[0].name for part in able)))
    return tuple(kept)


def _with_mirror(conditions: Conditions, columns: Columns) -> Conditions:
    """A rule that says the same of (u, t) as of (t, u), written so that this shows."""
    missing = tuple(dict.fromkeys(c for c in mirror(conditions) if c not in conditions))
    if _is_single(conditions) or not _entails_all(conditions, missing, columns):
        return conditions
    return (*conditions, *missing)


def _is_single(conditions: Conditions) -> bool:
    return all(condition.rows <= {"t"} for condition in conditions)


def _without_redundant(
    conditions: Conditions, written: Conditions, columns: Columns, dropped: list[Dropped]
) -> Conditions:
    """The conditions that do not follow from others. Of those that go, only what was written is worth a word."""
    symmetric = not _is_single(conditions) and set(mirror(conditions)) == set(conditions)
    kept = conditions
    last_first = conditions[::-1]
    for condition in sorted(last_first, key=_keeping_worth):
        orbit = {condition, condition.swapped} if symmetric else {condition}
        rest = tuple(other for other in kept if other not in orbit)
        if condition in kept and rest and all(entails(_grounds(c, rest), c, columns) for c in orbit):
            kept = rest
            dropped.extend(Dropped(c, _reason(c, rest, columns)) for c in written if c in orbit)
    return kept


def _keeping_worth(condition: Condition) -> int:
    """Redundant conditions go in this order: an equality finds partners fast, a filter keeps rows out."""
    if not condition.rows:
        return 0
    if not condition.is_cross:
        return 2
    return 3 if isinstance(condition, Predicate) and condition.op is Operator.EQ else 1


def _grounds(condition: Condition, rest: Conditions) -> Conditions:
    """What may justify dropping a condition: filters stand on filters, equalities on other columns alone."""
    if not condition.is_cross:
        return tuple(other for other in rest if other.rows <= condition.rows)
    if isinstance(condition, Predicate) and condition.op is Operator.EQ:
        return tuple(other for other in rest if not _has_constant(other))
    return rest


def _has_constant(condition: Condition) -> bool:
    return isinstance(condition, Predicate) and isinstance(condition.right, Constant)


def _reason(condition: Condition, rest: Conditions, columns: Columns) -> str:
    if not condition.rows:
        return "it is always true"
    return f"it follows from {_listed(reasons(_grounds(condition, rest), condition, columns))}"


def _listed(conditions: Sequence[Condition]) -> str:
    return " and ".join(str(condition) for condition in conditions)

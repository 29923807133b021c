"""The naive oracle: the last image of every row in a dict, and every pair of rows tested.

It is the definition that the engine is measured against, so it is written to be read, not to be fast: one call of
`violations` costs O(rules * rows^2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any

from weever_stream.model.errors import ChangeError
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Value
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.types import UNCHANGED

Key = tuple[Value, ...]
Row = dict[str, Value]
Found = tuple[str, Key, Key | None]
"""A violation: the rule's id, the key of t, and the key of u (None for a one-row rule)."""


class Oracle:
    """What holds after some changes, recomputed from scratch each time it is asked.

    >>> rules = Rules.loads('''
    ... version: 1
    ... dataset: tax
    ... key: [id]
    ... columns: {id: long, zip: string, city: string}
    ... rules:
    ...   - {id: zip_city, fd: zip -> city}
    ... ''')
    >>> oracle = Oracle(rules)
    >>> oracle.apply([{"op": "insert", "after": {"id": 2, "zip": "90001", "city": "LA"}},
    ...               {"op": "insert", "after": {"id": 1, "zip": "90001", "city": "SF"}}])
    >>> oracle.violations()
    {('zip_city', (1,), (2,))}
    >>> oracle.groups("zip_city")
    {('90001',): (1, 2)}
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.rows: dict[Key, Row] = {}

    def apply(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Takes a batch, whole or (where one change raises ChangeError) not at all."""
        rows = dict(self.rows)
        for index, change in enumerate(changes):
            try:
                apply_change(self.rules, rows, change)
            except ValueError as error:
                raise ChangeError(str(error), index=index, position=change.get("position")) from None
        self.rows = rows

    def violations(self) -> set[Found]:
        return violations(self.rules, self.rows)

    def rows_involved(self, rule: str) -> set[Key]:
        """The keys of the rows that are in at least one violation of the rule."""
        found = violations_of(self.rules.by_id[rule], self.rows)
        return {key for _, t, u in found for key in (t, u) if key is not None}

    def groups(self, rule: str) -> dict[Key, tuple[int, int]]:
        """For each combination of the rule's equality values that holds a violation: its pairs and its rows."""
        constraint = self.rules.by_id[rule]
        members: dict[Key, list[Key]] = {}
        for _, t, u in violations_of(constraint, self.rows):
            assert u is not None
            members.setdefault(group_of(constraint, self.rows[t], self.rows[u]), []).extend((t, u))
        return {group: (len(keys) // 2, len(set(keys))) for group, keys in members.items()}


def violations(rules: Rules, rows: Mapping[Key, Row]) -> set[Found]:
    """Every violation of every rule among these rows."""
    return {found for constraint in rules for found in violations_of(constraint, rows)}


def violations_of(constraint: DenialConstraint, rows: Mapping[Key, Row]) -> Iterator[Found]:
    """Tests each row (one-row rules) or each ordered pair; a symmetric pair comes once, smaller key first."""
    if constraint.is_single:
        yield from ((constraint.id, key, None) for key, row in rows.items() if constraint.holds(row, row))
        return
    for (t, t_row), (u, u_row) in permutations(rows.items(), 2):
        if constraint.is_symmetric and u < t:
            continue
        if constraint.holds(t_row, u_row):
            yield (constraint.id, t, u)


def group_of(constraint: DenialConstraint, t: Row, u: Row) -> Key:
    """The values that t shows in the rule's equalities.

    Where the rule is symmetric either row may stand as t, so the smaller of the two labels is the group's.
    """
    columns = [predicate.left for predicate in constraint.equalities]
    names = dict.fromkeys(column.name for column in columns if isinstance(column, Column))
    label = tuple(t[name] for name in names)
    return min(label, tuple(u[name] for name in names)) if constraint.is_symmetric else label


def apply_change(rules: Rules, rows: dict[Key, Row], change: Mapping[str, Any]) -> None:
    """One change, in place: an insert of a live key is an update, a delete of an unknown key does nothing."""
    op = change.get("op")
    if op not in ("insert", "update", "delete"):
        raise ValueError(f"unknown op {op!r}")
    key, before, after = (change.get(part) or {} for part in ("key", "before", "after"))
    if op == "delete":
        rows.pop(_key(rules, before, key), None)
        return
    new = _key(rules, after, key, before)
    old = _key(rules, before, key, after) if op == "update" else new
    last = rows.pop(old, None) or rows.get(new, {})
    rows[new] = _image(rules, after, last) | dict(zip(rules.key, new, strict=True))


def _key(rules: Rules, *sources: Mapping[str, Any]) -> Key:
    """The key, from the first source that names all of its columns."""
    for source in sources:
        if all(source.get(name) is not None for name in rules.key):
            return tuple(_read(rules, name, source[name]) for name in rules.key)
    raise ValueError("no key")


def _image(rules: Rules, after: Mapping[str, Any], last: Row) -> Row:
    """The row as it is after the change. A column that is not sent is NULL, one sent as UNCHANGED keeps its value."""
    image = {name: _read(rules, name, raw) for name, raw in after.items()}
    return {name: last.get(name) if value is UNCHANGED else value for name, value in image.items()}


def _read(rules: Rules, name: str, raw: object) -> Value:
    column = rules.columns.get(name)
    if column is not None:
        return column.read(raw)
    return None if raw != raw else raw

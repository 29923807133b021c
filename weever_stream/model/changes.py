"""Changes in the `plain` format, read column by column into what the engine takes: the last image of each key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from weever_stream.model.errors import ChangeError
from weever_stream.model.rules.predicate import Differ, Value
from weever_stream.model.rules.resolve import check_comparable
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.types import UNCHANGED, ColumnType, Family, family_of

Key = Hashable  # the value of a single key column, or the tuple of several
Change = Mapping[str, Any]
Row = Mapping[str, Value]
OPS = ("insert", "update", "delete")


class Cause(NamedTuple):
    """The change behind an event; `at` is its place in the batch."""

    op: str
    key: Key
    ts_ms: int | None
    position: str | None


@dataclass(frozen=True)
class ChangeBatch:
    """A batch after reading. `keys[i]` is the key that change i writes or deletes, `moved[i]` the old key of an update
    that changes it; the cells of deletes are None."""

    changes: Sequence[Change]
    ops: Sequence[str]
    keys: Sequence[Key]
    moved: Mapping[int, Key]
    cells: Mapping[str, list[Value]]
    has_unchanged: bool

    @property
    def is_plain(self) -> bool:
        """True where every change writes a row, and none takes another key's away."""
        return not self.moved and "delete" not in self.ops

    def last(self) -> dict[Key, int]:
        """For each key the index i of the change that wrote it last, or ~i of the one that removed it last."""
        signed: Iterable[int] = range(len(self.keys))
        if "delete" in self.ops:
            signed = [~at if op == "delete" else at for at, op in enumerate(self.ops)]
        if not self.moved:
            return dict(zip(self.keys, signed, strict=True))
        last: dict[Key, int] = {}
        for at, (key, sign) in enumerate(zip(self.keys, signed, strict=True)):
            if at in self.moved:
                last[self.moved[at]] = ~at
            last[key] = sign
        return last

    def fill_unchanged(self, row_of: Callable[[Key], Row]) -> None:
        """Puts the values of the row before in place of UNCHANGED; `row_of` answers rows from before the batch."""
        known: dict[Key, Row] = {}

        def row(key: Key) -> Row:
            return known[key] if key in known else row_of(key)

        for at, (key, op) in enumerate(zip(self.keys, self.ops, strict=True)):
            old = self.moved.get(at, key)
            before = row(old) or row(key)
            for name, values in self.cells.items():
                if values[at] is UNCHANGED:
                    values[at] = before.get(name)
            known[old] = {}
            if op != "delete":
                known[key] = {name: values[at] for name, values in self.cells.items()}

    def cause(self, index: int) -> Cause:
        change = self.changes[index]
        return Cause(change["op"], self.keys[index], change.get("ts_ms"), change.get("position"))


class ChangeReader:
    """Reads plain changes of one dataset. Columns without a declared type take the family of their first value."""

    def __init__(self, rules: Rules) -> None:
        self._key, self._names, self._types = rules.key, rules.used_columns, rules.columns
        self._predicates = [
            predicate
            for constraint in rules
            for condition in constraint.conditions
            for predicate in (condition.parts if isinstance(condition, Differ) else (condition,))
        ]
        self._families: dict[str, Family] = {}

    def learn(self, cells: Mapping[str, list[Value]]) -> None:
        """Takes the families of values that were read before."""
        for name, values in cells.items():
            if name not in self._types:
                _read_undeclared(name, values, self._families)

    def read(self, changes: Sequence[Change]) -> ChangeBatch:
        """The whole batch at once. Raises ChangeError with the first change that cannot be used, and the reason."""
        families = dict(self._families)
        try:
            batch = self._read(changes, families)
        except ValueError:
            self._blame(changes)
            raise
        self._families = families
        return batch

    def _blame(self, changes: Sequence[Change]) -> None:
        families = dict(self._families)
        for index, change in enumerate(changes):
            try:
                self._read([change], families)
            except ValueError as error:
                position = change.get("position") if isinstance(change, Mapping) else None
                raise ChangeError(str(error), index=index, position=position) from error

    def _read(self, changes: Sequence[Change], families: dict[str, Family]) -> ChangeBatch:
        _require_mappings(changes, "a change is a mapping, not {}")
        _require(_fetched("ts_ms", changes), int, "ts_ms is a number of milliseconds, not {!r}")
        _require(_fetched("position", changes), str, "position is a text, not {!r}")
        ops = _fetched("op", changes)
        unknown = [op for op in ops if op not in OPS]
        if unknown:
            raise ValueError(f"unknown op {unknown[0]!r}: use insert, update or delete")
        images = _fetched("after", changes)
        if "delete" in ops:
            images = [_NO_ROW if op == "delete" else image for op, image in zip(ops, images, strict=True)]
        _require_mappings(images, "an insert or update needs its new row in `after`, not {}")
        keys = self._keys(changes, ops, images, families)
        moved = self._moved(changes, ops, keys, families) if "update" in ops else {}
        nothing = all(image is _NO_ROW for image in images)
        cells = {name: [None] * len(images) if nothing else _fetched(name, images) for name in self._names}
        has_unchanged = any(type(UNCHANGED) in set(map(type, raw)) for raw in cells.values())
        read = {name: self._column(name, raw, families) for name, raw in cells.items()}
        if not nothing:
            read |= {name: column for name, column in self._by_column(keys).items() if name in read}
        if families != self._families:
            self._check_comparable(families)
        return ChangeBatch(changes, ops, keys, moved, read, has_unchanged)

    def _check_comparable(self, families: Mapping[str, Family]) -> None:
        """Raises ValueError where a rule compares a column with what its values cannot be compared with."""
        columns = {name: ColumnType.of(family) for name, family in families.items()} | dict(self._types)
        for predicate in self._predicates:
            try:
                check_comparable(predicate.left, predicate.right, columns)
            except ValueError as error:
                raise ValueError(f"{error}; types that are declared under `columns` make this clear") from None

    def _keys(
        self, changes: Sequence[Change], ops: Sequence[str], images: Sequence[Row], families: dict[str, Family]
    ) -> list[Key]:
        sources: list[Any] = list(images)
        if "delete" in ops:
            sources = [
                change.get("before") or change.get("key") or _NO_ROW if op == "delete" else image
                for op, change, image in zip(ops, changes, images, strict=True)
            ]
            _require_mappings(sources, "`before` and `key` are mappings, not {}")
        columns = self._key_columns(sources, families)
        if any(None in column or UNCHANGED in column for column in columns):
            for at in sorted({at for column in columns for at, value in enumerate(column) if _is_hole(value)}):
                found = (part for part in map(changes[at].get, ("key", "before")) if self._has_key(part))
                sources[at] = next(found, None)
                if sources[at] is None:
                    wanted = ", ".join(self._key)
                    raise ValueError(f"no key: {wanted} must be in `key`, `after` or `before` and not null")
            columns = self._key_columns(sources, families)
        return _keys_of(columns)

    def _by_column(self, keys: Sequence[Key]) -> dict[str, list[Value]]:
        """The key columns, which `after` need not hold."""
        columns: Any = [keys] if len(self._key) == 1 else zip(*keys, strict=True)
        return {name: list(column) for name, column in zip(self._key, columns, strict=True)}

    def _key_columns(self, sources: Sequence[Row], families: dict[str, Family]) -> list[list[Value]]:
        """NULL and NaN are None."""
        return [self._column(name, _fetched(name, sources), families) for name in self._key]

    def _has_key(self, image: object) -> bool:
        if not isinstance(image, Mapping):
            return False
        return not any(_is_hole(image.get(name)) or _is_nan(image.get(name)) for name in self._key)

    def _moved(
        self, changes: Sequence[Change], ops: Sequence[str], keys: Sequence[Key], families: dict[str, Family]
    ) -> dict[int, Key]:
        """Old keys of the updates that name one, in `before` or in `key`, other than the new one."""
        sources = {}
        for at, (op, change) in enumerate(zip(ops, changes, strict=True)):
            if op == "update":
                source = next((part for part in (change.get("before"), change.get("key")) if self._has_key(part)), None)
                if source is not None:
                    sources[at] = source
        old = zip(sources, _keys_of(self._key_columns(list(sources.values()), families)), strict=True)
        return {at: key for at, key in old if key != keys[at]}

    def _column(self, name: str, raw: list[Any], families: dict[str, Family]) -> list[Value]:
        declared = self._types.get(name)
        try:
            return declared.read_all(raw) if declared is not None else _read_undeclared(name, raw, families)
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from error


_NO_ROW: Mapping[str, Any] = {}


def _fetched(name: str, parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What each part holds under a name; None where it holds nothing."""
    try:
        return [part[name] for part in parts]
    except KeyError:
        return [part.get(name) for part in parts]


def _keys_of(columns: list[list[Value]]) -> list[Key]:
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _require(values: Sequence[object], kind: type, message: str) -> None:
    if not set(map(type, values)) <= {kind, type(None)}:
        wrong = next(value for value in values if value is not None and type(value) is not kind)
        raise ValueError(message.format(wrong))


def _require_mappings(parts: Sequence[object], message: str) -> None:
    if set(map(type, parts)) <= {dict}:
        return
    for part in parts:
        if not isinstance(part, Mapping):
            raise ValueError(message.format("nothing" if part is None else type(part).__name__))


def _read_undeclared(name: str, raw: list[Any], families: dict[str, Family]) -> list[Value]:
    kinds: dict[type, Any] = dict(zip(map(type, raw), raw, strict=True))
    kinds.pop(type(None), None)
    kinds.pop(type(UNCHANGED), None)
    samples = kinds.values() if datetime not in kinds else [value for value in raw if value not in (None, UNCHANGED)]
    for value in samples:
        family = family_of(value)
        known = families.setdefault(name, family)
        if family is not known:
            raise ValueError(f"{value!r} is a {family.value}, but the column holds {known.value}s")
    if not any(issubclass(kind, float | Decimal) for kind in kinds):
        return raw
    return [None if _is_nan(value) else value for value in raw]


def _is_hole(value: object) -> bool:
    return value is None or value is UNCHANGED


def _is_nan(value: Value) -> bool:
    """A signalling NaN does not even let itself be compared."""
    return value.is_nan() if isinstance(value, Decimal) else bool(value != value)

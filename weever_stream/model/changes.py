"""Changes in the `plain` format, read into what the engine takes: the last image of each key of a batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weever_stream.model.errors import ChangeError
from weever_stream.model.rules.predicate import Value
from weever_stream.model.types import UNCHANGED, ColumnType, family_of

Key = Hashable
OPS = ("insert", "update", "delete")


@dataclass(frozen=True)
class Cause:
    """The change behind an event."""

    op: str
    key: Key
    index: int
    ts_ms: int | None
    position: str | None


@dataclass(frozen=True)
class ReadChange:
    """One change after reading: the keys it removes, and the row it writes (None for a delete)."""

    removed: tuple[Key, ...]
    key: Key
    row: Mapping[str, Value] | None
    cause: Cause


class ChangeReader:
    """Reads plain changes of one dataset. Columns without a declared type take the family of their first value."""

    def __init__(self, key: tuple[str, ...], names: Iterable[str], types: Mapping[str, ColumnType]) -> None:
        self._key = key
        self._names = tuple(names)
        self._types = types
        self._families: dict[str, object] = {}

    def read(self, index: int, change: Mapping[str, Any]) -> ReadChange:
        """Raises ChangeError with the reason where the change cannot be used."""
        position = change.get("position") if isinstance(change, Mapping) else None
        try:
            return self._read(index, change)
        except ValueError as error:
            raise ChangeError(str(error), index=index, position=position) from error

    def _read(self, index: int, change: Mapping[str, Any]) -> ReadChange:
        if not isinstance(change, Mapping):
            raise ValueError(f"a change is a mapping, not {type(change).__name__}")
        op = change.get("op")
        if op not in OPS:
            raise ValueError(f"unknown op {op!r}: use insert, update or delete")
        after = change.get("after")
        old = self._key_in(change.get("before")) or self._key_in(change.get("key"))
        new = self._key_in(after) or self._key_in(change.get("key"))
        if op == "delete":
            return self._finish(index, change, op, self._require(old), None)
        if not isinstance(after, Mapping):
            raise ValueError(f"an {op} needs its new row in `after`")
        key = self._require(new)
        removed = (self._flat(old),) if op == "update" and old is not None and old != key else ()
        return self._finish(index, change, op, key, self._row(after), removed)

    def _finish(
        self,
        index: int,
        change: Mapping[str, Any],
        op: str,
        key: tuple[Value, ...],
        row: Mapping[str, Value] | None,
        removed: tuple[Key, ...] = (),
    ) -> ReadChange:
        flat = self._flat(key)
        cause = Cause(op, flat, index, change.get("ts_ms"), change.get("position"))
        return ReadChange(removed if row is not None else (flat,), flat, row, cause)

    def _flat(self, key: tuple[Value, ...]) -> Key:
        return key[0] if len(key) == 1 else key

    def _key_in(self, image: object) -> tuple[Value, ...] | None:
        if not isinstance(image, Mapping) or any(image.get(name) is None for name in self._key):
            return None
        return tuple(self._value(name, image[name]) for name in self._key)

    def _require(self, key: tuple[Value, ...] | None) -> tuple[Value, ...]:
        if key is None or None in key:
            raise ValueError(f"no key: {', '.join(self._key)} must be in `key`, `after` or `before` and not null")
        return key

    def _row(self, after: Mapping[str, Any]) -> Mapping[str, Value]:
        return {name: self._value(name, after.get(name)) for name in self._names}

    def _value(self, name: str, raw: Any) -> Value:
        if raw is None or raw is UNCHANGED:
            return raw
        declared = self._types.get(name)
        try:
            return declared.read(raw) if declared is not None else self._undeclared(name, raw)
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from error

    def _undeclared(self, name: str, raw: Any) -> Value:
        family = family_of(raw)
        known = self._families.setdefault(name, family)
        if family is not known:
            raise ValueError(f"{raw!r} is a {family.value}, but the column holds {getattr(known, 'value', known)}s")
        return None if raw != raw else raw

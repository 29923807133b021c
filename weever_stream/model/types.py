"""Column types: which values they take, which of them can be compared, and how a raw value becomes one of ours.

A column's type decides two things alone: its `Family` (two columns can be compared exactly when their families are
the same) and how raw values are read. Numbers are kept as they come (int, float or Decimal): Python compares them by
exact value, so nothing is rounded on the way in.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from weever_stream.model.rules.predicate import Value


class Family(enum.Enum):
    """Types whose values can be compared with each other."""

    BOOL = "bool"
    NUMBER = "number"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


class _Unchanged(enum.Enum):
    UNCHANGED = "unchanged"


UNCHANGED = _Unchanged.UNCHANGED
"""Stands for a value that the source did not send because it did not change (a TOASTed column, for example)."""

_INTEGER_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_ALIASES = {
    "boolean": "bool",
    "tinyint": "byte",
    "smallint": "short",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "numeric": "decimal",
    "text": "string",
    "varchar": "string",
    "timestamptz": "timestamp",
    "timestamp_ltz": "timestamp",
}
TYPE_NAMES = ("bool", *_INTEGER_BITS, "float", "double", "decimal", "string", "date", "timestamp", "timestamp_ntz")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


@dataclass(frozen=True)
class ColumnType:
    """A named column type, as in a rule file: `long`, `string`, `decimal(10,2)`."""

    name: str

    @staticmethod
    def parse(text: str) -> ColumnType:
        """
        >>> ColumnType.parse("BIGINT").name, ColumnType.parse("decimal(10, 2)").family.value
        ('long', 'number')
        """
        name = text.strip().lower()
        name = _ALIASES.get(name, name)
        if _DECIMAL.fullmatch(name):
            return ColumnType(name.replace(" ", ""))
        if name in TYPE_NAMES:
            return ColumnType(name)
        raise ValueError(f'unknown type "{text}"')

    @staticmethod
    def of(family: Family) -> ColumnType:
        """The widest type of a family."""
        return ColumnType("decimal" if family is Family.NUMBER else family.value)

    @property
    def family(self) -> Family:
        if self.name in _INTEGER_BITS or self.name in ("float", "double") or self.name.startswith("decimal"):
            return Family.NUMBER
        return Family(self.name)

    def read(self, raw: object) -> Value:
        """One raw value (from JSON, CSV or Python) as a value of this type; NULL and NaN are None.

        Raises ValueError with a sentence where the value does not fit.
        """
        if raw is None or raw is UNCHANGED:
            return raw
        value = _READERS[self.family](raw) if self.name not in _INTEGER_BITS else _read_integer(raw, self.name)
        if value is _MISFIT:
            raise ValueError(f"{_shown(raw)} is no {self.name}")
        return value

    def read_all(self, raw: list[Any]) -> list[Value]:
        """`read` for a whole column. Cost: about 30 ns a value where all have the expected Python type already."""
        kinds = set(map(type, raw))
        holes = kinds & {type(None), type(UNCHANGED)}
        present = [value for value in raw if type(value) not in holes] if holes else raw
        if self._needs_no_reading(kinds - holes, present):
            return raw
        return [self.read(value) for value in raw]

    def _needs_no_reading(self, kinds: set[type], present: list[Any]) -> bool:
        if self.name in _INTEGER_BITS:
            limit = 1 << (_INTEGER_BITS[self.name] - 1)
            return kinds == {int} and -limit <= min(present) and max(present) < limit
        if self.family is Family.NUMBER:
            return kinds <= {int, float} and (float not in kinds or not any(value != value for value in present))
        return kinds <= _PLAIN_KINDS.get(self.family, set())


_PLAIN_KINDS: dict[Family, set[type]] = {Family.STRING: {str}, Family.BOOL: {bool}, Family.DATE: {date}}
_MISFIT = object()


def family_of(value: Value) -> Family:
    """The family of a value whose column has no declared type.

    >>> family_of(True), family_of(1.5)
    (<Family.BOOL: 'bool'>, <Family.NUMBER: 'number'>)
    """
    if isinstance(value, bool):
        return Family.BOOL
    if isinstance(value, int | float | Decimal):
        return Family.NUMBER
    if isinstance(value, str):
        return Family.STRING
    if isinstance(value, datetime):
        return Family.TIMESTAMP_NTZ if value.tzinfo is None else Family.TIMESTAMP
    if isinstance(value, date):
        return Family.DATE
    raise ValueError(f"{_shown(value)} is of a type that no column takes ({type(value).__name__})")


def _read_bool(raw: object) -> Value:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in ("true", "false"):
        return raw.lower() == "true"
    return _MISFIT


def _read_number(raw: object) -> Value:
    if isinstance(raw, bool):
        return _MISFIT
    if isinstance(raw, str):
        if "_" in raw:
            return _MISFIT
        try:
            raw = int(raw) if raw.lstrip("+-").isdigit() else Decimal(raw)
        except InvalidOperation:
            return _MISFIT
    if isinstance(raw, Decimal):
        return None if raw.is_nan() else raw
    if isinstance(raw, int | float):
        return None if raw != raw else raw
    return _MISFIT


def _read_integer(raw: object, name: str) -> Value:
    value = _read_number(raw)
    if value is None or value is _MISFIT:
        return value
    limit = 1 << (_INTEGER_BITS[name] - 1)
    return int(value) if -limit <= value < limit and value == value // 1 else _MISFIT


def _read_string(raw: object) -> Value:
    return raw if isinstance(raw, str) else _MISFIT


def _read_date(raw: object) -> Value:
    if isinstance(raw, datetime):
        return _MISFIT
    if isinstance(raw, str):
        try:
            return date.fromisoformat(raw)
        except ValueError:
            return _MISFIT
    return raw if isinstance(raw, date) else _MISFIT


def _read_datetime(raw: object) -> Value:
    if isinstance(raw, str):
        try:
            return datetime.fromisoformat(raw)
        except ValueError:
            return _MISFIT
    return raw if isinstance(raw, datetime) else _MISFIT


def _read_timestamp(raw: object) -> Value:
    """An instant in UTC; one written without a zone is taken to be UTC."""
    value = _read_datetime(raw)
    if not isinstance(value, datetime):
        return value
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return _MISFIT


def _read_timestamp_ntz(raw: object) -> Value:
    value = _read_datetime(raw)
    return _MISFIT if isinstance(value, datetime) and value.tzinfo is not None else value


_READERS: dict[Family, Callable[[object], Value]] = {
    Family.BOOL: _read_bool,
    Family.NUMBER: _read_number,
    Family.STRING: _read_string,
    Family.DATE: _read_date,
    Family.TIMESTAMP: _read_timestamp,
    Family.TIMESTAMP_NTZ: _read_timestamp_ntz,
}


def _shown(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."

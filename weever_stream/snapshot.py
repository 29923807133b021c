"""Saved monitors: versioned bytes that hold the rows; indexes and counts are built anew when they are read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from weever_stream.model.errors import StateError
from weever_stream.model.rules.predicate import Value

MAGIC = b"WEEVER"
VERSION = 1


def write(header: dict[str, Any], rows: Iterable[tuple[Value, ...]]) -> bytes:
    """
    >>> read(write({"batch": 3}, [(1, None, Decimal("1.5"))]))
    ({'batch': 3}, [(1, None, Decimal('1.5'))])
    """
    body = json.dumps([header, [tagged_row(row) for row in rows]], separators=(",", ":"))
    return MAGIC + bytes([VERSION]) + zlib.compress(body.encode("utf-8", "surrogatepass"), 1)


def read(data: bytes) -> tuple[dict[str, Any], list[tuple[Value, ...]]]:
    """Raises StateError for foreign, damaged or newer bytes."""
    if data[: len(MAGIC)] != MAGIC:
        raise StateError("this is no saved monitor: its first bytes are not a monitor's")
    version = data[len(MAGIC)] if len(data) > len(MAGIC) else 0
    if version != VERSION:
        raise StateError(f"saved with format version {version}, but this release reads version {VERSION}")
    try:
        header, rows = json.loads(zlib.decompress(data[len(MAGIC) + 1 :]).decode("utf-8", "surrogatepass"))
    except (zlib.error, ValueError) as error:
        raise StateError(f"the saved monitor is damaged: {error}") from error
    return header, [untagged_row(row) for row in rows]


def tagged_row(row: Iterable[Any]) -> list[Any]:
    """A row as JSON can hold it; `untagged_row` gives it back."""
    return [_tagged(value) for value in row]


def untagged_row(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(_untagged(value) for value in row)


def _tagged(value: Value) -> Any:
    """JSON for one value, exact and with its type where JSON has none."""
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return {"tuple": tagged_row(value)} if isinstance(value, tuple) else value


_READERS: dict[str, Any] = {
    "decimal": Decimal,
    "float": float.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "tuple": untagged_row,
}


def _untagged(raw: Any) -> Value:
    if not isinstance(raw, dict):
        return raw
    ((kind, text),) = raw.items()
    return _READERS[kind](text)

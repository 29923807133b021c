"""Tables from files (CSV, Parquet, JSON lines) as batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, json, parquet

from weever_stream.model.errors import WeeverError
from weever_stream.model.rules.nearest import did_you_mean
from weever_stream.model.types import ColumnType, Family

Row = dict[str, Any]
Columns = Mapping[str, ColumnType]
ENDINGS = (".csv", ".parquet", ".json", ".jsonl", ".csv.gz", ".json.gz", ".jsonl.gz")
BATCH = 50_000

_TYPES = {
    "int8": "byte",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "halffloat": "float",
    "float": "float",
    "large_string": "string",
    "string_view": "string",
    "date32[day]": "date",
}
_AS_WRITTEN = (Family.STRING, Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ)


@dataclass(frozen=True)
class Table:
    """The columns of a file that rules read. `columns` are their types: the declared ones, the file's for the rest."""

    path: Path
    columns: Columns
    data: Any

    @property
    def rows(self) -> int:
        return int(self.data.num_rows)

    def batches(self) -> Iterator[list[Row]]:
        for batch in self.data.to_batches(max_chunksize=BATCH):
            yield batch.to_pylist()


def read_table(path: Path, columns: Iterable[str], declared: Columns) -> Table:
    """The named columns of a table. Raises WeeverError.

    An empty CSV cell is NULL. The `declared` columns of a CSV come as they are written, the rule file's types read
    them; the others get the type that all their cells share.
    """
    if not path.exists():
        raise WeeverError(f"{path}: cannot be read: No such file or directory")
    try:
        data = _read(path, declared)
        wanted = list(columns)
        _check_names(path, wanted, data.column_names)
        data = _in_microseconds(data.select(wanted))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _one_line(error)
        raise WeeverError(f"{path}: cannot be read: {reason}") from error
    except pa.ArrowException as error:
        raise WeeverError(f"{path}: {_one_line(error)}") from error
    found = {name: _type(path, data.schema.field(name)) for name in wanted if name not in declared}
    types = {name: ColumnType.parse(type_) for name, type_ in found.items() if type_ is not None}
    return Table(path, {**declared, **types}, data)


def _read(path: Path, declared: Columns) -> Any:
    ending = path.name.lower()
    if not ending.endswith(ENDINGS):
        raise WeeverError(f"{path}: of an unknown kind; a table ends in {', '.join(ENDINGS)}")
    if ending.endswith(".parquet"):
        return parquet.read_table(path)
    if ending.endswith((".csv", ".csv.gz")):
        types = {name: pa.string() for name in declared}
        return csv.read_csv(
            path, convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=types)
        )
    texts = pa.schema([(name, pa.string()) for name, type_ in declared.items() if type_.family in _AS_WRITTEN])
    return json.read_json(path, parse_options=json.ParseOptions(explicit_schema=texts))


def _check_names(path: Path, wanted: list[str], names: list[str]) -> None:
    missing = [f'no column "{name}"{did_you_mean(name, names)}' for name in wanted if name not in names]
    twice = [f'two columns are called "{name}"' for name in wanted if names.count(name) > 1]
    if missing or twice:
        has = f"; it has {', '.join(names)}" if missing else ""
        raise WeeverError(f"{path}: {', '.join(missing + twice)}{has}")


def _in_microseconds(data: Any) -> Any:
    """Timestamps as exactly as Python holds them. Raises ArrowInvalid where that would lose something."""
    fields = [
        field.with_type(pa.timestamp("us", field.type.tz)) if pa.types.is_timestamp(field.type) else field
        for field in data.schema
    ]
    return data.cast(pa.schema(fields))


def _type(path: Path, field: Any) -> str | None:
    """The name of the field's type as rule files have it; None where no row has a value."""
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_null(type_):
        return None
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_decimal(type_) or pa.types.is_unsigned_integer(type_):
        return "decimal"
    name = _TYPES.get(str(type_), str(type_))
    if name in ("bool", "double", "string") or name in _TYPES.values():
        return name
    hint = ": save the file as UTF-8" if name == "binary" and ".csv" in path.suffixes else ""
    raise WeeverError(f"{path}: column {field.name} is of the type {name}, which no rule can read{hint}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

"""Tables from files (CSV, Parquet, JSON lines) as batches of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, json, parquet

from weever_stream.model.errors import WeeverError

Row = dict[str, Any]
ENDINGS = (".csv", ".parquet", ".json", ".jsonl")
BATCH = 50_000


def read_rows(path: Path, columns: Iterable[str], declared: Collection[str]) -> Iterator[list[Row]]:
    """The named columns of a table, batch by batch. Raises WeeverError.

    An empty CSV cell is NULL. The `declared` columns of a CSV come as they are written, the rule file's types read
    them; the others get the type that all their cells share.
    """
    try:
        table = _table(path, declared)
    except (OSError, pa.ArrowException) as error:
        raise WeeverError(f"{path}: {error}") from error
    wanted = list(columns)
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise WeeverError(f"{path}: no column {', '.join(missing)}; it has {', '.join(table.column_names)}")
    for batch in table.select(wanted).to_batches(max_chunksize=BATCH):
        yield batch.to_pylist()


def _table(path: Path, declared: Collection[str]) -> Any:
    ending = path.suffix.lower()
    if ending == ".csv":
        types = {name: pa.string() for name in declared}
        options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=types)
        return csv.read_csv(path, convert_options=options)
    if ending == ".parquet":
        return parquet.read_table(path)
    if ending in ENDINGS:
        return json.read_json(path)
    raise WeeverError(f"{path}: of an unknown kind; a table ends in {', '.join(ENDINGS)}")

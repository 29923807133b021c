"""Counts on the public data sets: tax against the table in their README, hospital against self-joins in DuckDB."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from weever_stream import Monitor, Rules

DATASETS = Path(__file__).resolve().parents[3] / "shared" / "datasets"
BATCH = 10_000
pytestmark = pytest.mark.skipif(not DATASETS.exists(), reason="the shared datasets are not beside the repository")

TAX = {  # rule: ordered pairs in dirty.csv; clean.csv has none of any
    "zip_city": ("zip -> city", 161_964),
    "zip_state": ("zip -> state", 161_028),
    "zip_child": ("zip, has_child -> child_exemp", 38_746),
    "zip_single": ("zip, marital_status -> single_exemp", 36_688),
    "zip_married": ("zip, marital_status -> married_exemp", 37_830),
    "name_gender": ("f_name -> gender", 0),
    "area_state": ("area_code -> state", 485_468),
    "phone_area": ("phone, zip -> area_code", 0),
}


def header(dataset: str, columns: list[str], emit: str) -> str:
    types = ", ".join(["id: long", *(f"{name}: string" for name in columns)])
    return f"version: 1\ndataset: {dataset}\nkey: [id]\ncolumns: {{{types}}}\nrules:\n" + rules_text(dataset, emit)


def rules_text(dataset: str, emit: str) -> str:
    if dataset == "tax":
        lines = [f'  - {{id: {name}, fd: "{fd}", emit: {emit}}}' for name, (fd, _) in TAX.items()]
        return "\n".join([*lines, f"  - {{id: area_phone, unique: [area_code, phone], emit: {emit}}}\n"])
    lines = [f'  - {{id: {name}, deny: "{deny}", emit: {emit}}}' for name, deny, _ in hospital_rules()]
    return "\n".join(lines) + "\n"


def hospital_rules() -> Iterator[tuple[str, str, str]]:
    """Each constraint of the file as (id, `deny` text, SQL condition)."""
    for number, line in enumerate((DATASETS / "hospital" / "constraints.txt").read_text().split()):
        parts = [part[:-1].split("(") for part in line.split("&")[2:]]
        cells = [(name.split(",")[0].removeprefix("t1."), "=" if op == "EQ" else "!=") for op, name in parts]
        deny = " and ".join(f"t.{name} {op} t'.{name}" for name, op in cells)
        sql = " and ".join(f'a."{name}" {op} b."{name}"' for name, op in cells)
        yield f"hospital_{number}", deny, sql


def read(path: Path) -> list[dict[str, Any]]:
    """The rows with their number from 0 as `id`; an empty cell is NULL."""
    with path.open(newline="") as lines:
        rows = csv.DictReader(lines)
        return [{"id": n} | {name: value or None for name, value in row.items()} for n, row in enumerate(rows)]


def send(monitor: Monitor, op: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    events = []
    for start in range(0, len(rows), BATCH):
        events += monitor.apply([{"op": op, "after": row} for row in rows[start : start + BATCH]])
    return events


def ordered(monitor: Monitor) -> dict[str, int]:
    """All rules here are symmetric: each open violation stands for two ordered pairs."""
    return {name: 2 * count for name, count in monitor.counts().items()}


@pytest.fixture(scope="module")
def tax() -> dict[str, list[dict[str, Any]]]:
    return {name: read(DATASETS / "tax" / f"{name}.csv") for name in ("dirty", "clean")}


def tax_monitor(rows: list[dict[str, Any]], emit: str) -> Monitor:
    return Monitor(Rules.loads(header("tax", [name for name in rows[0] if name != "id"], emit)))


WANTED = {name: pairs for name, (_, pairs) in TAX.items()} | {"area_phone": 0}


@pytest.mark.parametrize("emit", ["counts", "rows", "groups"])
def test_tax_counts(tax: dict[str, list[dict[str, Any]]], emit: str) -> None:
    monitor = tax_monitor(tax["dirty"], emit)
    send(monitor, "insert", tax["dirty"])
    assert monitor.rows == 55_000
    assert ordered(monitor) == WANTED


def test_clean_tax_holds_every_rule(tax: dict[str, list[dict[str, Any]]]) -> None:
    monitor = tax_monitor(tax["clean"], "pairs")
    assert send(monitor, "insert", tax["clean"]) == []
    assert ordered(monitor) == dict.fromkeys(WANTED, 0)


def test_cleaning_tax_retracts_all_that_was_announced(tax: dict[str, list[dict[str, Any]]]) -> None:
    monitor = tax_monitor(tax["dirty"], "pairs")
    opened = send(monitor, "insert", tax["dirty"])
    assert {event["op"] for event in opened} == {"new"}
    assert len({event["id"] for event in opened}) == len(opened) == sum(WANTED.values()) // 2
    known = {event["id"] for event in opened}
    for event in send(monitor, "update", tax["clean"]):
        known.add(event["id"]) if event["op"] == "new" else known.remove(event["id"])
    assert known == set()
    assert ordered(monitor) == dict.fromkeys(WANTED, 0)


def test_deleting_tax_leaves_nothing(tax: dict[str, list[dict[str, Any]]]) -> None:
    monitor = tax_monitor(tax["dirty"], "counts")
    send(monitor, "insert", tax["dirty"])
    for start in range(0, 55_000, BATCH):
        monitor.apply([{"op": "delete", "key": {"id": n}} for n in range(start, min(start + BATCH, 55_000))])
    assert monitor.rows == 0
    assert ordered(monitor) == dict.fromkeys(WANTED, 0)


def hospital_pairs() -> dict[str, int]:
    """Ordered pairs of each rule, by self-join; DuckDB reads an empty cell as NULL, as we do."""
    source = DATASETS / "hospital" / "dirty.csv"
    with duckdb.connect() as connection:
        connection.execute(f"create table h as select * from read_csv('{source}', all_varchar = true)")
        query = "select count(*) from h a join h b on a.rowid != b.rowid and {}"
        return {name: connection.execute(query.format(sql)).fetchall()[0][0] for name, _, sql in hospital_rules()}


def test_hospital_counts() -> None:
    rows = read(DATASETS / "hospital" / "dirty.csv")
    monitor = Monitor(Rules.loads(header("hospital", [name for name in rows[0] if name != "id"], "pairs")))
    events = send(monitor, "insert", rows)
    wanted = hospital_pairs()
    assert len(wanted) == 15
    assert ordered(monitor) == wanted
    assert len(events) == sum(wanted.values()) // 2


def test_the_constraint_file_of_hospital_is_read_as_it_is() -> None:
    rows = read(DATASETS / "hospital" / "dirty.csv")
    rules = replace(Rules.load(DATASETS / "hospital" / "constraints.txt"), key=("id",))
    monitor = Monitor(rules)
    send(monitor, "insert", rows)
    assert sorted(ordered(monitor).values()) == sorted(hospital_pairs().values())

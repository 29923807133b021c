"""`weever-stream plan RULES DATA`: which tables it reads, what it says of those that it cannot, and how far it is."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from weever_stream.cli import progress
from weever_stream.cli.main import main

Call = Callable[..., tuple[int, str, str]]
RULES = """\
version: 1
dataset: tax
key: [id]
rules:
  - {id: zip_city, fd: zip -> city}
  - {id: big, deny: t.n > 5}
"""
CSV = "id,zip,city,n\n1,90001,LA,1\n2,90001,SF,7\n3,94016,,\n"
JSON = '{"id": 1, "zip": "90001", "city": "LA", "n": 7}\n'


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `plan` in a folder of its own; answers exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(RULES, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["weever-stream", "plan", *arguments])
        code = 0
        try:
            main()
        except SystemExit as error:
            code = int(error.code or 0)
        return code, *capsys.readouterr()

    return run


def write_rules(*denied: str, columns: str = "", top: str = "") -> None:
    head = f"version: 1\ndataset: tax\nkey: [id]\n{top}" + (f"columns: {columns}\n" if columns else "")
    rules = [f"  - id: r{at}\n    deny: |\n      {text}\n" for at, text in enumerate(denied)]
    Path("r.yaml").write_text(head + "rules:\n" + "".join(rules), encoding="utf-8")


@pytest.mark.parametrize("name", ["a.csv", "A.CSV", "a.csv.gz", "a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_tables_of_every_kind_are_read(call: Call, name: str) -> None:
    if name.lower().startswith("a.csv"):
        content = CSV.encode()
    else:
        content = (JSON + JSON.replace("LA", "SF") + JSON.replace("90001", "1")).encode()
    if name == "a.parquet":
        columns = {"zip": ["90001", "90001", None], "city": ["LA", "SF", None], "n": [1, 2, None]}
        parquet.write_table(pa.table(columns), name)
    else:
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    code, out, err = call("r.yaml", name, "--json")
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert (plan["rows"], plan["routes"][0]["sides"][0]["largest_partition"]) == (3, 2)


def test_one_is_not_many(call: Call) -> None:
    Path("a.csv").write_text(CSV.splitlines()[0] + "\n1,90001,LA,1\n", encoding="utf-8")
    assert call("r.yaml", "a.csv")[1].startswith("tax: 1 row, 1 route\n")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("no.csv", None, "no.csv: cannot be read: No such file or directory"),
        ("a.txt", b"x", "a.txt: of an unknown kind; a table ends in .csv, .parquet, "),
        ("a.csv", b"id,zipp,City,n\n", 'a.csv: no column "zip": did you mean "zipp"?, no column "city": did you mean'),
        ("a.csv", b"id,zip,zip,city,n\n1,a,b,c,1\n", 'a.csv: two columns are called "zip"'),
        (
            "a.csv",
            b"id,zip,city,n\n1,a,S\xe9o,1\n",
            "a.csv: column city is of the type binary, which no rule can read: ",
        ),
        ("a.csv", b'id,zip,city,n\n1,"a\nb"\n', "a.csv: CSV parse error: Expected 4 columns, got 2: "),
        ("a.csv", b"id,zip,city,n\n1,a,b,x\n", "a.csv: rule big: cannot compare n (string) with the number 5: "),
        ("a.jsonl", b'{"zip": {"a": 1}, "city": "b", "n": 1}\n', "a.jsonl: column zip is of the type struct<a: int64>"),
        ("a.parquet", b"x", "a.parquet: "),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(call: Call, name: str, content: bytes | None, told: str) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    code, out, err = call("r.yaml", name)
    assert (code, out) == (2, "")
    assert err.startswith(told)
    assert err.count("\n") == 1


def test_a_cell_that_does_not_fit_is_told_with_its_row(call: Call) -> None:
    write_rules("t.n > 5", columns="{id: long, n: int}")
    rows = [f"{at},{at}" for at in range(60_000)]
    rows[55_555] = "1,x"
    Path("a.csv").write_text("id,n\n" + "\n".join(rows), encoding="utf-8")
    assert call("r.yaml", "a.csv") == (2, "", "a.csv: row 55555 (counted from 0): column n: 'x' is no int\n")


def test_columns_that_are_not_declared_have_the_type_of_the_table(call: Call) -> None:
    write_rules("t.d < '2020-06-01' and t.moment > '2020-06-01'")
    table = pa.table({"d": [date(2020, 1, 1)], "moment": pa.array([datetime(2020, 7, 1)], pa.timestamp("ns", "UTC"))})
    parquet.write_table(table, "a.parquet")
    code, out, err = call("r.yaml", "a.parquet")
    assert (code, err) == (0, "")
    assert "No row has d < '2020-06-01' and moment > '2020-06-01 00:00:00+00:00'." in out
    write_rules("t.d < t'.moment")
    told = "a.parquet: rule r0: cannot compare d (date) with moment (timestamp)\n"
    assert call("r.yaml", "a.parquet") == (2, "", told)


def test_texts_that_look_like_dates_stay_what_the_rules_say(call: Call) -> None:
    write_rules("t.day < t'.day and t.note = t'.note", columns="{id: long, day: date, note: string}")
    Path("a.jsonl").write_text('{"id": 1, "day": "2020-01-01", "note": "2020-01-01"}\n', encoding="utf-8")
    assert call("r.yaml", "a.jsonl")[0] == 0


def test_nanoseconds_that_python_cannot_hold_are_refused(call: Call) -> None:
    write_rules("t.moment < t'.moment")
    parquet.write_table(pa.table({"moment": pa.array([1577872800000000001], pa.timestamp("ns"))}), "a.parquet")
    code, _, err = call("r.yaml", "a.parquet")
    assert (code, err.count("\n")) == (2, 1)
    assert "would lose data" in err


def test_the_plan_hides_constants_of_redacted_columns(call: Call) -> None:
    denied = ("t.ssn = 'SECRET' and t.ssn >= 'SECRET'", "t.ssn = 'SECRET' and t.zip = t'.zip and t.ssn != 'OTHER'")
    write_rules(*denied, top="redact: [ssn]\n")
    for arguments in ((), ("--json",)):
        code, out, err = call("r.yaml", *arguments)
        assert code == 0
        assert "(hidden)" in out
        assert "SECRET" not in out + err
        assert "OTHER" not in out + err


def test_work_that_takes_long_says_how_far_it_is(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    Path("a.csv").write_text(CSV, encoding="utf-8")
    code, out, err = call("r.yaml", "a.csv")
    assert (code, err) == (0, "reading a.csv: 3 of 3 rows\n")
    assert out.startswith("tax: 3 rows, 1 route\n")

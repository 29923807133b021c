"""The monitor as a library: explanations, snapshots, redaction, refusals, plan."""

from __future__ import annotations

import ast
import json
import math
import random
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from weever_stream import Monitor, Rules, Violation
from weever_stream.engine import route
from weever_stream.model.errors import ChangeError, InvariantError, StateError, WeeverError
from weever_stream.model.rules.predicate import Value
from weever_stream.model.types import UNCHANGED
from weever_stream.plan import plan_of, text_of

RULES = """
version: 1
dataset: tax
key: [id]
columns: {id: long, zip: string, city: string, salary: long, rate: double}
rules:
  - {id: zip_city, fd: zip -> city}
  - {id: fair, deny: "t.zip = t'.zip and t.salary > t'.salary and t.rate < t'.rate"}
  - {id: sane, deny: t.rate > 60}
"""
ROWS = [
    {"id": 1, "zip": "90001", "city": "LA", "salary": 10, "rate": 3.0},
    {"id": 2, "zip": "90001", "city": "SF", "salary": 20, "rate": 2.0},
    {"id": 3, "zip": "90002", "city": "NY", "salary": 20, "rate": 70.0},
]


def inserts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"op": "insert", "after": row, "position": f"feed@{row['id']}"} for row in rows]


@pytest.fixture
def monitor() -> Monitor:
    monitor = Monitor(Rules.loads(RULES))
    monitor.apply(inserts(ROWS))
    return monitor


def test_events_have_the_fields_of_the_contract() -> None:
    events = Monitor(Rules.loads(RULES)).apply(inserts(ROWS), detected_ms=5)
    event = next(event for event in events if event["rule"] == "zip_city")
    assert event["message"] == "zip 90001 has city LA (id 1) and city SF (id 2)"
    assert event["cause"] == {"op": "insert", "key": {"id": 2}, "position": "feed@2"}
    assert (event["v"], event["op"], event["detected_ms"], event["batch"]) == (1, "new", 5, 0)
    assert event["t"] == {"key": {"id": 1}, "row": {"zip": "90001", "city": "LA"}}
    assert len(event["id"]) == 32


def test_explanation_shows_the_pair_and_its_sql_finds_it(monitor: Monitor) -> None:
    found = {violation.rule: violation for rule in monitor.rules for violation in monitor.violations(rule.id)}
    explained = monitor.explain(found["fair"])
    assert [(e.left, e.right) for e in explained.evidence] == [("90001", "90001"), (20, 10), (2.0, 3.0)]
    assert explained.cause is not None
    assert explained.cause.position == "feed@2"
    database = duckdb.connect()
    database.execute("create table tax (id bigint, zip text, city text, salary bigint, rate double)")
    database.executemany("insert into tax values (?, ?, ?, ?, ?)", [list(row.values()) for row in ROWS])
    for violation in found.values():
        assert len(database.execute(monitor.explain(violation).sql).fetchall()) == 1


def test_explaining_what_does_not_hold_is_refused(monitor: Monitor) -> None:
    for violation in (
        Violation("zip_city", (1,), (3,)),
        Violation("zip_city", (1,), (9,)),
        Violation("sane", (1,), None),
    ):
        with pytest.raises(WeeverError, match="does not hold now"):
            monitor.explain(violation)
    with pytest.raises(WeeverError, match='unknown rule "zipcity"'):
        list(monitor.violations("zipcity"))


def test_a_loaded_monitor_goes_on_where_the_saved_one_was(monitor: Monitor) -> None:
    loaded = Monitor.load(monitor.save(), monitor.rules)
    change = [{"op": "delete", "key": {"id": 2}}]
    assert loaded.apply(change, detected_ms=1) == monitor.apply(change, detected_ms=1)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: b"hello" + data, "no saved monitor"),
        (lambda data: data[:6] + bytes([99]) + data[7:], "format version 99"),
        (lambda data: data[:40], "damaged"),
    ],
)
def test_foreign_bytes_are_refused(monitor: Monitor, damage: Any, sentence: str) -> None:
    with pytest.raises(StateError, match=sentence):
        Monitor.load(damage(monitor.save()), monitor.rules)


def test_other_rules_are_refused(monitor: Monitor) -> None:
    with pytest.raises(StateError, match="other rules"):
        Monitor.load(monitor.save(), Rules.loads(RULES.replace("rate > 60", "rate > 61")))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"op": "upsert", "after": {"id": 1}}, "unknown op 'upsert'"),
        ({"op": "insert"}, "needs its new row"),
        ({"op": "delete", "before": {"zip": "1"}}, "no key: id"),
        ({"op": "insert", "after": {"id": 4, "salary": "much"}}, "column salary: 'much' is no long"),
        ("insert", "a change is a mapping, not str"),
    ],
)
def test_a_bad_change_is_named_and_nothing_of_its_batch_is_taken(monitor: Monitor, change: Any, sentence: str) -> None:
    before = monitor.save()
    with pytest.raises(ChangeError, match=sentence) as caught:
        monitor.apply([{"op": "delete", "key": {"id": 1}}, change])
    assert caught.value.index == 1
    assert monitor.save() == before


@pytest.mark.parametrize(
    ("deny", "row"),
    [
        ("t.d < '2020-06-01'", {"d": date(2020, 1, 1)}),
        ("t.d = 5", {"d": "5"}),
        ("t.a = t'.b", {"a": "5", "b": 5}),
        ("t.a = t'.b", {"a": True, "b": 1}),
        ("t.a < t'.b", {"a": date(2020, 1, 1), "b": datetime(2020, 1, 1)}),
    ],
)
def test_values_that_a_rule_cannot_compare_are_refused_where_no_type_is_declared(deny: str, row: Any) -> None:
    monitor = Monitor(Rules.loads(f'version: 1\ndataset: d\nkey: [id]\nrules: [{{id: r, deny: "{deny}"}}]'))
    with pytest.raises(ChangeError, match=r"cannot compare .* declared under `columns`") as caught:
        monitor.apply([{"op": "delete", "key": {"id": 2}}, {"op": "insert", "after": {"id": 1} | row}])
    assert caught.value.index == 1
    assert monitor.rows == 0


def test_a_signalling_nan_is_null_in_a_column_of_any_type() -> None:
    monitor = Monitor(Rules.loads("version: 1\ndataset: d\nkey: [id]\nrules: [{id: r, unique: [a]}]"))
    assert monitor.apply(inserts([{"id": n, "a": Decimal("sNaN")} for n in range(2)])) == []


FD = 'version: 1\ndataset: d\nkey: [id]\nrules: [{id: r, fd: "g -> s"}]'


def test_a_change_that_did_nothing_to_a_rule_is_not_the_cause_of_what_happened() -> None:
    monitor = Monitor(Rules.loads(FD))
    rows = [{"id": n, "g": 1, "s": "a"} for n in (1, 2)]
    monitor.apply(inserts(rows))
    (opened,) = monitor.apply([{"op": "update", "after": rows[0] | {"s": "b"}}, {"op": "insert", "after": rows[1]}])
    assert (opened["cause"]["op"], opened["cause"]["key"]) == ("update", {"id": 1})


@pytest.mark.parametrize("emit", ["pairs", "rows", "groups"])
def test_a_violation_that_a_delete_ended_is_not_called_repaired(emit: str) -> None:
    text = f"version: 1\ndataset: d\nkey: [id]\nrules: [{{id: r, unique: [g], emit: {emit}}}, {{id: x, unique: [x]}}]"
    monitor = Monitor(Rules.loads(text))
    monitor.apply(inserts([{"id": 1, "g": 1, "x": 1}, {"id": 2, "g": 1, "x": 2}]))
    ended = monitor.apply([{"op": "delete", "key": {"id": 1}}, {"op": "update", "after": {"id": 2, "g": 1, "x": 9}}])
    assert {(event["reason"], event["cause"]["op"]) for event in ended} == {("deleted", "delete")}


def test_a_key_that_only_key_holds_is_a_cell_too() -> None:
    monitor = Monitor(Rules.loads("version: 1\ndataset: d\nkey: [id]\nrules: [{id: r, deny: t.id = t'.parent}]"))
    rows = [{"op": "insert", "key": {"id": n}, "after": {"parent": n + 1}} for n in range(3)]
    assert len(monitor.apply(rows)) == 2
    unchanged = {"op": "update", "key": {"id": 1}, "after": {"id": UNCHANGED, "parent": 7}}
    assert [event["reason"] for event in monitor.apply([unchanged])] == ["repaired"]
    assert monitor.rows == 3


@pytest.mark.parametrize("emit", ["pairs", "rows", "groups"])
@pytest.mark.parametrize("limit", [0, 4_096])
def test_a_loaded_monitor_sends_the_same_events(emit: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order in which its rows stand, and whichever way partners are searched."""
    monkeypatch.setattr(route, "SCAN_LIMIT", {"=": limit, "<": limit})
    rules = Rules.loads(
        "version: 1\ndataset: d\nkey: [id]\nrules:\n"
        f"  - {{id: fd, fd: g -> s, emit: {emit}, max_pairs: 3}}\n"
        f"  - {{id: order, deny: \"t.g = t'.g and t.n > t'.n and t.m < t'.m\", emit: {emit}, max_pairs: 2}}\n"
    )
    rng = random.Random(5)

    def batch() -> list[dict[str, Any]]:
        rows = [{"id": rng.randrange(60), **{name: rng.randrange(4) for name in "gsnm"}} for _ in range(30)]
        return [{"op": "delete" if row["s"] == 0 else "update", "after": row, "key": {"id": row["id"]}} for row in rows]

    monitor = Monitor(rules)
    for _ in range(12):
        loaded, changes = Monitor.load(monitor.save(), rules), batch()
        assert loaded.apply(changes, detected_ms=1) == monitor.apply(changes, detected_ms=1)
        monitor.check()


@pytest.mark.parametrize(("old", "new"), [("key: [id]", "key: [id, zip]"), ("dataset: tax", "dataset: other")])
def test_a_monitor_is_not_loaded_under_another_key_or_dataset(monitor: Monitor, old: str, new: str) -> None:
    with pytest.raises(StateError, match="other rules"):
        Monitor.load(monitor.save(), Rules.loads(RULES.replace(old, new)))


def test_no_batch_is_taken_after_one_that_failed_halfway(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor.shard, "settle", lambda _outcome: {}["gone"])
    with pytest.raises(KeyError):
        monitor.apply(inserts([{"id": 9, "zip": "90001", "city": "X"}]))
    with pytest.raises(InvariantError, match="failed halfway"):
        monitor.apply([])


def test_check_notices_groups_and_degrees_that_are_kept_wrongly() -> None:
    for emit in ("groups", "rows"):
        monitor = Monitor(Rules.loads(FD.replace('"}', f'", emit: {emit}}}')))
        monitor.apply(inserts([{"id": n, "g": 1, "s": n} for n in range(3)]))
        monitor.check()
        monitor.shard.groups["r"].clear() if emit == "groups" else monitor.shard._degrees["r"].fill(0)
        with pytest.raises(InvariantError, match="rule r"):
            monitor.check()


def test_max_pairs_caps_pairs_and_says_so_but_never_rows() -> None:
    rows = [{"id": n, "zip": "90001", "city": f"City {n}"} for n in range(4)]
    pairs = Monitor(Rules.loads(RULES.replace("fd: zip -> city", "fd: zip -> city, max_pairs: 1")))
    pairs.apply(inserts(rows[:3]))
    (event,) = pairs.apply(inserts(rows[3:]))
    assert event["omitted"] == 2
    assert pairs.counts()["zip_city"] == 6
    by_row = Monitor(Rules.loads(RULES.replace("fd: zip -> city", "fd: zip -> city, max_pairs: 1, emit: rows")))
    assert {event["t"]["key"]["id"] for event in by_row.apply(inserts(rows))} == {0, 1, 2, 3}


def test_redacted_values_leave_as_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules.loads(RULES.replace("key: [id]", "key: [id]\nredact: [city]"))
    monkeypatch.delenv("WEEVER_REDACT_SECRET", raising=False)
    with pytest.raises(WeeverError, match="WEEVER_REDACT_SECRET"):
        Monitor(rules)
    monkeypatch.setenv("WEEVER_REDACT_SECRET", "s3cret")
    monitor = Monitor(rules)
    events = monitor.apply(inserts(ROWS))
    shown = json.dumps(events) + str(monitor.explain(next(iter(monitor.violations("zip_city")))))
    assert "LA" not in shown
    assert "SF" not in shown
    assert "90001" in shown


def test_the_id_of_a_violation_of_redacted_keys_depends_on_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, somebody could try keys until one gives the id."""
    rules, ids = Rules.loads(RULES.replace("key: [id]", "key: [id]\nredact: [id]")), set()
    for secret in ("one", "two"):
        monkeypatch.setenv("WEEVER_REDACT_SECRET", secret)
        monitor = Monitor(rules)
        (event,) = [event for event in monitor.apply(inserts(ROWS)) if event["rule"] == "zip_city"]
        ids.add(event["id"])
        assert monitor.explain(next(iter(monitor.violations("zip_city")))).cause is not None
    assert len(ids) == 2


def test_an_explanation_hides_constants_and_keys_of_redacted_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEEVER_REDACT_SECRET", "s3cret")
    head = "version: 1\ndataset: d\nkey: [ssn]\nredact: [ssn, name]\ncolumns: {ssn: string, name: string}\nrules:\n"
    monitor = Monitor(Rules.loads(head + "  - {id: r, deny: t.name = 'Ada'}\n"))
    monitor.apply([{"op": "insert", "after": {"ssn": "078-05", "name": "Ada"}}])
    explained = monitor.explain(next(monitor.violations("r")))
    assert "Ada" not in repr(explained) + str(explained)
    assert "078-05" not in repr(explained) + str(explained)
    (evidence,) = explained.evidence
    assert evidence.left == evidence.right


@pytest.mark.parametrize(
    ("type_", "sql_type", "keys"),
    [
        ("double", "DOUBLE", [0.1, 1e300, 5e-324, math.inf, -math.inf]),
        ("decimal(20,3)", "DECIMAL(20,3)", [Decimal("0.001"), Decimal("1E+3"), Decimal("12345678901234567.125")]),
        ("string", "VARCHAR", ["it's", "\\'", "", "a\nb", "é;--"]),
        ("bool", "BOOLEAN", [True, False]),
        ("date", "DATE", [date(1, 1, 1), date(2020, 2, 29), date(9999, 12, 31)]),
        ("timestamp_ntz", "TIMESTAMP", [datetime(2020, 1, 1), datetime(2020, 1, 1, 1, 2, 3, 4)]),
        ("timestamp", "TIMESTAMPTZ", [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 7, 1, 1, 2, 3, 4, tzinfo=UTC)]),
    ],
)
def test_the_sql_of_an_explanation_names_values_of_every_type(type_: str, sql_type: str, keys: list[Value]) -> None:
    columns = f"{{a: '{type_}', \"b c\": '{type_}', g: long}}"
    rules = '  - {id: same, unique: [g]}\n  - {id: less, deny: t.a < t\'."b c"}\n'
    monitor = Monitor(Rules.loads(f"version: 1\ndataset: my table\nkey: [a]\ncolumns: {columns}\nrules:\n{rules}"))
    monitor.apply([{"op": "insert", "after": {"a": key, "b c": key, "g": 1}} for key in keys])
    database = duckdb.connect()
    database.execute("SET TimeZone = 'America/New_York'")
    database.execute(f'CREATE TABLE "my table" (a {sql_type}, "b c" {sql_type}, g BIGINT)')
    database.executemany('INSERT INTO "my table" VALUES (?, ?, 1)', [[key, key] for key in keys])
    found = [violation for rule in ("same", "less") for violation in monitor.violations(rule)]
    assert len(found) == len(keys) * (len(keys) - 1)
    for violation in found:
        counted = monitor.explain(violation).sql.replace("SELECT *", "SELECT count(*)")
        assert database.execute(counted).fetchall() == [(1,)], counted


def test_plan_names_routes_indexes_and_order(monitor: Monitor) -> None:
    plan = plan_of(monitor)
    (route,) = plan["routes"]
    assert route["equalities"] == ["t.zip = t'.zip"]
    assert route["sides"][0]["hash_indexes"] == ["city"]
    assert route["sides"][0]["lt_trees"] == ["rate", "salary"]
    assert route["sides"][0]["frontiers"] == [("salary", "rate")]
    fair = next(rule for rule in route["rules"] if rule["rule"] == "fair")
    assert [step["cardinality"] for step in fair["steps"]] == [2, 3]
    assert "route 1: rows meet where t.zip = t'.zip" in text_of(plan)


def test_plan_command_reads_a_table(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
    (tmp_path / "tax.csv").write_text("\n".join(lines))
    command = [sys.executable, "-c", "from weever_stream.cli.main import main; main()", "plan", "rules.yaml"]
    done = subprocess.run([*command, "tax.csv", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 3
    wrong = subprocess.run([*command, "tax.txt"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


def imported(module: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(module.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize(
    ("layer", "forbidden"),
    [
        ("engine", ("pyspark", "kafka", "prometheus_client", "time", "random", "weever_stream.monitor")),
        ("model", ("pyspark", "kafka", "prometheus_client", "time", "random", "numpy", "weever_stream.engine")),
    ],
)
def test_the_layers_point_one_way(layer: str, forbidden: tuple[str, ...]) -> None:
    for module in (Path(__file__).parents[2] / "weever_stream" / layer).rglob("*.py"):
        wrong = {name for name in imported(module) if any(f"{name}.".startswith(f"{no}.") for no in forbidden)}
        assert not wrong, module


def test_importing_the_engine_imports_no_spark_and_no_kafka() -> None:
    code = "import sys, weever_stream; print([m for m in ('pyspark', 'kafka', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

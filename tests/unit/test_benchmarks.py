"""The benchmark: its plain design agrees with the oracle, and its report has the promised shape."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.bars import Bar, check
from benchmarks.plain import Plain
from weever_stream import Rules
from weever_stream.oracle import Found, Oracle

COLUMNS = ("a", "b", "c")
DENIED = {
    "key": "t.a = t'.a and t.b = t'.b",
    "fd": "t.a = t'.a and t.b != t'.b",
    "order": "t.a = t'.a and t.b > t'.b and t.c < t'.c",
    "loose": "t.b >= t'.b and t.c < t'.c",
    "crossed": "t.a = t'.b and t.b = t'.a and t.c != t'.c",
    "compared": "t.a <= t'.b and t.b != t'.c",
    "filtered": "t.a = t'.a and t.b < t'.b and t.c = 1",
    "single": "t.a > t.b",
}


def load(*texts: str) -> Rules:
    lines = ["version: 1", "dataset: d", "key: [id]", "columns: {id: long, a: long, b: long, c: long}", "rules:"]
    return Rules.loads("\n".join([*lines, *(f'  - {{id: r{n}, deny: "{text}"}}' for n, text in enumerate(texts))]))


def table(rng: random.Random, rows: int) -> list[tuple[int | None, ...]]:
    return [tuple(rng.choice((None, 0, 1, 2, 3)) for _ in COLUMNS) for _ in range(rows)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loaded", [0, 12])
def test_the_plain_design_finds_what_the_oracle_finds(seed: int, loaded: int) -> None:
    rng = random.Random(seed)
    rules, rows = load(*DENIED.values()), table(rng, 24)
    plain, oracle = Plain(rules, COLUMNS), Oracle(rules)
    plain.load(rows[:loaded])
    for row_id, row in enumerate(rows):
        before = oracle.violations()
        oracle.apply([{"op": "insert", "after": dict(zip(("id", *COLUMNS), (row_id, *row), strict=True))}])
        if row_id >= loaded:
            compare(rules, plain, plain.insert(row_id, row), oracle.violations() - before)
    for row_id in rng.sample(range(len(rows)), len(rows)):
        before = oracle.violations()
        oracle.apply([{"op": "delete", "key": {"id": row_id}}])
        compare(rules, plain, plain.delete(row_id), before - oracle.violations())


def compare(rules: Rules, plain: Plain, counts: list[int], expected: set[Found]) -> None:
    """Counts of every rule, and the pairs themselves where there are two rows."""
    assert counts == [sum(found[0] == rule.id for found in expected) for rule in rules]
    pairs = {(rule, t[0], u[0]) for rule, t, u in expected if u is not None}
    assert sorted(plain.pairs) == sorted(pairs)
    plain.pairs.clear()


def test_a_quick_run_writes_table_plot_and_json(tmp_path: Path) -> None:
    options = ["--size", "60", "--batch", "1", "--batch", "10", "--sample", "20", "--baseline", "plain"]
    chosen = ["--rule", "key", "--rule", "salary_rate", "--output", str(tmp_path)]
    answer = CliRunner().invoke(main, ["--quick", *options, *chosen], catch_exceptions=False)
    assert answer.exit_code == 0
    assert "Microseconds for one row" in answer.output
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["failed"] == []
    assert [(result["case"], result["rows"]) for result in document["results"]] == [("key", 60), ("salary_rate", 60)]
    for result in document["results"]:
        assert set(result["engine"]["insert_us"]) == set(result["engine"]["delete_us"]) == {"1", "10"}
        assert result["plain"]["insert_us"]["1"] > 0
        assert result["engine"]["found"] == result["plain"]["found"]
        assert result["engine"]["found_spoiled"] == result["plain"]["found_spoiled"]
    assert {bar["verdict"] for bar in document["bars"]} == {"not measured"}
    assert (tmp_path / "results.png").read_bytes().startswith(b"\x89PNG")


def test_the_bars_judge_the_large_table_in_large_batches() -> None:
    def result(rows: int, engine: float) -> dict[str, object]:
        return {
            "case": "key",
            "rows": rows,
            "engine": {"insert_us": {"10000": engine}},
            "plain": {"insert_us": {"1": 9}},
        }

    verdicts = {bar.promise: bar for bar in check([result(10_000, 1.0), result(1_000_000, 2.5)])}
    assert verdicts["times the plain design"] == Bar("key", "times the plain design", 3, 3.6)
    assert verdicts["times the plain design"].verdict == "met"
    assert verdicts["insert at 1M rows against 10k"].verdict == "missed"
    assert verdicts["events/s"].verdict == "met"

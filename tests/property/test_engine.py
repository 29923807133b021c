"""The engine against the naive oracle: random rules of every class, random changes, the same answer after every batch.

Values come from small domains, so that rows meet; the domains hold what breaks comparisons: 2^53 + 1, equal numbers of
different types, NaN and NULL, strings whose UTF-16 order is not their code point order, one instant in two zones.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from weever_stream import Monitor, Rules
from weever_stream.engine import route
from weever_stream.model.errors import RuleError
from weever_stream.model.types import UNCHANGED
from weever_stream.oracle import Oracle

NAN = float("nan")
DOMAINS: dict[str, tuple[str, list[Any]]] = {
    "a": ("long", [0, 1, 2, 2**53, 2**53 + 1, None]),
    "b": ("double", [0.0, -0.0, 1.0, 1.5, 2.0**53, float("inf"), NAN, None]),
    "d": ("decimal(20,2)", [Decimal(1), Decimal("1.50"), Decimal(2**53 + 1), Decimal("NaN"), None]),
    "n": ("int", [1, 2, 3]),
    "s": ("string", ["", "a", "b", "\uffff", "\U0001f600", None]),
    "r": ("string", ["a", "b", "c"]),
    "f": ("bool", [True, False, None]),
    "g": ("bool", [True, False]),
    "w": ("date", [date(2024, 1, 1), "2024-01-02", None]),
    "x": ("date", [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)]),
    "y": ("timestamp", ["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01T00:30:00Z", None]),
    "z": ("timestamp", ["2024-01-01T00:00:00+00:00", "2024-01-01T02:30:00+02:00"]),
    "p": ("timestamp_ntz", ["2024-01-01T00:00:00", "2024-01-01T00:30:00", None]),
}
KEYS: dict[str, tuple[str, list[Any]]] = {
    "id": ("long", list(range(9))),
    "name": ("string", ["k1", "k2", "k3", "k10", "é"]),
}
FAMILIES = (("a", "b", "d", "n", "id"), ("s", "r", "name"), ("f", "g"), ("w", "x"), ("y", "z"), ("p",))
CONSTANTS = {
    "a": ["1", "9007199254740993", "1.5"],
    "s": ["'a'", "''", "'b'"],
    "f": ["true", "false"],
    "w": ["'2024-01-02'"],
    "y": ["'2024-01-01T00:30:00Z'"],
    "p": ["'2024-01-01T00:30:00'"],
}
EQUAL, UNEQUAL, ORDER = ("=",), ("!=",), ("<", "<=", ">", ">=")
ANY = EQUAL + UNEQUAL + ORDER

family = st.sampled_from(FAMILIES)
column = st.sampled_from(list(DOMAINS))


# -- rules -------------------------------------------------------------------------------------------------------------


@st.composite
def same_column(draw: st.DrawFn, operators: tuple[str, ...] = ANY) -> str:
    name = draw(column)
    return f"t.{name} {draw(st.sampled_from(operators))} t'.{name}"


@st.composite
def cross_column(draw: st.DrawFn, operators: tuple[str, ...] = ANY) -> str:
    names = draw(family)
    left, right = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    return f"t.{left} {draw(st.sampled_from(operators))} t'.{right}"


@st.composite
def single_row(draw: st.DrawFn, rows: tuple[str, ...] = ("t", "t'")) -> str:
    """A filter on one row: a column against a constant or against another column of the row."""
    names = draw(family)
    row, left, op = draw(st.sampled_from(rows)), draw(st.sampled_from(names)), draw(st.sampled_from(ANY))
    right = draw(st.sampled_from([*CONSTANTS[names[0]], *(f"{row}.{name}" for name in names if name != left)]))
    return f"{row}.{left} {op} {right}"


def conjunction(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda texts: {"deny": " and ".join(texts)})


names = st.lists(column, min_size=1, max_size=3, unique=True)
equal = same_column(EQUAL)
inequality = same_column(ORDER)
SHAPES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "key": names.map(lambda unique: {"unique": unique}),
    "fd": st.tuples(names, names).map(lambda sides: {"fd": " -> ".join(", ".join(side) for side in sides)}),
    "order": conjunction(equal, inequality, inequality),
    "table_order": conjunction(inequality, inequality),
    "three_inequalities": conjunction(inequality, inequality, inequality),
    "one_inequality": conjunction(equal, cross_column(ORDER)),
    "cross_equal": conjunction(cross_column(EQUAL), cross_column(EQUAL), same_column(UNEQUAL)),
    "cross_unequal": conjunction(equal, cross_column(UNEQUAL)),
    "cross_order": conjunction(cross_column(ORDER), cross_column(ORDER)),
    "unequal": conjunction(same_column(UNEQUAL), same_column(UNEQUAL)),
    "filtered": conjunction(equal, single_row(), cross_column()),
    "one_row": conjunction(single_row(("t",))),
    "one_row_two": conjunction(single_row(("t",)), single_row(("t",))),
    "any": st.lists(st.one_of(same_column(), cross_column(), single_row()), min_size=1, max_size=4).map(
        lambda texts: {"deny": " and ".join(texts)}
    ),
}
shape = st.sampled_from(list(SHAPES)).flatmap(SHAPES.__getitem__)


@st.composite
def rule_entries(draw: st.DrawFn, emits: tuple[str, ...]) -> dict[str, Any]:
    entry = dict(draw(shape), emit=draw(st.sampled_from(emits)))
    if draw(st.integers(0, 4)) == 0:
        entry["where"] = draw(single_row(("t",)))
    if draw(st.integers(0, 5)) == 0:
        entry["max_pairs"] = draw(st.integers(1, 3))
    return entry


@st.composite
def rule_sets(draw: st.DrawFn, emits: tuple[str, ...] = ("pairs", "rows", "groups", "counts")) -> Rules:
    """One to four rules that the loader takes, on a key of one or two columns."""
    key = draw(st.sampled_from([["id"], ["id"], ["name"], ["id", "name"]]))
    entries = draw(st.lists(rule_entries(emits), min_size=1, max_size=4))
    taken = [entry for entry in entries if accepted(yaml_of(key, [entry]))]
    rules = accepted(yaml_of(key, taken)) if taken else None
    assume(rules is not None)
    assert rules is not None
    return rules


def yaml_of(key: list[str], entries: list[dict[str, Any]]) -> str:
    columns = {name: kind for name, (kind, _) in chain(KEYS.items(), DOMAINS.items())}
    numbered = [{"id": f"r{n}", **entry} for n, entry in enumerate(entries)]
    return yaml.safe_dump({"version": 1, "dataset": "test", "key": key, "columns": columns, "rules": numbered})


@lru_cache(maxsize=10_000)
def accepted(text: str) -> Rules | None:
    try:
        return Rules.loads(text)
    except RuleError:
        return None


# -- changes -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)
def keys_of(key: tuple[str, ...], size: int) -> st.SearchStrategy[dict[str, Any]]:
    domains = {"id": list(range(size)), "name": KEYS["name"][1]}
    return st.fixed_dictionaries({name: st.sampled_from(domains[name]) for name in key})


@lru_cache(maxsize=1_000)
def rows_of(columns: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Values of the columns that the rules read; now and then one is missing."""
    values = {name: st.sampled_from(DOMAINS[name][1]) for name in columns}
    full = st.fixed_dictionaries(values)
    return st.one_of(full, full, full, st.fixed_dictionaries({}, optional=values))


@st.composite
def changes(draw: st.DrawFn, rules: Rules, size: int) -> dict[str, Any]:
    key = draw(keys_of(rules.key, size))
    kind = draw(st.sampled_from(("insert", "insert", "insert", "update", "delete", "move", "partial")))
    if kind == "delete":
        return draw(st.sampled_from(({"op": "delete", "key": key}, {"op": "delete", "before": key})))
    row = draw(rows_of(tuple(name for name in rules.used_columns if name not in KEYS)))
    if kind == "move":
        return {"op": "update", "before": draw(keys_of(rules.key, size)), "after": key | row}
    if kind == "partial":
        kept = draw(st.sets(st.sampled_from(list(row)))) if row else ()
        row = {name: UNCHANGED if name in kept else value for name, value in row.items()}
        return {"op": "update", "after": key | row}
    images = ({"after": key | row}, {"key": key, "after": key | row}, {"key": key, "after": row})
    return {"op": kind} | draw(st.sampled_from(images))


def batches(rules: Rules, size: int, most: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.one_of(st.lists(changes(rules, size), max_size=3), st.lists(changes(rules, size), max_size=most))


# -- what consumers of the events know ---------------------------------------------------------------------------------


class Announced:
    """Adds up events as a consumer would, and objects to any that is not a net change."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.open: dict[str, set[Any]] = {constraint.id: set() for constraint in rules}
        self.ids: dict[str, Any] = {}

    def add(self, events: list[dict[str, Any]], before: dict[str, set[Any]]) -> None:
        named = Counter((event["rule"], self.subject(event)) for event in events)
        assert all(times == 1 for times in named.values()), "one event at most for each subject of a batch"
        for event in events:
            what, known = self.subject(event), self.open[event["rule"]]
            assert self.ids.setdefault(event["id"], (event["rule"], what)) == (event["rule"], what)
            assert (what in before[event["rule"]]) == (event["op"] == "retracted"), event
            known.add(what) if event["op"] == "new" else known.discard(what)

    def subject(self, event: dict[str, Any]) -> Any:
        if "group" in event:
            return tuple(event["group"].values())
        t, u = self.key(event["t"]), self.key(event["u"])
        return (t,) if self.rules.by_id[event["rule"]].emit.value == "rows" else (t, u)

    def key(self, side: dict[str, Any] | None) -> tuple[Any, ...] | None:
        return None if side is None else tuple(side["key"][name] for name in self.rules.key)


def expected(oracle: Oracle) -> dict[str, set[Any]]:
    """What the events of each rule must add up to."""
    return {constraint.id: _subjects(oracle, constraint) for constraint in oracle.rules}


def _subjects(oracle: Oracle, constraint: Any) -> set[Any]:
    if constraint.emit.value == "rows":
        return {(key,) for key in oracle.rows_involved(constraint.id)}
    if constraint.emit.value == "groups":
        return set(oracle.groups(constraint.id))
    if constraint.emit.value == "counts":
        return set()
    return pairs_of(oracle, constraint.id)


def pairs_of(oracle: Oracle, rule_id: str) -> set[Any]:
    return {(t, u) for found, t, u in oracle.violations() if found == rule_id}


def check_state(monitor: Monitor, oracle: Oracle) -> None:
    """The monitor's own answers, however the rules emit."""
    for constraint in oracle.rules:
        held = [(violation.t, violation.u) for violation in monitor.violations(constraint.id)]
        assert len(held) == len(set(held))
        assert set(held) == pairs_of(oracle, constraint.id), str(constraint)
        assert monitor.counts()[constraint.id] == len(held)
    assert monitor.rows == len(oracle.rows)
    monitor.check()


# -- the machines ------------------------------------------------------------------------------------------------------


class EngineMachine(RuleBasedStateMachine):
    """Few keys: every change meets rows that are there."""

    size = 9
    most = 12

    @initialize(rules=rule_sets())
    def start(self, rules: Rules) -> None:
        self.rules = rules
        self.monitor = Monitor(rules)
        self.oracle = Oracle(rules)
        self.announced = Announced(rules)
        self.last: list[dict[str, Any]] = []

    @rule(data=st.data())
    def apply(self, data: st.DataObject) -> None:
        self.send(data.draw(batches(self.rules, self.size, self.most)))

    @precondition(lambda self: self.last)
    @rule()
    def repeat_batch(self) -> None:
        self.send(self.last)

    @precondition(lambda self: self.last)
    @rule()
    def repeat_change(self) -> None:
        """The feed delivers its last change twice more: nothing happens."""
        assert self.send([self.last[-1]] * 2) == []

    @rule()
    def save_and_load(self) -> None:
        self.monitor = Monitor.load(self.monitor.save(), self.rules)
        check_state(self.monitor, self.oracle)

    @rule(data=st.data())
    def delete_everything(self, data: st.DataObject) -> None:
        keys = data.draw(st.permutations(list(self.oracle.rows)))
        self.send([{"op": "delete", "key": dict(zip(self.rules.key, key, strict=True))} for key in keys])
        assert all(count == 0 for count in self.monitor.counts().values())

    def send(self, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        before = expected(self.oracle)
        events = self.monitor.apply(batch)
        self.oracle.apply(batch)
        after = expected(self.oracle)
        self.announced.add(events, before)
        self.check_events(events, batch, before, after)
        check_state(self.monitor, self.oracle)
        self.last = batch
        return events

    def check_events(self, events: Any, batch: Any, before: dict[str, set[Any]], after: dict[str, set[Any]]) -> None:
        for constraint in self.rules:
            known, sent = self.announced.open[constraint.id], [e for e in events if e["rule"] == constraint.id]
            new = [event for event in sent if event["op"] == "new"]
            assert known <= after[constraint.id]
            assert len(sent) - len(new) == len(before[constraint.id] - after[constraint.id])
            if constraint.emit.value != "pairs" or constraint.max_pairs >= 1_000:
                assert known == after[constraint.id], str(constraint)
            elif len(batch) == 1:
                opened = len(after[constraint.id] - before[constraint.id])
                assert len(new) == min(opened, constraint.max_pairs)
            if constraint.emit.value == "groups":
                self.check_groups(new, constraint.id)

    def check_groups(self, new: list[dict[str, Any]], rule_id: str) -> None:
        groups = self.oracle.groups(rule_id)
        for event in new:
            assert (event["pairs"], event["rows"]) == groups[self.announced.subject(event)]

    @invariant()
    def counted(self) -> None:
        if hasattr(self, "oracle"):
            assert self.monitor.rows == len(self.oracle.rows)


class CrowdedMachine(EngineMachine):
    """Many keys and large batches: partitions grow, and the work done in bulk is done."""

    size = 40
    most = 60


quick = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
TestEngine = EngineMachine.TestCase
TestEngine.settings = settings(quick, max_examples=250, stateful_step_count=10)
TestCrowded = CrowdedMachine.TestCase
TestCrowded.settings = settings(quick, max_examples=60, stateful_step_count=6)


@st.composite
def feeds(draw: st.DrawFn, size: int = 8, most: int = 25) -> tuple[Rules, list[dict[str, Any]], list[dict[str, Any]]]:
    rules = draw(rule_sets(("pairs", "rows")))
    return rules, draw(batches(rules, size, most)), draw(batches(rules, size, most))


@settings(quick, max_examples=500)
@given(feeds())
def test_a_batch_equals_its_changes_one_by_one(feed: tuple[Rules, list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    rules, first, second = feed
    assume(all(constraint.max_pairs >= 1_000 for constraint in rules))
    whole, single = Monitor(rules), Monitor(rules)
    for batch in (first, second):
        net: Counter[tuple[str, str]] = Counter()
        for change in batch:
            net.update({(e["rule"], e["id"]): 1 if e["op"] == "new" else -1 for e in single.apply([change])})
        events = {(e["rule"], e["id"]): 1 if e["op"] == "new" else -1 for e in whole.apply(batch)}
        assert events == {name: sign for name, sign in net.items() if sign}
    assert whole.counts() == single.counts()


@settings(quick, max_examples=500)
@given(feeds())
def test_final_state_equals_the_oracle(feed: tuple[Rules, list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    rules, first, second = feed
    monitor, oracle = Monitor(rules), Oracle(rules)
    for batch in (first, second):
        monitor.apply(batch)
        oracle.apply(batch)
    check_state(monitor, oracle)


class RefiningMachine(EngineMachine):
    """No partition is small enough to be compared row by row: every search goes through the indexes."""

    usual = route.SCAN_LIMIT, route.BUSY
    limit = 0

    def __init__(self) -> None:
        route.SCAN_LIMIT, route.BUSY = dict.fromkeys(self.usual[0], self.limit), 0
        super().__init__()

    def teardown(self) -> None:
        route.SCAN_LIMIT, route.BUSY = self.usual


class MixedMachine(RefiningMachine):
    """Partitions grow and shrink across the limit."""

    limit = 3


TestRefining = RefiningMachine.TestCase
TestRefining.settings = settings(quick, max_examples=150, stateful_step_count=8)
TestMixed = MixedMachine.TestCase
TestMixed.settings = settings(quick, max_examples=150, stateful_step_count=8)

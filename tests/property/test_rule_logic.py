"""The reasoning about rules against brute force over a small domain, and rule files written and read again."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weever_stream import Rules
from weever_stream.model.rules.building import dependency, make_constraint
from weever_stream.model.rules.constraint import DenialConstraint, Emit, Severity, Tolerance
from weever_stream.model.rules.normal import MeaninglessError, compare
from weever_stream.model.rules.predicate import Column, Condition, Constant, Differ, Operator, Predicate, Row, Value
from weever_stream.model.rules.shape import RuleShape
from weever_stream.model.rules.writer import write_rules
from weever_stream.model.types import ColumnType

FUNCTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ROWS: tuple[Row, Row] = ("t", "u")
DOMAIN: dict[str, tuple[Value, ...]] = {
    "a": (None, 0, 1, 2),
    "b": (None, 0, 1, 2),
    "x": (None, 0.5, 1.0, 2),
    "s": (None, "", "m", "n"),
    "f": (None, False, True),
}
CONSTANTS: dict[str, tuple[Value, ...]] = {
    "a": (-1, 0, 1, 2, Decimal("0.5")),
    "b": (0, 1, 3),
    "x": (0, 0.5, 1.5, 2),
    "s": ("", "m", "mm"),
    "f": (False, True),
}
COMPARABLE = {"a": "abx", "b": "abx", "x": "abx", "s": "s", "f": "f"}
TYPES = {
    name: ColumnType(type_) for name, type_ in zip("abxsf", ("int", "int", "double", "string", "bool"), strict=True)
}
Pair = tuple[dict[str, Value], dict[str, Value]]


@st.composite
def predicates(draw: st.DrawFn, rows: Sequence[Row] = ROWS) -> Predicate:
    name = draw(st.sampled_from("aaabbxsf"))
    op = draw(st.sampled_from(Operator))
    left = Column(draw(st.sampled_from(rows)), name)
    if draw(st.booleans()):
        other = draw(st.sampled_from(COMPARABLE[name]))
        return Predicate.of(left, op, Column(draw(st.sampled_from(rows)), other))
    return Predicate.of(left, op, Constant(draw(st.sampled_from(CONSTANTS[name]))))


@st.composite
def conjunctions(draw: st.DrawFn) -> tuple[Condition, ...]:
    if draw(st.integers(0, 3)):
        return tuple(draw(st.lists(predicates(), min_size=1, max_size=4)))
    names = st.lists(st.sampled_from("absf"), min_size=1, max_size=2)
    return (*dependency(draw(names), draw(names)), *draw(st.lists(predicates(), max_size=1)))


WHERE = st.lists(predicates(rows=("t",)), max_size=1)
KEYS = st.sampled_from(((), (), ("a",), ("a", "f")))


def compared(predicate: Predicate, t: Mapping[str, Value], u: Mapping[str, Value]) -> bool:
    sides = []
    for term in (predicate.left, predicate.right):
        sides.append(term.value if isinstance(term, Constant) else (t if term.row == "t" else u)[term.name])
    return None not in sides and FUNCTIONS[predicate.op.value](*sides)


def as_written(denied: Sequence[Condition], where: Sequence[Predicate], pair: Pair) -> bool:
    """What the contract says of a rule, without any reasoning: `where` holds for each row that the rule names."""
    t, u = pair
    rows = frozenset().union(*(condition.rows for condition in denied))
    if rows == {"u"}:
        t, u = u, t
    for condition in denied:
        parts = condition.parts if isinstance(condition, Differ) else (condition,)
        if not any(compared(part, t, u) for part in parts):
            return False
    taking_part = (pair[0], pair[1]) if len(rows) == 2 else (pair[0],)
    return all(compared(predicate, row, row) for predicate in where for row in taking_part)


def pairs(conditions: Sequence[Condition], key: Sequence[str]) -> Iterator[Pair]:
    """All pairs of different rows over the columns that are named; a key is never NULL."""
    names = sorted({column.name for condition in conditions for column in condition.columns} | set(key))
    rows = [dict(zip(names, values, strict=True)) for values in product(*(DOMAIN[name] for name in names))]
    rows = [row for row in rows if None not in [row[name] for name in key]]
    for t, u in product(rows, rows):
        if not key or [t[name] for name in key] != [u[name] for name in key]:
            yield t, u


@settings(max_examples=250, deadline=None)
@given(conjunctions(), WHERE, KEYS)
def test_a_rule_means_what_is_written_and_is_refused_only_where_it_says_nothing(
    denied: tuple[Condition, ...], where: list[Predicate], key: tuple[str, ...]
) -> None:
    named = {column.name for condition in (*denied, *where) for column in condition.columns}
    assume(len(named | set(key)) <= 3)
    everything = list(pairs((*denied, *where), key))
    try:
        rule = make_constraint(RuleShape(id="r"), denied, where, TYPES, key)
    except MeaninglessError as error:
        breaking = [pair for pair in everything if as_written(denied, where, pair)]
        if "never be violated" in str(error):
            assert breaking == []
        else:
            full = [pair for pair in everything if not any(None in row.values() for row in pair)]
            assert all(as_written(denied, where, pair) for pair in full)
        return
    for pair in everything:
        assert rule.holds(*pair) == as_written(denied, where, pair), (str(rule), pair)
        if rule.is_symmetric:
            assert rule.holds(*pair) == rule.holds(pair[1], pair[0])


@settings(max_examples=150, deadline=None)
@given(conjunctions(), conjunctions())
def test_a_rule_that_is_said_to_add_nothing_adds_nothing(
    one: tuple[Condition, ...], other: tuple[Condition, ...]
) -> None:
    assume(len({column.name for condition in (*one, *other) for column in condition.columns}) <= 3)
    try:
        rules = [make_constraint(RuleShape(id=name), c, (), TYPES) for name, c in (("one", one), ("other", other))]
    except MeaninglessError:
        return
    duplicates, warnings = compare(rules, TYPES)
    broken = [{_pair_id(t, u) for t, u in pairs((*one, *other), ()) if rule.holds(t, u)} for rule in rules]
    if duplicates:
        assert broken[0] == broken[1]
    if warnings:
        narrow, wide = broken if warnings[0].startswith("rule one ") else broken[::-1]
        assert narrow <= wide


def _pair_id(t: Mapping[str, Value], u: Mapping[str, Value]) -> frozenset[tuple[Value, ...]]:
    """The pair without its order: a rule and its mirror image are broken by the same two rows."""
    return frozenset((tuple(map(repr, t.values())), tuple(map(repr, u.values()))))


NAMES = (
    "a",
    "Zip Code",
    'x"y',
    "`",
    "no",
    "and",
    "not",
    "null",
    "true",
    "t",
    "1a",
    "über",
    "℘",
    "a·b",
    "x'",
    "c: d",
    "#e",
    "n\nl",
)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(-1e300, 1e300, allow_subnormal=False).filter(lambda value: value != value // 1),
    "decimal(10,2)": st.decimals(-(10**8), 10**8, places=2).filter(lambda value: value != value // 1),
    "string": TEXT,
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0)),
}


@st.composite
def constraints(draw: st.DrawFn, columns: Mapping[str, ColumnType], name: str) -> DenialConstraint:
    def predicate(rows: Sequence[Row]) -> Predicate:
        column = draw(st.sampled_from(sorted(columns)))
        type_, op = columns[column], draw(st.sampled_from(Operator))
        left = Column(draw(st.sampled_from(rows)), column)
        if draw(st.booleans()):
            return Predicate.of(left, op, Constant(draw(VALUES[type_.name])))
        others = sorted(other for other in columns if columns[other].family is type_.family)
        return Predicate.of(left, op, Column(draw(st.sampled_from(rows)), draw(st.sampled_from(others))))

    some = st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=3, unique=True)
    denied: tuple[Condition, ...] = tuple(predicate(ROWS) for _ in range(draw(st.integers(1, 4))))
    if draw(st.booleans()):
        denied = dependency(draw(some), draw(some))
    where = [predicate(("t",)) for _ in range(draw(st.integers(0, 2)))]
    try:
        made = make_constraint(RuleShape(id=name), denied, where, columns)
    except MeaninglessError:
        made = make_constraint(RuleShape(id=name), dependency(["a"], ["no"]), (), columns)
    share = st.decimals(0, 100, places=3).map(lambda percent: Tolerance(share=percent / 100))
    return dataclasses.replace(
        made,
        severity=draw(st.sampled_from(Severity)),
        description=draw(TEXT),
        tags=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        tolerate=draw(st.integers(0, 10**6).map(Tolerance) | share),
        emit=draw(st.sampled_from([emit for emit in Emit if made.equalities or emit is not Emit.GROUPS])),
        max_pairs=draw(st.integers(1, 20_000)),
    )


@st.composite
def rule_files(draw: st.DrawFn) -> Rules:
    names = ["a", "no", *draw(st.lists(st.sampled_from(NAMES), max_size=4))]
    types = {name: ColumnType(draw(st.sampled_from(sorted(VALUES)))) for name in dict.fromkeys(names)}
    made = [draw(constraints(types, f"r{count}")) for count in range(draw(st.integers(1, 3)))]
    duplicates, _ = compare(made, types)
    gone = {later for later, _ in duplicates}
    kept = [rule for count, rule in enumerate(made) if count not in gone]
    _, warnings = compare(kept, types)
    some = st.lists(st.sampled_from(sorted(types)), max_size=2, unique=True).map(tuple)
    return Rules(draw(TEXT.filter(bool)), (), tuple(kept), types, draw(some), warnings)


def meaning(rule: DenialConstraint) -> tuple[object, ...]:
    settings_ = (rule.severity, rule.description, dict(rule.tags), rule.tolerate, rule.emit, rule.max_pairs)
    return (rule.id, set(rule.conditions), rule.version, rule.where, rule.is_symmetric, *settings_)


@settings(max_examples=100, deadline=None)
@given(rule_files())
def test_rules_that_are_written_are_read_again_as_they_were(rules: Rules) -> None:
    text = write_rules(rules)
    again = Rules.loads(text)
    assert [meaning(rule) for rule in again] == [meaning(rule) for rule in rules], text
    for field in ("dataset", "key", "columns", "redact", "warnings"):
        assert getattr(again, field) == getattr(rules, field), text
    assert write_rules(again) == text


def test_the_values_of_constants_survive() -> None:
    """One rule for each type, as a fixed example of the test above."""
    types = {"d": ColumnType("date"), "s": ColumnType("timestamp"), "m": ColumnType("decimal(10,2)")}
    values = {"d": date(2020, 2, 29), "s": datetime(2020, 1, 1, 1, 2, 3, 4, tzinfo=UTC), "m": Decimal("0.10")}
    made = tuple(
        make_constraint(RuleShape(id=name), [Predicate(Column("t", name), Operator.LT, Constant(value))], (), types)
        for name, value in values.items()
    )
    again = Rules.loads(write_rules(Rules("d", (), made, types)))
    assert [rule.conditions for rule in again] == [rule.conditions for rule in made]

"""The generated tables: the extract's cardinalities, rules that hold but for the seeded errors, the same every time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from benchmarks.generate import Table, flights, tax, tpch

EXTRACT = {
    "f_name": 9_945,
    "l_name": 9_960,
    "gender": 2,
    "area_code": 273,
    "phone": 54_832,
    "city": 13_446,
    "state": 52,
    "zip": 26_473,
    "marital_status": 2,
    "has_child": 2,
    "salary": 20,
    "rate": 279,
    "single_exemp": 28,
    "married_exemp": 28,
    "child_exemp": 26,
}
DEPENDENCIES = {
    "city": ("zip",),
    "gender": ("f_name",),
    "child_exemp": ("state", "has_child"),
    "single_exemp": ("state", "marital_status"),
    "married_exemp": ("state", "marital_status"),
    "state": ("zip",),
}


@pytest.fixture(scope="module")
def clean() -> Table:
    return tax(55_000, errors=0)


def tuples(table: Table, names: tuple[str, ...]) -> list[tuple[object, ...]]:
    return list(zip(*(table.columns[name].tolist() for name in names), strict=True))


def broken(table: Table, left: tuple[str, ...], right: str) -> int:
    """How many combinations of the left side have more than one value on the right."""
    seen = defaultdict(set)
    for group, value in zip(tuples(table, left), table.columns[right].tolist(), strict=True):
        seen[group].add(value)
    return sum(len(values) > 1 for values in seen.values())


def falls(table: Table) -> int:
    """Rows whose rate is below that of a smaller salary in the same state."""
    highest: dict[object, tuple[float, float]] = {}
    count = 0
    for state, salary, rate in sorted(tuples(table, ("state", "salary", "rate"))):
        below, at = highest.get((state, salary), (highest.get(state, (0.0, 0.0))[0], 0.0))
        count += rate < below
        highest[state, salary] = (below, max(at, rate))
        highest[state] = (max(highest.get(state, (0.0, 0.0))[0], rate), 0.0)
    return count


def test_cardinalities_are_those_of_the_extract(clean: Table) -> None:
    for name, wanted in EXTRACT.items():
        assert len(set(clean.columns[name].tolist())) == pytest.approx(wanted, rel=0.25), name


@pytest.mark.parametrize("right", DEPENDENCIES)
def test_dependencies_hold_without_errors(clean: Table, right: str) -> None:
    assert broken(clean, DEPENDENCIES[right], right) == 0
    assert broken(clean, ("area_code",), "state") == 0


def test_the_key_is_unique_without_errors(clean: Table) -> None:
    assert len(set(tuples(clean, ("area_code", "phone")))) == len(clean)


def test_the_rate_never_falls_without_errors(clean: Table) -> None:
    assert falls(clean) == 0


def test_errors_are_few_and_there() -> None:
    table = tax(50_000, errors=4e-4)
    assert 0 < len(table) - len(set(tuples(table, ("area_code", "phone")))) <= 20
    assert 0 < broken(table, ("zip",), "city") <= 20
    assert 0 < broken(table, ("state", "has_child"), "child_exemp") <= 20
    assert falls(table) > 0


def test_the_same_seed_gives_the_same_table() -> None:
    first, again, other = tax(1_000), tax(1_000), tax(1_000, seed=8)
    assert all(np.array_equal(first.columns[name], again.columns[name]) for name in first.columns)
    assert not np.array_equal(first.columns["zip"], other.columns["zip"])


def test_flights_go_both_ways_and_disagree_on_distances() -> None:
    table = flights(20_000)
    routes = set(tuples(table, ("origin", "dest")))
    assert all(origin != dest for origin, dest in routes)
    assert any((dest, origin) in routes for origin, dest in routes)
    assert broken(table, ("origin", "dest"), "distance") > 0


def test_tpch_numbers_overlap() -> None:
    table = tpch(20_000)
    assert set(table.columns["customer"].tolist()) & set(table.columns["supplier"].tolist())


def test_rows_carry_their_number_as_key() -> None:
    table = tpch(5).select(["supplier"])
    assert [row["id"] for row in table.rows(2, 5)] == [2, 3, 4]
    assert set(table.rows(0, 1)[0]) == {"id", "supplier"}

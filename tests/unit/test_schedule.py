"""The schedule: the paper's classes, cardinalities inside them, when to plan again, and which prefixes are shared."""

from __future__ import annotations

from collections.abc import Mapping

from weever_stream.engine.schedule import Schedule, plan
from weever_stream.model.rules.predicate import Column, Condition, Operator, Predicate

SIZES = {"a": 10, "b": 1_000, "c": 500, "d": 20}


def on(text: str) -> Predicate:
    left, op, right = text.split()
    return Predicate.of(Column("t", left), Operator(op), Column("u", right))


def planned(rules: Mapping[str, str], sizes: Mapping[str, int] = SIZES) -> Schedule:
    conditions: dict[str, tuple[Condition, ...]] = {
        rule: tuple(on(part) for part in text.split(" and ")) for rule, text in rules.items()
    }
    return plan(conditions, lambda name: sizes[name])


def steps(text: str, sizes: Mapping[str, int] = SIZES) -> list[str]:
    return [str(condition).replace("t.", "").replace("t'.", "") for condition in planned({"r": text}, sizes).steps["r"]]


def test_the_six_classes_come_in_the_order_of_the_paper() -> None:
    assert steps("a < b and a < a and a != b and a != a and a = b and a = a") == [
        "a = a",
        "a = b",
        "a != a",
        "a != b",
        "a < a",
        "a < b",
    ]


def test_equalities_by_falling_cardinality_all_others_by_rising() -> None:
    assert steps("a = a and b = b and c = c") == ["b = b", "c = c", "a = a"]
    assert steps("b != b and a != a and c != c") == ["a != a", "c != c", "b != b"]
    assert steps("b < b and a > a and c <= c") == ["a > a", "c <= c", "b < b"]


def test_it_is_planned_again_only_when_an_order_could_have_changed() -> None:
    schedule = planned({"r": "b < b and c < c"})
    assert not schedule.could_change(lambda name: SIZES[name] + 200)
    assert schedule.could_change(lambda name: 800 if name == "c" else SIZES[name])
    near = {"b": 1_000, "c": 1_001}
    assert not planned({"r": "b < b and c < c"}, near).could_change(lambda name: near[name] + 20)


def test_one_condition_is_never_planned_again() -> None:
    assert not planned({"r": "a != a"}).could_change(lambda _: 10**9)


def test_a_prefix_is_shared_where_it_saves_refinements() -> None:
    schedule = planned({"x": "a != a and b != b and c < c", "y": "a != a and b != b and d < d", "z": "d > d"})
    (prefix,) = schedule.prefixes
    assert {prefix.owner, *prefix.users} == {"x", "y"}
    assert prefix.conditions == (on("a != a"), on("b != b"))
    assert prefix.benefit == 1
    assert schedule.prefix_of("z") is None
    assert schedule.remaining("y", prefix) == (on("d < d"),)


def test_one_common_condition_saves_nothing() -> None:
    assert planned({"x": "a != a and c < c", "y": "a != a and d < d"}).prefixes == ()


def test_the_example_of_the_paper() -> None:
    """Table 2: the prefix of r4 saves two refinements in r5, whose own would save one; so only that is taken."""
    p = {number: f"{name} != {name}" for number, name in enumerate("abcdef", start=1)}
    rules = {"r4": (2, 4, 5, 6), "r5": (2, 3, 4, 5), "r6": (1, 2, 3)}
    sizes = {name: number for number, name in enumerate("abcdef", start=1)}
    schedule = planned({rule: " and ".join(p[n] for n in numbers) for rule, numbers in rules.items()}, sizes)
    assert schedule.order == ("r4", "r5", "r6")
    (prefix,) = schedule.prefixes
    assert (prefix.owner, prefix.users, prefix.benefit) == ("r4", ("r5",), 2)
    assert prefix.conditions == tuple(on(p[n]) for n in (2, 4, 5))

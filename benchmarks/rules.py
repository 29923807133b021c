"""What is measured: the papers' denial constraints, and three sets of twenty rules on the Tax table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import yaml

from benchmarks import generate
from benchmarks.generate import Table
from weever_stream import Rules


@dataclass(frozen=True)
class Case:
    """Rules on one table. `bar` is the speed-up over the plain design that the project promises itself."""

    name: str
    title: str
    make: Callable[..., Table]
    types: dict[str, str]
    rules: tuple[str, ...]  # `deny` texts
    emit: str = "pairs"
    bar: float = 1.0
    java_us: float | None = None  # the authors' Java, one insert at 1M rows on this kind of machine

    def load(self) -> Rules:
        """The case as the engine reads it: the key is `id`, columns that no rule names are left out."""
        entries = [{"id": f"r{n}", "deny": text, "emit": self.emit} for n, text in enumerate(self.rules)]
        columns = {"id": "long"} | {name: self.types[name] for name in self.types if self._uses(name)}
        document = {"version": 1, "dataset": self.name, "key": ["id"], "columns": columns, "rules": entries}
        return Rules.loads(yaml.safe_dump(document, sort_keys=False))

    def table(self, rows: int, seed: int = 7) -> Table:
        return self.make(rows, seed=seed).select([name for name in self.types if self._uses(name)])

    @property
    def has_equality(self) -> bool:
        return all(constraint.is_single or constraint.equalities for constraint in self.load())

    @property
    def is_set(self) -> bool:
        return len(self.rules) > 1

    def _uses(self, name: str) -> bool:
        return any(f".{name} " in f"{text} " for text in self.rules)


def same(*names: str) -> str:
    """
    >>> same("state", "zip")
    "t.state = t'.state and t.zip = t'.zip"
    """
    return " and ".join(f"t.{name} = t'.{name}" for name in names)


def fd(left: str, right: str) -> str:
    return f"{same(*left.split())} and t.{right} != t'.{right}"


def order(left: str, above: str, below: str) -> str:
    return f"{same(*left.split())} and t.{above} > t'.{above} and t.{below} < t'.{below}"


def _tax(name: str, title: str, *rules: str, bar: float = 1.0, java_us: float | None = None) -> Case:
    return Case(name, title, generate.tax, generate.TAX_TYPES, rules, bar=bar, java_us=java_us)


def _flights(name: str, title: str, rule: str) -> Case:
    return Case(name, title, generate.flights, generate.FLIGHT_TYPES, (rule,), emit="counts")


SINGLE = (
    _tax("key", "area_code =, phone =", same("area_code", "phone"), bar=3, java_us=1.9),
    _tax("zip_city", "zip =, city !=", fd("zip", "city"), bar=2, java_us=3.8),
    _tax("exemption", "state =, has_child =, child_exemp !=", fd("state has_child", "child_exemp"), bar=20, java_us=36),
    _tax("salary_rate", "state =, salary >, rate <", order("state", "salary", "rate"), bar=13, java_us=481),
    _flights(
        "distance",
        "origin = dest, dest = origin, distance !=",
        "t.origin = t'.dest and t.dest = t'.origin and t.distance != t'.distance",
    ),
    _flights(
        "passengers",
        "origin =, dest =, flights >, passengers <",
        order("origin dest", "flights", "passengers"),
    ),
    Case(
        "customer",
        "customer = supplier, supplier = customer",
        generate.tpch,
        generate.TPCH_TYPES,
        ("t.customer = t'.supplier and t.supplier = t'.customer",),
    ),
    Case(
        "no_equality",
        "weight >, price <",
        generate.tariff,
        generate.TARIFF_TYPES,
        ("t.weight > t'.weight and t.price < t'.price",),
        emit="counts",
    ),
)

HIGH = (
    fd("area_code phone", "f_name"),
    fd("area_code phone", "l_name"),
    fd("area_code phone", "gender"),
    fd("area_code phone", "city"),
    fd("area_code phone", "state"),
    fd("area_code phone", "zip"),
    fd("area_code phone", "marital_status"),
    fd("area_code phone", "salary"),
    fd("area_code phone", "rate"),
    fd("zip", "city"),
    fd("zip", "state"),
    fd("zip has_child", "child_exemp"),
    fd("zip marital_status", "single_exemp"),
    fd("zip marital_status", "married_exemp"),
    fd("zip salary", "rate"),
    fd("zip phone", "area_code"),
    fd("zip phone", "f_name"),
    fd("zip phone", "l_name"),
    fd("zip phone", "salary"),
    fd("zip phone", "has_child"),
)
MEDIUM = tuple(
    same(*names.split())
    for names in (
        "area_code phone",
        "phone zip",
        "phone city",
        "phone f_name",
        "phone l_name",
        "phone state salary",
        "phone state rate",
        "phone state has_child",
        "phone state marital_status",
        "phone gender salary rate",
        "phone salary child_exemp marital_status",
        "f_name l_name zip",
        "f_name l_name city",
        "f_name l_name area_code salary",
        "f_name l_name state salary",
        "f_name l_name state rate",
        "f_name zip salary has_child marital_status",
        "l_name zip salary has_child marital_status",
        "f_name city salary has_child marital_status",
        "l_name city salary gender marital_status",
    )
)
LOW = (
    same("area_code", "phone"),
    fd("zip", "city"),
    fd("state has_child", "child_exemp"),
    fd("state marital_status", "single_exemp"),
    fd("area_code", "state"),
    fd("f_name", "gender"),
    order("state", "salary", "rate"),
    fd("state salary", "rate"),
    "t.salary < 0",
    "t.rate > 9.9 and t.has_child = 'Y'",
    "t.single_exemp > 0 and t.marital_status = 'M'",
    "t.married_exemp > 0 and t.marital_status = 'S'",
    "t.child_exemp > 0 and t.has_child = 'N'",
    same("f_name", "l_name", "zip"),
    "t.f_name = t'.l_name and t.l_name = t'.f_name and t.zip = t'.zip",
    "t.area_code = t'.area_code and t.phone = t'.phone and t.salary > t'.salary",
    "t.zip = t'.zip and t.phone = t'.phone and t.rate < t'.rate",
    "t.city = t'.city and t.phone = t'.phone and t.l_name != t'.l_name",
    "t.state = t'.state and t.marital_status = t'.marital_status and t.married_exemp < t'.married_exemp",
    "t.l_name = t'.l_name and t.phone = t'.phone and t.single_exemp <= t'.single_exemp",
)
DIRTY = (
    Case(
        "exemption_dirty",
        "state =, has_child =, child_exemp !=, errors",
        generate.dirty_tax,
        generate.TAX_TYPES,
        (fd("state has_child", "child_exemp"),),
    ),
    Case(
        "salary_rate_dirty",
        "state =, salary >, rate <, errors",
        generate.dirty_tax,
        generate.TAX_TYPES,
        (order("state", "salary", "rate"),),
    ),
)
SETS = (
    _tax("high", "20 rules, high overlap", *HIGH),
    _tax("medium", "20 rules, medium overlap", *MEDIUM),
    _tax("low", "20 rules, low overlap", *LOW),
)
CASES = {case.name: case for case in (*SINGLE, *DIRTY, *SETS)}

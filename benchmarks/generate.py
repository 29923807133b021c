"""Seeded tables like the ones of the papers: Tax, a flights-like and a TPC-H-like one.

Tax has the cardinalities of the public extract: 52 states, 273 area codes, some 26,000 zip codes and 13,000 cities in
55,000 rows, 20 salaries and some 300 rates. These hold, but for the errors that are asked for:

    unique (area_code, phone)              zip -> city, state               area_code -> state
    f_name -> gender                       state, has_child -> child_exemp  state, marital_status -> both exemptions
    within a state the rate never falls while the salary rises
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

_STATE_CODES = """
AK AL AR AZ CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS
MT NC ND NE NH NJ NM NV NY OH OK OR PA PR RI SC SD TN TX UT VA VT WA WI WV WY
"""
STATES = tuple(_STATE_CODES.split())
# How many states have so many area codes or tax rates: as counted in the extract.
AREA_CODES = {1: 15, 2: 5, 3: 4, 4: 6, 5: 5, 6: 3, 7: 4, 9: 2, 10: 3, 12: 1, 14: 1, 17: 1, 24: 1, 26: 1}
RATES = {1: 20, 2: 6, 3: 2, 4: 5, 5: 2, 6: 2, 8: 1, 9: 1, 11: 2, 12: 2, 15: 1, 16: 2, 17: 1, 19: 2, 20: 3}
SALARIES = np.arange(5_000, 100_001, 5_000)
NAMES = 10_000
CITY_NAMES = 20_000
PHONES = 9_000_000  # 100-0000 to 999-9999
ERROR_RATE = 1e-5

TAX_TYPES = {
    "f_name": "string",
    "l_name": "string",
    "gender": "string",
    "area_code": "string",
    "phone": "string",
    "city": "string",
    "state": "string",
    "zip": "string",
    "marital_status": "string",
    "has_child": "string",
    "salary": "long",
    "rate": "double",
    "single_exemp": "long",
    "married_exemp": "long",
    "child_exemp": "long",
}
FLIGHT_TYPES = {"origin": "string", "dest": "string", "distance": "long", "flights": "long", "passengers": "long"}
TPCH_TYPES = {"customer": "long", "supplier": "long"}
TARIFF_TYPES = {"weight": "long", "price": "long"}


@dataclass(frozen=True)
class Table:
    """Columns of one length and their types, without the key: the key is `id`, the row number from 0."""

    columns: Mapping[str, Array]
    types: Mapping[str, str]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def select(self, names: Sequence[str]) -> Table:
        return Table({name: self.columns[name] for name in names}, {name: self.types[name] for name in names})

    def tuples(self, start: int, stop: int) -> Iterator[tuple[object, ...]]:
        """The rows as (id, values in the order of the columns)."""
        return zip(range(start, stop), *(c[start:stop].tolist() for c in self.columns.values()), strict=True)

    def rows(self, start: int, stop: int) -> list[dict[str, object]]:
        names = ("id", *self.columns)
        return [dict(zip(names, values, strict=True)) for values in self.tuples(start, stop)]


def tax(rows: int, *, seed: int = 7, errors: float = 0) -> Table:
    """The papers' Tax table, in which (as in theirs) the key and the dependencies hold.

    `errors` is the share of wrong cells in each column that depends on others.
    """
    world = _World.make(np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 1])
    codes = _tax_codes(world, rows, rng)
    _spoil(codes, rng, errors)
    return Table(_tax_values(world, codes), TAX_TYPES)


def dirty_tax(rows: int, *, seed: int = 7) -> Table:
    """Ten wrong cells in a million: at a million rows every tenth insert meets one of them in its state."""
    return tax(rows, seed=seed, errors=ERROR_RATE)


@dataclass(frozen=True)
class _World:
    """What does not change from row to row: which zip codes, cities, rates and exemptions a state has."""

    zips: list[Array]  # per state, codes of its zip codes
    zip_city: Array
    areas: list[Array]  # per state, codes of its area codes
    rate: Array  # [state, salary]
    exemptions: Array  # [state, (single, married, child)]
    gender: Array  # of each first name
    names: Mapping[str, Array]  # dictionaries: code -> value

    @staticmethod
    def make(rng: np.random.Generator) -> _World:
        zip_counts = np.clip(rng.lognormal(6.6, 0.55, len(STATES)), 60, 2_500).astype(int)
        return _World(
            zips=np.split(np.arange(zip_counts.sum()), np.cumsum(zip_counts)[:-1]),
            zip_city=np.concatenate([_cities(rng, int(count)) for count in zip_counts]),
            areas=_split(rng, AREA_CODES),
            rate=_rates(rng),
            exemptions=_exemptions(rng),
            gender=rng.integers(0, 2, NAMES),
            names=_dictionaries(rng, int(zip_counts.sum())),
        )


def _spread(rng: np.random.Generator, histogram: Mapping[int, int]) -> list[int]:
    """The numbers of a histogram, one for each state, shuffled."""
    numbers = np.repeat(list(histogram), list(histogram.values()))
    return [int(number) for number in rng.permutation(numbers)]


def _split(rng: np.random.Generator, histogram: Mapping[int, int]) -> list[Array]:
    counts = _spread(rng, histogram)
    return np.split(rng.permutation(sum(counts)), np.cumsum(counts)[:-1])


def _cities(rng: np.random.Generator, zips: int) -> Array:
    """A city for each zip code of a state: some cities have several, and names recur between states."""
    cities = rng.choice(CITY_NAMES, size=max(1, int(zips * 0.85)), replace=False)
    return np.concatenate([cities, rng.choice(cities, size=zips - len(cities))])


def _rates(rng: np.random.Generator) -> Array:
    table = np.zeros((len(STATES), len(SALARIES)))
    for state, levels in enumerate(_spread(rng, RATES)):
        values = np.sort(rng.uniform(0, 9.3, levels).round(7 if levels > 8 else 1))
        values[0] = 0 if levels < 4 and rng.random() < 0.5 else values[0]
        table[state] = values[np.arange(len(SALARIES)) * levels // len(SALARIES)]
    return table


def _exemptions(rng: np.random.Generator) -> Array:
    """Two states in five grant exemptions; single, married and child, in steps of fifty."""
    amounts = rng.integers(1, 80, (len(STATES), 3)) * 50
    amounts[:, 1] = amounts[:, 0] * 2
    return amounts * (rng.random((len(STATES), 1)) < 0.4)


def _dictionaries(rng: np.random.Generator, zips: int) -> dict[str, Array]:
    areas = sum(number * states for number, states in AREA_CODES.items())
    return {
        "f_name": _strings(f"First{i}" for i in range(NAMES)),
        "l_name": _strings(f"Last{i}" for i in range(NAMES)),
        "area_code": _strings(map(str, rng.permutation(np.arange(201, 990))[:areas])),
        "city": _strings(f"CITY {i}" for i in range(CITY_NAMES)),
        "state": _strings(STATES),
        "zip": _strings(map(str, rng.permutation(np.arange(501, 99_951))[:zips])),
        "gender": _strings("FM"),
        "marital_status": _strings("MS"),
        "has_child": _strings("NY"),
    }


def _strings(values: Iterable[str]) -> Array:
    return np.array(list(values), dtype=object)


def _tax_codes(world: _World, rows: int, rng: np.random.Generator) -> dict[str, Array]:
    state = rng.integers(0, len(STATES), rows)
    zips = _within(world.zips, state, rng)
    area = _within(world.areas, state, rng)
    f_name, married, child = rng.integers(0, NAMES, rows), rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    salary = rng.integers(0, len(SALARIES), rows)
    single, couple, kid = world.exemptions[state].T
    return {
        "f_name": f_name,
        "l_name": rng.integers(0, NAMES, rows),
        "gender": world.gender[f_name],
        "area_code": area,
        "phone": _phones(area, rng),
        "city": world.zip_city[zips],
        "state": state.copy(),
        "zip": zips,
        "marital_status": married,
        "has_child": child,
        "salary": SALARIES[salary],
        "rate": world.rate[state, salary],
        "single_exemp": np.where(married == 1, single, 0),
        "married_exemp": np.where(married == 0, couple, 0),
        "child_exemp": np.where(child == 1, kid, 0),
    }


def _within(choices: list[Array], state: Array, rng: np.random.Generator) -> Array:
    """For each row one of the choices of its state."""
    starts = np.cumsum([0, *(len(choice) for choice in choices)])
    sizes = np.diff(starts)
    chosen: Array = np.concatenate(choices)[starts[state] + (rng.random(len(state)) * sizes[state]).astype(int)]
    return chosen


def _phones(area: Array, rng: np.random.Generator) -> Array:
    """Numbers that do not repeat within an area code: the n-th row of an area gets the n-th number of a fixed cycle."""
    order = np.argsort(area, kind="stable")
    counts = np.bincount(area)
    rank = np.empty(len(area), dtype=np.int64)
    rank[order] = np.arange(len(area)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = rng.integers(0, PHONES, len(counts))
    numbers: Array = (rank * 3_141_593 + offsets[area]) % PHONES
    return numbers


def _spoil(codes: dict[str, Array], rng: np.random.Generator, errors: float) -> None:
    """Wrong cells: another city, exemption or rate, the phone of another row of the same area."""
    rows = len(codes["state"])
    for name, wrong in (("city", CITY_NAMES), ("child_exemp", 4_000), ("rate", 10), ("gender", 2)):
        hit = _hits(rows, rng, errors)
        codes[name] = codes[name].copy()
        codes[name][hit] = rng.integers(0, wrong, len(hit))
    hit = _hits(rows, rng, errors)
    for row in hit:
        twins = np.flatnonzero(codes["area_code"] == codes["area_code"][row])
        codes["phone"][row] = codes["phone"][rng.choice(twins)]


def _hits(rows: int, rng: np.random.Generator, errors: float) -> Array:
    return rng.choice(rows, size=round(rows * errors), replace=False)


def _tax_values(world: _World, codes: dict[str, Array]) -> dict[str, Array]:
    values = {name: world.names[name][code] if name in world.names else code for name, code in codes.items()}
    values["phone"] = _strings(f"{n // 10_000 + 100}-{n % 10_000:04d}" for n in codes["phone"].tolist())
    return values


def flights(rows: int, *, seed: int = 7, airports: int = 680, routes: int = 36_000) -> Table:
    """Monthly flights of a route: a few busy airports, a distance that sources state a little differently."""
    rng = np.random.default_rng([seed, 2])
    busy = 1 / np.arange(1, airports + 1) ** 0.8
    pairs = rng.choice(airports, size=(routes, 2), p=busy / busy.sum())
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weight = 1 / np.arange(1, len(pairs) + 1) ** 0.5
    route = pairs[rng.choice(len(pairs), size=rows, p=weight / weight.sum())]
    names = _strings(chr(65 + i // 676) + chr(65 + i // 26 % 26) + chr(65 + i % 26) for i in range(airports))
    place = rng.uniform(0, 2_500, (airports, 2))
    miles = np.hypot(*(place[route[:, 0]] - place[route[:, 1]]).T).astype(np.int64)
    count = rng.geometric(1 / 37, rows)
    seats = (count * rng.normal(80, 20, rows).clip(9, 300)).astype(np.int64)
    columns = {
        "origin": names[route[:, 0]],
        "dest": names[route[:, 1]],
        "distance": miles + rng.choice([0, 1, 3], size=rows, p=[0.9, 0.07, 0.03]),
        "flights": count,
        "passengers": seats,
    }
    return Table(columns, FLIGHT_TYPES)


def tpch(rows: int, *, seed: int = 7, customers: int = 150_000, suppliers: int = 10_000) -> Table:
    """The customer and the supplier of each order line; both are numbered from 1, as in TPC-H."""
    rng = np.random.default_rng([seed, 3])
    columns = {"customer": rng.integers(1, customers + 1, rows), "supplier": rng.integers(1, suppliers + 1, rows)}
    return Table(columns, TPCH_TYPES)


def tariff(rows: int, *, seed: int = 7, levels: int = 1_000, errors: float = ERROR_RATE) -> Table:
    """A price that never falls while the weight rises; a wrong one is a few levels too cheap."""
    rng = np.random.default_rng([seed, 4])
    weight = rng.integers(0, levels, rows)
    price = weight * 5
    hit = _hits(rows, rng, errors)
    price[hit] -= rng.integers(6, 30, len(hit))
    return Table({"weight": weight, "price": price}, TARIFF_TYPES)

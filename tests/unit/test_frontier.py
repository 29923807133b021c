"""Frontier: many points, so that the recent ones are merged into the old ones."""

from __future__ import annotations

import numpy as np

from weever_stream.engine.frontier import Frontier
from weever_stream.engine.probe import Probe
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Operator, Predicate

RISING = Predicate.of(Column("t", "salary"), Operator.GT, Column("u", "salary"))
FALLING = Predicate.of(Column("t", "rate"), Operator.LT, Column("u", "rate"))


def test_a_long_frontier_answers_as_all_its_points_do() -> None:
    rng = np.random.default_rng(1)
    salary = rng.integers(0, 10_000, 6_000)
    rate = salary + rng.integers(-20, 20, 6_000)
    table = Table(["salary", "rate"], [DenialConstraint("fair", (RISING, FALLING))])
    rids, _ = table.allocate(list(range(6_000)))
    table.write(rids, table.encode({"salary": salary.tolist(), "rate": rate.tolist()}))
    frontier = Frontier(table, Probe.of(RISING, "t"), Probe.of(FALLING, "t"))
    held, asked = rids[:5_500], rids[5_500:]
    for batch in np.split(held, 11):
        frontier.add(batch)
    assert 256 < len(frontier) < 5_500
    wanted = [bool(((salary[held] < salary[n]) & (rate[held] > rate[n])).any()) for n in asked]
    assert frontier.may_match(asked).tolist() == wanted
    assert any(wanted)
    assert not all(wanted)

"""The plan: how a set of rules will run, as data for programs and as text for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from weever_stream.engine.route import Route
from weever_stream.engine.schedule import CLASSES, class_of
from weever_stream.engine.side import Side
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Predicate
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.rules.sentences import dropped_parts, masked, sentence
from weever_stream.monitor import Monitor

Plan = dict[str, Any]


def plan_of(monitor: Monitor, rules: Rules | None = None) -> Plan:
    """Routes, indexes, order and cardinalities as they are with the rows that the monitor holds.

    `rules` are those to show where the monitor runs them with other settings. Constants that redacted columns are
    compared with stay hidden.
    """
    rules = rules or monitor.rules
    shard, hidden = monitor.shard, rules.redact
    return {
        "dataset": rules.dataset,
        "rows": monitor.rows,
        "columns": {name: column.distinct for name, column in shard.table.columns.items()},
        "routes": [_route(route, rules) for route in shard.routes],
        "one_row_rules": [
            {"rule": c.id, "sentence": sentence(c, hidden), "predicates": _texts(c.filters_t, hidden)}
            for c in shard.singles
        ],
        "dropped": [
            {"rule": c.id, "predicate": predicate, "reason": reason}
            for c in rules
            for predicate, reason in dropped_parts(c, hidden)
        ],
        "warnings": list(rules.warnings),
    }


def _texts(predicates: Iterable[Predicate], hidden: Collection[str]) -> list[str]:
    return [str(masked(predicate, hidden)) for predicate in predicates]


def _route(route: Route, rules: Rules) -> Plan:
    spec, hidden = route.spec, rules.redact
    equal = [f"t.{a} = t'.{b}" for a, b in zip(spec.t_columns, spec.u_columns, strict=True)]
    return {
        "equalities": equal,
        "filters": {
            "t": _texts(spec.t_filters, hidden),
            "t'": _texts((predicate.swapped for predicate in spec.u_filters), hidden),
        },
        "sides": [_side(side, route.scan_limit) for side in route.sides],
        "rules": [_rule(route, rules.by_id[rule], hidden) for rule in route.schedule.order],
        "prefixes": [
            {
                "rule": prefix.owner,
                "predicates": [str(condition) for condition in prefix.conditions],
                "shared_with": list(prefix.users),
                "refinements_saved": prefix.benefit,
            }
            for prefix in route.schedule.prefixes
        ],
    }


def _side(side: Side, scan_limit: int) -> Plan:
    counts = side.slots.count[side.slots.count > 0]
    return {
        "columns": list(side.columns),
        "partitions": len(counts),
        "largest_partition": int(counts.max(initial=0)),
        "searched_by_index": int(np.count_nonzero(counts > scan_limit)),
        "hash_indexes": sorted(side.hashed),
        "lt_trees": sorted(side.ordered),
        "frontiers": sorted({(first.other, second.other) for first, second in side.frontiers.values()}),
    }


def _rule(route: Route, constraint: DenialConstraint, hidden: Collection[str]) -> Plan:
    steps = [
        {
            "predicate": str(condition),
            "class": CLASSES[class_of(condition)],
            "cardinality": max(route.cardinality(column.name) for column in condition.columns),
        }
        for condition in route.schedule.steps[constraint.id]
    ]
    return {
        "rule": constraint.id,
        "sentence": sentence(constraint, hidden),
        "class": constraint.rule_class.value,
        "symmetric": constraint.is_symmetric,
        "emit": constraint.emit.value,
        "steps": steps,
    }


def text_of(plan: Plan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan['dataset']}: {_counted(plan['rows'], 'row')}, {_counted(len(plan['routes']), 'route')}"
    for number, route in enumerate(plan["routes"], start=1):
        yield ""
        yield f"route {number}: rows meet where {' and '.join(route['equalities']) or 'they like (no equality)'}"
        yield from _route_lines(route)
    for rule in plan["one_row_rules"]:
        yield ""
        yield f"one row alone: {rule['rule']}: {rule['sentence']}"
    for dropped in plan["dropped"]:
        yield ""
        yield f"dropped from {dropped['rule']}: {dropped['predicate']} ({dropped['reason']})"
    yield from (f"warning: {warning}" for warning in plan["warnings"])


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _route_lines(route: Plan) -> Iterator[str]:
    for row, filters in route["filters"].items():
        if filters:
            yield f"  only rows {row} with {' and '.join(filters)}"
    for side in route["sides"]:
        yield (
            f"  {_counted(side['partitions'], 'partition')} by ({', '.join(side['columns'])}), the largest of "
            f"{_counted(side['largest_partition'], 'row')}; {side['searched_by_index']:,} searched by index"
        )
        indexes = [f"hash({name})" for name in side["hash_indexes"]] + [f"LT-tree({name})" for name in side["lt_trees"]]
        indexes += [f"frontier({first}, {second})" for first, second in side["frontiers"]]
        yield f"  indexes in a partition: {', '.join(indexes) or 'none needed'}"
    for rule in route["rules"]:
        symmetric = ", symmetric" if rule["symmetric"] else ""
        yield f"  {rule['rule']} ({rule['class']}{symmetric}, emit {rule['emit']}): {rule['sentence']}"
        for at, step in enumerate(rule["steps"], start=1):
            yield f"    {at}. {step['predicate']}  [{step['class']}, {step['cardinality']:,} values]"
    for prefix in route["prefixes"]:
        yield (
            f"  shared: {' and '.join(prefix['predicates'])} of {prefix['rule']} also starts "
            f"{', '.join(prefix['shared_with'])} ({prefix['refinements_saved']} refinements saved a row)"
        )

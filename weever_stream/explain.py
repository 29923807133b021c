"""Why a violation holds: its rows, every predicate with the two values, the change behind it, and SQL to see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import cast

from weever_stream.model.changes import Cause, Key
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Condition, Constant, Differ, Predicate, Term, Value
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.rules.sentences import sentence
from weever_stream.redaction import Redaction

Row = dict[str, Value]


@dataclass(frozen=True)
class Evidence:
    """One predicate of the rule with the values that make it true."""

    predicate: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Explanation:
    """`cause` is None where the pair was never announced (`emit` other than `pairs`, or beyond `max_pairs`)."""

    rule: str
    sentence: str
    rows: tuple[Row, ...]
    evidence: tuple[Evidence, ...]
    cause: Cause | None
    sql: str

    def __str__(self) -> str:
        names = ("t", "t'")
        lines = [f"{self.rule}: {self.sentence}"]
        lines += [f"  {name}: {row}" for name, row in zip(names, self.rows, strict=False)]
        lines += [f"  {e.predicate}: {e.left!r}, {e.right!r}" for e in self.evidence]
        if self.cause is not None:
            lines.append(f"  since the {self.cause.op} of {self.cause.key!r} at {self.cause.position or 'no position'}")
        return "\n".join([*lines, f"  {self.sql}"])


def explanation(
    rules: Rules,
    constraint: DenialConstraint,
    keys: Sequence[tuple[Value, ...]],
    rows: Sequence[Row],
    cause: Cause | None,
    redaction: Redaction,
) -> Explanation:
    """Explains a violation that holds; redacted values stay hidden."""
    shown = [redaction.masked({name: row[name] for name in constraint.columns}) for row in rows]
    named = [redaction.masked(dict(zip(rules.key, key, strict=True))) for key in keys]
    conditions = tuple(_masked(condition, redaction) for condition in constraint.conditions)
    return Explanation(
        rule=constraint.id,
        sentence=sentence(constraint, rules.redact),
        rows=tuple(key | row for key, row in zip(named, shown, strict=True)),
        evidence=tuple(_evidence(c, shown[0], shown[-1]) for condition in conditions for c in _parts(condition)),
        cause=cause and cause._replace(key=_masked_key(rules, cause, redaction)),
        sql=_sql(rules.dataset, conditions, named),
    )


def _masked(condition: Condition, redaction: Redaction) -> Condition:
    """The condition with the hash of its constant where that says what a redacted column holds."""
    if isinstance(condition, Differ) or not isinstance(condition.right, Constant):
        return condition
    (column,) = condition.columns
    return replace(condition, right=Constant(redaction.value(column.name, condition.right.value)))


def _masked_key(rules: Rules, cause: Cause, redaction: Redaction) -> Key:
    if len(rules.key) == 1:
        return cast(Key, redaction.value(rules.key[0], cause.key))
    values = cast(tuple[Value, ...], cause.key)
    return tuple(redaction.value(name, value) for name, value in zip(rules.key, values, strict=True))


def _parts(condition: Condition) -> tuple[Predicate, ...]:
    return condition.parts if isinstance(condition, Differ) else (condition,)


def _evidence(predicate: Predicate, t: Row, u: Row) -> Evidence:
    return Evidence(str(predicate), _value(predicate.left, t, u), _value(predicate.right, t, u))


def _value(term: Term, t: Row, u: Row) -> Value:
    if isinstance(term, Column):
        return (t if term.row == "t" else u)[term.name]
    return term.value


def _sql(dataset: str, conditions: Sequence[Condition], keys: Sequence[Row]) -> str:
    tables = ", ".join(f"{_quoted(dataset)} AS {alias}" for alias in ("t", "u")[: len(keys)])
    places = [
        f"{alias}.{_quoted(name)} = {_literal(value)}"
        for alias, key in zip(("t", "u"), keys, strict=False)
        for name, value in key.items()
    ]
    denied = [
        "(" + " OR ".join(_sql_of(p) for p in condition.parts) + ")"
        if isinstance(condition, Differ)
        else _sql_of(condition)
        for condition in conditions
    ]
    return f"SELECT * FROM {tables} WHERE {' AND '.join(places + denied)}"


def _sql_of(predicate: Predicate) -> str:
    operator = "<>" if str(predicate.op) == "!=" else str(predicate.op)
    return f"{_sql_term(predicate.left)} {operator} {_sql_term(predicate.right)}"


def _sql_term(term: Term) -> str:
    return f"{term.row}.{_quoted(term.name)}" if isinstance(term, Column) else _literal(term.value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    if isinstance(value, datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
        return f"{kind} '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE PRECISION)"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)

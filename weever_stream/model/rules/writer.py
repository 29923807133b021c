"""Rules as the YAML that a person would have written."""

from __future__ import annotations

from typing import Any

import yaml

from weever_stream.model.rules.constraint import DenialConstraint, Emit, RuleClass, Severity, Tolerance
from weever_stream.model.rules.normal import mirror
from weever_stream.model.rules.predicate import Column, Condition, Differ
from weever_stream.model.rules.ruleset import Rules


class _Flow(list[str]):
    """A list on one line."""


_ESCAPED = frozenset("\r\x85\u2028\u2029")  # line breaks to YAML, which other quotes do not keep


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """List items are indented under their key."""
        del indentless
        super().increase_indent(flow, False)


_Dumper.add_representer(
    _Flow, lambda dumper, names: dumper.represent_sequence("tag:yaml.org,2002:seq", names, flow_style=True)
)
_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if _ESCAPED.intersection(text) else None
    ),
)


def write_rules(rules: Rules) -> str:
    """A rule file that loads as these rules. Predicates that were dropped as redundant are not written again."""
    document: dict[str, Any] = {"version": 1, "dataset": rules.dataset, "key": _Flow(rules.key)}
    if rules.columns:
        document["columns"] = {name: type_.name for name, type_ in rules.columns.items()}
    if rules.redact:
        document["redact"] = _Flow(rules.redact)
    document["rules"] = [rule_entry(constraint) for constraint in rules]
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def rule_entry(constraint: DenialConstraint) -> dict[str, Any]:
    """One item of `rules`: fd or unique where they say it, and only settings that are not the default."""
    settings: dict[str, Any] = {
        "where": " and ".join(map(str, constraint.where)),
        "severity": constraint.severity.value if constraint.severity is not Severity.WARNING else "",
        "description": constraint.description,
        "tags": dict(constraint.tags),
        "tolerate": _tolerance(constraint.tolerate),
        "emit": constraint.emit.value if constraint.emit is not Emit.PAIRS else "",
        "max_pairs": constraint.max_pairs if constraint.max_pairs != 10_000 else "",
    }
    return {"id": constraint.id} | _body(constraint) | {name: value for name, value in settings.items() if value}


def _denied(constraint: DenialConstraint) -> tuple[Condition, ...] | None:
    """The conditions without the `where` filter; None where too few rows would be named."""
    filters = {*constraint.where, *mirror(constraint.where)}
    rest = tuple(c for c in constraint.conditions if c not in filters)
    rows = frozenset[str]().union(*(c.rows for c in rest))
    return rest if rows == frozenset[str]().union(*(c.rows for c in constraint.conditions)) else None


def _body(constraint: DenialConstraint) -> dict[str, Any]:
    denied = _denied(constraint) or constraint.conditions
    equal = [predicate.columns[0].name for predicate in constraint.equalities]
    if all(c.is_cross for c in denied) and constraint.rule_class is RuleClass.KEY:
        return {"unique": _Flow(equal)}
    if all(c.is_cross for c in denied) and constraint.rule_class is RuleClass.FUNCTIONAL:
        right = next(c for c in denied if c not in constraint.equalities)
        names = right.names if isinstance(right, Differ) else (right.columns[0].name,)
        return {"fd": f"{_names(equal)} -> {_names(names)}"}
    return {"deny": " and ".join(map(str, denied))}


def _names(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(str(Column("t", name)).removeprefix("t.") for name in names)


def _tolerance(tolerance: Tolerance) -> str | int:
    return tolerance.count if tolerance.share is None else f"{(tolerance.share * 100).normalize():f}%"

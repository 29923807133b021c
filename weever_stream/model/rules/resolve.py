"""From comparisons to predicates: names are checked against the columns, constants take the type of their column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.nearest import did_you_mean
from weever_stream.model.rules.parser import ColumnText, Comparison, TermText
from weever_stream.model.rules.predicate import Column, Constant, Differ, Predicate, Row, Term, Value
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.types import ColumnType, Family, family_of

Columns = Mapping[str, ColumnType]
Report = Callable[[str, int], None]
"""Takes a mistake and its offset in the text."""

_ROWS: dict[str, Row] = {"t": "t", "u": "u"}
_DATES = (Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ)


@dataclass(frozen=True)
class Resolver:
    """What is known while the rule `rule` is read. Where no `names` are known, any name will do."""

    rule: str
    columns: Columns
    names: Collection[str]

    def predicates(self, comparisons: Sequence[Comparison], report: Report) -> tuple[Predicate, ...]:
        """The comparisons as predicates; whatever is wrong with them goes to `report`."""
        columns = [column for comparison in comparisons for column in comparison.columns]
        unknown = list(self.unknown((c.name, c.offset) for c in columns))
        for message, offset in unknown:
            report(message, offset)
        if unknown:
            return ()
        return tuple(p for p in (self._predicate(comparison, report) for comparison in comparisons) if p is not None)

    def unknown(self, names: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """A sentence for each name that is no column, once a name, with its offset."""
        seen: set[str] = set()
        for name, offset in names:
            if self.names and name not in self.names and name not in seen:
                seen.add(name)
                yield f'unknown column "{name}" in rule {self.rule}{did_you_mean(name, self.names)}', offset

    def _predicate(self, comparison: Comparison, report: Report) -> Predicate | None:
        try:
            left = _term(comparison.left, self._type(comparison.right))
            right = _term(comparison.right, self._type(comparison.left))
            check_comparable(left, right, self.columns)
        except ValueError as error:
            report(f"rule {self.rule}: {error}", comparison.left.offset)
            return None
        return Predicate.of(left, comparison.op, right)

    def _type(self, term: TermText) -> ColumnType | None:
        return self.columns.get(term.name) if isinstance(term, ColumnText) else None


def typed(rules: Rules, columns: Columns) -> Rules:
    """The rules over a table that has these columns. Raises ValueError where a comparison does not fit them."""
    return replace(rules, columns=columns, constraints=tuple(_retyped_rule(rule, columns) for rule in rules))


def _retyped_rule(rule: DenialConstraint, columns: Columns) -> DenialConstraint:
    try:
        conditions = tuple(c if isinstance(c, Differ) else retyped(c, columns) for c in rule.conditions)
        return replace(rule, conditions=conditions, where=tuple(retyped(p, columns) for p in rule.where))
    except ValueError as error:
        raise ValueError(f"rule {rule.id}: {error}") from None


def retyped(predicate: Predicate, columns: Columns) -> Predicate:
    """The predicate with its constants in the types of these columns. Raises ValueError where they do not fit."""
    left = _retyped(predicate.left, predicate.right, columns)
    right = _retyped(predicate.right, predicate.left, columns)
    check_comparable(left, right, columns)
    return Predicate.of(left, predicate.op, right)


def _retyped(term: Term, other: Term, columns: Columns) -> Term:
    if isinstance(term, Column) or not isinstance(other, Column):
        return term
    value = Decimal(repr(term.value)) if isinstance(term.value, float) else term.value
    return Constant(_typed(value, columns.get(other.name)))


def check_comparable(left: Term, right: Term, columns: Columns) -> None:
    """Raises ValueError, with both sides and their types, where two terms cannot be compared."""
    families = _family(left, columns), _family(right, columns)
    if None not in families and families[0] is not families[1]:
        hint = _quotes_hint(left, right, families)
        raise ValueError(f"cannot compare {_described(left, columns)} with {_described(right, columns)}{hint}")


def _quotes_hint(left: Term, right: Term, families: tuple[Family | None, Family | None]) -> str:
    """Where quotes too many or too few make the difference: zip = 90001, paid = 'true'."""
    constants = [term for term in (left, right) if isinstance(term, Constant)]
    if Family.STRING not in families or len(constants) != 1:
        return ""
    text = str(constants[0].value)
    if not isinstance(constants[0].value, str):
        return f": write '{constants[0]}' in quotes"
    bare = text.lower() in ("true", "false") if Family.BOOL in families else text.lstrip("+-").isdecimal()
    return f": write {text.lower()} without quotes" if bare and {Family.BOOL, Family.NUMBER} & {*families} else ""


def _family(term: Term, columns: Columns) -> Family | None:
    if isinstance(term, Constant):
        return family_of(term.value)
    return columns[term.name].family if term.name in columns else None


def _described(term: Term, columns: Columns) -> str:
    if isinstance(term, Constant):
        return f"the {family_of(term.value).value} {term}"
    return f"{term.name} ({columns[term.name].name})" if term.name in columns else term.name


def _term(text: TermText, other: ColumnType | None) -> Term:
    if isinstance(text, ColumnText):
        return Column(_ROWS[text.row], text.name)
    return Constant(_typed(text.value, other))


def _typed(value: Value, type_: ColumnType | None) -> Value:
    """A constant as a column of this type would hold it: 0.1 is a float for a double and exact for a decimal."""
    if isinstance(value, Decimal):
        return _number(value, type_)
    if isinstance(value, str) and type_ is not None and type_.family in _DATES:
        return type_.read(value)
    return value


def _number(value: Decimal, type_: ColumnType | None) -> int | float | Decimal:
    if value == value.to_integral_value() and abs(value) < 2**63:
        return int(value)
    binary = type_ is None or type_.name in ("float", "double")
    return float(value) if binary and abs(value) < Decimal("1e308") else value

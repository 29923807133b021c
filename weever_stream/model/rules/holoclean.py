"""Lists of rules that are no YAML: HoloClean's notation, and the way papers print denial constraints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from weever_stream.model.errors import Problem, RuleError
from weever_stream.model.rules.building import make_constraint
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.latex import plain_rules
from weever_stream.model.rules.normal import MeaninglessError, compare
from weever_stream.model.rules.parser import Line, RuleSyntaxError, parse_holoclean, parse_paper
from weever_stream.model.rules.predicate import Condition, Differ, Predicate
from weever_stream.model.rules.resolve import Resolver
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.rules.shape import RuleShape

_COMMENTS = ("#", "//", "%", "--")
_CALL = re.compile(r"&\s*[A-Za-z]+\s*\(")


@dataclass(frozen=True)
class Listed:
    """A line of a list that holds a rule."""

    number: int
    indent: int
    text: str


def is_listing(text: str) -> bool:
    """True for a file in HoloClean's notation: its first line that is no comment says `t1&...&EQ(`."""
    first = next(listed_lines(text), None)
    return first is not None and is_holoclean(first.text)


def is_holoclean(line: str) -> bool:
    return _CALL.search(line) is not None and ":" not in line[: line.find("&")]


def listed_lines(text: str) -> Iterator[Listed]:
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(_COMMENTS):
            yield from _rules_in(line, number)


def _rules_in(line: str, number: int) -> Iterator[Listed]:
    rules = [(0, line)] if is_holoclean(line.strip()) else plain_rules(line)
    for place, text in rules:
        if text.strip():
            yield Listed(number, place + len(text) - len(text.lstrip()), text.strip())


def load_listing(text: str, file: str) -> Rules:
    """The rules of a list, under ids made from their columns. Rows are keyed by their number."""
    problems: list[Problem] = []
    found: list[tuple[Listed, DenialConstraint]] = []
    taken: set[str] = set()
    for line in listed_lines(text):
        constraint = _constraint(line, file, taken, problems)
        if constraint is not None:
            found.append((line, constraint))
    duplicates, warnings = compare([constraint for _, constraint in found], {})
    for later, first in duplicates:
        message = f"this rule means the same as the one in line {found[first][0].number}"
        problems.append(_problem(found[later][0], 0, message, file))
    if problems or not found:
        raise RuleError(tuple(sorted(problems)) or (Problem(0, 0, "holds no rule", file),))
    return Rules(_dataset(file), (), tuple(constraint for _, constraint in found), warnings=warnings)


def _dataset(file: str) -> str:
    return PurePath(file).stem.strip("<>") or "rules"


def _constraint(line: Listed, file: str, taken: set[str], problems: list[Problem]) -> DenialConstraint | None:
    try:
        parsed = parse_holoclean(line.text) if is_holoclean(line.text) else parse_paper(line.text)
        return _built(parsed, line, file, taken, problems)
    except RuleSyntaxError as error:
        problems.append(_problem(line, error.offset, error.message, file))
    except MeaninglessError as error:
        problems.append(_problem(line, 0, str(error), file))
    return None


def _built(parsed: Line, line: Listed, file: str, taken: set[str], problems: list[Problem]) -> DenialConstraint | None:
    before = len(problems)
    resolver = Resolver(f"in line {line.number}", {}, ())
    predicates = resolver.predicates(
        parsed.comparisons, lambda said, offset: problems.append(_problem(line, offset, said, file))
    )
    if len(problems) > before:
        return None
    name = free_id(parsed.label if _telling(parsed.label) else id_from(predicates), taken)
    return make_constraint(RuleShape(id=name), predicates, (), {})


def _problem(line: Listed, offset: int, message: str, file: str) -> Problem:
    return Problem(line.number, line.indent + offset + 1, message, file)


def _telling(label: str) -> bool:
    """True for a label that says more than a number: `zip_city`, but not `phi_7`, `c1` or `3`."""
    return bool(label) and not re.fullmatch(r"\W*(?:[^\W\d]|phi|psi|dc|rule|constraint)?[\W_]*[\d_]*\W*", label, re.I)


def id_from(conditions: Sequence[Condition]) -> str:
    """An id from the columns: `zip_city` for zip -> city, `area_code_phone_unique` for a key."""
    names = dict.fromkeys(column.name for condition in conditions for column in condition.columns)
    words = "_".join(slug(name) for name in names) or "rule"
    only_equal = all(isinstance(c, Predicate) and c.is_cross and c.op.value == "=" for c in conditions)
    one_column = all(isinstance(c, Differ) or len({x.name for x in c.columns}) == 1 for c in conditions)
    return f"{words}_unique" if only_equal and one_column else words


def slug(name: str) -> str:
    """
    >>> slug("ZipCode"), slug("Zip Code"), slug("HTTPCode")
    ('zip_code', 'zip_code', 'http_code')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_") or "column"


def free_id(wanted: str, taken: set[str]) -> str:
    base = slug(wanted)
    name, count = base, 2
    while name in taken:
        name, count = f"{base}_{count}", count + 1
    taken.add(name)
    return name

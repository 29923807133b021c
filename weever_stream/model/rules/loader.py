"""Reads a rule file: YAML, or HoloClean's notation. Every mistake of a file is found before any is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from weever_stream.model.errors import Problem, RuleError
from weever_stream.model.rules.building import dependency, make_constraint, same
from weever_stream.model.rules.constraint import DenialConstraint, Emit
from weever_stream.model.rules.holoclean import is_listing, load_listing
from weever_stream.model.rules.nearest import did_you_mean
from weever_stream.model.rules.normal import MeaninglessError, compare
from weever_stream.model.rules.parser import RuleSyntaxError, parse_deny, parse_fd, parse_where
from weever_stream.model.rules.predicate import Condition, Predicate
from weever_stream.model.rules.resolve import Resolver
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.rules.shape import FileShape, RuleShape, name_of, read_columns, read_shape, text_of
from weever_stream.model.rules.source import Document
from weever_stream.model.rules.source import Path as Place

NO_EQUALITY = "emit: groups needs an equality of the two rows, such as t.zip = t'.zip"


def load_file(path: Path) -> Rules:
    """Reads a rule file. The dataset of a file in HoloClean's notation is the file's name without its ending."""
    return load_text(read_text(path), file=str(path))


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise RuleError((Problem(0, 0, f"cannot be read: {error.strerror}", str(path)),)) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {error.start}): save the file as UTF-8"
        raise RuleError((Problem(0, 0, message, str(path)),)) from None


def load_text(text: str, *, file: str = "<rules>") -> Rules:
    """Reads the text of a rule file; `file` is what its mistakes are reported under."""
    if is_listing(text):
        return load_listing(text, file)
    document = Document(text, file)
    rules = _FileReader(document).rules()
    if rules is None or document.problems:
        raise RuleError(tuple(sorted(set(document.problems))))
    return rules


class _FileReader:
    """Reads one document; mistakes go into `document.problems`."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._shape = read_shape(FileShape, document.data, (), document)
        self._columns, self._names = read_columns(document.data)
        self._key = tuple(self._shape.key) if self._shape is not None else ()

    def rules(self) -> Rules | None:
        self._check_names("key")
        self._check_names("redact")
        self._check_ids()
        constraints = self._constraints()
        if self._shape is None:
            return None
        return Rules(
            dataset=self._shape.dataset,
            key=tuple(self._shape.key),
            constraints=tuple(constraints.values()),
            columns=self._columns,
            redact=tuple(self._shape.redact),
            warnings=self._compare(constraints),
        )

    def _report(self, message: str, place: Place) -> None:
        self._document.problems.append(self._document.problem(message, place))

    def _rule_data(self) -> list[object]:
        data = self._document.data
        rules = data.get("rules") if isinstance(data, dict) else None
        return rules if isinstance(rules, list) else []

    def _check_names(self, field: str) -> None:
        data = self._document.data
        given = data.get(field) if isinstance(data, dict) else None
        names = given if isinstance(given, list) else []
        for count, name in enumerate(names):
            if name in names[:count]:
                self._report(f'{field} names the column "{name}" twice', (field, count))
            elif isinstance(name, str) and self._names and name not in self._names:
                self._report(f'unknown column "{name}" in {field}{did_you_mean(name, self._names)}', (field, count))

    def _check_ids(self) -> None:
        seen: dict[str, int] = {}
        for count, data in enumerate(self._rule_data()):
            name = data.get("id") if isinstance(data, dict) else None
            place: Place = ("rules", count, "id")
            if not isinstance(name, str):
                continue
            if name in seen:
                self._report(f'the id "{name}" is taken by the rule in line {seen[name]}', place)
            else:
                seen[name] = self._document.line(place)

    def _constraints(self) -> dict[Place, DenialConstraint]:
        """The rules without mistakes, by the place where each says what it denies."""
        found: dict[Place, DenialConstraint] = {}
        for count, data in enumerate(self._rule_data()):
            place: Place = ("rules", count)
            shape = read_shape(RuleShape, data, place, self._document)
            form = self._form(data, place)
            if form is not None:
                readable = shape or text_of(data)
                resolver = Resolver(readable.id, self._columns, self._names)
                constraint = _RuleReader(self._document, place, readable, resolver, self._key).constraint(form)
                found |= {(*place, form): constraint} if shape is not None and constraint is not None else {}
        return found

    def _form(self, data: object, place: Place) -> str | None:
        """Which of deny, unique and fd the rule has: exactly one."""
        if not isinstance(data, dict):
            return None
        forms = [str(name) for name in data if name in ("deny", "unique", "fd")]
        if len(forms) == 1:
            return forms[0]
        said = f"has {' and '.join(forms)}" if forms else "says nothing"
        self._report(f"rule {name_of(data)} {said}: give exactly one of deny, unique and fd", place)
        return None

    def _compare(self, constraints: dict[Place, DenialConstraint]) -> tuple[str, ...]:
        places, rules = list(constraints), list(constraints.values())
        duplicates, warnings = compare(rules, self._columns)
        for later, first in duplicates:
            line = self._document.line(places[first])
            self._report(
                f"rule {rules[later].id} means the same as rule {rules[first].id} in line {line}", places[later]
            )
        return warnings


@dataclass(frozen=True)
class _RuleReader:
    """Reads one rule of a document."""

    document: Document
    place: Place
    shape: RuleShape
    resolver: Resolver
    key: tuple[str, ...]

    def constraint(self, form: str) -> DenialConstraint | None:
        before = len(self.document.problems)
        denied = self._denied(form)
        if not denied and len(self.document.problems) == before:
            return None
        where = self._comparisons("where", self.shape.where) if self.shape.where else ()
        if len(self.document.problems) > before:
            return None
        try:
            constraint = make_constraint(self.shape, denied, where, self.resolver.columns, self.key)
        except MeaninglessError as error:
            self._report(f"rule {self.shape.id}: {error}", form)
            return None
        if constraint.emit is Emit.GROUPS and not constraint.equalities:
            self._report(f"rule {self.shape.id}: {NO_EQUALITY}", "emit")
        return constraint

    def _report(self, message: str, *field: str | int, offset: int | None = None) -> None:
        self.document.problems.append(self.document.problem(message, (*self.place, *field), offset=offset))

    def _denied(self, form: str) -> tuple[Condition, ...]:
        if form == "deny":
            return self._comparisons("deny", self.shape.deny) if self.shape.deny else ()
        return self._unique() if form == "unique" else self._fd()

    def _comparisons(self, field: str, text: str) -> tuple[Predicate, ...]:
        try:
            comparisons = parse_where(text) if field == "where" else parse_deny(text)
        except RuleSyntaxError as error:
            self._report(f"rule {self.shape.id}: {error.message}", field, offset=error.offset)
            return ()
        return self.resolver.predicates(comparisons, lambda said, offset: self._report(said, field, offset=offset))

    def _unique(self) -> tuple[Condition, ...]:
        names = self.shape.unique or []
        for message, count in self.resolver.unknown((name, count) for count, name in enumerate(names)):
            self._report(message, "unique", count)
        return same(names)

    def _fd(self) -> tuple[Condition, ...]:
        if not self.shape.fd:
            return ()
        try:
            parsed = parse_fd(self.shape.fd)
        except RuleSyntaxError as error:
            self._report(f"rule {self.shape.id}: {error.message}", "fd", offset=error.offset)
            return ()
        names: Iterable[tuple[str, int]] = ((name.name, name.offset) for name in (*parsed.left, *parsed.right))
        for message, offset in self.resolver.unknown(names):
            self._report(message, "fd", offset=offset)
        return dependency([name.name for name in parsed.left], [name.name for name in parsed.right])

"""From the text of a rule to comparisons: the grammar is in grammar.lark, this file turns its trees into values.

Nothing is known here of columns and their types; every part remembers its offset in the text, so that whoever knows
more can say where a mistake is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any, Literal

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from weever_stream.model.rules.nearest import did_you_mean
from weever_stream.model.rules.predicate import Operator, Row

Language = Literal["deny", "where", "fd", "holoclean", "paper"]

_INDEXES = (("1", "2"), ("0", "1"), ("x", "y"), ("i", "j"), ("α", "β"))
ROW_PAIRS = (
    *(("t", "t'"), ("t", "u"), ("s", "t")),
    *((f"t{first}", f"t{second}") for first, second in _INDEXES),
    *((f"t_{first}", f"t_{second}") for first, second in _INDEXES),
)
"""What the two rows may be called: (first, second)."""

OPERATIONS = {
    "EQ": Operator.EQ,
    "IQ": Operator.NE,
    "LT": Operator.LT,
    "LTE": Operator.LE,
    "GT": Operator.GT,
    "GTE": Operator.GE,
}
_OPERATORS = {"==": Operator.EQ, "<>": Operator.NE, "≠": Operator.NE, "≤": Operator.LE, "≥": Operator.GE}


class RuleSyntaxError(Exception):
    """A text that is no rule. `offset` counts characters of the text from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True)
class ColumnText:
    """A column as written. `row` is the row's name until `_with_rows` turns it into t or u."""

    row: str
    name: str
    offset: int


@dataclass(frozen=True)
class ConstantText:
    """A constant as written; a number with a point is a Decimal until the column's type is known."""

    value: bool | int | Decimal | str
    offset: int


TermText = ColumnText | ConstantText


@dataclass(frozen=True)
class Comparison:
    left: TermText
    op: Operator
    right: TermText

    @property
    def columns(self) -> tuple[ColumnText, ...]:
        return tuple(term for term in (self.left, self.right) if isinstance(term, ColumnText))


@dataclass(frozen=True)
class NameText:
    name: str
    offset: int


@dataclass(frozen=True)
class Dependency:
    """`left -> right`, the text of an `fd`."""

    left: tuple[NameText, ...]
    right: tuple[NameText, ...]


@dataclass(frozen=True)
class Line:
    """One rule of a list of rules that is not YAML, with the label that stood before it."""

    comparisons: tuple[Comparison, ...]
    label: str = ""


def parse_deny(text: str) -> tuple[Comparison, ...]:
    """
    >>> [str(c.op) for c in parse_deny("not(t.zip = t'.zip and t.city <> t'.city)")]
    ['=', '!=']
    """
    return _with_rows(_parse(text, "deny"), ())


def parse_where(text: str) -> tuple[Comparison, ...]:
    comparisons = _with_rows(_parse(text, "where"), ())
    for column in (c for comparison in comparisons for c in comparison.columns if c.row == "u"):
        raise RuleSyntaxError("where may name only the first row, t: it is applied to both rows alike", column.offset)
    return comparisons


def parse_fd(text: str) -> Dependency:
    """
    >>> [name.name for name in parse_fd('a, "b c" -> d').left]
    ['a', 'b c']
    """
    dependency: Dependency = _parse(text, "fd")
    return dependency


def parse_holoclean(text: str) -> Line:
    rows, comparisons = _parse(text, "holoclean")
    return Line(_with_rows(comparisons, rows))


def parse_paper(text: str) -> Line:
    label, rows, comparisons = _parse(text, "paper")
    return Line(_with_rows(comparisons, rows), label)


def _with_rows(comparisons: Sequence[Comparison], declared: tuple[str, ...]) -> tuple[Comparison, ...]:
    """The comparisons with each row's name replaced by t (first) or u (second)."""
    columns = [column for comparison in comparisons for column in comparison.columns]
    names = _row_names(columns, declared)
    return tuple(Comparison(_named(c.left, names), c.op, _named(c.right, names)) for c in comparisons)


def _named(term: TermText, rows: dict[str, Row]) -> TermText:
    return ColumnText(rows[term.row], term.name, term.offset) if isinstance(term, ColumnText) else term


def _row_names(columns: list[ColumnText], declared: tuple[str, ...]) -> dict[str, Row]:
    if len(set(declared)) > 2:
        offset = columns[0].offset if columns else 0
        raise RuleSyntaxError(f"a rule is over two rows at most, not {', '.join(declared)}", offset)
    pairs = (declared,) if declared else ROW_PAIRS
    for count, column in enumerate(columns):
        if not any(column.row in pair for pair in pairs):
            called = " and ".join(pairs[0])
            raise RuleSyntaxError(f'unknown row "{column.row}": the rows are called {called}', column.offset)
        used = {earlier.row for earlier in columns[: count + 1]}
        if not any(used <= set(pair) for pair in pairs):
            raise RuleSyntaxError(_mixed(used), column.offset)
    used = {column.row for column in columns}
    pair = next(pair for pair in pairs if used <= set(pair))
    both: tuple[Row, Row] = ("t", "u")
    return dict(zip(pair, both, strict=False))


def _mixed(used: set[str]) -> str:
    return f"the rows are called {', '.join(sorted(used))}: use one pair of names, such as t and t'"


@cache
def _lark() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start=["deny", "where", "fd", "holoclean", "paper"], transformer=_Values())


def _parse(text: str, language: Language) -> Any:
    try:
        return _lark().parse(text, start=language)
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, RuleSyntaxError):
            raise error.orig_exc from None
        raise


class _Values(Transformer[Token, Any]):
    """Turns the parser's trees into the values above, from the leaves up."""

    def deny(self, children: list[Any]) -> Any:
        return children[0]

    where = deny

    def conjunction(self, children: list[Comparison]) -> tuple[Comparison, ...]:
        return tuple(children)

    def comparison(self, children: list[Any]) -> Comparison:
        for child in children:
            if isinstance(child, Token) and child.lower() == "null":
                raise RuleSyntaxError(_NO_NULL, _offset(child))
            if isinstance(child, Token) and child.type == "BARE":
                raise RuleSyntaxError(f"{child} is no constant: write t.{child} or '{child}'", _offset(child))
        left, op, right = children
        return Comparison(left, _OPERATORS.get(op) or Operator(str(op)), right)

    @v_args(inline=True)
    def column(self, row: Token, name: Token) -> ColumnText:
        return ColumnText(_row_name(row), _unquoted(name), _offset(row))

    argument_column = column

    @v_args(inline=True)
    def constant(self, token: Token) -> ConstantText:
        return ConstantText(_constant(token), _offset(token))

    @v_args(inline=True)
    def argument_text(self, token: Token) -> ConstantText:
        return ConstantText(_unquoted(token), _offset(token))

    def names(self, children: list[Token]) -> tuple[NameText, ...]:
        return tuple(NameText(_unquoted(token), _offset(token)) for token in children)

    @v_args(inline=True)
    def fd(self, left: tuple[NameText, ...], right: tuple[NameText, ...]) -> Dependency:
        return Dependency(left, right)

    @v_args(inline=True)
    def rowname(self, token: Token) -> str:
        return _row_name(token)

    @v_args(inline=True)
    def call(self, operation: Token, left: TermText, right: TermText) -> Comparison:
        op = OPERATIONS.get(operation.upper())
        if op is None:
            hint = did_you_mean(operation.upper(), tuple(OPERATIONS)) or f": there are {', '.join(OPERATIONS)}"
            raise RuleSyntaxError(f'unknown operation "{operation}"{hint}', _offset(operation))
        return Comparison(left, op, right)

    def holoclean(self, children: list[Any]) -> tuple[tuple[str, ...], tuple[Comparison, ...]]:
        rows = tuple(child for child in children if isinstance(child, str))
        return rows, tuple(child for child in children if isinstance(child, Comparison))

    @v_args(inline=True)
    def label(self, token: Token) -> str:
        return token.strip("-*•.:()").strip()

    def quantifier(self, children: list[Any]) -> list[str]:
        return [child for child in children if isinstance(child, str) and not isinstance(child, Token)]

    def paper(self, children: list[Any]) -> tuple[str, tuple[str, ...], tuple[Comparison, ...]]:
        label = next((child for child in reversed(children) if isinstance(child, str)), "")
        rows = next((tuple(child) for child in children if isinstance(child, list)), ())
        return label, rows, children[-1]


def _offset(token: Token) -> int:
    return token.start_pos or 0


def _row_name(token: Token) -> str:
    return token.lower().replace("’", "'").replace("′", "'")


def _unquoted(token: Token) -> str:
    quote = token[0]
    if quote == "[":
        return token[1:-1].strip()
    return token[1:-1].replace(quote * 2, quote) if quote in "\"`'" else token.strip()


def _constant(token: Token) -> bool | int | Decimal | str:
    if token.type == "STRING":
        return _unquoted(token)
    if token.type == "NUMBER":
        return _number(token)
    return token.type == "TRUE"


def _number(token: Token) -> int | Decimal:
    try:
        value = Decimal(token)
    except InvalidOperation:
        value = Decimal("Infinity")
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS or len(token) > _MOST_DIGITS:
        shown = token if len(token) <= 40 else token[:37] + "..."
        raise RuleSyntaxError(f"the number {shown} is out of range", _offset(token))
    return int(token) if token.lstrip("+-").isdigit() else value


_MOST_DIGITS = 400
_NO_NULL = "a rule cannot ask for NULL: a comparison with it is never true, so such rows break no rule"
_NO_NOT = '"not" stands only before a whole rule in parentheses: elsewhere write the opposite comparison'
_TRAILING_NOT = re.compile(r"\bnot\s*$", re.IGNORECASE)
_ODD_NAME = '; the name of a column that is no plain word goes in quotes, such as t."Zip Code"'
_REST_OF_NAME = re.compile(r"[\w#$%/?-][\w #$%/?-]*[=!<>≠≤≥]")
_OPERAND = "a column such as t.zip or a constant"
_WORDS = {
    "ROW": _OPERAND,
    "BARE": _OPERAND,
    "NUMBER": _OPERAND,
    "STRING": _OPERAND,
    "TRUE": _OPERAND,
    "FALSE": _OPERAND,
    "QUOTED": "a column name",
    "TICKED": "a column name",
    "NAME": "a column name",
    "ARGUMENT_NAME": "a column name",
    "OPERATOR": "a comparison (= != < <= > >=)",
    "_AND": '"and"',
    "_NOT": '"not("',
    "_ARROW": '"->"',
    "DOT": '"."',
    "BRACKETED": "a column in [ ]",
    "COMMA": '","',
    "LPAR": '"("',
    "RPAR": '")"',
    "AMPERSAND": '"&"',
    "OPERATION": "an operation such as EQ(",
    "ROWNAME": "a row name such as t1",
    "$END": "the end",
}
_HIDDEN_BY_OPERAND = ('"("', '"not("', "a column name")


def _syntax_error(error: UnexpectedInput, text: str) -> RuleSyntaxError:
    offset = len(text) if _at_end(error) else (error.pos_in_stream or 0)
    found = _found(text, offset)
    if found.lower() in ("or", "∨", "||", "|"):
        return RuleSyntaxError(f'"{found}" is no part of a rule: write one rule for each alternative', offset)
    if found.lower() == "is":
        return RuleSyntaxError(_NO_NULL, offset)
    if found[:1] in ("'", '"', "`"):
        closing = text.find(found[0], offset + 1)
        if closing < 0:
            return RuleSyntaxError(f"the quote {found[0]} is not closed", offset)
        if _OPERAND in _expected(error):
            name = text[offset : closing + 1]
            return RuleSyntaxError(
                f"{name} is the name of a column: write t.{name}, or '{name[1:-1]}' for a text", offset
            )
    if negated := _TRAILING_NOT.search(text[:offset]):
        return RuleSyntaxError(_NO_NOT, negated.start())
    shown = f'"{found}"' if found else "the end of the text"
    expected = _expected(error)
    hint = _ODD_NAME if expected in (_WORDS["OPERATOR"], _WORDS["NAME"]) and _REST_OF_NAME.match(text, offset) else ""
    return RuleSyntaxError(f"expected {expected}, found {shown}{hint}", offset)


def _at_end(error: UnexpectedInput) -> bool:
    return isinstance(error, UnexpectedToken) and error.token.type == "$END"


def _found(text: str, offset: int) -> str:
    """The word or the sign at this offset."""
    end = offset
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[offset : max(end, offset + 1)]


def _expected(error: UnexpectedInput) -> str:
    names: set[str] = set()
    if isinstance(error, UnexpectedToken):
        names = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        names = set(error.allowed or ())
    words = {_WORDS[name] for name in names if name in _WORDS}
    if _OPERAND in words:
        words -= set(_HIDDEN_BY_OPERAND)
    return " or ".join(sorted(words)) or "a rule"

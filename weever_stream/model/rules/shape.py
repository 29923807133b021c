"""The shape of a rule file: which keys there are and what they take. Meaning comes later, in the loader."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from weever_stream.model.errors import Problem
from weever_stream.model.rules.constraint import Emit, Severity, Tolerance
from weever_stream.model.rules.nearest import did_you_mean
from weever_stream.model.rules.source import Document, Path
from weever_stream.model.types import TYPE_NAMES, ColumnType

_MOST_TOLERATED = 10**18


def _tolerance(raw: object) -> Tolerance:
    """`3`, or a share of the rows: `0.1%`."""
    text = str(raw).strip()
    try:
        number = Decimal(text.removesuffix("%").strip())
    except InvalidOperation:
        number = Decimal(-1)
    if not number.is_finite() or number > _MOST_TOLERATED:
        number = Decimal(-1)
    if text.endswith("%") and 0 <= number <= 100:
        return Tolerance(share=number / 100)
    if not text.endswith("%") and number >= 0 and number == number.to_integral_value():
        return Tolerance(count=int(number))
    raise PydanticCustomError("sentence", "must be a whole number from 0, or a share of the rows such as 0.1%")


def _column_type(raw: object) -> ColumnType:
    try:
        return ColumnType.parse(_text(raw))
    except ValueError as error:
        raise PydanticCustomError("whole sentence", "{text}", {"text": f"{error}{_type_hint(raw)}"}) from None


def _text(raw: object) -> str:
    if isinstance(raw, str):
        return raw
    raise ValueError("a column needs a type")


def _type_hint(raw: object) -> str:
    text = str(raw)
    if text.lower().startswith("decimal(") and not text.endswith(")"):
        return ": a comma ends it within { }, so write it in quotes, such as 'decimal(10,2)'"
    return did_you_mean(text, TYPE_NAMES) or ": the types are " + ", ".join(TYPE_NAMES)


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[list[Name], Field(min_length=1)]


class RuleShape(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    deny: Name | None = None
    unique: Names | None = None
    fd: Name | None = None
    severity: Severity = Severity.WARNING
    description: str = ""
    tags: dict[str, str] = {}
    tolerate: Annotated[Tolerance, BeforeValidator(_tolerance)] = Tolerance()
    where: Name | None = None
    emit: Emit = Emit.PAIRS
    max_pairs: Annotated[int, Field(ge=1)] = 10_000


class FileShape(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    version: Literal["1"]
    dataset: Name
    key: list[Name]
    columns: dict[str, Annotated[ColumnType, BeforeValidator(_column_type)]] = {}
    redact: list[Name] = []
    rules: Annotated[list[Any], Field(min_length=1)]


Shape = TypeVar("Shape", bound=BaseModel)


def read_shape(shape: type[Shape], data: object, path: Path, document: Document) -> Shape | None:
    """The data in this shape, or None after every mistake went into the document's problems."""
    if not isinstance(data, dict):
        document.problems.append(document.problem(_NO_MAPPING[shape.__name__], path))
        return None
    given = {name: value for name, value in data.items() if value is not None}
    for name in data.keys() - given.keys():
        document.problems.append(document.problem(f'"{name}" has no value', (*path, name), key=True))
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        empty = data.keys() - given.keys()
        details = [detail for detail in error.errors() if detail["loc"][0] not in empty]
        document.problems.extend(_problem(detail, shape, path, document) for detail in details)
        return None


def text_of(data: object) -> RuleShape:
    """What a rule with mistakes in its settings says all the same, so that mistakes in its text are found too."""
    given = data if isinstance(data, dict) else {}
    deny, fd, where = (value if isinstance(value := given.get(name), str) else None for name in ("deny", "fd", "where"))
    unique = given.get("unique")
    names = unique if isinstance(unique, list) and all(isinstance(name, str) for name in unique) else None
    return RuleShape.model_construct(id=name_of(given), deny=deny, unique=names, fd=fd, where=where)


def name_of(rule: dict[str, Any]) -> str:
    """What a rule is called in messages, whatever stands under its id."""
    name = rule.get("id")
    return name if isinstance(name, str) else "without id"


def read_columns(data: object) -> tuple[dict[str, ColumnType], tuple[str, ...]]:
    """The columns with a good type, and the names of all: a mistake elsewhere must not hide those in the rules."""
    given = data.get("columns") if isinstance(data, dict) else None
    if not isinstance(given, dict):
        return {}, ()
    return {name: type_ for name in given if (type_ := _type_or_none(given[name])) is not None}, tuple(given)


def _type_or_none(raw: object) -> ColumnType | None:
    try:
        return ColumnType.parse(_text(raw))
    except ValueError:
        return None


_NO_MAPPING = {
    "FileShape": "a rule file starts with keys such as version, dataset, key and rules",
    "RuleShape": "a rule has keys such as id and deny",
}


def _problem(detail: ErrorDetails, shape: type[BaseModel], path: Path, document: Document) -> Problem:
    place = (*path, *detail["loc"])
    unknown = detail["type"] == "extra_forbidden"
    return document.problem(_sentence(detail, shape), place, key=unknown)


def _sentence(detail: ErrorDetails, shape: type[BaseModel]) -> str:
    """pydantic's finding in our words."""
    kind, name, given = detail["type"], str(detail["loc"][0]), detail["input"]
    if kind == "extra_forbidden":
        return f'unknown key "{name}"' + did_you_mean(name, shape.model_fields)
    if kind == "missing":
        return f'"{name}" is missing' + _MISSING.get(name, "")
    if kind == "enum":
        right = [member.value for member in (Severity if name == "severity" else Emit)]
        hint = f', not "{given}"' + did_you_mean(given, right) if isinstance(given, str) else ""
        return f"{name} is {', '.join(right[:-1])} or {right[-1]}{hint}"
    if kind == "whole sentence":
        return detail["msg"]
    shown = f', not "{given}"' if isinstance(given, str) else ""
    if len(detail["loc"]) > 1 and kind in ("string_type", "string_too_short"):
        return f"{name}: a single word or name must stand here"
    return f"{name} {_MUST.get(name, detail['msg'])}{shown}"


_MISSING = {
    "version": ": write version: 1",
    "dataset": ": it names the table in events and metrics",
    "key": ": name the key columns, or write [] where rows are known by their number",
}
_MUST = {
    "id": "must consist of a-z, 0-9 and _",
    "version": "must be 1",
    "dataset": "must be a name",
    "key": "must be a list of columns, such as [id]",
    "columns": "must map each column to its type, such as zip: string",
    "redact": "must be a list of columns, such as [ssn]",
    "rules": "must be a list with at least one rule",
    "deny": "must be a text, such as t.zip = t'.zip and t.city != t'.city",
    "unique": "must be a list of columns, such as [area_code, phone]",
    "fd": "must be a text, such as zip -> city",
    "where": "must be a text, such as t.status = 'live'",
    "description": "must be a text",
    "tags": "must map names to texts, such as {owner: data-eng}",
    "tolerate": "must be a whole number from 0, or a share of the rows such as 0.1%",
    "max_pairs": "must be a whole number from 1",
}

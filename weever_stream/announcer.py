"""What violation events of a rule set have in common: keys and ids as consumers see them, messages."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from typing import Any

from weever_stream.engine.findings import NOBODY
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.message import Message
from weever_stream.model.rules.predicate import Value
from weever_stream.model.rules.ruleset import Rules
from weever_stream.redaction import Redaction

KeyTuple = tuple[Value, ...]

_json = json.JSONEncoder(default=str, separators=(",", ":")).encode


def key_json(key: KeyTuple) -> str:
    """A key as JSON; equal keys give equal texts, whatever the types of their numbers.

    >>> key_json((1, "x")) == key_json((Decimal("1.0"), "x"))
    True
    """
    if len(key) == 1:
        if type(key[0]) is int:
            return f"[{key[0]}]"
        if type(key[0]) is str:
            return f"[{encode_basestring_ascii(key[0])}]"
    return _json([_plain(value) for value in key])


def _plain(value: Value) -> Value:
    if isinstance(value, Decimal | float) and math.isfinite(value):
        return int(value) if value == int(value) else str(Fraction(value))
    return value


def digest(head: str, t: str, u: str) -> str:
    """32 hex digits for the list [dataset, rule, t, u], given as JSON in parts."""
    return hashlib.blake2b(f"{head[:-1]},{t},{u}]".encode(), digest_size=16).hexdigest()


class Announcer:
    """Keys, ids and messages of a rule set's violations, in the form that events show them."""

    def __init__(self, rules: Rules, table: Table, redaction: Redaction) -> None:
        self.rules, self.table, self.redaction = rules, table, redaction
        self.messages = {constraint.id: Message(constraint, rules.redact) for constraint in rules}

    def key_tuple(self, rid: int) -> KeyTuple:
        key: Any = self.table.keys[rid]
        return (key,) if len(self.rules.key) == 1 else key

    def oriented(self, constraint: DenialConstraint, t: int, u: int) -> tuple[int, int]:
        """A symmetric pair is reported with the smaller key as t."""
        if u != NOBODY and constraint.is_symmetric and self.key_tuple(u) < self.key_tuple(t):
            return u, t
        return t, u

    def masked_key(self, key: KeyTuple) -> dict[str, Value]:
        return self.redaction.masked(dict(zip(self.rules.key, key, strict=True)))

    def violation_id(self, rule: str, t: Iterable[Value], u: Iterable[Value] | None) -> str:
        """From the dataset, the rule and the two keys (or a group's values) alone, in the form that events show."""
        parts = [key_json(tuple(part)) if part is not None else "null" for part in (t, u)]
        return digest(self.id_head(rule), *parts)

    def id_head(self, rule: str) -> str:
        return _json([self.rules.dataset, rule])

"""Redaction: values of the columns under `redact` leave the monitor as a keyed hash only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

from weever_stream.model.errors import WeeverError
from weever_stream.model.rules.predicate import Value

SECRET = "WEEVER_REDACT_SECRET"


class Redaction:
    """Equal values stay equal; without the secret they cannot be guessed.

    >>> redaction = Redaction(["ssn"], secret="s")
    >>> shown = redaction.masked({"id": 1, "ssn": "078-05-1120"})
    >>> shown["id"], shown["ssn"] == redaction.masked({"ssn": "078-05-1120"})["ssn"], len(shown["ssn"])
    (1, True, 20)
    """

    def __init__(self, columns: Iterable[str], secret: str | None = None) -> None:
        self.columns = frozenset(columns)
        secret = secret or os.environ.get(SECRET)
        if self.columns and not secret:
            raise WeeverError(f"the rules redact columns: set {SECRET} in the environment to the secret of the hash")
        self._secret = hashlib.blake2b((secret or "").encode()).digest()

    def masked(self, row: Mapping[str, Value]) -> dict[str, Value]:
        if not self.columns:
            return dict(row)
        return {name: self.value(name, value) for name, value in row.items()}

    def value(self, name: str, value: Value) -> Value:
        if name not in self.columns or value is None:
            return value
        return "hash" + hashlib.blake2b(str(value).encode(), key=self._secret, digest_size=8).hexdigest()

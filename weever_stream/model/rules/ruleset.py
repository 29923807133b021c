"""A whole rule file as one frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.types import ColumnType


@dataclass(frozen=True)
class Rules:
    """The rules of one dataset. Read one with `Rules.load(path)` or `Rules.loads(text)`.

    An empty `key` means that rows are keyed by their row number from 0. `warnings` are sentences about rules that
    are taken but look like mistakes (one implied by another, for example).
    """

    dataset: str
    key: tuple[str, ...]
    constraints: tuple[DenialConstraint, ...]
    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    redact: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @staticmethod
    def load(path: str | Path) -> Rules:
        """Reads a rule file (YAML, or HoloClean's notation). Raises RuleError with every mistake in it."""
        from weever_stream.model.rules.loader import load_file

        return load_file(Path(path))

    @staticmethod
    def loads(text: str, *, file: str = "<rules>") -> Rules:
        """Reads a rule file from a string of YAML."""
        from weever_stream.model.rules.loader import load_text

        return load_text(text, file=file)

    @cached_property
    def by_id(self) -> Mapping[str, DenialConstraint]:
        return {constraint.id: constraint for constraint in self.constraints}

    @cached_property
    def used_columns(self) -> tuple[str, ...]:
        """The columns that any rule reads, in the order of the rules."""
        return tuple(dict.fromkeys(name for constraint in self.constraints for name in constraint.columns))

    def __iter__(self) -> Iterator[DenialConstraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

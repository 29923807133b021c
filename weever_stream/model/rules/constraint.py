"""The denial constraint: one rule, frozen, in normal form."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from weever_stream.model.rules.predicate import Condition, Differ, Operator, Predicate, Value, columns_of


class Severity(enum.Enum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Emit(enum.Enum):
    PAIRS = "pairs"
    ROWS = "rows"
    GROUPS = "groups"
    COUNTS = "counts"


class RuleClass(enum.Enum):
    KEY = "key"
    FUNCTIONAL = "functional dependency"
    ORDER = "order dependency"
    OTHER = "other"


@dataclass(frozen=True)
class Tolerance:
    """Open violations up to which no alert fires: a number, or a share of the rows."""

    count: int = 0
    share: Decimal | None = None

    def allowed(self, rows: int) -> Decimal:
        return Decimal(self.count) if self.share is None else self.share * rows


@dataclass(frozen=True)
class Dropped:
    """A predicate that was written but is not evaluated, and why."""

    condition: Condition
    reason: str


@dataclass(frozen=True)
class DenialConstraint:
    """`not (p1 and p2 and ...)` over two rows t and u, or over one row where only t is named.

    `conditions` hold everything that must be true of a violating pair, the `where` filter (on both rows) included,
    without redundant parts. `where` is kept as well for display.
    """

    id: str
    conditions: tuple[Condition, ...]
    where: tuple[Predicate, ...] = ()
    severity: Severity = Severity.WARNING
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    tolerate: Tolerance = Tolerance()
    emit: Emit = Emit.PAIRS
    max_pairs: int = 10_000
    dropped: tuple[Dropped, ...] = ()

    @cached_property
    def is_single(self) -> bool:
        """True where the rule names one row only; it is then broken by single rows."""
        return all(condition.rows <= {"t"} for condition in self.conditions)

    @cached_property
    def is_symmetric(self) -> bool:
        """True where swapping t and u gives the same rule."""
        return not self.is_single and {c.swapped for c in self.conditions} == set(self.conditions)

    @cached_property
    def equalities(self) -> tuple[Predicate, ...]:
        """The cross-row equalities; they decide in which partition two rows meet."""
        return tuple(c for c in self.conditions if isinstance(c, Predicate) and c.is_cross and c.op is Operator.EQ)

    @cached_property
    def filters_t(self) -> tuple[Predicate, ...]:
        return tuple(c for c in self.conditions if isinstance(c, Predicate) and c.rows == {"t"})

    @cached_property
    def filters_u(self) -> tuple[Predicate, ...]:
        return tuple(c for c in self.conditions if isinstance(c, Predicate) and c.rows == {"u"})

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns the rule reads, in the order in which it names them."""
        return tuple(dict.fromkeys(column.name for column in columns_of(self.conditions)))

    @cached_property
    def rule_class(self) -> RuleClass:
        cross = [c for c in self.conditions if c.is_cross]
        if self.is_single or not cross or any(not _same_column(c) for c in cross):
            return RuleClass.OTHER
        rest = [c for c in cross if c not in self.equalities]
        if not rest and self.is_symmetric:
            return RuleClass.KEY
        if (
            len(rest) == 1
            and self.is_symmetric
            and self.equalities
            and (isinstance(rest[0], Differ) or rest[0].op is Operator.NE)
        ):
            return RuleClass.FUNCTIONAL
        if len(rest) == 2 and all(isinstance(c, Predicate) and c.op.is_inequality for c in rest):
            return RuleClass.ORDER
        return RuleClass.OTHER

    @cached_property
    def version(self) -> str:
        """Eight hex digits that change exactly when the rule's meaning changes."""
        text = " and ".join(sorted(_canonical(c) for c in self.conditions))
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()

    def holds(self, t: dict[str, Value], u: dict[str, Value]) -> bool:
        """True where the pair (t, u) breaks the rule."""
        return all(condition.holds(t, u) for condition in self.conditions)

    def __str__(self) -> str:
        return "not(" + " and ".join(str(condition) for condition in self.conditions) + ")"


def _same_column(condition: Condition) -> bool:
    if isinstance(condition, Differ):
        return True
    left, right = condition.columns
    return left.name == right.name


def _canonical(condition: Condition) -> str:
    return f"{type(condition).__name__} {condition!r}"

"""The table: the last image of every row, as columns of dictionary codes under dense row ids."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weever_stream.engine.domain import NULL, Codes, Domain, Ids, Mask, grown
from weever_stream.engine.numbering import Numbering
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Constant, Predicate, Value

Key = Hashable  # the value of a single key column, or the tuple of several


_ONE = np.int32(1)  # of the array's own type: with any other, `ufunc.at` takes forty times as long


class CellColumn:
    """One column: a code for each row id, and how many rows hold each code."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.codes: Codes = np.full(16, NULL, dtype=np.int32)
        self.holders: NDArray[np.int32] = np.zeros(16, dtype=np.int32)
        self.distinct = 0

    def hold(self, codes: Codes) -> None:
        self.holders = grown(self.holders, len(self.domain.values), 0)
        codes = codes[codes >= 0]
        fresh = codes[self.holders[codes] == 0]
        np.add.at(self.holders, codes, _ONE)
        self.distinct += len(set(fresh.tolist()))

    def release(self, codes: Codes) -> None:
        codes = codes[codes >= 0]
        np.subtract.at(self.holders, codes, _ONE)
        self.distinct -= len(set(codes[self.holders[codes] == 0].tolist()))


class Table:
    """Rows by key. Ids are dense and reused; `write` and `erase` keep dictionaries free of values nobody holds."""

    def __init__(self, names: Iterable[str], constraints: Iterable[DenialConstraint]) -> None:
        constraints = tuple(constraints)
        self.domains = _domains(tuple(names), constraints)
        self.columns: dict[str, CellColumn] = {name: CellColumn(self.domains[name]) for name in names}
        self._ids = Numbering()
        self.keys: list[Key] = []
        self._pinned: dict[int, set[int]] = {}
        self._ranks: NDArray[np.int64] = np.full(16, -1, dtype=np.int64)
        self.constants = {(name, constant): self._pin(name, constant) for name, constant in _constants(constraints)}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def capacity(self) -> int:
        """One more than the largest row id in use so far."""
        return len(self.keys)

    def live(self) -> Ids:
        return np.sort(np.fromiter(self._ids, dtype=np.int64, count=len(self)))

    def id_of(self, key: Key) -> int:
        """The row id of a key; UNKNOWN where no row has it."""
        return self._ids.get(key)

    def ids_of(self, keys: Sequence[Key]) -> Ids:
        return np.array(self._ids.find(keys), dtype=np.int64)

    def allocate(self, keys: Sequence[Key]) -> tuple[Ids, Mask]:
        """Row ids of these (different) keys, and which were known; a new key gets an id, still without a row."""
        rids, fresh, numbers = self._ids.assign(keys)
        result = np.array(rids, dtype=np.int64)
        if not fresh:
            return result, np.ones(len(keys), dtype=bool)
        self._ids.store(self.keys, numbers, fresh)
        return result, np.zeros(len(keys), dtype=bool) if len(fresh) == len(keys) else ~np.isin(result, numbers)

    def encode(self, cells: Mapping[str, Sequence[Value]]) -> dict[str, Codes]:
        return {name: column.domain.encode(cells[name]) for name, column in self.columns.items()}

    def image(self, rids: Ids) -> dict[str, Codes]:
        """The codes of these rows, a copy."""
        return {name: column.codes[rids] for name, column in self.columns.items()}

    def write(self, rids: Ids, image: Mapping[str, Codes]) -> None:
        """Puts new cells into rows that hold none (new or erased)."""
        for name, column in self.columns.items():
            column.codes = grown(column.codes, self.capacity, NULL)
            column.hold(image[name])
            column.codes[rids] = image[name]

    def erase(self, rids: Ids) -> None:
        """Empties rows; their values stay known until `settle`."""
        for column in self.columns.values():
            column.release(column.codes[rids])
            column.codes[rids] = NULL

    def settle(self, gone: Ids, old: Mapping[str, Codes]) -> None:
        """Ends a batch: forgets the keys of deleted rows and the values that nobody holds any longer."""
        if len(gone):
            self._ids.forget([self.keys[rid] for rid in gone.tolist()])
            for rid in gone.tolist():
                self.keys[rid] = None
            self._ranks[gone[gone < len(self._ranks)]] = -1
        for name, codes in old.items():
            if len(codes):
                self._forget(self.columns[name].domain, codes)

    def _forget(self, domain: Domain, codes: Codes) -> None:
        free = codes >= 0
        for column in self.columns.values():
            if column.domain is domain:
                column.holders = grown(column.holders, len(domain.values), 0)
                free &= column.holders[codes] == 0
        if free.any():
            pinned = self._pinned.get(id(domain), set())
            unheld = set(codes[free].tolist()) - pinned
            domain.forget([code for code in unheld if domain.values[code] is not None])

    def value(self, name: str, rid: int) -> Value:
        column = self.columns[name]
        return column.domain.decode(int(column.codes[rid]))

    def rank(self, rids: Ids) -> NDArray[np.int64]:
        """A number for each row that depends on its key alone: the order in which capped pairs are kept."""
        self._ranks = grown(self._ranks, self.capacity, -1)
        for rid in set(rids[self._ranks[rids] < 0].tolist()):
            digest = hashlib.blake2b(repr(self.keys[rid]).encode(), digest_size=7).digest()
            self._ranks[rid] = int.from_bytes(digest, "big")
        return self._ranks[rids]

    def _pin(self, name: str, constant: Constant) -> int:
        domain = self.domains[name]
        code = int(domain.encode([constant.value])[0])
        self._pinned.setdefault(id(domain), set()).add(code)
        return code

    def check(self) -> None:
        live = self.live()
        for domain in {id(d): d for d in self.domains.values()}.values():
            domain.check()
        for name, column in self.columns.items():
            codes = column.codes[live]
            counts = np.bincount(codes[codes >= 0], minlength=len(column.holders))
            if not np.array_equal(counts, column.holders) or column.distinct != np.count_nonzero(counts):
                raise InvariantError(f"table: column {name} counts its values wrongly")
        self._ids.check()
        if any(self.keys[rid] != key for key, rid in self._ids.items()):
            raise InvariantError("table: a key and its row id disagree")


def _domains(names: tuple[str, ...], constraints: tuple[DenialConstraint, ...]) -> dict[str, Domain]:
    """One domain for each set of columns that meet in predicates, directly or through others."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    ordered = set()
    for constraint in constraints:
        for condition in constraint.conditions:
            touched = [column.name for column in condition.columns]
            if isinstance(condition, Predicate):
                for name in touched[1:]:
                    parent[root(name)] = root(touched[0])
                if condition.op.is_inequality:
                    ordered.update(touched)
    roots = {root(name) for name in ordered}
    domains = {name: Domain(ordered=name in roots) for name in names if root(name) == name}
    return {name: domains[root(name)] for name in names}


def _constants(constraints: tuple[DenialConstraint, ...]) -> set[tuple[str, Constant]]:
    found = set()
    for constraint in constraints:
        for condition in constraint.conditions:
            if isinstance(condition, Predicate) and isinstance(condition.right, Constant):
                assert isinstance(condition.left, Column)
                found.add((condition.left.name, condition.right))
    return found

"""A partition: the rows that agree on one route key, with an index for each column that predicates ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from pyroaring import BitMap

from weever_stream.engine.domain import Ids, grown
from weever_stream.engine.hash_index import HashIndex
from weever_stream.engine.lt_tree import LTTree
from weever_stream.engine.probe import Probe
from weever_stream.engine.table import Table
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.predicate import Operator, Value

Operands = dict[tuple[str, str, str], BitMap]


class Partition:
    """Indexes over dense local ids; built when first needed, then kept up with every batch."""

    def __init__(self, table: Table, hashed: Iterable[str], ordered: Iterable[str], rids: Ids) -> None:
        self._table = table
        self.hashes = {name: HashIndex() for name in hashed}
        self.trees = {name: LTTree() for name in ordered}
        self.ids = BitMap()
        self.rids: Ids = np.full(16, -1, dtype=np.int64)
        self._local: dict[int, int] = {}
        self._free: list[int] = []
        self.add(rids)

    def __len__(self) -> int:
        return len(self._local)

    def local(self, rid: int) -> int | None:
        return self._local.get(rid)

    def rows(self, ids: BitMap) -> Ids:
        """Row ids of a set of local ids."""
        return self.rids[np.frombuffer(ids.to_array(), dtype=np.uint32)] if ids else np.empty(0, dtype=np.int64)

    def add(self, rids: Ids) -> None:
        """Indexes rows whose cells stand in the table."""
        reused = [self._free.pop() for _ in range(min(len(self._free), len(rids)))]
        start = len(self._local) + len(reused) + len(self._free)
        locals_ = [*reused, *range(start, start + len(rids) - len(reused))]
        self._local.update(zip(rids.tolist(), locals_, strict=True))
        self.rids = grown(self.rids, max(locals_, default=-1) + 1, -1)
        self.rids[locals_] = rids
        self.ids.update(locals_)
        self._each_index(rids, locals_, "insert_many")

    def remove(self, rids: Ids) -> None:
        """Takes rows out; their cells must still stand in the table."""
        locals_ = [self._local.pop(rid) for rid in rids.tolist()]
        self._free.extend(locals_)
        self.ids -= BitMap(locals_)
        self._each_index(rids, locals_, "delete_many")

    def _each_index(self, rids: Ids, locals_: Sequence[int], change: str) -> None:
        for name, index in self.hashes.items():
            codes = self._table.columns[name].codes[rids].tolist()
            getattr(index, change)(locals_, [None if code < 0 else code for code in codes])
        for name, tree in self.trees.items():
            getattr(tree, change)(locals_, self._values(name, rids))

    def _values(self, name: str, rids: Ids) -> list[Value]:
        column = self._table.columns[name]
        values = column.domain.values
        return [None if code < 0 else values[code] for code in column.codes[rids].tolist()]

    def sweep(self, probe: Probe, rids: Ids) -> tuple[Ids, Iterator[Operands]]:
        """The rows sorted by the first inequality, with its operands, each extending the last (section 5.5)."""
        values = self._values(probe.own, rids)
        known = sorted((at for at, value in enumerate(values) if value is not None), key=values.__getitem__)
        unknown = [at for at, value in enumerate(values) if value is None]
        tree = self.trees[probe.other]

        def operands() -> Iterator[Operands]:
            for smaller, equal in tree.sweep([values[at] for at in known]):
                yield {(probe.other, "smaller", probe.own): smaller, (probe.other, "equal", probe.own): equal}
            yield from ({} for _ in unknown)

        return rids[known + unknown], operands()

    def refine(self, candidates: BitMap | None, probe: Probe, rid: int, operands: Operands) -> BitMap:
        """The candidates (None: all rows) that satisfy the probe. Never changes its argument; what it answers may be an
        index's own set, good until the next row is asked."""
        if probe.any_of:
            return BitMap.union(*(self.refine(candidates, part, rid, operands) for part in probe.parts))
        code = int(self._table.columns[probe.own].codes[rid])
        if code < 0:
            return BitMap()
        if not probe.op.is_inequality:
            return self._refine_by_hash(candidates, probe, code)
        return self._refine_by_order(candidates, probe, code, operands)

    def _refine_by_hash(self, candidates: BitMap | None, probe: Probe, code: int) -> BitMap:
        index = self.hashes[probe.other]
        equal = index.equal(code)
        if probe.op is Operator.EQ:
            return equal if candidates is None else candidates & equal
        rest = (index.ids if candidates is None else candidates) - equal
        return rest - index.nulls if candidates is not None and index.nulls else rest

    def _refine_by_order(self, candidates: BitMap | None, probe: Probe, code: int, operands: Operands) -> BitMap:
        tree = self.trees[probe.other]
        value = self._table.columns[probe.own].domain.values[code]
        smaller = _operand(operands, (probe.other, "smaller", probe.own), tree.smaller, value)
        if probe.op is Operator.GT:
            return smaller if candidates is None else candidates & smaller
        if probe.op is Operator.LE:
            rest = (tree.ids if candidates is None else candidates) - smaller
        else:
            equal = _operand(operands, (probe.other, "equal", probe.own), tree.equal, value)
            if probe.op is Operator.GE:
                return smaller | equal if candidates is None else candidates & (smaller | equal)
            rest = (tree.ids if candidates is None else candidates) - smaller
            rest -= equal
        if candidates is not None and tree.nulls:
            rest -= tree.nulls
        return rest

    def check(self, rids: Ids) -> None:
        """Holds exactly these rows, and every index agrees with the table."""
        if sorted(self._local) != sorted(rids.tolist()) or sorted(self.ids) != sorted(self._local.values()):
            raise InvariantError(f"partition: holds {sorted(self._local)} instead of {sorted(rids.tolist())}")
        indexes: list[HashIndex | LTTree] = [*self.hashes.values(), *self.trees.values()]
        for index in indexes:
            index.check()
            if len(index.ids) + len(index.nulls) != len(self._local):
                raise InvariantError("partition: an index holds another number of rows than the partition")


def _operand(operands: Operands, key: tuple[str, str, str], make: Callable[[Any], BitMap], value: Value) -> BitMap:
    """An operand of this row, made once however many rules ask for it."""
    found = operands.get(key)
    if found is None:
        found = operands[key] = make(value)
    return found

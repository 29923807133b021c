"""A partition: the rows that agree on one route key, with an index for each column that predicates ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from pyroaring import BitMap

from weever_stream.engine.bitmaps import bitmap_of, ids_of
from weever_stream.engine.domain import Ids, grown
from weever_stream.engine.frontier import Frontier
from weever_stream.engine.hash_index import HashIndex
from weever_stream.engine.lt_tree import LTTree
from weever_stream.engine.probe import Probe
from weever_stream.engine.slots import NOWHERE, Numbers
from weever_stream.engine.table import Table
from weever_stream.model.errors import InvariantError
from weever_stream.model.rules.predicate import Operator, Value

Operands = dict[tuple[str, str, str], BitMap]


class LocalIds:
    """The local id of each row that stands in an indexed partition; shared by the partitions of a side."""

    def __init__(self) -> None:
        self.of: Numbers = np.full(16, NOWHERE, dtype=np.int32)

    def reserve(self, rows: int) -> None:
        self.of = grown(self.of, rows, NOWHERE)


class Partition:
    """What is kept of a partition that is asked often: frontiers, and once it is searched through them, indexes over
    dense local ids. All are kept up with every batch.

    `asked` counts the rows that its bounds did not turn away, `left` the rows that have left: see `Side.partition`.
    """

    def __init__(
        self,
        table: Table,
        local_ids: LocalIds,
        hashed: Iterable[str],
        ordered: Iterable[str],
        frontiers: Iterable[tuple[Probe, Probe]],
        rids: Ids,
    ) -> None:
        self._table, self._local_ids = table, local_ids
        self._hashed, self._ordered = tuple(hashed), tuple(ordered)
        self.frontiers = {probes: Frontier(table, *probes) for probes in frontiers}
        self.hashes: dict[str, HashIndex] = {}
        self.trees: dict[str, LTTree] = {}
        self.ids = BitMap()
        self._is_indexed = False
        self._rids: Ids = np.full(16, NOWHERE, dtype=np.int64)
        self._free: list[int] = []
        self.size = self.asked = self.left = 0
        self.add(rids)

    def index(self, rids: Ids) -> None:
        """Builds the indexes over all rows, unless they are there."""
        if not self._is_indexed:
            self._is_indexed = True
            self.hashes = {name: HashIndex() for name in self._hashed}
            self.trees = {name: LTTree() for name in self._ordered}
            self._add_to_indexes(rids)

    def narrow(self, rids: Ids) -> None:
        self.frontiers = {probes: Frontier(self._table, *probes, rids) for probes in self.frontiers}
        self.asked = self.left = 0

    def rows(self, ids: BitMap) -> Ids:
        """Row ids of a set of local ids."""
        return self._rids[ids_of(ids)]

    def local(self, rids: Ids) -> BitMap:
        """Local ids of rows that stand here."""
        return bitmap_of(self._local_ids.of[rids])

    def has(self, rid: int, ids: BitMap) -> bool:
        """Is this row, which stands here, in a set of local ids?"""
        return int(self._local_ids.of[rid]) in ids

    def add(self, rids: Ids) -> None:
        """Rows join, whose cells stand in the table."""
        self.size += len(rids)
        for frontier in self.frontiers.values():
            frontier.add(rids)
        if self._is_indexed:
            self._add_to_indexes(rids)

    def _add_to_indexes(self, rids: Ids) -> None:
        local = self._take(len(rids))
        self._local_ids.of[rids] = local
        self._rids = grown(self._rids, int(local.max(initial=0)) + 1, NOWHERE)
        self._rids[local] = rids
        self.ids |= bitmap_of(local)
        for name, index in self.hashes.items():
            index.insert(local, self._table.columns[name].codes[rids])
        for name, tree in self.trees.items():
            tree.insert_many(local.tolist(), self._values(name, rids))

    def remove(self, rids: Ids) -> None:
        """Rows leave, while their cells still stand in the table. Frontiers keep their bounds."""
        self.size -= len(rids)
        self.left += len(rids)
        if not self._is_indexed:
            return
        local = self._local_ids.of[rids]
        self._free.extend(local.tolist())
        self._rids[local] = NOWHERE
        self.ids -= bitmap_of(local)
        for name, index in self.hashes.items():
            index.delete(local, self._table.columns[name].codes[rids])
        for name, tree in self.trees.items():
            tree.delete_many(local.tolist(), self._values(name, rids))

    def _take(self, count: int) -> Ids:
        """Local ids that nobody has: freed ones first."""
        kept = max(0, len(self._free) - count)
        reused = self._free[kept:]
        del self._free[kept:]
        start = len(self.ids) + len(self._free) + len(reused)
        return np.array([*reused, *range(start, start + count - len(reused))], dtype=np.int64)

    def _values(self, name: str, rids: Ids) -> list[Value]:
        column = self._table.columns[name]
        return column.domain.decoded(column.codes[rids])

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
        if self.size != len(rids):
            raise InvariantError(f"partition: counts {self.size} rows instead of {len(rids)}")
        if not self._is_indexed:
            return
        if not np.array_equal(np.sort(self.rows(self.ids)), np.sort(rids)) or len(self.ids) != len(rids):
            raise InvariantError(f"partition: holds {self.rows(self.ids).tolist()} instead of {rids.tolist()}")
        indexes: list[HashIndex | LTTree] = [*self.hashes.values(), *self.trees.values()]
        for index in indexes:
            index.check()
            if len(index.ids) + len(index.nulls) != len(self.ids):
                raise InvariantError("partition: an index holds another number of rows than the partition")


def _operand(operands: Operands, key: tuple[str, str, str], make: Callable[[Any], BitMap], value: Value) -> BitMap:
    """An operand of this row, made once however many rules ask for it."""
    found = operands.get(key)
    if found is None:
        found = operands[key] = make(value)
    return found

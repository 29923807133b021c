"""The WEEVER refinement: rows of large partitions find their partners through indexes, predicate by predicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from pyroaring import BitMap

from weever_stream.engine.domain import Ids, Mask
from weever_stream.engine.findings import Collector
from weever_stream.engine.grouping import by_label, cut
from weever_stream.engine.partition import Operands, Partition
from weever_stream.engine.probe import Probe
from weever_stream.engine.question import Question
from weever_stream.engine.schedule import Prefix, Schedule
from weever_stream.engine.table import Table
from weever_stream.model.rules.constraint import Emit
from weever_stream.model.rules.predicate import Condition


class Refinement:
    """Answers one question in one partition after the other.

    Rows that look alike to the rules have the same partners, so one of them is refined for all.
    """

    def __init__(
        self,
        table: Table,
        schedule: Schedule,
        question: Question,
        symmetric: Mapping[str, bool],
        asking: Mask,
        collector: Collector,
    ) -> None:
        self._table, self._schedule, self._question = table, schedule, question
        self._symmetric, self._asking, self._collector = symmetric, asking, collector
        self._role, self._side = question.view.role, question.view.other
        self._asking_in: dict[int, BitMap] = {}
        self._rules = [rule for rule in schedule.order if rule in question.hopeful and collector.wants(rule)]
        probes = [self._probe(condition) for rule in self._rules for condition in schedule.steps[rule]]
        self._own_columns = tuple(dict.fromkeys(part.own for probe in probes for part in probe.parts))
        self._first_inequality = next((probe for probe in probes if probe.op.is_inequality), None)

    def _probe(self, condition: Condition) -> Probe:
        return Probe.of(condition, self._role)

    def run(self, large: Mask) -> None:
        """Answers for the rows marked as large."""
        question = self._question
        asked = np.flatnonzero(question.anybody(large))
        places, pids, starts, _ = by_label(asked, question.pids[asked])
        for pid, share in zip(pids.tolist(), cut(places, starts), strict=True):
            self._answer(pid, share)

    def _answer(self, pid: int, share: Ids) -> None:
        """The rows at these places of the question all ask one partition."""
        partition = self._side.partition(pid)
        partition.index(self._side.slots.of(pid))
        partition.asked += len(share)
        rids = self._question.rids[share]
        hopeful = {rule: mask[share] for rule, mask in self._question.hopeful.items()}
        groups = {int(rids[group[0]]): group for group in self._alike(rids)}
        for rid, operands in self._ordered(partition, np.array(list(groups))):
            group = groups[rid]
            rules = [rule for rule in self._rules if hopeful[rule][group[0]]]
            for rule, found in self._found(partition, rid, rules, operands):
                if found:
                    self._report(partition, pid, rule, rids[group], found)

    def _alike(self, rids: Ids) -> list[Ids]:
        """Places of rows that hold the same values in every column that is asked."""
        labels = np.zeros(len(rids), dtype=np.int64)
        for name in self._own_columns:
            codes = self._table.columns[name].codes[rids].astype(np.int64)
            _, labels = np.unique(labels * (int(codes.max()) + 2) + codes + 1, return_inverse=True)
        places, _, starts, _ = by_label(np.arange(len(rids)), labels)
        return cut(places, starts)

    def _ordered(self, partition: Partition, rids: Ids) -> Iterator[tuple[int, Operands]]:
        if self._first_inequality is None:
            yield from ((rid, {}) for rid in rids.tolist())
            return
        ordered, operands = partition.sweep(self._first_inequality, rids)
        yield from zip(ordered.tolist(), operands, strict=True)

    def _found(
        self, partition: Partition, rid: int, rules: list[str], operands: Operands
    ) -> Iterator[tuple[str, BitMap]]:
        """The partners of a row (itself perhaps among them), rule by rule; empty answers too."""
        shared: dict[Prefix, BitMap | None] = {}
        for rule in rules:
            prefix = self._schedule.prefix_of(rule) if self._schedule.prefixes else None
            found: BitMap | None = None
            if prefix is not None:
                if prefix not in shared:
                    shared[prefix] = self._pipeline(partition, None, prefix.conditions, rid, operands)
                found = shared[prefix]
            found = self._pipeline(partition, found, self._schedule.remaining(rule, prefix), rid, operands)
            yield rule, partition.ids if found is None else found

    def _pipeline(
        self,
        partition: Partition,
        candidates: BitMap | None,
        conditions: tuple[Condition, ...],
        rid: int,
        operands: Operands,
    ) -> BitMap | None:
        for condition in conditions:
            if candidates is not None and not candidates:
                break
            candidates = partition.refine(candidates, self._probe(condition), rid, operands)
        return candidates

    def _report(self, partition: Partition, pid: int, rule: str, rids: Ids, found: BitMap) -> None:
        """`found` are the partners of each of these rows. A pair of two asking rows is told once: by the smaller id if
        the rule is symmetric, else by t."""
        emit = self._collector.wants(rule)
        if emit is Emit.PAIRS:
            self._tell_pairs(rule, rids, partition.rows(found))
        elif emit is not None:
            counts = self._counts(partition, pid, rule, rids, found)
            self._collector.add_counts(rule, self._role, rids, counts)
            if emit is Emit.ROWS and counts.any():
                self._tell_rows(rule, rids, counts, partition.rows(found))

    def _tell_pairs(self, rule: str, rids: Ids, found: Ids) -> None:
        own, other = np.repeat(rids, len(found)), np.tile(found, len(rids))
        kept = own != other
        if self._symmetric[rule]:
            kept &= ~self._asking[other] | (own < other)
        elif self._role == "u":
            kept &= ~self._asking[other]
        self._collector.add_pairs(rule, self._role, own[kept], other[kept])

    def _counts(self, partition: Partition, pid: int, rule: str, rids: Ids, found: BitMap) -> Ids:
        """How many pairs each row tells, without listing them."""
        here = self._side.slots.pid_of[rids] == pid
        itself = np.zeros(len(rids), dtype=np.int64)
        itself[here] = [partition.has(rid, found) for rid in rids[here].tolist()]
        if self._role == "t" and not self._symmetric[rule]:
            return len(found) - itself
        asking = found & self._askers(partition, pid)
        counts = len(found) - len(asking) - itself * ~self._asking[rids]
        if self._symmetric[rule]:
            counts = counts + len(asking) - np.searchsorted(np.sort(partition.rows(asking)), rids, side="right")
        return counts

    def _tell_rows(self, rule: str, rids: Ids, counts: Ids, found: Ids) -> None:
        """Both sides of all these pairs: each asking row tells `counts` of them, and is told of by nobody here."""
        told = np.full(len(found), len(rids), dtype=np.int64) - np.isin(found, rids)
        if self._symmetric[rule]:
            told = np.where(self._asking[found], np.searchsorted(np.sort(rids), found), told)
        elif self._role == "u":
            told[self._asking[found]] = 0
        self._collector.add_rows(rule, rids[counts > 0], counts[counts > 0], found[told > 0], told[told > 0])

    def _askers(self, partition: Partition, pid: int) -> BitMap:
        """The rows of a partition that ask themselves."""
        if pid not in self._asking_in:
            rids = self._side.slots.of(pid)
            self._asking_in[pid] = partition.local(rids[self._asking[rids]])
        return self._asking_in[pid]

"""What a batch of rows asks of a route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weever_stream.engine.domain import Ids, Mask
from weever_stream.engine.probe import Role
from weever_stream.engine.side import Side


@dataclass(frozen=True)
class View:
    """The route as rows see it that ask as t or as u: where they stand, where their partners do, and by which rules."""

    role: Role
    own: Side
    other: Side
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """Rows that ask, the partitions of their partners, and for each rule the rows whose hope is not ruled out."""

    view: View
    rids: Ids
    pids: Ids
    hopeful: Mapping[str, Mask]

    def anybody(self, among: Mask) -> Mask:
        return np.asarray(np.logical_or.reduce(list(self.hopeful.values())) & among)

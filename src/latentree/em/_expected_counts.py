"""Expected counts of data in parts.

The tree falls into components at the observed nodes without missing cells. Where a component has
few distinct rows among all parts, these take the place of the rows, and a step of EM costs what
they cost, however many rows there are. Other components are counted part by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from latentree._kernels import threads
from latentree.data import Parts, Pieces, Table, add_up
from latentree.distances import DistinctRows
from latentree.inference import (
    Emission,
    Expectation,
    ExpectedCounts,
    PassMemory,
    Skeleton,
    Unit,
    compile_components,
    compile_part,
)
from latentree.typing import FloatArray, IntArray

FEW_DISTINCT = 0.5
"""A component that has more distinct rows in a part than this share of all is counted in parts."""


class PartedCounts:
    """Expected counts under a tree of rows in parts."""

    def __init__(self, skeleton: Skeleton, parts: Parts) -> None:
        self._skeleton = skeleton
        self._parts = parts

    def run(
        self,
        theta: FloatArray,
        emissions: Sequence[Emission | None] = (),
        units: Mapping[int, Unit] | None = None,
    ) -> ExpectedCounts:
        """Log-likelihood and expected counts of all rows under tables and emissions."""
        together, apart = self.split
        counts = [] if together is None else [together.expect(theta)]
        counts += (
            [] if apart is None else [apart.total(Expectation.expect, theta, emissions, units)]
        )
        return add_up(counts)

    @cached_property
    def split(self) -> tuple[Expectation | None, Pieces[Expectation] | None]:
        """What is counted once for all rows, and what is counted part by part."""
        skeleton = self._skeleton
        if self._parts.n_parts == 1 or skeleton.layout.emits.any():
            return None, self._compiled(skeleton)
        components = self._parts.tables.total(distinct_in_part, skeleton.columns).components
        few = _few(components)
        if not few:
            return None, self._compiled(skeleton)
        rest = [component for component in range(len(skeleton)) if component not in set(few)]
        tables = [self._table(components[each], skeleton.columns[each]) for each in few]
        together = Expectation(compile_components(skeleton.only(few), tables))
        return together, self._compiled(skeleton.only(rest)) if rest else None

    def _compiled(self, skeleton: Skeleton) -> Pieces[Expectation]:
        return self._parts.tables.made(compiled, skeleton, PassMemory())

    def _table(self, rows: DistinctRows, columns: IntArray) -> Table:
        """Return the distinct rows of a component as a table, sorted by the first columns.

        The first columns are those below the larger part of the root, so that neighbors in the
        table have neighboring patterns there: a pass reads and adds them up in order.
        """
        assert rows.codes is not None
        assert rows.weights is not None
        order = np.lexsort(rows.codes.T[::-1])
        schema = self._parts.schema.select(columns)
        return Table(rows.codes[order], schema, rows.weights[order])


class ComponentRows(NamedTuple):
    """The distinct rows of every component."""

    components: list[DistinctRows]

    def __add__(self, other: ComponentRows) -> ComponentRows:  # type: ignore[override]
        """Return those of both parts of the rows."""
        pairs = zip(self.components, other.components, strict=True)
        return ComponentRows(threads.run(lambda pair: pair[0] + pair[1], pairs))


def _few(found: list[DistinctRows]) -> list[int]:
    """Components whose distinct rows are kept: the smallest, as long as all fit."""
    cells = np.array([np.inf if rows.codes is None else rows.codes.size for rows in found])
    order = np.argsort(cells, kind="stable")
    kept = order[np.cumsum(cells[order]) <= DistinctRows.most_cells()]
    return sorted(map(int, kept))


def distinct_in_part(table: Table, columns: list[IntArray]) -> ComponentRows:
    """Find the distinct rows of every component in one part of the rows, where they are few."""
    if table.is_sparse:  # the patterns of sparse rows are cheap, their rows are not
        return ComponentRows([DistinctRows(None, None)] * len(columns))
    most = FEW_DISTINCT * table.n_rows
    return ComponentRows(threads.run(lambda mine: DistinctRows.of(table, most, mine), columns))


def compiled(table: Table, skeleton: Skeleton, shared: PassMemory) -> Expectation:
    """Compile one part of the rows: what an engine keeps of it."""
    return Expectation(compile_part(skeleton, table), shared)

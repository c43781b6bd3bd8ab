"""A table compiled against a tree: the distinct patterns of values below every node.

Rows that agree on all variables below a node share the node's message, so messages are computed
once a pattern, not once a row. An observed node without missing cells separates what lies below it
from the rest; the tree falls into components there, each with its own patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree import _memory as memory
from latentree._kernels.compiling import tiny
from latentree._kernels.inference import patterns as kernels
from latentree._kernels.inference.slots import COMPONENT, EDGE, EMISSION, EVIDENCE, SLOT
from latentree.data import Table
from latentree.inference._emissions import Emission
from latentree.inference._table_layout import Layout
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray

IndexArray = NDArray[np.int32]

Records = NDArray[np.void]
"""An array of ``SLOT`` or ``COMPONENT``, see ``_kernels.inference.slots``."""

_TINY = 20_000  # cells of tables whose patterns are numbered uncompiled, in a tenth of a second


class RowPatterns(NamedTuple):
    """Patterns at the roots of the components, of the rows that do not have pattern 0."""

    n_rows: int
    rows: IndexArray
    ids: IndexArray
    starts: IntArray
    """Where each component's rows start; one entry more for the end."""

    def dense(self) -> IndexArray:
        """Pattern of every row (column) at the root of every component (row)."""
        out = np.zeros((len(self.starts) - 1, self.n_rows), np.int32)
        component = np.repeat(np.arange(len(out)), np.diff(self.starts))
        out[component, self.rows] = self.ids
        return out


class Emissions(NamedTuple):
    """The leaves that emit values: what the caller needs to lay out their likelihoods.

    Leaf number e has ``n_states[e]`` × ``sizes[e]`` likelihoods from ``starts[e]``: one row per
    state of its neighbor, one column per distinct value, which are ``values[value_starts[e]:]``.
    """

    columns: IntArray
    n_states: IntArray
    sizes: IntArray
    starts: IntArray
    values: FloatArray
    """Distinct values of all leaves end to end; NaN stands for missing cells."""
    value_starts: IntArray

    @property
    def n_likelihoods(self) -> int:
        """Length of the array of likelihoods."""
        return int((self.n_states * self.sizes).sum())

    def values_of(self, e: int) -> FloatArray:
        """Return the distinct values of leaf number ``e``."""
        return self.values[self.value_starts[e] :][: self.sizes[e]]

    def block(self, numbers: FloatArray, e: int) -> FloatArray:
        """View of what belongs to leaf number ``e``: a row per state, a column per value."""
        shape = int(self.n_states[e]), int(self.sizes[e])
        return numbers[self.starts[e] :][: shape[0] * shape[1]].reshape(shape)

    def logs(self, emissions: Sequence[Emission | None]) -> FloatArray:
        """Return the log-likelihoods of all distinct values under the emissions of all columns."""
        out = np.empty(self.n_likelihoods)
        for e, column in enumerate(self.columns.tolist()):
            emission = emissions[column]
            assert emission is not None
            self.block(out, e)[:] = emission.likelihoods(self.values_of(e)).logs
        return out


@dataclass(frozen=True, eq=False)
class Patterns:
    """The slots of a tree on a table (see ``_kernels.inference.slots``), and their patterns."""

    layout: Layout
    slots: Records
    gather: IndexArray
    components: Records
    weights: FloatArray
    of_rows: RowPatterns | None
    """Which rows have them: what queries about rows need, and EM does not."""
    emissions: Emissions
    """Leaves without states."""

    @property
    def n_values(self) -> int:
        """Numbers that one pass keeps: states × patterns over all slots."""
        return int((self.slots["n_states"] * self.slots["n_patterns"]).sum())


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The slots of a tree's components, listed in the order in which they are numbered."""

    layout: Layout
    slots: IntArray
    listing: IntArray
    ends: IntArray
    closed: IntArray

    @classmethod
    def of(cls, layout: Layout, columns: ColumnEntropies | _Columns) -> Skeleton:
        """Cut a tree at the observed nodes without missing cells."""
        tree = layout.tree
        entropy, complete = _node_facts(tree, columns)
        slots, slot_entropy, closed = kernels.make_slots(
            tree.order, tree.parent, *tree.child_lists, tree.n_observed, complete,
            layout.emits, entropy,
        )  # fmt: skip
        listing, ends = kernels.list_slots(slots, slot_entropy, closed[0])
        return cls(layout, slots, listing, ends, closed)

    def __len__(self) -> int:
        return self.ends.size

    def only(self, components: Sequence[int]) -> Skeleton:
        """Return these components alone."""
        mine = np.asarray(components, np.int64)
        lists = np.split(self.listing, self.ends[:-1])
        chosen = [lists[component] for component in mine]
        ends = np.cumsum([part.size for part in chosen])
        listing = np.concatenate(chosen)
        return Skeleton(self.layout, self.slots, listing, ends, self.closed[:, mine])

    @cached_property
    def evidence(self) -> NDArray[np.bool_]:
        """Which of the listed slots hold the cells of an observed node."""
        return np.isin(self.slots[0, self.listing], (EVIDENCE, EMISSION))

    @cached_property
    def columns(self) -> list[IntArray]:
        """Observed nodes of each component, in the order of their slots."""
        nodes, ends = self.slots[1, self.listing], np.cumsum(self.evidence)[self.ends - 1]
        return np.split(nodes[self.evidence], ends[:-1])


def compile_patterns(tree: Tree, n_states: IntArray, table: Table) -> Patterns:
    """Number the patterns of a table below every node, from the root that makes it cheapest.

    Costs O(cells) for a dense table; for a sparse one, the ones times the depth of the tree.
    """
    with tiny(_n_cells([table]) <= _TINY):
        columns = _Columns.of(table)
        rooted = cheapest_rooting(tree, columns, n_states == 0)
        skeleton = Skeleton.of(Layout(rooted, n_states), columns)
        sources = np.concatenate(skeleton.columns)
        return _numbered(skeleton, columns, sources, [table] * len(skeleton))


def compile_part(skeleton: Skeleton, table: Table) -> Patterns:
    """Number the patterns of one of several tables, whose columns the skeleton knows."""
    everything = np.concatenate(skeleton.columns)
    with tiny(_n_cells([table]) <= _TINY):
        return _numbered(skeleton, _Columns.of(table), everything, [table] * len(skeleton))


def compile_components(skeleton: Skeleton, tables: Sequence[Table]) -> Patterns:
    """Number the patterns of components that have a table each, with their columns alone."""
    with tiny(_n_cells(tables) <= _TINY):
        columns = _Columns.joined([_Columns.of(table) for table in tables])
        numbered = _numbered(skeleton, columns, np.arange(columns.n_symbols.size), tables)
    return replace(numbered, of_rows=None)  # rows of different tables


def _n_cells(tables: Sequence[Table]) -> int:
    return sum(table.n_rows * table.n_columns for table in tables)


def _numbered(
    skeleton: Skeleton, columns: _Columns, sources: IntArray, tables: Sequence[Table]
) -> Patterns:
    """Number the patterns of all slots.

    ``sources`` says which of the columns each slot of evidence has, ``tables`` are those of the
    components.
    """
    layout, listing = skeleton.layout, skeleton.listing
    source = np.zeros(listing.size, np.int64)
    source[skeleton.evidence] = sources
    n_patterns, index, gather, *roots = kernels.number_slots(
        listing, skeleton.slots, skeleton.ends, source, columns.n_rows,
        columns.starts, columns.rows, columns.ids, columns.n_symbols,
    )  # fmt: skip
    records = _slot_records(layout, skeleton.slots, listing, n_patterns)
    records["index_a"], records["index_b"] = index
    records["index_a"][skeleton.evidence] = gather.size + columns.symbol_starts[sources]
    emissions = _place_emissions(layout, records, skeleton, columns, sources)
    components = _component_records(layout, records, skeleton.ends, skeleton.closed)
    of_rows = RowPatterns(columns.n_rows, *roots)
    return Patterns(
        layout,
        records,
        np.concatenate([gather, columns.symbols]),
        components,
        _pattern_weights(tables, records["n_patterns"][components["root"]], of_rows),
        of_rows,
        emissions,
    )


def _place_emissions(
    layout: Layout, records: Records, skeleton: Skeleton, columns: _Columns, sources: IntArray
) -> Emissions:
    """Place the likelihoods of emitted values behind the tables, in the order of the slots."""
    emitting = records["kind"] == EMISSION
    listed = records[emitting]
    source = sources[emitting[skeleton.evidence]]
    starts = starts_of(listed["n_states"] * listed["n_patterns"])
    records["table"][emitting] = layout.size + starts
    spans = [
        slice(start, start + size)
        for start, size in zip(columns.symbol_starts[source], listed["n_patterns"], strict=True)
    ]
    values = [columns.values[span] for span in spans]
    return Emissions(
        listed["node"], listed["n_states"], listed["n_patterns"], starts,
        np.concatenate([np.empty(0), *values]), starts_of(listed["n_patterns"]),
    )  # fmt: skip


class ColumnEntropies(NamedTuple):
    """How much the values of each column vary: what the number of patterns is estimated from."""

    n_rows: int
    entropy: FloatArray
    complete: NDArray[np.bool_]


def cheapest_rooting(
    tree: Tree, columns: ColumnEntropies | _Columns, emits: NDArray[np.bool_] | None = None
) -> Tree:
    """Root every component where the estimated number of patterns is smallest.

    Leaves that ``emits`` marks are no roots, as they have no states.
    """
    emits = np.zeros(tree.n_nodes, bool) if emits is None else emits
    up, down, gathered = kernels.directed_entropies(
        tree.order, tree.parent, *_node_facts(tree, columns)
    )
    roots = kernels.cheapest_roots(
        tree.order, tree.parent, up, down, gathered, emits, columns.n_rows
    )
    for root in roots[tree.parent[roots] >= 0]:
        tree = tree.rerooted(int(root))
    return tree


def _node_facts(
    tree: Tree, columns: ColumnEntropies | _Columns
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Entropy of every node (0 if hidden), and whether it is observed without missing cells."""
    entropy, complete = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes, bool)
    entropy[: tree.n_observed] = columns.entropy
    complete[: tree.n_observed] = columns.complete
    return entropy, complete


class _Columns(NamedTuple):
    """The columns of a table as sparse lists: rows whose symbol is not the column's default.

    Symbols of column c (codes, −1 for missing) are ``symbols[symbol_starts[c]:][:n_symbols[c]]``,
    the default first; ``values`` are the numbers behind them where the column has no states.
    """

    n_rows: int
    entropy: FloatArray
    complete: NDArray[np.bool_]
    starts: IntArray
    rows: IndexArray
    ids: IndexArray
    n_symbols: IntArray
    symbols: IndexArray
    symbol_starts: IntArray
    values: FloatArray

    @classmethod
    def of(cls, table: Table) -> _Columns:
        codes, distinct = _symbol_codes(table)
        counts = _symbol_counts(table, codes, distinct)
        default = counts.argmax(axis=1)
        occurs = counts > 0
        occurs[np.arange(len(counts)), default] = False
        number = np.where(occurs, np.cumsum(occurs, axis=1), 0).astype(np.int32)
        n_symbols = 1 + occurs.sum(axis=1)
        place = np.where(occurs, number, counts.shape[1] + 1)  # symbols that do not occur: last
        place[np.arange(len(counts)), default] = 0
        order = np.argsort(place, axis=1, kind="stable")
        symbols = order[np.arange(order.shape[1]) < n_symbols[:, None]]
        starts = np.concatenate([[0], np.cumsum(table.n_rows - counts.max(axis=1))])
        memory.require(
            24.0 * starts[-1],  # rows and patterns, on two levels of the tree at the same time
            f"the patterns of {int(starts[-1]):,} cells that are not their column's usual value",
            "fit a sample of the rows, or a tree over fewer variables",
        )
        share = counts / table.n_rows
        entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=1)
        if table.is_sparse:
            rows, ids = _differing_ones(table, default - 1, starts)
        else:
            rows, ids = kernels.differing_rows(codes, default - 1, number, starts)
        symbols = (symbols - 1).astype(np.int32)
        return cls(
            table.n_rows, entropy, counts[:, 0] == 0, starts, rows, ids, n_symbols,
            symbols, starts_of(n_symbols), _symbol_values(symbols, n_symbols, distinct),
        )  # fmt: skip

    @classmethod
    def joined(cls, tables: Sequence[_Columns]) -> _Columns:
        """Lay the columns of several tables side by side; each keeps its own rows."""
        sizes = np.concatenate([np.diff(columns.starts) for columns in tables])
        n_symbols = np.concatenate([columns.n_symbols for columns in tables])
        return cls(
            max(columns.n_rows for columns in tables),
            np.concatenate([columns.entropy for columns in tables]),
            np.concatenate([columns.complete for columns in tables]),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([columns.rows for columns in tables]),
            np.concatenate([columns.ids for columns in tables]),
            n_symbols,
            np.concatenate([columns.symbols for columns in tables]),
            starts_of(n_symbols),
            np.concatenate([columns.values for columns in tables]),
        )


def _symbol_codes(table: Table) -> tuple[IndexArray, list[FloatArray | None]]:
    """Code the cells of a table: as they are coded, or by the distinct values of a column.

    Returns the codes, −1 where missing, and for columns without labels their distinct values. A
    sparse table needs no codes: its cells are 0 and 1.
    """
    if table.is_sparse:
        return np.empty((0, table.n_columns), np.int32), []
    if table.schema.is_coded:
        return table.values, []
    codes = np.empty(table.values.shape, np.int32)
    distinct: list[FloatArray | None] = []
    for column, labels in enumerate(table.schema.labels):
        cells = table.values[:, column]
        missing = np.isnan(cells)
        if labels:
            distinct.append(None)
            codes[:, column] = np.where(missing, -1, cells)
        else:
            values, numbers = np.unique(cells, return_inverse=True)  # NaN comes last
            distinct.append(values[: values.size - bool(missing.any())])
            codes[:, column] = np.where(missing, -1, numbers)
    return codes, distinct


def _symbol_counts(
    table: Table, codes: IndexArray, distinct: Sequence[FloatArray | None]
) -> IntArray:
    """Return how often each symbol −1, 0, 1, … occurs in every column, a row each."""
    if table.is_sparse:
        ones = np.bincount(table.values.indices, minlength=table.n_columns)
        return np.column_stack([np.zeros_like(ones), table.n_rows - ones, ones])
    n_codes = [len(values) for values in distinct if values is not None]
    counts: IntArray = kernels.symbol_counts(
        codes, max(int(table.cardinalities.max()), *n_codes, 0)
    )
    return counts


def _symbol_values(
    symbols: IndexArray, n_symbols: IntArray, distinct: Sequence[FloatArray | None]
) -> FloatArray:
    """Return the numbers behind the symbols of columns without labels; NaN where missing."""
    values = np.full(symbols.size if distinct else 0, np.nan)
    for start, size, known in zip(starts_of(n_symbols), n_symbols, distinct, strict=False):
        if known is not None:
            span = slice(start, start + size)
            values[span] = np.append(known, np.nan)[symbols[span]]
    return values


def _differing_ones(
    table: Table, default: IntArray, starts: IntArray
) -> tuple[IndexArray, IndexArray]:
    """Return the rows of a sparse table that differ from each column's default, 0 or 1.

    With the numbers of their symbols, which are all 1: the other value is the only other symbol.
    """
    columns = table.values.tocsc()
    rows = np.empty(starts[-1], np.int32)
    mostly_zero = np.repeat(default == 0, np.diff(columns.indptr))
    rows[np.repeat(default == 0, np.diff(starts))] = columns.indices[mostly_zero]
    for column in np.flatnonzero(default == 1):
        ones = columns.indices[columns.indptr[column] : columns.indptr[column + 1]]
        rows[starts[column] : starts[column + 1]] = np.delete(np.arange(table.n_rows), ones)
    return rows, np.ones(rows.size, np.int32)


def _slot_records(
    layout: Layout, slots: IntArray, listing: IntArray, n_patterns: IntArray
) -> Records:
    """Slots in the order of ``listing``, numbered anew, with where their values lie."""
    number = np.zeros(slots.shape[1] + 1, np.int64)
    number[listing] = np.arange(listing.size)
    kind, node, a, b = slots[:, listing]
    records = np.zeros(listing.size, SLOT)
    records["kind"], records["node"], records["n_patterns"] = kind, node, n_patterns
    records["a"] = np.where(a >= 0, number[a], np.arange(listing.size))
    records["b"] = np.where(b >= 0, number[b], np.arange(listing.size))
    n_states = np.where(
        (kind == EDGE) | (kind == EMISSION), layout.parent_states[node], layout.n_states[node]
    )
    records["n_states"] = n_states
    records["table"] = np.where(kind == EDGE, layout.starts[node], 0)
    records["value"] = starts_of(n_states * n_patterns)
    return records


def _component_records(layout: Layout, slots: Records, ends: IntArray, closed: IntArray) -> Records:
    components = np.zeros(ends.size, COMPONENT)
    components["root"] = ends - 1
    components["first"] = np.concatenate([[0], ends[:-1]])
    components["node"] = closed[1]
    components["prior"] = np.where(closed[2] == 1, layout.starts[closed[1]], -1)
    tops = slots[ends - 1]
    components["weights"] = starts_of(tops["n_patterns"])
    components["posterior"] = starts_of(tops["n_patterns"] * tops["n_states"])
    return components


def starts_of(sizes: IntArray) -> IntArray:
    """Where parts of these sizes start when laid end to end."""
    return np.asarray(np.cumsum(sizes) - sizes, np.int64)


def _pattern_weights(
    tables: Sequence[Table], n_patterns: IntArray, of_rows: RowPatterns
) -> FloatArray:
    """Summed weight of the rows of every pattern of every component's root."""
    out = np.zeros(int(n_patterns.sum()))
    first = starts_of(n_patterns)
    for component, (start, stop) in enumerate(pairwise(of_rows.starts)):
        table = tables[component]
        weights = table.weights
        mine, size = of_rows.rows[start:stop], int(n_patterns[component])
        sums = np.bincount(
            of_rows.ids[start:stop], None if weights is None else weights[mine], minlength=size
        ).astype(np.float64)
        if weights is None:
            sums[0] = table.n_rows - mine.size
        else:  # added up afresh: a difference of sums would leave rounding behind
            rest = np.ones(table.n_rows, bool)
            rest[mine] = False
            sums[0] = weights[rest].sum()
        out[first[component] : first[component] + size] = sums
    return out

"""Numbers in bins: the discrete table in which a mixed model is started and searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentree.data import Schema, Table
from latentree.typing import FloatArray, IntArray

N_BINS = 6
"""Bins of a column of numbers, about equally full."""


@dataclass(frozen=True, eq=False)
class Binning:
    """Where the bins of columns of numbers end.

    Parameters
    ----------
    edges : tuple of arrays
        Inner ends of the bins of every column, ascending; empty for columns with labels.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.data import Schema, Table
    >>> schema = Schema(("age", "sex"), "mixed", ((), ("f", "m")), ("real", "category"))
    >>> table = Table(np.array([[20.0, 0], [30.0, 1], [40.0, 0], [np.nan, 1]]), schema)
    >>> Binning.of(table, 2).table(table).values.tolist()
    [[0, 0], [1, 1], [1, 0], [-1, 1]]
    """

    edges: tuple[FloatArray, ...]

    @classmethod
    def of(cls, table: Table, n_bins: int = N_BINS) -> Binning:
        """Choose bins that hold about as many of the rows each.

        Parameters
        ----------
        table : Table
        n_bins : int
            Most bins of a column. Equal values stay together, so that there may be fewer.

        Returns
        -------
        Binning
        """
        weights = table.weight_array()
        edges = [
            np.empty(0) if labels else _edges(table.column(column), weights, n_bins)
            for column, labels in enumerate(table.schema.labels)
        ]
        return cls(tuple(edges))

    def table(self, table: Table) -> Table:
        """Return the discrete table: bins of numbers, states of columns with labels.

        Parameters
        ----------
        table : Table
            Of the family "mixed".

        Returns
        -------
        Table
            Of the family "discrete".
        """
        values = np.empty(table.values.shape, np.int16)
        labels = list(table.schema.labels)
        for column, edges in enumerate(self.edges):
            cells = table.column(column)
            if not labels[column]:
                labels[column] = tuple(range(edges.size + 1))
                codes = np.searchsorted(edges, cells, side="left")
            else:
                codes = np.where(np.isnan(cells), 0, cells).astype(np.int64)
            values[:, column] = np.where(np.isnan(cells), -1, codes)
        return Table(values, Schema(table.names, "discrete", tuple(labels)), table.weights)

    def moments(self, table: Table, column: int) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the values in every bin of a column.

        Parameters
        ----------
        table : Table
            The rows that the bins were chosen on.
        column : int

        Returns
        -------
        tuple of arrays, one number a bin
        """
        cells, weights = table.column(column), table.weight_array()
        there = ~np.isnan(cells)
        bins = np.searchsorted(self.edges[column], cells[there], side="left")
        size = self.edges[column].size + 1

        def mean_of(values: FloatArray) -> FloatArray:
            total = np.bincount(bins, weights[there], minlength=size)
            sums = np.bincount(bins, weights[there] * values, minlength=size)
            return np.asarray(sums / np.where(total > 0, total, 1.0))

        mean = mean_of(cells[there])
        return mean, mean_of((cells[there] - mean[bins]) ** 2)


def _edges(cells: FloatArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Inner ends of bins: a value belongs to the bin that the middle of its rows falls into."""
    there = ~np.isnan(cells) & (weights > 0)
    values, number = np.unique(cells[there], return_inverse=True)
    if values.size < 2:
        return np.empty(0)
    weight = np.bincount(number, weights[there])
    middle = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    bins: IntArray = np.minimum((n_bins * middle).astype(np.int64), n_bins - 1)
    if bins[0] == bins[-1]:  # one value has nearly all rows
        bins = (np.arange(values.size) > weight.argmax()).astype(np.int64)
        bins[0], bins[-1] = 0, 1
    ends = np.flatnonzero(np.diff(bins))
    return np.asarray(0.5 * (values[ends] + values[ends + 1]))

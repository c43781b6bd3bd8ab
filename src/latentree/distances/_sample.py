"""A sample: rows that were checked once, with their statistics and distances."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Parts, Schema, Table, WithSchema, as_table, cut_table
from latentree.distances._arrays import starts_of
from latentree.distances._distances import (
    Distances,
    canonical_distances,
    distances_from_sums,
    distances_on_demand,
)
from latentree.distances._information import InformationOf, information_of
from latentree.distances._lines import Lines, lines_of, sum_up
from latentree.distances._statistics import Statistics, gather
from latentree.errors import DataError
from latentree.typing import FloatArray, IntArray

SampleLike = Any
"""What :func:`as_sample` takes: a table of any kind, ``Parts``, ``Statistics`` or a ``Sample``."""


class Sample(WithSchema):
    """Rows to learn from, with their sufficient statistics and distances, each computed once.

    Public functions make one from whatever they are given (:func:`as_sample`); what is below them
    takes it as it is and checks nothing again.

    Parameters
    ----------
    parts : Parts or None
        The rows; None if only their statistics are known.
    statistics : Statistics, optional
        Their statistics, if they are known already.
    """

    components: IntArray | None = None
    """Which columns belong to one tree, by a number for each, where that is known."""

    def __init__(self, parts: Parts | None, statistics: Statistics | None = None) -> None:
        self._parts = parts
        if statistics is not None:
            self.statistics = statistics

    @property
    def known_parts(self) -> Parts | None:
        """The rows, or None if only their statistics are known."""
        return self._parts

    @property
    def parts(self) -> Parts:
        """The rows; raises an error if only their statistics are known."""
        if self._parts is None:
            raise DataError(
                "statistics do not suffice where cells are missing or the distinct rows are many: "
                "fit the data as a whole, for instance from a file"
            )
        return self._parts

    @cached_property
    def statistics(self) -> Statistics:
        """Sums over all rows."""
        return gather(self.parts)

    @cached_property
    def distances(self) -> Distances:
        """Information distances of all pairs: a matrix where it fits into memory."""
        if self.statistics.has_pairs:
            rows = self.known_parts
            return distances_from_sums(self.statistics, rows=rows, components=self.components)
        return distances_on_demand(self.table, self.statistics, components=self.components)

    @cached_property
    def other_distances(self) -> Distances | None:
        """Distances by the first canonical correlations, of columns that have others; or None.

        These are discrete columns of one number of states, more than two, whose pairs are counted.
        """
        states = self.cardinalities
        if self.family != "discrete" or not (states == states[0]).all() or states[0] == 2:
            return None
        if not self.statistics.has_pairs:
            return None
        return canonical_distances(self.statistics, self.components)

    @property
    def is_apart(self) -> bool:
        """Whether it is known that each column, of several, is independent of all others."""
        known = self.components
        return known is not None and known.size > 1 and len(set(known.tolist())) == known.size

    def grouped(self, components: IntArray | None) -> Sample:
        """Return the same sample, of which it is known which columns belong to one tree.

        Learners do not test again what is known; None leaves it to them.
        """
        sample = copy(self)
        sample.components = components
        for name in ("distances", "other_distances"):
            held = self.__dict__.get(name)
            if held is not None:
                sample.__dict__[name] = replace(held, components=components)
        return sample

    @cached_property
    def information_with(self) -> InformationOf:
        """Given a discrete column, its mutual information with every column, in nats."""
        self._refuse_mixed("mutual information")
        sums = self.statistics.sums
        return information_of(sums, None if sums.has_pairs else self._lines)

    @cached_property
    def table(self) -> Table:
        """The rows in memory: the distinct ones with their weights where these are few."""
        return self._distinct or self.parts.to_table()

    @cached_property
    def rows(self) -> Parts:
        """The rows that a pass of EM runs over: the distinct ones where these are few."""
        return self.parts if self._distinct is None else cut_table(self._distinct)

    @cached_property
    def _distinct(self) -> Table | None:
        rows = self.statistics.rows
        if rows is None or rows.codes is None:
            return None
        return Table(rows.codes, self.schema, rows.weights)

    def pair_table(self, a: int, b: int) -> FloatArray:
        """Weight of the rows with each pair of states of two discrete columns."""
        self._refuse_mixed("a joint table")
        sums = self.statistics.sums
        if sums.has_pairs:
            return sums.pair(a, b)
        widths = self.cardinalities[[a, b]] - 1
        block = sum_up(self._lines, np.array([a]), np.array([b]))
        return block.tables(starts_of(widths[:1]), starts_of(widths[1:]))

    def _refuse_mixed(self, what: str) -> None:
        if self.family == "mixed":
            raise DataError(
                f"{what} is known only of columns of one kind: take the family gaussian or "
                "discrete, or a method that needs distances only, such as clrg"
            )

    @cached_property
    def _lines(self) -> Sequence[Lines]:
        """For pairs that are counted when asked for, of so many columns that not all are."""
        return lines_of(self.table, self.statistics.sums.functions)

    def select(self, columns: IntArray) -> Sample:
        """Return the sample of some columns; nothing is summed or measured again."""
        statistics = self.statistics.select(columns)
        parts = None if self.is_summed else cut_table(self.table.select(columns))
        return self._derived(parts, statistics, columns)

    def renamed(self, columns: IntArray, names: tuple[str, ...]) -> Sample:
        """Return all columns in another order, under these names."""
        statistics = self.statistics.select(columns, names)
        parts = None if self._parts is None else self._parts.select(columns, names)
        return self._derived(parts, statistics, columns)

    def _derived(self, parts: Parts | None, statistics: Statistics, columns: IntArray) -> Sample:
        sample = Sample(parts, statistics)
        if self.components is not None:
            sample.components = self.components[columns]
        if "distances" in self.__dict__:
            sample.distances = replace(self.distances.subset(columns), names=statistics.names)
        return sample

    # What the rows are ----------------------------------------------------------------------

    @property
    def is_summed(self) -> bool:
        """Whether the sums of pairs are all that a likelihood needs: real columns without gaps."""
        facts = self.statistics
        return facts.family == "gaussian" and not facts.has_missing and facts.has_pairs

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """Names, family and labels of the columns."""
        return self.statistics.schema

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        return self.statistics.total_weight

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return self.statistics.has_missing


def as_sample(
    X: SampleLike, family: str = "auto", weights: ArrayLike | None = None, min_rows: int = 2
) -> Sample:
    """Check data once, gather its statistics, and refuse what cannot be learned from.

    Rows of weight 0 are left out: names, kinds and labels of the columns know them, nothing else.

    Parameters
    ----------
    X : table-like, Parts, Statistics or Sample
        Anything that :func:`latentree.as_table` reads, data in parts, or statistics. A sample
        passes through as it is.
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to model the columns of a table.
    weights : array-like, optional
        Weights of the rows.
    min_rows : int
        Fewest rows to learn from.

    Returns
    -------
    Sample
    """
    if isinstance(X, Sample):
        return X
    if isinstance(X, Statistics):
        sample = Sample(None, X)
    elif isinstance(X, Parts):
        sample = Sample((X if weights is None else X.weighted(weights)).counted())
    else:
        sample = Sample(cut_table(as_table(X, family, weights=weights).counted()))
    sample.statistics.require_learnable(min_rows)
    return sample


def as_copula(sample: Sample) -> Sample:
    """Return the same rows, columns taken as what is seen of Gaussian variables behind them."""
    parts = sample.parts
    if parts.whole is not None:
        own = cut_table(as_table(parts.whole, "copula"), parts.name, parts.rows_a_part)
    else:
        schema = replace(parts.schema, family="copula")
        tables = parts.tables.paired(_as_copula, [None] * parts.n_parts)
        own = replace(parts, schema=schema, tables=tables, rows_a_part=parts.step)
    return as_sample(own).grouped(sample.components)


def _as_copula(table: Table, _: None) -> Table:
    return as_table(table, "copula")


def information_distances(
    X: SampleLike,
    family: str = "auto",
    *,
    centered: bool = True,
    dense: bool | None = None,
    weights: ArrayLike | None = None,
) -> Distances:
    """Estimate information distances from data by maximum likelihood.

    Parameters
    ----------
    X : table-like, Parts or Statistics
        Anything that :func:`latentree.as_table` reads, data in parts
        (:func:`latentree.as_parts`), or statistics.
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to model the columns.
    centered : bool
        Whether to subtract the means of real columns; without it they are taken to be 0.
    dense : bool, optional
        Whether to compute the whole matrix at once, or blocks on demand from the data. Left out,
        matrices of up to a quarter of the memory available are computed. CLGrouping, CLBlind and
        Chow-Liu trees are learned from either, and are the same.
    weights : array-like, optional
        Weights of the rows.

    Returns
    -------
    Distances
        Missing cells: each pair is taken over the rows in which both are present.

    Notes
    -----
    With real columns, or discrete columns of one number K of states, distances are those of the
    paper: −log|ρ| and −log(|det J| / √(det M_i · det M_j)). Where numbers of states or kinds
    differ they are −log r with the first canonical correlation r: the largest correlation of any
    function of the states of the one column with any of the other. Of numbers, the functions are
    a + b·z + c·z² of the normal score z. Its bias is taken off, and states of fewer than √n rows
    count as one. r multiplies along a tree if the hidden variables have two states or are Gaussian.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, *Learning Latent Tree Graphical Models*, JMLR 12, 2011,
    Sections 3.1 and 6.

    Zhou, Wang and Guo, *Learning Mixed Latent Tree Models*, JMLR 21, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.standard_normal((1000, 1))
    >>> distances = information_distances(hidden + 0.5 * rng.standard_normal((1000, 3)))
    >>> distances
    Distances(3 variables, 1000 samples, dense)
    >>> distances.block([0], [1, 2]).round(2)
    array([[0.24, 0.23]])
    """
    sample = as_sample(X, family, weights)
    if dense is None:
        dense = sample.statistics.has_pairs
    if dense and sample.statistics.has_pairs:
        if centered:
            return sample.distances
        return distances_from_sums(sample.statistics, False, sample.known_parts)
    found = distances_on_demand(sample.table, sample.statistics, centered)
    if dense:
        found.dense()
    return found

"""Information distances: how far apart variables are on a tree.

Along a tree, information distances add up: d(i, k) = d(i, j) + d(j, k) when j lies between i and
k. They are −log|ρ| for Gaussians, −log(|det J| / √(det M_i · det M_j)) for variables of K states,
−(K−1)·log|1 − K·θ| in the symmetric family, and −log of the first canonical correlation where
kinds or numbers of states differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latentree.data import Parts, Table, duplicate_columns, listing
from latentree.distances._block_dependence import BlockDependence
from latentree.distances._dependence import (
    DependenceScale,
    canonical_correlations,
    canonical_scale,
    dependence,
    scale_of,
)
from latentree.distances._matrix_checks import checked_matrix, checked_names, checked_signs, frozen
from latentree.distances._pair_tests import (
    Evidence,
    evidence_of_correlations,
    pair_evidence,
)
from latentree.distances._providers import (
    EVERY,
    WEAKEST,
    BlockDistances,
    MatrixDistances,
    distances_in_place,
    evidence_of_matrix,
    frozen_precision,
)
from latentree.distances._statistics import Statistics
from latentree.errors import DataWarning, DistanceError
from latentree.typing import BoolArray, Family, FloatArray, Index, IntArray

INDEPENDENT = 1.0
"""A pair is marked independent when |r| is below so many standard errors of an independent pair."""

IndexLike = slice | ArrayLike
"""Which variables: a slice, numbers, or a bool for each."""


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Information distances between named variables, as a matrix or computed on demand.

    Make them from data with :func:`information_distances`, or from a matrix with
    :meth:`from_matrix`. Distances are finite: where the estimated dependence r vanishes, |r| is
    taken as 1e-8. The signs of r are kept beside them.

    Pairs that look independent are marked: those whose |r| is below the standard error that an
    independent pair would have, 1/√n for correlations. Two of three independent pairs are that
    weak; so the mark says that a pair tells nothing about the tree. :meth:`evidence` is for tests
    of independence.

    Parameters
    ----------
    names : tuple of str
        Names of the variables.
    n_samples : float or None
        Total weight of the rows behind a pair (its mean where cells are missing); None for exact
        distances.
    family : str or None
        Family of the data, when known.
    source : matrix or provider of blocks
        How the distances are held; both ways above supply it.
    components : array of int, optional
        Which variables belong to one tree, by a number for each, where that is known; by default
        learners test it.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, *Learning Latent Tree Graphical Models*, JMLR 12, 2011,
    Section 3.1.

    Examples
    --------
    >>> distances = Distances.from_matrix([[0, 1, 2], [1, 0, 3], [2, 3, 0]], ["a", "b", "c"])
    >>> distances
    Distances(3 variables, exact, dense)
    >>> distances.block([1], [0, 2])
    array([[1., 3.]])
    """

    names: tuple[str, ...]
    n_samples: float | None
    family: Family | None
    source: MatrixDistances | BlockDistances = field(repr=False)
    components: IntArray | None = field(default=None, repr=False)

    # Making ---------------------------------------------------------------------------------

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        names: Sequence[str] | None = None,
        *,
        signs: ArrayLike | None = None,
        n_samples: float | None = None,
        family: Family | None = None,
    ) -> Distances:
        """Check a square matrix of distances.

        Parameters
        ----------
        matrix : array-like of shape (m, m)
            Symmetric, ≥ 0, with zeros on the diagonal. +inf means independent: such pairs are
            marked and get a finite distance, at least twice any other.
        names : sequence of str, optional
            Names of the variables; ``x0``, ``x1``, … when left out.
        signs : array-like of shape (m, m), optional
            Signs of the dependence, −1 or +1; all +1 when left out.
        n_samples : float, optional
            Number of rows that the distances were estimated from; None means exact.
        family : str, optional
            Family of the data.

        Returns
        -------
        Distances
        """
        d = checked_matrix(matrix)
        m = d.shape[0]
        given = checked_names(names, m)
        if n_samples is not None and not (np.isfinite(n_samples) and n_samples > 0):
            raise DistanceError(f"n_samples is {n_samples}, but must be a positive number or None")
        marked = np.isinf(d) if np.isinf(d.max()) else None
        if marked is not None:
            finite = np.where(marked, 0.0, d)
            d = np.where(marked, max(-np.log(WEAKEST), 2 * float(finite.max())), d)
        source = MatrixDistances(frozen(d), checked_signs(signs, m), None, 1.0, marked)
        return cls(given, None if n_samples is None else float(n_samples), family, source)

    # Reading --------------------------------------------------------------------------------

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def is_dense(self) -> bool:
        """Whether a whole matrix is held."""
        return isinstance(self.source, MatrixDistances) or "_matrix" in self.__dict__

    @property
    def exponent(self) -> float:
        """The factor c in d = −c·log|r|: K − 1 if all variables have K states, 1 for all else."""
        return self._held.exponent

    @cached_property
    def n_effective(self) -> float | None:
        """1 / variance of r for an independent pair: n, or (K − 1)·n in the symmetric family.

        Of normal variables behind columns, n·s·t with the shares s and t of their variance that two
        columns show, on average over pairs: 0.4·n of yes/no.
        """
        if self.n_samples is None:
            return None
        held = self._held
        known = held.precision if isinstance(held, MatrixDistances) else None
        if self.family == "copula" and isinstance(known, np.ndarray) and len(known) > 1:
            return float(known[~np.eye(len(known), dtype=bool)].mean())
        return self.n_samples * (self.exponent if self.family == "symmetric" else 1.0)

    def block(self, rows: IndexLike, columns: IndexLike) -> FloatArray:
        """Return the distances of ``rows`` × ``columns``.

        Parameters
        ----------
        rows, columns : slice or array of int or bool
            Which variables.

        Returns
        -------
        array of shape (rows, columns)
            A new array.
        """
        return self._held.distances(_as_index(rows), _as_index(columns))

    def sign_block(self, rows: IndexLike, columns: IndexLike) -> NDArray[np.int8]:
        """Return the signs of the dependence of ``rows`` × ``columns``.

        Parameters
        ----------
        rows, columns : slice or array of int or bool
            Which variables.

        Returns
        -------
        array of int8 of shape (rows, columns)
            −1 or +1.
        """
        return self._held.signs(_as_index(rows), _as_index(columns))

    def strength_block(self, rows: IndexLike, columns: IndexLike) -> FloatArray:
        """Return |r| of ``rows`` × ``columns`` in standard errors of an independent pair.

        Parameters
        ----------
        rows, columns : slice or array of int or bool
            Which variables.

        Returns
        -------
        array of shape (rows, columns)
            Infinite for distances that came as a matrix, and 0 where such a matrix was infinite.
        """
        return self._held.strengths(_as_index(rows), _as_index(columns))

    def independent_block(self, rows: IndexLike, columns: IndexLike) -> BoolArray:
        """Find the pairs of ``rows`` × ``columns`` that look independent.

        Parameters
        ----------
        rows, columns : slice or array of int or bool
            Which variables.

        Returns
        -------
        array of bool of shape (rows, columns)
            True where |r| is below one standard error of an independent pair.
        """
        weak: BoolArray = self.strength_block(rows, columns) < INDEPENDENT
        return weak

    def of_pairs(self, pairs: IntArray) -> FloatArray:
        """Return the distances of pairs.

        Parameters
        ----------
        pairs : array of int of shape (p, 2)
            Numbers of the variables of each pair.

        Returns
        -------
        array of shape (p,)
        """
        return self._held.distances_of(pairs[:, 0], pairs[:, 1])

    def signs_of_pairs(self, pairs: IntArray) -> NDArray[np.int8]:
        """Return the signs of the dependence of pairs.

        Parameters
        ----------
        pairs : array of int of shape (p, 2)
            Numbers of the variables of each pair.

        Returns
        -------
        array of int8 of shape (p,)
            −1 or +1.
        """
        return self._held.signs_of(pairs[:, 0], pairs[:, 1])

    def evidence(self) -> Evidence:
        """Return the evidence against the independence of all pairs, which is computed once.

        Returns
        -------
        Evidence
            A statistic for every pair that is χ² for an independent one, and its degrees of
            freedom. Of distances given as a matrix, it is that of correlations e^(−d).
        """
        return self._evidence

    @cached_property
    def _evidence(self) -> Evidence:
        if self.source.evidence is not None:
            return self.source.evidence(None)
        whole = self._whole
        assert self.n_effective is not None
        n: float | FloatArray = self.n_effective if whole.precision is None else whole.precision
        return evidence_of_correlations(np.exp(-whole.matrix / whole.exponent), n)

    def independent_pairs(self, pairs: IntArray) -> BoolArray:
        """Find the pairs that look independent.

        Parameters
        ----------
        pairs : array of int of shape (p, 2)
            Numbers of the variables of each pair.

        Returns
        -------
        array of bool of shape (p,)
        """
        weak: BoolArray = self._held.strengths_of(pairs[:, 0], pairs[:, 1]) < INDEPENDENT
        return weak

    @property
    def longest(self) -> float:
        """An upper bound on all distances: the longest of a given matrix, 18.4·c of estimates."""
        return self._held.longest

    @property
    def quick(self) -> BlockDependence | None:
        """The statistic behind distances on demand, if it has a quicker way for all pairs."""
        source = self._held
        if isinstance(source, MatrixDistances) or source.chosen is not None:
            return None
        return source.statistic if source.statistic.margin > 0 else None

    @property
    def candidates(self) -> IntArray | None:
        """The pairs among which a spanning tree is looked for; None for all pairs."""
        held = self._held
        return held.candidates if isinstance(held, BlockDistances) else None

    @property
    def span(self) -> int:
        """Columns of the blocks that are cheapest when all pairs are wanted."""
        return self._held.span

    def dense(self) -> FloatArray:
        """Return the whole matrix, which is computed once.

        Returns
        -------
        array of shape (m, m)
            Read-only.

        Raises
        ------
        latentree.errors.MemoryBudgetError
            If the matrix does not fit into memory.
        """
        return self._whole.matrix

    def signs(self) -> NDArray[np.int8]:
        """Return the signs of the dependence of all pairs.

        Returns
        -------
        array of int8 of shape (m, m)
            −1 or +1, read-only.
        """
        return self._whole.sign_matrix

    def independent(self) -> BoolArray:
        """Find, of all pairs, those that look independent.

        Returns
        -------
        array of bool of shape (m, m)
            False on the diagonal.
        """
        return self.independent_block(slice(None), slice(None))

    def subset(self, variables: IndexLike) -> Distances:
        """Return the distances among some variables.

        Parameters
        ----------
        variables : slice or array of int or bool
            Which variables, in the order wanted.

        Returns
        -------
        Distances
            Held as these are: as a matrix or on demand.
        """
        index = np.arange(self.n_variables)[_as_index(variables)]
        names = tuple(self.names[j] for j in index.tolist())
        components = None if self.components is None else self.components[index]
        return Distances(names, self.n_samples, self.family, self._held.subset(index), components)

    @cached_property
    def _matrix(self) -> MatrixDistances:
        assert isinstance(self.source, BlockDistances)
        return self.source.to_dense()

    @property
    def _whole(self) -> MatrixDistances:
        return self.source if isinstance(self.source, MatrixDistances) else self._matrix

    @property
    def _held(self) -> MatrixDistances | BlockDistances:
        return self._whole if self.is_dense else self.source

    def __repr__(self) -> str:
        kind = "dense" if self.is_dense else "on demand"
        rows = "exact" if self.n_samples is None else f"{self.n_samples:g} samples"
        return f"Distances({self.n_variables} variables, {rows}, {kind})"


def distances_from_sums(
    statistics: Statistics,
    centered: bool = True,
    rows: Parts | None = None,
    components: IntArray | None = None,
) -> Distances:
    """Return the distances of all pairs, from the sums of all pairs.

    With the rows, independence is tested by ranks where columns are far from normal. Where the
    components are known, the user has been warned of duplicate columns; else this warns of them.
    """
    r = dependence(statistics, centered)
    if components is None and np.count_nonzero(np.abs(r) >= 1.0 - statistics.rounding) > len(r):
        warn_of_duplicates(statistics.names, statistics.sums.duplicates(r, statistics.rounding))
    return _from_dependence(
        r, scale_of(statistics.schema, statistics.sums), statistics, rows, components
    )


def canonical_distances(statistics: Statistics, components: IntArray | None = None) -> Distances:
    """Return −log of the first canonical correlations of discrete columns, from sums of all pairs.

    Where all columns have K > 2 states the usual distance takes K − 1 canonical correlations: it
    adds up along paths whatever the tables, but it is noise where hidden variables have fewer than
    K states. The first one alone is not, and adds up where they have two.
    """
    r = canonical_correlations(statistics.sums)
    scale = canonical_scale(statistics.schema)
    return _from_dependence(r, scale, statistics, None, components)


def _from_dependence(
    r: FloatArray,
    scale: DependenceScale,
    statistics: Statistics,
    rows: Parts | None,
    components: IntArray | None,
) -> Distances:
    """Turn the dependence of all pairs into distances, in place."""
    known = frozen_precision(statistics.sums.pair_weights() * scale.precisions(EVERY, EVERY))
    signs = distances_in_place(r, scale.exponent, statistics.rounding)
    matrix = frozen(r)
    evidence: Callable[[IntArray | None], Evidence] = partial(pair_evidence, statistics, rows)
    if statistics.family == "gaussian":
        evidence = partial(evidence_of_matrix, matrix, statistics, rows)
    source = MatrixDistances(matrix, frozen(signs), known, scale.exponent, evidence=evidence)
    n = statistics.mean_pair_weight
    return Distances(statistics.names, n, statistics.family, source, components)


def distances_on_demand(
    table: Table,
    statistics: Statistics,
    centered: bool = True,
    components: IntArray | None = None,
) -> Distances:
    """Return distances that are computed by blocks from rows in memory.

    ``statistics`` are the sums of the columns. This warns of duplicate columns where
    :func:`distances_from_sums` does.
    """
    if components is None:
        warn_of_duplicates(table.names, duplicate_columns(table.values))
    source = BlockDistances(BlockDependence(table, statistics, centered), None)
    n = statistics.mean_pair_weight
    return Distances(table.names, n, table.family, source, components)


def distances_among_candidates(
    table: Table, statistics: Statistics, candidates: IntArray
) -> Distances:
    """Return distances on demand whose spanning tree is looked for among some pairs only.

    The pairs connect all variables, or all of each component. Nothing is said of duplicate columns.
    """
    source = BlockDistances(BlockDependence(table, statistics), None, candidates)
    return Distances(table.names, statistics.mean_pair_weight, table.family, source)


def warn_of_duplicates(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> None:
    """Warn of pairs of equal columns."""
    if pairs:
        warnings.warn(
            "duplicate columns lie at distance 0 from each other: "
            + listing([f"{names[a]} = {names[b]}" for a, b in pairs]),
            DataWarning,
            stacklevel=4,
        )


DistancesLike = Distances | ArrayLike
"""Distances, or a square array of them."""


def as_distances(x: DistancesLike) -> Distances:
    """Pass distances through, and check a square array."""
    return x if isinstance(x, Distances) else Distances.from_matrix(x)


def _as_index(index: IndexLike) -> Index:
    """Return a slice as it is, and numbers or bools as an array of numbers."""
    if isinstance(index, slice):
        return index
    array = np.atleast_1d(np.asarray(index))
    if array.dtype == np.bool_:
        return np.flatnonzero(array)
    return (
        array.astype(np.int64, casting="same_kind", copy=False)
        if array.size
        else array.astype(np.int64)
    )

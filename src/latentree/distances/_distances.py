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

from latentree import _memory as memory
from latentree._kernels import threads
from latentree.data import Parts, Table, cut_table, duplicate_columns, listing
from latentree.distances._block_dependence import BlockDependence, block_dependence
from latentree.distances._counting import in_parts
from latentree.distances._dependence import (
    DependenceScale,
    canonical_correlations,
    canonical_scale,
    dependence,
    scale_of_sums,
)
from latentree.distances._matrix_checks import checked_matrix, checked_names, checked_signs, frozen
from latentree.distances._pair_tests import (
    Evidence,
    evidence_of_correlations,
    pair_evidence,
    real_evidence,
)
from latentree.distances._statistics import Statistics, gather
from latentree.distances._sums import StateCounts
from latentree.errors import DataWarning, DistanceError
from latentree.typing import AnyArray, BoolArray, Family, FloatArray, Index, IntArray

WEAKEST = 1e-8
"""Dependence |r| below this counts as this, so that a distance is at most 18.4 times c."""

INDEPENDENT = 1.0
"""A pair is marked independent when |r| is below so many standard errors of an independent pair."""

IndexLike = slice | ArrayLike
"""Which variables: a slice, numbers, or a bool for each."""

_EVERY = slice(None)

_TILE = 512
"""Rows and columns of the tiles that threads turn into distances: 2 MB each."""

_SPAN = 2048
"""Columns of the blocks in which learners go through all pairs."""


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
    source: _MatrixDistances | _BlockDistances = field(repr=False)
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
        source = _MatrixDistances(frozen(d), checked_signs(signs, m), None, 1.0, marked)
        return cls(given, None if n_samples is None else float(n_samples), family, source)

    # Reading --------------------------------------------------------------------------------

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def is_dense(self) -> bool:
        """Whether a whole matrix is held."""
        return isinstance(self.source, _MatrixDistances) or "_matrix" in self.__dict__

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
        known = held.precision if isinstance(held, _MatrixDistances) else None
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
        if isinstance(source, _MatrixDistances) or source.chosen is not None:
            return None
        return source.statistic if source.statistic.margin > 0 else None

    @property
    def candidates(self) -> IntArray | None:
        """The pairs among which a spanning tree is looked for; None for all pairs."""
        held = self._held
        return held.candidates if isinstance(held, _BlockDistances) else None

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
    def _matrix(self) -> _MatrixDistances:
        assert isinstance(self.source, _BlockDistances)
        return self.source.to_dense()

    @property
    def _whole(self) -> _MatrixDistances:
        return self.source if isinstance(self.source, _MatrixDistances) else self._matrix

    @property
    def _held(self) -> _MatrixDistances | _BlockDistances:
        return self._whole if self.is_dense else self.source

    def __repr__(self) -> str:
        kind = "dense" if self.is_dense else "on demand"
        rows = "exact" if self.n_samples is None else f"{self.n_samples:g} samples"
        return f"Distances({self.n_variables} variables, {rows}, {kind})"


def distances_from_sums(
    statistics: Statistics, centered: bool = True, rows: Parts | None = None
) -> Distances:
    """Return the distances of all pairs, from the sums of all pairs; warn of duplicate columns.

    With the rows, independence is tested by ranks where columns are far from normal.
    """
    r = dependence(statistics, centered)
    if np.count_nonzero(np.abs(r) >= 1.0 - statistics.rounding) > len(r):
        warn_of_duplicates(statistics.names, statistics.sums.duplicates(r, statistics.rounding))
    return _from_dependence(r, scale_of_sums(statistics), statistics, rows)


def canonical_distances(statistics: Statistics) -> Distances:
    """Return −log of the first canonical correlations of discrete columns, from sums of all pairs.

    Where all columns have K > 2 states the usual distance takes K − 1 canonical correlations: it
    adds up along paths whatever the tables, but it is noise where hidden variables have fewer than
    K states. The first one alone is not, and adds up where they have two.
    """
    assert isinstance(statistics.sums, StateCounts)
    r = canonical_correlations(statistics.sums)
    return _from_dependence(r, canonical_scale(statistics.schema), statistics)


def _from_dependence(
    r: FloatArray, scale: DependenceScale, statistics: Statistics, rows: Parts | None = None
) -> Distances:
    """Turn the dependence of all pairs into distances, in place."""
    known = _frozen_precision(statistics.sums.pair_weights() * scale.precisions(_EVERY, _EVERY))
    signs = _distances_in_place(r, scale.exponent, statistics.rounding)
    matrix = frozen(r)
    evidence: Callable[[IntArray | None], Evidence] = partial(pair_evidence, statistics)
    if statistics.family == "gaussian":
        evidence = partial(_evidence_of_matrix, matrix, statistics, rows)
    source = _MatrixDistances(matrix, frozen(signs), known, scale.exponent, evidence=evidence)
    return Distances(statistics.names, statistics.mean_pair_weight, statistics.family, source)


def distances_on_demand(table: Table, statistics: Statistics, centered: bool = True) -> Distances:
    """Return distances that are computed by blocks from rows in memory; warn of duplicate columns.

    ``statistics`` are the sums of the columns.
    """
    warn_of_duplicates(table.names, duplicate_columns(table.values))
    source = _BlockDistances(block_dependence(table, statistics, centered), None)
    return Distances(table.names, statistics.mean_pair_weight, table.family, source)


def distances_among_candidates(
    table: Table, statistics: Statistics, candidates: IntArray
) -> Distances:
    """Return distances on demand whose spanning tree is looked for among some pairs only.

    The pairs connect all variables, or all of each component. Nothing is said of duplicate columns.
    """
    source = _BlockDistances(block_dependence(table, statistics), None, candidates)
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


# How they are held ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _MatrixDistances:
    """A matrix of distances −c·log|r|."""

    matrix: FloatArray
    sign_matrix: NDArray[np.int8]
    precision: float | FloatArray | None
    """1 / variance of r for an independent pair; None for distances without a statistic."""
    exponent: float
    marked: BoolArray | None = None
    evidence: Callable[[IntArray | None], Evidence] | None = None
    """Evidence against independence of some columns, where it is more than that of r."""
    span = _SPAN

    @cached_property
    def longest(self) -> float:
        if self.precision is None:
            return float(self.matrix.max(initial=0.0))
        return float(-self.exponent * np.log(WEAKEST))

    def distances_of(self, first: IntArray, second: IntArray) -> FloatArray:
        return self.matrix[first, second]

    def signs_of(self, first: IntArray, second: IntArray) -> NDArray[np.int8]:
        return self.sign_matrix[first, second]

    def strengths_of(self, first: IntArray, second: IntArray) -> FloatArray:
        precision, marked = self.precision, self.marked
        if precision is None:
            strength = np.full(first.size, np.inf)
            if marked is not None:
                strength[marked[first, second]] = 0.0
            return strength
        if isinstance(precision, np.ndarray):
            precision = precision[first, second]
        r = np.exp(self.matrix[first, second] / -self.exponent)
        return np.asarray(r * np.sqrt(precision))

    def distances(self, rows: Index, columns: Index) -> FloatArray:
        return _cut(self.matrix, rows, columns).copy()

    def signs(self, rows: Index, columns: Index) -> NDArray[np.int8]:
        return _cut(self.sign_matrix, rows, columns).copy()

    def strengths(self, rows: Index, columns: Index) -> FloatArray:
        d = _cut(self.matrix, rows, columns)
        if self.precision is None:
            strength = np.full(d.shape, np.inf)
            if self.marked is not None:
                strength[_cut(self.marked, rows, columns)] = 0.0
            return strength
        precision = self.precision
        if isinstance(precision, np.ndarray):
            precision = _cut(precision, rows, columns)
        strength = np.exp(d / -self.exponent)
        strength *= np.sqrt(precision)
        return strength

    def subset(self, index: IntArray) -> _MatrixDistances:
        def cut(array: AnyArray) -> AnyArray:
            return frozen(_cut(array, index, index))

        precision = self.precision
        return _MatrixDistances(
            cut(self.matrix),
            cut(self.sign_matrix),
            cut(precision) if isinstance(precision, np.ndarray) else precision,
            self.exponent,
            None if self.marked is None else cut(self.marked),
            None if self.evidence is None else partial(_selected, self.evidence, index),
        )


@dataclass(frozen=True, eq=False)
class _BlockDistances:
    """A statistic, and which of its variables are meant (None for all)."""

    statistic: BlockDependence
    chosen: IntArray | None
    candidates: IntArray | None = None
    """Pairs among which a spanning tree is looked for, by their numbers here; None for all."""

    def _r(self, rows: Index, columns: Index) -> FloatArray:
        return self.statistic.block(self._of(rows), self._of(columns))

    def _of(self, index: Index) -> Index:
        return index if self.chosen is None else self.chosen[index]

    @property
    def exponent(self) -> float:
        return self.statistic.exponent

    @property
    def longest(self) -> float:
        return float(-self.statistic.exponent * np.log(WEAKEST))

    @property
    def span(self) -> int:
        return max(_SPAN, self.statistic.span)

    def distances(self, rows: Index, columns: Index) -> FloatArray:
        d = self._r(rows, columns)
        if d.size < _TILE * _TILE:
            d = self._to_distances(d)
        else:
            in_parts(len(d), lambda part: self._overwrite(d[part]))
        d[self._same(rows, columns)] = 0.0
        return d

    def _same(self, rows: Index, columns: Index) -> tuple[IntArray, IntArray]:
        """Where in a block a variable meets itself."""
        a, b = (self._numbers(self._of(index)) for index in (rows, columns))
        among = np.flatnonzero(np.isin(a, b)) if a.size > _TILE else np.arange(a.size)
        row, column = np.nonzero(np.equal.outer(a[among], b))
        return among[row], column

    def _numbers(self, index: Index) -> IntArray:
        return np.arange(self.statistic.n_variables)[index] if isinstance(index, slice) else index

    def _r_of(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return r of pairs, of each with the higher number first."""
        a, b = np.asarray(self._of(first)), np.asarray(self._of(second))
        return self.statistic.pairs(np.maximum(a, b), np.minimum(a, b))

    def distances_of(self, first: IntArray, second: IntArray) -> FloatArray:
        d = self._to_distances(self._r_of(first, second))
        d[first == second] = 0.0
        return d

    def _to_distances(self, r: FloatArray) -> FloatArray:
        return _to_distances(r, self.statistic.exponent, self.statistic.rounding)

    def _overwrite(self, r: FloatArray) -> None:
        r[...] = self._to_distances(r)

    def signs_of(self, first: IntArray, second: IntArray) -> NDArray[np.int8]:
        return _signs_of(self._r_of(first, second))

    def strengths_of(self, first: IntArray, second: IntArray) -> FloatArray:
        r = np.abs(self._r_of(first, second))
        precision = self.statistic.pair_precisions(
            np.asarray(self._of(first)), np.asarray(self._of(second))
        )
        return np.asarray(r * np.sqrt(precision))

    def signs(self, rows: Index, columns: Index) -> NDArray[np.int8]:
        return _signs_of(self._r(rows, columns))

    def strengths(self, rows: Index, columns: Index) -> FloatArray:
        r = np.abs(self._r(rows, columns))
        r[self._same(rows, columns)] = 1.0
        r *= np.sqrt(self.statistic.precisions(self._of(rows), self._of(columns)))
        return r

    def subset(self, index: IntArray) -> _BlockDistances:
        near = None
        if self.candidates is not None:
            number = np.full(self.statistic.n_variables, -1)
            number[index] = np.arange(index.size)
            near = number[self.candidates]
            near = near[(near >= 0).all(axis=1)]
        return _BlockDistances(self.statistic, np.asarray(self._of(index)), near)

    def evidence(self, columns: IntArray | None) -> Evidence:
        """Return the evidence against independence of some columns, from sums of their pairs."""
        table = self.statistic.table
        chosen = self.chosen if columns is None else np.asarray(self._of(columns))
        rows = cut_table(table if chosen is None else table.select(chosen))
        if table.family != "gaussian":
            return pair_evidence(gather(rows, pairs=True))
        own = self if columns is None else self.subset(columns)
        sums = self.statistic.statistics
        sums = sums if chosen is None else sums.select(chosen)
        every: Index = _EVERY if chosen is None else chosen
        n = self.statistic.precisions(every, every)
        return real_evidence(np.exp(-own.distances(_EVERY, _EVERY)), n, sums, rows)

    def dense_size(self) -> float:
        """Bytes of the whole matrix: distances, signs, and counts if they differ."""
        first = np.zeros(1, np.int64)
        same = isinstance(self.statistic.pair_precisions(first, first), float)
        m = self.statistic.n_variables if self.chosen is None else self.chosen.size
        return (9.0 if same else 17.0) * m**2

    def to_dense(self) -> _MatrixDistances:
        """Compute the whole matrix; raise if it does not fit into memory."""
        statistic = self.statistic
        m = statistic.n_variables if self.chosen is None else self.chosen.size
        memory.require(
            self.dense_size(),
            f"the matrix of distances between {m:,} variables",
            "CLGrouping (clnj, clrg), cl_blind and chow_liu do without it, from distances on "
            "demand: information_distances(X, dense=False)",
        )
        every: Index = _EVERY if self.chosen is None else self.chosen
        d = statistic.lower() if self.chosen is None else statistic.block(every, every)
        precision = _frozen_precision(statistic.precisions(every, every))
        signs = _distances_in_place(d, statistic.exponent, statistic.rounding)
        return _MatrixDistances(frozen(d), frozen(signs), precision, statistic.exponent)


def _evidence_of_matrix(
    matrix: FloatArray, statistics: Statistics, rows: Parts | None, columns: IntArray | None
) -> Evidence:
    """Return the evidence of some real columns, from their distances −log|r|."""
    if columns is not None:
        matrix, statistics = matrix[np.ix_(columns, columns)], statistics.select(columns)
    return real_evidence(np.exp(-matrix), statistics.sums.pair_weights(), statistics, rows)


def _selected(
    evidence: Callable[[IntArray | None], Evidence], among: IntArray, columns: IntArray | None
) -> Evidence:
    return evidence(among if columns is None else among[columns])


def _frozen_precision(precision: float | FloatArray) -> float | FloatArray:
    return frozen(precision) if isinstance(precision, np.ndarray) else precision


def _distances_in_place(r: FloatArray, exponent: float, rounding: float) -> NDArray[np.int8]:
    """Turn the lower triangle of r into a whole matrix of distances, in place; return the signs.

    Tile by tile on threads: each tile is read once, and written to both sides of the diagonal.
    """
    m = r.shape[0]
    signs = np.empty((m, m), np.int8)
    cuts = [slice(start, min(m, start + _TILE)) for start in range(0, m, _TILE)]

    def one(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        own = r[rows, columns]
        if rows == columns:
            own = np.tril(own) + np.tril(own, -1).T
            np.fill_diagonal(own, 1.0)
        s = _signs_of(own)
        signs[rows, columns] = s
        signs[columns, rows] = s.T
        d = _to_distances(own, exponent, rounding)
        r[rows, columns] = d
        r[columns, rows] = d.T

    threads.run(one, [(a, b) for i, a in enumerate(cuts) for b in cuts[: i + 1]])
    return signs


def _to_distances(r: FloatArray, exponent: float, rounding: float) -> FloatArray:
    """Return −c·log|r|, with |r| between the weakest and exactly 1."""
    a = np.abs(r)
    a[a > 1.0 - rounding] = 1.0  # duplicate columns
    np.maximum(a, WEAKEST, out=a)
    np.log(a, out=a)
    a *= -exponent
    a += 0.0  # no −0.0
    return a


def _signs_of(r: FloatArray) -> NDArray[np.int8]:
    signs: NDArray[np.int8] = (r >= 0).view(np.int8)
    signs *= 2
    signs -= 1
    return signs


def _cut(array: AnyArray, rows: Index, columns: Index) -> AnyArray:
    if isinstance(rows, slice) or isinstance(columns, slice):
        return array[rows][:, columns]
    return array[np.ix_(rows, columns)]


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

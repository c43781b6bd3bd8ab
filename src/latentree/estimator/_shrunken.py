"""A Gaussian tree mixed with the covariances of the rows: what it leaves over is kept in part.

The covariance is (1 − w)·S + w·((1 − c)·T + c·diag T): S is that of the rows, T that of the tree.
So few rows are pulled to a tree, as Ledoit and Wolf pull them to a multiple of the identity, and
many rows win over it. Held-out rows decide on both shares.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from latentree.data import Schema, Table, as_table
from latentree.errors import DataWarning
from latentree.estimator._latent_tree import LatentTree
from latentree.estimator._tables import as_numbers
from latentree.models import GaussianTreeModel
from latentree.typing import BoolArray, FloatArray, IntArray, TableLike

SHARES = np.linspace(0.0, 1.0, 11) ** 2
"""Shares that are tried, more of them where they are small."""


class Gaussian(NamedTuple):
    """A normal distribution of rows."""

    mean: FloatArray
    covariance: FloatArray

    def given(self, rows: FloatArray, hidden: BoolArray | None = None) -> Given:
        """Return what follows for missing cells, and for the columns that are hidden."""
        missing = np.isnan(rows) if hidden is None else np.isnan(rows) | hidden
        precision = np.linalg.inv(self.covariance)
        log_det = np.linalg.slogdet(self.covariance)[1]
        away = np.where(missing, 0.0, rows - self.mean)
        log_likelihood, spreads = np.empty(len(rows)), []
        patterns, place = np.unique(missing, axis=0, return_inverse=True)
        for number, gaps in enumerate(patterns):
            chosen = np.flatnonzero(place.ravel() == number)
            # With P the precision and d = x − μ: V[d_M | d_O] = P_MM⁻¹, mean −P_MM⁻¹·P_MO·d_O
            spread = np.linalg.inv(precision[np.ix_(gaps, gaps)])
            here = away[chosen]
            here[:, gaps] = -(here @ precision[:, gaps]) @ spread
            away[chosen] = here
            square = np.einsum("ij,ij->i", here @ precision, here)
            seen = (~gaps).sum() * np.log(2.0 * np.pi) + log_det - np.linalg.slogdet(spread)[1]
            log_likelihood[chosen] = -0.5 * (square + seen)
            spreads.append(Spread(gaps, chosen, spread))
        return Given(np.where(missing, self.mean + away, rows), log_likelihood, spreads)


class Spread(NamedTuple):
    """The covariance of the missing cells of some rows."""

    gaps: BoolArray
    rows: IntArray
    covariance: FloatArray


class Given(NamedTuple):
    """Rows whose missing cells have their expected values."""

    rows: FloatArray
    log_likelihood: FloatArray
    """Of the cells that are there, per row."""
    spreads: list[Spread]

    def moments(self, weights: FloatArray) -> Gaussian:
        """Return the mean and covariance of the rows, as expected where cells are missing."""
        mean = np.average(self.rows, axis=0, weights=weights)
        centered = self.rows - mean
        products = (centered * weights[:, None]).T @ centered
        for gaps, rows, covariance in self.spreads:
            products[np.ix_(gaps, gaps)] += weights[rows].sum() * covariance
        return Gaussian(mean, products / weights.sum())

    def errors(self) -> FloatArray:
        """Return the standard deviations of the missing cells, 0 elsewhere."""
        found = np.zeros_like(self.rows)
        for gaps, rows, covariance in self.spreads:
            found[np.ix_(rows, gaps)] = np.sqrt(np.diag(covariance))
        return found

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing cells drawn from their joint distribution."""
        rows = self.rows.copy()
        for gaps, places, covariance in self.spreads:
            noise = rng.standard_normal((places.size, len(covariance)))
            rows[np.ix_(places, gaps)] += noise @ np.linalg.cholesky(covariance).T
        return rows


class Shrunken(NamedTuple):
    """A normal distribution, and what it was mixed from.

    ``shares`` are those of the rows, of the tree, and of independent columns; they add up to 1.
    """

    gaussian: Gaussian
    shares: FloatArray


def shrunken(
    learned: LatentTree,
    X: TableLike,
    sample_weight: FloatArray | None,
    n_folds: int,
    target: int | None = None,
    shares: FloatArray | None = None,
) -> Shrunken:
    """Decide how much of the rows to keep beside a tree.

    Parameters
    ----------
    learned : LatentTree
        Learned from the rows: a Gaussian tree.
    X : table
        The rows, of which cells may be missing.
    sample_weight : array, optional
        How much each row counts.
    n_folds : int
        Number of times that rows are held out; the tree alone counts if it is 0. Equal rows are in
        one fold, so that a weight means what repeated rows mean.
    target : int, optional
        From this of the tree's columns on, they are to be predicted from those before. By default
        all count alike.
    shares : array, optional
        Those of an earlier answer, which are taken as they are.
    """
    model = learned.model_
    assert isinstance(model, GaussianTreeModel)
    tree = Gaussian(model.means, model.covariance())
    values = np.asarray(as_table(X, schema=model.schema).values, np.float64)
    weights = np.ones(len(values)) if sample_weight is None else sample_weight
    if shares is None:
        shares = _best_shares(learned, model, values, weights, n_folds, target)
    if shares[1] == 1.0:
        return Shrunken(tree, shares)
    z = (values - model.means) / model.scales
    units = np.outer(model.scales, model.scales)
    found = standard = Gaussian(np.zeros(len(units)), tree.covariance / units)
    for _ in range(10 if np.isnan(z).any() else 1):  # EM, which fills in gaps again
        found = _mixed(found.given(z).moments(weights), standard, shares)
    mean = model.means + model.scales * found.mean
    return Shrunken(Gaussian(mean, found.covariance * units), shares)


def _mixed(rows: Gaussian, tree: Gaussian, shares: FloatArray) -> Gaussian:
    """Mix the covariance of rows, that of a tree and its diagonal."""
    parts = rows.covariance, tree.covariance, np.diag(np.diag(tree.covariance))
    return Gaussian(rows.mean, sum(share * part for share, part in zip(shares, parts, strict=True)))


def _best_shares(
    learned: LatentTree,
    model: GaussianTreeModel,
    values: FloatArray,
    weights: FloatArray,
    n_folds: int,
    target: int | None,
) -> FloatArray:
    """Return the shares under which held-out rows are most probable, by the way of coordinates."""
    folds = _folds(values, weights, n_folds)
    if not folds:
        return np.array([0.0, 1.0, 0.0])
    z = (values - model.means) / model.scales
    learner = clone(learned).set_params(family="gaussian", kinds=None)
    with warnings.catch_warnings():  # what the test of independence says is in the report
        warnings.simplefilter("ignore", DataWarning)
        parts = [_held_out(learner, z, weights, rows) for rows in folds]
    hidden = None if target is None else np.arange(z.shape[1]) >= target

    def shares(w: float, c: float) -> FloatArray:
        return np.array([1.0 - w, w * (1.0 - c), w * c])

    def score(w: float, c: float) -> float:
        return sum(part.score(shares(w, c), hidden) for part in parts)

    w = max(SHARES[1:], key=lambda share: score(share, 0.0))
    c = max(SHARES, key=lambda share: score(w, share))
    return shares(max(SHARES[1:], key=lambda share: score(share, c)), c)


class HeldOut(NamedTuple):
    """What was learned from the other rows, and the rows of a fold with their weights."""

    others: Gaussian
    tree: Gaussian
    rows: FloatArray
    weights: FloatArray

    def score(self, shares: FloatArray, target: BoolArray | None) -> float:
        """Return the log-likelihood of the rows, or of the target given the other columns."""
        gaussian = _mixed(self.others, self.tree, shares)
        found = gaussian.given(self.rows).log_likelihood
        if target is not None:
            found = found - gaussian.given(self.rows, target).log_likelihood
        return float(self.weights @ found)


def _held_out(learner: LatentTree, z: FloatArray, weights: FloatArray, rows: IntArray) -> HeldOut:
    """Learn from all rows but some; ``z`` are standardized columns."""
    kept = weights.copy()
    kept[rows] = 0.0
    known = kept > 0.0
    model = clone(learner).fit(z[known], sample_weight=kept[known]).model_
    assert isinstance(model, GaussianTreeModel)
    # Columns that vary in the held-out rows only keep mean 0 and variance 1.
    used = [int(name[1:]) for name in model.schema.names]
    tree = Gaussian(np.zeros(z.shape[1]), np.eye(z.shape[1]))
    tree.mean[used] = model.means
    tree.covariance[np.ix_(used, used)] = model.covariance()
    others = tree.given(z[known]).moments(kept[known])
    return HeldOut(others, tree, z[rows], weights[rows])


class TargetTree(NamedTuple):
    """One Gaussian tree over the columns of a table, as numbers, and targets."""

    schema: Schema
    learned: LatentTree
    mixed: Shrunken
    n_targets: int

    @classmethod
    def learn(
        cls,
        learner: LatentTree,
        table: Table,
        targets: FloatArray,
        sample_weight: FloatArray | None,
        n_folds: int,
        shares: FloatArray | None = None,
    ) -> TargetTree:
        """Learn the tree, and how much of the rows to keep where targets are predicted."""
        columns = np.column_stack([as_numbers(table, drop_first=True), targets])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            learned = learner.fit(columns, sample_weight=sample_weight)
        names = learned.model_.schema.names
        first = sum(int(name[1:]) < columns.shape[1] - targets.shape[1] for name in names)
        mixed = shrunken(
            learned, columns, sample_weight, n_folds, min(first, len(names) - 1), shares
        )
        return cls(table.schema, learned, mixed, targets.shape[1])

    def predict(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the means of the targets and their standard deviations, 0 of constants."""
        table = as_table(X, schema=self.schema, unseen="missing")
        columns = as_numbers(table, drop_first=True)
        columns = np.column_stack([columns, np.full((len(columns), self.n_targets), np.nan)])
        errors = np.zeros(columns.shape)
        schema = self.learned.model_.schema
        used = [int(name[1:]) for name in schema.names]
        found = self.mixed.gaussian.given(columns[:, used])
        columns[:, used], errors[:, used] = found.rows, found.errors()
        for column in schema.aside:
            columns[:, column.place] = np.full(len(columns), column.value, np.float64)
        return columns[:, -self.n_targets :], errors[:, -self.n_targets :]


def _folds(values: FloatArray, weights: FloatArray, n_folds: int) -> list[IntArray]:
    """Return the rows of each fold; none where too few rows would be left to learn from.

    Distinct rows are dealt out in their own order, wherever they stand in the table.
    """
    counted = np.flatnonzero(weights > 0.0)
    cells = np.nan_to_num(values[counted], nan=0.0)
    _, rank = np.unique(cells, axis=0, return_inverse=True)
    rank = rank.ravel()
    least = 3  # rows that a fold must leave to learn from, and their weight
    if n_folds < 2 or rank.max(initial=0) < n_folds + least:
        return []
    folds = [counted[rank % n_folds == fold] for fold in range(n_folds)]
    left = weights.sum() - max(weights[rows].sum() for rows in folds)
    return folds if left >= least else []

"""Random models, and what n samples of them say; what it takes to learn from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

import latentree as lt
from latentree import simulate, structure

TREES: dict[str, Callable[[int], lt.Tree]] = {
    "double star": simulate.double_star,
    "HMM": simulate.hidden_markov,
    "5-complete": lambda m: simulate.complete_tree(5, {6: 1, 21: 2, 81: 3, 321: 4, 1281: 5}[m]),
}
PAPER_SIZE = {"double star": 80, "HMM": 80, "5-complete": 81}
METHODS = ("rg", "nj", "clrg", "clnj")
STRENGTH = (0.2, 0.8)
"""Edge correlations are uniform in this range, as in the paper."""


def gaussian_tables(
    model: lt.GaussianTreeModel, sizes: Sequence[int], rng: np.random.Generator
) -> Iterator[lt.Table]:
    """Yield standardized samples of growing size, each the beginning of the next.

    All that learners of Gaussian trees use of n samples is their correlations. The scatter matrix
    of n samples around their mean is Wishart with n − 1 degrees of freedom, and grows by an
    independent Wishart matrix when samples are added; both are drawn as such, which takes the same
    time whatever n is. A table with weights stands for the n rows: ± the columns of a root of the
    correlation matrix have exactly these correlations, and the weight of n rows.
    """
    root = np.linalg.cholesky(model.covariance())
    scatter, drawn = np.zeros_like(root), 1
    for n in sizes:
        scatter += _wishart(root, n - drawn, rng)
        drawn = n
        yield table_of(scatter, n)


def table_of(scatter: Any, n: int) -> lt.Table:
    """Return a table of weight n with the correlations of a scatter matrix."""
    scale = np.sqrt(np.diag(scatter))
    values, vectors = np.linalg.eigh(scatter / np.outer(scale, scale))
    m = len(scale)
    rows = (vectors * np.sqrt(np.maximum(values, 0.0) * m)).T
    weights = np.full(2 * m, n / (2.0 * m))
    return lt.as_table(np.vstack([rows, -rows]), "gaussian", weights=weights)


def _wishart(root: Any, freedom: int, rng: np.random.Generator) -> Any:
    """Draw a sum of outer products of centered normal vectors, by Bartlett if they are many."""
    m = len(root)
    if freedom < m:
        half = root @ rng.standard_normal((m, freedom))
    else:
        factor = np.tril(rng.standard_normal((m, m)), -1)
        factor[np.diag_indices(m)] = np.sqrt(rng.chisquare(freedom - np.arange(m)))
        half = root @ factor
    return half @ half.T


@cache
def warm_up() -> None:
    """Compile the learners, so that no measured time holds that."""
    model = simulate.random_gaussian_model(simulate.hidden_markov(60), 0)
    (table,) = gaussian_tables(model, [500], np.random.default_rng(0))
    distances = lt.information_distances(table)
    exact = lt.Distances.from_matrix(model.distance_tree().path_lengths())
    for method in (*METHODS, "chow_liu", "cl_blind"):
        structure.learn_structure(distances, method)
        learn_exactly(exact, method)


def learn_exactly(distances: lt.Distances, method: str) -> lt.Tree:
    """Learn from exact distances."""
    options = {} if method in ("chow_liu", "cl_blind") else {"exact": True}
    return structure.learn_structure(distances, method, **options)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the processor time that it took."""
    start = time.process_time()
    result = function()
    return result, time.process_time() - start

"""Exact inference against NumPy, a row-by-row kernel and a pass over memory, in one run.

    python benchmarks/inference.py [--quick]

Discrete: one pass of expected counts (the expectation step of EM). Peers compute the same numbers
over the distinct rows: vectorized NumPy, one operation an edge over all rows; and a compiled loop
that takes one row at a time through the whole tree. Gaussian: log-likelihood of every row, against
summing the matrix once. Newsgroups are used if LATENTREE_DATA points at the paper's data.

Many states: products a processor second of a pass, beside those of one large product by BLAS.
Needed are those of every pattern, made those of every row where slots run row by row. For that
table alone, LATENTREE_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 and ``--states``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse

from common import data_folder, newsgroups, show
from density import parts_of
from latentree import simulate
from latentree._kernels.inference.slots import EDGE
from latentree.data import Table, as_table
from latentree.distances import information_distances
from latentree.inference._expectation import Expectation
from latentree.inference._patterns import compile_patterns
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.structure import cl_grouping, hidden_chow_liu
from ratios import keep, write


def best_time(function: Callable[[], object], seconds: float = 1.0) -> float:
    """Shortest of repeated runs, after one to warm up."""
    function()
    times: list[float] = []
    while sum(times) < seconds and len(times) < 50:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def distinct_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, weights = np.unique(codes, axis=0, return_counts=True)
    return rows, weights.astype(float)


def numpy_counts(model: DiscreteTreeModel, rows: np.ndarray, weights: np.ndarray) -> float:
    """Expected counts by messages over all rows at once; returns the log-likelihood."""
    tree = model.tree
    tables = model.tables
    below = [np.ones((k, len(rows))) for k in model.n_states]  # states × rows: the quicker way
    message = [np.empty(0)] * tree.n_nodes
    log_likelihood = np.zeros(len(rows))
    for v in range(tree.n_observed):
        below[v] = (np.arange(model.n_states[v])[:, None] == rows[:, v]).astype(float)
    for v in tree.order[::-1]:
        if tree.parent[v] >= 0:
            if v >= tree.n_observed:
                scale = below[v].sum(axis=0)
                below[v] /= scale
                log_likelihood += np.log(scale)
            message[v] = tables[v] @ below[v]
            below[tree.parent[v]] *= message[v]
    posterior = [np.empty(0)] * tree.n_nodes
    counts = [np.empty(0)] * tree.n_nodes
    for v in tree.order:
        if tree.parent[v] < 0:
            posterior[v] = below[v] * tables[v][:, None]
            z = posterior[v].sum(axis=0)
            log_likelihood += np.log(z)
            posterior[v] *= weights / z
        else:
            ratio = posterior[tree.parent[v]] / message[v]
            counts[v] = (ratio @ below[v].T) * tables[v]
            posterior[v] = (tables[v].T @ ratio) * below[v]
    return float(weights @ log_likelihood)


@numba.njit(nogil=True, error_model="numpy", fastmath=True)
def _row_counts(rows, weights, order, parent, n_observed, n_states, starts, theta, counts, most):
    n = parent.size
    below = np.empty((n, most))
    message = np.empty((n, most))
    posterior = np.empty((n, most))
    total = 0.0
    for row in range(rows.shape[0]):
        below[:] = 1.0
        log_likelihood = 0.0
        for position in range(n - 1, -1, -1):
            v = order[position]
            if v < n_observed:
                for k in range(n_states[v]):
                    if k != rows[row, v]:
                        below[v, k] = 0.0
            p = parent[v]
            if p >= 0:
                scale = 0.0
                for k in range(n_states[v]):
                    scale += below[v, k]
                if scale < 1e-100:  # a logarithm only where it is needed
                    log_likelihood += np.log(scale)
                    for k in range(n_states[v]):
                        below[v, k] /= scale
                for i in range(n_states[p]):
                    x = 0.0
                    for j in range(n_states[v]):
                        x += theta[starts[v] + i * n_states[v] + j] * below[v, j]
                    message[v, i] = x
                    below[p, i] *= x
        for v in order:
            p = parent[v]
            if p < 0:
                z = 0.0
                for k in range(n_states[v]):
                    posterior[v, k] = below[v, k] * theta[starts[v] + k]
                    z += posterior[v, k]
                log_likelihood += np.log(z)
                for k in range(n_states[v]):
                    posterior[v, k] *= weights[row] / z
            else:
                for j in range(n_states[v]):
                    posterior[v, j] = 0.0
                for i in range(n_states[p]):
                    ratio = posterior[p, i] / message[v, i]
                    for j in range(n_states[v]):
                        x = ratio * theta[starts[v] + i * n_states[v] + j] * below[v, j]
                        counts[starts[v] + i * n_states[v] + j] += x
                        posterior[v, j] += x
        total += weights[row] * log_likelihood
    return total


def row_by_row(model: DiscreteTreeModel, rows: np.ndarray, weights: np.ndarray) -> float:
    layout = model.layout
    tree = model.tree
    counts = np.zeros(layout.size)
    return _row_counts(
        rows, weights, tree.order, tree.parent, tree.n_observed, model.n_states,
        layout.starts, model.theta, counts, int(model.n_states.max()),
    )  # fmt: skip


def compare_counts(name: str, model: DiscreteTreeModel, table: Table, goals: str) -> list[str]:
    """One line of the discrete table."""
    codes = table.values.toarray() if table.is_sparse else table.values
    rows, weights = distinct_rows(np.asarray(codes))
    start = time.perf_counter()
    patterns = compile_patterns(model.tree, model.n_states, table)
    expectation = Expectation(patterns)
    compiled = time.perf_counter() - start
    theta = model.layout.reoriented(model.theta, patterns.layout)
    ours = best_time(lambda: expectation.run(theta))
    dense = best_time(lambda: numpy_counts(model, rows, weights))
    single = best_time(lambda: row_by_row(model, rows, weights))
    values = [
        expectation.run(theta).log_likelihood,
        numpy_counts(model, rows, weights),
        row_by_row(model, rows, weights),
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-9)
    keep(f"expected counts, {name}: NumPy over distinct rows", dense, ours)
    keep(f"expected counts, {name}: compiled loop row by row", single, ours)
    return [
        name, f"{table.n_rows:,}", f"{len(rows):,}", f"{model.tree.n_nodes:,}",
        f"{1e3 * compiled:,.1f}", f"{1e3 * ours:,.2f}", f"{1e3 * dense:,.1f}",
        f"{1e3 * single:,.1f}", f"{dense / ours:,.0f}", f"{single / ours:,.0f}", goals,
    ]  # fmt: skip


def binary_model(tree, rng) -> DiscreteTreeModel:
    return simulate.random_discrete_model(tree, 2, rng)


def discrete(quick: bool) -> None:
    rng = np.random.default_rng(0)
    lines = []
    data = newsgroups()
    if data is not None:
        table = as_table(data, family="discrete")
        tree = cl_grouping(information_distances(table), subroutine="nj")
        model = binary_model(tree, rng)
        lines.append(compare_counts("newsgroups, CLNJ tree", model, table, "15, 10"))
        tree = simulate.random_latent_tree(100, rng, inner_share=0.0)
        tree = tree.renamed(table.names)
        lines.append(compare_counts("newsgroups, random tree", binary_model(tree, rng), table, ""))
    n, m = (10_000, 200) if quick else (100_000, 1_000)
    tree = simulate.random_latent_tree(m, rng, inner_share=0.0)
    sparse = scipy.sparse.random_array((n, m), density=0.01, rng=rng, format="csr")
    sparse.data[:] = 1
    lines.append(
        compare_counts("sparse, 1 % ones", binary_model(tree, rng), as_table(sparse), "50, –")
    )
    n = 4_000 if quick else 16_000
    for n_states, name in ((2, "all distinct, hidden Markov, 2 states"), (4, "… 4 states")):
        tree = simulate.hidden_markov(80)
        model = simulate.random_discrete_model(tree, n_states, rng)
        codes = rng.integers(0, n_states, (n, 80)).astype(np.int8)
        lines.append(compare_counts(name, model, Table(codes, model.schema), "8, –"))
    header = ["expected counts", "rows", "distinct", "nodes", "compile ms", "pass ms", "NumPy ms",
              "row by row ms", "× NumPy", "× row by row", "goals"]  # fmt: skip
    show(header, lines)


def discrete_growth(quick: bool) -> None:
    rng = np.random.default_rng(1)
    lines = []
    for m in (100, 200, 400):
        tree = simulate.random_latent_tree(m, rng, inner_share=0.0)
        model = binary_model(tree, rng)
        for n in (5_000, 10_000) if quick else (10_000, 20_000, 40_000, 80_000):
            table = Table((rng.random((n, m)) < 0.05).astype(np.int8), model.schema)
            start = time.perf_counter()
            patterns = compile_patterns(tree, model.n_states, table)
            expectation = Expectation(patterns)
            compiled = time.perf_counter() - start
            theta = model.layout.reoriented(model.theta, patterns.layout)
            ours = best_time(lambda: expectation.run(theta), 0.3)  # noqa: B023
            lines.append([f"{m}", f"{n:,}", f"{1e3 * compiled:,.1f}", f"{1e3 * ours:,.2f}"])
    show(["growth, 5 % ones: variables", "rows", "compile ms", "pass ms"], lines)


def rate_of(function: Callable[[], object], products: float) -> float:
    """Return 10⁹ products a processor second, in the best of some runs."""
    best = np.inf
    for _ in range(8):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return products / best / 1e9


def products_made(expectation: Expectation) -> float:
    """Products of a pass upward as they are made: for every row where slots run row by row.

    ``work`` counts those that are needed, one for each pattern.
    """
    slots, components = expectation._slots, expectation.patterns.components
    edges = np.flatnonzero(slots["kind"] == EDGE)
    roots = components["root"][np.searchsorted(components["root"], edges)]
    rows = np.where(slots["by_row"][edges], slots["n_patterns"][roots], slots["n_patterns"][edges])
    below = slots["n_states"][slots["a"][edges]]
    return float((rows * slots["n_states"][edges] * below).sum())


def many_states() -> None:
    """Print the rate of a pass over hidden Chow-Liu trees, beside BLAS."""
    folder = data_folder()
    if folder is None:
        return
    lines = []
    for name, n_states in (("plants", 16), ("plants", 64), ("baudio", 16), ("baudio", 32)):
        train = parts_of(folder / "density", name)[0]
        train = train[:, train.min(axis=0) < train.max(axis=0)]
        tree = hidden_chow_liu(information_distances(train, "discrete"))
        states = np.repeat([2, n_states], [tree.n_observed, tree.n_hidden])
        model = simulate.random_discrete_model(tree, states, 0)
        patterns = compile_patterns(tree, states, as_table(train, schema=model.schema))
        expectation = Expectation(patterns)
        theta = model.layout.reoriented(model.theta, patterns.layout)
        # Up, down, and for the counts.
        made = rate_of(lambda: expectation.run(theta), 3.0 * products_made(expectation))  # noqa: B023
        needed = made * expectation.work / products_made(expectation)
        table, columns = np.ones((n_states, n_states)), np.ones((n_states, 10_000))
        out = np.empty_like(columns)
        blas = rate_of(lambda: np.matmul(table, columns, out=out), 1e4 * n_states**2)  # noqa: B023
        lines.append(
            [name, f"{n_states}", f"{needed:.1f}", f"{made:.1f}", f"{blas:.1f}",
             f"{needed / blas:.2f}", f"{made / blas:.2f}", "0.5"]
        )  # fmt: skip
    header = ["many states: 10⁹ products/s", "states", "needed", "made", "BLAS", "needed/BLAS",
              "made/BLAS", "goal"]  # fmt: skip
    show(header, lines)


def gaussian(quick: bool) -> None:
    rng = np.random.default_rng(2)
    lines = []
    sizes = [(2_000, 500), (2_000, 2_000)] if quick else [(10_000, 1_000), (10_000, 10_000)]
    for n, m in sizes:
        tree = simulate.random_latent_tree(m, rng)
        model = GaussianTreeModel(tree, rng.uniform(0.2, 0.8, tree.n_nodes))
        values = rng.standard_normal((n, m))
        read = best_time(values.sum)
        table = as_table(values, schema=model.schema)
        ours = best_time(lambda: model.log_likelihood(table))  # noqa: B023
        whole = best_time(lambda: model.log_likelihood(values))  # noqa: B023
        values[rng.random(values.shape) < 0.01] = np.nan
        missing = as_table(values, schema=model.schema)
        scattered = best_time(lambda: model.log_likelihood(missing))  # noqa: B023
        size = f"Gaussian log-likelihood, {n:,} × {m:,}"
        keep(f"{size}: one sum of the table", read, ours)
        keep(f"{size}, checks included: one sum", read, whole)
        keep(f"{size}, 1 % missing: one sum", read, scattered)
        lines.append([
            f"{n:,} × {m:,}", f"{tree.n_nodes:,}", f"{1e3 * read:,.1f}", f"{1e3 * ours:,.1f}",
            f"{ours / read:.1f}", f"{whole / read:.1f}", f"{scattered / read:.1f}", "10",
        ])  # fmt: skip
    header = ["Gaussian log-likelihood", "nodes", "one sum ms", "ours ms", "× one sum",
              "× with checks", "× with 1 % missing", "goal"]  # fmt: skip
    show(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--states", action="store_true", help="many states alone")
    options = parser.parse_args()
    quick = options.quick
    many_states()
    if options.states:
        return
    discrete(quick)
    discrete_growth(quick)
    gaussian(quick)
    write("inference", quick)


if __name__ == "__main__":
    main()

"""EM over parts of the rows: the same sums, steps and models as over one table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import latentree as lt
from latentree.data import LocalPieces, Parts, Table, as_table, cut_table
from latentree.distances import Sample, as_sample
from latentree.em import MomentProblem, RowProblem, make_problem, start_points
from latentree.errors import DataError

N = 700


def cut(table: Table, rows: int = 64) -> Parts:
    """The rows in small parts, as if they had been read from a file."""
    parts = cut_table(table, rows=rows)
    return Parts(parts.schema, parts.n_rows, parts.tables, rows_a_part=rows)


def pieces_of(n: int, made: list[int]):
    def make(number: int) -> np.ndarray:
        made.append(number)
        return np.full(100, float(number))  # 800 bytes

    return LocalPieces(lambda first: iter(range(first, n)), n).made(make)


def example(kind: str, missing: float = 0.0, weighted: bool = False):
    tree = lt.simulate.double_star(12)
    rng = np.random.default_rng(0)
    if kind == "gaussian":
        X = lt.simulate.random_gaussian_model(tree, 1).sample(N, 2) * 3.0 + 10.0
    else:
        X = lt.simulate.random_discrete_model(tree, 2, 1).sample(N, 2).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.uniform(0.5, 2.0, N) if weighted else None
    return tree, as_table(X, kind, weights=weights)


def parameters(model) -> np.ndarray:
    if hasattr(model, "theta"):
        return model.theta
    return np.concatenate([model.correlations, model.means, model.scales])


CASES = [
    (kind, missing, weighted)
    for kind in ("gaussian", "discrete", "symmetric")
    for missing, weighted in ((0.0, False), (0.15, True))
]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 0.995])
def test_parts_of_the_rows_that_count_are_cut_as_if_there_were_no_others(share):
    table = example("gaussian")[1]
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.5, 2.0, N) * (rng.random(N) >= share)
    weights[128:256] = 0.0  # two parts of which no row counts
    weights[300] = 1.0
    known = np.flatnonzero(weights)
    ours = cut(table).weighted(weights).counted()
    theirs = cut(Table(table.values[known], table.schema, weights[known]))
    assert ours.n_rows == known.size
    for first in range(theirs.n_parts):  # from any part on
        tables = zip(ours.tables.pieces(first), theirs.tables.pieces(first), strict=True)
        for mine, other in tables:
            np.testing.assert_array_equal(mine.values, other.values)
            np.testing.assert_array_equal(mine.weights, other.weights)
    assert cut(table).counted().n_rows == N


@pytest.mark.parametrize(("kind", "missing", "weighted"), CASES)
def test_a_step_is_that_of_the_table(kind, missing, weighted):
    tree, table = example(kind, missing, weighted)
    whole_sample, sample = as_sample(table), as_sample(cut(table))
    whole, parted = make_problem(tree, whole_sample), make_problem(tree, sample)
    assert sample.parts.n_parts == 11
    rng = np.random.default_rng(0)
    model = whole.model(start_points(whole, whole_sample, None, 2, rng)[1])
    for _ in range(3):
        ours, theirs = parted.step(parted.point(model)), whole.step(whole.point(model))
        assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-12)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-12)
        model = parted.model(ours.next_point)
        np.testing.assert_allclose(
            parameters(model), parameters(whole.model(theirs.next_point)), rtol=1e-9, atol=1e-11
        )


@pytest.mark.parametrize(("kind", "missing", "weighted"), CASES)
def test_the_model_is_that_of_the_table(kind, missing, weighted):
    tree, table = example(kind, missing, weighted)
    whole, report = lt.fit_parameters(tree, table, random_state=0)
    model, parted = lt.fit_parameters(tree, cut(table), random_state=0)
    np.testing.assert_allclose(parameters(model), parameters(whole), rtol=1e-7, atol=1e-7)
    assert parted.log_likelihood == pytest.approx(report.log_likelihood, rel=1e-10)
    assert parted.bic_score == pytest.approx(report.bic_score, rel=1e-10)
    assert parted.converged
    assert parted.method == report.method


@pytest.mark.parametrize(("memory", "kept"), [("1GB", 5), ("6000", 3), ("10", 0)])
def test_what_is_not_kept_is_made_again(memory, kept, monkeypatch):
    monkeypatch.setenv("LATENTREE_MEMORY", memory)
    made: list[int] = []
    pieces = pieces_of(5, made)
    for _ in range(3):
        assert pieces.total(np.sum) == 1_000.0
    assert made == [0, 1, 2, 3, 4] + 2 * list(range(kept, 5))


def caterpillar(n_rows: int, weighted: bool) -> tuple[lt.Tree, Table]:
    """A tree cut at observed inner nodes: small components, and one with nearly all rows distinct.

    Nodes 0 to 4 are a chain with two leaves below each; a hidden node with 12 leaves and gaps hangs
    below node 4.
    """
    parent = [-1, 0, 1, 2, 3, *(v for v in range(5) for _ in range(2)), *[27] * 12, 4]
    tree = lt.Tree(np.array(parent), n_observed=27)
    X = lt.simulate.random_discrete_model(tree, 2, 3, (0.3, 0.9)).sample(n_rows, 4).astype(float)
    rng = np.random.default_rng(5)
    X[:, 15:27][rng.random((n_rows, 12)) < 0.1] = np.nan
    weights = rng.uniform(0.5, 2.0, n_rows) if weighted else None
    return tree, as_table(X, "discrete", weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_distinct_rows_of_components_take_the_place_of_rows(weighted):
    tree, table = caterpillar(1_000, weighted)
    sample = as_sample(table)
    whole, parted = make_problem(tree, sample), make_problem(tree, as_sample(cut(table, 128)))
    together, apart = parted.counts.split
    assert len(together.patterns.components) == 14
    assert len(together.patterns.weights) == 14 * 4
    assert len(apart) == 8
    model = whole.model(start_points(whole, sample, None, 2, np.random.default_rng(0))[1])
    ours, theirs = parted.step(parted.point(model)), whole.step(whole.point(model))
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(
        parted.model(ours.next_point).theta, whole.model(theirs.next_point).theta, rtol=1e-9
    )


def test_components_that_would_not_fit_are_counted_in_parts(monkeypatch):
    tree, table = caterpillar(1_000, weighted=False)
    whole, _ = lt.fit_parameters(tree, cut(table, 128), random_state=0)
    monkeypatch.setenv("LATENTREE_PART_CELLS", "5")  # four times as many cells are kept
    parts = cut(table, 128)
    together, _ = make_problem(tree, as_sample(parts)).counts.split
    assert len(together.patterns.components) == 2  # 4 rows of 2 columns each
    some, _ = lt.fit_parameters(tree, parts, random_state=0)
    np.testing.assert_allclose(some.theta, whole.theta, rtol=1e-6, atol=1e-9)


def test_impossible_rows_of_components_are_counted_by_logarithms():
    """Where plain products lose information, the distinct rows are counted as rows are."""
    tree = lt.simulate.latent_class(8)
    table = as_table(np.tile(np.eye(8, dtype=int), (100, 1)), "discrete")
    statistics = replace(as_sample(table).statistics, rows=None)
    problem = make_problem(tree, Sample(cut(table), statistics))
    together, _ = problem.counts.split
    point = np.full(problem.layout.size, 1e-200)
    direct = make_problem(tree, Sample(cut_table(table), statistics)).counts.run(point)
    found = together.run(point)
    assert np.isfinite(found.log_likelihood)
    assert found.log_likelihood == pytest.approx(direct.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(found.counts, direct.counts, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_have_the_likelihood_and_the_step_of_all_rows(weighted):
    tree, table = example("gaussian", weighted=weighted)
    sample = as_sample(table)
    moments, rows = MomentProblem(tree, sample), RowProblem(tree, sample)
    assert isinstance(make_problem(tree, sample), MomentProblem)
    assert isinstance(make_problem(tree, as_sample(example("gaussian", 0.1)[1])), RowProblem)
    rng = np.random.default_rng(3)
    for _ in range(5):
        # Means and scales of the columns are the best there are, whatever the correlations.
        model = moments.model(rng.normal(0.0, 1.0, tree.n_nodes))
        ours, theirs = moments.step(moments.point(model)), rows.step(rows.point(model))
        expected = model.total_log_likelihood(table)
        assert ours.log_likelihood == pytest.approx(expected, rel=1e-12)
        assert theirs.log_likelihood == pytest.approx(expected, rel=1e-12)
        after, same = moments.model(ours.next_point), rows.model(theirs.next_point)
        np.testing.assert_allclose(parameters(after), parameters(same), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("z", [3.0, 6.0, 7.9])
def test_moments_lose_no_digits_near_perfect_correlation(z):
    tree = lt.simulate.double_star(6)
    rng = np.random.default_rng(0)
    model = lt.GaussianTreeModel(tree, np.tanh(z * rng.choice([-1.0, 1.0], tree.n_nodes)))
    table = as_table(model.sample(200, 1))
    problem = MomentProblem(tree, as_sample(table))
    found = problem.model(np.arctanh(model.correlations))
    value = problem.step(problem.point(found)).log_likelihood
    assert value == pytest.approx(found.total_log_likelihood(table), abs=1e-3)


def test_a_forest_with_observed_inner_nodes_has_the_same_moments():
    parent = [-1, 0, 9, 9, 3, -1, 10, 10, 10, 1, 5]
    tree = lt.Tree(parent, n_observed=9)
    model = lt.simulate.random_gaussian_model(tree, 2)
    sample = as_sample(model.sample(50, 3))
    problem = MomentProblem(tree, sample)
    found = problem.model(problem.point(model))
    step = problem.step(problem.point(found))
    assert step.log_likelihood == pytest.approx(found.total_log_likelihood(sample.table), rel=1e-12)
    same = RowProblem(tree, sample)
    other = same.model(same.step(same.point(found)).next_point)
    after = problem.model(step.next_point)
    np.testing.assert_allclose(after.correlations, other.correlations, atol=1e-10)


def test_few_distinct_rows_become_a_weighted_table():
    tree = lt.simulate.latent_class(4)
    table = as_table(lt.simulate.random_discrete_model(tree, 2, 0).sample(5_000, 0))
    assert as_sample(table).rows.n_rows <= 16
    ours, theirs = (lt.fit_parameters(tree, x, random_state=0) for x in (cut(table, 1024), table))
    np.testing.assert_allclose(ours.model.theta, theirs.model.theta, atol=1e-6)


def test_columns_are_matched_by_name_in_parts_too():
    tree, table = example("gaussian", 0.1)
    names = tuple(f"v{j}" for j in range(12))
    tree = tree.renamed(names)
    turned = Table(table.values[:, ::-1], lt.Schema.gaussian(names[::-1]))
    straight = Table(table.values, lt.Schema.gaussian(names))
    ours, _ = lt.fit_parameters(tree, cut(turned), random_state=0)
    theirs, _ = lt.fit_parameters(tree, cut(straight), random_state=0)
    np.testing.assert_allclose(parameters(ours), parameters(theirs), rtol=1e-6, atol=1e-8)
    other = Table(table.values, lt.Schema.gaussian(("z", *names[1:])))
    with pytest.raises(DataError, match="'v0' is not a column"):
        lt.fit_parameters(tree, cut(other))


def test_parameters_from_distances():
    tree, table = example("gaussian", 0.1)
    tree = lt.structure.recursive_grouping(lt.information_distances(table))
    whole, report = lt.fit_parameters(tree, table, method="distances")
    model, parted = lt.fit_parameters(tree, cut(table), method="distances")
    np.testing.assert_allclose(parameters(model), parameters(whole), rtol=1e-8)
    assert parted.log_likelihood == pytest.approx(report.log_likelihood)

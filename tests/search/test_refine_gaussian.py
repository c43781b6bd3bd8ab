"""Refinement of Gaussian trees: beliefs, changes, what they are worth, and the search."""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

import latentree as lt
from latentree.data import as_table
from latentree.distances import as_sample
from latentree.errors import ModelError
from latentree.metrics import robinson_foulds, same_structure
from latentree.models import GaussianTreeModel
from latentree.search._refinement import RefineOptions
from latentree.search._refinement._gaussian_fit import compressed
from latentree.search._refinement._gaussian_moves import GaussianEngine, GaussianMoves
from latentree.search._refinement._search import Penalty, Request, Search, chance_gain
from strategies import trees

KINDS = {
    "contract", "promote", "demote", "merge", "cut", "link", "regraft", "insert",
}  # fmt: skip


def random_model(tree, seed) -> GaussianTreeModel:
    rng = np.random.default_rng(seed)
    m = tree.n_observed
    rho = rng.uniform(0.05, 0.95, tree.n_nodes) * rng.choice([-1, 1], tree.n_nodes)
    return GaussianTreeModel(tree, rho, rng.normal(size=m), rng.uniform(0.5, 2.0, m))


def random_table(model, seed, n=60, missing=0.0, weighted=False):
    """Rows of a model whose correlations differ, so that changes are worth something."""
    rng = np.random.default_rng(seed)
    X = model.sample(n, rng)
    X += 0.7 * X.std(axis=0) * (X / X.std(axis=0))[:, rng.permutation(X.shape[1])]
    gone = rng.random(X.shape) < missing
    gone[:2] = False  # no column is constant
    X[gone] = np.nan
    return as_table(X, weights=rng.uniform(0.2, 3.0, n) if weighted else None)


EVERYTHING = RefineOptions(caution=0.0, slack=math.inf, independent=math.inf, effort=100)
"""With these every change is proposed, however much it loses."""


def request(draft, penalty=None, options=EVERYTHING) -> Request:
    return Request(draft, penalty or Penalty(2.0, 1.5), options)


def is_valid(draft) -> bool:
    """Every hidden node has three neighbors, and there is no cycle."""
    tree = draft.tree(tuple(f"x{v}" for v in range(draft.n_observed)))
    degree = np.bincount(tree.edges.ravel(), minlength=tree.n_nodes)
    return bool((degree[tree.n_observed :] >= 3).all() and len(draft.order()) == len(draft.parent))


models = st.builds(random_model, trees(max_inner=4), st.integers(0, 99))
seeds = st.integers(0, 99)


# Likelihood and fits ----------------------------------------------------------------------------


@given(models, seeds, st.booleans())
@settings(max_examples=60)
def test_the_likelihood_on_compressed_data_is_that_of_the_rows(model, seed, weighted):
    table = random_table(model, seed, weighted=weighted)
    engine = GaussianEngine(as_sample(table))
    draft, log_likelihood = engine.settle(engine.draft(model), 0)
    same = engine.model(draft)
    assert log_likelihood == pytest.approx(same.total_log_likelihood(table))


@given(models, seeds, st.booleans())
@settings(max_examples=20)
def test_settling_ends_where_em_on_the_rows_ends(model, seed, weighted):
    table = random_table(model, seed, n=200, weighted=weighted)
    engine = GaussianEngine(as_sample(table))
    draft, log_likelihood = engine.settle(engine.draft(model), 3_000)
    fresh = engine.model(draft).total_log_likelihood(table)
    assert log_likelihood == pytest.approx(fresh)
    again = lt.fit_parameters(model.tree, table, start=engine.model(draft)).report
    assert again.log_likelihood == pytest.approx(log_likelihood, abs=0.05)


@given(models, seeds)
@settings(max_examples=30)
def test_more_steps_never_lower_the_likelihood(model, seed):
    table = random_table(model, seed)
    engine = GaussianEngine(as_sample(table))
    values = [engine.settle(engine.draft(model), steps)[1] for steps in (0, 1, 2, 5, 30)]
    assert all(later >= sooner - 1e-7 for sooner, later in pairwise(values))


def test_products_of_compressed_rows_are_covariances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X[:, 4] = X[:, 0]  # a duplicate makes it singular
    rows = compressed(X.T @ X)
    assert rows.shape[1] == 4
    np.testing.assert_allclose(rows @ rows.T, X.T @ X, atol=1e-10)


# Changes ----------------------------------------------------------------------------------------


@given(models, seeds, st.sampled_from([None, 1, 3]))
@settings(max_examples=40)
def test_every_gain_is_exact_and_every_tree_valid(model, seed, n_hidden):
    table = random_table(model, seed)
    engine = GaussianEngine(as_sample(table))
    draft, log_likelihood = engine.settle(engine.draft(model), 1)
    penalty = Penalty(2.0, 1.5, n_hidden)
    score = log_likelihood - penalty(draft)
    few = RefineOptions(caution=0.0, slack=math.inf, independent=math.inf)
    for proposal in engine.structures(request(draft, penalty, few)):
        new = proposal.apply(draft)
        assert is_valid(new), proposal.key
        fresh = engine.model(new).total_log_likelihood(table) - penalty(new)
        assert proposal.gain == pytest.approx(fresh - score, abs=1e-6, rel=1e-9), proposal.key


def test_all_kinds_of_changes_are_proposed():
    tree = lt.simulate.random_latent_tree(12, 5)
    pair = [lt.simulate.complete_tree(3, 2), tree]
    found: Counter[str] = Counter()
    for seed, one in enumerate(pair):
        model = random_model(one, seed)
        engine = GaussianEngine(as_sample(random_table(model, seed)))
        draft = engine.draft(model)
        found.update(p.key[0] for p in engine.structures(request(draft)))
        draft.cut(*draft.edges[0])  # two components
        draft, _ = engine.settle(draft, 36)
        found.update(p.key[0] for p in engine.structures(request(draft)))
    assert set(found) == KINDS


def best_link(engine, draft, x, y) -> float:
    """Log-likelihood with an edge between two components, by trying correlations."""

    def lost(rho):
        new = draft.copy()
        new.hang(x, y, float(rho))
        return -engine.settle(new, 0)[1]

    return max(-minimize_scalar(lost, bounds=b, method="bounded").fun for b in ((-1, 0), (0, 1)))


def test_the_shortlist_predicts_gains_on_data_as_the_model_has_it():
    """If beliefs vary as they should, a gain at a node is that of the best edge to it.

    Inside an edge it is a bound of what three fitted edges gain.
    """
    model = random_model(lt.simulate.random_latent_tree(9, 3, inner_share=0.2), 1)
    engine = GaussianEngine(as_sample(exact_table(model)))
    draft = engine.draft(model)
    moves = GaussianMoves(request(draft, Penalty(0.0)), engine.data, engine.n_samples)
    at_node, _ = moves.predicted()
    before = engine.settle(draft, 0)[1]
    tree = moves.tree
    tried = 0
    for s, w in zip(*np.nonzero(np.isfinite(at_node)), strict=True):
        x, p, y = (tree.nodes[v] for v in (tree.ends[s], tree.gates[s], w))
        cut = draft.copy()
        cut.cut(p, x)
        exact = best_link(engine, cut, x, y) - before
        assert at_node[s, w] == pytest.approx(exact, abs=0.02), (x, p, y)
        tried += 1
    assert tried > 50


def test_the_shortlist_bounds_gains_inside_edges():
    model = random_model(lt.simulate.random_latent_tree(9, 3), 1)
    engine = GaussianEngine(as_sample(exact_table(model)))
    moves = GaussianMoves(request(engine.draft(model), Penalty(0.0)), engine.data, engine.n_samples)
    bounds = moves.predicted()[1]
    for proposal in chain.from_iterable(moves.regrafts()):
        if proposal.key[0] == "insert":
            _, x, p, y = proposal.key
            place = {node: at for at, node in enumerate(moves.tree.nodes)}
            s = moves.tree.side_of(place[x], place[p])
            near = moves.tree.path(place[p], place[y])[-2]
            edge = place[y] if moves.tree.parent[place[y]] == near else near
            assert proposal.gain <= bounds[s, edge] + 0.02


def exact_table(model, n=500):
    """A table whose covariance is the model's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, model.tree.n_observed))
    X -= X.mean(axis=0)
    X = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / n)).T
    return as_table(X @ np.linalg.cholesky(model.covariance()).T)


# Missing cells ----------------------------------------------------------------------------------


@given(models, seeds)
@settings(max_examples=20)
def test_expected_covariances_are_those_of_the_conditional_normal(model, seed):
    table = random_table(model, seed, n=12, missing=0.4, weighted=True)
    if np.isnan(table.values).all(axis=0).any() or not table.has_missing:
        return
    engine = GaussianEngine(as_sample(table))
    K, expected = model.correlation(), 0.0
    for row, weight in zip(table.values, table.weight_array(), strict=True):
        x = (row - model.means) / model.scales
        absent = np.isnan(x)
        seen = ~absent
        gain = K[np.ix_(absent, seen)] @ np.linalg.inv(K[np.ix_(seen, seen)])
        x[absent] = gain @ x[seen]
        spread = np.zeros_like(K)
        spread[np.ix_(absent, absent)] = K[np.ix_(absent, absent)] - gain @ K[np.ix_(seen, absent)]
        expected = expected + weight * (np.outer(x, x) + spread)
    np.testing.assert_allclose(
        engine.expected_covariance(model), expected / engine.n_samples, atol=1e-8
    )


def test_gains_with_missing_cells_are_lower_bounds():
    model = random_model(lt.simulate.random_latent_tree(8, 2), 0)
    table = random_table(model, 1, n=150, missing=0.15)
    engine = GaussianEngine(as_sample(table))
    draft, log_likelihood = engine.settle(engine.draft(model), 40)
    assert log_likelihood == pytest.approx(engine.model(draft).total_log_likelihood(table))
    proposals = engine.structures(request(draft, Penalty(0.0)))
    assert len(proposals) > 20
    for proposal in proposals:
        new = proposal.apply(draft)
        fresh = engine.model(new).total_log_likelihood(table) - log_likelihood
        assert proposal.gain <= fresh + 1e-6


def test_a_table_with_missing_cells_refines():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    X = truth.sample(1_500, 1)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    start = lt.structure.chow_liu(lt.information_distances(X))
    model, report = lt.search.refine(start, X)
    assert robinson_foulds(model.tree, truth.tree) == 0
    assert report.log_likelihood == pytest.approx(model.total_log_likelihood(X))


# The search -------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_score_only_rises_and_is_that_of_the_model(share):
    tree = lt.simulate.complete_tree(3, 3)
    X = lt.simulate.random_gaussian_model(tree, 0, (0.4, 0.8)).sample(400, 1)
    engine, seen = GaussianEngine(as_sample(as_table(X))), []
    penalty = Penalty(0.5 * math.log(400)).scaled(share)
    options = RefineOptions(caution=0.0, least_gain=0.1)
    search = Search(engine, options, watch=lambda count, score: seen.append(score))
    start = lt.fit_parameters(lt.structure.chow_liu(lt.information_distances(X)), X).model
    first = search.score(engine.draft(start), penalty)
    last = search.climb(engine.draft(start), penalty)
    assert len(seen) > 2
    assert all(later > sooner for sooner, later in pairwise([first.score, *seen]))
    fresh = engine.model(last.draft).total_log_likelihood(X) - penalty(last.draft)
    assert last.score == pytest.approx(fresh)


def test_one_and_two_threads_find_the_same(monkeypatch):
    X = lt.simulate.random_gaussian_model(lt.simulate.complete_tree(3, 3), 0).sample(1_000, 1)
    start = lt.structure.chow_liu(lt.information_distances(X))
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", threads)
        found.append(lt.search.refine(start, X, random_state=0))
    (first, one), (second, two) = found
    assert one.moves == two.moves
    np.testing.assert_array_equal(first.tree.parent, second.tree.parent)
    np.testing.assert_array_equal(first.correlations, second.correlations)


@pytest.mark.parametrize("seed", range(3))
def test_the_true_model_stays_with_much_data(seed):
    tree = lt.simulate.random_latent_tree(15, seed, inner_share=0.2)
    truth = lt.simulate.random_gaussian_model(tree, seed, (0.5, 0.8), negative_share=0.3)
    model, report = lt.search.refine(truth, truth.sample(50_000, seed + 1))
    assert report.moves == ()
    assert same_structure(model.tree, truth.tree)


@pytest.mark.parametrize("n_places", [1, 2, 7, 100, 10_000])
def test_the_level_of_chance_is_exceeded_once_in_so_many_places(n_places):
    level = chance_gain(n_places)
    assert n_places * chi2.sf(2.0 * level, 1) == pytest.approx(1.0)


def test_the_more_caution_the_fewer_moves_and_what_a_move_saves_does_not_count():
    model = random_model(lt.simulate.random_latent_tree(12, 0, inner_share=0.2), 0)
    engine = GaussianEngine(as_sample(random_table(model, 1, n=300)))
    draft, _ = engine.settle(engine.draft(model), 150)
    found = [
        {p.key: p for p in engine.structures(request(draft, None, RefineOptions(caution=caution)))}
        for caution in (0.0, 0.5, 1.0, 4.0)
    ]
    moves = ("regraft", "insert", "promote")
    for less, more in pairwise(found):
        assert more.keys() <= less.keys()
        assert less.keys() - more.keys() <= {k for k in less if k[0] in moves}
    assert len(found[0]) > len(found[1]) > len(found[3])
    for key, proposal in found[1].items():
        if key[0] in moves:
            assert min(proposal.gain, proposal.rise) > 0


def test_caution_keeps_more_of_the_start_and_costs_score():
    truth = lt.simulate.random_gaussian_model(lt.simulate.complete_tree(5, 3), 3, (0.2, 0.8))
    X = truth.sample(500, 1)
    start = lt.structure.chow_liu(lt.information_distances(X))
    bold, careful, stuck = (
        lt.search.refine(start, X, caution=caution).report for caution in (0.0, 2.0, 1e9)
    )
    assert bold.score > careful.score > stuck.score
    assert len(bold.moves) > len(careful.moves)
    assert not {"regraft", "insert"} & stuck.gains().keys()
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(ModelError, match="caution"):
            lt.search.refine(start, X, caution=wrong)


@pytest.mark.parametrize("seed", range(4))
def test_weak_hidden_nodes_of_the_start_stay_unless_the_score_alone_decides(seed):
    truth = lt.simulate.random_gaussian_model(lt.simulate.hidden_markov(30), seed, (0.2, 0.8))
    X = truth.sample(10_000, seed)
    start = lt.structure.cl_grouping(lt.information_distances(X), subroutine="nj")
    errors = [
        lt.metrics.robinson_foulds(lt.search.refine(start, X, **options).model.tree, truth.tree)
        for options in ({}, {"caution": 0})
    ]
    assert errors[0] <= lt.metrics.robinson_foulds(start, truth.tree) < errors[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_close_to_that_of_the_true_structure_or_above(seed):
    """Where the score alone decides; caution gives up some of it for a truer tree."""
    tree = lt.simulate.complete_tree(5, 3)
    truth = lt.simulate.random_gaussian_model(tree, seed, (0.2, 0.8))
    table = as_table(truth.sample(2_000, seed + 1_000))
    _, report = lt.search.refined(table, caution=0.0, random_state=0)
    exact = lt.fit_parameters(tree, table, start=truth).report.log_likelihood
    assert report.score > exact - 0.5 * np.log(2_000) * truth.n_parameters - 10


def test_a_double_star_gets_no_more_wrong_than_its_start():
    """BIC alone prefers slightly wrong trees here: of 780 pairs of leaves one looks alike."""
    errors = []
    for seed in range(3):
        truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(80), seed, (0.2, 0.8))
        X = truth.sample(1_000, seed + 1)
        start = lt.structure.cl_grouping(lt.information_distances(X), subroutine="nj")
        trees = [start, *(lt.search.refine(start, X, caution=c).model.tree for c in (1.0, 0.0))]
        errors.append([robinson_foulds(tree, truth.tree) for tree in trees])
    before, careful, bold = np.transpose(errors)
    assert (careful <= before).all()
    assert bold.sum() > before.sum()


def extended(model, table) -> float:
    """The extended BIC: log m for every inner node less than BIC."""
    inner = (np.bincount(model.tree.edges.ravel()) > 1).sum()
    return lt.metrics.bic_score(model, table) - inner * math.log(table.n_columns)


@pytest.mark.parametrize("seed", range(2))
def test_the_two_best_starts_are_refined_and_the_best_result_is_kept(seed):
    truth = lt.simulate.random_gaussian_model(lt.simulate.complete_tree(5, 3), seed, (0.2, 0.8))
    table = as_table(truth.sample(2_000, seed + 1_000))
    distances = lt.information_distances(table)
    trees = {name: lt.structure.learn_structure(distances, name) for name in ("nj", "clnj", "clrg")}
    value = {
        name: extended(lt.fit_parameters(tree, table).model, table) for name, tree in trees.items()
    }
    names = sorted(trees, key=lambda name: -value[name])[:2]
    ends = [extended(lt.search.refined(table, start=name).model, table) for name in names]
    assert abs(ends[0] - ends[1]) > 0.1
    for fitted in (lt.search.refined(table), lt.search.refined(table, start=names)):
        assert extended(fitted.model, table) == pytest.approx(max(ends), abs=0.01)


def test_as_many_hidden_nodes_as_asked_for():
    X = lt.simulate.random_gaussian_model(lt.simulate.double_star(10), 0).sample(500, 1)
    start = lt.structure.chow_liu(lt.information_distances(X))
    for n_hidden in (0, 1, 3):
        assert lt.search.refine(start, X, n_hidden=n_hidden).model.tree.n_hidden == n_hidden


def independent(n, m):
    return np.random.default_rng(0).normal(size=(n, m))


@pytest.mark.parametrize(
    ("X", "tree"),
    [
        (independent(50, 1), lt.Tree([-1])),
        (independent(50, 2), lt.Tree([-1, 0])),
        (independent(50, 2), lt.Tree([-1, -1])),
        (independent(50, 12), lt.simulate.latent_class(12)),
        (independent(50, 12), lt.Tree(list(range(-1, 11)))),
        (independent(50, 12), lt.Tree([-1] * 12)),
        (np.repeat(independent(50, 2), 3, axis=1), lt.simulate.latent_class(6)),
    ],
    ids=["one", "pair", "apart", "star", "chain", "forest", "duplicates"],
)
@pytest.mark.filterwarnings("ignore:.*duplicate")
@pytest.mark.filterwarnings("ignore:.*same")
def test_degenerate_tables_end(X, tree):
    model, report = lt.search.refine(tree, X)
    assert np.isfinite(report.score)
    assert model.tree.n_observed == X.shape[1]


def test_two_components_are_joined_where_the_data_says_so():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.7, 0.8))
    X = truth.sample(2_000, 1)
    apart = lt.Tree([8, 8, 8, 8, 9, 9, 9, 9, -1, -1], n_observed=8)
    assert robinson_foulds(lt.search.refine(apart, X).model.tree, truth.tree) == 0

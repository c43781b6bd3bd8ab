"""Refinement of Gaussian trees: beliefs, changes, what they are worth, and the search."""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import latentree as lt
from latentree.data import as_table
from latentree.errors import ModelError
from latentree.metrics import robinson_foulds, same_structure
from latentree.models import GaussianTreeModel
from latentree.search._refinement import _gaussian_moves as gaussian_moves
from latentree.search._refinement import _refining as refining
from latentree.search._refinement._gaussian import GaussianEngine
from latentree.search._refinement._gaussian_moves import Moves
from latentree.search._refinement._proposal import Penalty, Request
from latentree.search._refinement._rounds import EVIDENCE, Rounds, Standing
from latentree.search._refinement._space import compressed
from strategies import trees

KINDS = {
    "contract", "promote", "demote", "merge", "cut", "link", "relink", "regraft", "insert",
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
    X[rng.random(X.shape) < missing] = np.nan
    return as_table(X, weights=rng.uniform(0.2, 3.0, n) if weighted else None)


def everything(draft, penalty=None, focus=None) -> Request:
    return Request(draft, penalty or Penalty(2.0, 1.5), lambda key: False, focus)


def is_valid(draft) -> bool:
    """Every hidden node has three neighbours, and there is no cycle."""
    tree = draft.tree(tuple(f"x{v}" for v in range(draft.n_observed)))
    degree = np.bincount(tree.edges.ravel(), minlength=tree.n_nodes)
    return bool((degree[tree.n_observed :] >= 3).all() and len(draft.order()) == len(draft.parent))


@pytest.fixture
def all_moves(monkeypatch):
    """Nothing is hopeless, and every edge may be cut."""
    monkeypatch.setattr(gaussian_moves, "HOPELESS", -math.inf)
    monkeypatch.setattr(gaussian_moves, "INDEPENDENT", math.inf)
    monkeypatch.setattr(gaussian_moves, "N_BEST", 50)


models = st.builds(random_model, trees(max_inner=4), st.integers(0, 99))
seeds = st.integers(0, 99)


# Likelihood and fits ----------------------------------------------------------------------------


@given(models, seeds, st.booleans())
@settings(max_examples=60)
def test_the_likelihood_on_compressed_data_is_that_of_the_rows(model, seed, weighted):
    table = random_table(model, seed, weighted=weighted)
    engine = GaussianEngine(table)
    draft, log_likelihood = engine.settle(engine.draft(model), 0)
    same = engine.model(draft)
    assert log_likelihood == pytest.approx(same.total_log_likelihood(table))


@given(models, seeds, st.booleans())
@settings(max_examples=20)
def test_settling_ends_where_em_on_the_rows_ends(model, seed, weighted):
    table = random_table(model, seed, n=200, weighted=weighted)
    engine = GaussianEngine(table)
    draft, log_likelihood = engine.settle(engine.draft(model), 3_000)
    fresh = engine.model(draft).total_log_likelihood(table)
    assert log_likelihood == pytest.approx(fresh)
    again = lt.fit_parameters(model.tree, table, start=engine.model(draft)).report
    assert again.log_likelihood == pytest.approx(log_likelihood, abs=0.05)


@given(models, seeds)
@settings(max_examples=30)
def test_more_steps_never_lower_the_likelihood(model, seed):
    table = random_table(model, seed)
    engine = GaussianEngine(table)
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
    engine = GaussianEngine(table)
    draft, log_likelihood = engine.settle(engine.draft(model), 1)
    penalty = Penalty(2.0, 1.5, n_hidden)
    score = log_likelihood - penalty(draft)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian_moves, "HOPELESS", -math.inf)
        patch.setattr(gaussian_moves, "INDEPENDENT", math.inf)
        proposals = engine.structures(everything(draft, penalty))
    for proposal in proposals:
        new = proposal.apply(draft)
        assert is_valid(new), proposal.key
        fresh = engine.model(new).total_log_likelihood(table) - penalty(new)
        assert proposal.gain == pytest.approx(fresh - score, abs=1e-6, rel=1e-9), proposal.key


def test_all_kinds_of_changes_are_proposed(all_moves):
    tree = lt.simulate.random_latent_tree(12, 5)
    pair = [lt.simulate.complete_tree(3, 2), tree]
    found: Counter[str] = Counter()
    for seed, one in enumerate(pair):
        model = random_model(one, seed)
        engine = GaussianEngine(random_table(model, seed))
        draft = engine.draft(model)
        found.update(p.key[0] for p in engine.structures(everything(draft)))
        draft.cut(*draft.edges[0])  # two components
        draft = Rounds(engine, math.inf).standing(draft, Penalty(0.0)).draft
        found.update(p.key[0] for p in engine.structures(everything(draft)))
    assert set(found) == KINDS


def best_link(engine, draft, x, y) -> float:
    """Log-likelihood with an edge between two components, by trying correlations."""

    def lost(rho):
        new = draft.copy()
        new.hang(x, y, float(rho))
        return -engine.settle(new, 0)[1]

    return max(-minimize_scalar(lost, bounds=b, method="bounded").fun for b in ((-1, 0), (0, 1)))


def test_the_shortlist_predicts_gains_on_data_as_the_model_has_it(all_moves):
    """If beliefs vary as they should, a gain at a node is that of the best edge to it.

    Inside an edge it is a bound of what three fitted edges gain.
    """
    model = random_model(lt.simulate.random_latent_tree(9, 3, inner_share=0.2), 1)
    engine = GaussianEngine(exact_table(model))
    draft = engine.draft(model)
    moves = Moves(everything(draft, Penalty(0.0)), engine._data, engine.n_samples)
    at_node, _ = moves.predicted()
    before = engine.settle(draft, 0)[1]
    map = moves.map
    tried = 0
    for s, w in zip(*np.nonzero(np.isfinite(at_node)), strict=True):
        x, p, y = (map.nodes[v] for v in (map.ends[s], map.gates[s], w))
        cut = draft.copy()
        cut.cut(p, x)
        exact = best_link(engine, cut, x, y) - before
        assert at_node[s, w] == pytest.approx(exact, abs=0.02), (x, p, y)
        tried += 1
    assert tried > 50


def test_the_shortlist_bounds_gains_inside_edges(all_moves):
    model = random_model(lt.simulate.random_latent_tree(9, 3), 1)
    engine = GaussianEngine(exact_table(model))
    moves = Moves(everything(engine.draft(model), Penalty(0.0)), engine._data, engine.n_samples)
    bounds = moves.predicted()[1]
    for proposal in moves.regrafts():
        if proposal.key[0] == "insert":
            _, x, p, y = proposal.key
            place = {node: at for at, node in enumerate(moves.map.nodes)}
            s = moves.map.side_of(place[x], place[p])
            assert proposal.gain <= bounds[s, place[y]] + 0.02


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
    engine = GaussianEngine(table)
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
    np.testing.assert_allclose(engine._expected(model), expected / engine.n_samples, atol=1e-8)


def test_gains_with_missing_cells_are_lower_bounds(all_moves):
    model = random_model(lt.simulate.random_latent_tree(8, 2), 0)
    table = random_table(model, 1, n=150, missing=0.15)
    engine = GaussianEngine(table)
    draft, log_likelihood = engine.settle(engine.draft(model), 40)
    assert log_likelihood == pytest.approx(engine.model(draft).total_log_likelihood(table))
    proposals = engine.structures(everything(draft, Penalty(0.0)))
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
    engine, seen = GaussianEngine(as_table(X)), []
    penalty = Penalty(0.5 * math.log(400)).scaled(share)
    rounds = Rounds(engine, math.inf, lambda count, score: seen.append(score))
    start = lt.fit_parameters(lt.structure.chow_liu(lt.information_distances(X)), X).model
    first = rounds.standing(engine.draft(start), penalty)
    last = rounds.run(engine.draft(start), penalty)
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


def test_no_change_gains_less_than_asked_for():
    truth = lt.simulate.random_gaussian_model(lt.simulate.complete_tree(3, 3), 3, (0.2, 0.8))
    X = truth.sample(500, 1)
    start = lt.structure.chow_liu(lt.information_distances(X))
    gains = {
        least: lt.search.refine(start, X, min_gain=least, evidence=0).report
        for least in (0, 5, 1e9)
    }
    assert min(move.gain for move in gains[0].moves) < 5 <= min(m.gain for m in gains[5].moves)
    assert not gains[1e9].moves
    assert gains[0].score > gains[5].score > gains[1e9].score
    with pytest.raises(ModelError, match="min_gain"):
        lt.search.refine(start, X, min_gain=-1)


def test_some_kinds_of_changes_are_proposed_only_if_the_likelihood_rises_enough():
    model = random_model(lt.simulate.random_latent_tree(12, 0, inner_share=0.2), 0)
    engine = GaussianEngine(random_table(model, 1, n=300))
    draft, _ = engine.settle(engine.draft(model), 50)
    least = {"regraft": 3.0, "promote": -1.0, "insert": np.inf}
    free = engine.structures(everything(draft))
    bound = engine.structures(everything(draft)._replace(least_rises=least))
    expected = [p for p in free if p.rise >= least.get(p.key[0], -np.inf)]
    assert [p.key for p in bound] == [p.key for p in expected]
    assert {"regraft", "promote"} <= {p.key[0] for p in bound}
    assert len(bound) < len(free)


@pytest.mark.parametrize("seed", range(4))
def test_weak_hidden_nodes_of_the_start_stay_unless_the_score_alone_decides(seed):
    truth = lt.simulate.random_gaussian_model(lt.simulate.hidden_markov(30), seed, (0.2, 0.8))
    X = truth.sample(10_000, seed)
    start = lt.structure.cl_grouping(lt.information_distances(X), subroutine="nj")
    errors = [
        lt.metrics.robinson_foulds(lt.search.refine(start, X, **options).model.tree, truth.tree)
        for options in ({}, {"evidence": 0})
    ]
    assert errors[0] <= lt.metrics.robinson_foulds(start, truth.tree) < errors[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_close_to_that_of_the_true_structure_or_above(seed):
    """From 1 the careful search alone ends 14 below: small changes must be made together."""
    tree = lt.simulate.complete_tree(5, 3)
    truth = lt.simulate.random_gaussian_model(tree, seed, (0.2, 0.8))
    table = as_table(truth.sample(2_000, seed + 1_000))
    _, report = lt.methods.learn_model(table, "refined", random_state=0)
    exact = lt.fit_parameters(tree, table, start=truth).report.log_likelihood
    assert report.score > exact - 0.5 * np.log(2_000) * tree.n_edges - 10


def test_evidence_without_end_moves_nothing():
    truth = lt.simulate.random_gaussian_model(lt.simulate.complete_tree(3, 3), 3, (0.2, 0.8))
    X = truth.sample(500, 1)
    start = lt.structure.neighbor_joining(lt.information_distances(X))
    kinds = {
        evidence: set(lt.search.refine(start, X, evidence=evidence, min_gain=0).report.gains())
        for evidence in (0, np.inf)
    }
    assert kinds[0] & EVIDENCE.keys()
    assert not kinds[np.inf] & EVIDENCE.keys()
    with pytest.raises(ModelError, match="evidence"):
        lt.search.refine(start, X, evidence=-1)


def test_a_rival_wins_where_it_is_better_beyond_doubt():
    truth = lt.simulate.random_gaussian_model(lt.simulate.complete_tree(3, 3), 1, (0.6, 0.9))
    X = truth.sample(3_000, 2)
    poor = lt.simulate.latent_class(X.shape[1])
    low, high = (lt.fit_parameters(tree, X).report.bic_score for tree in (poor, truth.tree))
    options = {"min_gain": 0.8 * (high - low)}  # no change by itself gains as much
    stuck, _ = lt.search.refine(poor, X, **options)
    assert same_structure(stuck.tree, poor)
    model, report = lt.search.refine(poor, X, rivals=[stuck, truth.tree], **options)
    assert same_structure(model.tree, truth.tree)
    assert report.score == pytest.approx(high, abs=0.1)
    kept, _ = lt.search.refine(poor, X, rivals=[truth.tree], evidence=np.inf, **options)
    assert same_structure(kept.tree, poor)
    again, _ = lt.search.refine(truth, X, rivals=[poor])
    assert same_structure(again.tree, truth.tree)


@pytest.mark.parametrize(
    ("gain", "rise", "splits", "evidence", "wins"),
    [
        (3.0, 0.0, 2, 1.0, True),
        (3.0, -0.4, 2, 1.0, True),
        (3.0, -0.6, 2, 1.0, False),  # the likelihood falls
        (1.5, 1.5, 1, 1.0, False),  # less than min_gain
        (30.0, 30.0, 40, 1.0, False),  # less than a nat a split
        (30.0, 30.0, 40, 0.5, True),
        (30.0, 30.0, 0, np.inf, True),
        (30.0, 30.0, 1, np.inf, False),
        (0.1, -5.0, 40, 0.0, True),  # the score alone decides
    ],
)
def test_when_a_rival_is_preferred(monkeypatch, gain, rise, splits, evidence, wins):
    searches, other, found = _compared(monkeypatch, gain, rise, splits, evidence)
    assert searches._is_better(found, other, searches._worth_of_splits(found, other)) == wins


@pytest.mark.parametrize(
    ("gain", "rise", "splits", "is_alone", "wins"),
    [
        (30.0, 8.0, 40, False, True),
        (30.0, 7.0, 40, False, False),  # less than a fifth of a nat a split
        (1.5, 8.0, 40, False, False),  # less than min_gain
        (30.0, 8.0, 40, True, False),  # less than a nat a split
        (50.0, 8.0, 40, True, True),
        (6.8, 6.8, 5, True, False),  # less than log n
        (7.0, 7.0, 5, True, True),
    ],
)
def test_when_the_end_of_a_search_by_the_score_is_taken(
    monkeypatch, gain, rise, splits, is_alone, wins
):
    searches, other, found = _compared(monkeypatch, gain, rise, splits)
    apart = refining._Found(Standing(None, 0.0, -math.inf), ())
    ends = iter([found, apart if is_alone else found])
    monkeypatch.setattr(refining._Searches, "_search", lambda *_, **__: next(ends))
    monkeypatch.setattr(
        Standing, "n_changed", lambda a, b: 0 if a is b else 99 if apart.best in (a, b) else splits
    )
    monkeypatch.setattr(Standing, "__eq__", lambda a, b: a is b)
    apart.best.draft = other.best.draft
    assert searches._followed(other, [other, other])[0] is (found if wins else other)


def _compared(monkeypatch, gain, rise, splits, evidence=1.0):
    engine = SimpleNamespace(n_samples=1_000.0)
    searches = refining._Searches(engine, None, math.inf, None, 2.0, evidence)
    draft = SimpleNamespace(n_observed=20, n_inner=5)
    other, found = (
        refining._Found(Standing(draft, log_likelihood, score), ())
        for log_likelihood, score in ((0.0, 0.0), (rise, gain))
    )
    monkeypatch.setattr(Standing, "n_changed", lambda *_: splits)
    return searches, other, found


def test_where_starts_meet_small_changes_are_made_together():
    """The careful searches end 14 and more below the truth, and stay there without each other."""
    tree = lt.simulate.complete_tree(5, 3)
    truth = lt.simulate.random_gaussian_model(tree, 1, (0.2, 0.8))
    table = as_table(truth.sample(2_000, 1_001))
    distances = lt.information_distances(table)
    starts = [lt.structure.learn_structure(distances, name) for name in ("nj", "clnj", "clrg")]
    alone = [lt.search.refine(start, table).report.score for start in starts]
    both = lt.search.refine(starts[0], table, rivals=starts[1:]).report
    assert both.score > max(alone) + 2
    assert len(both.moves) > 0


def test_rivals_have_the_variables_of_the_start():
    X = lt.simulate.random_gaussian_model(lt.simulate.latent_class(4), 0).sample(100, 0)
    start = lt.simulate.latent_class(4)
    with pytest.raises(ModelError, match="in the same order"):
        lt.search.refine(start, X, rivals=[start.renamed(("b", "a", "c", "d"))])


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
def test_degenerate_tables_end_quickly(X, tree):
    clock = time.monotonic()
    model, report = lt.search.refine(tree, X)
    assert np.isfinite(report.score)
    assert model.tree.n_observed == X.shape[1]
    assert time.monotonic() - clock < 20  # compiling included


def test_two_components_are_joined_where_the_data_says_so():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.7, 0.8))
    X = truth.sample(2_000, 1)
    apart = lt.Tree([8, 8, 8, 8, 9, 9, 9, 9, -1, -1], n_observed=8)
    assert robinson_foulds(lt.search.refine(apart, X).model.tree, truth.tree) == 0

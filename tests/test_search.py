"""Learners that score models."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import latentree as lt
from latentree import methods, search, simulate
from latentree.distances import as_sample
from latentree.errors import DataError, ModelError
from latentree.search._regularized import _BlockSearch
from latentree.structure._blocks import Block
from latentree.structure._spanning import spanning_edges


def draw(family, tree, n, rng, strength):
    """Draw rows of a random model on a tree: real numbers, or 0 and 1."""
    if family == "gaussian":
        return simulate.random_gaussian_model(tree, rng, strength=strength).sample(n, rng)
    return simulate.random_discrete_model(tree, 2, rng, strength=strength).sample(n, rng)


def test_latent_class_finds_the_number_of_classes():
    rng = np.random.default_rng(0)
    tree = simulate.latent_class(10)
    truth = simulate.random_discrete_model(tree, [2] * 10 + [3], rng, strength=(0.6, 0.9))
    X = truth.sample(3_000, rng)
    model, report = search.latent_class(X, random_state=0)
    assert model.n_states[-1] == 3
    assert report.bic_score == pytest.approx(lt.metrics.bic_score(model, X))
    assert report.log_likelihood >= lt.metrics.log_likelihood(truth, X) - 1.0
    fixed, _ = search.latent_class(X, n_states=2, random_state=0)
    assert fixed.n_states[-1] == 2


def test_latent_class_of_real_data_has_one_factor():
    rng = np.random.default_rng(1)
    X = simulate.random_gaussian_model(simulate.latent_class(6), rng).sample(500, rng)
    model, report = search.latent_class(X)
    assert model.tree.n_hidden == 1
    assert report.converged
    with pytest.raises(DataError, match="needs three neighbors"):
        search.latent_class(X[:, :2])


@pytest.mark.parametrize("family", ["gaussian", "discrete"])
def test_binary_tree_joins_what_belongs_together(family):
    rng = np.random.default_rng(2)
    tree = simulate.double_star(8)
    X = draw(family, tree, 2_000, rng, (0.8, 0.9))
    model, report = search.binary_tree(X, random_state=0)
    found = model.tree
    assert found.n_hidden == 6
    assert set(found.degrees[found.hidden]) == {3}
    halves = frozenset([frozenset(range(4)), frozenset(range(4, 8))])
    assert halves in found.bipartitions()
    assert report.log_likelihood == pytest.approx(lt.metrics.log_likelihood(model, X))


def test_binary_tree_leaves_independent_variables_alone():
    rng = np.random.default_rng(3)
    X = (rng.random((2_000, 5)) < 0.5).astype(int)
    X[:, 1] = np.where(rng.random(2_000) < 0.9, X[:, 0], X[:, 1])
    model, _ = search.binary_tree(X)
    assert len(model.tree.roots) == 4
    assert model.tree.n_hidden == 0
    assert model.tree.n_edges == 1


def test_binary_tree_takes_missing_cells_and_weights():
    rng = np.random.default_rng(4)
    X = simulate.random_discrete_model(simulate.double_star(6), 3, rng).sample(500, rng)
    values = X.astype(float)
    values[rng.random(X.shape) < 0.1] = np.nan
    model, _ = search.binary_tree(values, "discrete", weights=rng.uniform(0.5, 2, 500))
    assert model.tree.n_observed == 6


# Regularized CLGrouping -------------------------------------------------------------------------


@pytest.mark.parametrize("subroutine", ["rg", "nj"])
@pytest.mark.parametrize("family", ["gaussian", "discrete"])
def test_regularized_grouping_finds_a_double_star(subroutine, family):
    rng = np.random.default_rng(5)
    tree = simulate.double_star(10)
    X = draw(family, tree, 5_000, rng, (0.6, 0.8))
    model, report = search.regularized_cl_grouping(X, subroutine)
    halves = frozenset([frozenset(range(5)), frozenset(range(5, 10))])
    assert halves in model.tree.bipartitions()
    assert set(model.tree.degrees[:10]) == {1}
    without, plain = methods.learn_model(X, "chow_liu")
    assert without.tree.n_hidden == 0
    assert report.bic_score > plain.bic_score


@pytest.mark.parametrize("most", [0, 1, 3])
def test_the_number_of_hidden_nodes_is_respected(most):
    rng = np.random.default_rng(6)
    tree = simulate.hidden_markov(12)
    X = simulate.random_gaussian_model(tree, rng, strength=(0.6, 0.8)).sample(3_000, rng)
    model, _ = search.regularized_cl_grouping(X, "nj", n_hidden=most)
    assert model.tree.n_hidden <= most


@pytest.mark.parametrize("family", ["gaussian", "discrete"])
def test_local_scores_are_exact(family):
    """What a proposal gains on its region is what the whole tree's BIC gains."""
    rng = np.random.default_rng(7)
    tree = simulate.hidden_markov(10)
    sample = as_sample(draw(family, tree, 2_000, rng, (0.5, 0.8)))
    distances = sample.distances
    problem = Block(distances, spanning_edges(distances))
    growing = _BlockSearch(problem, "nj", sample, 0)
    fit = partial(lt.fit_parameters, X=sample, n_starts=1, random_state=0)
    score = fit(growing.growing.tree()).report.bic_score
    for node in growing.growing.internal[:3]:
        proposal = growing._propose(int(node), growing._neighbors())
        growing.growing.replace(proposal.members, proposal.ends, proposal.lengths)
        after = fit(growing.growing.tree()).report.bic_score
        assert after - score == pytest.approx(proposal.gain, abs=0.5)
        score = after


def test_nothing_hidden_is_found_where_nothing_is():
    rng = np.random.default_rng(8)
    chain = lt.Tree(np.arange(-1, 7))
    X = simulate.random_gaussian_model(chain, rng, strength=(0.5, 0.7)).sample(4_000, rng)
    for subroutine in ("rg", "nj"):
        model, _ = search.regularized_cl_grouping(X, subroutine)
        assert model.tree.same_structure(chain)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_few_variables(m):
    X = simulate.random_gaussian_model(simulate.latent_class(3), 0, strength=(0.8, 0.9))
    model, _ = search.regularized_cl_grouping(X.sample(1_000, 1)[:, :m])
    assert model.tree.n_observed == m


@pytest.mark.filterwarnings("ignore:the variables fall apart")
def test_missing_cells_weights_and_blocks():
    rng = np.random.default_rng(9)
    blocks = [simulate.random_discrete_model(simulate.double_star(6), 3, rng) for _ in range(2)]
    values = np.hstack([block.sample(800, rng) for block in blocks]).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    model, report = search.regularized_cl_grouping(
        values, family="discrete", weights=rng.uniform(0.5, 2, 800)
    )
    assert model.tree.n_observed == 12
    assert np.isfinite(report.log_likelihood)


@pytest.mark.parametrize("method", methods.METHODS)
def test_every_method_takes_missing_real_cells(method):
    rng = np.random.default_rng(11)
    X = draw("gaussian", simulate.double_star(8), 500, rng, (0.6, 0.8))
    X[rng.random(X.shape) < 0.1] = np.nan
    model, report = methods.learn_model(X, method, random_state=0)
    assert model.tree.n_observed == 8
    assert np.isfinite(report.log_likelihood)


@pytest.mark.parametrize("method", methods.METHODS)
@pytest.mark.parametrize("family", ["gaussian", "discrete"])
def test_every_method_learns_by_name(method, family):
    rng = np.random.default_rng(10)
    tree = simulate.double_star(8)
    X = draw(family, tree, 300, rng, (0.6, 0.8))
    learned = lt.LatentTree(method, random_state=0).fit(X)
    assert learned.report_.bic_score == pytest.approx(lt.metrics.bic_score(learned.model_, X))
    assert np.isfinite(learned.score(X))
    again = lt.LatentTree(method, random_state=0).fit(X)
    assert again.tree_ == learned.tree_


def test_unknown_methods_are_named():
    with pytest.raises(
        ModelError, match="method is 'magic', but must be one of auto, chow_liu, nj"
    ):
        methods.learn_model(np.zeros((3, 3)), "magic")


def test_chow_liu_of_the_newsgroups_has_the_published_likelihood(paper_data):
    words = np.loadtxt(paper_data / "newsgroups.csv.gz", delimiter=",", skiprows=1, dtype=np.int8)
    _, report = methods.learn_model(words, "chow_liu")
    assert report.method == "closed form"
    assert report.log_likelihood == pytest.approx(-238_712.6, abs=0.05)
    assert report.bic_score == pytest.approx(-239_677.3, abs=0.05)


# The default ------------------------------------------------------------------------------------


def test_auto_goes_by_the_size_of_the_table():
    rng = np.random.default_rng(0)
    real, codes = rng.normal(size=(6_000, 60)), rng.integers(0, 2, (6_000, 60))
    assert chosen(real[:100, :50]) == "refined"
    assert chosen(real[:, :50]) == "refined"  # sums of pairs are all that it needs
    assert chosen(real[:100]) == "clnj"
    assert chosen(codes[:4_000, :50]) == "refined"
    assert chosen(codes[:4_001, :50]) == "clnj"
    assert chosen(codes[:100, :5], "symmetric") == "clnj"  # which refined does not learn


def test_auto_takes_what_takes_the_options():
    x = np.random.default_rng(0).normal(size=(30, 60))
    assert chosen(x, n_hidden=2) == "refined"
    assert chosen(x[:, :5], max_steps=0) == "clnj"
    assert chosen(x[:, :5], time_limit=1.0) == "refined"
    assert chosen(x[:, :5], "gaussian", "nj", max_steps=9) == "nj"
    with pytest.raises(ModelError, match="no option 'n_bootstrap'"):
        methods.learn_model(x, n_bootstrap=2)


def chosen(x, family="auto", method="auto", **options):
    return methods.choose_method(method, as_sample(x, family), options)


def test_auto_is_the_method_that_it_says():
    x = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8)).sample(500, 1)
    model, report = methods.learn_model(x, random_state=0)
    same, _ = methods.learn_model(x, "refined", random_state=0)
    assert report.notes[0] == "auto: learned by refined"
    assert np.array_equal(model.tree.parent, same.tree.parent)
    assert model.total_log_likelihood(x) == same.total_log_likelihood(x)

"""Resampled log-likelihoods of rival trees, against sums over replicates one by one."""

from __future__ import annotations

import numpy as np
import pytest

import latentree as lt
from latentree.data import cut_table
from latentree.distances import as_sample
from latentree.errors import ModelError
from latentree.search import rivals_of
from latentree.search._refinement._rivals import LARGEST_LOSS
from latentree.support._rell import resampled_gains
from latentree.support._replicates import draws_of
from latentree.tree import Tree

KINDS = ["gaussian", "missing", "discrete"]


def learned(kind: str, n: int = 150, m: int = 9):
    """A model of a random tree, refined on its rows, and these rows."""
    tree = lt.simulate.random_latent_tree(m, np.random.default_rng(5))
    if kind == "discrete":
        X = lt.simulate.random_discrete_model(tree, 2, 5).sample(4 * n, 6)
    else:
        X = np.array(lt.simulate.random_gaussian_model(tree, 5, (0.4, 0.8)).sample(n, 6))
    if kind == "missing":
        X[np.random.default_rng(7).random(X.shape) < 0.05] = np.nan
    sample = as_sample(lt.as_table(X, "discrete" if kind == "discrete" else "gaussian"))
    return lt.search.refined(sample, start="clnj", random_state=0).model, sample


@pytest.mark.parametrize("kind", KINDS)
def test_gains_are_sums_over_the_rows_of_each_replicate(kind):
    model, sample = learned(kind)
    rivals, draws = rivals_of(model, sample), draws_of(sample, 11, None)
    assert rivals.models
    gains = resampled_gains(rivals, sample, 5, draws)
    table = sample.table  # the distinct rows of discrete columns
    cost = 0.5 * np.log(sample.total_weight)
    for number in range(5):
        weights = draws.of_rows(number, 0, table.n_rows)
        own = rivals.model.log_likelihood(table) @ weights - cost * rivals.model.n_parameters
        for gain, rival in zip(gains[number], rivals.models, strict=True):
            score = rival.log_likelihood(table) @ weights - cost * rival.n_parameters
            assert gain == pytest.approx(score - own, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rival_is_the_tree_with_its_change(kind):
    model, sample = learned(kind)
    rivals = rivals_of(model, sample)
    nothing = np.full(len(rivals.models), -1.0)
    assert rivals.tree_with(nothing).same_structure(model.tree)
    for place, rival in enumerate(rivals.models):
        gains = nothing.copy()
        gains[place] = 1.0
        assert rivals.tree_with(gains).same_structure(rival.tree)
        assert not rival.tree.same_structure(model.tree)
    trees = {Tree(each.tree.parent, n_observed=9) for each in rivals.models}
    assert len(trees) == len(rivals.models)


def test_contractions_that_cost_little_are_among_the_rivals():
    model, sample = learned("gaussian")
    rivals = rivals_of(model, sample)
    own = lt.metrics.bic_score(rivals.model, sample.table)
    tree = model.tree
    for above, below in tree.edges:
        if min(above, below) < tree.n_observed:
            continue
        smaller = tree.contract_edges([int(below)])
        fitted = lt.fit_parameters(smaller, sample, n_starts=1, random_state=0).model
        if lt.metrics.bic_score(fitted, sample.table) > own - LARGEST_LOSS + 1.0:
            assert any(rival.tree.same_structure(smaller) for rival in rivals.models)


def test_what_rows_say_clearly_has_high_support():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    X = truth.sample(4_000, 1)
    model = lt.search.refined(X, random_state=0).model
    support = lt.bootstrap_support(model, X, "rell", n_replicates=40, random_state=0)
    assert support.method == ("rell",)
    assert support.n_replicates == 40
    # Rivals with one hidden variable more pay for it in some of the replicates.
    assert min(support.hidden["share"]) > 0.8
    assert np.nanmin(support.edge_share) > 0.95
    assert lt.bootstrap_support(model.tree, X, "rell", 5, random_state=0).n_replicates == 5


def test_parts_have_the_same_replicates():
    model, sample = learned("gaussian")
    whole = lt.bootstrap_support(model, sample, "rell", 30, random_state=3)
    parts = cut_table(sample.table, rows=64)
    cut = lt.bootstrap_support(model, parts, "rell", 30, random_state=3)
    np.testing.assert_array_equal(whole.edges["share"], cut.edges["share"])


def test_an_interrupt_leaves_the_rivals_that_are_fitted():
    model, sample = learned("gaussian")

    def stop(done: int, total: int, message: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    whole = lt.bootstrap_support(model, sample, "rell", 5, random_state=0)
    support = lt.bootstrap_support(model, sample, "rell", 5, random_state=0, progress=stop)
    assert "stopped before all were fitted" in support.note
    assert "stopped" not in whole.note
    assert "parameters of all rows" in whole.note
    assert support.n_replicates == 5


def test_time_that_is_up_and_other_models_are_refused():
    model, sample = learned("gaussian")
    with pytest.raises(ModelError, match="before a rival tree was fitted"):
        lt.bootstrap_support(model, sample, "rell", 3, time_limit=0.0)
    with pytest.raises(ModelError, match="goes with no other"):
        lt.bootstrap_support(model, sample, ["rell", "clnj"], 3)
    rng = np.random.default_rng(0)
    frame = {"a": rng.normal(size=200), "b": rng.integers(0, 2, 200).astype(str)}
    frame |= {"c": frame["a"] + rng.normal(size=200), "d": frame["a"] + rng.normal(size=200)}
    mixed = lt.methods.learn_model(frame, "clnj", random_state=0).model
    with pytest.raises(ModelError, match="rival trees"):
        lt.bootstrap_support(mixed, frame, "rell", 3)

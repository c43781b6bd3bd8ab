"""Refinement of mixed trees: messages, stars and changes against the likelihood of the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree.data import Table
from latentree.distances import as_sample
from latentree.inference import CountEmission, GaussianEmission
from latentree.models import MixedTreeModel
from latentree.search._refinement import RefineOptions, penalty_of
from latentree.search._refinement._discrete_engine import StateEngine
from latentree.search._refinement._discrete_fit import Numbers, RowMessages
from latentree.search._refinement._refine import grow_states
from latentree.search._refinement._search import Penalty, Request

NAMES = ("a", "b", "c", "x", "y", "z")
#          a  b  c  x  y  z  h  g
PARENT = [6, 6, 7, 6, 7, 7, -1, 6]


def random_model(
    seed: int,
    n_states: tuple[int, int] = (2, 3),
    parent: tuple[int, ...] | list[int] = PARENT,
    numbers: tuple[int, ...] = (3, 4, 5),
) -> MixedTreeModel:
    """Labels a, b, c and numbers: two real, and z a count."""
    rng = np.random.default_rng(seed)
    tree = lt.Tree(parent, n_observed=6, names=[*NAMES, "h", "g"][: len(parent)])
    states = dict.fromkeys(range(6), 3) | dict(zip((6, 7), n_states, strict=True))
    parameters: list[object] = []
    for node, above in enumerate(parent):
        k = 1 if above < 0 else states[above]
        if node == 5 and node in numbers:
            parameters.append(CountEmission(rng.uniform(1, 9, k), rng.uniform(1, 9, k)))
        elif node in numbers:
            mean, sd = rng.normal(0, 2, k), rng.uniform(0.5, 1.5, k)
            parameters.append(GaussianEmission(mean, sd, 0.01))
        else:
            table = rng.dirichlet(np.ones(states[node]), None if above < 0 else k)
            parameters.append(table)
    return MixedTreeModel(tree, parameters)  # type: ignore[arg-type]


def rows_of(model: MixedTreeModel, n: int, seed: int, missing: float = 0.0) -> Table:
    """Rows without a constant column, which nothing could be learned about."""
    rng = np.random.default_rng(seed)
    while True:
        values = model._draw(n, rng)[:, : model.tree.n_observed].astype(float)
        values[rng.random(values.shape) < missing] = np.nan
        if all(np.unique(column[~np.isnan(column)]).size > 1 for column in values.T):
            return Table(values, model.schema)


SHAPES = (
    PARENT,
    [6, 6, -1, 6, -1, 6, -1],  # a label and a number stand alone
    [-1, 0, 0, 6, 0, 6, 0],  # a hidden node ties two numbers to the rest
    [-1, 0, 0, 6, 0, 6, -1],  # or ties them alone
    [-1, 0, 1, 1, 0, 2],  # numbers beside labels, nothing hidden
)


def log_likelihood(draft, table: Table) -> float:
    """The definition: that of the model that the draft stands for."""
    return draft.model(table.schema).log_likelihood(table).sum()


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]), st.sampled_from(SHAPES))
@settings(max_examples=20, deadline=None)
def test_every_node_sees_the_same_likelihood(seed: int, missing: float, shape: list[int]) -> None:
    model = random_model(seed, parent=shape)
    table = rows_of(model, 30, seed, missing)
    engine = StateEngine(as_sample(table))
    draft = engine.draft(model)
    messages, expected = RowMessages(draft, engine.rows), log_likelihood(draft, table)
    for node in draft.parent:
        if draft.is_number(node):
            continue
        found = engine.rows.log_likelihood(messages.marginal[node], messages.get(node))
        others = [root for root in draft.roots if root != draft.root_of(node)]
        found += sum(messages.log_likelihood(root) for root in others)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("shape", SHAPES)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.2]))
@settings(max_examples=4, deadline=None)
def test_gains_are_those_of_the_changed_model(shape: list[int], seed: int, missing: float) -> None:
    """Whatever the change: the tree is valid, and its likelihood what the proposal says."""
    model = random_model(seed, parent=shape)
    table = rows_of(model, 50, seed, missing)
    engine = StateEngine(as_sample(table))
    penalty = Penalty(0.3, 0.2)
    draft = engine.draft(model)
    request = Request(draft, penalty, RefineOptions(caution=0.0))
    before = log_likelihood(draft, table) - penalty(draft)
    changes = (engine.structures, engine.states, engine.last_structures)
    proposals = [proposal for propose in changes for proposal in propose(request)]
    assert proposals
    for proposal in proposals:
        changed = proposal.apply(draft)
        model = changed.model(table.schema)  # raises if the tree is not valid
        gain = log_likelihood(changed, table) - penalty(changed) - before
        assert gain == pytest.approx(proposal.gain, abs=1e-6), proposal.key
        if np.isfinite(model.emissions[5].size).all():  # Poisson's distribution has one less
            assert changed.n_parameters == model.n_parameters


def test_states_grow_to_the_highest_score_and_not_beyond() -> None:
    truth = random_model(3, (4, 2))
    sample = as_sample(rows_of(truth, 2_000, 4))
    fits = {
        states: lt.fit_parameters(
            truth.tree, sample, n_states=states, random_state=0, prior_weight=1.0
        )
        for states in ((2, 2), (3, 2), (4, 2))
    }
    best = max(fits, key=lambda states: fits[states].report.bic_score)
    assert best == (3, 2)
    few, penalty = fits[2, 2].model, penalty_of("bic", sample)
    grown, score, note = grow_states(few, sample, penalty, max_states=8, random_state=0)
    assert tuple(grown.n_states[6:]) == best
    assert score == pytest.approx(fits[best].report.bic_score, abs=1.0)
    assert not note
    at_most, _, _ = grow_states(few, sample, penalty, max_states=2, random_state=0)
    np.testing.assert_array_equal(at_most.n_states, few.n_states)


def test_the_tree_is_found_from_a_star() -> None:
    """Messages and leaves together, through the public function, gaps included."""
    tree = random_model(0).tree
    label, flip = [[0.9, 0.1], [0.2, 0.8]], [[0.85, 0.15], [0.15, 0.85]]
    real, count = GaussianEmission([0.0, 2.5], [1.0, 1.0], 0.01), CountEmission([1.0, 6.0])
    truth = MixedTreeModel(tree, [label, label, label, real, real, count, [0.5, 0.5], flip])
    table = rows_of(truth, 1_500, 5, 0.05)
    star = lt.Tree([6] * 6 + [-1], n_observed=6, names=NAMES)
    model, report = lt.search.refine(star, table, random_state=0)
    assert lt.metrics.same_structure(model.tree, truth.tree)
    assert model.n_states[6:].tolist() == [2, 2]
    assert model.total_log_likelihood(table) == pytest.approx(report.log_likelihood)
    fitted = lt.fit_parameters(truth.tree, table, n_states=2, random_state=0, prior_weight=1.0)
    assert report.bic_score == pytest.approx(fitted.report.bic_score, abs=0.1)


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_fitted_emission_has_the_moments_of_its_states(seed: int, counts: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.poisson(6, 50).astype(float) if counts else 1e6 + rng.normal(0, 2, 50)
    weights = rng.dirichlet(np.ones(3), 50)
    values[:5] = np.nan
    start = (
        CountEmission([1.0] * 3, [2.0] * 3)
        if counts
        else GaussianEmission([1e6] * 3, [1.0] * 3, 1e-3)
    )
    x, w = values[5:], weights[5:]
    unit = lt.inference.Unit(x.mean(), x.std(), 0.0 if counts else 1e-3)
    column = Numbers(values, np.ones(50), unit, 0.0)
    fitted = column.maximized(start, weights.T, column.likelihoods(start)[1])
    mean = np.array([np.average(x, weights=w[:, k]) for k in range(3)])
    variance = np.array([np.average((x - mean[k]) ** 2, weights=w[:, k]) for k in range(3)])
    np.testing.assert_allclose(fitted.mean, mean, rtol=1e-9)
    if counts:
        assert (w.T * fitted.log_likelihood(x)).sum() > (w.T * start.log_likelihood(x)).sum()
    else:
        np.testing.assert_allclose(fitted.sd, np.sqrt(variance), rtol=1e-6)


def test_every_missing_value_says_nothing() -> None:
    emission = GaussianEmission([0.0, 3.0], [1.0, 2.0], 0.1)
    values = np.array([0.5, np.nan, 1.0, np.nan])
    for repeats in (1, 500):  # uncompiled, and compiled
        logs = emission.log_likelihood(np.tile(values, repeats))
        assert (logs[:, 1::2] == 0.0).all()
        assert np.isfinite(logs).all()

"""Forms of kernels in whole arrays, which run on small tables, against the compiled loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree import simulate
from latentree._kernels import gaussian as messages
from latentree._kernels.compiling import repeated, tiny
from latentree._kernels.inference import emissions, gaussian_rows, tables
from latentree._kernels.search import regrafting, stars
from latentree.inference import Layout
from latentree.models import in_order

seeds = st.integers(0, 10**6)
quickly = settings(max_examples=25, deadline=None)


def both_ways(function):
    """Return the arrays that a function gives with kernels in whole arrays and compiled."""
    with tiny(True):
        plain = function()
    with repeated():
        compiled = function()
    return plain, compiled


def assert_same(function, rtol=1e-10):
    for plain, compiled in zip(*both_ways(function), strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=rtol, atol=1e-12)


def random_star(rng, n_arms, n_states):
    """Return messages behind the arms of a star, their tables, and what is seen at the center."""
    n = int(rng.integers(1, 150))
    ends = rng.integers(2, 5, n_arms)
    starts = np.concatenate([[0], np.cumsum(ends)])
    arms = rng.random((starts[-1], n)) * 10.0 ** rng.integers(-30, 1)
    tables = [rng.dirichlet(np.ones(end), n_states).ravel() for end in ends]
    evidence = rng.random((n_states, n))
    prior = rng.dirichlet(np.ones(n_states))
    weights = rng.integers(1, 4, n).astype(float)
    return arms, starts, np.concatenate([np.empty(0), *tables]), evidence, weights, prior


@given(seed=seeds, n_arms=st.integers(0, 20), n_states=st.integers(1, 5))
@quickly
def test_messages_and_likelihoods_of_a_star(seed, n_arms, n_states):
    rng = np.random.default_rng(seed)
    arms, starts, tables, evidence, weights, prior = random_star(rng, n_arms, n_states)

    def run():
        out, shift = np.empty_like(evidence), np.zeros(evidence.shape[1])
        stars.message(arms, starts, tables, evidence, out, shift)
        if n_arms == 0:
            return out, shift
        total = stars.log_likelihood(arms, starts, evidence, weights, prior, tables)
        return out, shift, total

    assert_same(run)


@given(seed=seeds, n_states=st.integers(1, 5), n_end=st.integers(2, 4))
@quickly
def test_an_exchanged_arm(seed, n_states, n_end):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 150))
    before, old, new = (rng.random((k, n)) + 1e-3 for k in (n_states, n_end, n_end))
    table = rng.dirichlet(np.ones(n_end), n_states)

    def run():
        out, shift = np.empty_like(before), np.zeros(n)
        stars.exchange(before, table, old, new, out, shift)
        return out, shift

    assert_same(run)


@given(seed=seeds, n_arms=st.integers(1, 12), n_states=st.integers(1, 4), ends_early=st.booleans())
@quickly
def test_em_on_a_star(seed, n_arms, n_states, ends_early):
    rng = np.random.default_rng(seed)
    arms, starts, tables, evidence, weights, prior = random_star(rng, n_arms, n_states)

    def run():
        own_prior, own_tables = prior.copy(), tables.copy()
        least = 1e9 if ends_early else -np.inf
        given_ = arms, starts, evidence, weights, own_prior, own_tables
        stars.fit_star(*given_, 0.5, 7, least)
        return own_prior, own_tables

    assert_same(run, 1e-8)


@given(seed=seeds)
@quickly
def test_tables_of_another_rooting(seed):
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(8, rng)
    states = rng.integers(2, 5, tree.n_nodes)
    layout = Layout(tree, states)
    other = Layout(tree.rerooted(int(rng.integers(tree.n_nodes))), states)
    theta = layout.normalized(rng.random(layout.size) * (rng.random(layout.size) > 0.2) + 1e-300)
    assert_same(lambda: (layout.marginals(theta), layout.reoriented(theta, other)))


@given(seed=seeds, n_arms=st.integers(1, 9))
@quickly
def test_a_gaussian_star_is_a_tree(seed, n_arms):
    """Steps by products alone equal those of messages in a tree, whose ends may be beliefs."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n_arms, n_arms + 3)) * rng.uniform(0.1, 1.0, (n_arms, 1))
    u = rng.uniform(0.0, 0.9, n_arms) * (rng.random(n_arms) < 0.5)
    rho = rng.uniform(-0.95, 0.95, n_arms)
    order, parent = np.arange(n_arms, -1, -1), np.append(np.full(n_arms, n_arms), -1)
    all_rho, own = np.append(rho, 0.0), np.append(u, -1.0)

    def as_tree():
        variances = messages.variances(order, parent, all_rho, own)
        products = messages.products_of_means(order, parent, all_rho, own, variances, data)
        following = np.zeros(n_arms + 1)
        value = messages.maximize(order, parent, all_rho, own, variances, products, following)
        return value, following[:-1]

    def as_star():
        following = np.empty(n_arms)
        return regrafting.star_step(data @ data.T, u, rho, following), following

    for expected, star in zip(as_tree(), as_star(), strict=True):
        np.testing.assert_allclose(star, expected, rtol=1e-9, atol=1e-10)
    assert_same(as_star, 1e-9)


def gaussian_pass(seed, has_gaps):
    """Return the arguments of a pass over rows of a random Gaussian tree."""
    rng = np.random.default_rng(seed)
    model = simulate.random_gaussian_model(simulate.random_latent_tree(7, rng), rng)
    values = model.sample(30, rng)
    if has_gaps:
        values[rng.random(values.shape) < 0.3] = np.nan
    parent, place = in_order(model.tree)
    n_hidden = model.tree.n_hidden
    center = np.append(model.means, np.zeros(n_hidden))
    inverse_scale = 1.0 / np.append(model.scales, np.ones(n_hidden))
    rho = model.correlations[model.tree.order]
    return model.tree, values, (place, parent, rho, center, inverse_scale)


@given(seed=seeds, has_gaps=st.booleans(), first=st.integers(0, 12))
@quickly
def test_rows_of_a_gaussian_tree(seed, has_gaps, first):
    tree, values, parameters = gaussian_pass(seed, has_gaps)
    noise = np.random.default_rng(seed).normal(size=(len(values), tree.n_nodes))
    weights = np.random.default_rng(seed).integers(0, 3, len(values)).astype(float)

    def run():
        likelihood, draws, states = np.zeros(len(values)), noise.copy(), np.zeros(noise.shape)
        variances, covariances = np.zeros((2, *noise.shape))
        some, nothing = (values, weights, first, len(values) - 1, *parameters), np.empty((0, 0))
        gaussian_rows.run_rows(*some, likelihood, draws, nothing, nothing, nothing)
        gaussian_rows.run_rows(*some, likelihood, states, variances, covariances, nothing)
        only, moments = np.zeros(len(values)), np.zeros((tree.n_nodes, 3))
        gaussian_rows.run_rows(*some, only, *[nothing] * 3, moments)
        return likelihood, draws, states, variances, covariances, only, moments

    assert_same(run)


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
    size=st.sampled_from([0.05, 1.0, 30.0, 2e4]),
    is_large=st.booleans(),
)
@quickly
def test_likelihoods_and_slopes_of_counts(counts, size, is_large):
    values = np.sort(counts).astype(float) * (100 if is_large else 1)
    weights = np.random.default_rng(len(counts)).random(values.size)
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    mean, sizes = np.array([0.3, 4.0, 700.0]), np.array([size, np.inf, size])

    def run():
        out = np.empty((3, values.size + 1))
        emissions.count_logs(np.append(values, np.nan), mean, sizes, out)
        arguments = values, tails, emissions._weights_above(values, tails), 2.5, 0.3, 3.0, size
        return out, emissions._size_value(*arguments), emissions._size_slopes(*arguments)

    # Slopes are differences of large sums.
    assert_same(run, 1e-7)


@given(seed=seeds, hole=st.integers(0, 30), far=st.sampled_from([1.0, 30.0, 1e4]))
@quickly
def test_likelihoods_and_moments_of_cells(seed, hole, far):
    """Cells from a tenth of a fine one to six standard deviations wide, near and far out."""
    rng = np.random.default_rng(seed)
    values = np.unique(rng.integers(-20, 20, 30)) * 0.5 * far
    hole = min(hole, values.size)
    values = np.insert(values, hole, np.nan)
    sd = np.exp(rng.uniform(np.log(0.5 / 6), np.log(100.0), 4))
    mean, shape = rng.normal(size=4), (4, values.size)
    weights = rng.random(values.size * 4)

    def run():
        out, shift, spread = np.zeros((3, *shape))
        emissions.normal_logs(values, mean, sd, 0.5, out, shift, spread)
        sums = np.zeros((4, 3))
        within = shift.ravel(), spread.ravel()
        emissions.normal_sums(values, weights, *within, sd, 0.5, 1.0, sums)
        return out, np.delete(shift, hole, 1), np.delete(spread, hole, 1), sums

    assert_same(run)


@given(seed=seeds)
@quickly
def test_joint_counts_of_a_column_with_others(seed):
    rng = np.random.default_rng(seed)
    n_states = rng.integers(1, 5, 4)
    codes = rng.integers(-1, n_states, (30, 4)).astype(np.int32)
    others = np.flatnonzero(rng.random(4) < 0.7)
    weights = rng.integers(0, 3, 30).astype(float)
    assert_same(lambda: (tables.joint_with_all(codes, 2, others, weights, n_states),))


KINDS = ("real", "gaps", "binary", "ordered", "counts", "mixed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_refined_model_is_the_same_in_both_ways(kind):
    table = table_of(kind)
    plain = lt.LatentTree("refined", random_state=0).fit(table).model_
    with repeated():
        compiled = lt.LatentTree("refined", random_state=0).fit(table).model_
    assert plain.tree.equals(compiled.tree, 1e-3)
    assert plain.total_log_likelihood(table) == pytest.approx(
        compiled.total_log_likelihood(table), abs=1e-2
    )


def table_of(kind):
    """Return 150 rows of six columns behind two hidden variables."""
    rng = np.random.default_rng(0)
    model = simulate.random_gaussian_model(simulate.double_star(6), rng, (0.7, 0.8))
    numbers = model.sample(150, rng)
    frame = pd.DataFrame(numbers, columns=list("abcdef"))
    kinds = {"mixed": ("real", "binary", "ordered")}.get(kind, (kind,))
    for place, column in enumerate(frame):
        values = numbers[:, place]
        match kinds[place % len(kinds)]:
            case "gaps":
                frame[column] = np.where(rng.random(150) < 0.1, np.nan, values)
            case "binary":
                frame[column] = np.where(values > 0, "yes", "no")
            case "ordered":
                frame[column] = np.digitize(values, [-1, 0, 1]) + 1
            case "counts":
                frame[column] = np.floor(np.exp(values + 2.0)).astype(int)
    return frame

"""Refinement of discrete trees: changes, what they are worth, and the search as a whole."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree.data import Schema, Table, as_table
from latentree.distances import as_sample
from latentree.errors import ModelError
from latentree.metrics import robinson_foulds
from latentree.models import DiscreteTreeModel
from latentree.search._refinement import RefineOptions, first_fits, penalty_of
from latentree.search._refinement._discrete_engine import StateEngine
from latentree.search._refinement._discrete_fit import (
    ALL,
    RowEvidence,
    RowMessages,
    estimated_gains,
)
from latentree.search._refinement._draft import Conflict, StateDraft
from latentree.search._refinement._search import Penalty, Request, Search
from strategies import trees

BIC = 0.5 * np.log(500)

EVERYTHING = RefineOptions(caution=0.0)


def random_model(tree, seed, max_states=3) -> DiscreteTreeModel:
    rng = np.random.default_rng(seed)
    states = rng.integers(2, max_states + 1, tree.n_nodes)
    tables = [
        rng.dirichlet(np.full(states[v], 0.8), size=None if p < 0 else states[p])
        for v, p in enumerate(tree.parent)
    ]
    return DiscreteTreeModel(tree, tables)


def random_table(model, seed, n=200, missing=0.0):
    rng = np.random.default_rng(seed)
    X = np.array(model.sample(n, rng))
    X[rng.random(X.shape) < missing] = -1
    return Table(X, model.schema)


def log_likelihood(draft, table) -> float:
    """The definition: that of the model that the draft stands for."""
    return draft.model(table.schema).total_log_likelihood(table)


models = st.builds(random_model, trees(max_inner=4), st.integers(0, 99))


# Drafts -----------------------------------------------------------------------------------------


@given(models, st.data())
@settings(max_examples=50)
def test_a_draft_stays_the_same_distribution_when_it_is_rooted_elsewhere(model, data):
    table = random_table(model, 1, 20)
    draft = StateDraft.of(model)
    draft.reroot(data.draw(st.sampled_from(sorted(draft.parent))))
    assert log_likelihood(draft, table) == pytest.approx(model.total_log_likelihood(table))
    assert draft.n_parameters == model.n_parameters


@given(models, st.data())
@settings(max_examples=50)
def test_a_subtree_that_is_cut_and_hung_back_changes_nothing(model, data):
    draft = StateDraft.of(model)
    if not draft.edges:
        return
    p, x = data.draw(st.sampled_from(draft.edges))
    table, before = random_table(model, 1, 20), draft.copy()
    link = draft.above[x]
    draft.cut(p, x)
    apart = draft.component(p), draft.component(x)
    assert apart[0].isdisjoint(apart[1])
    assert set().union(*apart) <= set(draft.parent)
    draft.hang(x, p, link)
    assert log_likelihood(draft, table) == pytest.approx(log_likelihood(before, table))


@given(models, st.data())
@settings(max_examples=50)
def test_suppressed_nodes_leave_the_observed_ones_as_they_were(model, data):
    draft = StateDraft.of(model)
    if not draft.edges:
        return
    p, x = data.draw(st.sampled_from(draft.edges))
    draft.cut(p, x)
    pieces = as_table(np.array(model.sample(20, 1)), schema=model.schema)
    expected = _untidy_log_likelihood(draft, pieces)
    draft.tidy(p)
    draft.tidy(x)
    assert log_likelihood(draft, pieces) == pytest.approx(expected)  # a Tree checks itself


def _untidy_log_likelihood(draft, table) -> float:
    """Hidden nodes with few neighbors are no Tree: messages do not mind."""
    messages = RowMessages(draft, RowEvidence(table))
    return sum(messages.log_likelihood(root) for root in draft.roots)


def test_a_component_cannot_be_hung_at_itself():
    draft = StateDraft.of(random_model(lt.simulate.double_star(6), 0))
    with pytest.raises(Conflict):
        draft.hang(0, 3, np.full((2, 2), 0.5))


# Messages ---------------------------------------------------------------------------------------


@given(models, st.sampled_from([0.0, 0.3]))
@settings(max_examples=40)
def test_every_node_sees_the_same_likelihood(model, missing):
    table = random_table(model, 2, 30, missing)
    draft = StateDraft.of(model)
    messages, rows = RowMessages(draft, RowEvidence(table)), RowEvidence(table)
    for node in draft.parent:
        found = rows.log_likelihood(messages.marginal[node], messages.get(node))
        others = [r for r in draft.roots if r != draft.root_of(node)]
        found += sum(messages.log_likelihood(root) for root in others)
        assert found == pytest.approx(model.total_log_likelihood(table))


@given(models, st.data(), st.sampled_from([0.0, 0.3]))
@settings(max_examples=40)
def test_messages_after_a_cut_that_take_up_earlier_ones_are_those_computed_afresh(
    model, data, missing
):
    rows, draft = RowEvidence(random_table(model, 2, 30, missing)), StateDraft.of(model)
    if not draft.edges:
        return
    before = RowMessages(draft, rows)
    for node in draft.parent:
        for towards in (ALL, *draft.neighbors(node)):
            before.get(node, towards)
    p, x = data.draw(st.sampled_from([e for a, b in draft.edges for e in ((a, b), (b, a))]))
    base = draft.copy()
    base.cut(p, x)
    left = base.tidy(p)
    if not left:
        return
    base.reroot(left[0])
    again, afresh = RowMessages(base, rows, before, left), RowMessages(base, rows)
    for node in base.component(left[0]):
        for towards in (ALL, *base.neighbors(node)):
            found, expected = again.get(node, towards), afresh.get(node, towards)
            np.testing.assert_allclose(found.value, expected.value, atol=1e-10)
            np.testing.assert_allclose(found.shift, expected.shift, atol=1e-9)


@pytest.mark.parametrize(("same", "n_trees"), [(0.527, 1), (0.505, 2)])
def test_an_edge_is_cut_only_if_it_is_no_stronger_than_by_chance(same, n_trees):
    # The edge of the last two of three columns adds 2.9 or 0.1 nats to the log-likelihood of 2,000
    # rows; its price is ½·log n = 3.8. The best of three edges adds 0.5 by chance.
    rows = np.array(list(itertools.product([0, 1], repeat=3)))
    agree = rows[:, :2] == rows[:, 1:]
    weights = 1000 * np.where(agree, [0.9, same], [0.1, 1 - same]).prod(axis=1)
    model, _ = lt.search.refine(lt.Tree([-1, 0, 1]), rows, "discrete", weights=weights)
    assert len(model.tree.roots) == n_trees


# What changes are worth -------------------------------------------------------------------------


def all_proposals(model, table, penalty, options=EVERYTHING):
    engine = StateEngine(as_sample(table))
    draft = engine.draft(model)
    request = Request(draft, penalty, options)
    return draft, [*engine.structures(request), *engine.states(request)]


def last_proposals(model, table, penalty, options=EVERYTHING):
    engine = StateEngine(as_sample(table))
    draft = engine.draft(model)
    return draft, engine.last_structures(Request(draft, penalty, options))


@pytest.mark.parametrize("propose", [all_proposals, last_proposals])
@given(models, st.sampled_from([0.0, 0.2]), st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_gains_are_those_of_the_changed_model(propose, model, missing, seed):
    """Whatever the change: the tree is valid, and its likelihood what the proposal says."""
    table = random_table(model, seed, 60, missing)
    assume(all(np.unique(column[column >= 0]).size > 1 for column in table.values.T))
    penalty = Penalty(0.3, 0.2)
    draft, proposals = propose(model, table, penalty)
    before = log_likelihood(draft, table) - penalty(draft)
    for proposal in proposals:
        changed = proposal.apply(draft)
        tree = changed.tree(table.names)  # raises if a hidden node has too few neighbors
        assert tree.n_observed == model.tree.n_observed
        degrees = np.bincount(tree.edges.ravel(), minlength=1)
        assert (changed.n_edges, changed.n_inner) == (tree.n_edges, (degrees > 1).sum())
        assert changed.n_parameters == changed.model(table.schema).n_parameters
        gain = log_likelihood(changed, table) - penalty(changed) - before
        assert gain == pytest.approx(proposal.gain, abs=1e-6), proposal.key
        cost = penalty(changed) - penalty(draft)
        assert proposal.rise - cost == pytest.approx(proposal.gain, abs=1e-9)


def test_the_more_caution_the_fewer_moves_and_what_a_move_saves_does_not_count():
    model = random_model(lt.simulate.random_latent_tree(9, 0), 0)
    table = random_table(model, 0, 80)
    found = [
        {p.key: p for p in all_proposals(model, table, Penalty(1.0), RefineOptions(caution=c))[1]}
        for c in (0.0, 0.5, 1.0, 2.0)
    ]
    moves = ("regraft", "insert", "promote")
    for less, more in pairwise(found):
        assert more.keys() <= less.keys()
        assert {key for key in less if key[0] not in moves} == {
            key for key in more if key[0] not in moves
        }
    assert len(found[0]) > len(found[1]) > len(found[3])
    for key, proposal in found[1].items():
        if key[0] in moves:
            assert min(proposal.gain, proposal.rise) > 0


def test_a_star_conflicts_with_other_numbers_of_states_of_its_neighbors():
    draft = StateDraft.of(random_model(lt.simulate.double_star(6), 0))
    first, second = draft.hidden
    draft.reroot(first)
    tables = {other: draft.above[other] for other in draft.neighbors(first)}
    stale = tables | {second: np.full((draft.n_states[first], 5), 0.2)}
    draft.resize(first, draft.above[first], tables)
    with pytest.raises(Conflict):
        draft.resize(first, draft.above[first], stale)


@given(models, st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_changes_of_different_regions_can_be_made_together(model, seed):
    """Or they say that they conflict."""
    table = random_table(model, seed, 60)
    assume(all(np.unique(column).size > 1 for column in table.values.T))
    draft, proposals = last_proposals(model, table, Penalty(0.3, 0.2))
    pairs = list(itertools.permutations(proposals, 2))
    for first, second in pairs[:: max(len(pairs) // 100, 1)]:
        if first.region.isdisjoint(second.region):
            with suppress(Conflict):
                both = second.apply(first.apply(draft))
                made = both.model(table.schema)  # raises if tables do not fit
                assert both.n_parameters == made.n_parameters


def test_every_kind_of_change_is_proposed():
    kinds = Counter()
    for seed in range(6):
        tree = lt.simulate.random_latent_tree(9, seed)
        model = random_model(tree, seed)
        table = random_table(model, seed, 80)
        for start in (model, _fitted("chow_liu", table)):
            kinds.update(p.key[0] for p in all_proposals(start, table, Penalty(1.0))[1])
    expected = "regraft insert contract promote fuse merge demote cut more fewer"
    assert set(expected.split()) <= set(kinds)


def _fitted(method, table):
    tree = lt.structure.mutual_information_tree(table)
    return lt.fit_parameters(tree, table).model


@given(st.integers(0, 10_000), st.floats(0.0, 0.2), st.integers(2, 4), st.integers(2, 4))
@settings(max_examples=60)
def test_estimates_approximate_what_an_edge_gains(seed, strength, k, other):
    """Between observed variables the best edge gains n·I(x; y); to second order that is it."""
    rng = np.random.default_rng(seed)
    n = 4_000
    x = rng.integers(0, k, n)
    y = np.where(rng.random(n) < strength, x % other, rng.integers(0, other, n))
    joint = np.histogram2d(x, y, [k, other], [[-0.5, k - 0.5], [-0.5, other - 0.5]])[0]
    apart = np.outer(joint.sum(1), joint.sum(0)) / n
    gain = float((joint[joint > 0] * np.log(joint[joint > 0] / apart[joint > 0])).sum())
    sides = [np.eye(k)[x].T, np.eye(other)[y].T]
    [[estimate]] = estimated_gains(sides[:1], sides[1:], np.ones(n))
    assert estimate == pytest.approx(gain, rel=0.3, abs=1.0)


# The search -------------------------------------------------------------------------------------


def sampled(tree, n, seed=0, n_states=2):
    truth = lt.simulate.random_discrete_model(tree, n_states, seed)
    return truth, as_table(truth.sample(n, seed + 1), schema=truth.schema)


def test_the_score_is_that_of_the_model_and_never_goes_down():
    _, table = sampled(lt.simulate.random_latent_tree(12, 3), 800)
    start = lt.structure.mutual_information_tree(table)
    engine = StateEngine(as_sample(table))
    scores: list[float] = []
    search = Search(engine, RefineOptions(), watch=lambda _, score: scores.append(score))
    model = lt.fit_parameters(start, table).model
    end = search.climb(engine.draft(model), Penalty(BIC))
    assert scores == sorted(scores)
    assert len(scores) > 1
    fresh = engine.model(end.draft).total_log_likelihood(table)
    assert end.score == pytest.approx(fresh - BIC * end.draft.n_parameters)
    refined, report = lt.search.refine(start, table)
    assert report.log_likelihood == pytest.approx(refined.total_log_likelihood(table))
    assert report.score == pytest.approx(report.bic_score)
    assert report.score >= lt.fit_parameters(start, table).report.bic_score
    assert sum(count for count, _ in report.gains().values()) == len(report.moves)


def test_one_and_two_threads_give_the_same(monkeypatch):
    _, table = sampled(lt.simulate.random_latent_tree(10, 5), 500)
    start = lt.structure.mutual_information_tree(table)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", threads)
        model, report = lt.search.refine(start, table, random_state=3)
        found.append((model.tree.canonical, report.score, report.moves))
    assert found[0] == found[1]


def test_a_node_that_stands_for_two_becomes_two():
    truth, table = sampled(lt.simulate.double_star(8), 20_000)
    star = lt.fit_parameters(lt.simulate.latent_class(8), table, n_states=4).model
    draft, proposals = last_proposals(star, table, Penalty(BIC), RefineOptions())
    best = max((p for p in proposals if p.key[0] == "part"), key=lambda p: p.gain)
    assert best.gain > 10.0
    assert best.apply(draft).tree(table.names).same_structure(truth.tree)


def test_an_observed_variable_takes_the_place_of_a_hidden_copy_of_it():
    # Two groups of three around the variable 6. A hidden node in its place fits as well, and has
    # more parameters: no contraction but into 6 would do.
    truth, table = sampled(lt.Tree([-1, 7, 7, 7, 8, 8, 8, 0, 0], n_observed=7), 20_000, n_states=3)
    doubled = lt.Tree([9, 7, 7, 7, 8, 8, 8, 9, 9, -1], n_observed=7)
    found = lt.search.refine(doubled, table)
    assert found.model.tree.same_structure(truth.tree)
    assert [move.kind for move in found.report.moves] == ["promote"]


def test_the_true_model_stays_on_many_rows():
    truth, table = sampled(lt.simulate.double_star(8), 20_000)
    model, report = lt.search.refine(truth, table)
    assert model.tree.same_structure(truth.tree)
    assert report.moves == ()


def test_the_truth_is_found_from_a_tree_without_hidden_nodes():
    truth, table = sampled(lt.simulate.double_star(8), 5_000)
    model, _ = lt.search.refine(lt.structure.mutual_information_tree(table), table)
    assert robinson_foulds(model.tree, truth.tree) == 0


def test_states_grow_to_their_number_and_not_beyond():
    star = lt.simulate.latent_class(8)
    rng = np.random.default_rng(0)
    truth = DiscreteTreeModel(star, [*rng.dirichlet([0.4, 0.4], (8, 3)), np.full(3, 1 / 3)])
    table = as_table(truth.sample(5_000, 1), schema=truth.schema)
    start = lt.fit_parameters(star.renamed(table.names), table, n_states=2).model
    model, report = lt.search.refine(start, table)
    assert model.n_states[-1] == 3
    assert report.gains()["more"][0] == 1
    binary, _ = lt.search.refine(star.renamed(table.names), table, max_states=2)
    assert binary.n_states.max() == 2


@pytest.mark.parametrize("n_hidden", [0, 1, 2, 4])
def test_a_forced_number_of_hidden_variables_is_kept(n_hidden):
    truth, table = sampled(lt.simulate.double_star(10), 1_000)
    model, _ = lt.search.refine(truth, table, n_hidden=n_hidden, max_states=2)
    assert model.tree.n_hidden == n_hidden


def test_missing_cells_and_weights():
    truth, table = sampled(lt.simulate.double_star(8), 3_000)
    X = np.array(table.values, float)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    holes = as_table(X, schema=table.schema)
    start = lt.structure.chow_liu(lt.information_distances(holes))
    model, report = lt.search.refine(start, holes)
    assert robinson_foulds(model.tree, truth.tree) <= 1
    assert report.log_likelihood == pytest.approx(model.total_log_likelihood(holes))
    twice = lt.search.refine(start, np.vstack([X, X]), "discrete")
    weighted = lt.search.refine(start, X, "discrete", weights=np.full(len(X), 2.0))
    assert weighted.report.score == pytest.approx(twice.report.score, rel=1e-6)


def test_independent_blocks_are_cut_apart_and_blocks_that_belong_together_joined():
    blocks = [sampled(lt.simulate.latent_class(4), 2_000, seed)[1].values for seed in (0, 1)]
    X = np.column_stack(blocks)
    chain = lt.Tree(np.arange(-1, 7), n_observed=8)
    model, _ = lt.search.refine(chain, X, "discrete")
    components = model.tree.components
    assert len(set(components[:4]) | set(components[4:8])) == 2
    _, table = sampled(lt.simulate.latent_class(4), 2_000)
    apart = lt.Tree(np.full(4, -1), n_observed=4, names=table.names)
    joined, report = lt.search.refine(apart, table)
    assert joined.tree.roots.size == 1
    assert "link" in report.gains()


@pytest.mark.parametrize(
    "tree",
    [
        lt.Tree([-1, 0], n_observed=2),
        lt.simulate.latent_class(5),
        lt.Tree(np.arange(-1, 5), n_observed=6),
        lt.Tree(np.full(4, -1), n_observed=4),
    ],
    ids=["two", "star", "chain", "apart"],
)
def test_independent_variables_end_as_nothing(tree):
    X = np.random.default_rng(0).integers(0, 2, (400, tree.n_observed))
    model, _ = lt.search.refine(tree, X, "discrete")
    assert model.tree.n_edges <= 2  # pairs may look dependent by chance
    assert model.tree.n_hidden == 0


def test_the_time_limit_holds_and_an_interrupt_gives_the_best_so_far():
    _, table = sampled(lt.simulate.random_latent_tree(15, 1), 500)
    start = lt.structure.mutual_information_tree(table)
    _, report = lt.search.refine(start, table, time_limit=0.0)
    assert report.moves == ()
    assert any("time limit" in note for note in report.notes)

    def interrupt(changes, score):
        raise KeyboardInterrupt

    _, stopped = lt.search.refine(start, table, progress=interrupt)
    assert any("interrupted" in note for note in stopped.notes)
    assert stopped.score >= report.score - 1e-6


def test_different_numbers_of_states_are_refined_from_a_tree_of_mutual_information():
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 1_500)
    X = np.column_stack([(hidden + (rng.random(1_500) < 0.2)) % 2 for _ in range(5)])
    wide = X[:, 3:] + 2 * rng.integers(0, 2, (1_500, 2))
    X = X[:, :3]
    model, report = lt.methods.learn_model(np.hstack([X, wide]), "refined", "discrete")
    assert model.tree.n_hidden >= 1
    assert report.method == "refined"


# The door ---------------------------------------------------------------------------------------


def test_scores_by_name():
    _, table = sampled(lt.simulate.latent_class(5), 500)
    bic = penalty_of("bic", as_sample(table))
    assert bic.per_parameter == pytest.approx(0.5 * np.log(500))
    assert penalty_of(0.5, as_sample(table)) == bic.scaled(0.5)
    assert penalty_of("aic", as_sample(table)).per_parameter == 1.0
    assert penalty_of("ebic", as_sample(table)).per_inner == pytest.approx(np.log(5))
    for wrong in ("bayes", -1.0, True):
        with pytest.raises(ModelError, match="criterion is"):
            penalty_of(wrong, as_sample(table))


def test_the_penalty_may_be_chosen_by_cross_validation():
    truth, table = sampled(lt.simulate.double_star(6), 400)
    model, report = lt.search.refine(truth.tree, table, criterion="cv", random_state=1)
    [note] = report.notes
    assert "cross-validation chose" in note
    chosen = next(m for m in (0.3, 0.5, 1.0) if f"chose {m:g} " in note)
    cost = penalty_of(chosen, as_sample(table)).per_parameter * model.n_parameters
    assert report.score == pytest.approx(report.log_likelihood - cost)
    with pytest.raises(ModelError, match="at least 8 rows"):
        lt.search.refine(truth.tree, np.eye(6, dtype=int), "discrete", criterion="cv")


def test_the_estimator_refines_and_says_so(capsys):
    truth, table = sampled(lt.simulate.double_star(8), 2_000)
    X = np.array(table.values)
    found = lt.LatentTree("refined", "discrete", start="chow_liu", max_states=2, verbose=1).fit(X)
    assert robinson_foulds(found.tree_, truth.tree) == 0
    assert "score -" in capsys.readouterr().err
    assert found.report_.score == pytest.approx(found.bic(X) / -2)
    strict = lt.LatentTree("refined", "discrete", criterion="ebic", n_hidden=1).fit(X)
    assert strict.n_hidden_ == 1


def test_lengths_are_information_distances():
    _, table = sampled(lt.simulate.double_star(8), 1_000)
    model, _ = lt.search.refine(lt.structure.mutual_information_tree(table), table, max_states=2)
    assert model.tree.length == pytest.approx(model.distance_tree().length)


def test_what_cannot_be_refined():
    tree = lt.simulate.latent_class(4)
    X = np.random.default_rng(0).integers(0, 2, (50, 4))
    with pytest.raises(ModelError, match="symmetric"):
        lt.search.refine(tree, X, "symmetric")
    with pytest.raises(ModelError, match="max_states is 1"):
        lt.search.refine(tree, X, "discrete", max_states=1)
    with pytest.raises(ModelError, match="Gaussian variables have no states"):
        lt.search.refine(tree, np.random.default_rng(0).normal(size=(50, 4)), max_states=2)
    _, table = sampled(lt.simulate.random_latent_tree(8, 2), 400)
    with pytest.raises(ModelError, match="start is 'lcm'"):
        lt.methods.learn_model(table, "refined", "discrete", start="lcm")


def test_several_starts_give_the_best_of_them():
    _, table = sampled(lt.simulate.random_latent_tree(8, 2), 400)
    options = {"caution": 0.0}
    each = [lt.search.refined(table, start=name, **options).report.score for name in ("nj", "clrg")]
    both = lt.search.refined(table, start=["nj", "clrg"], **options).report.score
    assert both == pytest.approx(max(each))


# Where a search starts --------------------------------------------------------------------------


def test_hidden_variables_start_with_the_number_of_states_of_the_highest_bic():
    """Columns have 2 to 6 states, most of them 2; the hidden variables behind them have four."""
    tree = lt.simulate.double_star(12)
    states = np.array([2, 2, 2, 6, 5, 4, 2, 2, 2, 6, 5, 4, 4, 4])
    truth = lt.simulate.random_discrete_model(tree, states, 3, (0.5, 0.9))
    table = as_table(truth.sample(4_000, 1), schema=truth.schema)
    sample = as_sample(table)
    bic = {k: lt.fit_parameters(tree, table, n_states=k).report.bic_score for k in (2, 3, 4, 5)}
    assert max(bic, key=lambda k: bic[k]) == 4
    fitted, other = first_fits([tree, lt.simulate.latent_class(12)], sample, None, 0)
    assert other.model.n_states[-1] == 4
    assert fitted.model.n_states[-2:].tolist() == [4, 4]
    assert fitted.report.bic_score == pytest.approx(bic[4], abs=5.0)
    assert first_fits([tree], sample, 3, 0)[0].model.n_states[-2:].tolist() == [3, 3]


def test_numbers_of_states_go_down_where_columns_have_more():
    truth = lt.simulate.random_discrete_model(
        lt.simulate.latent_class(6), [5] * 6 + [2], 0, (0.5, 0.9)
    )
    table = as_table(truth.sample(2_000, 1), schema=truth.schema)
    [fitted] = first_fits([truth.tree], as_sample(table), None, 0)
    assert fitted.model.n_states[-1] == 2


def test_columns_of_more_states_than_the_hidden_variables_start_from_canonical_correlations():
    """Joint tables of four states behind two are nearly singular: their determinants are noise."""
    tree = lt.simulate.random_latent_tree(16, 0)
    states = np.where(np.arange(tree.n_nodes) < 16, 4, 2)
    truth = lt.simulate.random_discrete_model(tree, states, 1)
    table = as_table(truth.sample(3_000, 2), schema=truth.schema)
    sample = as_sample(table)
    assert sample.other_distances is not None
    near, far = (
        robinson_foulds(lt.structure.learn_structure(distances, "clnj"), tree)
        for distances in (sample.other_distances, sample.distances)
    )
    assert near < far
    found = lt.search.refined(table, random_state=0)
    assert robinson_foulds(found.model.tree, tree) <= near


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_canonical_distances_are_those_of_mixed_columns(missing):
    truth = lt.simulate.random_discrete_model(lt.simulate.latent_class(5), 3, 0)
    codes = truth.sample(400, 1).astype(float)
    codes[np.random.default_rng(2).random(codes.shape) < missing] = np.nan
    names = truth.schema.names
    coded = as_sample(lt.as_table(codes, "discrete"))
    kinds = ("category",) * 5
    mixed = Table(codes, Schema(names, "mixed", ((0, 1, 2),) * 5, kinds))
    assert coded.other_distances is not None
    found = coded.other_distances.block(slice(None), slice(None))
    expected = lt.information_distances(mixed).block(slice(None), slice(None))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_other_distances_are_known_of_columns_of_one_number_of_states_only():
    rng = np.random.default_rng(0)
    assert as_sample(rng.integers(0, 2, (50, 3)), "discrete").other_distances is None
    uneven = np.column_stack([rng.integers(0, k, 60) for k in (2, 3, 4)])
    assert as_sample(uneven, "discrete").other_distances is None
    assert as_sample(rng.normal(size=(50, 3))).other_distances is None

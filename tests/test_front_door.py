"""What a user is told and given at the front door: nothing false, nothing lost."""

from __future__ import annotations

import time
import warnings
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import rel_entr

import latentree as lt
from latentree import simulate
from latentree.errors import DataWarning, ModelError
from latentree.methods import learn_model
from latentree.structure import independent_groups

KINDS = ("real", "count", "ordered", "category", "binary")


def column(kind, z, rng):
    """A column of a kind that shows a normal variable."""
    if kind == "real":
        return np.round(10 + 3 * z, 2)
    if kind == "count":
        return rng.poisson(np.exp(1.2 + 0.9 * z))
    if kind == "ordered":
        return pd.Categorical(np.digitize(z, [-1.0, -0.3, 0.4, 1.2]), ordered=True)
    if kind == "category":
        odds = np.stack([0 * z, 2.5 * z, 0.5 - 2.5 * z]) + rng.gumbel(size=(3, z.size))
        return np.array(["a", "b", "c"])[odds.argmax(axis=0)]
    return np.where(z + 0.3 * rng.standard_normal(z.size) > 0, "yes", "no")


def blocks(kinds, n, rng, rho=0.85):
    """A table of independent blocks, each with a normal factor behind its columns."""
    frame = {}
    for b, block in enumerate(kinds):
        factor = rng.standard_normal(n)
        for j, kind in enumerate(block):
            z = np.sqrt(rho) * factor + np.sqrt(1 - rho) * rng.standard_normal(n)
            frame[f"{kind}{b}{j}"] = column(kind, z, rng)
    return pd.DataFrame(frame)


def dependence(frame, a, b):
    """Cramér's V of two columns, numbers in four parts."""
    parts = []
    for name in (a, b):
        values = frame[name].astype(object)
        if name.startswith(("real", "count")):
            values = pd.qcut(values.astype(float), 4, labels=False, duplicates="drop")
        parts.append(values.astype(str).to_numpy())
    table = pd.crosstab(*parts).to_numpy()
    return np.sqrt(stats.chi2_contingency(table)[0] / table.sum() / (min(table.shape) - 1))


# Dependence is kept -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("hidden", ["states", "gaussian"])
@pytest.mark.parametrize("pair", list(combinations_with_replacement(KINDS, 2)), ids="-".join)
def test_a_pair_beside_a_block_stays_dependent(pair, hidden):
    rng = np.random.default_rng([KINDS.index(kind) for kind in pair])
    frame = blocks([pair, ("category", "binary", "category"), ("real",)], 300, rng)
    a, b = frame.columns[:2]
    learned = lt.LatentTree("clnj", hidden=hidden, random_state=0).fit(frame)
    drawn = pd.DataFrame(learned.model_.sample(2_000, 0), columns=frame.columns)
    assert dependence(drawn, a, b) > 0.6 * dependence(frame, a, b)


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
def test_one_number_of_a_pair_tells_the_other():
    rng = np.random.default_rng(0)
    frame = blocks([("category",) * 3], 600, rng)
    z = rng.standard_normal(600)
    frame["height"] = np.round(170 + 10 * z, 1)
    frame["weight"] = np.round(70 + 12 * (0.92 * z + 0.39 * rng.standard_normal(600)), 1)
    model = lt.LatentTree("clnj", random_state=0).fit(frame).model_
    assert model.conditional("weight", {"height": 190}).mean > 82
    pair = pd.DataFrame({"x": np.round(z, 2), "n": rng.poisson(np.exp(1 + 0.7 * z))})
    alone = lt.LatentTree(random_state=0).fit(pair)
    assert alone.tree_.n_edges == 2
    assert alone.model_.conditional("n", {"x": 2.0}).mean > 5


# What is said -----------------------------------------------------------------------------------


def said_by(call):
    """Messages of the warnings of a call, and what it returns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return [str(each.message) for each in caught if each.category is DataWarning], result


def test_nothing_found_is_a_warning_with_the_strongest_pair():
    X = np.random.default_rng(2).normal(size=(80, 5))
    said, learned = said_by(lambda: lt.LatentTree(random_state=0).fit(X))
    assert learned.tree_.n_edges == 0
    assert len(said) == 1
    assert "no dependence was found among the 5 variables" in said[0]
    r = np.corrcoef(X, rowvar=False) - np.eye(5)
    i, j = sorted(divmod(int(np.abs(r).argmax()), 5))
    assert f"'x{i}' and 'x{j}', has correlation {r[i, j]:.2f}" in said[0]
    assert said[0] in learned.report_.notes


@pytest.mark.parametrize("method", ["auto", "clnj", "reg_clnj", "lcm"])
def test_messages_are_of_the_final_tree_and_come_once(method):
    rng = np.random.default_rng(4)
    frame = blocks([("real", "count", "binary"), ("ordered", "ordered", "ordered")], 200, rng)
    said, learned = said_by(lambda: lt.LatentTree(method, random_state=0).fit(frame))
    n_parts = learned.tree_.roots.size
    apart = [text for text in said if "fall apart" in text or "no dependence" in text]
    assert len(apart) == (n_parts > 1)
    assert all(f"into {n_parts} blocks" in text for text in apart)
    assert not any("by bic (" in note for note in learned.report_.notes)


def test_what_a_search_leaves_out_is_not_said_to_be_independent():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(100)
    frame = pd.DataFrame({f"b{j}": column("binary", z, rng) for j in range(4)})
    odds = 0.5 * np.outer(np.arange(8) - 3.5, z) / 3.5 + rng.gumbel(size=(8, 100))
    frame["weak"] = np.array(list("abcdefgh"))[odds.argmax(axis=0)]
    said, learned = said_by(lambda: lt.LatentTree(random_state=0).fit(frame))
    assert independent_groups(lt.information_distances(frame)).max() == 0
    assert learned.tree_.roots.size == 2
    assert len(said) == 1
    assert "fall apart into 2 blocks (the smallest: 'weak')" in said[0]
    assert "worth its parameters" in said[0]


@pytest.mark.parametrize("shape", [(100, 51), (4_100, 49)])
def test_a_large_table_is_said_to_keep_normal_scales(shape):
    X = np.random.default_rng(0).normal(size=shape)
    X[:, 1:] += X[:, :1]
    notes = lt.LatentTree("clnj", random_state=0).fit(X).report_.notes
    assert any("ranks were not tried on so large a table" in note for note in notes)


def test_the_note_of_bins_is_of_numbers_only():
    answers = blocks([("ordered",) * 5], 150, np.random.default_rng(0))
    report = lt.LatentTree("refined", hidden="states", random_state=0).fit(answers).report_
    assert not any("binned" in note for note in report.notes)


def test_the_time_in_the_report_is_what_was_spent(monkeypatch):
    clock = iter(range(0, 1_000_000, 1_000))
    frame = blocks([("real", "count", "binary")], 100, np.random.default_rng(0))
    table = lt.as_table(frame)
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    assert learn_model(table, "clnj", random_state=0).report.seconds >= 1_000


# What is open is not cut ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [11, 12])
def test_consensus_keeps_what_it_leaves_open(seed):
    rng = np.random.default_rng(seed)
    truth = simulate.random_gaussian_model(simulate.hidden_markov(40), rng, (0.3, 0.8))
    learned = lt.LatentTree("consensus", family="gaussian", random_state=0)
    learned.fit(truth.sample(500, rng))
    assert learned.tree_.roots.size == 1
    assert learned.report_.bic_score < learn_model(truth.sample(500, 0), "clnj").report.bic_score


def test_what_the_test_finds_dependent_has_an_edge():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(80)
    frame = pd.DataFrame(
        {f"q{j}": column("ordered", 0.7 * z + 0.7 * rng.standard_normal(80), rng) for j in range(3)}
    )
    for method in ("clnj", "lcm", "refined", "bin"):
        learned = lt.LatentTree(method, hidden="states", random_state=0).fit(frame)
        assert learned.tree_.n_edges > 0, method


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("seed", [1, 5, 10])
def test_an_edge_stays_only_if_it_tells_more_than_chance(seed):
    """The best of P edges between independent columns gains t with P·Pr(½·χ² > t) = 1."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(60)
    frame = pd.DataFrame({name: z + 0.3 * rng.standard_normal(60) for name in "xy"}).round(2)
    frame["n"] = rng.poisson(np.exp(1 + 0.8 * z))
    frame["noise"] = np.array(list("pqrs"))[rng.integers(4, size=60)]
    model = lt.LatentTree(random_state=0).fit(frame).model_
    tree = model.tree
    x, y, n, noise = tree.components[:4]
    assert x == y == n
    if noise == x:
        pairs, above = tree.n_nodes * (tree.n_nodes - 1) / 2, int(tree.neighbors(3)[0])
        joint = model.joint(above, 3)
        apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        lost = len(frame) * rel_entr(joint, apart).sum()
        assert lost > 0.5 * stats.chi2.isf(1 / pairs, 3 * (len(joint) - 1))


def test_what_cannot_be_done_is_said():
    frame = blocks([("real", "count", "binary", "real")], 60, np.random.default_rng(0))
    tree = lt.Tree([-1, 0, 1, 2], names=list(frame))
    with pytest.raises(ModelError, match="not of Gaussian variables"):
        lt.search.refine(tree, frame, "copula")
    with pytest.raises(ModelError, match=r"^method is "):
        lt.LatentTree(method={}).fit(frame)


# Forms of a model -------------------------------------------------------------------------------


def questionnaire(n, m, rng):
    """Answers 1 … 5 to items in groups of six with a factor each."""
    factor = np.arange(m) // 6
    z = 0.5 * rng.standard_normal((n, 1)) + 0.87 * rng.standard_normal((n, factor[-1] + 1))
    y = 0.7 * z[:, factor] + 0.71 * rng.standard_normal((n, m))
    answers = 1.0 + np.digitize(y, [-1.2, -0.4, 0.3, 1.1])
    return pd.DataFrame(answers, columns=[f"q{j}" for j in range(m)])


def test_bic_chooses_gaussian_variables_behind_answers():
    frame = questionnaire(150, 12, np.random.default_rng(0))
    learned = lt.LatentTree(random_state=0).fit(frame)
    assert isinstance(learned.model_, lt.CopulaTreeModel)
    note = next(note for note in learned.report_.notes if "by BIC score" in note)
    assert f"Gaussian {learned.report_.bic_score:,.1f}" in note
    states = lt.LatentTree(hidden="states", random_state=0).fit(frame)
    assert isinstance(states.model_, lt.MixedTreeModel)
    assert states.report_.bic_score < learned.report_.bic_score


def test_bic_chooses_states_behind_classes_of_answers():
    # Of three classes the third is in the middle: no Gaussian variable has gaps between them.
    rng = np.random.default_rng(1)
    likely = np.array([[17, 1, 1, 1], [1, 1, 1, 17], [1, 9, 9, 1]]) / 20
    classes = rng.integers(0, 3, 600)
    rows = np.stack([[rng.choice(4, p=likely[c]) for c in classes] for _ in range(6)], axis=1)
    ordered = pd.CategoricalDtype(range(4), ordered=True)
    frame = pd.DataFrame(rows).rename(columns="q{}".format).astype(ordered)
    assert isinstance(lt.LatentTree("lcm", random_state=0).fit(frame).model_, lt.MixedTreeModel)


def test_bic_chooses_scales_of_real_columns():
    truth = simulate.random_gaussian_model(simulate.double_star(8), 0, (0.5, 0.8))
    X = truth.sample(400, 1)
    assert isinstance(lt.LatentTree().fit(X).model_, lt.GaussianTreeModel)
    skewed = lt.LatentTree().fit(np.exp(1.5 * X))
    assert isinstance(skewed.model_, lt.CopulaTreeModel)
    assert skewed.tree_.same_structure(truth.tree)
    for asked in ({"hidden": "normal"}, {"family": "gaussian"}):
        assert isinstance(lt.LatentTree(**asked).fit(np.exp(X)).model_, lt.GaussianTreeModel)


def test_bic_counts_all_parameters_in_every_family():
    X = simulate.random_gaussian_model(simulate.double_star(6), 0, (0.5, 0.8)).sample(300, 0)
    plain = lt.LatentTree("nj", family="gaussian").fit(X)
    tree = plain.tree_
    assert plain.model_.n_parameters == tree.n_edges + 2 * 6
    assert plain.model_.n_correlations == tree.n_edges
    behind = lt.fit_parameters(tree, X, "copula")
    assert behind.model.n_parameters == plain.model_.n_parameters
    assert behind.report.bic_score == pytest.approx(plain.report_.bic_score, abs=0.05)
    assert plain.bic(X) == pytest.approx(-2 * plain.report_.bic_score)

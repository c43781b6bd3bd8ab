"""Replicates from weights of rows, and what they say about a tree."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree.data import cut_table
from latentree.distances import Sample, as_sample
from latentree.errors import DataError, ModelError, TreeError
from latentree.structure import candidate_pairs, learn_structure
from latentree.support import _consensus_method, majority_tree, support_from
from latentree.support._draws import STRETCH, Draws
from latentree.support._replicates import _Source, by_distances, draws_of, of_replicates
from latentree.support._splits import split_disagreement
from latentree.tree import Tree
from strategies import trees


def gaussian_rows(n: int = 300, m: int = 10) -> np.ndarray:
    tree = lt.simulate.double_star(m)
    return np.asarray(lt.simulate.random_gaussian_model(tree, 0, (0.6, 0.8)).sample(n, 1))


def discrete_rows(n: int = 400, m: int = 6) -> np.ndarray:
    tree = lt.simulate.double_star(m)
    return np.asarray(lt.simulate.random_discrete_model(tree, 2, 0).sample(n, 1))


# Draws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 50, STRETCH, 2 * STRETCH + 77])
def test_draws_have_as_many_rows_and_do_not_depend_on_parts(n, weighted):
    own = np.random.default_rng(0).integers(0, 4, n).astype(float) + (n == 1)
    draws = Draws(7, n, own if weighted else None)
    whole = draws.of_rows(3, 0, n)
    assert whole.sum() == (own.sum() if weighted else n)
    if weighted:
        assert not whole[own == 0].any()
    cuts = [0, n // 3, n // 2, n]
    parts = [draws.of_rows(3, a, b) for a, b in pairwise(cuts) if b > a]
    assert np.array_equal(np.concatenate(parts), whole)
    assert n == 1 or not np.array_equal(whole, draws.of_rows(4, 0, n))


def test_draws_are_multinomial():
    own = np.array([1.0, 2.0, 0.0, 5.0])
    drawn = np.array([Draws(1, 4, own).of_rows(b, 0, 4) for b in range(4_000)])
    # Mean w_i, variance w_i·(1 − w_i/n); four standard errors.
    assert np.all(np.abs(drawn.mean(0) - own) <= 4 * np.sqrt(own / 4_000))
    assert np.allclose(drawn.var(0), own * (1 - own / 8), rtol=0.15)


@pytest.mark.parametrize(("n", "length"), [(10, 3), (12, 4), (5, 5), (7, 1)])
def test_blocks_are_runs_of_rows(n, length):
    for replicate in range(20):
        draws = Draws(0, n, None, length)
        weights = draws.of_rows(replicate, 0, n)
        n_blocks = -(-n // length)
        starts = draws._generator(replicate, 0).integers(0, n, n_blocks)
        lengths = [length] * (n_blocks - 1) + [n - (n_blocks - 1) * length]
        rows = [(s + i) % n for s, size in zip(starts, lengths, strict=True) for i in range(size)]
        assert np.array_equal(weights, np.bincount(rows, minlength=n))


def test_impossible_blocks_are_refused():
    with pytest.raises(DataError, match="block_length is 11"):
        Draws(0, 10, None, 11)


# Replicates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [gaussian_rows(), discrete_rows()], ids=["gaussian", "discrete"])
def test_a_replicate_is_the_table_of_its_rows(rows):
    sample = as_sample(rows)
    draws = draws_of(sample, 5, None)
    made = _Source(sample, draws).replicate(2)
    weights = draws.of_rows(2, 0, draws.n_rows).astype(int)
    distinct = sample.statistics.rows
    source = rows if distinct is None or distinct.codes is None else distinct.codes
    drawn = lt.as_table(np.repeat(source, weights, axis=0), schema=sample.schema)
    expected = Sample(cut_table(drawn))
    np.testing.assert_allclose(made.distances.dense(), expected.distances.dense(), atol=1e-9)
    assert made.total_weight == len(rows)


def test_data_in_parts_and_on_threads_has_the_same_replicates(monkeypatch, tmp_path):
    import csv

    rows = gaussian_rows(200, 6)
    tree = lt.structure.recursive_grouping(lt.information_distances(rows))
    monkeypatch.setenv("LATENTREE_PART_CELLS", "384")  # 64 rows a part
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([tree.names[:6], *rows.tolist()])
    found = {}
    for threads in ("1", "2"):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", threads)
        for name, data in (("memory", rows), ("file", lt.as_parts(str(path)))):
            found[threads, name] = lt.bootstrap_support(tree, data, "rg", 8, random_state=1)
    first = found["1", "memory"]
    for other in found.values():
        for one, two in zip(first.replicates, other.replicates, strict=True):
            assert np.array_equal(one.parent, two.parent)
            assert np.array_equal(one.length, two.length)


def test_replicates_of_many_variables_look_at_near_pairs_only():
    truth = lt.simulate.random_latent_tree(2_050, np.random.default_rng(6))
    X = lt.simulate.random_gaussian_model(truth, 6, (0.6, 0.9)).sample(600, 7)
    sample = as_sample(X)
    tree = lt.structure.chow_liu(sample.distances)
    found = lt.bootstrap_support(tree, X, "chow_liu", n_replicates=3, random_state=1)
    learner = by_distances("chow_liu", tree.components[:2_050])
    draws = draws_of(sample, int(np.random.default_rng(1).integers(2**63)), None)
    near = candidate_pairs(sample.distances, 100)
    shares = []
    for candidates in (near, None):
        trees = of_replicates(sample, [learner], 3, draws, candidates=candidates)
        support = support_from(tree, [one for (one,) in trees])
        shares.append(np.array(support.edges["share"], float))
    np.testing.assert_array_equal(found.edges["share"], shares[0])
    assert np.nanmean(np.abs(shares[0] - shares[1])) < 0.02


def test_an_interrupt_gives_what_is_done():
    rows = gaussian_rows(100, 6)

    def stop(done: int, total: int, message: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    tree = lt.simulate.double_star(6)
    found = lt.bootstrap_support(tree, rows, "nj", 20, random_state=0, progress=stop)
    whole = lt.bootstrap_support(tree, rows, "nj", 3, random_state=0)
    assert found.n_replicates == 3
    assert found.note == "stopped after 3 of 20"
    assert np.array_equal(found.edge_share, whole.edge_share, equal_nan=True)


@pytest.mark.parametrize("method", ["reg_clrg", "refined", "bin", "lcm", "consensus", "posterior"])
def test_methods_that_search_have_support(method):
    rows = gaussian_rows(200, 6)
    tree = lt.simulate.double_star(6)
    found = lt.bootstrap_support(tree, rows, method, 2, random_state=0)
    assert found.n_replicates == 2
    assert found.method == ("posterior" if method == "consensus" else method,)


def test_components_stay_apart():
    rows = np.hstack([gaussian_rows(2_000, 6), gaussian_rows(2_000, 6)[::-1]])
    parts = lt.simulate.double_star(6)
    names = [f"x{j}" for j in range(12)]
    edges = [*parts.edges.tolist()]
    number = {v: v for v in range(6)} | {6: 12, 7: 13}
    other = {v: v + 6 for v in range(6)} | {6: 14, 7: 15}
    both = [(named[a], named[b]) for named in (number, other) for a, b in edges]
    forest = Tree.from_edges(both, 12, names=names)
    found = lt.bootstrap_support(forest, rows, "rg", 6, random_state=0)
    for each in found.replicates:
        assert np.array_equal(each.components[:12], np.repeat([0, 1], 6))
    assert found.consensus().same_structure(forest)


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("method", ["refined", "reg_clrg"])
def test_searches_of_independent_variables_find_none_again(method):
    rows = np.random.default_rng(1).normal(size=(100, 8))
    found = lt.LatentTree(method, n_bootstrap=3, random_state=0).fit(rows)
    assert found.tree_.n_edges == 0
    assert found.support_.n_hidden == {0: 3}
    if method == "refined":
        return  # it may link groups
    # Two groups that hang together each, but not with each other.
    two = np.hstack([gaussian_rows(150, 6), gaussian_rows(150, 6)[::-1]])
    tree = Tree.from_edges([(j, 12 + j // 6) for j in range(12)], 12)
    support = lt.bootstrap_support(tree, two, method, 2, random_state=0)
    for each in support.replicates:
        assert each.components[0] != each.components[6]


@pytest.mark.filterwarnings("ignore::latentree.errors.DataWarning")
@pytest.mark.parametrize("method", ["clnj", "posterior"])
def test_numbers_that_hang_from_hidden_variables_are_found_again(method):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 2))
    frame = pd.DataFrame({"height": z[:, 0], "mass": 0.9 * z[:, 0] + 0.4 * rng.normal(size=300)})
    for name in "abc":
        frame[name] = np.where(z[:, 1] + 0.5 * rng.normal(size=300) > 0, "u", "v")
    model = lt.LatentTree("clnj", random_state=0).fit(frame.round(2)).model_
    support = lt.bootstrap_support(model, frame.round(2), method, 5, random_state=0)
    assert support.hidden["share"] == [1.0, 1.0]
    assert support.variables["share"] == [1.0] * 5


def test_columns_are_matched_by_name():
    import pandas as pd

    rows = pd.DataFrame(gaussian_rows(200, 6), columns=list("abcdef"))
    tree = lt.simulate.double_star(6).renamed(list("abcdef"))
    one = lt.bootstrap_support(tree, rows, "rg", 5, random_state=0)
    two = lt.bootstrap_support(tree, rows[list("fedcba")], "rg", 5, random_state=0)
    assert one.edges == two.edges
    with pytest.raises(DataError, match="'g' is in the data only"):
        lt.bootstrap_support(tree, rows.assign(g=rows["a"] ** 2), "rg", 5)


def test_bad_arguments_are_refused():
    rows, tree = gaussian_rows(50, 6), lt.simulate.double_star(6)
    with pytest.raises(ModelError, match="method is 'up'"):
        lt.bootstrap_support(tree, rows, "up")
    with pytest.raises(DataError, match="only their sums are known"):
        lt.bootstrap_support(tree, as_sample(rows).statistics, "nj", 3)
    for wrong in (0, 2.5, "10"):
        with pytest.raises(DataError, match=f"n_replicates is {wrong!r}"):
            lt.bootstrap_support(tree, rows, "nj", wrong)
        with pytest.raises(DataError, match=f"n_replicates is {wrong!r}"):
            lt.bootstrap_support(tree, rows, "posterior", wrong)
    with pytest.raises(ModelError, match="nj takes no option 'depth'"):
        lt.bootstrap_support(tree, rows, "nj", 2, depth=3)
    with pytest.raises(DataError, match="posterior draws none"):
        lt.bootstrap_support(tree, rows, "posterior", 2, block_length=3)
    with pytest.raises(ModelError, match="consensus goes with no other"):
        lt.bootstrap_support(tree, rows, ["consensus", "nj"], 2)
    with pytest.raises(TreeError, match="at least one tree"):
        majority_tree([])
    with pytest.raises(TreeError, match="same variables"):
        majority_tree([tree, lt.simulate.double_star(8)])
    for wrong in (-2, "a"):
        with pytest.raises(ModelError, match="n_bootstrap is"):
            lt.LatentTree("nj", n_bootstrap=wrong).fit(rows)
    with pytest.raises(TreeError, match=r"threshold is 0\.2"):
        lt.bootstrap_support(tree, rows, "nj", 2).consensus(0.2)


# Shares -----------------------------------------------------------------------------------------


def test_groups_of_hidden_nodes_and_neighbors_of_variables():
    tree = lt.simulate.double_star(6)  # h1: x0 x1 x2, h2: x3 x4 x5
    moved = Tree.from_edges([(0, 6), (1, 6), (6, 7), (2, 7), (3, 7), (4, 7), (5, 7)], 6)
    star = lt.simulate.latent_class(6)
    found = support_from(tree, [tree, moved, star])
    # {0, 1} of {0, 1, 2} and {2, 3, 4, 5} of {3, 4, 5} share more than half; {0 … 5} of neither.
    assert found.hidden_share.tolist() == [2 / 3, 2 / 3]
    assert found.variable_share.tolist() == [2 / 3, 2 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3]
    assert found.edges["share"] == [1 / 3]
    assert found.edges["transfer"] == [pytest.approx(1 - (0 + 1 + 2) / 3 / 2)]
    assert found.n_hidden_distribution == {1: 1 / 3, 2: 2 / 3}
    assert found.doubtful.tolist() == [False, False]


def test_inner_hidden_nodes_are_there_if_all_their_splits_are():
    tree = lt.simulate.complete_tree(3, 4)
    found = support_from(tree, [tree, lt.simulate.latent_class(tree.n_observed)])
    inner = [not (tree.neighbors(v) < tree.n_observed).any() for v in tree.hidden]
    assert any(inner)
    assert found.hidden_share[inner].tolist() == [0.5] * sum(inner)


@given(trees())
def test_a_tree_has_full_support_of_itself(tree):
    found = support_from(tree, [tree, tree])
    for shares in (found.edge_share, found.edge_transfer, found.variable_share):
        assert (shares[~np.isnan(shares)] == 1.0).all()
    assert found.consensus().same_structure(tree.renamed(tree.names[: tree.n_observed]))


# Consensus --------------------------------------------------------------------------------------


def replicates_of(seed: int) -> list[Tree]:
    """Trees of a few rows each, which disagree, some with observed inner nodes."""
    rng = np.random.default_rng(seed)
    tree = lt.simulate.random_latent_tree(7, rng, 0.3)
    model = lt.simulate.random_gaussian_model(tree, rng, (0.5, 0.9))
    one = np.zeros(7, int)
    return [
        learn_structure(
            lt.distances.Distances(d.names, d.n_samples, d.family, d.source, one),
            "nj",
            threshold=0.4,
        )
        for d in (lt.information_distances(model.sample(40, rng)) for _ in range(7))
    ]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_majority_tree_has_the_majority_splits(seed):
    found = replicates_of(seed)
    counts = Counter(split for tree in found for split in tree.bipartitions())
    wanted = {split for split, count in counts.items() if count > len(found) / 2}
    consensus = majority_tree(found)
    splits = consensus.bipartitions()
    assert wanted <= splits
    # Only edges of leaves may be added, where several variables would be one node.
    assert all(min(map(len, split)) == 1 for split in splits - wanted)
    if splits == wanted:
        mean = np.mean([lt.metrics.robinson_foulds(consensus, tree) for tree in found])
        for tree in found:
            own = np.mean([lt.metrics.robinson_foulds(tree, other) for other in found])
            assert mean <= own + 1e-12


@pytest.mark.parametrize("what", ["mixture", "estimator"])
def test_support_is_of_one_tree(what):
    rows = gaussian_rows(100, 6)
    model = lt.LatentTree("rg").fit(rows).model_
    odd = (
        lt.models.TreeMixture([model, model], [0.5, 0.5]) if what == "mixture" else lt.LatentTree()
    )
    with pytest.raises(ModelError, match="support is of"):
        lt.bootstrap_support(odd, rows, "rg", 2)


def test_lengths_are_means():
    a = lt.simulate.double_star(4).with_lengths([1, 1, 1, 1, 0, 0.5])
    b = lt.simulate.double_star(4).with_lengths([3, 1, 1, 1, 0, 1.5])
    consensus = majority_tree([a, b])
    assert sorted(consensus.path_lengths()[0]) == [0.0, 3.0, 4.0, 4.0]


def test_the_posterior_gives_a_tree_support():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.7, 0.8))
    sample = as_sample(truth.sample(500, 1))
    found = lt.bootstrap_support(truth, sample, "posterior", 40, random_state=0)
    again = lt.bootstrap_support(truth, sample, "posterior", 40, random_state=0)
    assert found.edges == again.edges
    assert np.nanmin(found.edge_share) > 0.9
    assert found.origin == "40 trees drawn from their posterior"
    assert found.measure == "probability"
    np.testing.assert_array_equal(found.edge_support, found.edge_share)
    # Rows are not needed, only what they add up to.
    of_sums = lt.bootstrap_support(truth, sample.statistics, "posterior", 40, random_state=0)
    assert of_sums.edges == found.edges
    stopped = lt.bootstrap_support(truth, sample, "posterior", 40, time_limit=0.0)
    assert stopped.note == f"stopped after {stopped.n_replicates} of 40"
    with pytest.raises(ModelError, match="posterior goes with no other"):
        lt.bootstrap_support(truth, sample, ["posterior", "rg"], 4)


def test_the_consensus_of_many_variables_is_of_their_posterior():
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(130), 0, (0.6, 0.8))
    sample = as_sample(truth.sample(1_000, 1))
    tree = _consensus_method.consensus_tree(sample, 0, 6)
    assert tree.same_structure(truth.tree)
    found = lt.bootstrap_support(truth, sample, "consensus", 2, random_state=0)
    assert found.method == ("posterior",)


def test_chains_that_do_not_agree_say_so():
    split = lt.Tree([4, 4, 5, 5, -1, 4], n_observed=4)
    other = lt.Tree([4, 5, 4, 5, -1, 4], n_observed=4)
    halves = np.arange(4), np.arange(4, 8)
    assert split_disagreement(halves, [split] * 8) == 0.0
    assert split_disagreement(halves, [split] * 4 + [other] * 4) == 1.0
    # Half of one chain and none of the other: both splits differ by one half.
    assert split_disagreement(halves, [split] * 6 + [other] * 2) == 0.5
    assert _consensus_method.notes_on([split] * 8) == ()
    (note,) = _consensus_method.notes_on([split] * 4 + [other] * 4)
    assert "do not agree" in note


@pytest.mark.parametrize("seed", [2, 4])
def test_the_consensus_of_a_chain_is_nearer_than_learners_and_the_star(seed):
    tree = lt.simulate.hidden_markov(30)
    model = lt.simulate.random_gaussian_model(tree, seed, (0.3, 0.7))
    sample = as_sample(model.sample(1_500, 1))
    found = lt.metrics.robinson_foulds(_consensus_method.consensus_tree(sample, 0, 40), tree)
    others = [learn_structure(sample.distances, name) for name in ("rg", "clnj")]
    for other in (*others, lt.simulate.latent_class(30)):
        assert found < lt.metrics.robinson_foulds(other, tree) - 5

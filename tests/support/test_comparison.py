"""What two trees share, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latentree as lt
from latentree.cli import main
from latentree.errors import DataError
from latentree.support import compare_trees

seeds = st.integers(0, 10_000)


def drawn(seed: int, m: int = 12) -> lt.Tree:
    return lt.simulate.random_latent_tree(m, np.random.default_rng(seed), inner_share=0.2)


@settings(max_examples=40, deadline=None)
@given(seeds, seeds)
def test_shared_splits_are_those_of_both(one, other):
    a, b = drawn(one), drawn(other)
    found = compare_trees(a, b)
    splits, others = a.bipartitions(), b.bipartitions()
    assert found.first_shared.sum() == found.second_shared.sum() == len(splits & others)
    assert found.robinson_foulds == len(splits ^ others)
    large = [split for split in splits & others if min(map(len, split)) > 1]
    assert found.groups[2] >= len(large)  # an observed node on the cut counts for either side
    assert len(set(found.same_hidden[found.same_hidden >= 0])) == (found.same_hidden >= 0).sum()


@settings(max_examples=30, deadline=None)
@given(seeds, st.randoms(use_true_random=False))
def test_numbers_and_orders_do_not_matter(seed, random):
    a, b = drawn(seed), drawn(seed + 1)
    assert compare_trees(a, a).moved == ()
    assert compare_trees(a, a).robinson_foulds == 0
    text = lt.formats.to_newick(b.rerooted(random.randrange(b.n_nodes)))
    order = list(b.names[: b.n_observed])
    random.shuffle(order)
    again = lt.formats.from_newick(text, observed=order)
    assert compare_trees(a, again).as_dict() == compare_trees(a, b).as_dict()


def test_a_variable_that_moves_is_found():
    a = lt.Tree([6, 6, 6, 7, 7, 7, 7, -1], n_observed=6)
    b = lt.Tree([6, 6, 7, 7, 7, 7, 7, -1], n_observed=6)
    assert compare_trees(a, b).moved == ("x2",)


def test_the_command_and_the_page(tmp_path, capsys):
    a, b = lt.simulate.double_star(8), lt.simulate.latent_class(8)
    for name, tree in {"a": a, "b": b}.items():
        lt.simulate.random_gaussian_model(tree, 0).save(tmp_path / f"{name}.json")
    lt.formats.export(b, tmp_path / "b.nwk")
    one, two, page = (str(tmp_path / name) for name in ("a.json", "b.json", "page.html"))
    assert main(["compare-trees", one, two, "--html", page]) == 0
    said = capsys.readouterr().out
    assert "Robinson-Foulds distance 1" in said
    assert "4 variables moved" in said
    assert '"robinson_foulds":1' in (tmp_path / "page.html").read_text("utf-8")
    assert main(["compare-trees", one, str(tmp_path / "b.nwk"), "--json"]) == 0
    assert '"robinson_foulds": 1' in capsys.readouterr().out
    assert main(["compare-trees", one, str(tmp_path / "b.nwk"), "--html", page]) == 1
    assert "without parameters" in capsys.readouterr().err


def test_what_does_not_go_with_two_models_is_refused(tmp_path):
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0)
    with pytest.raises(DataError, match="2 trees need as many names, not 3"):
        lt.write_explorer([model, model], tmp_path / "x.html", names=[{"h1": "mood"}] * 3)
    with pytest.raises(lt.errors.ModelError, match="not 3"):
        lt.write_explorer([model] * 3, tmp_path / "x.html")

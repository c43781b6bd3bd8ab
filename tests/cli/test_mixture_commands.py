"""Mixtures of trees at the command line."""

from __future__ import annotations

import json

import latentree as lt
from latentree.data import write_table


def test_a_mixture_is_learned_shown_and_used(run, tmp_path):
    truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.6, 0.8))
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    write_table(str(data), truth.schema.names, truth.sample(120, 0))
    code, out, _ = run("learn", data, "--method", "clrg", "--trees", 2, "--out", model,
                       "--html", tmp_path / "learned.html")  # fmt: skip
    assert code == 0
    assert '"weights"' in (tmp_path / "learned.html").read_text("utf-8")
    assert "A mixture of 2 trees; the largest:" in out
    code, out, _ = run("show", model, "--component", 1)
    assert code == 0
    assert "Tree 1 of 0 … 1" in out
    code, out, _ = run("show", model, "--json")
    assert sum(json.loads(out)["weights"]) > 0.999
    for command in (
        ["infer", model, data, "--out", tmp_path / "hidden.csv"],
        ["predict", model, data, "--column", "x0", "--out", tmp_path / "x0.csv"],
        ["explore", model, tmp_path / "page.html", "--component", 0],
        ["explore", model, tmp_path / "all.html", "--data", data, "--rows"],
        ["export", model, tmp_path / "tree.nwk", "--component", 1],
    ):
        code, _, err = run(*command)
        assert code == 0, err
    assert '"weights"' not in (tmp_path / "page.html").read_text("utf-8")
    assert '"weights"' in (tmp_path / "all.html").read_text("utf-8")
    header = (tmp_path / "hidden.csv").read_text().splitlines()[0]
    assert header.startswith("tree=0,tree=1")
    code, _, err = run("show", model, "--component", 2)
    assert code != 0
    assert "no component 2" in err
    code, _, err = run("learn", data, "--trees", "few")
    assert code != 0
    assert "--trees few: use a whole number ≥ 1 or auto" in err
    assert run("support", model, data)[0] != 0

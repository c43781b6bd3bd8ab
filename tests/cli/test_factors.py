"""Hidden Gaussians on the command line: learn, show, sample, and the page."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import latentree as lt
from latentree.inference import RankMargin, Thresholds


@pytest.fixture
def survey(tmp_path):
    tree = lt.simulate.double_star(6)
    truth = lt.CopulaTreeModel(tree, [0.8] * 8, [Thresholds([-0.8, 0.1, 1.0])] * 6)
    rows = 1 + truth.sample(300, 0).astype(int)
    path = tmp_path / "survey.csv"
    text = [",".join("abcdef"), *(",".join(map(str, row)) for row in rows.tolist())]
    path.write_text("\n".join(text) + "\n")
    return path


def test_learn_and_show_what_factor_analysts_read(run, survey, tmp_path):
    model = tmp_path / "model.json"
    assert run("learn", survey, "--hidden", "gaussian", "--out", model)[0] == 0
    text = run("show", model)[1]
    for word in ("Loading", "Communality", "Thresholds", "Reliability"):
        assert word in text
    facts = json.loads(run("show", model, "--json")[1])
    assert facts["family"] == "copula"
    assert len(facts["loadings"]["variable"]) == 6
    assert len(facts["thresholds"]["threshold"]) == 18
    assert all(0 < each < 1 for each in facts["factors"]["reliability"])


def test_show_says_how_well_a_model_fits(run, survey, tmp_path):
    model = tmp_path / "model.json"
    run("learn", survey, "--hidden", "gaussian", "--out", model)
    text = run("show", model, "--fit", survey)[1]
    for word in ("Fit: χ²", "CFI", "TLI", "RMSEA", "90 % interval", "SRMR"):
        assert word in text
    assert json.loads(run("show", model, "--fit", survey, "--json")[1])["fit"]["srmr"] < 0.1
    states = tmp_path / "states.json"
    run("learn", survey, "--hidden", "states", "--out", states)
    code, _, err = run("show", states, "--fit", survey)
    assert (code, "models with Gaussian variables" in err) == (1, True)


def test_many_factors_are_shown_with_their_neighbors(run, tmp_path):
    tree = lt.simulate.hidden_markov(12)
    model = lt.CopulaTreeModel(tree, [0.8] * tree.n_nodes, [Thresholds([0.0])] * 12)
    model.save(tmp_path / "model.json")
    text = run("show", tmp_path / "model.json")[1]
    lines = text[text.index("Factor  Reliability") :].splitlines()
    assert max(map(len, lines[: tree.n_hidden + 2])) <= 80
    factors = model.factors()
    names = {v: tree.names[v] for v in tree.hidden.tolist()}
    for line, (node, name) in zip(lines[2:], names.items(), strict=False):
        assert line.split()[0] == name
        for other in tree.neighbors(node).tolist():
            if other in names:
                place = factors["factor"].index(name)
                assert f"{names[other]} {factors[names[other]][place]:.2f}" in line


def test_scores_come_with_their_standard_errors(run, survey, tmp_path):
    model, out = tmp_path / "model.json", tmp_path / "scores.csv"
    run("learn", survey, "--hidden", "gaussian", "-m", "nj", "--out", model)
    assert run("infer", model, survey, "--errors", "--out", out)[0] == 0
    found, rows = pd.read_csv(out), pd.read_csv(survey)
    hidden = lt.load(model).tree.n_hidden
    names = list(found)
    assert names[hidden:] == [f"{name} error" for name in names[:hidden]]
    mean, variance = lt.load(model).posterior(rows)
    assert found.to_numpy() == pytest.approx(np.hstack([mean, variance**0.5]))
    run("learn", survey, "-m", "lcm", "--hidden", "states", "--out", model)
    code, _, text = run("infer", model, survey, "--errors")
    assert code != 0
    assert "probabilities, not standard errors" in text


def test_compare_says_what_should_be_hidden(run, survey):
    hidden = ("--hidden", "gaussian", "--hidden", "states", "--hidden", "raw")
    code, text, _ = run("compare", survey, "--methods", "nj", "--test-fraction", "0.3", *hidden)
    assert code == 0
    for row in ("nj, gaussian", "nj, states", "nj, raw"):
        assert row in text
    assert "failed" not in text
    assert run("compare", survey, "--hidden", "both")[0] != 0


def test_hidden_is_a_kind_and_n_hidden_a_number(run, survey):
    assert run("learn", survey, "--hidden", "both")[0] != 0
    code, _, err = run("learn", survey, "-m", "reg_clrg", "--hidden", "1")
    assert code == 2
    assert "--hidden 1: use states, gaussian, ranks or normal" in err
    assert run("learn", survey, "-m", "reg_clrg", "--n-hidden", "1")[0] == 0
    for kind in ("ranks", "normal"):
        assert run("learn", survey, "-m", "nj", "--hidden", kind)[0] == 0


def test_the_page_has_the_margins_of_columns(tmp_path):
    star = lt.Tree([3, 3, 3, -1], n_observed=3)
    counts = RankMargin([0.5, 1.5], [0.0, 1.0], ((0.0, 0.0), (1.0, 0.0)), 1.0, "count")
    model = lt.CopulaTreeModel(
        star, [0.8, 0.7, 0.6, 0], [Thresholds([0.0]), Thresholds([-1.0, 1.0]), counts],
        labels=[["no", "yes"], [1, 2, 3], ()],
    )  # fmt: skip
    lt.write_explorer(model, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert '"thresholds"' in text


def test_the_page_calls_factors_as_the_command_line_does(tmp_path):
    star = lt.Tree([4, 4, 4, 4, -1], n_observed=4)
    # One yes and a thousand noes tell little of what is behind them.
    margins = [Thresholds([0.0]), Thresholds([3.1]), Thresholds([-1, 0, 1]), Thresholds([0.5])]
    model = lt.CopulaTreeModel(star, [0.6, 0.8, 0.7, 0.5, 0], margins)
    lt.write_explorer(model, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert lt.models.captions(model) != lt.models.captions(model.grid)
    assert f'"captions":{{"4":"{lt.models.captions(model)["h1"]}"}}' in text

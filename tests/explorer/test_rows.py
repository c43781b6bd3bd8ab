"""Rows in the page: the right ones are listed, and any can be supposed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.explorer.pages import discrete, discrete_mixture, gaussian, hidden_of, mixed, show
from tests.explorer.test_payload import numbers

from latentree import CopulaTreeModel, Tree, as_table
from latentree.errors import DataError
from latentree.explorer import write_explorer
from latentree.explorer._row_content import RowChoice, rows_contents
from latentree.inference import Thresholds

STATE = "window.latentreeExplorer.state"


def with_gaps(model, n: int, seed: int = 0):
    """Rows of a model with some missing cells, as its own table."""
    rng = np.random.default_rng(seed)
    cells = np.asarray(model.sample(n, seed), object)
    cells[rng.uniform(size=cells.shape) < 0.1] = None
    return as_table(cells.tolist(), schema=model.schema, names=model.schema.names)


@pytest.mark.parametrize("model", [gaussian(40), discrete(40), mixed()], ids=str)
def test_lists_hold_the_rows_with_the_greatest_posteriors(model):
    table = with_gaps(model, 300)
    [found] = rows_contents([model], table, RowChoice())
    lists = found["rowLists"]
    starts = numbers(lists["starts"])
    rows, values = numbers(lists["rows"]), numbers(lists["values"])
    kept = numbers(found["rows"]["kept"])
    posterior = model.posterior(table)
    is_gaussian = model.schema.family == "gaussian"
    wanted = posterior.mean if is_gaussian else posterior.probabilities
    assert len(starts) == 2 * wanted.shape[1] + 1
    for k, column in enumerate(wanted.T):
        for side in (0, 1):
            own = slice(starts[2 * k + side], starts[2 * k + side + 1])
            listed = [kept[i] for i in rows[own]]
            assert values[own] == pytest.approx(column[listed].tolist(), abs=1e-12)
            best = _wanted(table, column, side, is_gaussian)
            assert values[own] == pytest.approx(column[best].tolist(), abs=1e-12)


def test_missing_answers_are_missing_in_the_page():
    star = Tree([3, 3, 3, -1], n_observed=3)
    model = CopulaTreeModel(star, [0.8, 0.7, 0.6, 0], [Thresholds([-1.0, 0.0, 1.0])] * 3)
    table = with_gaps(model, 50)
    [found] = rows_contents([model], table, RowChoice())
    cells = np.reshape(numbers(found["rows"]["cells"]), (-1, 3))
    assert np.isnan(table.values).any()
    assert cells.tolist() == np.nan_to_num(table.values, nan=-1).tolist()


def _wanted(table, column, side, is_gaussian):
    """The first rows by their posterior that differ in some cell, one by one."""
    if is_gaussian:
        order = np.argsort(-column if side == 0 else column, kind="stable")
    elif side == 0:
        order = [r for r in np.argsort(-column, kind="stable") if column[r] > 0.25]
    else:
        apart = np.abs(column - 0.5)
        order = [r for r in np.argsort(apart, kind="stable") if apart[r] < 0.3]
    seen, out = set(), []
    for row in order:
        cells = table.values[row].tobytes()
        if cells not in seen and len(out) < 12:
            seen.add(cells)
            out.append(int(row))
    return out


def test_shares_of_groups_are_means_of_posteriors():
    model = discrete(41)
    n = 1 + (1 << 20) // model.tree.n_nodes  # more than one block of rows
    table = as_table(model.sample(n, 1), schema=model.schema)
    groups = [None if i % 5 == 4 else "ab"[i % 2] for i in range(n)]
    [content] = rows_contents([model], table, RowChoice(None, groups))
    found = content["rowLists"]["groups"]
    assert found["names"] == ["a", "b"]
    posterior = model.posterior(table).probabilities
    for g, name in enumerate("ab"):
        members = [i for i in range(n) if groups[i] == name]
        assert found["counts"][g] == len(members)
        means = np.reshape(numbers(found["means"]), (2, -1))
        assert means[g] == pytest.approx(posterior[members].mean(axis=0))


def test_rows_of_a_mixture_are_listed_with_the_tree_that_they_come_from():
    mixture = discrete_mixture()
    table = as_table(mixture.sample(300, 0), schema=mixture.schema)
    share, groups = mixture.responsibilities(table), ["a", "b"] * 150
    found = rows_contents(mixture.components, table, RowChoice(None, groups), list(share.T))
    kept = numbers(found[0]["rows"]["kept"])
    for k, content in enumerate(found):
        assert content["rows"] is found[0]["rows"]
        lists = content["rowLists"]
        posterior = mixture.components[k].posterior(table).probabilities
        joint = share[:, [k]] * posterior
        starts = numbers(lists["starts"])
        rows, values = numbers(lists["rows"]), numbers(lists["values"])
        for column, own in enumerate(joint.T):
            span = slice(starts[2 * column], starts[2 * column + 1])
            listed = [kept[i] for i in rows[span]]
            assert values[span] == pytest.approx(own[listed].tolist(), abs=1e-12)
            assert len(listed) == 0 or own[listed[0]] == pytest.approx(own.max(), abs=1e-12)
        weights = share[::2, k]
        means = np.reshape(numbers(lists["groups"]["means"]), (2, -1))
        assert lists["groups"]["counts"][0] == pytest.approx(weights.sum())
        assert means[0] == pytest.approx(weights @ posterior[::2] / weights.sum())


def test_rows_without_data_and_unknown_columns_are_refused(tmp_path):
    model = gaussian()
    with pytest.raises(DataError, match="data"):
        write_explorer(model, tmp_path / "x.html", rows=True)
    with pytest.raises(DataError, match="'text'"):
        write_explorer(model, tmp_path / "x.html", data=model.sample(5, 0), rows="text")
    with pytest.raises(DataError, match="5 rows"):
        write_explorer(model, tmp_path / "x.html", data=model.sample(5, 0), rows=["a"])


@pytest.mark.parametrize("given", ["rows", "row_groups", "title", "names"])
def test_half_of_a_surrogate_pair_is_written(tmp_path, given):
    model, half = gaussian(), "a\ud800b"
    x = model.sample(20, 0)
    values = {"rows": [half] * 20, "row_groups": [half] * 20, "title": half}
    wanted = {given: values.get(given, {model.tree.names[-1]: half})}
    write_explorer(model, tmp_path / "page.html", x, **wanted)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert ("a?b" if given == "title" else r"a\ud800b") in text


def test_documents_are_read_and_rows_supposed(browser, tmp_path):
    pandas = pytest.importorskip("pandas")
    model = discrete(42)
    n = 800
    table = with_gaps(model, n)
    cells = [
        [model.schema.labels[j][code] if code >= 0 else None for j, code in enumerate(row)]
        for row in table.values.tolist()
    ]
    frame = pandas.DataFrame(cells, columns=model.schema.names, dtype=object)
    frame["text"] = [f"<b>document</b> {i} " + "word " * 760 for i in range(n)]
    frame["kind"] = ["news" if i % 3 else "sport" for i in range(n)]
    path = show(browser, tmp_path, model, data=frame, rows="text", row_groups="kind")
    assert path.stat().st_size < 3_000_000
    kept = browser.run(f"return {STATE}.model.rows.kept.length")
    assert 400 < kept < n
    assert f"{kept} of {n} rows" in browser.text("#details")
    h = hidden_of(model)
    browser.run(f"location.hash = 's=n{model.tree.names[h]}'")
    browser.wait(f"return {STATE}.selection?.node === {h}")
    assert "news" in browser.text("#details")
    said = browser.text(".row-box .row-name").splitlines()
    assert re.match(r"Row \d+: x\d+ = s\d, x\d+ = s\d, x\d+ = s\d$", said[0])
    assert said[1].startswith("<b>document</b>")
    browser.click_on(".row-box summary")
    browser.wait("return document.querySelector('.row-box .text')")
    text = browser.text(".row-box .text")
    row = int(text.split()[1])
    assert text.startswith("<b>document</b>")
    browser.click_on(".row-box button", "Suppose this row")
    found = browser.run(f"return [...{STATE}.posterior.probability]")
    start = model.layout.state_starts[h]
    wanted = model.posterior(table.rows(row, row + 1)).probabilities[0]
    assert found[start:] == pytest.approx(wanted.tolist(), abs=1e-9)
    assert f"Row {row + 1}" in browser.text("#answers .naming summary")
    browser.run("document.activeElement.blur(); location.hash = ''")
    assert "<b>" not in browser.run("return document.querySelector('#details').innerHTML")

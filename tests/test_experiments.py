"""A miniature of every experiment, the results on disk, and the page made of them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import latentree as lt

pytest.importorskip("matplotlib")
pytest.importorskip("rich")

from experiments import newsgroups, results, run, samples, stocks, synthetic
from experiments.report import published, writing
from experiments.results import Store, Unit

COMPANIES = {
    "AAPL": 3571, "DELL": 3570, "IBM": 3573, "MSFT": 7372, "BAC": 6021, "C": 6021, "JPM": 6021,
    "WB": 6021, "HD": 5211, "TGT": 5331, "WMT": 5331, "T": 4813, "VZ": 4813, "S": 4813, "SP100": 0,
}  # fmt: skip
"""Fourteen companies with their industry (SIC), and the index."""


def write_returns(folder: Path) -> None:
    """Write 120 months of the companies' returns, as the paper's data has them."""
    tree = lt.simulate.caterpillar(len(COMPANIES), 3)
    values = 0.08 * lt.simulate.random_gaussian_model(tree, 0, (0.6, 0.8)).sample(120, 1)
    rows = [",".join([f"month {i}", *map(repr, row)]) for i, row in enumerate(values.tolist())]
    header = ",".join(["month", *COMPANIES])
    (folder / "sp100_monthly_returns.csv").write_text("\n".join([header, *rows]))
    sectors = [f"{name},{sic}" for name, sic in COMPANIES.items()]
    (folder / "sp100_sectors.csv").write_text("\n".join(["ticker,sic", *sectors]))


def write_postings(folder: Path) -> None:
    """Write ten words in 400 postings, with groups and halves, as the paper's data has them."""
    model = lt.simulate.random_discrete_model(lt.simulate.double_star(10), 2, 0, (0.5, 0.8))
    codes = model.sample(400, 1, hidden=True)
    header = ",".join(f"word{i}" for i in range(10))
    rows = [",".join(map(str, row)) for row in codes[:, :10]]
    groups = np.array(["comp.*", "rec.*"])[codes[:, 10]]
    for name, lines in (
        ("newsgroups.csv.gz", [header, *rows]),
        ("newsgroups_groups.csv.gz", ["group", *groups]),
    ):
        (folder / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    np.savetxt(folder / "newsgroups_train_rows.txt", np.arange(0, 400, 2), "%d")


@pytest.fixture
def data_folder(tmp_path_factory, monkeypatch):
    """The folder that LATENTREE_DATA names, empty."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("LATENTREE_DATA", str(folder))
    for module in (stocks, newsgroups):
        module.load.cache_clear()
    yield folder
    for module in (stocks, newsgroups):
        module.load.cache_clear()


@pytest.fixture
def stand_ins(data_folder):
    """Small data in place of the paper's."""
    write_returns(data_folder)
    write_postings(data_folder)


def make(folder: Path, *more: str) -> str:
    """Run the miniature in this process and return the page."""
    page = folder / "docs" / "evidence" / "paper.md"
    paths = ["--results", str(folder / "kept"), "--page", str(page)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # EM on few rows, NMF at its limit
        assert run.main(["--small", "--workers", "0", *paths, *more]) == 0
    return page.read_text("utf-8")


# The whole --------------------------------------------------------------------------------------


def test_a_miniature_of_everything(tmp_path, stand_ins):
    page = make(tmp_path)
    assert re.findall("^## (.*)$", page, re.MULTILINE) == list(titles())
    assert "left out" not in page
    assert re.search(r"\bnan\b", page) is None
    for target in re.findall(r"\]\(\.\./(images/[^)]+)\)", page):
        assert 1_000 < (tmp_path / "docs" / target).stat().st_size < 200_000, target
    assert len(list((tmp_path / "docs" / "images" / "paper").iterdir())) == 10
    # Nothing changed: nothing is measured again.
    plan = run.make_plan(run.EXPERIMENTS, 200, small=True)
    again = run.Runner(Store(tmp_path / "kept"), plan, 1e9, 0, lambda *_: pytest.fail("measured"))
    again.run()


def titles():
    from experiments.report import TITLES

    return TITLES.values()


def test_without_data_the_synthetic_part_runs(tmp_path, data_folder, capsys):
    page = make(tmp_path, "--only", "synthetic", "stocks", "newsgroups")
    assert f"stocks is left out: LATENTREE_DATA is {str(data_folder)!r}" in capsys.readouterr().err
    assert page.count("This section is left out: LATENTREE_DATA is") == 2
    assert "| RG recovers the double star" in page


# Results on disk --------------------------------------------------------------------------------


def test_results_are_kept_by_parameters_and_version(tmp_path):
    store = Store(tmp_path)
    unit, other = (Unit("synthetic", {"run": k}) for k in (0, 1))
    assert store.read(unit) is None
    store.write(unit, {"result": 1, "seconds": 2.0})
    assert store.read(unit) == {"result": 1, "seconds": 2.0, "parameters": {"run": 0}}
    assert store.read(other) is None
    assert [record["result"] for record in store.known([other, unit])] == [1]
    assert Store(tmp_path, version=lambda _: "later").read(unit) is None


def test_the_version_is_that_of_the_code(tmp_path):
    same, changed = (tmp_path / name / "latentree" for name in ("same", "changed"))
    for copy in (same, changed):
        shutil.copytree(results.LIBRARY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with next(changed.glob("em/*.py")).open("a") as file:
        file.write("x = 1\n")
    version = results.version("stocks")
    assert results.version("stocks", same) == version != results.version("synthetic", same)
    assert results.version("stocks", changed) != version


def test_comments_are_no_part_of_the_version(tmp_path):
    plain, commented = tmp_path / "a.py", tmp_path / "b.py"
    plain.write_text("x = 1\n")
    commented.write_text("# one\nx = (\n    1\n)\n")
    assert results._code(plain) == results._code(commented)


def test_an_interrupted_run_goes_on(tmp_path):
    plan = run.make_plan(("synthetic",), 2, small=True)
    measured = []

    def work(experiment, parameters):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(parameters)
        return {"result": {}, "seconds": 1.0}

    with pytest.raises(KeyboardInterrupt):
        run.Runner(Store(tmp_path), plan, 1e9, 0, work).run()
    assert len(Store(tmp_path).known(plan.units["synthetic"])) == 2
    runner = run.Runner(Store(tmp_path), plan, 1e9, 0, lambda *_: {"result": {}, "seconds": 1.0})
    assert [unit.parameters for unit in plan.units["synthetic"][:2]] == measured
    runner.run()
    assert len(Store(tmp_path).known(plan.units["synthetic"])) == 6


def test_an_interrupt_is_told(tmp_path, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    arguments = ["--small", "--workers", "0", "--only", "synthetic", "--results", str(tmp_path)]
    assert run.main(arguments, interrupt) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_the_budget_ends_whole_experiments(tmp_path):
    def work(*_):
        return {"result": {}, "seconds": 10.0}

    plan = run.make_plan(("synthetic",), 2, small=True)
    run.Runner(Store(tmp_path), plan, 30.0, 0, work).run()  # the Gaussian part's share is 21 s
    assert len(Store(tmp_path).known(plan.units["synthetic"])) == 3
    run.Runner(Store(tmp_path), plan, 30.0, 0, work).run()  # kept results count as spent
    assert len(Store(tmp_path).known(plan.units["synthetic"])) == 3


def test_processes_share_the_work(tmp_path):
    plan = run.make_plan(("consistency",), 1, small=True)
    run.Runner(Store(tmp_path), plan, 1e9, 2).run()
    assert len(Store(tmp_path).known(plan.units["consistency"])) == len(plan.units["consistency"])


def test_durations():
    assert [run.seconds_of(text) for text in ("90", "90s", "1.5m", "1h")] == [90, 90, 90, 3600]
    with pytest.raises(Exception, match="no duration"):
        run.seconds_of("soon")


# What is measured -------------------------------------------------------------------------------


def test_a_table_has_the_correlations_and_the_weight_of_its_samples():
    rows = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0).sample(500, 1)
    centered = rows - rows.mean(axis=0)
    table = samples.table_of(centered.T @ centered, 500)
    expected = lt.information_distances(rows)
    found = lt.information_distances(table)
    np.testing.assert_allclose(found.dense(), expected.dense(), atol=1e-9)
    assert found.n_samples == pytest.approx(500)
    tree = lt.structure.learn_structure(expected, "clrg")
    assert lt.metrics.same_structure(lt.structure.learn_structure(found, "clrg"), tree)


def test_nested_scatter_matrices_have_the_right_moments():
    # Var(r) = (1 − ρ²)²/n for correlations: 400 draws give it to 7 %, allowed are four of these.
    model = lt.GaussianTreeModel(lt.Tree([-1, 0, 0]), [0.0, 0.6, 0.3])
    drawn = []
    for seed in range(400):
        tables = samples.gaussian_tables(model, [100, 1_000], np.random.default_rng(seed))
        drawn.append([-lt.information_distances(table).dense()[0, 1] for table in tables])
    r = np.exp(drawn)
    for n, column in zip((100, 1_000), r.T, strict=True):
        deviation = (1 - 0.36) / np.sqrt(n)
        assert column.mean() == pytest.approx(0.6, abs=4 * deviation / 20 + 0.3 / n)
        assert column.std() == pytest.approx(deviation, rel=0.15)
    # Nested: the first 100 samples are a tenth of the thousand, Cov = Var of the larger sample.
    assert np.corrcoef(r.T)[0, 1] == pytest.approx(np.sqrt(0.1), abs=0.2)


def test_units_are_interleaved():
    parameters = [unit.parameters for unit in synthetic.units(3)]
    assert [p["run"] for p in parameters] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [p["tree"] for p in parameters[:3]] == list(samples.PAPER_SIZE)


def test_parsimony_by_brute_force():
    tree = lt.simulate.random_latent_tree(7, 3)
    names = list(tree.names[:6])  # the last observed node is free
    labels = np.random.default_rng(0).integers(0, 3, (5, 6))
    for row, fewest in zip(labels, stocks.parsimony(tree, names, labels), strict=True):
        free = tree.n_nodes - 6
        every = np.indices((3,) * free).reshape(free, -1).T
        whole = np.column_stack([np.tile(row, (len(every), 1)), every])
        changes = (whole[:, tree.edges[:, 0]] != whole[:, tree.edges[:, 1]]).sum(axis=1)
        assert changes.min() == fewest


def test_the_best_subtree_of_a_star_of_two():
    tree = lt.simulate.double_star(8)
    names = list(tree.names[:8])
    rng = np.random.default_rng(0)
    found = stocks._best_subtree(
        tree, names, set(names[:4]), [rng.permutation(8) for _ in range(99)]
    )
    assert found["found"] == names[:4]
    assert found["foreign"] == []
    assert found["f1"] == 1.0
    assert found["p"] < 0.2


def test_topics_name_the_words_of_a_hidden_variable():
    word, topic = [[0.95, 0.05], [0.3, 0.7]], [[0.9, 0.1], [0.9, 0.1]]
    tree = lt.Tree([6] * 3 + [7] * 3 + [-1, 6], n_observed=6)
    model = lt.DiscreteTreeModel(tree, [word] * 6 + [[0.8, 0.2], topic])
    first, second = newsgroups.topics(model, 3)
    assert {name for name, _ in first["words"]} == {"x0", "x1", "x2"}
    assert {name for name, _ in second["words"]} == {"x3", "x4", "x5"}
    assert second["share"] == pytest.approx(0.1)
    joint = model.joint(6, 0)
    covariance = np.cov([0, 0, 1, 1], [0, 1, 0, 1], aweights=joint.ravel(), ddof=0)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert first["words"][0][1] == pytest.approx(expected)


def test_the_published_scale_gives_the_published_figure(paper_data):
    (record,) = (
        stocks.measure(**u.parameters)
        for u in stocks.units()
        if u.parameters["method"] == "chow_liu"
    )
    ll, bic, hidden, parameters, _ = published.STOCKS["chow_liu"]
    assert round(record["distances"]["ll_published"]) == ll
    assert round(record["distances"]["bic_published"]) == bic
    assert (record["hidden"], record["parameters"]) == (hidden, parameters)
    json.dumps(record)


# The page ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-1234.5, 0, "−1,234"), (-0.2, 0, "0"), (0.126, 2, "0.13"), (None, 0, "–"), (-0.5, 1, "−0.5")],
)
def test_numbers(value, digits, text):
    assert writing.number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.000123, "0.00012"), (123456.0, "120000"), (0, "0"), (1.5e-7, "0.00000015")],
)
def test_significant_digits(value, text):
    assert writing.significant(value) == text


def test_paragraphs_are_wrapped_and_blocks_are_not():
    long = "word " * 40
    text = f"# {long}\n\n{long}\n\n```console\n{long}\n\n{long}\n```\n\n| {long} |"
    lines = writing.wrapped(text).split("\n")
    assert [len(line) > 100 for line in lines if line].count(True) == 4
    assert " ".join(writing.wrapped(text).split()) == " ".join(text.split())


def test_the_committed_page_is_complete():
    page = (Path(__file__).parent.parent / "docs" / "evidence" / "paper.md").read_text("utf-8")
    assert re.findall("^## (.*)$", page, re.MULTILINE) == list(titles())
    assert "left out" not in page

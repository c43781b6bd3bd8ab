"""What the commands print and write."""

from __future__ import annotations

import json

import numpy as np
import pytest

from latentree import GaussianEmission, MixedTreeModel, formats, metrics, models
from latentree.cli import _app as app
from latentree.cli import _demo as demo
from latentree.cli import _hidden as hidden
from latentree.cli import _options as options
from latentree.cli import _outputs as outputs
from latentree.cli._data import described
from latentree.cli._screen import plural
from latentree.data import open_table
from latentree.data._files._writers import write_table
from latentree.datasets import load_holzinger
from latentree.methods import METHODS
from latentree.models import DiscreteTreeModel, GaussianTreeModel
from latentree.search import refined as refined_method
from latentree.tree import Tree


def data_of(path):
    return open_table(path)


# Learning ---------------------------------------------------------------------------------------


def test_learn_says_what_it_read_and_found(run, made):
    code, out, err = run("learn", made / "real.csv")
    assert code == 0
    assert "real.csv: 400 rows × 6 columns, gaussian: real numbers, nothing missing" in err
    lines = out.splitlines()
    header = ["Method", "Log-likelihood", "BIC score", "Hidden", "Parameters", "Seconds"]
    assert all(title in lines[0] for title in header)
    assert lines[2].split()[0] == "refined"
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in out + err
    lines = run("learn", made / "real.csv", "-m", "clrg")[1].splitlines()
    found = {line.split()[0]: line for line in lines if line.startswith("h")}
    assert set(found) == {"h1", "h2"}
    tied = [line.rstrip().rsplit("  ", 1)[1] for line in found.values()]  # the last column
    sides = [{word for word in line.split() if len(word) == 1} for line in tied]
    assert sorted(map(sorted, sides)) == [["a", "b", "c"], ["d", "e", "f"]]


def test_learn_for_machines(run, made, tmp_path):
    out_file = tmp_path / "m.json"
    code, out, err = run(
        "learn", made / "words.csv", "--method", "chow_liu", "--json", "--quiet", "--out", out_file,
        "--test-fraction", "0.25", "--seed", "3", "--columns", "f, b,c,d,e",
    )  # fmt: skip
    assert code == 0
    assert err == ""
    found = json.loads(out)
    kinds = [{"name": name, "kind": "category", "why": "2 labels"} for name in "fbcde"]
    assert found["data"] == {
        "source": str(made / "words.csv"),
        "rows": 400,
        "columns": 5,
        "family": "discrete",
        "kinds": kinds,
        "missing": 0,
    }
    assert found["method"] == "chow_liu"
    assert found["n_hidden"] == 0
    assert found["hidden"] == []
    assert found["files"] == {"model": str(out_file)}
    model, report = models.load(out_file), models.load_report(out_file)
    assert found["n_parameters"] == model.n_parameters == 9
    assert report["method"] == "chow_liu"
    assert report["n_samples"] == 300
    assert found["log_likelihood"] == report["log_likelihood"]
    # the rows held out are those that the model was not learned from
    whole = model.total_log_likelihood(open_table(made / "words.csv", drop=["a"]))
    held_out = whole - found["log_likelihood"]
    assert found["held_out_score"] == pytest.approx(held_out / 100, abs=1e-6)


def test_learning_twice_gives_the_same_file(run, made, tmp_path):
    for name in ("one.json", "two.json"):
        run("learn", made / "words.csv", "-q", "--method", "lcm", "--out", tmp_path / name)
    one, two = (models.load(tmp_path / name) for name in ("one.json", "two.json"))
    np.testing.assert_array_equal(one.theta, two.theta)


def test_learn_writes_pictures(run, made, tmp_path):
    code, _, err = run("learn", made / "real.csv", "--plot", tmp_path / "t.svg")
    assert code == 0
    assert "wrote" in err
    assert (tmp_path / "t.svg").read_text().startswith("<?xml")


def test_learn_writes_pages(run, made, tmp_path, monkeypatch):
    written = []

    def write(model, path, data, groups, **known):
        written.append((path, data))

    monkeypatch.setattr(outputs, "write_page", write)
    page = str(tmp_path / "page.html")
    assert run("learn", made / "real.csv", "--html", page)[0] == 0
    assert [path for path, _ in written] == [page]
    assert written[0][1].n_rows == 400


def test_compare_marks_the_best(run, made):
    code, out, _ = run("compare", made / "real.csv", "--test-fraction", "0.5")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line.split() for line in lines[2 : 2 + len(METHODS)]}
    assert set(rows) == set(METHODS)
    for column in (2, 3):
        values = {
            name: float(row[column].strip("*").replace(",", "")) for name, row in rows.items()
        }
        starred = {name for name, row in rows.items() if row[column].endswith("*")}
        assert starred == {name for name, value in values.items() if value == max(values.values())}
    assert "Held-out" in lines[0]


def test_compare_survives_a_method_that_fails(run, made, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no\nluck")

    monkeypatch.setattr("latentree.search.latent_class", fail)
    code, out, _ = run("compare", made / "real.csv", "--methods", "lcm,clrg")
    assert code == 0
    lines = out.splitlines()
    assert lines[2].split()[:2] == ["lcm", "failed"]
    assert lines[3].startswith("clrg")
    assert lines[-1] == "lcm failed: RuntimeError: no luck"
    found = json.loads(run("compare", made / "real.csv", "--methods", "lcm,clrg", "--json")[1])
    assert found["methods"][0] == {"method": "lcm", "failure": "RuntimeError: no\nluck"}
    code, out, err = run("compare", made / "real.csv", "--methods", "lcm")
    assert code == 1
    assert "failed" in out
    assert "every method failed" in err


def test_compare_says_what_several_methods_note_once(run, tmp_path):
    rows = np.random.default_rng(2).normal(size=(80, 4))
    write_table(tmp_path / "t.csv", list("abcd"), rows)
    code, _, err = run("compare", tmp_path / "t.csv", "--methods", "nj,rg")
    assert code == 0
    assert err.count("no dependence was found") == 1
    assert "note: nj, rg: no dependence was found among the 4 variables" in err


def test_help_names_every_method_and_family(run):
    assert app.METHODS.split(", ") == list(METHODS)
    for command in ("learn", "compare"):
        words = run(command, "--help")[1]
        words = words.translate(str.maketrans(",.;", "   ")).split()
        assert set(METHODS) | set(options.FAMILIES) <= set(words)


def test_learn_says_how_variables_depend_where_none_is_hidden(run, tmp_path):
    x = np.random.default_rng(0).standard_normal((500, 4))
    x, _ = np.linalg.qr(x - x.mean(axis=0))  # without any correlation
    x[:, 1] += x[:, 0]
    cases = {
        "there is a single variable": x[:, :1],
        "no dependence was found among the 3 variables": x[:, 1:],
        "the variables depend on each other directly": x[:, :2],
        "variables depend on each other directly, in 1 group; 2 stand on their own": x,
    }
    for said, data in cases.items():
        write_table(tmp_path / "t.csv", [f"v{j}" for j in range(data.shape[1])], data)
        code, out, _ = run("learn", tmp_path / "t.csv", "-q", "--method", "chow_liu")
        assert code == 0
        assert f"\nNo hidden variable: {said}" in out, out
        assert (", in " in out) == (", in " in said)


def test_a_bic_score_that_falls_is_not_said_to_rise(run, tmp_path):
    z = np.tile(np.arange(8.0), 3)
    rows = np.column_stack([z, z, np.resize([0, 0, 1], 24)])
    rows[0, 0] = 7
    write_table(tmp_path / "t.csv", ["a", "b", "c"], rows)
    kinds = ("--kind", "a=category", "--kind", "b=category")
    code, out, _ = run("learn", tmp_path / "t.csv", "--method", "clnj", *kinds)
    assert code == 0
    plain = " ".join(out.split())
    assert "1 edge between variables raises the log-likelihood by " in plain
    assert " over independent variables, but the BIC score falls by " in plain


def test_learn_hands_the_options_of_a_method_on(run, made, monkeypatch):
    given = {}

    def watched(*arguments, **options):
        given.clear()
        given.update(options)
        return refined_method(*arguments, **options)

    monkeypatch.setattr("latentree.search.refined", watched)
    refined = ["learn", made / "words.csv", "--method", "refined", "-q"]
    told = [
        "--start",
        "nj,chow_liu",
        "--criterion",
        "ebic",
        "--max-states",
        "2",
        "--time-limit",
        "60",
    ]
    assert run(*refined, *told, "--n-hidden", "1")[0] == 0
    kinds = {"start", "criterion", "max_states", "time_limit", "n_hidden"}
    assert {key: given[key] for key in kinds} == {
        "start": ["nj", "chow_liu"],
        "criterion": "ebic",
        "max_states": 2,
        "time_limit": 60.0,
        "n_hidden": 1,
    }
    assert run(*refined, "--score", "0.5", "--start", "nj")[0] == 0
    assert given["criterion"] == 0.5
    assert given.keys() & kinds == {"start", "criterion"}
    found = json.loads(
        run("learn", made / "real.csv", "-m", "reg_clrg", "--n-hidden", 1, "--json")[1]
    )
    assert found["n_hidden"] == 1


def test_learn_says_what_a_refinement_did(run, made):
    refined = ["learn", made / "real.csv", "-m", "refined", "--start"]
    code, out, _ = run(*refined, "chow_liu")
    assert code == 0
    found = json.loads(run(*refined, "chow_liu", "--json")[1])
    total = sum(change["count"] for change in found["changes"].values())
    assert f"\nRefined by {plural(total, 'change')}, by kind with their gains: " in out
    words = " ".join(out.split())
    for kind, change in found["changes"].items():
        assert f"{kind} {change['count']} ({change['gain']:+,.1f})" in words
    assert found["score"] == pytest.approx(found["bic_score"])
    out = run(*refined, "chow_liu", "--time-limit", "0")[1]
    assert "no change of the tree that it started from" in out
    assert "Refined" not in run("learn", made / "real.csv", "-m", "clnj")[1]
    assert "changes" not in json.loads(run("learn", made / "real.csv", "-m", "clnj", "--json")[1])


# Hidden variables -------------------------------------------------------------------------------


def test_hidden_variables_are_tied_to_the_nearest():
    from latentree import GaussianTreeModel, Tree

    # h1 joins h2, h3 and h4, each with two variables; g hangs alone
    parent = [8, 8, 9, 9, 10, 10, -1, -1, 7, 7, 7]
    tree = Tree(parent, n_observed=7, names=list("abcdefg"))
    rho = np.array([0.9, -0.5, 0.8, 0.7, 0.6, 0.5, 0, 0, 0.5, 0.4, 0.9])
    one, two, three, four = hidden.hidden_summaries(GaussianTreeModel(tree, rho))
    assert (two.members, two.own) == (("a", "b"), True)
    assert two.strengths == pytest.approx((0.9, -0.5))
    assert (three.members, four.members) == (("c", "d"), ("e", "f"))
    assert (one.members, one.own) == (("e", "a", "f"), False)
    assert one.strengths == pytest.approx((0.54, 0.45, 0.45))


def test_tables_are_described(tmp_path):
    write_table(tmp_path / "t.csv", ["a", "b"], np.array([[1, 1], [2, None], [3, 2]], object))
    assert (
        described(data_of(tmp_path / "t.csv"))
        == "3 rows × 2 columns, mixed: 1 ordered, 1 category, 1 cell missing (0.17 of all)"
    )


# Models -----------------------------------------------------------------------------------------


def test_infer_gives_means_or_probabilities(run, made, tmp_path):
    code, out, err = run("infer", made / "real.json", made / "real.csv")
    assert code == 0
    assert "wrote" not in err
    lines = out.splitlines()
    assert lines[0] == "h1,h2"
    assert len(lines) == 401
    model = models.load(made / "real.json")
    expected = model.posterior(data_of(made / "real.csv")).mean
    np.testing.assert_array_equal(np.loadtxt(lines[1:], delimiter=","), expected)

    target = tmp_path / "p.parquet"
    assert run("infer", made / "words.json", made / "words.csv", "-o", target)[0] == 0
    table = data_of(target)
    assert table.names[:2] == ("h1=0", "h1=1")
    np.testing.assert_allclose(table.values[:, :2].sum(axis=1), 1.0)


def test_models_take_their_columns_from_any_place_and_leave_others(run, made, tmp_path):
    wide = data_of(made / "real.csv")
    shuffled = np.hstack([np.arange(400.0)[:, None], wide.values[:, ::-1]])
    write_table(tmp_path / "wide.csv", ["id", *"fedcba"], shuffled)
    _, expected, _ = run("score", made / "real.json", made / "real.csv")
    assert run("score", made / "real.json", tmp_path / "wide.csv")[1] == expected
    bare = (made / "real.csv").read_text().split("\n", 1)[1]
    (tmp_path / "bare.csv").write_text(bare)
    assert run("score", made / "real.json", tmp_path / "bare.csv", "--no-header")[1] == expected
    np.savez(tmp_path / "bare.npz", wide.values)
    assert run("score", made / "real.json", tmp_path / "bare.npz")[1] == expected


def test_impute_fills_and_keeps(run, made, tmp_path):
    values = data_of(made / "real.csv").values.copy()
    gaps = np.random.default_rng(0).random(values.shape) < 0.1
    write_table(tmp_path / "gaps.csv", list("abcdef"), np.where(gaps, np.nan, values))
    code, _, err = run(
        "impute", made / "real.json", tmp_path / "gaps.csv", "-o", tmp_path / "f.tsv"
    )
    assert code == 0
    assert f"filled in {gaps.sum()} cells" in err
    filled = data_of(tmp_path / "f.tsv").values
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~gaps], values[~gaps])
    expected = models.load(made / "real.json").impute(np.where(gaps, np.nan, values))
    np.testing.assert_array_equal(filled, expected)


def test_impute_gives_labels(run, made, tmp_path):
    text = (made / "words.csv").read_text().split("\n")
    (tmp_path / "gap.csv").write_text("\n".join([text[0], '"yes",,"yes",,,"no"', *text[2:]]))
    _, out, _ = run("impute", made / "words.json", tmp_path / "gap.csv", "--quiet")
    (tmp_path / "full.csv").write_text(out)
    table = data_of(tmp_path / "full.csv")
    assert table.schema.labels == (("no", "yes"),) * 6
    assert not table.has_missing


def test_score_sums_up_to_the_likelihood(run, made):
    _, out, err = run("score", made / "words.json", made / "words.csv")
    model, table = models.load(made / "words.json"), data_of(made / "words.csv")
    each = np.loadtxt(out.splitlines()[1:])
    np.testing.assert_array_equal(each, model.log_likelihood(table))
    assert "per row" in err
    found = json.loads(run("score", made / "words.json", made / "words.csv", "--json")[1])
    assert found["log_likelihood"] == pytest.approx(metrics.log_likelihood(model, table))
    assert found["mean_log_likelihood"] == pytest.approx(metrics.held_out_score(model, table))


def test_sample_draws_what_the_seed_says(run, made, tmp_path):
    code, out, _ = run("sample", made / "words.json", "-n", 7, "--seed", 1)
    assert code == 0
    assert run("sample", made / "words.json", "-n", 7, "--seed", 1)[1] == out
    assert run("sample", made / "words.json", "-n", 7, "--seed", 2)[1] != out
    assert out.splitlines()[0] == "a,b,c,d,e,f"
    assert len(out.splitlines()) == 8
    run("sample", made / "real.json", "--hidden", "-o", tmp_path / "s.feather")
    assert data_of(tmp_path / "s.feather").names == (*"abcdef", "h1", "h2")
    _, out, _ = run("sample", made / "words.json", "--hidden", "-n", 3)
    assert out.splitlines()[0] == "a,b,c,d,e,f,h1,h2"


@pytest.mark.parametrize("name", ["t.nwk", "t.graphml", "t.dot", "t.json", "t.bif", "t.gexf"])
def test_export(run, made, tmp_path, name):
    assert run("export", made / "words.json", tmp_path / name)[0] == 0
    model = models.load(made / "words.json")
    # a model file there is already: JSON is the tree's nodes and edges
    formats.export(model.tree if name == "t.json" else model, tmp_path / f"own-{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"own-{name}").read_bytes()


def test_export_never_replaces_the_model(run, made):
    before = (made / "real.json").read_bytes()
    code, _, err = run("export", made / "real.json", made / "real.json")
    assert code == 1
    assert "is read, and would be lost" in err
    assert (made / "real.json").read_bytes() == before


def test_plot_by_options(run, made, tmp_path):
    groups, names = tmp_path / "groups.csv", tmp_path / "names.json"
    groups.write_text("name,group\na,first\nb,first\nc,second\n", "utf-8")
    models.Names({"a": "alpha", "h1": "mood"}).save(names)
    out = tmp_path / "t.svg"
    code, _, err = run(
        "plot", made / "real.json", out, "--lengths", "--theme", "dark", "--size", "6x4",
        "--groups", groups, "--names", names, "--hidden", "--title", "A tree",
    )  # fmt: skip
    assert code == 0, err
    text = out.read_text("utf-8")
    assert all(f">{word}<" in text for word in ("alpha", "first", "no group", "A tree", "b"))
    code, _, err = run("plot", made / "real.json", out, "--size", "wide")
    assert code != 0
    assert "--size 8x6" in err


def test_explore(run, made, tmp_path):
    page, names = tmp_path / "page.html", tmp_path / "names.json"
    models.Names({"h1": "mood"}, {"h1": ["low", "high"]}).save(names)
    code, _, err = run(
        "explore", made / "words.json", page, "--data", made / "words.csv", "--title", "Words",
        "--names", names,
    )  # fmt: skip
    assert code == 0, err
    text = page.read_text("utf-8")
    assert "<title>Words</title>" in text
    assert '"rows":400' in text
    assert '"mood"' in text
    groups = tmp_path / "groups.csv"
    groups.write_text("nobody,first\n", "utf-8")
    for option, said in (("--groups", "name,group"), ("--annotations", "name,value")):
        code, _, err = run("explore", made / "words.json", page, option, groups)
        assert code != 0
        assert said in err
    assert "--data" in run("explore", made / "words.json", page, "--rows")[2]
    word = (made / "words.csv").read_text("utf-8").split(",", 1)[0].strip('"')
    groups.write_text(f"name,year\n{word},1990\n", "utf-8")
    code, _, err = run(
        "explore", made / "words.json", page, "--data", made / "words.csv", "--text", word,
        "--row-groups", word, "--annotations", groups,
    )  # fmt: skip
    assert code == 0, err
    assert '"total":400' in page.read_text("utf-8")
    assert '"year"' in page.read_text("utf-8")
    assert run("show", made / "words.json", "--names", names)[1].count("high: ") == 1


def test_plot(run, made, tmp_path):
    assert run("plot", made / "real.json", tmp_path / "t.png")[0] == 0
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["t.png"]


def test_show_draws_the_tree(run, made):
    code, out, _ = run("show", made / "real.json")
    assert code == 0
    model = models.load(made / "real.json")
    for node, strength in enumerate(models.edge_strengths(model)):
        if model.tree.parent[node] >= 0:
            assert f"  {strength:.2f}\n" in out
    assert "\nStrength of an edge: " in out
    assert out.splitlines()[0] == (
        "gaussian model: 6 observed, 2 hidden, 19 parameters, learned by refined"
    )
    found = json.loads(run("show", made / "real.json", "--json")[1])
    assert len(found["edges"]) == 7
    lengths = {edge["to"]: edge["length"] for edge in found["edges"]}
    for node in np.flatnonzero(model.tree.parent >= 0):
        expected = -np.log(abs(model.correlations[node]))
        assert lengths[model.tree.names[node]] == pytest.approx(expected)
    assert found["report"]["method"] == "refined"


def test_show_lists_the_states_of_hidden_variables(run, made):
    code, out, _ = run("show", made / "words.json")
    assert code == 0
    model = models.load(made / "words.json")
    for name in model.tree.names[model.tree.n_observed :]:
        table = model.states(name)
        line = next(line for line in out.splitlines() if line.startswith(f"States of {name} "))
        assert f"0: {100 * table[0][0]:.1f} %" in line
    [fact, *_] = json.loads(run("show", made / "words.json", "--json")[1])["hidden"]
    assert fact["states"]["variable"][0] == fact["name"]
    assert set(fact["states"]["variable"][1:]) == {one["name"] for one in fact["tied_to"]}
    assert "States of" not in run("show", made / "real.json")[1]


def test_states_of_mixed_models_are_summarized():
    tree = Tree([3, 3, 3, -1], n_observed=3, names=["income", "health", "insured"])
    income = GaussianEmission([41000.0, 23000.0], [15000.0, 90.0], resolution=100.0)
    health, insured = [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]], [[0.3, 0.7], [0.05, 0.95]]
    labels = [(), ("poor", "fair", "good"), ("no", "yes")]
    model = MixedTreeModel(tree, [income, health, insured, [0.6, 0.4]], labels)
    [found] = hidden.state_summaries(model, hidden.hidden_summaries(model), most=2)
    assert found.sizes == (0.6, 0.4)
    assert found.rows == (
        ("income", "mean ± sd", "41000 ± 15000", "23000 ± 90"),
        ("health", "poor", "50.0 %", "10.0 %"),
        ("", "fair", "30.0 %", "30.0 %"),
        ("", "good", "20.0 %", "60.0 %"),
    )
    [found] = hidden.state_summaries(model, hidden.hidden_summaries(model), most=None)
    assert found.rows[-1] == ("insured", "yes", "70.0 %", "95.0 %")
    [found] = hidden.state_summaries(model, hidden.hidden_summaries(model), 2, most_labels=1)
    assert found.rows[1:] == (
        ("health", "good", "20.0 %", "60.0 %"),
        ("", "2 others", "80.0 %", "40.0 %"),
    )


def test_hidden_variables_are_tied_with_signs():
    star = Tree([3, 3, 3, -1], n_observed=3, names=["awake", "active", "sleepy"])
    [found] = hidden.hidden_summaries(GaussianTreeModel(star, [0.87, 0.7, -0.62, 0]))
    assert found.members == ("awake", "active", "sleepy")
    assert found.strengths == pytest.approx((0.87, 0.7, -0.62))


def test_show_measures_trees_without_information_distances(run, tmp_path):
    tree = Tree([-1, 0], n_observed=2, names=["a", "b"])
    model = DiscreteTreeModel(tree, [[0.5, 0.5], [[0.25, 0.75], [0.25, 0.75]]])
    model.save(tmp_path / "m.json")
    code, out, _ = run("show", tmp_path / "m.json")
    assert code == 0
    assert "\nStrength of an edge: " in out
    single = GaussianTreeModel(Tree([-1], n_observed=1), [0.0])
    single.save(tmp_path / "one.json")
    assert "Strength" not in run("show", tmp_path / "one.json")[1]


def test_names_cannot_command_the_terminal(run, made, tmp_path):
    model = models.load(made / "real.json")
    nasty = ["\x1b[31mred", "[bold]b[/]", "c\x07", ":smile:", "e" * 200, "f", "h1", "h2"]
    type(model)(model.tree.renamed(nasty), model.correlations).save(tmp_path / "n.json")
    code, out, _ = run("show", tmp_path / "n.json")
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[bold]b[/]" in out
    assert ":smile:" in out


KINDS = ("csv", "json", "html", "png")


def test_demo_learns_draws_and_says_what_it_found(run, tmp_path):
    code, out, _ = run("demo", "--folder", tmp_path / "demo")
    assert code == 0
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {f"{name}.{kind}" for name in ("holzinger", "stocks") for kind in KINDS} <= names
    text = " ".join(out.split())
    assert "visual (x1, x3, x2); verbal (x5, x4, x6); speed (x8, x7, x9): 9 of 9 tests" in text
    assert "technology (MSFT, AMD, AAPL)" in text
    assert max(map(len, out.splitlines())) <= 80


def test_the_sentence_counts_nobody_who_stands_alone():
    dataset = load_holzinger()
    found = [
        hidden.HiddenSummary("h1", ("x1", "x4"), (0.5, 0.5), True),
        hidden.HiddenSummary("h2", ("x5", "x6", "x7"), (0.5, 0.5, 0.5), True),
    ]
    assert ": 2 of 9 tests are" in demo.sentence(demo.EXAMPLES[0], dataset, found)

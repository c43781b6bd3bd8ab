"""``latentree topics``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from latentree.topics import TopicTree

ABOUT = (
    "ball goal team coach match league",
    "bank loan rate debt market profit",
    "song band album chart guitar concert",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of texts, and a table of them."""
    made = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    rows = ["body,day"]
    (made / "texts").mkdir()
    for i in range(180):
        text = " ".join(rng.choice(ABOUT[i % 3].split(), 5))
        (made / "texts" / f"{i:03}.txt").write_text(text, "utf-8")
        rows.append(f"{text},2020-{i % 12 + 1:02}-01")
    (made / "texts.csv").write_text("\n".join(rows), "utf-8")
    return made


def test_from_a_folder_to_a_page_and_a_model(run, folder, tmp_path):
    page, model = tmp_path / "t.html", tmp_path / "t.json"
    code, out, err = run(
        "topics", folder / "texts", "--topics", "3", "--max-phrase", "1", "--html", page,
        "--out", model,
    )  # fmt: skip
    assert code == 0
    assert "180 documents, 18 words" in err
    assert f"wrote {page}" in err
    assert all(word in out for word in ("guitar", "coach", "loan"))
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert len(TopicTree.load(model).topics_["topic"]) == 3


def test_from_a_table_with_dates(run, folder, tmp_path):
    page = tmp_path / "t.html"
    code, out, _ = run(
        "topics", folder / "texts.csv", "--text", "body", "--date", "day", "--html", page,
        "--topics", "2,3", "--max-phrase", "1", "--support", "2", "--json",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["topics"]["level"].count(1) == 2
    assert all(0 <= share <= 1 for share in found["topics"]["support"])
    assert '"unit":"month"' in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no such file"),
        (["texts.csv", "--text", "title"], "no column 'title'"),
        (["texts.csv", "--topics", "x"], "say a number"),
        (["texts.csv", "--stop-words", "nowhere.txt"], "use english, none, or a file"),
        (["texts.csv", "--encoding", "klingon"], "no encoding"),
        (["texts.csv", "--html", "nowhere/t.html"], "make it first"),
        (["texts.csv", "--html", "texts.csv"], "is read, and would be lost"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(run, folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    code, _, err = run("topics", *arguments)
    assert code != 0
    assert message in " ".join(err.split())
    assert sorted(folder.rglob("*")) == before

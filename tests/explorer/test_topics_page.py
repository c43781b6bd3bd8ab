"""The page of topics in a real browser, and what goes into it."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
import re

import numpy as np
import pytest

import latentree as lt
from latentree.errors import DataError, ModelError
from latentree.explorer import _topics_page as pages
from latentree.topics import Document, TopicTree

ABOUT = (
    "ball goal team coach match league",
    "bank loan rate debt market profit",
    "song band album chart guitar concert",
    "virus patient doctor vaccine hospital nurse",
)


def texts(n=240):
    rng = np.random.default_rng(0)
    return [f"<b>{i}</b> " + " ".join(rng.choice(ABOUT[i % 4].split(), 5)) for i in range(n)]


def documents(n=240):
    day = datetime.date(2020, 1, 1)
    return [
        Document(text, f"row {i}", (day + datetime.timedelta(3 * i)).isoformat())
        for i, text in enumerate(texts(n))
    ]


@pytest.fixture(scope="module")
def topics():
    return TopicTree(max_phrase=1, n_topics=(2, 4)).fit(texts())


@pytest.fixture(scope="module")
def page(topics, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "topics.html"
    lt.write_topics(topics, path, documents(), title="<News> & more")
    return path


def payload_of(path):
    found = re.search(r'id="payload">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    return json.loads(found[1])


# What goes in -----------------------------------------------------------------------------------


def test_the_payload_is_what_the_topics_say(topics, page):
    content = payload_of(page)
    assert content["total"] == 240
    assert [topic["words"] for topic in content["topics"]] == topics.to_dict()["words"]
    names = topics.to_dict()["topic"]
    for topic, parent in zip(content["topics"], topics.to_dict()["parent"], strict=True):
        assert (names[topic["parent"]] if topic["parent"] >= 0 else "") == parent
    probability = topics.transform(texts()).toarray()
    for each, row in zip(content["documents"], probability, strict=True):
        found = {topic: percent for topic, percent, _ in each["on"]}
        assert found == {t: round(100 * row[t]) for t in np.flatnonzero(row >= pages.SHOWN)}


def test_the_time_line_adds_up(topics, page):
    times = payload_of(page)["times"]
    assert times["unit"] == "month"
    assert sum(times["total"]) == 240
    expected = topics.transform(texts()).sum(axis=0)
    np.testing.assert_allclose(np.sum(times["topics"], axis=1), expected, atol=0.2)


@pytest.mark.parametrize(
    ("first", "last", "unit", "count"),
    [
        ("2020-01-01", "2020-02-10", "day", 41),
        ("2020-01-01", "2021-02-10", "month", 14),
        ("2010-01-01", "2021-02-10", "quarter", 45),
        ("1950-01-01", "2001-02-10", "year", 52),
    ],
)
def test_periods_are_as_long_as_needed(first, last, unit, count):
    sums = pages._Sums(1)
    for date in (first, last, last):
        sums.add(date, np.array([0.5]))
    found = sums.periods()
    assert (found["unit"], len(found["labels"])) == (unit, count)
    assert (found["total"][0], found["total"][-1], sum(found["total"])) == (1, 2, 3)


def test_without_dates_there_is_no_time_line(topics, tmp_path):
    lt.write_topics(topics, tmp_path / "t.html", texts())
    assert payload_of(tmp_path / "t.html")["times"] is None


def test_of_many_documents_a_sample_and_the_typical_ones_are_shown(topics):
    limits = pages.PageLimits(documents=60, typical=3)
    content = pages.topics_content(topics, (text for text in texts()), "Topics", limits)
    shown = {each["text"] for each in content["documents"]}
    assert (len(shown), content["total"]) == (60, 240)
    for name in topics.to_dict()["topic"]:
        for place, _ in topics.find_documents(name, 3):
            assert texts()[place] in shown


def test_long_documents_are_cut(topics):
    limits = pages.PageLimits(characters=10, shortest=20)
    found = pages.topics_content(topics, texts(), "Topics", limits)["documents"]
    assert max(len(each["text"]) for each in found) == 22


def test_what_cannot_be_shown_is_refused_and_nothing_is_written(topics, tmp_path):
    with pytest.raises(ModelError, match="not fitted"):
        lt.write_topics(TopicTree(), tmp_path / "t.html", texts())
    with pytest.raises(DataError, match="no documents"):
        lt.write_topics(topics, tmp_path / "t.html", [])
    assert list(tmp_path.iterdir()) == []


# What a person does -----------------------------------------------------------------------------


def reading(browser):
    return browser.text("#reading")


def test_a_topic_shows_its_words_and_documents(browser, page, topics):
    browser.open(page)
    assert "240 documents · 4 topics" in reading(browser)
    browser.click_on("#outline .level-2 .topic")
    place = topics.to_dict()["level"].index(2)
    for word in topics.to_dict()["words"][place]:
        assert word in reading(browser)
    assert browser.run("return document.querySelectorAll('.document').length") == 10
    assert browser.run("return document.querySelectorAll('.document mark').length") >= 10
    assert "<b>" in reading(browser)  # texts are never markup
    browser.click_on(".document .more", "Read all")
    assert "Read less" in reading(browser)
    browser.click_on("#reading > div > .more")
    assert browser.run("return document.querySelectorAll('.document').length") == 20


def test_the_search_finds_topics_and_documents(browser, page):
    browser.open(page)
    browser.type("/")
    browser.type("doctor nurse")
    browser.wait("return document.querySelector('h2').innerText === 'doctor nurse'")
    expected = sum("doctor" in text and "nurse" in text for text in texts())
    assert f"{expected} documents" in reading(browser)
    marks = browser.run("return [...document.querySelectorAll('mark')].map((m) => m.innerText)")
    assert set(marks) == {"doctor", "nurse"}
    browser.type("Escape")
    browser.wait("return document.querySelector('h2').innerText.startsWith('What')")


def test_a_view_has_an_address(browser, page, topics):
    browser.open(page)
    browser.click_on("#as-tree")
    browser.run("document.querySelector('.node.level-2').dispatchEvent(new Event('click'))")
    browser.click_on("#theme")
    link = browser.run("return location.href")
    title = browser.text("#reading h2")
    browser.open(page)
    browser._call("POST", f"{browser.session}/url", {"url": "about:blank"})
    browser._call("POST", f"{browser.session}/url", {"url": link})
    browser.settle()
    assert browser.text("#reading h2") == title
    assert browser.run("return document.getElementById('outline').hidden") is True
    assert browser.run("return document.documentElement.dataset.theme") == "dark"


def test_topics_are_renamed_sorted_and_taken_away(browser, page, topics, tmp_path):
    browser.open(page)
    browser.run("window.latentreeTopics.choose(1)")
    name = topics.topics_["topic"][1]
    order = "return [...document.querySelectorAll('.words .name')].map((e) => e.textContent)"
    common = browser.run(order)
    browser.click_on(".orders button", "Most telling")
    assert sorted(browser.run(order)) == sorted(common)
    share = dict(
        zip(*(topics.to_dict()[key][1] for key in ("words", "probabilities")), strict=True)
    )
    lift = {word: share[word] / topics.model_.marginal(word)[1] for word in common}
    told = [lift[word] for word in browser.run(order)]
    assert all(a >= b - 1e-3 for a, b in itertools.pairwise(told))
    browser.run("const f = document.querySelector('.rename'); f.value = 'Sport; \"ball\"';"
                "f.dispatchEvent(new Event('change'))")  # fmt: skip
    assert 'Sport; "ball"' in browser.text("#outline")
    rows = list(csv.DictReader(io.StringIO(browser.run("return latentreeTopics.toCsv()"))))
    assert [row["topic"] for row in rows] == list(topics.topics_["topic"])
    assert rows[1]["name"] == 'Sport; "ball"'
    assert float(rows[1]["share"]) == pytest.approx(topics.to_dict()["size"][1], abs=1e-5)
    again = tmp_path / "again.html"
    again.write_text(browser.run("return latentreeTopics.toPage()"), "utf-8")
    browser.open(again)
    assert browser.run("return latentreeTopics.data.topics[1].title") == 'Sport; "ball"'
    assert browser.run("return latentreeTopics.data.topics[1].name") == name


def test_shares_of_classes_add_up(browser, topics, tmp_path):
    kinds = [f"kind {i % 4}" if i % 5 else None for i in range(240)]
    path = tmp_path / "topics.html"
    lt.write_topics(topics, path, texts(), classes=kinds, class_title="kind")
    classes = payload_of(path)["classes"]
    probability = topics.transform(texts()).toarray()
    for k, name in enumerate(classes["names"]):
        own = [i for i, kind in enumerate(kinds) if kind == name]
        assert classes["total"][k] == len(own)
        found = [row[k] for row in classes["topics"]]
        assert found == pytest.approx(probability[own].sum(axis=0), abs=0.006)
    browser.open(path)
    assert "Topics by kind" in browser.text("#reading")
    assert browser.run("return document.querySelectorAll('.classes td.figures').length") > 4
    with pytest.raises(DataError, match="classes"):
        lt.write_topics(topics, path, texts(), classes=kinds[:-1])


def test_a_topic_that_is_larger_than_the_one_above_it_says_why(browser, page):
    browser.open(page)
    larger = browser.run(
        """
        const { data, choose } = latentreeTopics;
        const below = data.topics.find((topic) => topic.parent >= 0);
        below.size = data.topics[below.parent].size + 0.1;
        choose(below.number);
        return document.querySelector(".larger").textContent;
        """
    )
    assert "not their sum" in larger


def test_paper_keeps_the_bars(browser, page):
    browser.open(page)
    browser._devtools("Emulation.setEmulatedMedia", media="print")
    try:
        look = "return getComputedStyle(document.querySelector('.bar')).printColorAdjust"
        assert browser.run(look) == "exact"
    finally:
        browser._devtools("Emulation.setEmulatedMedia", media="")


def test_the_page_fits_a_phone(browser, page):
    with browser.screen(360, 720, phone=True):
        browser.open(page)
        for act in ("", "window.latentreeTopics.choose(1)"):
            browser.run(act)
            browser.settle()
            assert browser.run("return document.documentElement.scrollWidth") <= 360


def test_nothing_is_requested(browser, page):
    browser.open(page)
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.text("h1") == "<News> & more"

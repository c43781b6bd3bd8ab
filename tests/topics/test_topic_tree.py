"""The estimator: from texts to topics, and what it refuses."""

from __future__ import annotations

import copy
import importlib.util
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import estimator_checks as checks

import latentree as lt
from latentree.errors import DataError, FileError, ModelError
from latentree.topics import TopicTree
from latentree.topics._learn_topics import Settings, learn_topics, level_sizes, posteriors

ABOUT = (
    "ball goal team coach match league",
    "bank loan rate debt market profit",
    "song band album chart guitar concert",
    "virus patient doctor vaccine hospital nurse",
)


def texts(n=400, seed=0, stop="the of and"):
    """Documents of one topic each, with some words of others and stop words between them."""
    rng = np.random.default_rng(seed)
    every = " ".join(ABOUT).split()
    out = []
    for i in range(n):
        own = rng.choice(ABOUT[i % 4].split(), 5)
        other = rng.choice(every, 1)
        pairs = zip([*own, *other], rng.choice(stop.split(), 6), strict=True)
        out.append(" ".join(word for pair in pairs for word in pair))
    return out


@pytest.fixture(scope="module")
def learned():
    return TopicTree(max_phrase=1, n_topics=4).fit(texts())


def test_planted_topics_are_found(learned):
    found = {" ".join(sorted(words)) for words in learned.topics_["words"]}
    assert {" ".join(sorted(words.split())) for words in ABOUT} <= found


def test_the_table_of_topics(learned):
    table = learned.to_dict()
    assert list(table) == [
        "topic", "level", "parent", "size", "words", "probabilities", "coherence", "support",
    ]  # fmt: skip
    assert len({len(column) for column in table.values()}) == 1
    frame = learned.topics_
    assert isinstance(frame, pd.DataFrame)
    assert {name: frame[name].tolist() for name in table if name != "support"} == {
        name: column for name, column in table.items() if name != "support"
    }
    assert isinstance(learned.to_frame("polars"), pl.DataFrame)
    assert (frame["size"] > 0).all()
    assert all(0 <= p <= 1 for ps in table["probabilities"] for p in ps)


def test_transform_is_the_posterior_of_the_model(learned):
    found = learned.transform(texts(40, seed=5)).toarray()
    assert found.shape == (40, len(learned.topics_["topic"]))
    table = lt.as_table(learned.count(texts(40, seed=5)), schema=learned.model_.schema)
    posterior = np.asarray(learned.model_.posterior(table).probabilities)
    for place, topic in enumerate(learned._learned.topics):
        if topic.level == learned.n_levels_:
            expected = posterior[:, topic.column]
            np.testing.assert_allclose(found[:, place], np.where(expected < 1e-3, 0, expected))


def test_size_is_the_mean_probability(learned):
    found = learned.transform(texts()).toarray()
    np.testing.assert_allclose(found.mean(axis=0), learned.topics_["size"], atol=1e-3)


def test_predict_tells_the_topics_apart(learned):
    predicted = learned.predict(texts(200, seed=7), level=learned.n_levels_)
    names = [max(predicted[i::4].tolist(), key=predicted[i::4].tolist().count) for i in range(4)]
    assert len(set(names)) == 4
    assert all(np.mean(predicted[i::4] == names[i]) > 0.8 for i in range(4))
    with pytest.raises(ModelError, match="level is 9"):
        learned.predict(texts(4), level=9)


def test_broad_levels_divide_the_documents():
    topics = TopicTree(max_phrase=1, n_topics=(2, 4)).fit(texts())
    levels = np.array(topics.topics_["level"])
    found = topics.transform(texts()).toarray()
    np.testing.assert_allclose(found[:, levels == 1].sum(axis=1), 1, atol=1e-2)
    assert topics.n_levels_ == 2
    assert (levels == 1).sum() == 2
    parents = dict(zip(topics.topics_["topic"], topics.topics_["parent"], strict=True))
    assert all(parent == name.rpartition(".")[0] for name, parent in parents.items())
    assert set(parents.values()) <= {"", "1", "2"}


def test_typical_documents_are_on_the_topic(learned):
    documents = texts()
    for name, words in zip(learned.topics_["topic"], learned.topics_["words"], strict=True):
        found = learned.find_documents(name, 5)
        assert 0 < len(found) <= 5
        for place, probability in found:
            assert probability > 0.5
            assert set(words) & set(documents[place].split())
    with pytest.raises(ModelError, match="no topic 'x'"):
        learned.find_documents("x")


def test_words_of_a_topic(learned):
    words = learned.get_topic_words("1", 3)
    assert [word for word, _ in words] == learned.to_dict()["words"][0][:3]


def test_the_same_documents_give_the_same_topics_whatever_the_seed(learned):
    other = TopicTree(max_phrase=1, n_topics=4, random_state=7).fit(texts())
    assert other.to_dict()["words"] == learned.to_dict()["words"]


def test_a_broken_word_order_changes_nothing_without_phrases(learned):
    rng = np.random.default_rng(3)
    shuffled = [" ".join(rng.permutation(text.split())) for text in texts()]
    other = TopicTree(max_phrase=1, n_topics=4).fit(shuffled)
    assert other.to_dict()["words"] == learned.to_dict()["words"]


def test_blocks_of_documents_change_nothing(learned):
    occurs, columns = learned.count(texts()), np.array([1, 3])
    [(_, whole)] = posteriors(learned.model_, occurs, columns)
    blocks = list(posteriors(learned.model_, occurs, columns, block=700))
    assert len(blocks) > 1
    assert sum(part.shape[0] for part, _ in blocks) == occurs.shape[0]
    found = np.concatenate([block for _, block in blocks])
    np.testing.assert_allclose(found, whole, atol=1e-12)


def test_words_of_many_documents_are_measured_on_some_of_them(learned):
    occurs, words = learned.count(texts()), tuple(learned.words_)
    settings = learned._settings()._replace(n_measured=250)
    other = learn_topics(occurs, words, settings)
    assert {frozenset(topic.words) for topic in other.topics} == {
        frozenset(words) for words in learned.topics_["words"]
    }
    found = np.concatenate(list(other.probabilities(occurs))).mean(axis=0)
    np.testing.assert_allclose(found, [topic.size for topic in other.topics], atol=1e-3)


# What goes in -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [pd.Series, pl.Series, np.array, iter, tuple, lambda found: (text for text in found)],
    ids=["pandas", "polars", "array", "iterator", "tuple", "generator"],
)
def test_documents_in_any_form(wrap, learned):
    other = TopicTree(max_phrase=1, n_topics=4).fit(wrap(texts()))
    assert other.to_dict()["words"] == learned.to_dict()["words"]


def test_a_document_term_matrix(learned):
    vectorizer = CountVectorizer(stop_words="english")
    counts = vectorizer.fit_transform(texts())
    words = vectorizer.get_feature_names_out()
    topics = TopicTree(n_topics=4)
    by_matrix = clone(topics).fit(counts, words=words)
    by_frame = clone(topics).fit(pd.DataFrame(counts.toarray(), columns=words))
    by_table = clone(topics).fit(lt.as_table(csr_array((counts > 0).astype(np.int8)), names=words))
    expected = {frozenset(each) for each in learned.topics_["words"]}
    for other in (by_matrix, by_frame, by_table):
        assert {frozenset(each) for each in other.topics_["words"]} == expected
    np.testing.assert_allclose(
        by_matrix.transform(counts, words=words).toarray(), by_matrix.transform(texts()).toarray()
    )


def test_any_analyzer():
    signs = [
        "".join(chr(0x4E00 + ord(letter)) for letter in text if letter != " ")
        for text in texts(stop="the")
    ]
    topics = TopicTree(vectorizer=CountVectorizer(analyzer="char"), max_df=0.9, min_df=5)
    assert topics.fit(signs).words_.size > 3


def test_phrases_become_words():
    rng = np.random.default_rng(0)
    documents = [text + rng.choice([" prime minister", " minister said", ""]) for text in texts()]
    topics = TopicTree(n_topics=4).fit(documents)
    assert "prime minister" in topics.words_
    place = topics.words_.tolist().index("prime minister")
    assert topics.count(["the prime minister", "prime and minister"])[
        :, [place]
    ].toarray().tolist() == [[1], [0]]


# Support ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [("pandas",), ("pandas", "polars")])
def test_without_pandas_the_frame_is_that_of_polars_or_a_dict(learned, monkeypatch, missing):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else find(name)
    )
    table = learned.topics_
    assert isinstance(table, dict if "polars" in missing else pl.DataFrame)
    assert list(table["words"][0]) == learned.to_dict()["words"][0]


def test_planted_topics_are_sure_and_others_are_not():
    topics = TopicTree(max_phrase=1, n_topics=4, n_bootstrap=3).fit(texts(300))
    support = np.array(topics.topics_["support"])
    narrow = np.array(topics.topics_["level"]) == topics.n_levels_
    assert ((support >= 0) & (support <= 1)).all()
    assert (support[narrow] > 0.8).all()


# Files ------------------------------------------------------------------------------------------


def test_saved_topics_load_equal(learned, tmp_path):
    path = tmp_path / "topics.json"
    learned.save(path)
    again = TopicTree.load(path)
    assert json.dumps(again.to_dict()) == json.dumps(learned.to_dict())
    new = texts(20, seed=9)
    assert (again.transform(new) != learned.transform(new)).nnz == 0
    assert again.find_documents("1") == learned.find_documents("1")
    assert lt.load(path).n_parameters == learned.model_.n_parameters


def test_functions_of_an_analyzer_are_not_in_the_file(tmp_path):
    vectorizer = CountVectorizer(analyzer=str.split)
    topics = TopicTree(vectorizer=vectorizer, max_phrase=1).fit(texts())
    topics.save(tmp_path / "topics.json")
    with pytest.raises(FileError, match="functions of your own"):
        TopicTree.load(tmp_path / "topics.json")
    again = TopicTree.load(tmp_path / "topics.json", vectorizer)
    assert (again.transform(texts(9)) != topics.transform(texts(9))).nnz == 0


@pytest.mark.parametrize("part", ["topics", "classes", "words", "settings", "phrases", "version"])
def test_a_broken_file_names_its_part(learned, tmp_path, part):
    path = tmp_path / "topics.json"
    learned.save(path)
    content = json.loads(path.read_text("utf-8"))
    content["report"]["topics"][part] = [[1]] if part != "version" else 99
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(FileError, match=part):
        TopicTree.load(path)


EDITS = {
    "vectorizer": [
        {"input": "filename"},
        {"token_pattern": "(a+)+$"},
        {"ngram_range": [1, 10**9]},
        {"decode_error": "ignore"},
        {"analyzer": "path"},
        [],
    ],
    "settings": [{"n_words": "many"}, {"method": "rm"}, {"min_df": [1]}, {"max_steps": True}, None],
    "phrases": [[["a", "b"]], [[["a"]]], [[["a", 1]]], {"a": "b"}, 10**9],
    "words": [["a"], None, [1], {}],
    "classes": [[{}], [{"weights": [1], "frequencies": [[0.0]]}], 3, [[]]],
    "n_documents": [0, -1, 1.5, "9", True],
    "topics": [
        [],
        {},
        [None],
        {"name": 1},
        {"level": 9},
        {"level": "1"},
        {"parent": "1"},
        {"column": -1},
        {"column": 10**6},
        {"column": 0.5},
        {"words": ["no word of it"]},
        {"words": "text"},
        {"probabilities": []},
        {"information": [None]},
        {"documents": [10**9]},
        {"document_probabilities": []},
        {"size": None},
        {"support": "sure"},
        {"more": 1},
    ],
}


@pytest.mark.parametrize(
    ("part", "edit"), [(part, edit) for part, edits in EDITS.items() for edit in edits]
)
def test_edited_files_are_refused_by_part(learned, tmp_path, part, edit):
    path = tmp_path / "topics.json"
    topics = copy.copy(learned)
    topics.vectorizer = CountVectorizer()
    topics.save(path)
    content = json.loads(path.read_text("utf-8"))
    inside = content["report"]["topics"]
    if part == "topics" and isinstance(edit, dict) and edit:
        inside[part][0] |= edit
    elif isinstance(edit, dict) and edit and isinstance(inside[part], dict):
        inside[part] |= edit
    else:
        inside[part] = edit
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(FileError, match=f"topics.json: .*({part}|vectorizer to load)"):
        TopicTree.load(path)


def test_patterns_of_words_are_not_in_the_file(tmp_path):
    vectorizer = CountVectorizer(token_pattern=r"[a-z]+")
    topics = TopicTree(vectorizer=vectorizer, max_phrase=1).fit(texts())
    topics.save(tmp_path / "topics.json")
    assert "[a-z]+" not in (tmp_path / "topics.json").read_text("utf-8")
    with pytest.raises(FileError, match="give the vectorizer to load"):
        TopicTree.load(tmp_path / "topics.json")
    again = TopicTree.load(tmp_path / "topics.json", vectorizer)
    assert (again.transform(texts(9)) != topics.transform(texts(9))).nnz == 0


def test_a_model_without_topics_is_refused(tmp_path):
    model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0)
    model.save(tmp_path / "model.json")
    with pytest.raises(FileError, match="holds no topics"):
        TopicTree.load(tmp_path / "model.json")


# What it refuses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("one text", "single text"),
        ([], "no documents"),
        (["a text"], "one document"),
        (["", " "], "empty"),
        (["the of", "and"], "empty"),
        (["apple pear"] * 9 + ["x"] * 9, r"topics need at least 3"),
        ([1, 2], "document 0 must be a text, but is of type int"),
        (7, "must be texts"),
    ],
)
def test_what_cannot_be_learned_from_is_named(documents, message):
    with pytest.raises(DataError, match=message):
        TopicTree().fit(documents)


def test_words_without_topics_are_an_error():
    rng = np.random.default_rng(0)
    documents = [" ".join(rng.choice([f"word{i}" for i in range(30)], 5)) for _ in range(100)]
    with pytest.raises(DataError, match="no topics"):
        TopicTree(max_phrase=1).fit(documents)


def test_a_frame_of_texts_is_told_to_give_a_column():
    with pytest.raises(DataError, match=r"frame\['text'\]"):
        TopicTree().fit(pd.DataFrame({"text": texts(9)}))


def test_matrices_need_words():
    with pytest.raises(DataError, match="give words"):
        TopicTree().fit(np.eye(5))
    with pytest.raises(DataError, match="5 columns, but 2 words"):
        TopicTree().fit(np.eye(5), words=["a", "b"])
    with pytest.raises(DataError, match="not negative"):
        TopicTree().fit(-np.eye(3), words=["a", "b", "c"])


@pytest.mark.parametrize(
    "wrong", [{"n_topics": 0}, {"n_topics": (9, 3)}, {"n_levels": 0}, {"n_words": 0}]
)
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ModelError, match=next(iter(wrong))):
        TopicTree(**wrong).fit(texts(9))


def test_documents_without_known_words_are_on_no_topic(learned):
    found = learned.predict(["", "nothing known"], level=learned.n_levels_)
    assert found.tolist() == ["", ""]
    topics = TopicTree(max_phrase=1, n_topics=(2, 4)).fit(texts(200))
    assert topics.predict(["", texts(1)[0]])[0] == ""
    assert topics.predict(["", texts(1)[0]])[1] != ""


def test_empty_documents_keep_their_places():
    documents = ["", *texts()]
    topics = TopicTree(max_phrase=1, n_topics=4).fit(documents)
    assert topics.n_documents_ == 401
    assert all(place > 0 for place, _ in topics.find_documents("1"))


def test_nothing_before_fitting():
    with pytest.raises(NotFittedError):
        TopicTree().transform(["a"])


def test_words_may_be_called_like_hidden_variables():
    documents = [text.replace("ball", "h1").replace("goal", "h2") for text in texts()]
    topics = TopicTree(max_phrase=1, n_topics=4).fit(documents)
    assert {"h1", "h2"} <= {word for words in topics.topics_["words"] for word in words}


# Levels -----------------------------------------------------------------------------------------


def sizes(n, n_topics=None, n_levels=None):
    return level_sizes(n, Settings(n_topics, n_levels, 10, "clnj", 30, None, False, 0))


def test_numbers_of_topics_of_the_levels():
    assert sizes(7) == (7,)
    assert sizes(16) == (4, 16)
    assert sizes(64) == (4, 16, 64)
    assert sizes(64, n_levels=2) == (8, 64)
    assert sizes(40, (5, 50)) == (5, 40)
    assert sizes(3, (5, 50)) == (3, 3)


def test_warnings_of_tables_do_not_reach_people():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TopicTree(max_phrase=1).fit(
            [text + " twin1 twin2" * (i % 4 == 0) for i, text in enumerate(texts())]
        )


@pytest.mark.filterwarnings("ignore:Can.t test estimator")
def test_scikit_learn_checks_that_apply_to_texts():
    """Of an estimator that takes no numbers scikit-learn checks next to nothing by itself."""
    found = checks.check_estimator(TopicTree(), on_skip=None)
    assert {result["status"] for result in found} == {"passed"}
    for check in (
        checks.check_estimator_repr, checks.check_estimator_tags_renamed,
        checks.check_get_params_invariance, checks.check_mixin_order,
        checks.check_no_attributes_set_in_init, checks.check_parameters_default_constructible,
        checks.check_set_params, checks.check_valid_tag_types,
    ):  # fmt: skip
        check("TopicTree", TopicTree())


def test_topics_are_columns_beside_others(learned):
    frame = pd.DataFrame({"text": texts(), "year": np.arange(400)})
    topics = TopicTree(max_phrase=1, n_topics=4)
    columns = ColumnTransformer([("topic", topics, "text"), ("kept", "passthrough", ["year"])])
    out = columns.fit_transform(frame)
    names = columns.get_feature_names_out()
    assert out.shape == (400, len(names))
    assert names[-1] == "kept__year"
    assert list(names[:-1]) == [f"topic__{name}" for name in learned.get_feature_names_out()]
    expected = learned.transform(texts()).toarray()
    np.testing.assert_allclose(out[:, :-1].astype(float), expected)
    np.testing.assert_allclose(learned.transform(texts()[10:13]).toarray(), expected[10:13])

"""Topics of documents: coherence, agreement with sections, features, likelihood, stability, time.

    LATENTREE_DATA=… python benchmarks/topics.py [--only coherence,sections,…]
    python benchmarks/topics.py --stream 300000

Rules and constants of ``latentree.topics`` were chosen on the half of the BBC documents that
``halves`` calls "chosen on"; figures are for the other half ("unseen half"), and for all 2,225
documents, as in the published evaluations. ``docs/evidence/topics.md`` says what had been
seen earlier of these, and of the newsgroups.

NPMI is written by its definition (windows of ten words over the same documents, as c_npmi of
gensim: a window is a virtual document, 1e-12 is added to the share of windows that have both
words), of ten words a topic; diversity is the share of distinct words among them. The BBC texts
come without stop words and are lemmatized, so that neighbors were none in the text: no phrases.
Published means (BERTopic evaluation) are as quoted, not rerun.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import resource
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score, rand_score
from sklearn.model_selection import StratifiedKFold

import latentree as lt
from common import data_folder, newsgroups, show
from latentree.topics import TopicTree

PUBLISHED = [
    ["BERTopic, published mean", "–", "0.167", "0.79"],
    ["Top2Vec, published mean", "–", "0.171", "0.79"],
    ["CTM, published mean", "–", "0.094", "0.82"],
    ["LDA, published mean", "–", "0.014", "0.58"],
]
WORDS = {"min_df": 2, "max_df": 0.5, "token_pattern": r"\S+"}


def bbc(folder: Path) -> tuple[list[str], np.ndarray]:
    with gzip.open(folder / "text" / "bbc_news.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [row[0] for row in rows], np.array([row[2] for row in rows])


def halves(documents: list[str], sections: np.ndarray) -> dict[str, tuple[list[str], np.ndarray]]:
    order = np.random.default_rng(0).permutation(len(documents))
    cut = len(documents) // 2
    rows = {
        "chosen on": np.sort(order[:cut]),
        "unseen half": np.sort(order[cut:]),
        "all": np.arange(len(documents)),
    }
    return {name: ([documents[i] for i in some], sections[some]) for name, some in rows.items()}


class Coherence:
    """Mean NPMI of pairs of words in windows of ten words."""

    def __init__(self, documents: list[str], window: int = 10) -> None:
        self.place: dict[str, int] = {}
        rows: list[int] = []
        columns: list[int] = []
        self.n = 0
        for text in documents:
            numbers = [self.place.setdefault(word, len(self.place)) for word in text.split()]
            for start in range(max(len(numbers) - window + 1, 1)):
                inside = set(numbers[start : start + window])
                columns.extend(inside)
                rows.extend([self.n] * len(inside))
                self.n += 1
        shape = (self.n, len(self.place))
        self.has = sparse.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)

    def __call__(self, words: list[str]) -> float:
        here = self.has[:, [self.place[word] for word in words]]
        both = (here.T @ here).toarray() / self.n
        alone = np.diag(both)
        npmi = np.log((both + 1e-12) / np.outer(alone, alone)) / -np.log(both + 1e-12)
        k = len(words)
        return float((npmi.sum() - np.trace(npmi)) / (k * (k - 1)))


def quality(coherence: Coherence, topics: list[list[str]]) -> list[str]:
    every = [word for topic in topics for word in topic]
    mean = np.mean([coherence(topic) for topic in topics])
    return [f"{mean:.3f}", f"{len(set(every)) / len(every):.2f}"]


def tree_topics(documents: list[str], n_topics: object, **options: object) -> TopicTree:
    return TopicTree(n_topics=n_topics, max_phrase=1, stop_words=None, **options).fit(documents)


def narrow_words(topics: TopicTree) -> list[list[str]]:
    table = topics.topics_
    pairs = zip(table["words"], table["level"], strict=True)
    return [words for words, level in pairs if level == topics.n_levels_]


def best_words(components: np.ndarray, names: np.ndarray) -> list[list[str]]:
    return [[names[j] for j in np.argsort(-row, kind="stable")[:10]] for row in components]


def coherence_lines(parts: dict[str, tuple[list[str], np.ndarray]]) -> list[list[str]]:
    lines = []
    for name in ("unseen half", "all"):
        documents = parts[name][0]
        coherence = Coherence(documents)
        tfidf, counts = TfidfVectorizer(**WORDS), CountVectorizer(**WORDS)
        weighted, counted = tfidf.fit_transform(documents), counts.fit_transform(documents)
        names = tfidf.get_feature_names_out()
        for k in (10, 30, 50):
            ours = narrow_words(tree_topics(documents, k, n_levels=1))
            factors = NMF(k, init="nndsvd", random_state=0, max_iter=400).fit(weighted)
            mixture = LatentDirichletAllocation(k, random_state=0).fit(counted)
            for model, topics in (
                (f"TopicTree ({len(ours)} topics)", ours),
                ("NMF", best_words(factors.components_, names)),
                ("LDA", best_words(mixture.components_, names)),
            ):
                lines.append([f"{name}, {k}: {model}", str(k), *quality(coherence, topics)])
    return lines + PUBLISHED


def section_lines(parts: dict[str, tuple[list[str], np.ndarray]]) -> list[list[str]]:
    lines = []
    for name in ("unseen half", "all"):
        documents, sections = parts[name]
        weighted = TfidfVectorizer(**WORDS).fit_transform(documents)
        counted = CountVectorizer(**WORDS).fit_transform(documents)
        k = len(set(sections.tolist()))
        seeds = range(5)

        def agree(labels: np.ndarray, sections: np.ndarray = sections) -> float:
            return float(normalized_mutual_info_score(sections, labels))

        found = {
            "TopicTree": [agree(tree_topics(documents, (k, 30)).predict(documents))],
            "k-means on tf-idf, 5 seeds": [
                agree(KMeans(k, n_init=10, random_state=s).fit_predict(weighted)) for s in seeds
            ],
            "NMF": [
                agree(NMF(k, init="nndsvd", max_iter=400).fit_transform(weighted).argmax(axis=1))
            ],
            "LDA, 5 seeds": [
                agree(
                    LatentDirichletAllocation(k, random_state=s)
                    .fit_transform(counted)
                    .argmax(axis=1)
                )
                for s in seeds
            ],
        }
        for model, values in found.items():
            spread = f"{min(values):.3f} to {max(values):.3f}" if len(values) > 1 else ""
            lines.append([f"{name}: {model}", f"{np.mean(values):.3f}", spread])
    return lines


def group_lines(folder: Path, n_topics: int = 26) -> list[list[str]]:
    codes = newsgroups()
    assert codes is not None
    with gzip.open(folder / "newsgroups_groups.csv.gz", "rt") as file:
        groups = np.array(file.read().split()[1:])
    with gzip.open(folder / "newsgroups.csv.gz", "rt") as file:
        words = file.readline().strip().split(",")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracy: dict[str, list[float]] = {}
    for train, test in folds.split(codes, groups):
        tree = TopicTree(n_topics=n_topics, n_levels=1, min_df=1, max_df=1.0)
        tree.fit(sparse.csr_array(codes[train]), words=words)
        mixture = LatentDirichletAllocation(n_topics, random_state=0).fit(codes[train])
        factors = NMF(n_topics, init="nndsvd", max_iter=400).fit(codes[train])
        for name, features in (
            (
                "TopicTree",
                [
                    tree.transform(sparse.csr_array(codes[rows]), words=words)
                    for rows in (train, test)
                ],
            ),
            ("LDA", [mixture.transform(codes[rows]) for rows in (train, test)]),
            ("NMF", [factors.transform(codes[rows]) for rows in (train, test)]),
            ("the 100 words themselves", [codes[rows] for rows in (train, test)]),
        ):
            logistic = LogisticRegression(max_iter=3_000).fit(features[0], groups[train])
            accuracy.setdefault(name, []).append(logistic.score(features[1], groups[test]))
    return [
        [f"{name}, {n_topics} topics" if "words" not in name else name, f"{np.mean(a):.1%}",
         f"± {np.std(a, ddof=1) / np.sqrt(len(a)):.1%}"]
        for name, a in accuracy.items()
    ]  # fmt: skip


def likelihood_lines(parts: dict[str, tuple[list[str], np.ndarray]]) -> list[list[str]]:
    lines = []
    for name in ("unseen half", "all"):
        documents = parts[name][0]
        order = np.random.default_rng(1).permutation(len(documents))
        cut = round(0.7 * len(documents))
        train, test = ([documents[i] for i in some] for some in (order[:cut], order[cut:]))
        topics = tree_topics(train, 30)
        table = lt.as_table(topics.count(train), "discrete", names=topics.words_.tolist())
        new = topics.count(test)
        scores = {"TopicTree": topics.score(test)}
        flat = lt.LatentTree("chow_liu", prior_weight=1.0).fit(table)
        scores["Chow-Liu"] = flat.score(new)
        mixture = lt.LatentTree("lcm", random_state=0).fit(table)
        scores[f"LCM, {mixture.model_.n_states.max()} states by BIC"] = mixture.score(new)
        star = lt.search.latent_class(table, n_states=2).model.tree
        tried = {}
        for k in (5, 10, 20):  # and the best number of states, as the test documents have it
            fitted = lt.fit_parameters(star, table, n_states=k, n_starts=1, prior_weight=1.0)
            tried[k] = float(
                fitted.model.log_likelihood(lt.as_table(new, schema=table.schema)).mean()
            )
        best = max(tried, key=lambda k: tried[k])
        scores[f"LCM, {best} states, the best of 5, 10, 20 on the test documents"] = tried[best]
        lines += [[f"{name}: {model}", f"{score:.2f}"] for model, score in scores.items()]
    return lines


def stability_lines(parts: dict[str, tuple[list[str], np.ndarray]]) -> list[list[str]]:
    documents = parts["unseen half"][0]
    lines = []
    for level, k in ((1, 5), (2, 30)):
        runs = [
            tree_topics(documents, (5, 30), random_state=seed).predict(documents, level)
            for seed in (0, 1)
        ]
        lines.append([f"{k} topics: two seeds", f"{rand_score(*runs):.3f}"])
    rng = np.random.default_rng(2)
    drawn = [
        [documents[i] for i in rng.integers(len(documents), size=len(documents))] for _ in range(2)
    ]
    resampled = [tree_topics(some, (5, 30)).predict(documents) for some in drawn]
    lines.append(["5 topics: two bootstrap samples of documents", f"{rand_score(*resampled):.3f}"])
    means = [
        KMeans(5, n_init=1, random_state=seed).fit_predict(
            TfidfVectorizer(**WORDS).fit_transform(documents)
        )
        for seed in (0, 1)
    ]
    lines.append(["5 clusters: k-means on tf-idf, two seeds", f"{rand_score(*means):.3f}"])
    return lines


def time_lines(parts: dict[str, tuple[list[str], np.ndarray]]) -> list[list[str]]:
    documents = parts["all"][0]
    lines = []
    for turn in ("first run", "warm"):
        start, spent = time.perf_counter(), time.process_time()
        topics = TopicTree().fit(documents)
        learned = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            lt.write_topics(topics, Path(folder) / "topics.html", documents)
        seconds, busy = time.perf_counter() - start, time.process_time() - spent
        lines.append([turn, f"{learned - start:.1f}", f"{seconds:.1f}", f"{busy:.1f}"])
    return lines


def stream(n: int, n_words: int, seed: int) -> Iterator[str]:
    """Yield documents of 150 words: 60 of three topics of 20 words, the others by Zipf's law."""
    rng = np.random.default_rng(seed)
    total = np.cumsum(1.0 / np.arange(1, n_words + 1))
    names = np.array([f"word{i}" for i in range(n_words)])
    for _ in range(n):
        usual = np.searchsorted(total, rng.random(90) * total[-1])
        topics = 20 * rng.integers(n_words // 20, size=(3, 1))
        yield " ".join(names[[*usual, *(topics + rng.integers(20, size=(3, 20))).ravel()]])


def scale_lines(n: int, n_words: int) -> list[list[str]]:
    start, spent = time.perf_counter(), time.process_time()
    topics = TopicTree(n_words=n_words, max_phrase=1, max_df=1.0).fit(stream(n, n_words, 0))
    seconds, busy = time.perf_counter() - start, time.process_time() - spent
    narrow = narrow_words(topics)
    planted = [len({int(word[4:]) // 20 for word in words}) == 1 for words in narrow]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        [f"{n:,} × {topics.words_.size:,}", f"{seconds:.0f}", f"{busy:.0f}", f"{memory:.1f}",
         f"{topics.report_.seconds:.0f}", str(len(narrow)), f"{np.mean(planted):.0%}"]
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    every = ("time", "likelihood", "sections", "stability", "coherence", "groups")
    parser.add_argument("--only", default=",".join(every))
    parser.add_argument("--stream", type=int, metavar="N", help="only so many streamed documents")
    options = parser.parse_args()
    if options.stream:
        header = ["documents × words", "s", "processor, s", "GB", "EM, s", "topics", "pure"]
        show(header, scale_lines(options.stream, 10_000))
        return
    wanted = options.only.split(",")
    folder = data_folder()
    if folder is None:
        return
    warnings.simplefilter("ignore", lt.errors.DataWarning)
    parts = halves(*bbc(folder))
    tables = {
        "time": (["BBC, text to page", "learning, s", "all, s", "processor, s"], time_lines),
        "likelihood": (["new documents, 70/30", "log-likelihood a document"], likelihood_lines),
        "sections": (["five broad topics and sections", "NMI", "range"], section_lines),
        "stability": (["the same documents", "Rand"], stability_lines),
        "coherence": (["BBC: ten words a topic", "topics", "NPMI", "diversity"], coherence_lines),
    }
    for name in every:
        if name in wanted and name in tables:
            header, lines = tables[name]
            show(header, lines(parts))
    if "groups" in wanted:
        show(["newsgroups, four groups, five folds", "accuracy", ""], group_lines(folder))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()

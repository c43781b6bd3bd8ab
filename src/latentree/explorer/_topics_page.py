"""From topics and their documents to the file of a page."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import NamedTuple

import numpy as np

from latentree._disk import write_bytes
from latentree.errors import DataError, ModelError
from latentree.explorer._bundle import topics_page
from latentree.explorer._packed import PageData
from latentree.topics import Document, TopicTree
from latentree.typing import FloatArray, PathLike

AT_A_TIME = 2_000
"""Documents whose topics are inferred at a time."""

SHOWN = 0.1
"""Topics of a document with a smaller probability are left out."""

MOST_PERIODS = 60
"""Bars of a time line."""


class PageLimits(NamedTuple):
    """How many documents a page holds, and how much of each."""

    documents: int = 20_000
    """Documents in a page; of more a sample is shown, and the most typical of each topic."""
    typical: int = 20
    """Documents that each topic brings into a sample."""
    characters: int = 40_000_000
    """Characters of all documents: pages of more are slow to open."""
    shortest: int = 400
    """Characters of a document that are shown at least."""


def write_topics(
    topics: TopicTree,
    path: PathLike,
    documents: Iterable[str | Document],
    title: str | None = None,
    classes: Sequence[Hashable] | None = None,
    class_title: str = "class",
) -> None:
    """Write a page in which a person reads documents by their topics.

    The page is one HTML file that opens from disk and requests nothing from the network. It holds
    the outline of the topics and their tree, words, sizes, the most typical documents with the
    words marked, a search, and a time line if the documents have dates.

    Parameters
    ----------
    topics : TopicTree
    path : path of the HTML file
        It holds either what it held before, or the whole page.
    documents : iterable of str or Document
        The texts to read; those learned from, or a list of others. Of more than 20,000 a sample
        and the most typical ones are in the page; the time line counts all. Very long documents
        are cut.
    title : str, optional
        What the page is called.
    classes : sequence, optional
        The class of every document, None where it has none: the page then shows how common topics
        are in each.
    class_title : str
        What the classes are, such as ``"newspaper"``.

    Raises
    ------
    ModelError
        If the topics are not fitted.
    DataError
        If there are no documents.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import latentree as lt, numpy as np
    >>> about = ["ball goal team coach", "bank loan rate debt", "song band album chart"]
    >>> rng = np.random.default_rng(0)
    >>> documents = [" ".join(rng.choice(about[i % 3].split(), 3)) for i in range(300)]
    >>> topics = lt.topics.TopicTree(max_phrase=1).fit(documents)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lt.write_topics(topics, Path(folder) / "topics.html", documents)
    ...     Path(folder, "topics.html").read_text("utf-8")[:15]
    '<!doctype html>'
    """
    if not topics.__sklearn_is_fitted__():
        raise ModelError("the topics are not fitted: call fit first")
    name = "Topics" if title is None else title
    content = topics_content(topics, documents, name, classes=classes, class_title=class_title)
    write_bytes(path, topics_page(content, name).encode())


class _DocumentBlock(NamedTuple):
    """A block of documents: places, the documents, probabilities and how typical they are."""

    first: int
    documents: tuple[Document, ...]
    probability: FloatArray
    typical: FloatArray


def topics_content(
    topics: TopicTree,
    documents: Iterable[str | Document],
    title: str,
    limits: PageLimits = PageLimits(),  # noqa: B008 - immutable
    classes: Sequence[Hashable] | None = None,
    class_title: str = "class",
) -> PageData:
    """Return all that the page knows of topics and documents."""
    n = len(documents) if isinstance(documents, Sized) else topics.n_documents_
    wanted = _sampled(topics, n, limits)
    longest = max(limits.characters // max(min(n, limits.documents), 1), limits.shortest)
    n_topics = len(topics.to_dict()["topic"])
    shown, read, sums, by_class = [], 0, _Sums(n_topics), _Sums(n_topics)
    for block in _blocks(topics, documents):
        read += len(block.documents)
        for row, document in enumerate(block.documents):
            sums.add(document.date, block.probability[row])
            if classes is not None:
                by_class.add(_class_of(classes, block.first + row), block.probability[row])
            if wanted is None or block.first + row in wanted:
                shown.append(_document(document, block, row, longest))
    if not read:
        raise DataError("there are no documents for the page")
    if classes is not None and len(classes) != read:
        raise DataError(f"{read:,} documents need as many classes, not {len(classes):,}")
    return {
        "title": title,
        "total": read,
        "words": _overall(topics),
        "topics": _topics(topics),
        "documents": shown,
        "times": sums.periods(),
        "classes": None if classes is None else {"title": class_title, **by_class.classes()},
    }


def _class_of(classes: Sequence[Hashable], place: int) -> str:
    """Return the class of a document; empty for none."""
    given = classes[place] if place < len(classes) else None
    return "" if given is None or given != given else str(given)


def _sampled(topics: TopicTree, n: int, limits: PageLimits) -> set[int] | None:
    """Return the places of the documents in the page; None for all."""
    if n <= limits.documents:
        return None
    names = topics.to_dict()["topic"]
    typical = {place for name in names for place, _ in topics.find_documents(name, limits.typical)}
    rest = np.setdiff1d(np.arange(n), list(typical))
    count = min(max(limits.documents - len(typical), 0), rest.size)
    return typical | set(np.random.default_rng(0).choice(rest, count, replace=False).tolist())


def _blocks(topics: TopicTree, documents: Iterable[str | Document]) -> Iterator[_DocumentBlock]:
    first, waiting = 0, iter(documents)
    while some := list(islice(waiting, AT_A_TIME)):
        block = tuple(_as_document(each, first + i) for i, each in enumerate(some))
        occurs, words = topics.count(block), topics.words_.tolist()
        probability = topics.transform(occurs, words=words)
        typical = topics.typicality(occurs, words=words, probability=probability)
        yield _DocumentBlock(first, block, probability.toarray(), typical.toarray())
        first += len(block)


def _as_document(given: object, place: int) -> Document:
    if isinstance(given, Document):
        return given
    return Document(given if isinstance(given, str) else "", f"document {place + 1}")


def _document(document: Document, block: _DocumentBlock, row: int, longest: int) -> PageData:
    """Return a document with its topics as plain values."""
    probability, typical = block.probability[row], block.typical[row]
    on = np.flatnonzero(probability >= SHOWN)
    text = document.text.strip()
    content: PageData = {
        "text": text if len(text) <= longest else text[:longest] + " …",
        "name": document.name,
        # Topic, probability in percent, and how typical in thousandths.
        "on": [
            [int(t), round(100 * probability[t]), round(1000 * typical[t])] for t in on.tolist()
        ],
    }
    return {**content, "date": document.date} if document.date else content


def _topics(topics: TopicTree) -> list[PageData]:
    """Return the topics as plain values, parents by number."""
    table = topics.to_dict()
    place = {name: number for number, name in enumerate(table["topic"])}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return [
        {
            "name": row["topic"],
            "level": row["level"],
            "parent": place.get(row["parent"], -1),
            "size": round(row["size"], 5),
            "words": row["words"],
            "probabilities": [round(p, 4) for p in row["probabilities"]],
            "coherence": round(row["coherence"], 3),
            "support": None if math.isnan(row["support"]) else round(row["support"], 3),
        }
        for row in rows
    ]


def _overall(topics: TopicTree) -> dict[str, float]:
    """Return the probabilities in all documents of the words that topics have."""
    used = {word for words in topics.to_dict()["words"] for word in words}
    model = topics.model_
    return {word: round(float(model.marginal(word)[1]), 4) for word in sorted(used)}


# The time line ----------------------------------------------------------------------------------


class _Sums:
    """Documents and expected numbers on each topic, by date or by class."""

    def __init__(self, n_topics: int) -> None:
        self.sums: dict[str, FloatArray] = {}
        self.n_topics = n_topics

    def add(self, key: str, probability: FloatArray) -> None:
        """Count a document; one without a date or class does not count."""
        if key:
            known = self.sums.setdefault(key, np.zeros(self.n_topics + 1))
            known[0] += 1.0
            known[1:] += probability

    def classes(self) -> PageData:
        """Return sums by class, the largest class first."""
        order = sorted(self.sums, key=lambda name: (-self.sums[name][0], name))
        sums = np.array([self.sums[name] for name in order]).reshape(-1, self.n_topics + 1)
        return {
            "names": order,
            "total": sums[:, 0].astype(int).tolist(),
            "topics": np.round(sums[:, 1:].T, 2).tolist(),
        }

    def periods(self) -> PageData | None:
        """Return sums by periods as long as needed for few of them; None without dates."""
        if len(self.sums) < 2:
            return None
        days = sorted(self.sums)
        for unit in ("day", "month", "quarter", "year"):
            labels = _labels(days[0], days[-1], unit)
            if len(labels) <= MOST_PERIODS:
                break
        place = {label: number for number, label in enumerate(labels)}
        sums = np.zeros((len(labels), self.n_topics + 1))
        for day, known in self.sums.items():
            sums[place[_label(datetime.date.fromisoformat(day), unit)]] += known
        return {
            "unit": unit,
            "labels": labels,
            "total": sums[:, 0].astype(int).tolist(),
            "topics": np.round(sums[:, 1:].T, 2).tolist(),
        }


def _labels(first: str, last: str, unit: str) -> list[str]:
    """Return all periods from the first day to the last, those without documents too."""
    start, end = datetime.date.fromisoformat(first), datetime.date.fromisoformat(last)
    if unit == "day":
        count = (end - start).days + 1
        if count > MOST_PERIODS:
            return [""] * count
        return [(start + datetime.timedelta(i)).isoformat() for i in range(count)]
    months = range(12 * start.year + start.month - 1, 12 * end.year + end.month)
    dates = (datetime.date(month // 12, month % 12 + 1, 1) for month in months)
    return list(dict.fromkeys(_label(date, unit) for date in dates))


def _label(date: datetime.date, unit: str) -> str:
    if unit == "quarter":
        return f"{date.year} Q{(date.month + 2) // 3}"
    return date.isoformat()[: {"day": 10, "month": 7, "year": 4}[unit]]

"""``topics``: from documents to their topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from latentree.cli import _outputs as outputs
from latentree.cli._hidden import percent
from latentree.cli._method_options import OptionValue
from latentree.cli._screen import Screen, plural
from latentree.data import path_name
from latentree.errors import FileError
from latentree.explorer import write_topics
from latentree.support import DOUBTFUL
from latentree.topics import Documents, TopicTree, read_documents

_WORDS = 7
"""Words of a topic on a line of the screen, which has 80 characters."""


class DocumentSource(NamedTuple):
    """Where documents are, and which columns of tables hold what."""

    paths: Sequence[str]
    text: str | None = None
    name: str | None = None
    date: str | None = None
    encoding: str = "utf-8"

    def open(self) -> Documents:
        """Find the files."""
        return read_documents(
            list(self.paths), self.text, name=self.name, date=self.date, encoding=self.encoding
        )


class TopicOutputs(NamedTuple):
    """Files that are written."""

    model: str | None = None
    page: str | None = None
    title: str | None = None


def topics(
    screen: Screen,
    source: DocumentSource,
    targets: TopicOutputs,
    stop_words: str,
    **settings: OptionValue,
) -> None:
    """Learn topics, show them, and write the model and the page."""
    documents = source.open()
    asked_for = tuple(filter(None, targets[:2]))
    outputs.check_apart(asked_for, [str(file) for file in documents.files])
    for path in asked_for:
        outputs.check_target(path)
    found = TopicTree(stop_words=_stop_words(stop_words), **settings)
    with screen.progress(f"learning from {path_name(list(source.paths))}", lambda *_: ""):
        found.fit(documents)
    screen.tell(
        f"{path_name(list(source.paths))}: {plural(found.n_documents_, 'document')}, "
        f"{plural(found.words_.size, 'word')} chosen"
    )
    without = found.n_documents_ - round(found.report_.n_samples)
    if without:
        screen.tell(f"{plural(without, 'document')} with none of these words")
    title = targets.title or f"Topics of {Path(source.paths[0]).name}"
    written = outputs.write_targets(
        screen,
        outputs.Target(targets.model, found.save),
        outputs.Target(targets.page, lambda path: write_topics(found, path, documents, title)),
    )
    try:
        _show(screen, found)
    finally:
        written.raise_failures()


def _stop_words(given: str) -> str | list[str] | None:
    """Return the words that are left out: english, none, or those of a file."""
    if given in ("english", "none"):
        return None if given == "none" else given
    try:
        return Path(given).read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"--stop-words {given}: use english, none, or a file with one word per line: {error}"
        ) from error


def level_sizes(text: str | None) -> int | tuple[int, ...] | None:
    """Return numbers of topics from a text such as 30, or 5,30."""
    if text is None:
        return None
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--topics {text}: say a number, or several as in 5,30") from None
    return sizes if len(sizes) > 1 else sizes[0]


def _show(screen: Screen, found: TopicTree) -> None:
    """Print the topics, as a table or as JSON."""
    table = found.to_dict()
    if screen.as_json:
        screen.json({"documents": found.n_documents_, "topics": table})
        return
    rows = []
    sure = table["support"]
    for name, level, size, words, coherence, support in zip(
        table["topic"], table["level"], table["size"], table["words"], table["coherence"], sure,
        strict=True,
    ):  # fmt: skip
        label = "  " * (level - 1) + " ".join(words[:_WORDS])
        row = [name, label, percent(size), f"{coherence:.2f}"]
        if found.n_bootstrap:
            row.append(f"{support:.2f}{' doubtful' if support < DOUBTFUL else ''}")
        rows.append(row)
    header = ["Topic", "Words", "Size", "Coherence"]
    screen.table([*header, "Support"] if found.n_bootstrap else header, rows)

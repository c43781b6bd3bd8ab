"""``demo``: the examples that come with latentree, learned and drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from latentree.cli import _learning as learning
from latentree.cli._data import described
from latentree.cli._hidden import HiddenSummary, hidden_summaries
from latentree.cli._result_tables import show_hidden, show_results
from latentree.cli._screen import Screen
from latentree.data import write_table
from latentree.datasets import Dataset, load_holzinger, load_stocks
from latentree.errors import FileError
from latentree.methods import AUTO

METHOD = AUTO


class Example(NamedTuple):
    """A bundled table, and what its variables and groups are called."""

    name: str
    load: Callable[[], Dataset]
    variables: str
    group: str
    groups: str


EXAMPLES = (
    Example("holzinger", load_holzinger, "tests", "ability", "abilities"),
    Example("stocks", load_stocks, "companies", "sector", "sectors"),
)


def demo(screen: Screen, folder: str, seed: int) -> None:
    """Learn every example, print the tables, write data, models and pictures, say what it found."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError(f"{folder}: is a file, but the demo needs a folder of that name") from None
    for example in EXAMPLES:
        _run(screen, example, Path(folder), seed)


def _run(screen: Screen, example: Example, folder: Path, seed: int) -> None:
    """Learn one example, print and write what it gives."""
    dataset = example.load()
    table = dataset.table
    screen.prose(dataset.description)
    screen.tell(f"{example.name}: {described(table)}")
    result = learning.learn_one(screen, METHOD, table, None, seed)
    assert result.fitted is not None
    stem = folder / example.name
    write_table(f"{stem}.csv", dataset.names, dataset.data)
    screen.tell(f"wrote {stem}.csv")
    targets = learning.LearnOutputs(f"{stem}.json", f"{stem}.html", f"{stem}.png")
    targets.write(screen, result, table, dict(dataset.groups)).raise_failures()
    found = hidden_summaries(result.fitted.model)
    screen.text()
    show_results(screen, [result])
    show_hidden(screen, found, result.fitted.model.tree)
    screen.prose(f"\n{sentence(example, dataset, found)}\n")


def sentence(example: Example, dataset: Dataset, found: Sequence[HiddenSummary]) -> str:
    """Say which known groups the hidden variables are tied to, and how well they agree."""
    parts, together = [], 0
    for summary in filter(lambda summary: summary.own, found):
        sizes = Counter(dataset.groups[name] for name in summary.members)
        parts.append(
            " and ".join(f"{group} ({_members(dataset, summary, group)})" for group in sizes)
        )
        largest = max(sizes.values())
        together += largest if largest > 1 else 0  # one alone agrees with nobody
    return (
        f"Without being told the {example.groups}, it found {len(found)} hidden variables, which "
        f"are tied to {'; '.join(parts)}: {together} of {len(dataset.names)} {example.variables} "
        f"are with others of their {example.group}."
    )


def _members(dataset: Dataset, summary: HiddenSummary, group: str) -> str:
    return ", ".join(name for name in summary.members if dataset.groups[name] == group)

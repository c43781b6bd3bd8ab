"""Two trees: what they share, and which variables have moved."""

from __future__ import annotations

from pathlib import Path

from latentree.cli import _outputs as outputs
from latentree.cli._screen import Screen, plural
from latentree.errors import FileError
from latentree.formats import read_tree
from latentree.models import Model, captions, component_of, load, load_report
from latentree.support import TreeComparison, load_support
from latentree.support import compare_trees as compare
from latentree.tree import Tree


def compare_trees(
    screen: Screen, first: str, second: str, page: str | None, groups: str | None, title: str | None
) -> None:
    """Print what two trees share, and write a page of two models."""
    outputs.check_apart([page], [first, second])
    found = [_read(path) for path in (first, second)]
    labels = _labels(first, second)
    if page is not None:
        outputs.check_target(page)
        _write_page(page, dict(zip(labels, found, strict=True)), (first, second), groups, title)
    compared = compare(*(_tree(each) for each in found))
    if screen.as_json:
        screen.json({"trees": labels, **compared.as_dict()})
    else:
        _show(screen, labels, compared, [_called(each) for each in found])
    if page is not None:
        screen.tell(f"wrote {page}")


def _read(path: str) -> Model | Tree:
    """Return a model, or the tree of another program's file."""
    return component_of(load(path)) if path.lower().endswith(".json") else read_tree(path)


def _tree(found: Model | Tree) -> Tree:
    return found if isinstance(found, Tree) else found.tree


def _labels(*paths: str) -> list[str]:
    """Names of files as short as they differ."""
    stems = [Path(path).stem for path in paths]
    return stems if len(set(stems)) == len(stems) else list(paths)


def _write_page(
    page: str,
    models: dict[str, Model | Tree],
    paths: tuple[str, str],
    groups: str | None,
    title: str | None,
) -> None:
    """Write the page of two models side by side."""
    for label, each in models.items():
        if isinstance(each, Tree):
            raise FileError(f"{label}: a page shows models, and this is a tree without parameters")
    one = next(iter(models.values()))
    assert not isinstance(one, Tree)
    grouped = None if groups is None else outputs.read_groups(groups, one)
    support, report = [load_support(path) for path in paths], [load_report(path) for path in paths]
    outputs.write_page(models, page, None, grouped, title, None, support, report)


def _called(found: Model | Tree) -> list[str]:
    """What nodes are called: hidden ones by what they inform about, where that is known."""
    names = list(_tree(found).names)
    called = {} if isinstance(found, Tree) else captions(found)
    return [called.get(name, name) for name in names]


def _show(
    screen: Screen, labels: list[str], found: TreeComparison, called: list[list[str]]
) -> None:
    """Print what the trees share, and which variables have moved."""
    facts = found.as_dict()
    rows = [
        ["variables", *[str(found.first.n_observed)] * 2],
        ["hidden variables", *map(str, facts["hidden"])],
        ["edges", *map(str, facts["edges"])],
        ["splits of groups", *map(str, facts["groups"])],
        ["shared splits of groups", *[str(facts["shared_groups"])] * 2],
    ]
    screen.table(["", *labels], rows)
    all_splits, groups = (
        100.0 * facts[f"normalized_{part}robinson_foulds"] for part in ("", "nontrivial_")
    )
    screen.text(
        f"Robinson-Foulds distance {facts['robinson_foulds']:,}: {all_splits:.0f} % of the splits "
        f"of both are in one tree only. Of those that can differ, with two variables or more on "
        f"both sides, it is {facts['nontrivial_robinson_foulds']:,}: {groups:.0f} %."
    )
    moved = [found.first.index(name) for name in found.moved]
    if not moved:
        screen.text("No variable has moved.")
        return
    screen.text(f"{plural(len(moved), 'variable')} moved:")
    trees = (found.first, found.second)
    screen.table(
        ["Variable", *(f"Next to, in {label}" for label in labels)],
        [[found.first.names[v], *(_around(*each, v) for each in zip(trees, called, strict=True))]
         for v in moved],
    )  # fmt: skip


def _around(tree: Tree, called: list[str], v: int) -> str:
    # Trees of a comparison have their variables in one order; hidden nodes keep their numbers.
    names = [*tree.names[: tree.n_observed], *called[tree.n_observed :]]
    return ", ".join(names[u] for u in tree.neighbors(v).tolist())

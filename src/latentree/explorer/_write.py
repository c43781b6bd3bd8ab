"""From a model to the file of its page."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from latentree._disk import write_bytes
from latentree.errors import DataError, ModelError
from latentree.explorer._bundle import page
from latentree.explorer._mixture import mixture_content
from latentree.explorer._pair import pair_content
from latentree.explorer._payload import Report, payload
from latentree.explorer._rows import MOST_BYTES, RowChoice, rows_contents, split_off
from latentree.methods import CHOSEN
from latentree.models import Model, Names, TreeMixture, as_names
from latentree.typing import PathLike

Groups = Mapping[str, Hashable] | Sequence[Hashable]
SomeNames = Names | Mapping[str, str] | PathLike | None


def write_explorer(
    model: Any,
    path: PathLike,
    data: Any = None,
    groups: Groups | None = None,
    title: str | None = None,
    names: SomeNames | Sequence[SomeNames] = None,
    support: Any = None,
    report: Report | None = None,
    rows: bool | str | Sequence[str] = False,
    row_groups: str | Sequence[Hashable] | None = None,
    annotations: Mapping[str, Groups] | None = None,
) -> None:
    """Write a page in which a person looks at a model and asks it questions.

    The page is one HTML file that opens from disk and requests nothing from the network. It is
    written so that its path holds either what it held before, or the whole page.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel, TreeMixture or fitted LatentTree
        Of a mixture the page shows one tree at a time and answers by all. Or two models of one tree
        over the same variables, in a list or by what they are called in a mapping: the page then
        shows them side by side, with the splits that they share and the variables that have
        moved. ``support`` and ``report`` are then lists of two as well.
    path : path of the HTML file
    data : table, optional
        Rows of the observed variables in any form that the model takes: the page then shows how
        each variable is distributed. Only counts go into the page, unless ``rows`` are asked for.
    groups : mapping or sequence, optional
        Groups by name of variable, or one for each observed variable. Colors the variables and
        adds a legend; variables left out are gray.
    title : str, optional
        What the page is called.
    names : Names, mapping or path, optional
        What hidden variables, and their states, are called; the page saves such files. Others are
        called by the variables that they inform most about. Of two models, or of a mixture, a list
        of one a tree (or None), or one for all trees that have nodes with these names.
    support : Support, optional
        How sure the tree is; that of a fitted LatentTree with ``n_bootstrap`` when left out.
    report : FitReport or mapping, optional
        How the model was learned, for a card in the page: its ``method``, ``n_samples``, ``date``,
        ``log_likelihood``, ``bic_score`` and ``version`` are shown. That of a fitted LatentTree
        when left out; :func:`latentree.models.load_report` reads it from a model file.
    rows : bool, str or sequence of str
        Put rows into the page: True, the name of a column of ``data``, or one text a row. They are
        the typical and the borderline ones of every hidden state (of a hidden Gaussian the highest
        and the lowest), and more as far as 2 MB go; the page says how many. Any of them can be
        supposed. Texts, such as documents, are shown in their place. Two models have half the room
        each.
    row_groups : str or sequence, optional
        The name of a column of ``data``, or one group a row: the page then shows how common every
        hidden state is in each group of rows.
    annotations : mapping, optional
        What else is known of variables: from titles to mappings from names, or to one value a
        variable, numbers or labels. The page colors by it.

    Returns
    -------
    None

    Raises
    ------
    ModelError
        If ``model`` is a tree without parameters, or no model at all.
    DataError
        If ``data``, ``groups`` or ``names`` do not fit the variables of the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentree import simulate
    >>> model = simulate.random_gaussian_model(simulate.double_star(8), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tree.html"
    ...     write_explorer(model, path, title="Two hidden variables")
    ...     path.read_text("utf-8")[:15]
    '<!doctype html>'
    """
    page = explorer_html(
        model, data, groups, title, names, support, report, rows, row_groups, annotations
    )
    write_bytes(path, page.encode())


def explorer_html(
    model: Any,
    data: Any = None,
    groups: Groups | None = None,
    title: str | None = None,
    names: SomeNames | Sequence[SomeNames] = None,
    support: Any = None,
    report: Report | None = None,
    rows: bool | str | Sequence[str] = False,
    row_groups: str | Sequence[Hashable] | None = None,
    annotations: Mapping[str, Groups] | None = None,
) -> str:
    """Return the page that :func:`write_explorer` writes, with the same parameters."""
    common: dict[str, Any] = {"groups": groups, "annotations": annotations}
    if isinstance(model, Mapping | Sequence):
        asked = (rows, row_groups)
        return _pair_html(model, title, data, names, support, report, asked, common)
    found = _model_of(model)
    support = getattr(model, "support_", None) if support is None else support
    facts = _learned(model) if report is None else report
    name = _title_of(found) if title is None else title
    data, choice = _split_off(data, rows, row_groups, found.schema.names)
    if isinstance(found, TreeMixture):
        if support is not None:
            raise ModelError("support is of one tree: a mixture has none")
        named = _names_of(names, found.components)
        return page(mixture_content(found, name, data, named, facts, choice, **common), name)
    [called] = _names_of(names, [found])
    content = payload(found, name, data, names=called, support=support, report=facts, **common)
    if choice is not None:
        content |= rows_contents([found], data, choice)[0]
    return page(content, name)


def _pair_html(
    models: Any,
    title: str | None,
    data: Any,
    names: Any,
    support: Any,
    report: Any,
    asked: tuple[Any, Any],
    common: dict[str, Any],
) -> str:
    """Return the page of two models side by side, each with its own support and report, if any."""
    if len(models) != 2:
        raise ModelError(f"a page shows one model or two side by side, not {len(models)}")
    named = isinstance(models, Mapping)
    labels = list(map(str, models)) if named else ["First tree", "Second tree"]
    pair = list(models.values() if named else models)
    found = [_tree_model(each) for each in pair]
    name = " and ".join(labels) if title is None else title
    supports = [getattr(each, "support_", None) for each in pair] if support is None else support
    reports = list(map(_learned, pair)) if report is None else report
    called = _names_of(names, found)
    data, choice = _split_off(data, *asked, found[0].schema.names)
    contents = []
    for each, own, sure, facts in zip(found, called, supports, reports, strict=True):
        content = payload(each, name, data, names=own, support=sure, report=facts, **common)
        if choice is not None:
            content |= rows_contents([each], data, choice, room=MOST_BYTES // 2)[0]
        contents.append(content)
    return page(pair_content(name, labels, found, contents), name)


def _split_off(
    data: Any, rows: Any, row_groups: Any, known: Sequence[str]
) -> tuple[Any, RowChoice | None]:
    """Return data without the columns that are only shown, and what is asked for of rows."""
    if rows is False and row_groups is None:
        return data, None
    if data is None:
        raise DataError("rows in the page come from data: give data= too")
    return split_off(data, rows, row_groups, known)


def _names_of(names: Any, models: Sequence[Model]) -> list[Names]:
    """Return names for each of several trees: given one a tree, or one for all that have them."""
    if isinstance(names, Sequence) and not isinstance(names, str):
        if len(names) != len(models):
            raise DataError(f"{len(models)} trees need as many names, not {len(names)}")
        return [as_names(each) for each in names]
    given = as_names(names)
    parts = {part: getattr(given, part) for part in ("names", "states", "notes")}
    known = [set(model.tree.names) for model in models]
    for part, own in parts.items():
        for name in own:
            if not any(name in nodes for nodes in known):
                raise DataError(f"{part}: there is no node {name!r} in the model")
    return [
        Names(*({name: own[name] for name in own if name in nodes} for own in parts.values()))
        for nodes in known
    ]


def _title_of(model: Model | TreeMixture) -> str:
    kind = f"Mixture of {model.n_trees} trees" if isinstance(model, TreeMixture) else "Latent tree"
    return f"{kind} of {model.tree.n_observed} variables"


def _model_of(model: Any) -> Model | TreeMixture:
    found = getattr(model, "model_", model)
    if not isinstance(found, Model | TreeMixture):
        raise ModelError(
            f"expected a tree model, got {type(found).__name__}: fit_parameters(tree, X) makes one "
            "of a tree"
        )
    return found


def _tree_model(model: Any) -> Model:
    """Return one of two models, each of one tree."""
    found = _model_of(model)
    if isinstance(found, TreeMixture):
        raise ModelError(
            "two models side by side have one tree each: component_of(mixture) chooses one of a "
            "mixture"
        )
    return found


def _learned(model: Any) -> dict[str, Any]:
    """What a fitted LatentTree, or a model with a report beside it, says of how it learned."""
    report = getattr(model, "report_", None)
    if report is None:
        return {}
    chosen = [note.removeprefix(CHOSEN) for note in report.notes if note.startswith(CHOSEN)]
    return {**report.as_dict(), "method": next(iter(chosen), model.method)}


@dataclass(frozen=True)
class ExplorerPage:
    """A page that a notebook shows in a frame of its own.

    Parameters
    ----------
    html : str
        The whole page.
    height : int
        Pixels of the frame.
    """

    html: str
    height: int = 640

    def _repr_html_(self) -> str:
        source = escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{source}" title="Latent tree" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )

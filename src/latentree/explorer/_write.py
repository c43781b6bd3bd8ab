"""From a model to the file of its page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from latentree._disk import write_bytes
from latentree.errors import DataError, ModelError
from latentree.explorer._bundle import page
from latentree.explorer._mixture_content import mixture_content
from latentree.explorer._pair_content import pair_content
from latentree.explorer._payload import Report, payload
from latentree.explorer._row_content import MOST_BYTES, RowChoice, rows_contents, split_off
from latentree.methods import CHOSEN
from latentree.models import Model, Names, TreeMixture, as_names
from latentree.tree import GroupsLike
from latentree.typing import PathLike, TableLike

NamesLike = Names | Mapping[str, str] | PathLike | None
"""What hidden variables and states are called, or the path of a file that says so."""

Facts = TypeVar("Facts")

if TYPE_CHECKING:
    from latentree.estimator import LatentTree
    from latentree.support import Support

    Explained: TypeAlias = Model | TreeMixture | LatentTree


@dataclass(frozen=True)
class _PageOptions:
    """What is asked for beside the models; see :func:`write_explorer`."""

    data: TableLike | None
    groups: GroupsLike | None
    title: str | None
    names: NamesLike | Sequence[NamesLike]
    support: Support | Sequence[Support | None] | None
    report: Report | Sequence[Report | None] | None
    rows: bool | str | Sequence[str]
    row_groups: str | Sequence[Hashable] | None
    annotations: Mapping[str, GroupsLike] | None


def write_explorer(
    model: Explained | Sequence[Explained] | Mapping[str, Explained],
    path: PathLike,
    data: TableLike | None = None,
    groups: GroupsLike | None = None,
    title: str | None = None,
    names: NamesLike | Sequence[NamesLike] = None,
    support: Support | Sequence[Support | None] | None = None,
    report: Report | Sequence[Report | None] | None = None,
    rows: bool | str | Sequence[str] = False,
    row_groups: str | Sequence[Hashable] | None = None,
    annotations: Mapping[str, GroupsLike] | None = None,
) -> None:
    """Write a page that shows a model and answers questions about it.

    The page is one HTML file that opens from disk and requests nothing from the network. It is
    written so that its path holds either what it held before, or the whole page.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel, TreeMixture or fitted LatentTree
        Of a mixture, the page shows one tree at a time, and answers by all. Or two models of one
        tree each over the same variables, in a list, or in a mapping by their titles: the page
        then shows them side by side, with the splits that they share and the variables that have
        moved. ``support`` and ``report`` are then lists of two as well.
    path : path of the HTML file
    data : table, optional
        Rows of the observed variables in any form that the model takes: the page then shows how
        each variable is distributed. Only counts go into the page, unless ``rows`` are asked for.
    groups : mapping or sequence, optional
        Groups by name of variable, or one for each observed variable. Colors the variables and
        adds a legend; variables left out are gray.
    title : str, optional
        Title of the page.
    names : Names, mapping or path, optional
        Names of hidden variables and their states; the page saves such files. Other hidden
        variables are named after the variables that they inform most about. For two models, or a
        mixture, a list with an entry (or None) per tree, or one for all trees.
    support : Support, optional
        How sure the tree is; that of a fitted LatentTree with ``n_bootstrap`` when left out.
    report : FitReport or mapping, optional
        How the model was learned, for a card in the page: its ``method``, ``n_samples``, ``date``,
        ``log_likelihood``, ``bic_score`` and ``version`` are shown. That of a fitted LatentTree
        when left out; :func:`latentree.models.load_report` reads it from a model file.
    rows : bool, str or sequence of str
        Put rows into the page: True, the name of a column of ``data``, or one text per row. They
        are the typical and the borderline rows of every hidden state (of a hidden Gaussian variable
        the highest and the lowest), and others up to 2 MB; the page says how many. Any of them can
        be supposed. Texts, such as documents, are shown in place of the cells. Two models get half
        the room each.
    row_groups : str or sequence, optional
        The name of a column of ``data``, or one group per row: the page then shows how common every
        hidden state is in each group of rows.
    annotations : mapping, optional
        What else is known about the variables, numbers or labels: for each title a mapping from
        names, or one value per variable. The page colors by it.

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
    model: Explained | Sequence[Explained] | Mapping[str, Explained],
    data: TableLike | None = None,
    groups: GroupsLike | None = None,
    title: str | None = None,
    names: NamesLike | Sequence[NamesLike] = None,
    support: Support | Sequence[Support | None] | None = None,
    report: Report | Sequence[Report | None] | None = None,
    rows: bool | str | Sequence[str] = False,
    row_groups: str | Sequence[Hashable] | None = None,
    annotations: Mapping[str, GroupsLike] | None = None,
) -> str:
    """Return the page that :func:`write_explorer` writes, with the same parameters."""
    asked = _PageOptions(data, groups, title, names, support, report, rows, row_groups, annotations)
    if isinstance(model, Mapping | Sequence):
        return _pair_html(model, asked)
    return _single_html(model, asked)


def _single_html(model: Explained, asked: _PageOptions) -> str:
    """Return the page of one model."""
    found = _model_of(model)
    [support] = _one_each(asked.support, [model], _support_of)
    reports: Sequence[Report | None] = _one_each(asked.report, [model], _learned)
    title = _title_of(found) if asked.title is None else asked.title
    data, choice = _split_off(asked, found.schema.names)
    if isinstance(found, TreeMixture):
        if support is not None:
            raise ModelError("support is of one tree: a mixture has none")
        named = _names_of(asked.names, found.components)
        content = mixture_content(
            found, title, data, named, reports[0], choice, asked.groups, asked.annotations
        )
        return page(content, title)
    [called] = _names_of(asked.names, [found])
    content = payload(
        found, title, data, asked.groups, called, support, reports[0], asked.annotations
    )
    if choice is not None:
        content |= rows_contents([found], data, choice)[0]
    return page(content, title)


def _pair_html(models: Sequence[Explained] | Mapping[str, Explained], asked: _PageOptions) -> str:
    """Return the page of two models side by side, each with its own support and report, if any."""
    if len(models) != 2:
        raise ModelError(f"a page shows one model or two side by side, not {len(models)}")
    if isinstance(models, Mapping):
        labels, pair = list(map(str, models)), list(models.values())
    else:
        labels, pair = ["First tree", "Second tree"], list(models)
    found = [_tree_model(each) for each in pair]
    title = " and ".join(labels) if asked.title is None else asked.title
    supports = _one_each(asked.support, pair, _support_of)
    reports: Sequence[Report | None] = _one_each(asked.report, pair, _learned)
    called = _names_of(asked.names, found)
    data, choice = _split_off(asked, found[0].schema.names)
    contents = []
    for each, own, support, report in zip(found, called, supports, reports, strict=True):
        content = payload(each, title, data, asked.groups, own, support, report, asked.annotations)
        if choice is not None:
            content |= rows_contents([each], data, choice, room=MOST_BYTES // 2)[0]
        contents.append(content)
    return page(pair_content(title, labels, found, contents), title)


def _one_each(
    given: Facts | Sequence[Facts | None] | None,
    models: Sequence[Explained],
    own: Callable[[Explained], Facts | None],
) -> Sequence[Facts | None]:
    """Return what is given for each model, in a list if there are two; or what models have."""
    if given is None:
        return [own(model) for model in models]
    if isinstance(given, Sequence) and len(given) == len(models) == 2:
        return given
    if isinstance(given, Sequence) or len(models) == 2:
        raise DataError("two models take lists of two as support and report, one model no lists")
    return [given]


def _support_of(model: Explained) -> Support | None:
    """Return the support of a LatentTree that was fitted with ``n_bootstrap``."""
    found: Support | None = getattr(model, "support_", None)
    return found


def _split_off(
    asked: _PageOptions, known: Sequence[str]
) -> tuple[TableLike | None, RowChoice | None]:
    """Return data without the columns that are only shown, and what is asked for of rows."""
    if asked.rows is False and asked.row_groups is None:
        return asked.data, None
    if asked.data is None:
        raise DataError("rows in the page come from data: give data= too")
    return split_off(asked.data, asked.rows, asked.row_groups, known)


def _names_of(names: NamesLike | Sequence[NamesLike], models: Sequence[Model]) -> list[Names]:
    """Return names for each of several trees: given one a tree, or one for all that have them."""
    if isinstance(names, Sequence) and not isinstance(names, str):
        if len(names) != len(models):
            raise DataError(f"{len(models)} trees need as many names, not {len(names)}")
        return [as_names(each) for each in names]
    return as_names(names).among(models)


def _title_of(model: Model | TreeMixture) -> str:
    kind = f"Mixture of {model.n_trees} trees" if isinstance(model, TreeMixture) else "Latent tree"
    return f"{kind} of {model.tree.n_observed} variables"


def _model_of(model: Explained) -> Model | TreeMixture:
    found = getattr(model, "model_", model)
    if not isinstance(found, Model | TreeMixture):
        raise ModelError(
            f"expected a tree model, got {type(found).__name__}: fit_parameters(tree, X) makes one "
            "of a tree"
        )
    return found


def _tree_model(model: Explained) -> Model:
    """Return one of two models, each of one tree."""
    found = _model_of(model)
    if isinstance(found, TreeMixture):
        raise ModelError(
            "two models side by side have one tree each: component_of(mixture) chooses one of a "
            "mixture"
        )
    return found


def _learned(model: Explained) -> Report:
    """What a fitted LatentTree, or a model with a report beside it, says of how it learned."""
    report = getattr(model, "report_", None)
    if report is None:
        return {}
    chosen = [note.removeprefix(CHOSEN) for note in report.notes if note.startswith(CHOSEN)]
    return {**report.as_dict(), "method": next(iter(chosen), getattr(model, "method", ""))}


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

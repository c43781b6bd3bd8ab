"""Results for each row, written block by block: data and results need not fit into memory.

The file appears complete at the end, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from latentree.data import (
    MATRICES,
    STANDARD,
    Parts,
    Schema,
    Table,
    WholeFiles,
    as_parts,
    is_path,
    list_files,
    open_whole,
    suffix_of,
    table_writer,
)
from latentree.errors import FileError, LatentTreeError, ModelError
from latentree.inference._nodes import node_number
from latentree.inference._posteriors import DiscretePosterior, Normal, refuse_rows
from latentree.tree import Tree
from latentree.typing import (
    AnyArray,
    DaskClient,
    DataLike,
    FloatArray,
    IntArray,
    Node,
    PathLike,
    TableLike,
)


class Written(NamedTuple):
    """The size of a file that was written: rows and columns, and a total over all rows."""

    n_rows: int
    n_columns: int
    total: float
    """Scores: the sum of the log-likelihoods. Imputation: how many cells were filled in."""


class RowModel(Protocol):
    """The part of :class:`latentree.models.TreeModel` that results row by row need."""

    @property
    def tree(self) -> Tree:
        """The tree."""
        ...

    @property
    def schema(self) -> Schema:
        """Columns of the data that the model takes."""
        ...

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """Log-likelihood of each row."""
        ...

    def posterior(
        self, X: TableLike, nodes: Iterable[Node] | None = None
    ) -> Normal[FloatArray] | DiscretePosterior:
        """Distributions of nodes, by default the hidden ones, given each row."""
        ...

    def impute(self, X: TableLike) -> AnyArray:
        """Rows with their missing cells filled in."""
        ...


def write_scores(
    model: RowModel, X: DataLike, path: PathLike, *, client: DaskClient = None
) -> Written:
    """Write the log-likelihood of each row.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel
        The model that is asked.
    X : table, path, dask collection or Parts
        Anything :func:`latentree.as_parts` takes.
    path : path
        The file to write, in the format of its suffix; ``-`` is standard output.
    client : dask.distributed.Client, optional
        The cluster that reads and computes. Without it everything happens in this process.

    Returns
    -------
    Written
        Number of rows and of columns, and the sum of the log-likelihoods.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(4), 0)
    >>> with TemporaryDirectory() as folder:
    ...     written = write_scores(model, model.sample(100, 1), f"{folder}/scores.csv")
    >>> written.n_rows, written.n_columns
    (100, 1)
    """
    return _write(model, X, path, ["log_likelihood"], score_part, client=client)


def write_posteriors(
    model: RowModel, X: DataLike, path: PathLike, *, errors: bool = False, client: DaskClient = None
) -> Written:
    """Write the hidden variables of each row: posterior means, or probabilities of the states.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel
        The model that is asked.
    X : table, path, dask collection or Parts
        Anything :func:`latentree.as_parts` takes.
    path : path
        The file to write, in the format of its suffix; ``-`` is standard output.
    errors : bool
        Whether standard errors follow, of Gaussian hidden variables.
    client : dask.distributed.Client, optional
        The cluster that reads and computes. Without it everything happens in this process.

    Returns
    -------
    Written
        Number of rows and of columns.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(4), 0)
    >>> with TemporaryDirectory() as folder:
    ...     written = write_posteriors(model, model.sample(100, 1), f"{folder}/hidden.csv")
    >>> written.n_rows, written.n_columns
    (100, 1)
    """
    names, part = posterior_names(model, errors), errors_part if errors else infer_part
    return _write(model, X, path, names, part, client=client)


def write_imputed(
    model: RowModel,
    X: DataLike,
    path: PathLike,
    *,
    client: DaskClient = None,
    whole: WholeFiles | None = None,
) -> Written:
    """Write a table with missing cells filled in.

    Real cells get their posterior mean, discrete ones their most probable value. Files keep all
    their columns in their order, and those of the model that they lack follow; of other data the
    model's columns are written.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel
        The model that is asked.
    X : table, path, dask collection or Parts
        Anything :func:`latentree.as_parts` takes. Files may lack columns of the model.
    path : path
        The file to write, in the format of its suffix; ``-`` is standard output.
    client : dask.distributed.Client, optional
        The cluster that reads and computes. Without it everything happens in this process.
    whole : WholeFiles, optional
        The files behind ``X`` if it is ``Parts``, whose other columns are to be written too.

    Returns
    -------
    Written
        Number of rows and of columns, and how many cells of the model's columns were filled in.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(4), 0)
    >>> with TemporaryDirectory() as folder:
    ...     written = write_imputed(model, [[0.5, 0.1, None, 0.3]], f"{folder}/filled.csv")
    >>> written.total
    1.0
    """
    schema = model.schema
    if whole is None and is_path(X) and _is_read_again(list_files(X)):
        whole = open_whole(X, schema, path)
    if whole is None:
        labels = None if schema.family == "gaussian" else schema.labels
        return _write(model, X, path, schema.names, impute_part, labels, client=client)
    parts = as_parts(X, schema=schema, client=client, may_lack=schema.names)
    total = 0.0
    pairs = zip(whole.pieces(parts.step), blocks_of(parts, impute_part, model), strict=True)
    with table_writer(path, whole.titles) as write:
        for piece, (block, n_filled) in pairs:
            write(whole.filled(piece, block))
            total += n_filled
    return Written(parts.n_rows, len(whole.titles), total)


def _is_read_again(paths: Sequence[str]) -> bool:
    """Whether files can be read a second time, and may hold more columns than the model has."""
    return paths[0] != STANDARD and suffix_of(paths[0]) not in MATRICES


def write_predictions(
    model: RowModel,
    X: DataLike,
    path: PathLike,
    variable: Node,
    probabilities: bool = False,
    *,
    client: DaskClient = None,
) -> Written:
    """Write what one variable is predicted to be from the other cells of each row.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel or MixedTreeModel
        The model that is asked.
    X : table, path, dask collection or Parts
        Anything :func:`latentree.as_parts` takes; the variable's own column may be there or not.
    path : path
        The file to write, in the format of its suffix; ``-`` is standard output.
    variable : str or int
        Name or number of the variable, observed or hidden.
    probabilities : bool
        Whether the probabilities of its values are written, in place of the most probable one.
    client : dask.distributed.Client, optional
        The cluster that reads and computes. Without it everything happens in this process.

    Returns
    -------
    Written
        Number of rows and of columns.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(4), 0)
    >>> with TemporaryDirectory() as folder:
    ...     written = write_predictions(model, model.sample(9, 1), f"{folder}/new.csv", "x1")
    >>> written.n_rows, written.n_columns
    (9, 1)
    """
    number = node_number(model.tree, variable)
    may_lack = model.tree.names[number : number + 1]
    parts = as_parts(X, schema=model.schema, client=client, may_lack=may_lack)
    if probabilities:
        names = state_names(model, number)
        return _write(model, parts, path, names, partial(probability_part, number=number))
    is_label = number < model.tree.n_observed and model.schema.labels[number]
    labels = [model.schema.labels[number]] if is_label else None
    return _write(model, parts, path, may_lack, partial(predict_part, number=number), labels)


def posterior_names(model: RowModel, errors: bool = False) -> list[str]:
    """Names of the columns of posteriors: ``h1``, or ``h1=0``, ``h1=1``, …; ``h1 error``."""
    hidden = model.tree.hidden.tolist()
    known = getattr(model, "n_states", None)
    if known is None:
        names = [model.tree.names[h] for h in hidden]
        return names + [f"{name} error" for name in names] if errors else names
    if errors:
        raise ModelError("hidden variables with states have probabilities, not standard errors")
    names = [f"{model.tree.names[h]}={k}" for h in hidden for k in range(int(known[h]))]
    for number, part in enumerate(_components(model)):
        names += [f"tree {number}: {name}" for name in posterior_names(part)]
    return names


def _components(model: RowModel) -> Sequence[RowModel]:
    """Components of a mixture, whose hidden variables follow its class variable."""
    return getattr(model, "components", ())


# One part ---------------------------------------------------------------------------------------

RowResults = tuple[AnyArray, float]
"""The results of a part, one output row per input row, and a total over its rows."""

Result = TypeVar("Result")


def score_part(table: Table, model: RowModel) -> RowResults:
    """Log-likelihood of each row of a part, and their sum."""
    each = model.log_likelihood(table)
    return each[:, None], float(each.sum())


def infer_part(table: Table, model: RowModel) -> RowResults:
    """Posteriors of each row of a part."""
    own = _expected(model.posterior(table))
    parts = [infer_part(table, part)[0] for part in _components(model)]
    return np.hstack([own, *parts]) if parts else own, 0.0


def errors_part(table: Table, model: RowModel) -> RowResults:
    """Means of Gaussian hidden variables of each row of a part, and their standard errors."""
    posterior = model.posterior(table)
    assert isinstance(posterior, Normal)
    mean, variance = posterior
    return np.hstack([mean, np.sqrt(np.maximum(variance, 0.0))]), 0.0


def _expected(posterior: Normal[FloatArray] | DiscretePosterior) -> FloatArray:
    """Return posterior means, or the probabilities of the states."""
    return posterior.mean if isinstance(posterior, Normal) else posterior.probabilities


def impute_part(table: Table, model: RowModel) -> RowResults:
    """Rows of a part without gaps, and how many cells were filled in."""
    return model.impute(table), float(table.missing_counts.sum())


def predict_part(table: Table, model: RowModel, number: int) -> RowResults:
    """Most probable label, or mean, of a node in each row of a part, its own cells left aside."""
    if number < table.n_columns:
        labels = model.schema.labels[number]
        if not labels:
            return model.impute(_without(table, number))[:, [number]], 0.0
        types = set(map(type, labels))
        values = np.array(labels, None if len(types) == 1 else object)
        return values[_most_probable(probability_part(table, model, number)[0])], 0.0
    posterior = model.posterior(table, [number])
    if isinstance(posterior, Normal):
        return posterior.mean, 0.0
    return _most_probable(posterior[number]), 0.0


def _most_probable(probabilities: FloatArray) -> IntArray:
    """Return the most probable state of each row, a column; refuse impossible rows."""
    refuse_rows(np.isnan(probabilities.sum(axis=1)), np.arange(len(probabilities)))
    return np.asarray(probabilities.argmax(axis=1)[:, None])


def probability_part(table: Table, model: RowModel, number: int) -> RowResults:
    """Probabilities of the states of a node in each row of a part, its own cells left aside."""
    if number < table.n_columns:
        table = _without(table, number)
    posterior = model.posterior(table, [number])
    assert isinstance(posterior, DiscretePosterior)
    return posterior[number], 0.0


def _without(table: Table, number: int) -> Table:
    """Return a table in which a column is missing."""
    values = table.values.toarray() if table.is_sparse else np.array(table.values)
    values[:, number] = -1 if table.schema.is_coded else np.nan
    return Table(values, table.schema)


def state_names(model: RowModel, number: int) -> list[str]:
    """Names of the columns of probabilities: ``rain=no``, ``rain=yes``, or ``h1=0``, …."""
    name = model.tree.names[number]
    if number < model.tree.n_observed:
        labels: Sequence[Hashable] = model.schema.labels[number]
    else:
        known = getattr(model, "n_states", None)
        labels = range(0 if known is None else known[number])
    if not len(labels):
        raise ModelError(f"{name!r} holds numbers, so there are no probabilities of its values")
    return [f"{name}={label}" for label in labels]


# All parts --------------------------------------------------------------------------------------


def blocks_of(
    parts: Parts, function: Callable[[Table, RowModel], Result], model: RowModel
) -> Iterator[Result]:
    """Yield the result of a function of every part; errors tell the rows."""
    results = parts.tables.each(function, model)
    step = parts.step
    for number in range(parts.n_parts):
        try:
            yield next(results)
        except FileError:
            raise
        except LatentTreeError as error:
            first, last = number * step, min((number + 1) * step, parts.n_rows) - 1
            raise type(error)(f"{parts.name}, rows {first:,} to {last:,}: {error}") from error


def _labeled(
    table: Table, model: RowModel, function: Callable[[Table, RowModel], RowResults]
) -> tuple[tuple[AnyArray, object], float]:
    """Return the results of a part with the labels of its rows, and the total."""
    block, total = function(table, model)
    return (block, table.row_labels), total


def _write(
    model: RowModel,
    X: DataLike,
    path: PathLike,
    names: Sequence[str],
    function: Callable[[Table, RowModel], RowResults],
    labels: Sequence[Sequence[Hashable]] | None = None,
    client: DaskClient = None,
) -> Written:
    parts = as_parts(X, schema=model.schema, client=client)
    blocks = blocks_of(parts, partial(_labeled, function=function), model)
    total = 0.0
    first = next(blocks)  # tells whether the rows have labels
    with table_writer(path, names, labels, first[0][1] is not None) as write:
        for block, part_total in chain([first], blocks):
            write(*block)
            total += part_total
    return Written(parts.n_rows, len(names), total)

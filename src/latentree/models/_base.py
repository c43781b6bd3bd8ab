"""The base of all models: names, files, pages, sums over rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from numpy.typing import ArrayLike

from latentree import _memory as memory
from latentree._display import displayed
from latentree.data import Schema, Table, as_table
from latentree.errors import ModelError
from latentree.inference import weighted_total
from latentree.tree import Tree
from latentree.typing import FloatArray, PathLike, TableLike

if TYPE_CHECKING:
    from latentree.models._naming import Names  # which knows the models

AnyModel = TypeVar("AnyModel", bound="BaseTreeModel")


class NotebookPage(Protocol):
    """A page that a notebook shows: :class:`latentree.explorer.ExplorerPage`, a layer above."""

    html: str

    def _repr_html_(self) -> str: ...


def with_schema(model: AnyModel, schema: Schema) -> AnyModel:
    """Return a model that knows the whole table: reasons, and columns that were set aside.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel
    schema : Schema
        Says the same as the model's of the columns that are used, in any order.

    Returns
    -------
    model of the same type

    Examples
    --------
    >>> import latentree as lt
    >>> table = lt.as_table({"a": [0.5, 1.5, 2.5], "b": [1.5, 0.5, 0.1]}, kinds={"b": "ignore"})
    >>> model = lt.GaussianTreeModel(lt.Tree([-1], names=["a"]), [0])
    >>> with_schema(model, table.schema).schema.aside
    (SetAside(name='b', place=1, why='as asked for', value=None),)
    """
    own = model.schema
    if sorted(own.names) != sorted(schema.names):
        raise ModelError("the schema has other columns than the model")
    place = {name: j for j, name in enumerate(schema.names)}
    return model._with_schema(schema.select([place[name] for name in own.names]))


class BaseTreeModel:
    """The methods that do not depend on the family of a model."""

    state_names: Mapping[str, Sequence[str]] = MappingProxyType({})
    """What people call the states of hidden variables, by the names of these."""
    notes: Mapping[str, str] = MappingProxyType({})
    """What people noted about nodes, by their names."""

    if TYPE_CHECKING:  # a family has them as fields of a dataclass, or as properties

        @property
        def tree(self) -> Tree:
            """The tree of the model."""

        @property
        def schema(self) -> Schema:
            """The columns of the observed variables."""

        def log_likelihood(self, X: TableLike) -> FloatArray:
            """Return the log-likelihood of every row."""

    def _with_schema(self, schema: Schema) -> Self:
        """Return the same model with a schema of its columns, in the order of its own."""
        known = copy.copy(self)
        object.__setattr__(known, "schema", schema)
        return known

    def _table(self, X: TableLike) -> Table:
        """Return data as a table with the columns of the model."""
        return as_table(X, schema=self.schema)

    def _require_draws(self, n_samples: int, n_bytes: float) -> None:
        """Raise unless a number of ``n_bytes`` for every node of so many rows fits into memory."""
        memory.require(
            n_bytes * n_samples * self.tree.n_nodes,
            f"{n_samples:,} rows of {self.tree.n_nodes:,} nodes",
            "draw fewer at a time",
        )

    def total_log_likelihood(self, X: TableLike, weights: ArrayLike | None = None) -> float:
        """Return the weighted sum of the log-likelihoods of the rows.

        Parameters
        ----------
        X : table of any kind
        weights : array of float, optional
            How much each row counts; 1 when left out.

        Returns
        -------
        float

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
        >>> round(model.total_log_likelihood([[0.0, 0.0], [1.0, 1.0]], weights=[1, 2]), 3)
        -6.415
        """
        table = as_table(X, schema=self.schema, weights=weights)
        table = table.counted() if table.total_weight > 0 else table
        return weighted_total(self.log_likelihood(table), table.weights)

    def _repr_html_(self) -> str:
        return str(displayed("tree", self))

    def explore(
        self, data: TableLike = None, *, height: int = 640, **options: object
    ) -> NotebookPage:
        """Show the explorer's page inside a notebook.

        Parameters
        ----------
        data : table, optional
        height : int
            Pixels of the page.
        **options
            ``groups``, ``title`` and ``names``, as :func:`latentree.write_explorer` takes them.

        Returns
        -------
        ExplorerPage
            A notebook shows it; its attribute ``html`` is the page.

        Examples
        --------
        >>> import latentree as lt
        >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
        >>> model.explore(title="A pair").html[:15]
        '<!doctype html>'
        """
        page: NotebookPage = displayed("page", self, data, height, **options)
        return page

    def rename(self, names: Names | Mapping[str, str] | PathLike | None = None) -> Self:
        """Return the same model with other names of nodes and states, and with notes.

        Parameters
        ----------
        names : mapping, Names or path, optional
            Old and new names, or the file that holds them, with names of states and notes. Nodes
            that are left out keep their names. Without it every hidden variable that has no name
            but a number is named after the variables that it informs most about
            (:func:`latentree.models.captions`).

        Returns
        -------
        model of the same type

        Raises
        ------
        DataError
            If there is no such node, or two would have the same name.

        Examples
        --------
        >>> import latentree as lt
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.GaussianTreeModel(star, [0.9, 0.5, 0.8, 0])
        >>> model.rename().tree.names[3], model.rename({"h1": "mood"}).tree.names[3]
        ('x0 · x2 · x1', 'mood')
        """
        from latentree.models import _naming  # which knows the models

        chosen = _naming.captions(self) if names is None else names  # type: ignore[arg-type]
        return _naming.renamed(self, _naming.as_names(chosen))  # type: ignore[type-var]

    def save(self, path: PathLike, report: Mapping[str, object] | None = None) -> None:
        """Write the model to a JSON file, which appears complete or not at all.

        :func:`latentree.load` reads it back, equal to the last bit.

        Parameters
        ----------
        path : path of the file
        report : mapping, optional
            What to remember beside the model: plain values, lists and dicts.
            :func:`latentree.models.load_report` reads it back.

        Raises
        ------
        FileError
            When the model or the report holds what no file can, with the name of the part.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import latentree as lt
        >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model.json", {"method": "by hand"})
        ...     lt.models.load_report(Path(folder) / "model.json")
        {'method': 'by hand'}
        """
        from latentree.models import _model_file  # which knows the models

        _model_file.save(self, path, report)  # type: ignore[arg-type]

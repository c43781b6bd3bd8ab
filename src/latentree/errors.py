"""The exceptions and warnings that latentree raises."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType


class LatentTreeError(Exception):
    """Base of every exception that latentree raises on purpose.

    Examples
    --------
    >>> import latentree as lt
    >>> try:
    ...     lt.Tree([1, 0])
    ... except lt.errors.LatentTreeError as error:
    ...     print(type(error).__name__)
    TreeError
    """


class TreeError(LatentTreeError, ValueError):
    """A tree breaks a rule of the data model.

    Examples
    --------
    >>> import latentree as lt
    >>> lt.Tree([-1, 7])
    Traceback (most recent call last):
        ...
    latentree.errors.TreeError: node 1 has parent 7, but parents are −1 or 0 … 1
    """


class DataError(LatentTreeError, ValueError):
    """A table cannot be used as it is; the message says which column and what to do.

    Parameters
    ----------
    message : str
        What is wrong.
    columns : sequence of str
        All columns that have to be dropped, or mended, where the message names some of them.

    Examples
    --------
    >>> import latentree as lt
    >>> try:
    ...     lt.as_table([[1.0, float("inf")]])
    ... except lt.errors.DataError as error:
    ...     print("x1" in str(error))
    True
    """

    def __init__(self, message: str = "", columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


class DistanceError(LatentTreeError, ValueError):
    """A matrix is not a matrix of distances, or does not fit what was asked of it.

    Examples
    --------
    >>> import latentree as lt
    >>> try:
    ...     lt.structure.chow_liu([[0.0, -1.0], [-1.0, 0.0]])
    ... except lt.errors.DistanceError:
    ...     print("distances are not negative")
    distances are not negative
    """


class ModelError(LatentTreeError, ValueError):
    """Parameters do not make a probability model, or do not fit the tree.

    Examples
    --------
    >>> import latentree as lt
    >>> lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5], scales=[1, 0])
    Traceback (most recent call last):
        ...
    latentree.errors.ModelError: the scale of 'x1' is 0.0, but must be positive and finite
    """


class FileError(LatentTreeError, ValueError):
    """A file cannot be read or written; the message names the file and the part at fault.

    Examples
    --------
    >>> import latentree as lt, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "model.json").write_text("{}")
    ...     try:
    ...         lt.load(f"{folder}/model.json")
    ...     except lt.errors.FileError as error:
    ...         print("model.json" in str(error))
    True
    """


class MemoryBudgetError(LatentTreeError, MemoryError):
    """Something does not fit into memory; the message says how much it needs and what does fit.

    Examples
    --------
    >>> import latentree as lt
    >>> issubclass(lt.errors.MemoryBudgetError, MemoryError)
    True
    """


class MissingExtraError(LatentTreeError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it.

    Examples
    --------
    >>> import latentree as lt
    >>> issubclass(lt.errors.MissingExtraError, ImportError)
    True
    """


class DataWarning(UserWarning):
    """The data was used, but something about it deserves a look.

    Examples
    --------
    Two columns that are copies of each other are reported:

    >>> import latentree as lt, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = lt.information_distances([[0.1, 0.1], [0.2, 0.2], [0.4, 0.4]])
    >>> any(issubclass(warning.category, lt.errors.DataWarning) for warning in caught)
    True
    """


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra of latentree brings it.

    Parameters
    ----------
    module : str
        The module to import, dots included.
    extra : str
        The extra of latentree that installs it.

    Returns
    -------
    module

    Raises
    ------
    MissingExtraError
        When it is not installed.

    Examples
    --------
    >>> import_extra("json.decoder", "plot").__name__
    'json.decoder'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs {package}, which is not installed: pip install 'latentree[{extra}]'"
        ) from error

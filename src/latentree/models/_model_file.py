"""Model files: JSON with a version, data and never code (``docs/reference/model-file.md``)."""

from __future__ import annotations

from collections.abc import Mapping

from latentree import _disk as disk
from latentree.errors import FileError
from latentree.models._decode import ModelFile, decode
from latentree.models._encode import encode
from latentree.models._mixture import Model, TreeMixture
from latentree.typing import PathLike, PlainReport


def save(
    model: Model | TreeMixture, path: PathLike, report: Mapping[str, object] | None = None
) -> None:
    """Write a model to a file, which appears complete or not at all.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel, MixedTreeModel or TreeMixture
    path : path of the file
        JSON in UTF-8, at most 128 MB.
    report : mapping, optional
        What to remember beside the model (how it was learned, scores, notes): plain values, lists
        and dicts. Read it back with :func:`load_report`.

    Raises
    ------
    FileError
        When the model or the report holds what no file can, with the name of the part.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentree import GaussianTreeModel, Tree, models
    >>> model = GaussianTreeModel(Tree([-1, 0]), [0, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.json"
    ...     models.save(model, path, {"method": "by hand"})
    ...     models.load(path).correlations, models.load_report(path)
    (array([0. , 0.5]), {'method': 'by hand'})
    """
    if not isinstance(model, Model | TreeMixture):
        raise FileError(
            f"{path}: a model file holds a model, not a {type(model).__name__}; "
            "write a tree with export()"
        )
    try:
        data = encode(model, report)
        decode(data)  # what could not be read back is not written
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    disk.write_bytes(path, data)


def load(path: PathLike) -> Model | TreeMixture:
    """Read the model that :func:`latentree.models.save` wrote, equal to the last bit.

    The file is checked in every part, in memory proportional to its size, and no code in it is
    ever run.

    Parameters
    ----------
    path : path of the file
        At most 128 MB.

    Returns
    -------
    GaussianTreeModel, DiscreteTreeModel, MixedTreeModel or TreeMixture

    Raises
    ------
    FileError
        With the name of the file and of the part that is wrong.
    OSError
        When there is no such file, or it may not be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import latentree as lt
    >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.json")
    ...     lt.load(Path(folder) / "model.json").n_parameters == model.n_parameters
    True
    """
    return _read(path).model


def load_report(path: PathLike) -> PlainReport | None:
    """Read the report beside the model in a file.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    dict or None
        Plain values, lists and dicts; None if there is no report.

    Raises
    ------
    FileError
        With the name of the file and of the part that is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentree import GaussianTreeModel, Tree, models
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.json"
    ...     models.save(GaussianTreeModel(Tree([-1, 0]), [0, 0.5]), path, {"seed": 1})
    ...     models.load_report(path)
    {'seed': 1}
    """
    return _read(path).report


def _read(path: PathLike) -> ModelFile:
    data = disk.read_bytes(path)
    try:
        return decode(data)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error

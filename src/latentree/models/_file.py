"""Model files: JSON with a version, data and never code. ``docs/model-file.md`` describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latentree import _disk as disk
from latentree.errors import FileError
from latentree.models._decode import Document, decode
from latentree.models._discrete import DiscreteTreeModel
from latentree.models._encode import Model, encode
from latentree.models._gaussian import GaussianTreeModel
from latentree.typing import PathLike


def save(model: Model, path: PathLike, report: Mapping[str, Any] | None = None) -> None:
    """Write a model to a file, which appears complete or not at all.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel
    path : path of the file
    report : mapping, optional
        What to remember beside the model (how it was learned, scores, notes): plain values, lists
        and dicts. Read it back with :func:`load_report`.
    """
    if not isinstance(model, GaussianTreeModel | DiscreteTreeModel):
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


def load(path: PathLike) -> Model:
    """Read the model that :func:`save` wrote, equal to the last bit.

    The file is checked in every part and no code in it is ever run.

    Raises
    ------
    FileError
        With the name of the file and of the part that is wrong.
    OSError
        When there is no such file, or it may not be read.
    """
    return _document(path).model


def load_report(path: PathLike) -> dict[str, Any] | None:
    """Read the report beside the model in a file, None if there is none."""
    return _document(path).report


def _document(path: PathLike) -> Document:
    data = disk.read_bytes(path)
    try:
        return decode(data)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error

"""The exceptions and warnings that latentree raises, all under one roof."""

from __future__ import annotations

import importlib
from types import ModuleType


class LatentTreeError(Exception):
    """Base of every exception that latentree raises on purpose."""


class TreeError(LatentTreeError, ValueError):
    """A tree breaks a rule of the data model."""


class DataError(LatentTreeError, ValueError):
    """A table cannot be used as it is; the message says which column and what to do."""


class DistanceError(LatentTreeError, ValueError):
    """A matrix of distances is not one, or does not fit what was asked of it."""


class ModelError(LatentTreeError, ValueError):
    """Parameters do not make a probability model, or do not fit the tree."""


class FileError(LatentTreeError, ValueError):
    """A file cannot be read or written; the message names the file and the part at fault."""


class MemoryBudgetError(LatentTreeError, MemoryError):
    """Something does not fit into memory; the message says how much it needs and what does fit."""


class MissingExtraError(LatentTreeError, ImportError):
    """An optional dependency is not installed."""


class DataWarning(UserWarning):
    """The data was used, but something about it deserves a look."""


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra of latentree brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs {package}, which is not installed: pip install 'latentree[{extra}]'"
        ) from error

"""Names of the types that all packages share."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

PathLike = str | os.PathLike[str]

Node = int | str
"""A node of a tree, by number or by name."""

Family = Literal["gaussian", "discrete", "symmetric", "mixed", "copula"]
"""How the columns of a table are modeled."""

Kind = Literal["real", "count", "ordered", "category"]
"""What a column holds: real numbers, counts 0, 1, …, ordered answers, or labels without order."""

Unseen = Literal["error", "missing"]
"""What becomes of a label that the schema does not have."""

Index = slice | IntArray
"""Which variables: a slice is taken without a copy."""

Progress = Callable[[int, float], None]
"""Called with the number of steps so far and the log-likelihood."""

SklearnState = int | np.random.Generator | np.random.RandomState | None
"""What scikit-learn takes as ``random_state``, and a generator."""

DaskClient = Any
"""A ``dask.distributed.Client``, the cluster that reads and computes; None for this process."""

PlainReport = dict[str, Any]
"""What is kept beside a model: plain values, lists and dicts by name, as JSON holds them."""

Cells = list[Any]
"""The cells of a column of a report: texts, numbers or None, as pandas and polars take them."""

TableLike = Any
"""What :func:`latentree.as_table` takes: an array, a frame, a sparse matrix or a ``Table``."""

DataLike = Any
"""What :func:`latentree.as_parts` takes: a ``TableLike``, a path or several, a dask collection or
``Parts``."""

ArrayOrSparse = Any
"""A dense array of two dimensions, or a ``scipy.sparse.csr_array``."""

Labels = tuple[Hashable, ...]
"""The labels of the codes 0, 1, … of a column."""

KindsByName = Mapping[Any, str] | str
"""Kinds by names or patterns, or one for all columns; pandas has names that are no strings."""

RandomState = int | np.random.Generator | None
"""A seed, a source of randomness, or None for a new one."""

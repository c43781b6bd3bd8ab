"""Documents that come as a table of counts instead of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from latentree.data import Table, column_names
from latentree.errors import DataError
from latentree.typing import AnyArray, ArrayOrSparse, TableLike

DocumentsLike = Iterable[object] | TableLike
"""Texts, or counts of words: a frame, an array, a sparse matrix or a ``Table``."""


class Terms(NamedTuple):
    """How often each word occurs in each document, and the words."""

    counts: sparse.csr_array
    words: tuple[str, ...]


def as_terms(documents: DocumentsLike, words: Sequence[str] | None) -> Terms | None:
    """Return a document-term matrix, or None if the documents are texts."""
    if isinstance(documents, Table):
        return _named(documents.values, documents.names if words is None else words)
    is_frame = len(getattr(documents, "shape", ())) == 2  # a column of one has one dimension
    names = column_names(documents) if is_frame else None
    if names is not None:
        return _named(_numbers(documents, names), names if words is None else words)
    shape = getattr(documents, "shape", ())
    if not sparse.issparse(documents) and len(shape) != 2:
        if words is not None:
            raise DataError("words are for a document-term matrix, but the documents are texts")
        return None
    if words is None:
        raise DataError("a document-term matrix needs the words of its columns: give words=…")
    return _named(documents, words)


def _numbers(frame: TableLike, names: tuple[str, ...]) -> AnyArray:
    """Return the counts in a frame, or raise if it holds texts."""
    values = np.asarray(frame)
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"a frame must hold counts of words, but this holds texts in {names[0]!r} or another "
            f"column: give the column with the texts, as in frame[{names[0]!r}]"
        )
    return values


def _named(values: ArrayOrSparse, words: Sequence[str]) -> Terms:
    """Return checked counts with the words of their columns."""
    counts = sparse.csr_array(values)
    counts.eliminate_zeros()
    if counts.shape[1] != len(words):
        raise DataError(f"there are {counts.shape[1]} columns, but {len(words)} words")
    if len(set(words)) < len(words):
        raise DataError("some words are the names of several columns: each may be there once")
    if counts.nnz and (counts.data.min() < 0 or not np.isfinite(counts.data).all()):
        raise DataError("counts of words must be finite and not negative")
    return Terms(counts, tuple(map(str, words)))

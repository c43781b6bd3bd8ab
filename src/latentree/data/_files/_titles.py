"""Lines above the names of the columns: titles, dates of a report, notes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

from latentree._plain import shown
from latentree.data._checks import is_number
from latentree.errors import DataWarning


def n_title_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows stand above the one that holds the names of the columns.

    Parameters
    ----------
    rows : sequence of rows of cells
        The first rows of a file; those of text may have different lengths.

    Returns
    -------
    int
        0 if the first row can hold the names. Of rows above the names at most half of the cells are
        filled, and names are texts that differ, with a table as wide below them.

    Examples
    --------
    >>> n_title_rows([["Sales of 2024"], [], ["region", "sales"], ["A", "3"], ["B", "4"]])
    2
    >>> n_title_rows([["region", "sales"], ["A", "3"], ["B", "4"]])
    0
    """
    widths = Counter(len(row) for row in rows if any(row))
    if not widths:
        return 0
    width = max(widths, key=lambda size: (widths[size], size))
    for place, row in enumerate(rows[:-1]):
        filled = [cell for cell in row if cell.strip()]
        # A first cell without a name belongs to row labels; a title stands in the first cell.
        if 2 * len(filled) <= width and (not filled or row[0].strip()):
            continue
        n_names = len(set(filled))
        are_names = n_names == len(filled) >= max(2, width - 1) and not any(map(is_number, filled))
        return place if are_names and len(row) == width else 0
    return 0


def warn_of_title(path: str, n_rows: int, first: str) -> None:
    """Say that rows above the names of the columns were left out."""
    rows = "the first row was" if n_rows == 1 else f"the first {n_rows} rows were"
    warnings.warn(
        f"{path}: {rows} taken as a title: {shown(first.strip())}", DataWarning, stacklevel=5
    )

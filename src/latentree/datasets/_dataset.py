"""A table with its names, groups and description."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latentree.data import Table, as_table
from latentree.errors import MissingExtraError
from latentree.typing import AnyArray, TableLike


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table to learn from, with what is known about its columns and rows.

    Parameters
    ----------
    data : array of shape (n, m)
        Floats for real variables, integer codes for discrete ones.
    names : tuple of str
        Names of the columns.
    groups : mapping of str to str
        The known group of each variable, by name. No learner sees it; pictures are colored by it.
    rows : mapping of str to array
        What is known of each row, such as its month.
    description : str
        What it is and where it comes from.

    Examples
    --------
    >>> import latentree as lt
    >>> tests = lt.datasets.load_holzinger()
    >>> tests.names[:3], tests.groups["x4"], tests.rows["school"].shape
    (('x1', 'x2', 'x3'), 'verbal', (301,))
    """

    data: AnyArray
    names: tuple[str, ...]
    groups: Mapping[str, str]
    rows: Mapping[str, AnyArray]
    description: str

    def __post_init__(self) -> None:
        for array in (self.data, *self.rows.values()):
            array.flags.writeable = False
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))
        object.__setattr__(self, "rows", MappingProxyType(dict(self.rows)))

    @property
    def table(self) -> Table:
        """The data as the table that every learner and model takes."""
        return as_table(self.data, names=self.names)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> TableLike:
        """Return the data as a frame of pandas, polars or pyarrow.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        frame of that library

        Examples
        --------
        >>> import latentree as lt
        >>> lt.datasets.load_stocks().to_frame("pyarrow").shape
        (394, 20)
        """
        if importlib.util.find_spec(backend) is None:
            raise MissingExtraError(f"this needs {backend}: pip install {backend}")
        columns = {name: self.data[:, j] for j, name in enumerate(self.names)}
        return nw.from_dict(columns, backend=backend).to_native()

    def __repr__(self) -> str:
        n, m = self.data.shape
        count = len(set(self.groups.values()))
        return f"Dataset({n} rows × {m} columns, {count} groups)"


def read_columns(lines: Iterable[str]) -> dict[str, NDArray[np.str_]]:
    """Columns of a CSV file with a header, as text."""
    header, *body = csv.reader(lines)
    cells = np.array(body, np.str_)
    return {name: cells[:, j] for j, name in enumerate(header)}

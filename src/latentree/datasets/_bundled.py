"""The examples that come with the package; ``data/README.md`` tells where they are from."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import numpy as np

from latentree.datasets._dataset import Dataset, read_columns
from latentree.typing import FloatArray

_ABILITIES = {
    "visual": ("x1", "x2", "x3"),
    "verbal": ("x4", "x5", "x6"),
    "speed": ("x7", "x8", "x9"),
}

_SECTORS = {
    "technology": ("AAPL", "AMD", "MSFT"),
    "finance": ("BAC", "JPM"),
    "retail": ("BBY", "HD", "WMT"),
    "energy": ("CVX", "RRC", "XOM"),
    "industry": ("GE",),
    "health": ("JNJ", "LLY", "MRK", "PFE", "UNH"),
    "household goods": ("KO", "PEP", "PG"),
}


def load_holzinger() -> Dataset:
    """Load nine tests of 301 pupils, made to measure three abilities: visual, verbal and speed.

    Returns
    -------
    Dataset
        Holzinger and Swineford's scores of 1939, named and scaled as in lavaan. The groups are the
        abilities; ``rows["school"]`` is the pupil's school.

    References
    ----------
    K. J. Holzinger and F. Swineford, "A study in factor analysis: the stability of a bi-factor
    solution", Supplementary Educational Monographs 48, University of Chicago (1939).

    Examples
    --------
    >>> import latentree as lt
    >>> lt.datasets.load_holzinger()
    Dataset(301 rows × 9 columns, 3 groups)
    """
    return _load(
        "holzinger.csv",
        _ABILITIES,
        "Scores of 301 pupils in nine tests (Holzinger and Swineford, 1939): visual perception, "
        "cubes, lozenges; paragraph comprehension, sentence completion, word meaning; speeded "
        "addition, counting of dots, straight and curved capitals.",
    )


def load_stocks() -> Dataset:
    """Load monthly log returns of 20 US companies, February 1990 to November 2022.

    Returns
    -------
    Dataset
        The groups are sectors; ``rows["month"]`` is the month.

    Examples
    --------
    >>> import latentree as lt
    >>> stocks = lt.datasets.load_stocks()
    >>> stocks, stocks.groups["XOM"], str(stocks.rows["month"][0])
    (Dataset(394 rows × 20 columns, 7 groups), 'energy', '1990-02')
    """
    return _load(
        "stocks.csv",
        _SECTORS,
        "Monthly log returns of 20 US companies, February 1990 to November 2022, made from the "
        "daily prices in skfolio (BSD license).",
    )


def _load(file: str, members: Mapping[str, tuple[str, ...]], description: str) -> Dataset:
    """Read a bundled file: its first column tells of the rows, the others are the data."""
    path = resources.files("latentree.datasets") / "data" / file
    columns = read_columns(path.read_text("utf-8").splitlines())
    about, *names = columns
    data: FloatArray = np.column_stack([columns[name] for name in names]).astype(float)
    groups = {name: group for group, inside in members.items() for name in inside}
    ordered = {name: groups[name] for name in names}
    return Dataset(data, tuple(names), ordered, {about: columns[about]}, description)

"""The data of the paper's experiments, which is not ours to ship.

Both loaders read from the folder that the environment variable ``LATENTREE_DATA`` names. There is
no download: the public home of the newsgroups gives no checksum to hold a file against, and the
stocks have no public home.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from latentree.datasets.dataset import Dataset, read_columns
from latentree.errors import DataError

# First two digits of the Standard Industrial Classification, and where each division ends.
_DIVISIONS = (
    (0, "index"),
    (9, "agriculture"),
    (14, "mining"),
    (17, "construction"),
    (39, "manufacturing"),
    (49, "transport and utilities"),
    (51, "wholesale"),
    (59, "retail"),
    (67, "finance"),
    (89, "services"),
    (99, "public administration"),
)


def load_newsgroups() -> Dataset:
    """Which of 100 words occur in each of 16,242 postings to newsgroups, as 0 and 1.

    ``rows["group"]`` is the newsgroup of a posting and ``rows["train"]`` tells whether it is in the
    paper's training half. The group of a word is that in which the largest share of the postings
    uses it.
    """
    header, *body = _lines("newsgroups.csv.gz")
    names = header.split(",")
    data = np.loadtxt(body, np.int8, delimiter=",")
    posted = read_columns(_lines("newsgroups_groups.csv.gz"))["group"]
    train = np.zeros(len(data), bool)
    train[np.loadtxt(_lines("newsgroups_train_rows.txt"), np.int64)] = True
    return Dataset(
        data,
        tuple(names),
        dict(zip(names, _where_used(data, posted), strict=True)),
        {"group": posted, "train": train},
        "Occurrence of 100 words in 16,242 postings of the 20 newsgroups, chosen by S. Roweis "
        "(http://cs.nyu.edu/~roweis/data/20news_w100.mat).",
    )


def load_sp100() -> Dataset:
    """Monthly returns of 84 companies of the S&P 100 and of the index, 1990 to 2007.

    ``rows["month"]`` is the month; the groups are the divisions of the Standard Industrial
    Classification.
    """
    columns = read_columns(_lines("sp100_monthly_returns.csv"))
    sectors = read_columns(_lines("sp100_sectors.csv"))
    month = columns.pop("month")
    division = {
        str(ticker): _division(int(code))
        for ticker, code in zip(sectors["ticker"], sectors["sic"], strict=True)
    }
    return Dataset(
        np.column_stack(list(columns.values())).astype(float),
        tuple(columns),
        {name: division[name] for name in columns},
        {"month": month},
        "Monthly returns of 84 companies of the S&P 100 and of the index, 1990 to 2007, as in the "
        "paper's experiment.",
    )


def _where_used(data: NDArray[np.int8], posted: NDArray[np.str_]) -> list[str]:
    """For each word the newsgroup in which the largest share of the postings uses it."""
    groups = np.unique(posted)
    share = np.stack([data[posted == group].mean(axis=0) for group in groups])
    return [str(group) for group in groups[share.argmax(axis=0)]]


def _division(sic: int) -> str:
    return next(name for last, name in _DIVISIONS if sic // 100 <= last)


def _lines(file: str) -> list[str]:
    """Lines of a file of the paper's data, unpacked."""
    folder = os.environ.get("LATENTREE_DATA", "")
    if not folder:
        raise DataError(
            f"{file} belongs to the data of the paper, which does not come with latentree: set the "
            "environment variable LATENTREE_DATA to the folder that holds it"
        )
    path = Path(folder) / file
    if not path.is_file():
        raise DataError(f"LATENTREE_DATA is {folder!r}, but there is no file {file} in that folder")
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()

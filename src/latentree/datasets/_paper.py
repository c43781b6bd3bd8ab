"""The data of the paper's experiments, which is not ours to ship.

Both loaders read from the folder that the environment variable ``LATENTREE_DATA`` names. Without
it the newsgroups are downloaded from their public home; the monthly returns have none (the authors
publish their covariances only).
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from latentree.datasets._dataset import Dataset, read_columns
from latentree.datasets._fetching import Postings, fetch_postings
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
    """Load which of 100 words occur in each of 16,242 postings to newsgroups, as 0 and 1.

    They are read from the folder that the environment variable ``LATENTREE_DATA`` names, or else
    downloaded from their public home, which needs the extra ``data``. Downloads are checked by
    their content and kept in the cache folder of the system, or in the folder that
    ``LATENTREE_CACHE`` names.

    Returns
    -------
    Dataset
        ``rows["group"]`` is the newsgroup of a posting. From a folder there is ``rows["train"]``
        too: whether the posting is in the paper's training half, which was drawn at random and is
        not public. The group of a word is the newsgroup in which the largest share of the
        postings uses it.

    References
    ----------
    S. Roweis, http://cs.nyu.edu/~roweis/data/20news_w100.mat, which the paper uses in Section 7.3.

    Examples
    --------
    >>> import latentree as lt
    >>> lt.datasets.load_newsgroups()  # doctest: +SKIP
    Dataset(16242 rows × 100 columns, 4 groups)
    """
    if os.environ.get("LATENTREE_DATA"):
        names, data, posted = _postings_in_folder()
        train = np.zeros(len(data), bool)
        train[np.loadtxt(_lines("newsgroups_train_rows.txt"), np.int64)] = True
        rows = {"group": posted, "train": train}
    else:
        names, data, posted = fetch_postings()
        rows = {"group": posted}
    return Dataset(
        data,
        names,
        dict(zip(names, _where_used(data, posted), strict=True)),
        rows,
        "Occurrence of 100 words in 16,242 postings of the 20 newsgroups, chosen by S. Roweis "
        "(http://cs.nyu.edu/~roweis/data/20news_w100.mat).",
    )


def load_sp100() -> Dataset:
    """Load monthly returns of 84 companies of the S&P 100 and of the index, 1990 to 2007.

    They are read from the folder that the environment variable ``LATENTREE_DATA`` names, because
    they have no public home. :func:`load_stocks` is similar and comes with the package.

    Returns
    -------
    Dataset
        ``rows["month"]`` is the month; the groups are the divisions of the Standard Industrial
        Classification.

    References
    ----------
    The data of Section 7.2 of M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky, "Learning
    latent tree graphical models", Journal of Machine Learning Research 12 (2011).

    Examples
    --------
    >>> import latentree as lt
    >>> lt.datasets.load_sp100()  # doctest: +SKIP
    Dataset(216 rows × 85 columns, 7 groups)
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


def _postings_in_folder() -> Postings:
    header, *body = _lines("newsgroups.csv.gz")
    posted = read_columns(_lines("newsgroups_groups.csv.gz"))["group"]
    return Postings(tuple(header.split(",")), np.loadtxt(body, np.int8, delimiter=","), posted)


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
            f"{file} belongs to the data of the paper, which does not come with latentree and has "
            "no public home to fetch it from: set the environment variable LATENTREE_DATA to the "
            "folder that holds it, or take load_stocks, which comes with latentree"
        )
    path = Path(folder) / file
    if not path.is_file():
        raise DataError(f"LATENTREE_DATA is {folder!r}, but there is no file {file} in that folder")
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()

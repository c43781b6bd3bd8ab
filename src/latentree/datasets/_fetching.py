"""The newsgroups from their public home, kept in a cache and checked by what they hold.

Their home gives no checksum of the file, so the check is of its content: the words, which of them
each posting uses, and its newsgroup. Any file that holds these will do, however it was packed, and
no file that holds anything else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentree.errors import DataError, FileError, import_extra

if TYPE_CHECKING:
    import pooch

FILE = "20news_w100.mat"

HOMES: tuple[str, ...] = (
    "http://cs.nyu.edu/~roweis/data/20news_w100.mat",
    "https://raw.githubusercontent.com/probml/pyprobml/"
    "74d7cfc77b96261b56bb554ea3be015711d9f927/data/20news_w100.mat",
)
"""Where the file is: with S. Roweis, who made it, and a copy at a fixed commit."""

SHA256 = "4e05eec0c8e7029642f8f376e91b7cd87cbeea014cd62d20097af38f1b945a65"
"""Checksum of the content, as :func:`digest` makes it."""

TIMEOUT = 30.0
"""Seconds without a sign from the server before it counts as silent."""

CACHE = "LATENTREE_CACHE"
"""Environment variable with the folder for downloads, if not the usual one of the system."""


class Postings(NamedTuple):
    """Words, which of them (columns) each posting (rows) uses, and the postings' newsgroups."""

    words: tuple[str, ...]
    used: NDArray[np.int8]
    group: NDArray[np.str_]


def fetch_postings(homes: Sequence[str] = HOMES, checksum: str = SHA256) -> Postings:
    """Read the newsgroups from the cache, or download them into it.

    Parameters
    ----------
    homes : sequence of str
        Addresses of the file, tried in this order.
    checksum : str
        SHA-256 of the content, as :func:`digest` makes it. Other content is refused.
    """
    pooch = import_extra("pooch", "data")
    failures: list[str] = []
    for url in homes:
        fetcher = pooch.create(
            path=pooch.os_cache("latentree"), base_url="", registry={FILE: None},
            urls={FILE: url}, env=CACHE, retry_if_failed=1,
        )  # fmt: skip
        try:
            return _fetch_from(fetcher, pooch.HTTPDownloader(timeout=TIMEOUT), checksum)
        except DataError as error:
            failures.append(f"{url}: {error}")
    raise DataError(
        "the newsgroups could not be downloaded. " + "; ".join(failures) + ". Try again with a "
        f"working network, put {FILE} into {fetcher.abspath}, or set LATENTREE_DATA to a folder "
        "that holds the paper's data"
    )


def _fetch_from(fetcher: pooch.Pooch, downloader: pooch.HTTPDownloader, checksum: str) -> Postings:
    """Read the file, from the cache or from one home; what fails the check is not kept."""
    path = Path(fetcher.abspath) / FILE
    if path.is_file():
        try:
            return read_postings(path, checksum)
        except DataError:  # damaged since it was downloaded
            _remove(path)
    exceptions = import_extra("requests.exceptions", "data")
    try:
        fetcher.fetch(FILE, downloader=downloader)
    except exceptions.RequestException as error:
        raise DataError(_in_short(error)) from error
    except OSError as error:
        raise _not_writable(path, error) from error
    try:
        return read_postings(path, checksum)
    except DataError:
        _remove(path)
        raise


def _in_short(error: Exception) -> str:
    """Say in a few words why a download failed."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}"
    return f"no connection, or broken off ({type(error).__name__})"


def _not_writable(path: Path, error: OSError) -> FileError:
    return FileError(
        f"the newsgroups cannot be kept in {str(path.parent)!r} ({error.strerror or 'not writable'}"
        f"): set the environment variable {CACHE} to a folder that can be written to"
    )


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise _not_writable(path, error) from error


# The file's content -----------------------------------------------------------------------------


def read_postings(path: Path, checksum: str = SHA256) -> Postings:
    """Read and check a file of the form of ``20news_w100.mat``."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, simplify_cells=True, spmatrix=False)
        words = tuple(str(word) for word in content["wordlist"])
        names = np.array([str(name) for name in content["groupnames"]], np.str_)
        documents = content["documents"]
        dense = documents.toarray() if hasattr(documents, "toarray") else np.asarray(documents)
        numbers = np.asarray(content["newsgroups"]).astype(np.int64).ravel()
        if dense.shape != (len(words), len(numbers)) or numbers.min() < 1:
            raise ValueError("sizes do not agree")
        postings = Postings(words, (dense.T != 0).astype(np.int8), names[numbers - 1])
    except Exception as error:  # a damaged file may fail anywhere in its reader
        raise DataError("what came is not the MATLAB file of the newsgroups") from error
    found = digest(*postings)
    if found != checksum:
        raise DataError(
            f"what came holds other data: its content has the checksum {found}, expected {checksum}"
        )
    return postings


def digest(words: Sequence[str], used: NDArray[np.int8], group: NDArray[np.str_]) -> str:
    """SHA-256 of the content, whatever the order of words and postings."""
    order = sorted(range(len(words)), key=words.__getitem__)
    bits = np.packbits(used[:, order] != 0, axis=1)
    lines = sorted(
        str(name).encode() + b" " + row.tobytes() for name, row in zip(group, bits, strict=True)
    )
    header = "\n".join(words[j] for j in order).encode()
    return hashlib.sha256(b"\n".join([header, *lines])).hexdigest()

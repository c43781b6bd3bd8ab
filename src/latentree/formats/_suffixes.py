"""One door for all formats: the suffix of the path chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from numpy.typing import ArrayLike

from latentree import _disk as disk
from latentree.errors import FileError
from latentree.formats._bif import to_bif
from latentree.formats._graphml import from_graphml
from latentree.formats._graphs import (
    to_cytoscape,
    to_dot,
    to_gexf,
    to_graphml,
    to_node_link,
    tree_of,
)
from latentree.formats._newick import from_newick, to_newick
from latentree.models import Model, encode
from latentree.tree import Tree
from latentree.typing import PathLike

Format = TypeVar("Format")


def _newick(item: Model | Tree, support: ArrayLike | None = None) -> str:
    return to_newick(tree_of(item), support=support) + "\n"


def _json(item: Model | Tree, support: ArrayLike | None = None) -> str:
    return to_node_link(item, support) if isinstance(item, Tree) else encode(item).decode()


def _bif(item: Model | Tree, support: ArrayLike | None = None) -> str:
    return to_bif(item)  # type: ignore[arg-type]  # which says what it takes


WRITERS: dict[str, Callable[..., str]] = {
    ".nwk": _newick,
    ".newick": _newick,
    ".graphml": to_graphml,
    ".gexf": to_gexf,
    ".dot": to_dot,
    ".gv": to_dot,
    ".cyjs": to_cytoscape,
    ".bif": _bif,
    ".json": _json,
}
"""The suffixes that :func:`export` knows."""

READERS: dict[str, Callable[[str, Sequence[str] | None], Tree]] = {
    ".nwk": from_newick,
    ".newick": from_newick,
    ".graphml": from_graphml,
}
"""The suffixes that :func:`read_tree` knows."""


def export(item: Model | Tree, path: PathLike, support: ArrayLike | None = None) -> None:
    r"""Write a tree or a model in the format that the suffix of the path names.

    ``.nwk`` and ``.newick``, ``.graphml``, ``.gexf``, ``.dot`` and ``.gv``, ``.cyjs`` hold the
    tree; ``.bif`` a discrete model; ``.json`` a model file, or the nodes and edges of a bare tree.
    The file appears complete or not at all.

    Parameters
    ----------
    item : Tree or model
    path : path of the file
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1: labels of inner nodes in Newick, an
        attribute of edges in the formats of graphs. Model files and BIF have no place for it.

    Raises
    ------
    FileError
        When the suffix is unknown, or the format cannot hold the tree or model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentree import Tree
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tree.nwk"
    ...     export(Tree([-1, 0], names=["a", "b"]), path)
    ...     path.read_text()
    '(b:1.0)a;\n'
    """
    write = _chosen(WRITERS, path)
    tree_of(item)
    try:
        text = write(item, support)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    disk.write_bytes(path, text.encode())


def read_tree(path: PathLike, observed: Sequence[str] | None = None) -> Tree:
    """Read a tree from a Newick or GraphML file, chosen by its suffix.

    Parameters
    ----------
    path : path of the file
        ``.nwk``, ``.newick`` or ``.graphml``, in UTF-8, at most 128 MB.
    observed : sequence of str, optional
        As in :func:`from_newick` and :func:`from_graphml`.

    Returns
    -------
    Tree

    Raises
    ------
    FileError
        With the name of the file and what is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tree.nwk"
    ...     _ = path.write_text("(a:1,b:2,c:3);")
    ...     read_tree(path)
    Tree(3 observed, 1 hidden, 3 edges)
    """
    read = _chosen(READERS, path)
    data = disk.read_bytes(path)
    try:
        return read(data.decode("utf-8-sig"), observed)
    except UnicodeDecodeError as error:
        message = f"{path}: is not text in UTF-8: byte {error.start}: save it as UTF-8"
        raise FileError(message) from None
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


def _chosen(formats: Mapping[str, Format], path: PathLike) -> Format:
    suffix = Path(path).suffix.lower()
    if suffix not in formats:
        raise FileError(
            f"{path}: the suffix {suffix!r} names no known format: use one of {', '.join(formats)}"
        )
    return formats[suffix]

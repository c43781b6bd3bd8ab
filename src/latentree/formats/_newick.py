"""Newick, the notation of phylogenetics: ``(a:1,b:2,(c:1,d:1):0.5);``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latentree._plain import check_text, shown
from latentree.errors import FileError, LatentTreeError
from latentree.formats._observed import observed_first, places_of
from latentree.tree import Tree
from latentree.typing import FloatArray

# Everything else is put in quotes: an underscore without quotes stands for a space.
_BARE = re.compile(r"[A-Za-z0-9.+-]+")

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<mark>[(),:;])|(?P<comment>\[)"
    r"|'(?P<quoted>[^']*(?:''[^']*)*)'|(?P<bare>[^\s()\[\]',:;]+)"
)
_BRACKET = re.compile(r"[\[\]]")


# Writing ------------------------------------------------------------------------------------


def to_newick(
    tree: Tree,
    lengths: bool = True,
    inner_observed: Literal["name", "leaf"] = "name",
    support: ArrayLike | None = None,
) -> str:
    """Write a tree in Newick notation, a forest as one tree per line.

    Hidden nodes have no name, so that every name is that of a variable. With support they are
    labeled by that of the edge above them in percent, as phylogenetic programs do; names of
    inner nodes that could be taken for a number are in quotes. Observed nodes inside the tree are
    labeled by their names, so that the support above them is left out; with
    ``inner_observed="leaf"`` it is written.

    Parameters
    ----------
    tree : Tree
    lengths : bool
        Whether to write the lengths of the edges.
    inner_observed : {"name", "leaf"}
        Observed nodes inside the tree: as named inner nodes, or, for programs that know variables
        at the leaves only, as leaves hung at length 0 from a hidden node in their place.
    support : array of float, one per node, optional
        How sure the edge above each node is, from 0 to 1; NaN for nothing.

    Returns
    -------
    str

    References
    ----------
    J. Felsenstein: The Newick tree format, 1986.
    https://phylipweb.github.io/phylip/newicktree.html

    Examples
    --------
    >>> from latentree import Tree
    >>> star = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b c", "it's"])
    >>> to_newick(star)
    "(a:1.0,'b c':1.0,'it''s':1.0);"
    >>> chain = Tree([-1, 0, 1], names=["a", "b", "c"])
    >>> to_newick(chain, lengths=False, inner_observed="leaf")
    '((c,b),a);'
    """
    if inner_observed not in ("name", "leaf"):
        raise FileError(f"inner_observed is {inner_observed!r}, but must be 'name' or 'leaf'")
    pieces: list[str] = []
    sure = np.full(tree.n_nodes, np.nan) if support is None else np.asarray(support, np.float64)
    if sure.shape != tree.parent.shape:
        raise FileError(f"{tree.n_nodes} nodes need as many values of support, got {sure.shape}")
    for root in tree.roots:
        pieces += _pieces(tree, int(root), lengths, inner_observed == "leaf", sure)
        pieces.append(";\n")
    return "".join(pieces).rstrip("\n")


def _pieces(tree: Tree, root: int, lengths: bool, hang: bool, support: FloatArray) -> Iterator[str]:
    """Parts of one tree's text, left to right, by a stack of nodes still to be opened or closed."""
    waiting: list[tuple[int, bool, bool]] = [(root, False, True)]
    while waiting:
        node, is_closing, is_first = waiting.pop()
        children = [] if is_closing else tree.children(node).tolist()
        if not is_closing and not is_first:
            yield ","
        if children:
            yield "("
            waiting.append((node, True, False))
            waiting += [(child, False, child == children[0]) for child in reversed(children)]
            continue
        name = _quoted(tree.names[node], inner=is_closing) if node < tree.n_observed else ""
        if is_closing:
            if name and hang:
                yield f",{name}:0.0" if lengths else f",{name}"
                name = ""
            yield ")"
            if not name and not np.isnan(support[node]):
                name = f"{100.0 * support[node]:.0f}"
        yield name
        if lengths and node != root:
            yield f":{float(tree.length[node])!r}"


def _quoted(name: str, inner: bool = False) -> str:
    check_text(name, "a name")
    is_plain = _BARE.fullmatch(name) and not (inner and _is_number(name))
    return name if is_plain else "'" + name.replace("'", "''") + "'"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# Reading ------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: Literal["mark", "name"]
    text: str
    place: int
    is_quoted: bool = False


@dataclass
class _Nodes:
    """Nodes in the order in which they open, children after parents."""

    parent: list[int] = field(default_factory=list)
    name: list[str | None] = field(default_factory=list)
    length: list[float | None] = field(default_factory=list)

    def open(self, parent: int) -> int:
        self.parent.append(parent)
        self.name.append(None)
        self.length.append(None)
        return len(self.parent) - 1


def from_newick(text: str, observed: Sequence[str] | None = None) -> Tree:
    """Read a tree in Newick notation; several make a forest.

    Comments in brackets are skipped; an underscore outside quotes is a space. A number outside
    quotes at an inner node is taken for its support, and skipped. Inner nodes with
    fewer than three neighbors and no variable, such as the root of a rooted binary tree, are
    suppressed. Without any lengths all are 1.

    Parameters
    ----------
    text : str
    observed : sequence of str, optional
        The names of the variables, in the order wanted; other nodes are hidden. By default every
        node with a name is a variable, in the order of the text.

    Returns
    -------
    Tree

    Raises
    ------
    FileError
        With the place in the text that is wrong.

    Examples
    --------
    >>> tree = from_newick("((a:1,b:2):0.5,(c:1,d:1):0.5);")
    >>> tree
    Tree(4 observed, 2 hidden, 5 edges)
    >>> print(tree.draw())
    a
    └─ (h1)  1
       ├─ b  2
       └─ (h2)  1
          ├─ c  1
          └─ d  1
    """
    nodes = _parse(text)
    try:
        return _to_tree(nodes, observed)
    except FileError:
        raise
    except LatentTreeError as error:
        raise FileError(f"the Newick text holds no valid tree: {error}") from error


def _tokens(text: str) -> Iterator[_Token]:
    """Yield marks and names; blanks and comments are skipped."""
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            what = "a quote that is not closed" if text[place] == "'" else shown(text[place])
            raise _fault(place, what)
        place = match.end()
        if match.lastgroup == "comment":
            place = _comment_end(text, match.start())
        elif match.lastgroup == "mark":
            yield _Token("mark", match.group(), match.start())
        elif match.lastgroup == "quoted":
            yield _Token("name", match["quoted"].replace("''", "'"), match.start(), True)
        elif match.lastgroup == "bare":
            yield _Token("name", match.group().replace("_", " "), match.start())


def _comment_end(text: str, start: int) -> int:
    """Return where a comment, with those nested in it, ends."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket.group() == "[" else -1
        if depth == 0:
            return bracket.end()
    raise _fault(start, "a comment that is not closed")


def _parse(text: str) -> _Nodes:
    """Read all trees of a text into one list of nodes."""
    nodes = _Nodes()
    above: list[int] = []  # the open parentheses
    node = -1  # the node being described, −1 between trees
    may_open = False  # whether "(" may follow: at the start of a node
    is_closed = False  # whether ")" came just before: what follows belongs to an inner node
    tokens = _tokens(text)
    # One pass: each token either opens or closes a node, or describes the current one.
    for token in tokens:
        mark = token.text if token.kind == "mark" else ""
        if node < 0:
            node, may_open = nodes.open(-1), True
        if mark == "(" and may_open:
            above.append(node)
            node = nodes.open(node)
        elif mark == "," and above:
            node, may_open = nodes.open(above[-1]), True
        elif mark == ")" and above:
            node, may_open, is_closed = above.pop(), False, True
            continue
        elif mark == ":" and nodes.length[node] is None:
            nodes.length[node], may_open = _length(tokens, token.place), False
        elif mark == ";" and not above:
            node = -1
        elif token.kind == "name" and nodes.name[node] is None and nodes.length[node] is None:
            is_support = is_closed and not token.is_quoted and _is_number(token.text)
            nodes.name[node] = None if is_support else token.text
            may_open = False
        else:
            raise _fault(token.place, shown(token.text))
        is_closed = False
    if not nodes.parent:
        raise FileError("the Newick text holds no tree")
    if node >= 0:
        raise FileError("the Newick text ends before the ';' that ends a tree: was it cut off?")
    return nodes


def _length(tokens: Iterator[_Token], place: int) -> float:
    """Read the length that follows a colon."""
    token = next(tokens, None)
    text = "" if token is None else token.text
    try:
        length = float(text)
    except ValueError:
        raise _fault(place, f"the length {shown(text)}, which is no number") from None
    if not math.isfinite(length):
        raise _fault(place, f"the length {text}, but lengths are finite")
    return length


def _fault(place: int, what: str) -> FileError:
    return FileError(f"Newick, character {place + 1}: found {what}")


def _to_tree(nodes: _Nodes, observed: Sequence[str] | None) -> Tree:
    """Make a tree of the nodes, the observed ones first."""
    given = [name for name in nodes.name if name is not None]
    wanted = given if observed is None else list(observed)
    if len(set(given)) < len(given):
        twice = next(name for name, count in Counter(given).items() if count > 1)
        raise FileError(f"two nodes of the Newick text are called {twice!r}")
    _check_leaves(nodes, observed is None)
    first = places_of(wanted, nodes.name, "Newick")
    order = observed_first(first, len(nodes.parent))
    new = {node: place for place, node in enumerate(order)} | {-1: -1}
    parent = [new[nodes.parent[node]] for node in order]
    hidden_names = len(given) > len(wanted)
    names = _names(nodes, order) if hidden_names else wanted  # the tree numbers those without
    return Tree.from_parents(parent, _lengths(nodes, order), len(first), names, minimal=True)


def _check_leaves(nodes: _Nodes, all_named: bool) -> None:
    inner = set(nodes.parent)
    bare = [node for node, name in enumerate(nodes.name) if name is None and node not in inner]
    if all_named and bare:
        raise FileError("a leaf of the Newick text has no name: name it, or pass observed=[…]")


def _lengths(nodes: _Nodes, order: list[int]) -> list[float] | None:
    below_root = [node for node in order if nodes.parent[node] >= 0]
    absent = sum(nodes.length[node] is None for node in below_root)
    if absent == len(below_root):
        return None
    if absent:
        raise FileError(f"{absent} of {len(below_root)} nodes of the Newick text have no length")
    # The root has no edge, so a length there says nothing.
    return [0.0 if nodes.parent[node] < 0 else nodes.length[node] or 0.0 for node in order]


def _names(nodes: _Nodes, order: list[int]) -> list[str]:
    """Names of all nodes; those without one become h1, h2, …."""
    taken = {name for name in nodes.name if name is not None}
    free = (name for name in map("h{}".format, range(1, 2 * len(order) + 2)) if name not in taken)
    names = (nodes.name[node] for node in order)
    return [next(free) if name is None else name for name in names]

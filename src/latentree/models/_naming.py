"""Names of hidden variables: those that people give, and automatic ones by mutual information."""

from __future__ import annotations

import copy
import heapq
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from latentree import _disk as disk
from latentree.errors import DataError, FileError
from latentree.inference import set_fields
from latentree.models._gaussian import GaussianTreeModel
from latentree.models._mixture import Model, TreeMixture
from latentree.models._states import StateTreeModel
from latentree.tree import Tree
from latentree.typing import FloatArray, PathLike

AnyModel = TypeVar("AnyModel", bound=Model)

JOINED_BY = " · "
"""Between the variables of an automatic name."""

N_WORDS = 3
"""Variables in an automatic name: as many as are read at a glance."""

LEAST_SHARE = 0.1
"""A variable with less than this share of the largest information says little about a name."""

FORMAT = "latentree names"
_AUTOMATIC = re.compile(r"h\d+")


# What a hidden variable informs about ------------------------------------------------------------


class Informed(NamedTuple):
    """An observed variable, and the information between it and a hidden one.

    Parameters
    ----------
    variable : int
        Number of the observed node.
    nats : float
        Mutual information.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
    >>> [best] = lt.models.most_informed(lt.GaussianTreeModel(star, [0.9, 0.5, 0.8, 0]), "h1", 1)
    >>> best.variable, round(best.nats, 3)
    (0, 0.83)
    """

    variable: int
    nats: float


def most_informed(model: Model, node: int | str, n: int = N_WORDS) -> list[Informed]:
    """Return the observed variables that a node informs most about.

    By mutual information, whether they are its neighbors or not. Information falls along every
    path (the data processing inequality), so the tree is searched from the node outward, the most
    informed first, no farther than needed.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel or MixedTreeModel
    node : int or str
    n : int
        How many.

    Returns
    -------
    list of Informed
        The most informed first; fewer than ``n`` where there are no more. Reals and counts of mixed
        models enter as the intervals of their cells.

    References
    ----------
    T. M. Cover and J. A. Thomas, "Elements of Information Theory", 2nd ed., Wiley (2006),
    Section 2.8.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
    >>> model = lt.GaussianTreeModel(star, [0.9, 0.5, 0.8, 0])
    >>> [star.names[found.variable] for found in most_informed(model, "h1")]
    ['x0', 'x2', 'x1']
    """
    start = model.tree.index(node) if isinstance(node, str) else node
    return _walk_of(model).most_informed(start, n)


Reached = TypeVar("Reached", float, FloatArray)
"""The dependence of a node on the one where a walk starts: a correlation, or a table."""


class _Walk(Generic[Reached]):
    """A walk outward from a node, which knows how it and the nodes on the way depend."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self._parent = tree, tree.parent

    def start(self, node: int) -> Reached:
        """Return the dependence of a node on itself."""
        raise NotImplementedError

    def step(self, reached: Reached, node: int, other: int) -> Reached:
        """Return the dependence of a neighbor of ``node``, whose own is ``reached``."""
        raise NotImplementedError

    def information(self, start: int, reached: Reached) -> float:
        """Return the mutual information with the start, in nats."""
        raise NotImplementedError

    def most_informed(self, start: int, n: int) -> list[Informed]:
        """Search from a node outward, the most informed first."""
        found: list[Informed] = []
        ticket = count()  # equal information: the node met first
        waiting = [(-np.inf, next(ticket), start, -1, self.start(start))]
        while waiting and len(found) < n:
            negative, _, node, came_from, reached = heapq.heappop(waiting)
            if node < self.tree.n_observed and node != start:
                found.append(Informed(node, -negative))
            for other in self.tree.neighbors(node).tolist():
                if other != came_from:
                    step = self.step(reached, node, other)
                    nats = self.information(start, step)
                    heapq.heappush(waiting, (-nats, next(ticket), other, node, step))
        return [one for one in found if one.nats > 0]


class _GaussianWalk(_Walk[float]):
    """Correlations multiply along a path."""

    def __init__(self, model: GaussianTreeModel) -> None:
        super().__init__(model.tree)
        self._rho = model.correlations

    def start(self, node: int) -> float:
        return 1.0

    def step(self, reached: float, node: int, other: int) -> float:
        # ρ of the edge belongs to its lower end.
        below = other if self._parent[other] == node else node
        return reached * float(self._rho[below])

    def information(self, start: int, reached: float) -> float:
        """−½·log(1 − ρ²)."""
        return -0.5 * float(np.log1p(-min(reached * reached, 1.0 - 1e-15)))


class _StatesWalk(_Walk[FloatArray]):
    """Tables P(node | start) multiply along a path; numbers are in cells."""

    def __init__(self, model: StateTreeModel) -> None:
        super().__init__(model.tree)
        self._model = model
        layout = model.layout
        self._marginal = np.split(layout.marginals(model.theta), layout.state_starts[1:-1])

    def start(self, node: int) -> FloatArray:
        return np.eye(self._marginal[node].size)

    def step(self, reached: FloatArray, node: int, other: int) -> FloatArray:
        if self._parent[other] == node:
            return reached @ self._table(other)
        # Bayes' rule: P(other | node) = P(other, node) / P(node).
        joint = self._marginal[other][:, None] * self._table(node)
        below = joint.sum(axis=0)
        return reached @ (joint / np.where(below > 0, below, 1.0)).T

    def _table(self, node: int) -> FloatArray:
        return self._model.edge_cells(node)[1]

    def information(self, start: int, reached: FloatArray) -> float:
        """Σ P(i) P(j | i) log(P(j | i) / P(j))."""
        p = self._marginal[start]
        own = p @ reached
        ratio = np.where((reached > 0) & (own > 0), reached / np.where(own > 0, own, 1.0), 1.0)
        return max(float(p @ (reached * np.log(ratio)).sum(axis=1)), 0.0)


def _walk_of(model: Model) -> _GaussianWalk | _StatesWalk:
    if isinstance(model, StateTreeModel):
        return _StatesWalk(model)
    return _GaussianWalk(model if isinstance(model, GaussianTreeModel) else model.latent)


def captions(model: Model | TreeMixture) -> dict[str, str]:
    """Name hidden variables after the variables that they inform most about.

    Parameters
    ----------
    model : GaussianTreeModel, DiscreteTreeModel or MixedTreeModel

    Returns
    -------
    dict
        From the names of the hidden variables that have no name but a number (``h1``, ``h2``, …)
        to up to three variables, the most informed first. Distinct: where two would be alike the
        number is added.

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
    >>> captions(lt.GaussianTreeModel(star, [0.9, 0.5, 0.8, 0]))
    {'h1': 'x0 · x2 · x1'}
    """
    if isinstance(model, TreeMixture):
        return {}  # the class variable has a name
    tree, walk = model.tree, _walk_of(model)
    texts: dict[str, str] = {}
    for node in tree.hidden.tolist():
        name = tree.names[node]
        words = _words(tree, walk.most_informed(node, N_WORDS))
        if _AUTOMATIC.fullmatch(name) and words:
            texts[name] = JOINED_BY.join(words)
    taken = Counter([*tree.names, *texts.values()])
    return {name: text if taken[text] == 1 else f"{text} ({name})" for name, text in texts.items()}


def _words(tree: Tree, found: Sequence[Informed]) -> list[str]:
    return [tree.names[one.variable] for one in found if one.nats >= LEAST_SHARE * found[0].nats]


# Names that people give --------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """Names that people give to the nodes of a model and to states of hidden ones, with notes.

    The explorer's page saves names as a small JSON file, and reads it. All three mappings go by the
    names of the nodes in the model.

    Parameters
    ----------
    names : mapping of str to str
        New names of nodes.
    states : mapping of str to sequence of str
        Names of the states of hidden nodes.
    notes : mapping of str to str

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import latentree as lt
    >>> names = lt.models.Names({"h1": "mood"}, {"h1": ["low", "high"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names.save(Path(folder) / "names.json")
    ...     lt.models.Names.load(Path(folder) / "names.json") == names
    True
    """

    names: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: PathLike) -> None:
        """Write the names to a file, which appears complete or not at all.

        Parameters
        ----------
        path : path of the file
            JSON in UTF-8.
        """
        content = {"format": FORMAT, "version": 1, "names": dict(self.names)}
        states = {node: list(labels) for node, labels in self.states.items()}
        content |= {"states": states, "notes": dict(self.notes)}
        disk.write_bytes(path, (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())

    @classmethod
    def load(cls, path: PathLike) -> Names:
        """Read names that :meth:`save` or the explorer's page wrote.

        Parameters
        ----------
        path : path of the file

        Returns
        -------
        Names

        Raises
        ------
        FileError
            With the name of the file and of the part that is wrong.
        """
        try:
            content = json.loads(disk.read_bytes(path))
        except ValueError as error:
            raise FileError(f"{path}: is no JSON: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileError(f'{path}: is not a file of names: its "format" must be {FORMAT!r}')
        if content.get("version") != 1:
            raise FileError(f"{path}: has version {content.get('version')!r}, but must have 1")
        parts = {part: content.get(part, {}) for part in ("names", "states", "notes")}
        for part, given in parts.items():
            if not _is_part(given, many=part == "states"):
                kind = "lists of texts" if part == "states" else "texts"
                raise FileError(f'{path}: "{part}" must map names of nodes to {kind}')
        return cls(**parts)

    def among(self, models: Sequence[Model]) -> list[Names]:
        """Return for each of several trees the names of what it has.

        Parameters
        ----------
        models : sequence of models

        Returns
        -------
        list of Names

        Raises
        ------
        DataError
            If a node is in no tree.

        Examples
        --------
        >>> import latentree as lt
        >>> models = [lt.GaussianTreeModel(lt.Tree([-1], names=[name]), [0]) for name in "ab"]
        >>> [each.notes for each in Names(notes={"b": "second"}).among(models)]
        [{}, {'b': 'second'}]
        """
        known = [set(model.tree.names) for model in models]
        for part, own in vars(self).items():
            for name in own:
                if not any(name in nodes for nodes in known):
                    raise DataError(f"{part}: there is no node {name!r} in the model")
        parts = vars(self).values()
        return [
            Names(*({name: own[name] for name in own if name in nodes} for own in parts))
            for nodes in known
        ]


def _is_part(given: object, many: bool) -> bool:
    def is_text(value: object) -> bool:
        return isinstance(value, str)

    def is_texts(value: object) -> bool:
        return isinstance(value, list) and all(map(is_text, value))

    return isinstance(given, dict) and all(map(is_texts if many else is_text, given.values()))


def as_names(given: Names | Mapping[str, str] | PathLike | None) -> Names:
    """Return names given as such, as a mapping, as the path of their file, or not at all.

    Parameters
    ----------
    given : Names, mapping of str to str, path or None

    Returns
    -------
    Names

    Examples
    --------
    >>> as_names({"h1": "mood"}).names
    {'h1': 'mood'}
    """
    if given is None or isinstance(given, Names):
        return given or Names()
    return Names(given) if isinstance(given, Mapping) else Names.load(given)


def check_names(names: Names, model: Model) -> None:
    """Raise unless names fit the nodes of a model, and names of states their number.

    Parameters
    ----------
    names : Names
    model : GaussianTreeModel, DiscreteTreeModel or MixedTreeModel

    Raises
    ------
    DataError
        With the name that is wrong.

    Examples
    --------
    >>> import latentree as lt
    >>> check_names(Names({"h7": "mood"}), lt.GaussianTreeModel(lt.Tree([-1]), [0]))
    Traceback (most recent call last):
    ...
    latentree.errors.DataError: names: there is no node 'h7' in the model
    """
    known = {name: node for node, name in enumerate(model.tree.names)}
    for part in ("names", "states", "notes"):
        for name in getattr(names, part):
            if name not in known:
                raise DataError(f"{part}: there is no node {name!r} in the model")
    for name, labels in names.states.items():
        counts = getattr(model, "n_states", None)
        states = None if counts is None else int(counts[known[name]])
        if known[name] < model.tree.n_observed or not states:
            raise DataError(f"states: {name!r} is no hidden variable with states")
        if len(labels) != states or len(set(labels)) != states:
            raise DataError(
                f"states: {name!r} has {states} states, which need {states} different names, "
                f"but these are {', '.join(map(repr, labels))}"
            )


def renamed(model: AnyModel, names: Names) -> AnyModel:
    """Return the same model with other names of nodes and states, and with other notes."""
    check_names(names, model)
    tree = model.tree
    own = [names.names.get(name, name) for name in tree.names]
    for name, uses in Counter(own).items():
        if not name.strip() and name in names.names.values():
            raise DataError("names: a name is empty")
        if uses > 1:
            raise DataError(f"names: {name!r} would be the name of {uses} nodes")
    other = copy.copy(model)
    for made in (
        "layout",
        "latent",
        "grid",
        "_marginals",
    ):  # which hold the tree, and are made again when needed
        other.__dict__.pop(made, None)
    schema = replace(model.schema, names=tuple(own[: tree.n_observed]))
    new = dict(zip(tree.names, own, strict=True))
    states = {new[name]: given for name, given in {**model.state_names, **names.states}.items()}
    notes = {new[name]: note for name, note in {**model.notes, **names.notes}.items()}
    set_fields(other, tree=tree.renamed(own), schema=schema, state_names=states, notes=notes)
    return other

"""Regularized CLGrouping: hidden variables enter only where they are worth their parameters."""

from __future__ import annotations

import time
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latentree.distances import Sample, as_sample
from latentree.em import Budget, Fitted, fit_parameters, make_problem, maximize, start_points
from latentree.structure import STRONG, Block, TreeBuilder, contract_short, learn_by_blocks
from latentree.tree import Tree
from latentree.typing import FloatArray, IntArray, Progress

THRESHOLDS = (STRONG, 3 * STRONG)
"""Proposals are tried with edges below these contracted, too."""

LOCAL = Budget(tolerance=1e-7, max_steps=300)
"""For the small fits that compare a proposal with what is there."""


def regularized_cl_grouping(
    X: Any,
    subroutine: Literal["rg", "nj"] = "rg",
    n_hidden: int | None = None,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Fitted:
    """Learn a latent tree by regularized CLGrouping (regCLRG or regCLNJ).

    Every inner node of the Chow-Liu tree proposes the latent tree over its closed neighborhood.
    In each round the proposal that raises the BIC most enters, until none raises it or, with
    ``n_hidden``, until no proposal fits into that number of hidden nodes.

    Proposals are scored exactly, not with sampled hidden values as in the paper: observed nodes
    separate a tree, so that a proposal changes the likelihood only of the hidden nodes that it
    touches and the observed ones around them. Both versions of that region are fitted by EM on
    its own columns. After a round only the proposals whose region has changed are scored again.
    (With missing cells regions are not separate, and the scores are approximate.)

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    subroutine : {"rg", "nj"}
        How the tree over a neighborhood is learned: by recursive grouping or neighbor joining.
    n_hidden : int, optional
        Largest number of hidden nodes to add.
    family : {"auto", "gaussian", "discrete", "symmetric"}
        How to model the columns; "auto" goes by their kinds.
    weights : array-like, optional
        How much each row counts.
    budget : Budget, optional
        When EM stops.
    random_state : int or Generator, optional
        For random starts.
    progress : callable, optional
        Called with the number of steps so far and the log-likelihood.

    Returns
    -------
    Fitted
        ``model, report``.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, *Learning Latent Tree Graphical Models*, JMLR 12, 2011,
    Section 6.4.

    Examples
    --------
    >>> import latentree as lt
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> model, report = regularized_cl_grouping(truth.sample(1_000, 1), n_hidden=2)
    >>> model.tree.n_hidden <= 2
    True
    """
    clock = time.perf_counter()
    sample = as_sample(X, family, weights)
    room = [sample.n_columns if n_hidden is None else n_hidden]

    def learn(problem: Block) -> Tree:
        mine = sample if problem.variables is None else sample.select(problem.variables)
        search = _BlockSearch(problem, subroutine, mine, random_state)
        tree = search.run(room[0])
        room[0] -= tree.n_hidden
        return tree

    tree = learn_by_blocks(sample.distances, learn)
    fitted = fit_parameters(
        tree, sample, budget=budget, random_state=random_state, progress=progress
    )
    return Fitted(fitted.model, fitted.report.timed(time.perf_counter() - clock))


class _Proposal(NamedTuple):
    """A latent tree for a neighborhood, and what it is worth."""

    gain: float
    members: IntArray
    ends: IntArray
    lengths: FloatArray
    n_hidden: int
    region: frozenset[int]


class _BlockSearch:
    """Rounds of proposals on one block of variables."""

    def __init__(self, problem: Block, subroutine: str, sample: Sample, random_state: Any) -> None:
        self.growing = TreeBuilder(problem, subroutine, exact=False)
        self.sample = sample
        self.m = problem.n_variables
        self.scale = problem.scale
        self.seed = random_state
        self.n_hidden = 0

    def run(self, room: int) -> Tree:
        """Let proposals enter, the best first."""
        waiting = [int(node) for node in self.growing.internal]
        known: dict[int, _Proposal] = {}
        while waiting:
            neighbors = self._neighbors()
            for node in waiting:
                if node not in known:
                    known[node] = self._propose(node, neighbors)
            eligible = [n for n in waiting if self.n_hidden + known[n].n_hidden <= room]
            best = max(eligible, key=lambda node: known[node].gain, default=None)
            if best is None or known[best].gain <= 0:
                break
            entering = known[best]
            self.growing.replace(entering.members, entering.ends, entering.lengths)
            self.n_hidden += entering.n_hidden
            waiting.remove(best)
            known = {
                node: other
                for node, other in known.items()
                if node != best and not other.region & entering.region
            }
        return self.growing.tree()

    def _neighbors(self) -> dict[int, dict[int, float]]:
        out: dict[int, dict[int, float]] = {node: {} for node in range(self.m)}
        for (a, b), length in zip(*self.growing.edges(), strict=True):
            out.setdefault(int(a), {})[int(b)] = float(length)
            out.setdefault(int(b), {})[int(a)] = float(length)
        return out

    def _propose(self, node: int, neighbors: dict[int, dict[int, float]]) -> _Proposal:
        """Return the best version of the latent tree over a node's neighborhood."""
        members, ends, lengths = self.growing.proposal(node)
        region = _region(members, neighbors, self.m)
        inside = {
            (a, b): length
            for a in region
            for b, length in neighbors[a].items()
            if b in region and a < b and (b >= self.m or node in (a, b))
        }
        star = {tuple(sorted((node, int(other)))) for other in members[1:]}
        kept = {edge: length for edge, length in inside.items() if edge not in star}
        before = self._score(inside, region)
        first_new = 1 + max(neighbors)
        versions = []
        for tree in _versions(members, ends, lengths):
            number = np.append(members, first_new + np.arange(tree.n_hidden))
            length = tree.length[tree.edges[:, 1]]
            new = dict(zip(map(tuple, number[tree.edges].tolist()), length, strict=True))
            gain = self._score(kept | new, region) - before
            versions.append(
                _Proposal(gain, members, tree.edges, length, tree.n_hidden, frozenset(region))
            )
        return max(versions, key=lambda version: version.gain)

    def _score(self, edges: dict[Any, float], region: set[int]) -> float:
        """BIC of the region's own columns under a tree."""
        observed = np.array(sorted(node for node in region if node < self.m))
        everyone = sorted({node for edge in edges for node in edge} | set(observed.tolist()))
        number = {node: place for place, node in enumerate(everyone)}
        pairs = np.array([(number[a], number[b]) for a, b in edges], np.int64).reshape(-1, 2)
        lengths = self.scale * np.maximum(list(edges.values()), 0.0)
        tree = Tree.from_edges(pairs, observed.size, lengths, minimal=True)
        sample = self.sample.select(observed)
        problem = make_problem(tree.renamed(sample.names), sample)
        rng = np.random.default_rng(self.seed)
        points = start_points(problem, sample, None, 1, rng)
        return maximize(problem, points, LOCAL).report.bic_score


def _versions(members: IntArray, ends: IntArray, lengths: FloatArray) -> list[Tree]:
    """Return a proposal as it is, and with its short edges contracted, without repetition."""
    tree = Tree.from_edges(ends, members.size, np.maximum(lengths, 0.0), minimal=True)
    versions = [tree]
    for threshold in THRESHOLDS:
        shorter = contract_short(tree, threshold)
        if shorter.n_hidden < versions[-1].n_hidden:
            versions.append(shorter)
    return versions


def _region(members: IntArray, neighbors: dict[int, dict[int, float]], m: int) -> set[int]:
    """Return the members, and what hangs together with them through hidden nodes."""
    region = set(map(int, members))
    stack = [node for node in region if node >= m]
    while stack:
        for other in neighbors[stack.pop()]:
            if other not in region:
                region.add(other)
                if other >= m:
                    stack.append(other)
    return region

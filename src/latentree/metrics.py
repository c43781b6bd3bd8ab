"""How alike two trees are, how far apart two models, and how well a model explains data.

Variables are matched by name, whatever their order; hidden nodes have no identity of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from latentree.data import Table, as_table
from latentree.errors import ModelError, TreeError
from latentree.inference import chunks
from latentree.models import (
    CopulaTreeModel,
    DiscreteTreeModel,
    GaussianTreeModel,
    MixedTreeModel,
    TreeModel,
)
from latentree.tree import Tree
from latentree.typing import AnyArray, FloatArray, IntArray, RandomState, TableLike

StateModel = DiscreteTreeModel | MixedTreeModel
SampledModel = MixedTreeModel | CopulaTreeModel

EXACT_STATES = 1 << 16
"""Up to so many joint states of the observed variables a discrete divergence is a sum over them."""


# Trees ------------------------------------------------------------------------------------------


def robinson_foulds(a: Tree, b: Tree, nontrivial: bool = False) -> int:
    """Count the splits that only one of two trees has.

    An edge splits the observed variables of its component in two. The count is also the number of
    edge contractions and expansions that lead from one tree to the other. Observed nodes may be
    inside the tree, so edges to leaves count too. Linear in the number of nodes.

    Parameters
    ----------
    a, b : Tree
        Over the same variables, in any order.
    nontrivial : bool
        Count only splits with two variables or more on both sides.

    Returns
    -------
    int
        0 for the same structure.

    References
    ----------
    D. F. Robinson and L. R. Foulds, "Comparison of phylogenetic trees", Mathematical Biosciences
    53 (1981).

    Examples
    --------
    >>> import latentree as lt
    >>> lt.metrics.robinson_foulds(lt.simulate.double_star(6), lt.simulate.latent_class(6))
    1
    """
    first, second = _splits(a, nontrivial), _splits(aligned(b, a), nontrivial)
    return len(first ^ second)


def normalized_robinson_foulds(a: Tree, b: Tree, nontrivial: bool = False) -> float:
    """Return the Robinson-Foulds distance as a share of all splits of both trees.

    Nearly all trees split off single variables in the same way. Of the splits that can differ,
    those with two variables or more on both sides, ``nontrivial=True`` gives the share.

    Parameters
    ----------
    a, b : Tree
        Over the same variables, in any order.
    nontrivial : bool
        Count only splits with two variables or more on both sides.

    Returns
    -------
    float
        From 0 for the same structure to 1 for no split in common; 0 where there is nothing to
        count.

    Examples
    --------
    >>> import latentree as lt
    >>> a, b = lt.simulate.double_star(6), lt.simulate.latent_class(6)
    >>> round(lt.metrics.normalized_robinson_foulds(a, b), 3)
    0.077
    >>> lt.metrics.normalized_robinson_foulds(a, b, nontrivial=True)
    1.0
    """
    splits = [_splits(tree, nontrivial) for tree in (a, aligned(b, a))]
    # Edges beside a hidden node with two neighbors share a split, and count each.
    total = sum(map(len, splits)) if nontrivial else a.n_edges + b.n_edges
    return len(splits[0] ^ splits[1]) / max(total, 1)


def _splits(tree: Tree, nontrivial: bool) -> set[bytes]:
    """Return the keys of splits: of all, or of those with two variables or more on both sides."""
    keys = tree.bipartition_keys()
    if nontrivial:
        below = (np.arange(tree.n_nodes) < tree.n_observed).astype(np.int64)
        for v in tree.order[::-1].tolist():
            if tree.parent[v] >= 0:
                below[tree.parent[v]] += below[v]
        beyond = below[tree.roots][tree.components] - below
        keys = keys[np.minimum(below, beyond)[tree.edges[:, 1]] >= 2]
    return {key.tobytes() for key in keys}


def same_structure(a: Tree, b: Tree) -> bool:
    """Return whether two trees have the same edges.

    Roots, lengths, and the names and numbers of hidden nodes do not matter.

    Parameters
    ----------
    a, b : Tree
        Over the same variables, in any order.

    Returns
    -------
    bool

    Examples
    --------
    >>> import latentree as lt
    >>> star = lt.simulate.latent_class(3)
    >>> lt.metrics.same_structure(star, star.rerooted(1).with_lengths([2, 0, 2, 2]))
    True
    """
    return a.same_structure(aligned(b, a))


def hidden_difference(a: Tree, b: Tree) -> int:
    """Return how many more hidden nodes ``a`` has than ``b``.

    Parameters
    ----------
    a, b : Tree
        Over the same variables, in any order.

    Returns
    -------
    int
        Negative if ``a`` has fewer.

    Examples
    --------
    >>> import latentree as lt
    >>> lt.metrics.hidden_difference(lt.simulate.double_star(6), lt.simulate.latent_class(6))
    1
    """
    aligned(b, a)
    return a.n_hidden - b.n_hidden


def aligned(tree: Tree, reference: Tree) -> Tree:
    """Return a tree with its observed nodes in the order of another tree.

    Parameters
    ----------
    tree, reference : Tree
        Over the same variables.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import latentree as lt
    >>> chain = lt.Tree([-1, 0, 1], names=["a", "b", "c"])
    >>> lt.metrics.aligned(chain, chain.renamed(["c", "b", "a"])).parent.tolist()
    [1, 2, -1]
    """
    own, wanted = (t.names[: t.n_observed] for t in (tree, reference))
    if own == wanted:
        return tree
    _check_names(wanted, own, TreeError)
    place = {name: node for node, name in enumerate(own)}
    old = np.array([*(place[name] for name in wanted), *tree.hidden])
    new = np.append(np.argsort(old), -1)
    return Tree(new[tree.parent[old]], tree.length[old], tree.n_observed, wanted)


def _check_names(
    first: tuple[str, ...], second: tuple[str, ...], error: type[TreeError] | type[ModelError]
) -> None:
    apart = set(first) ^ set(second)
    if apart:
        name = next(name for name in (*first, *second) if name in apart)
        which = "first" if name in first else "second"
        raise error(
            f"both must have the same variables, but {name!r} is only in the {which}"
            f" ({len(first)} and {len(second)} variables, {len(apart)} not shared)"
        )


# Models -----------------------------------------------------------------------------------------


class Divergence(float):
    """A divergence in nats: a number that knows its standard error, 0 when it is exact.

    Parameters
    ----------
    value : float
    standard_error : float

    Examples
    --------
    >>> import latentree as lt
    >>> lt.metrics.Divergence(0.25, standard_error=0.01)
    0.25 ± 0.01
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float = 0.0) -> Divergence:
        """Make the number, with its standard error."""
        self = super().__new__(cls, value)
        self.standard_error = float(standard_error)
        return self

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self), self.standard_error

    def __repr__(self) -> str:
        if self.standard_error == 0.0:
            return float.__repr__(self)
        return f"{float(self):.6g} ± {self.standard_error:.2g}"


def kl_divergence(
    p: TreeModel,
    q: TreeModel,
    n_samples: int = 20_000,
    random_state: RandomState = None,
    max_states: int = EXACT_STATES,
) -> Divergence:
    """Return the Kullback-Leibler divergence D(p ‖ q) between the observed variables of two models.

    Gaussian: the closed form, without any matrix of all pairs, in O(nodes of p × nodes of q).
    Discrete: the sum over all joint states when there are at most ``max_states``, else the mean of
    log p(x) − log q(x) over ``n_samples`` draws x from p, with its standard error. Mixed: draws.

    Parameters
    ----------
    p, q : models of the same family over the same variables
        With the truth as ``p`` this is the paper's measure.
    n_samples : int
        Number of draws where there are too many joint states.
    random_state : int or numpy.random.Generator, optional
        For the draws.
    max_states : int
        The most joint states of the observed variables that are summed over.

    Returns
    -------
    Divergence
        A float in nats whose ``standard_error`` is 0 unless it comes from draws.

    References
    ----------
    S. Kullback and R. A. Leibler, "On information and sufficiency", Annals of Mathematical
    Statistics 22 (1951).

    Examples
    --------
    >>> import latentree as lt
    >>> pair = lt.Tree([-1, 0])
    >>> p, q = (lt.GaussianTreeModel(pair, [0, rho]) for rho in (0.6, 0.0))
    >>> round(lt.metrics.kl_divergence(p, q), 4)  # −½·log(1 − ρ²)
    0.2231
    """
    _check_names(p.schema.names, q.schema.names, ModelError)
    if isinstance(p, GaussianTreeModel) and isinstance(q, GaussianTreeModel):
        return Divergence(_gaussian_divergence(p, q))
    if isinstance(p, SampledModel) and isinstance(q, SampledModel):
        _check_labels(p, q)
        return _sampled_divergence(p, q, n_samples, random_state)
    if not (isinstance(p, DiscreteTreeModel) and isinstance(q, DiscreteTreeModel)):
        raise ModelError(
            f"a {p.schema.family} and a {q.schema.family} model have no divergence: "
            "their variables take different values"
        )
    _check_labels(p, q)
    # In floating point: the number of joint states of many variables overflows an integer.
    if np.prod(p.schema.cardinalities, dtype=float) <= max_states:
        return Divergence(_enumerated_divergence(p, q))
    return _sampled_divergence(p, q, n_samples, random_state)


def _gaussian_divergence(p: GaussianTreeModel, q: GaussianTreeModel) -> float:
    """½·(tr(Σ_q⁻¹Σ_p) + (μ_p − μ_q)ᵀΣ_q⁻¹(μ_p − μ_q) − m + log det Σ_q − log det Σ_p).

    With x = μ_p + A·z for independent standard innovations z of p's nodes, Σ_p = AAᵀ, and the
    trace is the sum of aᵀΣ_q⁻¹a over the columns a of A.
    """
    centered = GaussianTreeModel(q.tree, q.correlations, scales=q.scales)
    at_mean = centered.log_likelihood(np.zeros((1, q.tree.n_observed)))[0]

    def quadratic(rows: FloatArray) -> float:
        # aᵀΣ_q⁻¹a = −2·(log q(a) − log q(0)) for a centered q
        return float(-2.0 * (centered.log_likelihood(Table(rows, p.schema)) - at_mean).sum())

    place = {name: column for column, name in enumerate(q.schema.names)}
    shift = p.means - q.means[[place[name] for name in p.schema.names]]
    total = quadratic(shift[None, :])
    for columns in _innovation_columns(p):
        total += quadratic(columns)
    total += q.log_det() - p.log_det() - p.tree.n_observed
    # NaN is ∞ − ∞, of squares that are too large for a number.
    return np.inf if np.isnan(total) else max(0.0, 0.5 * total)


def _innovation_columns(model: GaussianTreeModel) -> Iterator[FloatArray]:
    """Columns of A in x = μ + A·z, as rows, in chunks.

    Innovation z_v enters at node v with √(1 − ρ_v²) and goes down, times ρ on every edge.
    """
    tree, rho = model.tree, model.correlations
    own = np.sqrt(1.0 - rho**2)
    for start, stop in chunks(tree.n_nodes, tree.n_nodes):
        flow = np.zeros((tree.n_nodes, stop - start))
        for node in tree.order:
            above = tree.parent[node]
            if above >= 0:
                np.multiply(flow[above], rho[node], out=flow[node])
            if start <= node < stop:
                flow[node, node - start] = own[node]
        yield flow[: tree.n_observed].T * model.scales


def _check_labels(p: StateModel | SampledModel, q: StateModel | SampledModel) -> None:
    known = dict(zip(q.schema.names, q.schema.labels, strict=True))
    for name, labels in zip(p.schema.names, p.schema.labels, strict=True):
        lacking = [label for label in labels if label not in known[name]]
        if lacking:
            raise ModelError(
                f"variable {name!r} has the state {lacking[0]!r}, which the second model lacks"
            )


def _enumerated_divergence(p: DiscreteTreeModel, q: DiscreteTreeModel) -> float:
    log_p, log_q = _log_probabilities(p, q, _joint_states(p.schema.cardinalities))
    possible = log_p > -np.inf  # 0·log 0 = 0
    log_p, log_q = log_p[possible], log_q[possible]
    return max(0.0, float((np.exp(log_p) * (log_p - log_q)).sum()))


def _sampled_divergence(
    p: StateModel | SampledModel,
    q: StateModel | SampledModel,
    n_samples: int,
    random_state: RandomState,
) -> Divergence:
    if n_samples < 2:
        raise ModelError(f"n_samples is {n_samples}, but a standard error needs at least 2")
    drawn = p.sample(n_samples, random_state)
    table = as_table(drawn, schema=p.schema)
    log_p, log_q = _log_probabilities(p, q, table.values)
    if np.isinf(log_q).any():
        return Divergence(np.inf)
    ratio = log_p - log_q
    return Divergence(ratio.mean(), ratio.std(ddof=1) / np.sqrt(n_samples))


def _log_probabilities(
    p: StateModel | SampledModel, q: StateModel | SampledModel, codes: AnyArray
) -> tuple[FloatArray, FloatArray]:
    table = Table(codes, p.schema)
    return p.log_likelihood(table), q.log_likelihood(table)


def _joint_states(cardinalities: IntArray) -> IntArray:
    """All joint states, one per row."""
    return np.indices(tuple(cardinalities)).reshape(cardinalities.size, -1).T.copy()


# Models and data --------------------------------------------------------------------------------


def log_likelihood(model: TreeModel, X: TableLike, weights: ArrayLike | None = None) -> float:
    """Return the log-likelihood of all rows together.

    Parameters
    ----------
    model : TreeModel
    X : table of any kind
    weights : array of float, optional
        How much each row counts; 1 when left out.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.5)
    >>> round(lt.metrics.log_likelihood(model, [[0, 1], [1, 1]]), 3)  # 2·log ¼
    -2.773
    """
    return model.total_log_likelihood(X, weights)


def bic_score(model: TreeModel, X: TableLike, weights: ArrayLike | None = None) -> float:
    """Return the paper's BIC, LL − κ/2·log n: higher is better.

    ``LatentTree.bic`` follows scikit-learn instead: −2 times this, lower is better. κ counts all
    free parameters; the paper's count of a Gaussian tree, correlations alone, is its
    ``n_correlations``.

    Parameters
    ----------
    model : TreeModel
        Its ``n_parameters`` is κ.
    X : table of any kind
    weights : array of float, optional
        How much each row counts; 1 when left out. n is their sum.

    Returns
    -------
    float

    References
    ----------
    G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6 (1978).

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.5)
    >>> round(lt.metrics.bic_score(model, [[0, 1], [1, 1]]), 3)
    -3.119
    """
    total, n = _total(model, X, weights)
    return total - 0.5 * model.n_parameters * float(np.log(n))


def aic_score(model: TreeModel, X: TableLike, weights: ArrayLike | None = None) -> float:
    """Return Akaike's criterion on the scale of :func:`bic_score`, LL − κ: higher is better.

    Parameters
    ----------
    model : TreeModel
        Its ``n_parameters`` is κ.
    X : table of any kind
    weights : array of float, optional
        How much each row counts; 1 when left out.

    Returns
    -------
    float

    References
    ----------
    H. Akaike, "A new look at the statistical model identification", IEEE Transactions on Automatic
    Control 19 (1974).

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.5)
    >>> round(lt.metrics.aic_score(model, [[0, 1], [1, 1]]), 3)
    -3.773
    """
    return log_likelihood(model, X, weights) - model.n_parameters


def held_out_score(model: TreeModel, X: TableLike, weights: ArrayLike | None = None) -> float:
    """Return the mean log-likelihood of a row, in nats; meant for rows that were held out.

    Parameters
    ----------
    model : TreeModel
    X : table of any kind
        Rows that the model was not learned from.
    weights : array of float, optional
        How much each row counts; 1 when left out.

    Returns
    -------
    float

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.DiscreteTreeModel.symmetric(lt.Tree([-1, 0]), 2, 0.5)
    >>> round(lt.metrics.held_out_score(model, [[0, 1], [1, 1]]), 3)
    -1.386
    """
    total, n = _total(model, X, weights)
    return total / n


def _total(model: TreeModel, X: TableLike, weights: ArrayLike | None) -> tuple[float, float]:
    """Log-likelihood of all rows and their total weight."""
    table = as_table(X, schema=model.schema, weights=weights)
    return model.total_log_likelihood(table), table.total_weight

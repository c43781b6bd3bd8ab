"""Trees to learn, and ways to look at what was learned."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from latentree import simulate
from latentree.tree import Tree

SHAPES = ("random", "leaves", "binary", "hubs", "hidden_markov", "caterpillar", "path", "star")


@st.composite
def latent_trees(draw, most=60, shapes=SHAPES, shortest=0.01, longest=5.0):
    """Minimal latent trees: observed inner nodes, hubs, caterpillars, chains; any lengths."""
    shape = draw(st.sampled_from(shapes))
    m = draw(st.integers(4, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = {
        "random": lambda: simulate.random_latent_tree(m, rng, 0.3, 0.4),
        "leaves": lambda: simulate.random_latent_tree(m, rng, 0.0, 0.3),
        "binary": lambda: simulate.random_latent_tree(m, rng, 0.0, 0.0),
        "hubs": lambda: simulate.random_latent_tree(m, rng, 0.1, 0.9),
        "hidden_markov": lambda: simulate.hidden_markov(m),
        "caterpillar": lambda: simulate.caterpillar(m, min(3, m // 2)),
        "path": lambda: Tree(np.arange(m) - 1),
        "star": lambda: simulate.latent_class(m),
    }[shape]()
    ties = draw(st.booleans())
    if ties:  # few distinct lengths: ties between surrogates and between criteria
        lengths = rng.choice([shortest, (shortest + longest) / 2, longest], tree.n_nodes)
    else:
        lengths = np.exp(rng.uniform(np.log(shortest), np.log(longest), tree.n_nodes))
    return with_lengths(shuffled(tree, rng), lengths)


def with_lengths(tree, lengths):
    return tree.with_lengths(np.where(tree.parent < 0, 0.0, lengths))


def shuffled(tree, rng):
    """The same tree with its observed nodes under other numbers."""
    return permuted(tree, rng.permutation(tree.n_observed))


def permuted(tree, order):
    """The tree whose observed node i is node ``order[i]`` of the given one."""
    old = np.concatenate([order, tree.hidden]).astype(int)
    new = np.empty(tree.n_nodes + 1, int)
    new[old], new[-1] = np.arange(tree.n_nodes), -1
    return Tree(new[tree.parent[old]], tree.length[old], tree.n_observed)


def sampled_correlations(tree, n_samples, rng):
    """Sample correlations of a Gaussian model with ρ = e^(−length), by Bartlett's decomposition."""
    m = tree.n_observed
    root = np.linalg.cholesky(np.exp(-tree.path_lengths()))
    factor = np.tril(rng.standard_normal((m, m)), -1)
    factor[np.diag_indices(m)] = np.sqrt(rng.chisquare(n_samples - 1 - np.arange(m)))
    scatter = root @ factor @ factor.T @ root.T
    scale = np.sqrt(np.diag(scatter))
    return scatter / np.outer(scale, scale)


def sampled_distances(tree, n_samples, rng):
    """Estimated information distances of the same."""
    rho = np.abs(sampled_correlations(tree, n_samples, rng))
    d = -np.log(np.clip(rho, 1e-8, 1.0))
    np.fill_diagonal(d, 0.0)
    return (d + d.T) / 2


def robinson_foulds(a, b):
    return len(a.bipartitions() ^ b.bipartitions())


def is_minimal(tree):
    return bool(np.all(tree.degrees[tree.n_observed :] >= 3) and np.all(tree.length >= 0))

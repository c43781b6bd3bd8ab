"""TestNodeRelationships: who is whose parent, and who are siblings."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentree._kernels.structure import grouping
from latentree._kernels.structure.ranges import FAR, max_difference
from latentree.distances import DistancesLike, as_distances
from latentree.structure._blocks import EXACT
from latentree.structure._recursive_grouping import certainty
from latentree.typing import FloatArray


class Relation(enum.IntEnum):
    """What node i is to node j."""

    NEITHER = 0
    """Not in a family, or one of them is not a leaf."""
    SIBLINGS = 1
    """Both are leaves with the same parent."""
    PARENT = 2
    """j is a leaf and i its parent."""
    CHILD = 3
    """i is a leaf and j its parent."""


@dataclass(frozen=True, eq=False)
class Relationships:
    """Relations of all pairs, and the statistic Λ they were read from."""

    relation: NDArray[np.int8]
    """``relation[i, j]`` is what i is to j, as a number of :class:`Relation`."""
    spread: FloatArray
    """Λ_ij = max_k Φ_ijk − min_k Φ_ijk, less what noise explains; siblings have Λ ≤ ε."""

    def of(self, i: int, j: int) -> Relation:
        """Return what i is to j.

        Examples
        --------
        >>> result = node_relationships([[0, 1, 3], [1, 0, 2], [3, 2, 0]], exact=True)
        >>> result.of(1, 0)
        <Relation.PARENT: 2>
        """
        return Relation(int(self.relation[i, j]))


def node_relationships(
    distances: DistancesLike,
    exact: bool = False,
    tau: float | None = None,
    epsilon: float | None = None,
) -> Relationships:
    """Test the relation of every pair of variables (Section 3.2 of the paper).

    With Φ_ijk = d_ik − d_jk over all other k: i is a leaf and j its parent when Φ_ijk = d_ij for
    all k; both are leaves and siblings when Φ_ijk is any other constant. O(m³) for m variables.

    On estimates "constant" means Λ̂_ij ≤ ε, where Λ̂ counts only what is beyond the confidence
    intervals of the distances when the number of samples is known, and ``epsilon`` is not given
    (then ε = 0). "Equal" means that the mean of Φ_ijk ∓ d_ij is within the same bounds.

    Parameters
    ----------
    distances : Distances or square array
        Information distances.
    exact : bool
        Whether the distances are those of a tree, up to rounding.
    tau : float, optional
        Only nodes k with max(d_ik, d_jk) < τ count; all when left out.
    epsilon : float, optional
        Threshold ε for the plain statistic max Φ̂ − min Φ̂.

    Returns
    -------
    Relationships
        What each variable is to each other, and the statistic Λ.

    References
    ----------
    Choi, Tan, Anandkumar and Willsky, Learning latent tree graphical models, Journal of Machine
    Learning Research 12, 2011, Section 3.2.

    Examples
    --------
    The path 0 – 1 – 2:

    >>> result = node_relationships([[0, 1, 3], [1, 0, 2], [3, 2, 0]], exact=True)
    >>> result.of(1, 0).name, result.of(2, 1).name, result.of(0, 2).name
    ('PARENT', 'CHILD', 'SIBLINGS')
    """
    checked = as_distances(distances)
    d = checked.dense()
    m = len(d)
    noise = 0.0
    if not exact and epsilon is None and checked.n_effective is not None:
        noise = 1.0 / math.sqrt(max(checked.n_effective, 2.0))
    limit = EXACT * float(d.max(initial=0.0)) if epsilon is None else epsilon
    cut = 1e8 if tau is None else tau
    bounds = grouping.distance_bounds(d, np.zeros(m), noise, certainty(noise), cut)
    product = max_difference(*bounds)
    spread = grouping.spread_of(product)
    family = (spread <= limit) & (spread > -FAR) & (d < cut)  # none without any k
    # Φ_ijk ≤ d_ij always; it is d_ij for all k where even its smallest value, which is
    # −max_k (d_jk − d_ik), comes up to it.
    child = family & (d + product.T <= limit)
    relation = np.where(family, Relation.SIBLINGS, Relation.NEITHER).astype(np.int8)
    relation[child] = Relation.CHILD
    relation[child.T & ~child] = Relation.PARENT
    np.fill_diagonal(relation, Relation.NEITHER)
    return Relationships(relation, spread)

"""How strongly any two columns depend on each other, as information distances.

Rows become :class:`Statistics`, sums over rows that add up; statistics become :class:`Distances`, a
matrix where it fits into memory and blocks on demand where not. A :class:`Sample` holds the three
together, each computed once; :func:`information_distances` is the public way to the distances.
:func:`polychoric`, :func:`polyserial`, :func:`rank_correlation` and :func:`latent_correlations`
give the correlations of the Gaussian variables behind ordered answers and numbers.
"""

from latentree.distances._counting import PackedOnes, in_parts
from latentree.distances._distances import (
    WEAKEST,
    Distances,
    as_distances,
    distances_among_candidates,
)
from latentree.distances._evidence import Evidence
from latentree.distances._latent import (
    Correlation,
    LatentCorrelations,
    latent_correlations,
    polychoric,
    polyserial,
    rank_correlation,
)
from latentree.distances._latent_sums import LatentSums, is_unordered
from latentree.distances._mixed_sums import MixedSums
from latentree.distances._on_demand import OnDemand
from latentree.distances._sample import Sample, as_copula, as_sample, information_distances
from latentree.distances._statistics import Plan, Statistics, gather, part_statistics, plan_of
from latentree.distances._sums import SCALES, DistinctRows, RealSums, StateCounts, Units

__all__ = [
    "SCALES",
    "WEAKEST",
    "Correlation",
    "Distances",
    "DistinctRows",
    "Evidence",
    "LatentCorrelations",
    "LatentSums",
    "MixedSums",
    "OnDemand",
    "PackedOnes",
    "Plan",
    "RealSums",
    "Sample",
    "StateCounts",
    "Statistics",
    "Units",
    "as_copula",
    "as_distances",
    "as_sample",
    "distances_among_candidates",
    "gather",
    "in_parts",
    "information_distances",
    "is_unordered",
    "latent_correlations",
    "part_statistics",
    "plan_of",
    "polychoric",
    "polyserial",
    "rank_correlation",
]

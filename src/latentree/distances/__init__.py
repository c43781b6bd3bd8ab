"""How strongly any two columns depend on each other, as information distances.

Rows become :class:`Statistics`, sums over rows that add up; statistics become :class:`Distances`, a
matrix where it fits into memory and blocks on demand where not. A :class:`Sample` holds the three
together, each computed once; :func:`information_distances` is the public way to the distances.
:func:`polychoric`, :func:`polyserial`, :func:`rank_correlation` and :func:`latent_correlations`
give the correlations of the Gaussian variables behind ordered answers and numbers.
"""

from latentree.distances._block_dependence import BlockDependence
from latentree.distances._counting import PackedOnes, in_parts
from latentree.distances._distances import (
    Distances,
    DistancesLike,
    as_distances,
    distances_among_candidates,
)
from latentree.distances._latent_correlations import (
    Correlation,
    LatentCorrelations,
    latent_correlations,
    polychoric,
    polyserial,
    rank_correlation,
)
from latentree.distances._latent_sums import LatentSums, is_unordered
from latentree.distances._mixed_sums import MixedSums
from latentree.distances._pair_tests import Evidence
from latentree.distances._providers import WEAKEST
from latentree.distances._real_sums import SCALES, RealSums, Units
from latentree.distances._sample import (
    Sample,
    SampleLike,
    as_copula,
    as_sample,
    information_distances,
)
from latentree.distances._state_counts import DistinctRows, StateCounts
from latentree.distances._statistics import (
    Statistics,
    StatisticsPlan,
    gather,
    part_statistics,
    plan_of,
)

__all__ = [
    "SCALES",
    "WEAKEST",
    "BlockDependence",
    "Correlation",
    "Distances",
    "DistancesLike",
    "DistinctRows",
    "Evidence",
    "LatentCorrelations",
    "LatentSums",
    "MixedSums",
    "PackedOnes",
    "RealSums",
    "Sample",
    "SampleLike",
    "StateCounts",
    "Statistics",
    "StatisticsPlan",
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

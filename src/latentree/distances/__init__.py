"""How strongly any two columns depend on each other, as information distances.

Rows become :class:`Statistics`, sums over rows that add up; statistics become :class:`Distances`, a
matrix where it fits into memory and blocks on demand where not. A :class:`Sample` holds the three
together, each computed once; :func:`information_distances` is the public way to the distances.
:func:`polychoric`, :func:`polyserial`, :func:`rank_correlation` and :func:`latent_correlations`
give the correlations of the Gaussian variables behind ordered answers and numbers.
"""

from latentree.distances._arrays import in_parts
from latentree.distances._block_dependence import BlockDependence
from latentree.distances._distances import (
    Distances,
    DistancesLike,
    as_distances,
    distances_among_candidates,
)
from latentree.distances._distinct_rows import DistinctRows
from latentree.distances._functions import Functions, Units, is_unordered
from latentree.distances._latent import estimated_correlations, shown_shares
from latentree.distances._latent_correlations import (
    Correlation,
    LatentCorrelations,
    latent_correlations,
    polychoric,
    polyserial,
    rank_correlation,
)
from latentree.distances._lines import BitLines
from latentree.distances._pair_tests import Evidence
from latentree.distances._providers import WEAKEST
from latentree.distances._sample import (
    Sample,
    SampleLike,
    as_copula,
    as_sample,
    information_distances,
)
from latentree.distances._statistics import (
    Statistics,
    StatisticsPlan,
    gather,
    part_statistics,
    plan_of,
)
from latentree.distances._sums import SCALES, Sums

__all__ = [
    "SCALES",
    "WEAKEST",
    "BitLines",
    "BlockDependence",
    "Correlation",
    "Distances",
    "DistancesLike",
    "DistinctRows",
    "Evidence",
    "Functions",
    "LatentCorrelations",
    "Sample",
    "SampleLike",
    "Statistics",
    "StatisticsPlan",
    "Sums",
    "Units",
    "as_copula",
    "as_distances",
    "as_sample",
    "distances_among_candidates",
    "estimated_correlations",
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
    "shown_shares",
]

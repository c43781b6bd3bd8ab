"""How strongly any two columns depend on each other, as information distances.

:class:`Statistics` are sums over rows that add up; :func:`information_distances` turns them, or
blocks of columns on demand, into :class:`Distances`.
"""

from latentree.distances._counting import SparseOnes, in_parts
from latentree.distances._dependence import Dependence
from latentree.distances._distances import (
    INDEPENDENT,
    WEAKEST,
    Distances,
    as_distances,
    information_distances,
)
from latentree.distances._pairwise import mutual_information
from latentree.distances._states import MOST_DISTINCT_CELLS, DistinctRows, StateCounts
from latentree.distances._statistics import Statistics, gather

__all__ = [
    "INDEPENDENT",
    "MOST_DISTINCT_CELLS",
    "WEAKEST",
    "Dependence",
    "Distances",
    "DistinctRows",
    "SparseOnes",
    "StateCounts",
    "Statistics",
    "as_distances",
    "gather",
    "in_parts",
    "information_distances",
    "mutual_information",
]

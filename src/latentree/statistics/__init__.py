"""Sums over rows that add up over parts, and everything that follows from them."""

from latentree.statistics.states import StateCounts
from latentree.statistics.statistics import Statistics, gather

__all__ = ["StateCounts", "Statistics", "gather"]

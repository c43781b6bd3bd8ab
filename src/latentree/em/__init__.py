"""Maximum likelihood by expectation and maximization.

:func:`fit_parameters` fits the parameters of a tree to data. Behind it, one driver owns starts,
acceleration, stopping and reports; each family of models supplies the steps.
"""

from latentree.em._discrete import FLOOR, DiscreteProblem
from latentree.em._driver import Budget, Driver
from latentree.em._fit import (
    Fitted,
    TreeModel,
    condensed,
    fit_parameters,
    hidden_states,
    make_problem,
    maximise,
    start_points,
    table_of,
)
from latentree.em._gaussian import GaussianProblem, column_moments
from latentree.em._report import FitReport
from latentree.em._starts import random_discrete_start

__all__ = [
    "FLOOR",
    "Budget",
    "DiscreteProblem",
    "Driver",
    "FitReport",
    "Fitted",
    "GaussianProblem",
    "TreeModel",
    "column_moments",
    "condensed",
    "fit_parameters",
    "hidden_states",
    "make_problem",
    "maximise",
    "random_discrete_start",
    "start_points",
    "table_of",
]

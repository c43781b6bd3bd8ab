"""Maximum likelihood by expectation and maximization.

:func:`fit_parameters` fits the parameters of a tree to data. Behind it, one driver owns starts,
acceleration, stopping and reports; each family of models supplies the steps.
"""

from latentree.em._binning import Binning
from latentree.em._driver import (
    INTERRUPTED,
    Budget,
    BudgetSpent,
    Driver,
    Step,
    maximize,
)
from latentree.em._fit import (
    fit_parameters,
    held_out_fits,
    make_problem,
    matched,
    start_points,
    usual_states,
)
from latentree.em._gaussian import MomentProblem, RowProblem, chunks_of, moment_step
from latentree.em._held_out import FIRST, HeldOutFit, run_rivals, run_together
from latentree.em._held_rows import FOLDS, dealt_folds, held_out_split, without_fold
from latentree.em._report import FitReport, Fitted
from latentree.em._starts import random_discrete_start
from latentree.em._state_problem import FLOOR, StateProblem, as_leaves, units_of

__all__ = [
    "FIRST",
    "FLOOR",
    "FOLDS",
    "INTERRUPTED",
    "Binning",
    "Budget",
    "BudgetSpent",
    "Driver",
    "FitReport",
    "Fitted",
    "HeldOutFit",
    "MomentProblem",
    "RowProblem",
    "StateProblem",
    "Step",
    "as_leaves",
    "chunks_of",
    "dealt_folds",
    "fit_parameters",
    "held_out_fits",
    "held_out_split",
    "make_problem",
    "matched",
    "maximize",
    "moment_step",
    "random_discrete_start",
    "run_rivals",
    "run_together",
    "start_points",
    "units_of",
    "usual_states",
    "without_fold",
]

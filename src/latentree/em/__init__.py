"""Maximum likelihood by expectation and maximization.

:func:`fit_parameters` fits the parameters of a tree to data. Behind it, one driver owns starts,
acceleration, stopping and reports; each family of models supplies the steps.
"""

from latentree.em._binning import N_BINS, Binning
from latentree.em._discrete import FLOOR, DiscreteProblem
from latentree.em._driver import Budget, Driver, Problem, Step
from latentree.em._early_stopping import climb_by_held_out
from latentree.em._fit import (
    Fitted,
    fit_parameters,
    held_out_fit,
    make_problem,
    matched,
    maximize,
    start_points,
    usual_states,
)
from latentree.em._gaussian import MomentProblem, RowProblem, chunks_of, moment_step
from latentree.em._held_out import HeldOutFit, run_together
from latentree.em._held_rows import (
    FOLDS,
    GROUPS,
    dealt_folds,
    dealt_groups,
    error_of_sum,
    held_out_split,
    without_fold,
)
from latentree.em._mixed import MixedProblem, as_leaves
from latentree.em._report import FitReport
from latentree.em._starts import random_discrete_start, split_hidden

__all__ = [
    "FLOOR",
    "FOLDS",
    "GROUPS",
    "N_BINS",
    "Binning",
    "Budget",
    "DiscreteProblem",
    "Driver",
    "FitReport",
    "Fitted",
    "HeldOutFit",
    "MixedProblem",
    "MomentProblem",
    "Problem",
    "RowProblem",
    "Step",
    "as_leaves",
    "chunks_of",
    "climb_by_held_out",
    "dealt_folds",
    "dealt_groups",
    "error_of_sum",
    "fit_parameters",
    "held_out_fit",
    "held_out_split",
    "make_problem",
    "matched",
    "maximize",
    "moment_step",
    "random_discrete_start",
    "run_together",
    "split_hidden",
    "start_points",
    "usual_states",
    "without_fold",
]

"""Maximum likelihood by expectation and maximisation.

:func:`fit_parameters` fits the parameters of a tree to data. Behind it, ``driver`` owns starts,
acceleration, stopping and reports; ``discrete`` and ``gaussian`` supply the steps.
"""

from latentree.em.driver import Budget
from latentree.em.fit import Fitted, fit_parameters
from latentree.em.report import FitReport

__all__ = ["Budget", "FitReport", "Fitted", "fit_parameters"]

"""What is said while a method learns."""

from __future__ import annotations

import math

from latentree.methods._registry import AUTO


class ProgressText:
    """The text that tells how far learning is: the number of steps, and the best value so far.

    The best value never falls, although each new start of EM or of a search begins lower.

    Parameters
    ----------
    method : str
        Name of the method.
    n_states, n_trees, criterion : object, optional
        Its options.

    Examples
    --------
    >>> progress = ProgressText("refined")
    >>> progress(1, -20.0), progress(2, -30.0)
    ('change 1, best score -20.0', 'change 2, best score -20.0')
    """

    def __init__(
        self, method: str, n_states: object = None, n_trees: object = None, criterion: object = None
    ) -> None:
        is_search = method == "refined"
        self.unit, self.value = ("change", "score") if is_search else ("step", "log-likelihood")
        self.digits = 1
        is_cv = criterion == "cv" and not is_search  # of mixed data: what n_states="auto" is
        if method == "hclt" or n_states == AUTO or is_cv:
            self.unit, self.value, self.digits = "pass", "held-out log-likelihood per row", 4
        if n_trees is not None:
            self.unit, self.value, self.digits = "setting", "held-out log-likelihood per row", 4
        self.best = -math.inf

    def __call__(self, steps: int, reached: float) -> str:
        """Return the text."""
        self.best = max(self.best, reached)
        known = (
            f", best {self.value} {self.best:,.{self.digits}f}" if math.isfinite(self.best) else ""
        )
        return f"{self.unit} {steps:,}{known}"

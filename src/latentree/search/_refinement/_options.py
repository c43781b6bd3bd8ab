"""Every number that steers a refinement, in one place.

docs/evidence/refinement.md has a line for each: what a search finds with it and without it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RefineOptions:
    """Numbers that steer a refinement, for experiments: the defaults are meant for all tables.

    Lengths of lists and numbers of steps trade time for thoroughness. Gains and losses are in
    nats: they do not depend on the size of the table.

    A search of trees with states is steered by ``caution``, ``discrete_shares``, ``least_gain``,
    ``slack``, ``steps``, ``effort``, ``softness`` and ``spread``; the other numbers are of Gaussian
    trees alone.

    Parameters
    ----------
    caution, gaussian_shares, discrete_shares, least_gain, slack
        How the search goes on, and what it accepts.
    steps, effort, gaussian_settle_steps, gaussian_steps, tolerance
        How parameters are fitted, and how much is tried.
    softness, spread, independent
        What changes begin with, and which cuts are tried.

    Examples
    --------
    >>> import latentree as lt
    >>> X = lt.simulate.random_gaussian_model(lt.simulate.latent_class(5), 0).sample(500, 1)
    >>> start = lt.structure.chow_liu(lt.information_distances(X))
    >>> options = lt.search.RefineOptions(gaussian_shares=(1.0,))
    >>> model, report = lt.search.refine(start, X, options=options)
    """

    # The search
    caution: float = 1.0
    """Multiple of what the best of many places gains by chance, which a move must gain as well."""
    gaussian_shares: tuple[float, ...] = (0.7, 1.0)
    """Shares of the penalty, one stage after the other: two changes may pay where one does not."""
    discrete_shares: tuple[float, ...] = (0.5, 1.0)
    """The same for discrete tables, where a hidden variable has several parameters an edge."""
    least_gain: float = 2.0
    """A change that raises the score by less is not accepted, nor a round of changes repeated."""
    slack: float = 8.0
    """What a change may lose with all other parameters fixed, and still be tried."""

    # How much is done
    steps: int = 12
    """EM steps on all tables after changes, and on those around a change before it is proposed."""
    gaussian_settle_steps: int = 36
    """The former of Gaussian tables, where a step takes little time."""
    gaussian_steps: int = 64
    """The latter of Gaussian tables."""
    tolerance: float = 1e-3
    """Rise of the log-likelihood below which EM around a Gaussian node ends."""
    effort: int = 4
    """Places compared, by a share 1/effort of the steps, and states that are split. So many times
    the steps are taken at the start of a stage, and where nothing else gains."""

    # What changes begin with
    softness: float = 0.1
    """How much a new hidden node differs at first from the node that it copies."""
    spread: float = 0.5
    """Standard deviation of the logarithms in which the halves of a state differ at first."""
    independent: float = 0.01
    """Only an edge that adds less to the log-likelihood of a Gaussian table may be cut."""

    @property
    def few(self) -> int:
        """Of places, edges around them, and pairs of states: how many are fitted."""
        return max(self.effort // 2, 1)

    @property
    def patience(self) -> int:
        """Doubtful changes that are tried in vain before a round ends."""
        return self.effort + self.effort // 2

    @property
    def trial_steps(self) -> int:
        """EM steps on one table, while places are compared."""
        return max(self.steps // self.effort, 1)

    @property
    def trial_loss(self) -> float:
        """Places that lose more when one table is fitted are given up."""
        return self.effort * self.slack


DEFAULTS = RefineOptions()

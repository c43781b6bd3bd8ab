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

    Parameters
    ----------
    caution, gaussian_shares, discrete_shares, least_gain
        How the search goes on, and what it accepts.
    settle_steps, gaussian_settle_steps, start_effort
        How all parameters are fitted between changes.
    slack, patience, last_effort, time_share
        What it tries although it may fail, and for how long.
    softness, gaussian_steps, discrete_steps, trial_steps, state_steps, hope, tolerance
        How the parameters around a change are fitted.
    places, far_places, edges, trial_loss
        Which places for a subtree are compared.
    splits, joins, spread, independent
        Which changes of states and which cuts are tried.

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
    settle_steps: int = 12
    """EM steps on all tables after changes, before they are accepted."""
    gaussian_settle_steps: int = 36
    """The same for Gaussian tables, where a step takes little time."""
    start_effort: int = 4
    """Multiple of these steps at the start of a stage."""
    least_gain: float = 2.0
    """A change that raises the score by less is not accepted, nor a round of changes repeated."""
    slack: float = 8.0
    """What a change may lose with all other parameters fixed, and still be tried."""
    patience: int = 6
    """Such changes that are tried in vain before the round ends."""
    last_effort: int = 4
    """Multiple of steps on all tables and of patience where nothing else gains; 0: no such look."""
    time_share: float = 0.6
    """Share of the time left that a stage may take while another follows."""

    # Fits around a change
    softness: float = 0.1
    """How much a new hidden node differs at first from the node that it copies."""
    gaussian_steps: int = 64
    """EM steps on the edges around a Gaussian node."""
    discrete_steps: int = 20
    """EM steps on the tables around a discrete node."""
    trial_steps: int = 3
    """EM steps on one table, while places are compared."""
    state_steps: int = 8
    """EM steps on the tables around a node, while ways to split or join states are compared."""
    hope: float = 2.0
    """A fit ends that must gain more than this many times its last step to be of use."""
    tolerance: float = 1e-3
    """Rise of the log-likelihood below which EM around a node ends."""

    # What is tried
    places: int = 2
    """Places at which a subtree is fitted, the best of those compared."""
    far_places: int = 4
    """Places compared, those most associated with the subtree."""
    edges: int = 2
    """Edges around a good place into which the subtree is inserted."""
    trial_loss: float = 40.0
    """Places that lose more when one table is fitted are given up."""
    splits: int = 4
    """States of a node that are split, those of highest probability."""
    joins: int = 2
    """Pairs of states of a node that are joined, the most alike."""
    spread: float = 0.5
    """Standard deviation of the logarithms in which the halves of a state differ at first."""
    independent: float = 0.01
    """Only an edge that adds less to the log-likelihood of a Gaussian table may be cut."""


DEFAULTS = RefineOptions()

"""Rivals of a model: the trees one change away that nearly reach its score."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from latentree.distances import Sample
from latentree.errors import ModelError
from latentree.models import DiscreteTreeModel, GaussianTreeModel, Model
from latentree.search._refinement._draft import Conflict, Draft
from latentree.search._refinement._options import DEFAULTS
from latentree.search._refinement._refine import Criterion, make_engine, penalty_of
from latentree.search._refinement._search import Proposal, Request
from latentree.tree import Tree
from latentree.typing import FloatArray

LARGEST_LOSS = 16.0
"""Nats by which a rival's score may be lower. The difference of two log-likelihoods that are L
apart varies by about √(2·L) between replicates: one that is 16 behind wins 2 of 1,000."""

_PATIENT = replace(DEFAULTS, caution=0.0, slack=LARGEST_LOSS, places=4)


@dataclass(frozen=True, eq=False)
class Rivals:
    """A model, and models whose trees are one change away.

    Attributes
    ----------
    model : model
        The given one, its parameters fitted a little further.
    models : list of models
        Its rivals, fitted to the same rows.
    savings : array of float
        By how much the penalty of each is lower than that of the model.
    is_complete : bool
        Whether all rivals were fitted before the time was up, or a keyboard interrupt came.
    """

    model: Model
    models: list[Model]
    savings: FloatArray
    is_complete: bool
    _draft: Draft
    _proposals: list[Proposal]

    def tree_with(self, gains: FloatArray) -> Tree:
        """Return the tree with all changes that gain, the best first where two touch.

        Parameters
        ----------
        gains : array of float
            Of each rival over the model.

        Returns
        -------
        Tree
            Without lengths.
        """
        draft, touched = self._draft, set[int]()
        for place in np.argsort(-gains, kind="stable"):
            proposal = self._proposals[place]
            if gains[place] <= 0.0:
                break
            if proposal.region & touched:
                continue
            with suppress(Conflict):
                draft = proposal.apply(draft)
                touched |= proposal.region
        return draft.tree(self.model.tree.names[: draft.n_observed])


def rivals_of(
    model: Model,
    sample: Sample,
    *,
    criterion: Criterion = "bic",
    max_states: int | None = None,
    time_limit: float = math.inf,
    progress: Callable[[int, int, str], None] | None = None,
) -> Rivals:
    """Fit the trees that are one change away from a model and nearly reach its score.

    Changes are those of :func:`refine`: subtrees hung elsewhere, edges contracted, hidden siblings
    merged, observed variables made inner nodes and leaves again. Numbers of states stay.

    Parameters
    ----------
    model : GaussianTreeModel or DiscreteTreeModel
        Whose rivals are wanted.
    sample : Sample
        The rows that it was learned from.
    criterion : {"bic", "ebic", "aic"} or float
        As in :func:`refine`.
    max_states : int, optional
        As there.
    time_limit : float
        Seconds; rivals that are not fitted by then are left out.
    progress : callable, optional
        Called as ``progress(done, total, message)``.

    Returns
    -------
    Rivals

    Examples
    --------
    >>> import latentree as lt
    >>> from latentree.distances import as_sample
    >>> truth = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0, (0.5, 0.6))
    >>> sample = as_sample(truth.sample(200, 1))
    >>> rivals = rivals_of(truth, sample)
    >>> rivals.tree_with(-np.ones(len(rivals.models))).same_structure(truth.tree)
    True
    """
    if not isinstance(model, GaussianTreeModel | DiscreteTreeModel):
        raise ModelError(
            "rival trees are known for real columns and for columns of states, not for "
            f"{type(model).__name__}: learn replicates by a method, such as clnj"
        )
    end = time.monotonic() + time_limit
    penalty = penalty_of(criterion, sample)
    engine = make_engine(sample, max_states, 0, _PATIENT)
    fitted: list[tuple[Proposal, Model, float]] = []
    with threadpool_limits(1, "blas"):
        draft, log_likelihood = engine.settle(engine.draft(model), 4 * engine.settle_steps)
        score, cost = log_likelihood - penalty(draft), penalty(draft)
        proposals = engine.structures(Request(draft, penalty, _PATIENT, deadline=end))
        found = _by_tree(proposals, draft, sample.names)
        n_tried = 0
        with suppress(KeyboardInterrupt):
            for proposal in found:
                if time.monotonic() > end:
                    break
                changed, reached = engine.settle(proposal.apply(draft), 4 * engine.settle_steps)
                if reached - penalty(changed) > score - LARGEST_LOSS:
                    fitted.append((proposal, engine.model(changed), cost - penalty(changed)))
                n_tried += 1
                if progress is not None:
                    progress(n_tried, len(found), "fitting rival trees")
    is_complete = n_tried == len(found) and time.monotonic() <= end
    if not is_complete and n_tried == 0:
        raise ModelError("the time was over before a rival tree was fitted: allow more")
    return Rivals(
        engine.model(draft),
        [each for _, each, _ in fitted],
        np.array([saving for *_, saving in fitted]),
        is_complete,
        draft,
        [proposal for proposal, *_ in fitted],
    )


def _by_tree(proposals: Iterable[Proposal], draft: Draft, names: tuple[str, ...]) -> list[Proposal]:
    """Return the changes that can be made, the best first, one for each other tree."""
    own = draft.tree(names)
    found: dict[Tree, Proposal] = {}
    for proposal in sorted(proposals, key=lambda p: (-p.gain, p.key)):
        with suppress(Conflict):
            found.setdefault(proposal.apply(draft).tree(names), proposal)
    found.pop(own, None)
    return list(found.values())

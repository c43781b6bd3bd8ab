"""Replicates without learning: resampled log-likelihoods of rows (RELL) under rival trees.

The given model and its rivals, the trees one change away, are fitted once. In every replicate the
log-likelihood of each is the sum of those of its rows; rivals whose penalized log-likelihood is
higher than the model's take part in the tree of the replicate. Approximated are the parameters,
which are those of all rows, and the search: what is more than one change away is reached only
where several changes that do not touch each gain on their own (Kishino, Miyata and Hasegawa 1990).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from latentree.data import Parts, Table
from latentree.distances import Sample
from latentree.models import Model
from latentree.search import Rivals, rivals_of
from latentree.support._draws import Draws
from latentree.support._replicates import Progress, located
from latentree.tree import Tree
from latentree.typing import FloatArray


def rell_trees(
    model: Model,
    sample: Sample,
    n_replicates: int,
    draws: Draws,
    time_limit: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[list[Tree], str]:
    """Return the trees of replicates, and a note if not all rivals were fitted."""
    limit = math.inf if time_limit is None else time_limit
    rivals = rivals_of(model, sample, time_limit=limit, progress=progress, **options)
    gains = resampled_gains(rivals, sample, n_replicates, draws)
    trees = [rivals.tree_with(each) for each in gains]
    note = f"{len(rivals.models)} rival trees one change away, with the parameters of all rows"
    return trees, note if rivals.is_complete else f"{note}; stopped before all were fitted"


def resampled_gains(rivals: Rivals, sample: Sample, n_replicates: int, draws: Draws) -> FloatArray:
    """Return the gain in score of every rival over the model, one row a replicate."""
    parts = _drawn_rows(sample, draws)
    pieces = parts.tables.paired(located, range(0, parts.n_rows, parts.step))
    with threadpool_limits(1, "blas"):  # the same bits on any number of threads
        gains = pieces.total(_gains, rivals.model, rivals.models, draws, n_replicates)
    return np.asarray(gains + rivals.savings)


def _drawn_rows(sample: Sample, draws: Draws) -> Parts:
    """Return the rows that are drawn: the distinct ones where these are known."""
    distinct = sample.statistics.rows
    is_distinct = distinct is not None and distinct.codes is not None
    return sample.rows if is_distinct and draws.block_length is None else sample.parts


def _gains(
    piece: tuple[Table, int],
    model: Model,
    models: Sequence[Model],
    draws: Draws,
    n_replicates: int,
) -> FloatArray:
    """Return Σ w·(log p_rival − log p_model) over the rows of a part, for each replicate."""
    table, start = piece
    own = model.log_likelihood(table)
    more = np.array([each.log_likelihood(table) - own for each in models])
    drawn = np.array([
        draws.of_rows(number, start, start + table.n_rows) for number in range(n_replicates)
    ])  # fmt: skip
    return np.asarray(drawn @ more.reshape(len(models), table.n_rows).T)

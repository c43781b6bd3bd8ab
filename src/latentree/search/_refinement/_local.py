"""Fitting a star of a discrete draft, with the messages behind its arms held fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from latentree._kernels.search import stars
from latentree.em import FLOOR
from latentree.search._refinement._messages import Message, Rows, arms_of
from latentree.search._refinement._proposal import Star
from latentree.typing import FloatArray

STEPS = 20
"""Steps of EM that a change gets."""


class Fit(NamedTuple):
    """Tables around a node, and the log-likelihood of its component with them."""

    star: Star
    log_likelihood: float


def fit_star(
    rows: Rows,
    seen: FloatArray,
    arms: Mapping[int, Message],
    start: Star,
    n_steps: int = STEPS,
    least: float = -math.inf,
) -> Fit:
    """Run EM on the tables around a node at which ``seen`` is the evidence.

    It ends early where it is not going to reach the log-likelihood ``least``.
    """
    laid = arms_of(arms, rows)
    shift = float(rows.weights @ laid.shift)
    top = np.array(start.top)
    tables = np.concatenate([start.tables[node].ravel() for node in laid.nodes])
    given = laid.values, laid.starts, seen, rows.weights, top, tables
    stars.fit_star(*given, FLOOR, n_steps, least - shift)
    found = stars.log_likelihood(*given) + shift
    return Fit(Star(top, laid.split(tables, top.size)), found)

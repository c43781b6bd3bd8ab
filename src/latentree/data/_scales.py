"""Columns of one scale are taken alike: counts of many species, answers to many questions.

A kind that is decided for each column by itself depends on what happens to occur in it: rare
species are 0/1, common ones have dozens of values. The values of all columns of a scale decide
together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.data._column_facts import ColumnFacts, whole_number_facts
from latentree.data._kinds import KindDecision, decide_numbers
from latentree.typing import BoolArray

_LEVEL = 0.05
"""Chance by which any column of counts is taken for one whose highest value is a bound."""


def by_scale(
    facts: Sequence[ColumnFacts], taken: Sequence[KindDecision], is_free: Sequence[bool]
) -> list[KindDecision]:
    """Return the decisions with one kind for all columns of a scale.

    Parameters
    ----------
    facts, taken : sequences
        Facts and decisions of all columns.
    is_free : sequence of bool
        Whether the rule decided, and not whoever gave the kind of a column.
    """
    found = list(taken)
    used = [j for j, own in enumerate(taken) if own.kind is not None]
    whole = [j for j in used if is_free[j] and _is_whole(facts[j])]
    for scale in _scales(facts, used, whole):
        if len({found[j].kind for j in scale}) > 1:
            kind, why = decide_numbers(_pooled([facts[j] for j in scale]))
            for j in scale:
                found[j] = KindDecision(kind, f"{why}, with {len(scale) - 1} columns of its scale")
    return found


def _is_whole(facts: ColumnFacts) -> bool:
    return facts.type == "number" and not facts.has_fraction


def _scales(
    facts: Sequence[ColumnFacts], used: Sequence[int], whole: Sequence[int]
) -> list[list[int]]:
    """Return the columns of every scale, largest scales first; none is in two."""
    by_range: dict[tuple[float, float], list[int]] = {}
    for j in whole:
        if facts[j].high - facts[j].low > 1:
            by_range.setdefault((facts[j].low, facts[j].high), []).append(j)
    if not by_range:
        return []
    can_grow = dict(zip(whole, _unbounded([facts[j] for j in whole]), strict=True))
    # 0/1 and 1/2 are how yes/no is stored: one such column that is no count speaks for all.
    pairs = {j for j in whole if facts[j].high - facts[j].low == 1}
    if not all(can_grow[j] for j in pairs):
        whole = [j for j in whole if j not in pairs]
    (low, high), most = max(by_range.items(), key=lambda item: len(item[1]))
    if 2 * len(most) > len(used):
        # Most columns have one range: others within it may lack its highest values.
        within = [j for j in whole if facts[j].low == low and facts[j].high < high and can_grow[j]]
        by_range[low, high] = sorted([*most, *within])
    else:
        counts = [j for j in whole if facts[j].low == 0.0 and can_grow[j]]
        if 2 * sum(facts[j].high > 1 for j in counts) > len(used):
            # Most columns are whole numbers from 0 on without a common end.
            if len(whole) == len(used):
                counts = [j for j in whole if facts[j].low >= 0.0 and can_grow[j]]
            by_range = {(0.0, np.inf): counts, **by_range}
    order = sorted(by_range.values(), key=len, reverse=True)
    scales: list[list[int]] = []
    placed: set[int] = set()
    for scale in order:
        rest = [j for j in scale if j not in placed]
        scales.append(rest)
        placed.update(rest)
    return scales


def _unbounded(facts: Sequence[ColumnFacts]) -> BoolArray:
    """Whether the highest value of columns can be the highest of so many counts, and no bound.

    Poisson counts with the mean λ of a column stay at or below its highest value h in all n rows
    with probability P(X ≤ h)ⁿ; counts with a larger variance go higher.
    """
    from scipy.special import pdtr

    can_grow: BoolArray = np.ones(len(facts), bool)
    known = [j for j, own in enumerate(facts) if own.values is not None]
    mean = np.array([facts[j].values @ facts[j].counts / facts[j].n_present for j in known])
    n = np.array([facts[j].n_present for j in known])
    high = np.array([facts[j].high for j in known])
    start = np.array([1.0 if facts[j].low >= 1.0 else 0.0 for j in known])  # answers begin at 1
    can_grow[known] = pdtr(high - start, mean - start) ** n >= _LEVEL / len(facts)
    return can_grow


def _pooled(facts: Sequence[ColumnFacts]) -> ColumnFacts:
    """Return the facts of the values of several columns of whole numbers."""
    known = [own for own in facts if own.values is not None]
    if not known:
        return facts[0]
    values = np.concatenate([own.values for own in known])
    counts = np.concatenate([np.asarray(own.counts) for own in known])
    different, place = np.unique(values, return_inverse=True)
    occurs = np.bincount(place, counts, different.size).astype(np.int64)
    return whole_number_facts(int(occurs.sum()), different, occurs)

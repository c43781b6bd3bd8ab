"""Two models side by side: what the page needs to know beside both."""

from __future__ import annotations

import numpy as np

from latentree.explorer._packed import PageData, packed
from latentree.models import Model
from latentree.support import compare_trees


def pair_content(
    title: str, labels: list[str], models: list[Model], contents: list[PageData]
) -> PageData:
    """Return two models' contents and their comparison.

    ``shared`` says of every node of each tree whether the other tree has the split of the edge
    above it, ``match`` which node of the second tree a node of the first is (−1 for none), and
    ``moved`` which variables of the first have moved.
    """
    first, second = (model.tree for model in models)
    found = compare_trees(first, second)
    m = first.n_observed
    # The comparison has the second tree's variables in the order of the first.
    own = np.array([*map(second.index, first.names[:m]), *second.hidden], np.int64)
    shared = np.zeros(second.n_nodes, bool)
    shared[own] = found.second_shared
    moved = [first.index(name) for name in found.moved]
    return {
        "title": title,
        "labels": labels,
        "models": contents,
        "comparison": found.as_dict()
        | {
            "shared": [packed(found.first_shared, "u1"), packed(shared, "u1")],
            "match": packed(np.append(own[:m], found.same_hidden), "<i4"),
            "moved": moved,
        },
    }

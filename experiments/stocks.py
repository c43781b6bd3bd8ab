"""Monthly returns of 84 companies and the index: trees, likelihoods, and what hangs together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

import latentree as lt
from experiments.results import ALL, Unit
from experiments.samples import timed, warm_up
from latentree.datasets import Dataset
from latentree.distances import as_sample
from latentree.models._encode import encode
from latentree.structure import learn_tree

PARTS = ALL
METHODS = ("chow_liu", "nj", "rg", "clnj", "clrg")
PERMUTATIONS = 2_000
FEW_PERMUTATIONS = 50
"""Of the companies, to test whether a group is a subtree by chance; few in the miniature."""
INDUSTRIES = {
    "telecom": ("T", "VZ", "S"),
    "technology": ("AAPL", "DELL", "EMC", "HPQ", "IBM", "INTC", "MSFT", "ORCL", "TXN", "XRX"),
    "banks": ("BAC", "BK", "C", "JPM", "RF", "USB", "WB", "WFC"),
    "retail stores": ("CVS", "HD", "TGT", "WMT"),
}
"""The industries that the paper reads off its tree: by SIC code, Sprint (S) by its business."""


@cache
def load() -> Dataset:
    """Read the returns; a DataError says what is missing."""
    return lt.datasets.load_sp100()


def fingerprint(dataset: Dataset) -> str:
    """Name the content of a dataset."""
    return hashlib.sha256(np.ascontiguousarray(dataset.data).tobytes()).hexdigest()[:12]


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List one unit for every method."""
    data = fingerprint(load())
    few = {"permutations": FEW_PERMUTATIONS} if small else {}
    for method in METHODS:
        yield Unit("stocks", {"method": method, "data": data, **few})


def measure(method: str, data: str, permutations: int = PERMUTATIONS) -> dict[str, Any]:
    """Learn a tree from the standardized returns; its parameters from distances, and by EM."""
    warm_up()
    dataset = load()
    returns = (dataset.data - dataset.data.mean(axis=0)) / dataset.data.std(axis=0)
    table = lt.as_table(returns, "gaussian", names=dataset.names)
    covariance = np.cov(dataset.data, rowvar=False, ddof=0)
    tree, seconds = timed(lambda: learn_tree(as_sample(table), method))
    plain = lt.fit_parameters(tree, table, method="distances").model
    lt.fit_parameters(tree, table, random_state=0)  # compiles
    fitted, em_seconds = timed(lambda: lt.fit_parameters(tree, table, random_state=0).model)
    return {
        "hidden": tree.n_hidden,
        "parameters": tree.n_edges,
        "seconds": seconds,
        "em_seconds": em_seconds,
        "distances": _scores(plain, table, covariance),
        "em": _scores(fitted, table, covariance),
        "groups": _match(tree, dataset.groups, permutations),
        "model": json.loads(encode(fitted)),
    }


def _scores(model: lt.GaussianTreeModel, table: lt.Table, covariance: Any) -> dict[str, float]:
    """Log-likelihood on the scale of correlations, and as the paper computed it.

    LL = −n/2·(m·log 2π + log det R + tr(R⁻¹S)): S is the sample's correlation matrix, in the
    published figures its covariance matrix. κ counts the edges' correlations.
    """
    r, n = model.correlation(), table.n_rows
    m = len(r)
    constant = m * np.log(2 * np.pi) + np.linalg.slogdet(r)[1]
    sample = np.corrcoef(table.values, rowvar=False)
    penalty = 0.5 * model.n_correlations * np.log(n)
    out = {}
    for name, s in (("", sample), ("_published", covariance)):
        value = -0.5 * n * (constant + np.trace(np.linalg.solve(r, s)))
        out |= {f"ll{name}": float(value), f"bic{name}": float(value - penalty)}
    return out


# Industries -------------------------------------------------------------------------------------


def _match(tree: lt.Tree, divisions: Mapping[str, str], permutations: int) -> dict[str, Any]:
    """How well subtrees match divisions and industries, against permutations of companies."""
    companies = [name for name in tree.names[: tree.n_observed] if divisions[name] != "index"]
    rng = np.random.default_rng(5)
    shuffles = [rng.permutation(len(companies)) for _ in range(permutations)]
    labels = np.array([divisions[name] for name in companies])
    changes = parsimony(tree, companies, np.stack([labels, *(labels[s] for s in shuffles)]))
    known = {
        name: {c for c, own in zip(companies, labels, strict=True) if own == name}
        for name in np.unique(labels)
    }
    groups = {**known, **{name: set(INDUSTRIES[name]) & set(companies) for name in INDUSTRIES}}
    return {
        "changes": int(changes[0]),
        "changes_by_chance": float(changes[1:].mean()),
        "changes_p": _p_value(changes[1:] <= changes[0]),
        "subtrees": {
            str(name): _best_subtree(tree, companies, members, shuffles)
            for name, members in groups.items()
            if len(members) > 1
        },
    }


def _p_value(as_good: Any) -> float:
    return float((1 + as_good.sum()) / (1 + as_good.size))


def parsimony(tree: lt.Tree, names: list[str], labels: Any) -> Any:
    """Fewest edges along which a label must change, for each row of labels (Sankoff 1975).

    With labels for some observed nodes, all others are free. c_v(s) is the least number of changes
    below v if v has label s; a child u adds min(c_u(s), 1 + min c_u).
    """
    states, codes = np.unique(labels, return_inverse=True)
    codes = codes.reshape(labels.shape)
    cost = np.zeros((tree.n_nodes, len(labels), states.size))
    for place, name in enumerate(names):
        own = codes[:, place, None] == np.arange(states.size)
        cost[tree.index(name)] = np.where(own, 0.0, np.inf)
    for node in tree.order[::-1]:
        above = tree.parent[node]
        if above >= 0:
            least = cost[node].min(axis=1, keepdims=True)
            cost[above] += np.minimum(cost[node], least + 1.0)
    return cost[tree.roots].min(axis=2).sum(axis=0)


def _best_subtree(
    tree: lt.Tree, names: list[str], members: Collection[str], shuffles: list[Any]
) -> dict[str, Any]:
    """Return the side of an edge that shares most with a set, by F1 = 2·|A ∩ B|/(|A| + |B|)."""
    place = {name: i for i, name in enumerate(names)}
    sides = np.zeros((0, len(names)))
    for split in tree.bipartitions():
        for side in split:
            row = np.zeros((1, len(names)))
            row[0, [place[tree.names[v]] for v in side if tree.names[v] in place]] = 1.0
            sides = np.vstack([sides, row])
    wanted = np.array([float(name in members) for name in names])
    drawn = np.column_stack([wanted, *(wanted[s] for s in shuffles)])
    f1 = 2.0 * (sides @ drawn) / (sides.sum(axis=1, keepdims=True) + wanted.sum())
    best = int(f1[:, 0].argmax())
    inside = {name for name, there in zip(names, sides[best], strict=True) if there}
    return {
        "size": len(members),
        "found": sorted(inside & set(members)),
        "foreign": sorted(inside - set(members)),
        "f1": float(f1[best, 0]),
        "f1_by_chance": float(f1[:, 1:].max(axis=0).mean()),
        "p": _p_value(f1[:, 1:].max(axis=0) >= f1[best, 0]),
    }

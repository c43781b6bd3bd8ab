"""Occurrence of 100 words in 16,242 postings: nine methods, topics, and what topics tell."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import latentree as lt
from experiments.results import ALL, Unit
from experiments.samples import timed, warm_up
from experiments.stocks import fingerprint
from latentree.datasets import Dataset
from latentree.distances import as_sample
from latentree.methods import learn_model, method_named
from latentree.models._encode import encode
from latentree.structure import learn_tree

PARTS = ALL
METHODS = ("chow_liu", "lcm", "bin", "nj", "rg", "clnj", "clrg", "reg_clnj", "reg_clrg")
HIDDEN = {
    ("reg_clnj", "all"): 27,
    ("reg_clrg", "all"): 26,
    ("reg_clnj", "halves"): 34,
    ("reg_clrg", "halves"): 27,
}
"""The regularized methods may add as many hidden variables as in the paper."""
SEEDS = (0, 1, 2)
FOLDS = 5
FEW_FOLDS = 2
"""Of the cross-validation; few in the miniature."""
PREDICTORS = {
    "regCLRG, as many as in the paper": ("reg_clrg", HIDDEN["reg_clrg", "all"]),
    "regCLRG, as many as raise the BIC": ("reg_clrg", None),
    "CLRG": ("clrg", None),
}
"""Trees whose hidden variables are to tell the groups: method and most hidden variables."""


@cache
def load() -> Dataset:
    """Read the postings, or fetch them; a DataError says what is missing."""
    return lt.datasets.load_newsgroups()


def units(runs: int = 200, small: bool = False) -> Iterator[Unit]:
    """List one unit for every method, choice of rows and seed; then one for every fold."""
    dataset = load()
    data = fingerprint(dataset)
    for seed in SEEDS[:1] if small else SEEDS:
        for rows in ("all", "halves") if "train" in dataset.rows else ("all",):
            for method in METHODS:
                parameters = {"task": "learn", "method": method, "rows": rows, "seed": seed}
                yield Unit("newsgroups", {**parameters, "data": data})
    few = {"folds": FEW_FOLDS} if small else {}
    for fold in range(few.get("folds", FOLDS)):
        for tree in PREDICTORS:
            parameters = {"task": "predict", "tree": tree, "fold": fold, "data": data}
            yield Unit("newsgroups", parameters | few)


def measure(task: str, data: str, **parameters: Any) -> dict[str, Any]:
    """Do one of the tasks."""
    warm_up()
    return {"learn": _learn, "predict": _predict}[task](**parameters)


# Likelihoods ------------------------------------------------------------------------------------


def _learn(method: str, rows: str, seed: int) -> dict[str, Any]:
    dataset = load()
    train = np.ones(len(dataset.data), bool) if rows == "all" else dataset.rows["train"]
    table = lt.as_table(dataset.data[train], "discrete", names=dataset.names)
    _warm(method)
    model, seconds = _timed_fit(table, method, seed, HIDDEN.get((method, rows)))
    out = {
        "hidden": model.tree.n_hidden,
        "parameters": model.n_parameters,
        "states": int(model.n_states.max()),
        "seconds": seconds,
        **_scores(model, table, ""),
    }
    if rows == "halves":
        out |= _scores(model, lt.as_table(dataset.data[~train], schema=model.schema), "_test")
    if method == "reg_clrg" and rows == "all" and seed == SEEDS[0]:
        out |= {"model": json.loads(encode(model)), "topics": topics(model)}
    return out


def _timed_fit(table: lt.Table, method: str, seed: int, n_hidden: int | None) -> Any:
    """Return a fitted model and its times: of the structure, of EM, or of both in one."""
    if not method_named(method).from_distances:
        options = {} if n_hidden is None else {"n_hidden": n_hidden}
        fitted, total = timed(lambda: learn_model(table, method, random_state=seed, **options))
        return fitted.model, {"total": total}
    sample = as_sample(table)
    tree, structure = timed(lambda: learn_tree(sample, method))
    fitted, em = timed(lambda: lt.fit_parameters(tree, sample, random_state=seed))
    return fitted.model, {"total": structure + em, "structure": structure, "em": em}


@cache
def _warm(method: str) -> None:
    """Compile what a method needs, on some rows of frequent words."""
    data = load().data
    few = data[:: 1 + len(data) // 800, np.argsort(-data.sum(axis=0))[:12]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learn_model(lt.as_table(few, "discrete"), method, random_state=0)


def _scores(model: lt.DiscreteTreeModel, table: lt.Table, suffix: str) -> dict[str, float]:
    value = model.total_log_likelihood(table)
    bic = value - 0.5 * model.n_parameters * np.log(table.n_rows)
    return {f"ll{suffix}": float(value), f"bic{suffix}": float(bic)}


# Topics -----------------------------------------------------------------------------------------


def topics(model: lt.DiscreteTreeModel, most: int = 8) -> list[dict[str, Any]]:
    """For each hidden variable the words that its rarer state raises most.

    φ is the correlation of two binary variables; only words whose nearest hidden variable it is
    are listed first, then others by φ.
    """
    tree = model.tree
    out = []
    for hidden in tree.hidden:
        on = int(model.marginal(hidden).argmin())
        phi = np.array([_phi(model.joint(hidden, word), on) for word in range(tree.n_observed)])
        chosen = np.argsort(-phi, kind="stable")[:most]
        out.append(
            {
                "name": tree.names[hidden],
                "share": float(model.marginal(hidden)[on]),
                "words": [[tree.names[word], float(phi[word])] for word in chosen],
            }
        )
    return out


def _phi(joint: Any, on: int) -> float:
    """Correlation of "the hidden variable is on" with "the word occurs"."""
    a, b = joint.sum(axis=1)[on], joint.sum(axis=0)[1]
    return float((joint[on, 1] - a * b) / np.sqrt(max(a * (1 - a) * b * (1 - b), 1e-300)))


# Prediction -------------------------------------------------------------------------------------


def _predict(tree: str, fold: int, folds: int = FOLDS) -> dict[str, Any]:
    """Accuracy of the four groups, predicted from hidden variables and from others' components.

    Features are learned without the groups, from the rows that the classifier is trained on.
    """
    dataset = load()
    x, y = dataset.data.astype(float), _broad(dataset.rows["group"])
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    train, test = list(split.split(x, y))[fold]
    method, n_hidden = PREDICTORS[tree]
    learned = lt.LatentTree(method, n_hidden=n_hidden, random_state=0).fit(dataset.data[train])
    k = learned.n_hidden_
    lda = LatentDirichletAllocation(k, random_state=0).fit(x[train])
    nmf = NMF(k, init="nndsvda", max_iter=1_000, random_state=0).fit(x[train])
    features = {
        "hidden": lambda rows: _log_odds(learned.transform(dataset.data[rows])[:, 1::2]),
        "probabilities": lambda rows: learned.transform(dataset.data[rows])[:, 1::2],
        "LDA": lambda rows: lda.transform(x[rows]),
        "NMF": lambda rows: nmf.transform(x[rows]),
        "words": lambda rows: x[rows],
    }
    accuracy = {}
    for name, transform in features.items():
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
        classifier.fit(transform(train), y[train])
        accuracy[name] = float(classifier.score(transform(test), y[test]))
    return {"components": int(k), "accuracy": accuracy}


def _log_odds(p: Any) -> Any:
    return np.log((p + 1e-6) / (1.0 - p + 1e-6))


def _broad(groups: Any) -> Any:
    """First part of a newsgroup's name: comp, rec, sci, talk."""
    return np.array([str(group).partition(".")[0] for group in groups])

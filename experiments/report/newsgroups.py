"""The section on the newsgroups."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np

from experiments.newsgroups import METHODS, PREDICTORS, load
from experiments.report import published
from experiments.report.writing import (
    AUTHORS,
    OURS,
    PAPER,
    Figures,
    bold_best,
    listed,
    number,
    seconds,
    table,
)
from latentree import plot_tree
from latentree.models._decode import decode

Learned = dict[str, list[dict[str, Any]]]


def section(records: list[dict[str, Any]], figures: Figures) -> str:
    """Write it."""
    learned: dict[str, Learned] = {"all": defaultdict(list), "halves": defaultdict(list)}
    predicted: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        p = record["parameters"]
        if p["task"] == "learn":
            learned[p["rows"]][p["method"]].append(record["result"])
        else:
            predicted[p["tree"]].append(record["result"])
    parts = [
        INTRODUCTION.format(
            rows=number(len(load().data)), seeds=max(map(len, learned["all"].values()))
        ),
        *_all_rows(learned["all"], figures),
        *(_halves(learned["halves"], figures) if learned["halves"] else [NO_HALVES]),
    ]
    drawn = next((r for r in learned["all"]["reg_clrg"] if "model" in r), None)
    if drawn:
        parts += [_tree(drawn, figures), TREE, _topics(drawn["topics"])]
    if predicted:
        parts.append(_prediction(predicted))
    return "\n\n".join(parts)


INTRODUCTION = """\
## Newsgroups

Which of 100 words occur in each of {rows} postings. The structure of NJ, RG, CLNJ and CLRG comes
from distances, parameters from EM; the regularized methods may add as many hidden variables as
the paper's did. Figures are those of the first of {seeds} seeds, and the spread is the BIC's over
all of them; seconds are processor time of one thread."""

NO_HALVES = """\
The paper's random halves are not public, and are in no folder that `LATENTREE_DATA` names: the
table and the chart of training and test half are left out."""

TREE = """\
*The tree of regCLRG; words are colored by the group in which most of their postings are.*"""


# Likelihoods ------------------------------------------------------------------------------------


def _all_rows(learned: Learned, figures: Figures) -> list[str]:
    authors = published.authors_best("original_newsgroups.csv", "bic", rows="all")
    order = [method for method in METHODS if method in learned]
    first = {method: learned[method][0] for method in order}
    values = [first[method]["bic"] for method in order]
    bics = bold_best([number(value) for value in values], values)
    rows = []
    for method, bic in zip(order, bics, strict=True):
        ours, paper = first[method], published.NEWSGROUPS[method]
        spread = [result["bic"] for result in learned[method]]
        rows.append([
            published.NAMES[method], number(ours["ll"]), bic,
            f"{number(min(spread))} … {number(max(spread))}", str(ours["hidden"]),
            number(ours["parameters"]), seconds(ours["seconds"]["total"]), number(paper[0]),
            number(paper[1]), str(paper[2]), seconds(paper[4]), _theirs(authors, method),
        ])  # fmt: skip
    header = ["all rows", "LL", "BIC", "spread", "hidden", "parameters", "seconds", "the paper: LL",
              "BIC", "hidden", "seconds", "authors' program: BIC"]  # fmt: skip
    picture = _bars(
        {method: [first[method]["bic"]] for method in order},
        {method: [published.NEWSGROUPS[method][1]] for method in order},
        {m: [float(row["bic"])] for m, row in authors.items()},
        ["BIC score"], figures, "newsgroups-bic",
    )  # fmt: skip
    return [
        table(header, rows),
        _behind(first),
        picture,
        "*BIC scores, higher is better; the axis does not begin at 0.*",
    ]


def _theirs(authors: dict[str, Any], method: str, column: str = "bic") -> str:
    return number(float(authors[method][column])) if method in authors else "–"


def _behind(first: dict[str, dict[str, Any]]) -> str:
    """Say where a figure of ours is below the paper's, and why."""
    bic = [m for m, r in first.items() if r["bic"] < published.NEWSGROUPS[m][1] - 1]
    ll = [m for m, r in first.items() if r["ll"] < published.NEWSGROUPS[m][0] - 1 and m not in bic]
    text = [
        f"Methods with a lower BIC than the paper's: {listed([published.NAMES[m] for m in bic])}."
    ]
    if ll:
        text.append(
            "With a lower likelihood but a higher BIC, since there are fewer parameters: "
            f"{listed([published.NAMES[m] for m in ll])}."
        )
    if "lcm" in first:
        text.append(
            f"LCM has {first['lcm']['states']} classes here (the paper: 16): the number with the "
            "best BIC."
        )
    text.append(STRUCTURES)
    return " ".join(text)


STRUCTURES = """\
NJ and CLNJ have fewer hidden nodes than in the paper because edges that the data cannot tell from
zero are contracted. The regularized methods score a proposal by fitting both versions of the part
of the tree that it changes, where the paper uses sampled hidden values, and gain most."""


def _halves(learned: Learned, figures: Figures) -> list[str]:
    authors = published.authors_best("original_newsgroups.csv", "ll_test", rows="train_test")
    order = [method for method in METHODS if method in learned]
    first = {method: learned[method][0] for method in order}
    values = [first[method]["ll_test"] for method in order]
    tests = bold_best([number(value) for value in values], values)
    rows = []
    for method, test in zip(order, tests, strict=True):
        ours, paper = first[method], published.HALVES[method]
        rows.append([
            published.NAMES[method], number(ours["ll"]), number(ours["bic"]), test,
            number(ours["bic_test"]), str(ours["hidden"]), number(ours["parameters"]),
            seconds(ours["seconds"]["total"]), *(number(value) for value in paper[:4]),
            str(paper[4]), _theirs(authors, method, "ll_test"),
        ])  # fmt: skip
    header = ["halves", "train LL", "BIC", "test LL", "BIC", "hidden", "parameters", "seconds",
              "the paper: train LL", "BIC", "test LL", "BIC", "hidden",
              "authors' program: test LL"]  # fmt: skip
    picture = _bars(
        {m: [first[m]["ll"], first[m]["ll_test"]] for m in order},
        {m: [published.HALVES[m][0], published.HALVES[m][2]] for m in order},
        {m: [float(row["ll"]), float(row["ll_test"])] for m, row in authors.items()},
        ["log-likelihood of the training half", "log-likelihood of the test half"], figures,
        "newsgroups-halves",
    )  # fmt: skip
    behind = [m for m in order if first[m]["ll_test"] < published.HALVES[m][2] - 1]
    drop = {m: first[m]["ll"] - first[m]["ll_test"] for m in order}
    text = (
        f"Methods with a lower test likelihood than the paper's: "
        f"{listed([published.NAMES[m] for m in behind])}. From the training to the test half the "
        f"likelihood of LCM falls by {number(drop['lcm'])}, that of NJ, RG, CLNJ and CLRG "
        f"by {number(min(drop[m] for m in ('nj', 'rg', 'clnj', 'clrg')))} to "
        f"{number(max(drop[m] for m in ('nj', 'rg', 'clnj', 'clrg')))}: the paper's sign of "
        "overfitting is there, "
        + (
            "but LCM still predicts the test half best, unlike in the paper."
            if max(order, key=lambda m: first[m]["ll_test"]) == "lcm"
            else "and LCM is not the best on the test half."
        )
    )
    return [
        table(header, rows),
        text + " " + _latent_class(learned["lcm"]),
        picture,
        "*Log-likelihood of both halves, higher is better; axes do not begin at 0.*",
    ]


def _latent_class(runs: list[dict[str, Any]]) -> str:
    """Why LCM's training likelihood differs from the paper's, and its test likelihood more."""
    paper = published.HALVES["lcm"]
    values = [run["ll"] for run in runs]
    penalty = 0.5 * paper[5] * np.log(len(load().data) / 2)
    return LATENT_CLASS.format(
        low=number(min(values)), high=number(max(values)), paper=number(paper[0]),
        test=number(runs[0]["ll_test"] - paper[2]), published=number(paper[2] - paper[3]),
        expected=number(penalty), parameters=number(paper[5]),
    )  # fmt: skip


LATENT_CLASS = """\
LCM on the training half is at one of many local maxima: over our seeds from {low} to {high},
where the paper has {paper}. On the test half it is ahead by {test}. The published test figures of
LCM do not agree with each other: its likelihood and BIC are {published} apart, where {parameters}
parameters make {expected}."""


def _bars(
    ours: dict[str, list[float]],
    paper: dict[str, list[float]],
    authors: dict[str, list[float]],
    titles: list[str],
    figures: Figures,
    name: str,
) -> str:
    order = list(ours)
    figure, axes = figures.new(
        1, len(titles), figsize=(7.5 if len(titles) == 1 else 10, 3.8), sharey=True, squeeze=False
    )
    for column, (ax, title) in enumerate(zip(axes[0], titles, strict=True)):
        values = [ours[method][column] for method in order]
        (mark,) = ax.plot(
            [paper[method][column] for method in order], range(len(order)), linestyle="none",
            marker="o", color=PAPER, markeredgecolor="white", label="the paper",
        )  # fmt: skip
        handles = [mark]
        known = [(authors[m][column], i) for i, m in enumerate(order) if m in authors]
        if known:
            handles += ax.plot(
                *zip(*known, strict=True), linestyle="none", marker="D", color=AUTHORS,
                markersize=5, markeredgecolor="#7A6420", label="the authors' program",
            )  # fmt: skip
        every = [*values, *(paper[m][column] for m in order), *(value for value, _ in known)]
        margin = 0.08 * (max(every) - min(every))
        start = min(every) - margin  # scores are far from 0: what counts are differences
        lengths = [value - start for value in values]
        bars = ax.barh(range(len(order)), lengths, 0.6, start, color=OURS, label="latentree")
        handles.insert(0, bars)
        ax.set_xlim(start, max(every) + margin)
        ax.set_yticks(range(len(order)), [published.NAMES[method] for method in order])
        ax.grid(axis="y", visible=False)
        ax.set_xlabel(title)
        ax.xaxis.set_major_formatter(lambda value, _: number(value))
        ax.tick_params("x", rotation=0)
        ax.locator_params(axis="x", nbins=5)
    axes[0][0].invert_yaxis()
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figures.save(figure, name, f"{listed(titles)} of all methods on the newsgroups")


# Topics and what they tell ----------------------------------------------------------------------


def _tree(result: dict[str, Any], figures: Figures) -> str:
    model = decode(json.dumps(result["model"]).encode()).model
    figure, ax = figures.new(figsize=(10, 8.5))
    plot_tree(model, ax, groups=load().groups, hidden_labels=True)
    return figures.save(figure, "newsgroups-tree", "Tree of 100 words, colored by group")


def _topics(topics: list[dict[str, Any]]) -> str:
    rows = [
        [
            topic["name"],
            f"{number(100 * topic['share'])} %",
            ", ".join(w for w, _ in topic["words"]),
        ]
        for topic in topics
    ]
    text = (
        "**Topics.** For each hidden variable the share of postings in its rarer state, and the "
        "words that correlate most with that state.\n\n"
    )
    return text + table(["", "on", "words"], rows, left=3)


def _prediction(predicted: dict[str, list[dict[str, Any]]]) -> str:
    rows = []
    words: list[float] = []
    for tree in PREDICTORS:
        folds = predicted.get(tree, [])
        if not folds:
            continue
        cells = []
        for name in ("hidden", "probabilities", "LDA", "NMF"):
            values = [fold["accuracy"][name] for fold in folds]
            spread = float(np.std(values, ddof=1 if len(values) > 1 else 0) / np.sqrt(len(values)))
            cells.append(f"{number(100 * float(np.mean(values)), 1)} ± {number(100 * spread, 1)}")
        words = [fold["accuracy"]["words"] for fold in folds]
        counts = sorted({fold["components"] for fold in folds})
        span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        rows.append([tree, span, *cells])
    header = ["tree", "components", "log-odds, %", "probabilities, %", "LDA, %", "NMF, %"]
    text = PREDICTION.format(words=number(100 * float(np.mean(words)), 1))
    return text + "\n\n" + table(header, rows)


PREDICTION = """\
**Do hidden variables tell the groups?** The four groups (comp, rec, sci, talk) are predicted from
the hidden variables (`transform`, as log-odds and as the probabilities that it gives) by logistic
regression, in five-fold cross-validation; for comparison from as many components of latent
Dirichlet allocation and of non-negative matrix factorization (scikit-learn). All are learned
without the groups and from the training folds only. From the 100 words themselves the same
classifier reaches {words} %. Accuracy, mean ± standard error over folds:"""

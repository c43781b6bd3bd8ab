"""Gaussian variables behind ordered answers and ranks: what must hold.

    python benchmarks/ordered.py           all parts
    python benchmarks/ordered.py grid      the grid against numerical integration
    python benchmarks/ordered.py trees     simulated thresholds: Robinson-Foulds distances, bias
    python benchmarks/ordered.py held-out  bfi, epi, ability: log-likelihood of held-out rows
    python benchmarks/ordered.py default   what the default makes of 100 to 1,000 rows of answers
    python benchmarks/ordered.py groups    bfi: five groups, and seconds of a fit
    python benchmarks/ordered.py outliers  1 % of cells at ± 20 standard deviations
    python benchmarks/ordered.py ranks     stocks, breast cancer: ranks against normal
    python benchmarks/ordered.py pairs     seconds for 500 ordered columns × 5,000 rows

``--tables`` and ``--rows`` limit the part default.

30 % of the rows are held out, gaps are kept. Likelihoods are those of cells: a Gaussian tree and
factor analysis on the raw numbers give the probability of all numbers that are rounded to the same
answer (of factor analysis by integration over the factors, 20,000 draws from the posterior of each
row). Simulated trees are the paper's, with correlations uniform on [0.2, 0.8] and 10,000 rows;
thresholds are those of equal shares, shifted by up to half a standard deviation.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

import latentree as lt
from common import best_bold, data_folder, learned, show
from latentree.inference import Thresholds
from latentree.models import CopulaTreeModel

LEARNERS = ("rg", "nj", "clrg", "clnj")


def questionnaire(name: str) -> Any:
    """The items of a questionnaire, all ordered."""
    import pandas as pd

    folder = data_folder()
    assert folder is not None, "set LATENTREE_DATA"
    frame = pd.read_csv(folder / "tables" / f"{name}.csv.gz")
    if name == "bfi":
        frame = frame[[c for c in frame.columns if c[0] in "ACENO" and c[1:].isdigit()]]
    if name.startswith("big5"):
        frame = frame[[f"V{j}" for j in range(1, 31)]]
    return frame


def split(rows: Any, seed: int, share: float = 0.3) -> tuple[Any, Any]:
    """Rows to learn from, and rows held out."""
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = round(share * len(rows))
    return rows.iloc[np.sort(order[cut:])], rows.iloc[np.sort(order[:cut])]


# The grid ---------------------------------------------------------------------------------------


def grid(instances: int, seed: int) -> None:
    """Compare the grid with 1,601 points from −8 to 8, on double stars of six columns."""
    line = np.linspace(-8.0, 8.0, 1601)
    weight = np.exp(-0.5 * line**2)
    weight /= weight.sum()
    lines = []
    for highest in (0.5, 0.8, 0.9, 0.97):
        worst = 0.0
        for instance in range(instances):
            rng = np.random.default_rng([seed, instance])
            tree = lt.simulate.double_star(6)
            margins = [Thresholds(_cuts(int(rng.integers(3, 8)), rng)) for _ in range(6)]
            rho = rng.uniform(highest - 0.3, highest, tree.n_nodes)
            rho[rng.integers(tree.n_nodes)] = highest
            model = CopulaTreeModel(tree, rho, margins)
            table = lt.as_table(model.sample(40, rng), schema=model.schema)
            off = model.log_likelihood(table) - _integrated(model, table.values, line, weight)
            worst = max(worst, float(np.abs(off).max()))
        lines.append([f"{highest:.2f}", f"{worst:.1e}"])
    show(["highest correlation", "largest error a row"], lines)


def _cuts(levels: int, rng: np.random.Generator) -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(np.arange(1, levels) / levels) + rng.uniform(-0.5, 0.5)


def _integrated(model: Any, cells: np.ndarray, line: np.ndarray, weight: np.ndarray) -> np.ndarray:
    tree = model.tree
    top = int(tree.roots[0])
    below = next(int(h) for h in tree.hidden if h != top)
    rho = model.correlations
    step = np.exp(-0.5 * (line - rho[below] * line[:, None]) ** 2 / (1.0 - rho[below] ** 2))
    step /= step.sum(axis=1, keepdims=True)
    at = {h: np.ones((len(cells), line.size)) for h in (top, below)}
    for column, margin in enumerate(model.margins):
        table = margin.table(line, float(rho[column]))
        at[int(tree.parent[column])] *= table[:, cells[:, column].astype(int)].T
    return np.log((at[top] * (at[below] @ step.T)) @ weight)


# Simulated trees --------------------------------------------------------------------------------


def answers(X: np.ndarray, levels: int, rng: np.random.Generator) -> Any:
    """Cut columns into levels, as ordered columns of a copula."""
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    columns = [np.searchsorted(_cuts(levels, rng), column) for column in z.T]
    names = [f"x{j}" for j in range(X.shape[1])]
    return lt.as_table(
        np.column_stack(columns), "copula", names=names, kinds=dict.fromkeys(names, "ordered")
    )


def mean_of(values: np.ndarray) -> str:
    """The mean over instances."""
    return f"{values.mean():.2f}"


def above(over: np.ndarray) -> str:
    """By how much a limit is exceeded on average, and the standard error of that."""
    return f"{over.mean():+.2f} ± {over.std() / np.sqrt(over.size):.2f}"


def trees(instances: int, seed: int) -> None:
    """Robinson-Foulds distances from thresholds, beside those of the Gaussians behind them."""
    shapes = {
        "double star": lt.simulate.double_star(80),
        "5-complete": lt.simulate.complete_tree(5, 3),
        "HMM": lt.simulate.hidden_markov(80),
    }
    lines = []
    for shape, tree in shapes.items():
        found: dict[str, list[list[float]]] = {"Gaussian": [], "5 levels": [], "binary": []}
        for instance in range(instances):
            rng = np.random.default_rng([seed, instance])
            X = lt.simulate.random_gaussian_model(tree, rng, (0.2, 0.8)).sample(10_000, rng)
            tables = {"Gaussian": X, "5 levels": answers(X, 5, rng), "binary": answers(X, 2, rng)}
            for kind, table in tables.items():
                found[kind].append([
                    lt.metrics.robinson_foulds(learned(table, name).tree_, tree)
                    for name in LEARNERS
                ])  # fmt: skip
        for place, name in enumerate(LEARNERS):
            normal, five, two = (np.array(each)[:, place] for each in found.values())
            over = [above(five - 1.3 * normal - 1.0), above(two - 2.0 * normal - 2.0)]
            lines.append([shape, name, *map(mean_of, (normal, five, two)), *over])
    head = ["tree", "method", "Gaussian", "5 levels", "binary", "over 1.3×+1", "over 2×+2"]
    show(head, lines)


def bias(instances: int, seed: int) -> None:
    """Errors of fitted correlations on the true trees, beside their standard errors.

    These are of the means of instances: the errors of edges that were fitted to the same rows go
    together (a factor that varies more in the sample than in the population raises all of them).
    """
    lines = []
    shapes = {
        "double star": lt.simulate.double_star(20),
        "3-complete": lt.simulate.complete_tree(3, 3),
        "HMM": lt.simulate.hidden_markov(16),
    }
    for shape, tree in shapes.items():
        for levels in (5, 2):
            errors = []
            for instance in range(instances):
                rng = np.random.default_rng([seed, instance, levels])
                truth = lt.simulate.random_gaussian_model(tree, rng, (0.2, 0.8))
                model, _ = lt.fit_parameters(tree, answers(truth.sample(10_000, rng), levels, rng))
                errors.append(found(model, tree) - np.abs(truth.correlations[tree.parent >= 0]))
            every, means = np.concatenate(errors), np.array([each.mean() for each in errors])
            sure = means.std(ddof=1) / np.sqrt(means.size)
            within = "yes" if abs(means.mean()) <= 2.0 * sure else "NO"
            lines.append([shape, str(levels), str(every.size), f"{every.mean():+.4f}",
                          f"{sure:.4f}", f"{every.std():.3f}", within])  # fmt: skip
    head = ["tree", "levels", "edges", "mean error", "its standard error", "spread", "unbiased"]
    show(head, lines)


def found(model: Any, tree: lt.Tree) -> np.ndarray:
    """The model's absolute correlation of the two variables of each edge of the true tree.

    A hidden node takes the place of a column inside the tree, and the column hangs from it. So
    the column's edges are paths of the model, and correlations multiply along them.
    """
    ends = np.column_stack((np.arange(tree.n_nodes), tree.parent))[tree.parent >= 0]
    fitted = model.distance_tree()
    return np.exp([-fitted.path_lengths([u], [v])[0, 0] for u, v in ends])


# Held-out rows ----------------------------------------------------------------------------------


def held_out(seed: int, names: tuple[str, ...] = ("bfi", "epi", "ability")) -> None:
    """Mean log-likelihood of held-out rows, by what the hidden variables are."""
    for name in names:
        train, test = split(questionnaire(name), seed)
        lines = []
        for what, method in MODELS:
            clock = time.perf_counter()
            score, n_hidden = scored(what, method, train, test)
            seconds = time.perf_counter() - clock
            lines.append([what, method, f"{score:.3f}", str(n_hidden), f"{seconds:.0f}"])
            print("  ", name, *lines[-1], flush=True)
        show([name, "method", "held-out a row", "hidden", "seconds"], lines)


def by_default(seed: int, names: list[str], sizes: list[int]) -> None:
    """Held-out log-likelihood per row of states, Gaussian variables, and what the default takes."""
    lines = []
    for name in names:
        answers = questionnaire(name)
        kinds = dict.fromkeys(answers.columns, "ordered")
        for n in sizes:
            if n > 0.8 * len(answers):
                continue
            order = np.random.default_rng([seed, n]).permutation(len(answers))
            train, test = answers.iloc[order[:n]], answers.iloc[order[n : n + 1_000]]
            train = train.loc[:, train.nunique() > 1]
            fits = [
                learned(train, "auto", hidden=hidden, unseen="missing",
                        kinds={c: kinds[c] for c in train})
                for hidden in ("states", "gaussian", None)
            ]  # fmt: skip
            scores = best_bold([f"{fit.score(test[train.columns]):.2f}" for fit in fits])
            lines.append([name, f"{n}", *scores, type(fits[2].model_).__name__])
            print("  ", *lines[-1], flush=True)
    header = ["table", "rows", "states", "Gaussian variables", "default", "its model"]
    show(header, lines, "answers-draws")


MODELS = (
    *(("Gaussians", method) for method in ("clrg", "clnj", "nj", "lcm", "refined")),
    ("two trees of Gaussians", "clrg"), ("two trees of Gaussians", "clnj"),
    ("states", "clrg"), ("states", "clnj"), ("states", "refined"), ("6 states", "clrg"),
    ("discrete", "clrg"), ("discrete", "refined"),
    ("raw Gaussian, cells", "clrg"), ("raw Gaussian, cells", "clnj"),
    ("factor analysis, cells", "5"),
)  # fmt: skip


def scored(what: str, method: str, train: Any, test: Any) -> tuple[float, int]:
    """Held-out log-likelihood a row of a model, and its number of hidden variables."""
    if what.startswith("factor"):
        return factor_analysis(train, test, int(method)), int(method)
    if what.startswith("raw"):
        model = raw_gaussian(train, method)
        return float(model.log_likelihood(as_cells(test)).mean()), model.tree.n_hidden
    kinds = dict.fromkeys(train.columns, "ordered")
    options = {
        "Gaussians": {"hidden": "gaussian", "kinds": kinds},
        "two trees of Gaussians": {"hidden": "gaussian", "kinds": kinds, "n_trees": 2},
        "states": {"hidden": "states", "kinds": kinds},
        "6 states": {"hidden": "states", "kinds": kinds, "n_states": 6},
        "discrete": {"family": "discrete"},
    }
    fitted = lt.LatentTree(method, random_state=0, **options[what]).fit(train)
    return fitted.score(test), fitted.n_hidden_


def as_cells(frame: Any) -> Any:
    """The answers as numbers, of which each stands for all that are rounded to it."""
    return lt.as_table(frame, "copula", kinds=dict.fromkeys(frame.columns, "real"))


def raw_gaussian(train: Any, method: str) -> Any:
    """A Gaussian tree on the raw numbers, fitted to cells."""
    from latentree.distances import as_sample
    from latentree.structure import learn_tree

    tree = learn_tree(as_sample(lt.as_table(train, "gaussian")), method)
    return lt.fit_parameters(tree, as_cells(train), marginals="cells").model


def factor_analysis(train: Any, test: Any, n_factors: int) -> float:
    """Mean log-probability of the cells of rows under maximum likelihood factor analysis."""
    from sklearn.decomposition import FactorAnalysis

    x = train.to_numpy(float)
    filled = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    fa = FactorAnalysis(n_factors, rotation=None).fit(filled)
    loadings, noise, mean = fa.components_.T, fa.noise_variance_, fa.mean_
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((20_000, n_factors))
    scores = []
    for row in test.to_numpy(float):
        there = ~np.isnan(row)
        a, s, r = loadings[there], np.sqrt(noise[there]), row[there] - mean[there]
        precision = np.eye(n_factors) + (a / s[:, None] ** 2).T @ a
        center = np.linalg.solve(precision, a.T @ (r / s**2))
        root = np.linalg.cholesky(np.linalg.inv(precision))
        z = center + draws @ root.T
        # p(z)/q(z): what the draws from the posterior of the density are weighted by.
        log_p = -0.5 * (z**2).sum(axis=1)
        log_q = -0.5 * (draws**2).sum(axis=1) - np.log(np.diag(root)).sum()
        u = (r - z @ a.T) / s
        half = 0.5 / s
        cells = np.maximum(ndtr(u + half) - ndtr(u - half), 1e-300)
        scores.append(logsumexp(np.log(cells).sum(axis=1) + log_p - log_q) - np.log(len(draws)))
    return float(np.mean(scores))


# bfi --------------------------------------------------------------------------------------------


def groups() -> None:
    """Five groups of bfi, and how long the defaults take."""
    from sklearn.metrics import adjusted_rand_score

    frame = questionnaire("bfi")
    lines = []
    for method in ("clrg", "clnj", "nj", "rg", "snj", "consensus"):
        clock, cpu = time.perf_counter(), time.process_time()
        fit = lt.LatentTree(method, hidden="gaussian", random_state=0).fit(frame)
        seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
        number = {item: g for g, group in enumerate(fit.tree_.cut(5).groups) for item in group}
        rand = adjusted_rand_score([c[0] for c in frame], [number[c] for c in frame])
        lines.append([method, f"{rand:.2f}", str(fit.n_hidden_), f"{seconds:.1f}", f"{cpu:.1f}"])
    show(["method", "adjusted Rand", "hidden", "seconds", "of the processor"], lines)


# Tails ------------------------------------------------------------------------------------------


def outliers(instances: int, seed: int) -> None:
    """Robinson-Foulds distances with 1 % of cells at ± 20 standard deviations."""
    shapes = {
        "double star": lt.simulate.double_star(80),
        "5-complete": lt.simulate.complete_tree(5, 3),
        "HMM": lt.simulate.hidden_markov(80),
    }
    lines = []
    for shape, tree in shapes.items():
        found: dict[str, list[list[float]]] = {}
        for instance in range(instances):
            rng = np.random.default_rng([seed, instance])
            X = lt.simulate.random_gaussian_model(tree, rng, (0.2, 0.8)).sample(10_000, rng)
            dirty = np.where(rng.random(X.shape) < 0.01,
                             20 * X.std(axis=0) * rng.choice([-1, 1], X.shape), X)  # fmt: skip
            for kind, values, hidden in (
                ("clean, normal", X, "normal"), ("clean, ranks", X, "ranks"),
                ("outliers, normal", dirty, "normal"), ("outliers, ranks", dirty, "ranks"),
            ):  # fmt: skip
                found.setdefault(kind, []).append([
                    lt.metrics.robinson_foulds(learned(values, name, hidden=hidden).tree_, tree)
                    for name in LEARNERS
                ])  # fmt: skip
        for place, name in enumerate(LEARNERS):
            each = [np.array(kind)[:, place] for kind in found.values()]
            lines.append([shape, name, *map(mean_of, each), above(each[3] - 1.1 * each[1])])
    show(["tree", "method", *found, "over 1.1×"], lines)


def ranks(seed: int) -> None:
    """Held-out log-likelihood a row of real tables, normal scales against ranks."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    folder = data_folder()
    assert folder is not None, "set LATENTREE_DATA"
    stocks = pd.read_csv(folder / "sp100_monthly_returns.csv").select_dtypes("number")
    tables = {"stocks": stocks, "breast cancer": load_breast_cancer(as_frame=True).data}
    lines = []
    for name, frame in tables.items():
        for method in ("clrg", "nj", "independent"):
            gains = []
            for number in range(5):
                train, test = split(frame, seed + number)
                fits = [lt.LatentTree(method, hidden=each, random_state=0).fit(train)
                        for each in ("normal", "ranks")]  # fmt: skip
                gains.append([fit.score(test) for fit in fits])
            normal, ranked = np.mean(gains, axis=0)
            spread = np.std([b - a for a, b in gains]) / np.sqrt(len(gains))
            lines.append([name, method, f"{normal:.2f}", f"{ranked:.2f}",
                          f"{ranked - normal:+.2f} ± {spread:.2f}"])  # fmt: skip
    show(["table", "method", "normal", "ranks", "gain"], lines)


def pairs(seed: int) -> None:
    """Seconds for the polychoric correlations of 500 columns × 5,000 rows."""
    rng = np.random.default_rng(seed)
    tree = lt.simulate.random_latent_tree(500, seed)
    X = lt.simulate.random_gaussian_model(tree, rng).sample(5_000, rng)
    table = answers(X, 5, rng)
    lines = []
    for again in ("first", "again"):
        clock, cpu = time.perf_counter(), time.process_time()
        lt.information_distances(table)
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        lines.append([again, f"{clock:.1f}", f"{cpu:.1f}"])
    show(["run", "seconds", "of the processor"], lines)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tables", nargs="+", default=["bfi", "GERAS.items", "big5.100.adjectives"]
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1_000])
    given = parser.parse_args()
    n, seed = given.instances, given.seed
    parts = {
        "grid": lambda: grid(n, seed), "trees": lambda: trees(n, seed),
        "bias": lambda: bias(n, seed), "held-out": lambda: held_out(seed),
        "default": lambda: by_default(seed, given.tables, given.rows), "groups": groups,
        "outliers": lambda: outliers(n, seed), "ranks": lambda: ranks(seed),
        "pairs": lambda: pairs(seed),
    }  # fmt: skip
    for part in given.parts or parts:
        print(f"\n{part}")
        parts[part]()


if __name__ == "__main__":
    main()

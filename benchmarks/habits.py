"""The thin estimators beside what people use: gaps, classes, numbers, covariance matrices.

    LATENTREE_DATA=… python benchmarks/habits.py [impute] [classify] [regress] [covariance]

Ten tables a part, with five folds; of longer tables 1,000 random rows (to classify 400, and three
folds), of returns the last 1,000 in their order, and folds in the order of time. Categories are
indicators for the estimators that need numbers, which are standardized, and gaps get means.
Seconds are of the processor, for one fit.

None of the tables had a part in choices. Those were made on breast_cancer, wine, iris, the bundled
stocks, bfi, big5.100.adjectives, Chile, WVS, CES11, SLID and Wages.

Imputation: a tenth of the cells of real tables is hidden, and all columns are said to be real; root
mean squared error in standard deviations of the columns. Covariance: log-likelihood per held-out
row of standardized columns, and the risk of the portfolio of least variance on held-out returns, in
percent of the standard deviation of all returns of the table.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn import covariance, datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import latentree as lt
from common import best_bold, data_folder, show, stocks

MOST_ROWS = 1_000
CLASSES = {
    "BEPS": "vote", "College": "Private", "Cars93": "Type", "Hitters": "Division", "HI": "whi",
    "Males": "union", "OFP": "privins", "crabs": "sp", "fgl": "type", "digits": "target",
}  # fmt: skip
NUMBERS = {
    "diabetes": "target", "College": "Grad.Rate", "Cars93": "Price", "Hitters": "Salary",
    "HI": "whrswk", "Males": "wage", "OFP": "ofp", "fgl": "RI", "BEPS": "age",
    "decathlon": "Points",
}  # fmt: skip
RETURNS = ("stocks", "SWX.RET", "HedgeFund", "factors")
REALS = ("diabetes", "crabs", "fgl", "decathlon", "College", "Hitters", *RETURNS)
LEFT_OUT = ("Unnamed: 0", "id", "nr", "Model", "Manufacturer", "Rank", "index", "wght", "Date")


def returns(name: str) -> pd.DataFrame:
    """Returns in the order of time."""
    if name == "stocks":
        return pd.DataFrame(stocks()).add_prefix("s")
    if name == "factors":
        from skfolio.datasets import load_factors_dataset
        from skfolio.preprocessing import prices_to_returns

        return prices_to_returns(load_factors_dataset()).tail(MOST_ROWS)
    table = pd.read_csv(data_folder() / "tables" / f"{name}.csv.gz", index_col=0)
    return (table.T if name == "HedgeFund" else table).tail(MOST_ROWS)


def frame(name: str) -> pd.DataFrame:
    """Some rows of a table, without identifiers."""
    if name in RETURNS:
        return returns(name)
    if hasattr(datasets, f"load_{name}"):
        table = getattr(datasets, f"load_{name}")(as_frame=True).frame
    else:
        table = pd.read_csv(data_folder() / "tables" / f"{name}.csv.gz")
    table = table.drop(columns=[column for column in LEFT_OUT if column in table])
    return table.sample(min(len(table), MOST_ROWS), random_state=0).reset_index(drop=True)


def real_columns(name: str) -> np.ndarray:
    """Real columns without gaps, standardized."""
    numbers = frame(name).drop(columns="target", errors="ignore").select_dtypes("number")
    values = numbers.dropna(axis=1).to_numpy(float)
    return (values - values.mean(axis=0)) / values.std(axis=0)


def as_numbers() -> Any:
    """Means for gaps, standard units, indicators."""
    reals = make_pipeline(SimpleImputer(), StandardScaler())
    labels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (reals, make_column_selector(dtype_include="number")),
        (labels, make_column_selector(dtype_exclude="number")),
    )


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    clock = time.process_time()
    return action(), time.process_time() - clock


def compare(
    keep: str, rows: list[str], rivals: list[str], measure: Callable[[str], Any], digits: int,
    best: Callable[..., float] = max,
) -> None:  # fmt: skip
    """Print a line for every table, and their mean; seconds are of the first rival."""
    lines, found = [], []
    for name in rows:
        scores, seconds = measure(name)
        found.append(scores)
        shown = best_bold([f"{score:.{digits}f}" for score in scores], best)
        lines.append([name, *shown, f"{seconds:.1f}"])
        print(name, *shown, f"{seconds:.1f}", file=sys.stderr, flush=True)
    mean = best_bold([f"{score:.{digits}f}" for score in np.mean(found, axis=0)], best)
    show(["table", *rivals, "s"], [*lines, ["mean", *mean, ""]], keep)


def scores_of(name: str, target: str, rivals: list[Any], folds: Any) -> tuple[list[float], float]:
    """Accuracy or R² of rivals, each fitted in every fold."""
    table = frame(name).dropna(subset=[target])
    if isinstance(folds, StratifiedKFold):
        table = table.head(400)
        table = table[table.groupby(target)[target].transform("size") >= folds.n_splits]
    X, y = table.drop(columns=target), table[target].to_numpy()
    found = np.zeros((folds.n_splits, len(rivals)))
    seconds = 0.0
    for fold, (train, test) in enumerate(folds.split(X, y)):
        for place, rival in enumerate(rivals):
            learned, spent = timed(lambda r=rival, t=train: r.fit(X.iloc[t], y[t]))
            found[fold, place] = learned.score(X.iloc[test], y[test])
            seconds += spent * (place == 0) / folds.n_splits
    return found.mean(axis=0).tolist(), seconds


def classify() -> None:
    rivals = {
        "tree": lt.LatentTreeClassifier(random_state=0),
        "logistic": make_pipeline(as_numbers(), LogisticRegression(max_iter=2_000)),
        "naive Bayes": make_pipeline(as_numbers(), GaussianNB()),
        "boosting": HistGradientBoostingClassifier(
            categorical_features="from_dtype", random_state=0
        ),
    }
    rivals["boosting"] = make_pipeline(as_numbers(), rivals["boosting"])
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    compare(
        "habits-classes", list(CLASSES), list(rivals),
        lambda name: scores_of(name, CLASSES[name], list(rivals.values()), folds), 3,
    )  # fmt: skip


def regress() -> None:
    rivals = {
        "tree": lt.LatentTreeRegressor(random_state=0),
        "ridge": make_pipeline(as_numbers(), RidgeCV(np.logspace(-2, 4, 13))),
        "boosting": make_pipeline(as_numbers(), HistGradientBoostingRegressor(random_state=0)),
    }
    folds = KFold(5, shuffle=True, random_state=0)
    compare(
        "habits-numbers", list(NUMBERS), list(rivals),
        lambda name: scores_of(name, NUMBERS[name], list(rivals.values()), folds), 3,
    )  # fmt: skip


def impute() -> None:
    rivals = {
        "tree": lt.LatentTreeImputer(kinds="real", random_state=0),
        "iterative": IterativeImputer(random_state=0),
        "neighbors": KNNImputer(),
        "mean": SimpleImputer(),
    }

    def measure(name: str) -> tuple[list[float], float]:
        X = real_columns(name)
        hidden = np.random.default_rng(0).random(X.shape) < 0.1
        holes = np.where(hidden, np.nan, X)
        filled = [timed(lambda r=rival: r.fit_transform(holes)) for rival in rivals.values()]
        errors = [float(np.sqrt(np.mean((found - X)[hidden] ** 2))) for found, _ in filled]
        return errors, filled[0][1]

    compare("habits-gaps", list(REALS), list(rivals), measure, 3, min)


def covariances() -> None:
    from skfolio.moments import DenoiseCovariance

    rivals = {
        "tree": lt.LatentTreeCovariance(random_state=0),
        "tree alone": lt.LatentTreeCovariance(n_folds=0, random_state=0),
        "Ledoit-Wolf": covariance.LedoitWolf(),
        "OAS": covariance.OAS(),
        "lasso": covariance.GraphicalLassoCV(),
        "denoise": DenoiseCovariance(),  # detoned matrices are singular: no likelihood
    }

    def measured(
        X: np.ndarray, is_ordered: bool, measure: Callable[[Any, np.ndarray], float]
    ) -> tuple[list[float], float]:
        found, seconds = np.zeros((5, len(rivals))), 0.0
        folds = KFold(5, shuffle=not is_ordered, random_state=None if is_ordered else 0)
        for fold, (train, test) in enumerate(folds.split(X)):
            for place, rival in enumerate(rivals.values()):
                learned, spent = timed(lambda r=rival, t=train: r.fit(X[t]))
                found[fold, place] = measure(learned, X[test])
                seconds += spent * (place == 0) / 5
        return found.mean(axis=0).tolist(), seconds

    def likelihood(name: str) -> tuple[list[float], float]:
        return measured(real_columns(name), name in RETURNS, lambda one, X: one.score(X))

    def risk(name: str) -> tuple[list[float], float]:
        X = frame(name).select_dtypes("number").to_numpy(float)
        return measured(X / X.std(), True, risk_of_least_variance)

    compare("habits-covariances", list(REALS), list(rivals), likelihood, 2)
    compare("habits-risk", list(RETURNS), list(rivals), risk, 2, min)


def risk_of_least_variance(learned: Any, X: np.ndarray) -> float:
    """Risk of the portfolio of least variance on other returns, in percent of their unit."""
    weights = np.linalg.solve(learned.covariance_, np.ones(X.shape[1]))
    return 100.0 * float((X @ (weights / weights.sum())).std())


PARTS = {"impute": impute, "classify": classify, "regress": regress, "covariance": covariances}

if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in sys.argv[1:] or PARTS:
            print(part)
            PARTS[part]()

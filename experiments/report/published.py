"""Figures that others published: the paper's tables, and what the authors' program does today."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

NAMES = {
    "chow_liu": "CL", "lcm": "LCM", "bin": "BIN", "nj": "NJ", "rg": "RG", "clnj": "CLNJ",
    "clrg": "CLRG", "cl_blind": "CLBlind", "reg_clnj": "regCLNJ", "reg_clrg": "regCLRG",
}  # fmt: skip
"""Methods as the paper calls them."""

SECONDS = {
    "HMM": {"rg": 10.16, "nj": 0.02, "clrg": 0.10, "clnj": 0.05},
    "5-complete": {"rg": 7.91, "nj": 0.02, "clrg": 0.26, "clnj": 0.06},
    "double star": {"rg": 1.43, "nj": 0.01, "clrg": 0.76, "clnj": 0.20},
}
"""The paper's running times on the three trees."""

STOCKS = {  # log-likelihood, BIC, hidden, parameters, seconds
    "chow_liu": (-13_321, -13_547, 0, 84, 0.15),
    "nj": (-12_400, -12_747, 45, 129, 0.02),
    "rg": (-14_042, -14_300, 12, 96, 21.15),
    "clnj": (-11_990, -12_294, 29, 113, 0.24),
    "clrg": (-12_879, -13_174, 26, 110, 0.40),
}

NEWSGROUPS = {  # log-likelihood, BIC, hidden, parameters, seconds in all
    "chow_liu": (-238_713, -239_677, 0, 199, 8.9),
    "lcm": (-223_096, -230_925, 1, 1_615, 8_835.9),
    "bin": (-232_042, -233_952, 98, 394, 3_022.6),
    "nj": (-230_575, -232_257, 74, 347, 1_611.2),
    "rg": (-239_619, -240_875, 30, 259, 927.1),
    "clnj": (-230_858, -232_540, 74, 347, 1_479.6),
    "clrg": (-231_279, -232_738, 51, 301, 1_224.6),
    "reg_clnj": (-235_326, -236_553, 27, 253, 630.8),
    "reg_clrg": (-234_012, -235_229, 26, 251, 606.9),
}

HALVES = {  # train LL, train BIC, test LL, test BIC, hidden, parameters, seconds in all
    "chow_liu": (-119_013, -119_909, -120_107, -121_003, 0, 199, 3.0),
    "lcm": (-112_746, -117_288, -116_884, -120_949, 1, 1_009, 3_197.7),
    "bin": (-117_172, -118_675, -117_957, -119_460, 78, 334, 1_331.3),
    "nj": (-115_319, -116_908, -116_011, -117_600, 77, 353, 802.8),
    "rg": (-118_280, -119_248, -119_181, -120_149, 8, 215, 137.6),
    "clnj": (-115_372, -116_987, -116_036, -117_652, 80, 359, 648.0),
    "clrg": (-115_565, -116_920, -116_199, -117_554, 51, 301, 506.0),
    "reg_clnj": (-117_723, -118_924, -118_606, -119_808, 34, 267, 425.5),
    "reg_clrg": (-116_980, -118_119, -117_652, -118_791, 27, 253, 285.7),
}

_TREES = {"double_star": "double star", "hmm": "HMM", "complete5": "5-complete"}
_METHODS = {name: method for method, name in NAMES.items()}


def authors_synthetic() -> dict[tuple[str, int, str], dict[str, float]]:
    """Means of the authors' program by tree, number of samples and method."""
    return {
        (_TREES[row["tree"]], int(row["n"]), _METHODS[row["method"]]): {
            "error": 1.0 - float(row["exact"]),
            "rf": float(row["rf"]),
            "surplus": float(row["hidden_excess"]),
            "kl_reverse": float(row["kl_estimate_to_truth"]),
            "instances": float(row["instances"]),
        }
        for row in _rows("original_program.csv")
    }


def authors_best(file: str, score: str, **chosen: str) -> dict[str, dict[str, Any]]:
    """The best of the seeds of the authors' program by some score, by method."""
    best: dict[str, dict[str, Any]] = {}
    for row in _rows(file):
        if any(row[key] != value for key, value in chosen.items()):
            continue
        method = _METHODS[row["method"]]
        if method not in best or float(row[score]) > float(best[method][score]):
            best[method] = row
    return best


def _rows(file: str) -> list[dict[str, str]]:
    """Rows of a file in the folder ``reference`` beside that of the data; none without it."""
    data = os.environ.get("LATENTREE_DATA", "")
    path = Path(data).parent / "reference" / file
    if not data or not path.is_file():
        return []
    with path.open() as lines:
        return list(csv.DictReader(lines))

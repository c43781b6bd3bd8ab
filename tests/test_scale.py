"""The benchmark of large tables, at small sizes."""

from __future__ import annotations

import importlib
import re
import warnings
from argparse import Namespace
from pathlib import Path

import pytest

SMALL = {"quick": True, "variables": 60, "rows": 2_000, "steps": 2}


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield importlib.import_module("scale")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("gaussian", r"60 +2,000 .* 5 .* 8 "),
        ("growth", r"exponent from 500 to 2,000 variables: [-\d.]+ \(goal 2.1\)"),
        ("spanning", r"20 of 20 equal, m up to 60"),
        ("text", r"2,000 × 60 .* 1800 .* 16 "),
        ("parquet", r"2,000 × 60 .* 1\.30 .* 1\.50 .*e-1\d"),
        ("passes", r"2,000 × 60 "),
    ],
)
def test_part(scale, capsys, part, said):
    scale.PARTS[part](Namespace(**SMALL))
    assert re.search(said, capsys.readouterr().out)

"""Trees, log-likelihoods and BIC of every method on a dozen tables, against another commit's.

    python benchmarks/frozen.py --write FILE      # before a change
    python benchmarks/frozen.py FILE              # after it: what differs

A redesign must keep these to rounding, or improve them. Everything goes through ``LatentTree``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import latentree as lt
from common import data_folder, show
from latentree.errors import LatentTreeError
from latentree.methods import METHODS

ROUNDING = 1e-6
"""Relative difference of log-likelihoods that the order of a sum may make after EM."""


def tables() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Names, tables and options: families, gaps, weights, sparse, ordered, mixed."""
    rng = np.random.default_rng(36)
    tests = lt.datasets.load_holzinger().data
    yield "real", tests, {}
    yield "real, weights", tests, {"weights": rng.integers(0, 4, len(tests)).astype(float)}
    yield "real, gaps", np.where(rng.random(tests.shape) < 0.1, np.nan, tests), {}
    tree = lt.simulate.random_latent_tree(16, rng)
    yield "real, 400 × 16", lt.simulate.random_gaussian_model(tree, rng).sample(400, rng), {}
    for n_states in (2, 3):
        model = lt.simulate.random_discrete_model(tree, n_states, rng)
        codes = np.asarray(model.sample(600, rng))[:, :16].astype(np.int64)
        yield f"K = {n_states}", codes, {"family": "discrete"}
        if n_states == 2:
            yield "K = 2, sparse", sparse.csr_array(codes), {"family": "discrete"}
            holes = np.where(rng.random(codes.shape) < 0.1, -1, codes)
            yield "K = 2, gaps", holes, {"family": "discrete"}
        yield f"K = {n_states}, symmetric", codes, {"family": "symmetric"}
    folder = data_folder()
    if folder is None:
        return
    for name, rows, columns in (
        ("bfi", 400, 12), ("GERAS.items", 300, 12), ("Wages", 500, 12), ("HI", 500, 12),
        ("Chile", 500, 12), ("mite", 70, 12),
    ):  # fmt: skip
        frame = pd.read_csv(folder / "tables" / f"{name}.csv.gz")
        yield name, frame.iloc[:rows, :columns], {}
    bfi = pd.read_csv(folder / "tables" / "bfi.csv.gz").iloc[:400, :10]
    yield "bfi, gaussian", bfi, {"hidden": "gaussian"}


def outcome(table: Any, method: str, options: dict[str, Any]) -> dict[str, Any]:
    """What a fit found, or why there is none."""
    options = dict(options)
    weights = options.pop("weights", None)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = lt.LatentTree(method, random_state=0, **options).fit(
                table, sample_weight=weights
            )
    except LatentTreeError as error:
        return {"error": str(error)}
    model = fitted.model_
    tree = model.tree
    return {
        "edges": [[int(v), int(p)] for v, p in enumerate(tree.parent) if p >= 0],
        "n_observed": int(tree.n_observed),
        "n_nodes": int(tree.n_nodes),
        "log_likelihood": float(fitted.report_.log_likelihood),
        "bic": float(fitted.report_.bic_score),
        "seconds": time.process_time() - start,
    }


def run(only: str | None) -> dict[str, dict[str, Any]]:
    """All outcomes, by table and method."""
    found = {}
    for name, table, options in tables():
        if only and only not in name:
            continue
        for method in METHODS:
            found[f"{name}: {method}"] = outcome(table, method, options)
            print(".", end="", flush=True)
    print()
    return found


def tree_of(entry: dict[str, Any]) -> lt.Tree:
    """The tree of an outcome."""
    names = [f"x{i}" for i in range(entry["n_observed"])]
    names += [f"h{i}" for i in range(entry["n_nodes"] - entry["n_observed"])]
    parent = np.full(entry["n_nodes"], -1)
    for child, above in entry["edges"]:
        parent[child] = above
    return lt.Tree(parent, n_observed=entry["n_observed"], names=names)


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    """A line for every outcome that is not the same to rounding."""
    lines = []
    for key, old in before.items():
        new = after.get(key)
        if new is None:
            continue
        if "error" in old or "error" in new:
            if old.get("error") != new.get("error"):
                lines.append([key, str(old.get("error"))[:30], str(new.get("error"))[:30], "", ""])
            continue
        apart = lt.metrics.robinson_foulds(tree_of(old), tree_of(new))
        likelihood = new["log_likelihood"] - old["log_likelihood"]
        bic = new["bic"] - old["bic"]
        if apart or abs(likelihood) > ROUNDING * abs(old["log_likelihood"]):
            seconds = f"{old['seconds']:.1f} → {new['seconds']:.1f}"
            lines.append([key, f"{apart:.0f}", f"{likelihood:+.3f}", f"{bic:+.3f}", seconds])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="outcomes of another commit")
    parser.add_argument("--write", action="store_true", help="write the file")
    parser.add_argument("--only", help="tables whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="the smallest table alone")
    arguments = parser.parse_args()
    found = run("real, gaps" if arguments.quick else arguments.only)
    if arguments.file is None:
        names = ("log_likelihood", "bic", "seconds")
        lines = [[k, *(f"{e[x]:.2f}" for x in names)] for k, e in found.items() if "bic" in e]
        show(["table: method", "log-likelihood", "BIC score", "seconds"], lines)
        return
    if arguments.write:
        arguments.file.write_text(json.dumps(found, indent=0) + "\n")
        return
    before = json.loads(arguments.file.read_text())
    lines = differences(before, found)
    show(["table: method", "RF", "log-likelihood", "BIC score", "seconds"], lines)
    total = [sum(entry.get("seconds", 0.0) for entry in each.values()) for each in (before, found)]
    print(f"{len(found)} fits, {len(lines)} differ; {total[0]:.0f} → {total[1]:.0f} seconds")


if __name__ == "__main__":
    main()

"""What large tables cost, in time and memory, as ratios to plain work in the same run.

    python benchmarks/scale.py [--quick] [PART ...] [--variables M] [--rows N]

Every part runs in a process of its own, so that its peak memory is its own. ``gaussian``: CLNJ
from a known latent tree of many variables, against the blocked float32 product of all pairs.
``growth``: how the time of CLNJ grows with the variables.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from common import show
from latentree import information_distances, metrics, simulate, structure

Options = argparse.Namespace


def peak_memory() -> float:
    """Return the peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def timed(function: Callable[[], object]) -> tuple[float, object]:
    """Return seconds and result of one run."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


# Many real variables ----------------------------------------------------------------------------


def gaussian_table(m: int, n: int, seed: int):
    """Return a random latent tree over m variables, and n rows of a Gaussian model on it."""
    rng = np.random.default_rng(seed)
    model = simulate.random_gaussian_model(simulate.random_latent_tree(m, rng), rng)
    return model.tree, model.sample(n, rng)


def all_products(values: np.ndarray, block: int = 4096) -> float:
    """Seconds for the float32 products of all pairs of columns, block by block, nothing kept."""
    z = np.ascontiguousarray(values.T, np.float32)
    m = len(z)

    def run() -> None:
        for start in range(0, m, block):
            for first in range(0, start + 1, block):
                np.matmul(z[start : start + block], z[first : first + block].T)

    return timed(run)[0]


def clnj(values: np.ndarray):
    """Learn a tree on demand, without the matrix of distances."""
    distances = information_distances(values, dense=False)
    return structure.cl_grouping(distances, "nj")


def gaussian(options: Options) -> None:
    """CLNJ of many real variables: time, memory and what is found."""
    m = options.variables or (2_000 if options.quick else 100_000)
    n = options.rows or (200 if options.quick else 1_000)
    clnj(gaussian_table(50, 100, 0)[1])  # compile
    seconds, (tree, values) = timed(lambda: gaussian_table(m, n, 1))
    product = all_products(values)
    learning, learned = timed(lambda: clnj(values))
    distance = metrics.robinson_foulds(tree.renamed(learned.names[:m]), learned)
    header = ["CLNJ, real variables", "rows", "sampled s", "product s", "CLNJ s", "× product",
              "goal", "peak GB", "goal", "hidden", "true", "Robinson-Foulds"]  # fmt: skip
    line = [f"{m:,}", f"{n:,}", f"{seconds:.1f}", f"{product:.1f}", f"{learning:.1f}",
            f"{learning / product:.2f}", "5", f"{peak_memory():.2f}", "8",
            f"{learned.n_hidden:,}", f"{tree.n_hidden:,}", f"{distance}"]  # fmt: skip
    show(header, [line])


def growth(options: Options) -> None:
    """How the time of CLNJ grows with the number of variables."""
    sizes = (500, 1_000, 2_000) if options.quick else (5_000, 10_000, 20_000, 40_000, 80_000)
    n = options.rows or (100 if options.quick else 500)
    clnj(gaussian_table(50, 100, 0)[1])
    times, lines = [], []
    for m in sizes:
        _, values = gaussian_table(m, n, m)
        product = all_products(values)
        times.append(timed(lambda: clnj(values))[0])  # noqa: B023
        lines.append([f"{m:,}", f"{n:,}", f"{times[-1]:.2f}", f"{times[-1] / product:.2f}"])
    show(["growth of CLNJ: variables", "rows", "seconds", "× product"], lines)
    slope = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
    print(f"exponent from {sizes[0]:,} to {sizes[-1]:,} variables: {slope:.2f} (goal 2.1)\n")


PARTS: dict[str, Callable[[Options], None]] = {"gaussian": gaussian, "growth": growth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all, when none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--variables", type=int, help="number of variables")
    parser.add_argument("--rows", type=int, help="number of rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = options.parts or list(PARTS)
    if len(parts) == 1:
        PARTS[parts[0]](options)
        return
    rest = [argument for argument in sys.argv[1:] if argument not in PARTS]
    for part in parts:
        command = [sys.executable, __file__, part, *rest]
        if subprocess.run(command, env=os.environ, check=False).returncode:
            sys.exit(f"{part} failed")


if __name__ == "__main__":
    main()

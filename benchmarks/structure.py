"""How fast structure is learned, as ratios to others on the same machine in the same run.

    python benchmarks/structure.py [--quick] [nj] [mst] [rg] [end] [first]

``nj``: neighbor joining of an array, checks included, against scikit-bio, biotite, and native
programs that are installed.
``mst``: spanning tree of a dense matrix against scipy. ``rg``: relaxed recursive grouping and the
rate of its m³ kernel. ``end``: CLNJ and CLRG from data to tree against the product XᵀX.
``first``: first call of CLNJ in a new process, with and without compiled code on disk.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

from latentree import simulate, structure
from latentree._kernels.compiling import repeated
from latentree._kernels.structure.joining import join_neighbors
from latentree._kernels.structure.ranges import max_difference
from latentree._kernels.structure.spanning import minimum_spanning_tree
from latentree.distances import Distances, information_distances
from ratios import keep, write

PARTS = ["nj", "mst", "rg", "end", "first"]
NATIVE_LIMIT = 300  # seconds that a native program gets
PEER_LIMIT = 60.0  # seconds: a peer that needed longer is left out at larger sizes


def best_time(function, repeats=3):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
        if times[-1] > 2:
            break
    return min(times)


def noisy_tree_distances(m, rng):
    """Distances along a random binary tree, with noise that grows with distance."""
    tree = simulate.random_lengths(simulate.random_latent_tree(m, rng, 0.0, 0.0), rng, 0.05, 0.5)
    d = tree.path_lengths()
    d += np.triu(0.05 * rng.standard_normal(d.shape) * np.sqrt(d), 1)
    d = np.maximum(np.triu(d, 1), 1e-3)
    d = np.triu(d, 1)
    d += d.T
    return d


# Neighbor joining -------------------------------------------------------------------------------


def nj_scikit_bio(d):
    import skbio

    matrix = skbio.DistanceMatrix(d, [str(i) for i in range(len(d))])
    return lambda: skbio.tree.nj(matrix)


def nj_biotite(d):
    from biotite.sequence.phylo import neighbor_joining

    return lambda: neighbor_joining(d)


def phylip_file(d):
    file = tempfile.NamedTemporaryFile("w", suffix=".phy", delete=False, encoding="utf-8")  # noqa: SIM115
    with file:
        file.write(f"{len(d)}\n")
        for i, row in enumerate(d):
            text = io.StringIO()
            np.savetxt(text, row[None], fmt="%.6f")
            file.write(f"s{i:<9d} {text.getvalue()}")
    return file.name


def nj_native(program):
    commands = {
        "quicktree": lambda name: ["quicktree", "-in", "m", name],
        "clearcut": lambda name: ["clearcut", "--distance", "-N", f"--in={name}", "--stdout"],
        "rapidnj": lambda name: ["rapidnj", name, "-i", "pd"],
        "fastme": lambda name: ["fastme", "-i", name, "-m", "N", "-o", "/dev/null"],
    }

    def prepare(d):
        command = commands[program](phylip_file(d))
        return lambda: subprocess.run(
            command, stdout=subprocess.DEVNULL, check=True, timeout=NATIVE_LIMIT
        )

    return prepare


PYTHON_PEERS = {"scikit-bio": nj_scikit_bio, "biotite": nj_biotite}


def bench_neighbor_joining(sizes, rng):
    peers = dict(PYTHON_PEERS)
    for program in ("quicktree", "clearcut", "rapidnj", "fastme"):
        if shutil.which(program):
            peers[program] = nj_native(program)
    with repeated():  # compiles, which so small a matrix would not need
        structure.neighbor_joining(noisy_tree_distances(10, rng), exact=True)
    for m in sizes:
        d = noisy_tree_distances(m, rng)
        kernel = best_time(lambda d=d: join_neighbors(d.copy()))
        check = best_time(lambda d=d: Distances.from_matrix(d))
        # From the array itself, so that its checks count; peers have checked theirs before.
        ours = best_time(lambda d=d: structure.neighbor_joining(d, exact=True))
        line = f"nj m={m:6d}  kernel {kernel:8.4f} s  check {check:8.4f} s"
        line += f"  neighbor_joining {ours:8.4f} s"
        for name, prepare in list(peers.items()):
            try:
                seconds = best_time(prepare(d), 1 if m > 1000 else 2)
            except (ImportError, subprocess.CalledProcessError) as error:
                line += f"  {name}: {type(error).__name__}"
                del peers[name]
                continue
            except subprocess.TimeoutExpired:
                line += f"  {name} > {NATIVE_LIMIT} s (> ×{NATIVE_LIMIT / ours:.0f})"
                continue
            keep(f"neighbor joining, {m:,} variables: {name}", seconds, ours)
            line += f"  {name} {seconds:.3f} s (×{seconds / ours:.0f})"
            if seconds * 5 > PEER_LIMIT and name in PYTHON_PEERS:
                del peers[name]
        print(line, flush=True)


def bench_memory(m):
    """Peak memory of neighbor joining beyond the matrix it is given, in matrices."""
    code = (
        "import resource, numpy as np\n"
        "from latentree import structure\n"
        "from latentree.distances import Distances\n"
        "structure.neighbor_joining(np.ones((4, 4)) - np.eye(4), exact=True)\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        f"m = {m}\n"
        "d = np.random.default_rng(0).uniform(1, 2, (m, m)); d += d.T; np.fill_diagonal(d, 0)\n"
        "x = Distances.from_matrix(d); del d\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = [int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmRSS')]\n"
        "structure.neighbor_joining(x, exact=True)\n"
        "after = [int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')]\n"
        "print((after[0] - before[0]) * 1024 / (8 * m * m))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    shown = result.stdout.strip() or result.stderr.strip()[-200:]
    print(f"nj memory at m={m}: {shown} matrices beside the one given", flush=True)


# Spanning tree, recursive grouping --------------------------------------------------------------


def bench_spanning_tree(m, rng):
    from scipy.sparse.csgraph import minimum_spanning_tree as scipy_tree

    d = rng.uniform(1, 2, (m, m))
    d += d.T
    shift = np.zeros(m)
    minimum_spanning_tree(d[:4, :4].copy(), shift[:4])
    ours = best_time(lambda: minimum_spanning_tree(d, shift))
    theirs = best_time(lambda: scipy_tree(d), 1)
    keep(f"spanning tree, {m:,} variables: scipy", theirs, ours)
    print(f"mst m={m}  {ours:.3f} s  scipy {theirs:.2f} s (×{theirs / ours:.0f})", flush=True)


def bench_recursive_grouping(sizes, rng):
    for m in (500, 1000):
        d = rng.uniform(0, 1, (m, m))
        d += d.T
        seconds = best_time(lambda d=d: max_difference(d, d), 5)
        print(f"m³ kernel m={m}  {m**3 / seconds / 1e9:.1f}·10⁹ triples/s", flush=True)
    for m in sizes:
        tree = simulate.random_lengths(simulate.random_latent_tree(m, rng), rng)
        x = sample(tree, 1000, rng)
        distances = information_distances(x)
        structure.recursive_grouping(distances)
        seconds = best_time(lambda x=distances: structure.recursive_grouping(x), 2)
        spent = kernel_share(distances)
        print(f"rg m={m}  {seconds:.3f} s, of which m³ kernel {100 * spent:.0f} %", flush=True)


def kernel_share(distances):
    """Share of the time of one relaxed run that the m³ kernel takes."""
    module = importlib.import_module("latentree.structure._recursive_grouping")
    inside = [0.0]
    plain = module.max_difference

    def timed(lower, upper):
        started = time.perf_counter()
        result = plain(lower, upper)
        inside[0] += time.perf_counter() - started
        return result

    module.max_difference = timed
    started = time.perf_counter()
    module.recursive_grouping(distances)
    total = time.perf_counter() - started
    module.max_difference = plain
    return inside[0] / total


# From data to tree ------------------------------------------------------------------------------


def sample(tree, n_samples, rng):
    """Draw rows of a Gaussian model with ρ = e^(−length), all positive."""
    values = np.empty((tree.n_nodes, n_samples))
    rho = np.exp(-tree.length)
    for v in tree.order:
        noise = rng.standard_normal(n_samples)
        above = tree.parent[v]
        if above >= 0:
            noise *= np.sqrt(1 - rho[v] ** 2)
            noise += rho[v] * values[above]
        values[v] = noise
    return np.ascontiguousarray(values[: tree.n_observed].T)


def bench_end_to_end(sizes, rng):
    warm = sample(simulate.random_latent_tree(30, rng), 200, rng)
    for method in ("clnj", "clrg"):
        with repeated():
            structure.learn_structure(information_distances(warm), method)
    previous = {}
    for m in sizes:
        x = sample(simulate.random_lengths(simulate.random_latent_tree(m, rng), rng), 1000, rng)
        product = best_time(lambda x=x: x.T @ x)
        line = f"end m={m:6d}  XᵀX {product:.3f} s"
        seconds = best_time(lambda x=x: information_distances(x), 2)
        keep(f"distances, 1,000 rows × {m:,}: the product XᵀX", product, seconds)
        line += f"  distances {seconds:.3f} s (×{seconds / product:.1f})"
        for method in ("clnj", "clrg"):
            seconds = best_time(
                lambda x=x, k=method: structure.learn_structure(information_distances(x), k), 2
            )
            keep(f"{method}, 1,000 rows × {m:,}: the product XᵀX", product, seconds)
            line += f"  {method} {seconds:.3f} s (×{seconds / product:.2f})"
            if method in previous:
                old_m, old_seconds = previous[method]
                line += f" ~m^{np.log(seconds / old_seconds) / np.log(m / old_m):.1f}"
            previous[method] = (m, seconds)
        print(line, flush=True)


def bench_first_call():
    code = (
        "import time, numpy as np\n"
        "from latentree import structure\n"
        "from latentree.distances import Distances\n"
        "d = np.abs(np.subtract.outer(*[np.random.default_rng(0).normal(size=30)] * 2))\n"
        "d = Distances.from_matrix(d, n_samples=100)\n"
        "started = time.perf_counter()\n"
        "structure.cl_grouping(d, 'nj')\n"
        "print(round(time.perf_counter() - started, 2))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for state in ("compiling", "cached"):
            result = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True
            )
            print(f"first CLNJ call, {state}: {result.stdout.strip()} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--quick", action="store_true", help="sizes up to 2,000 only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    most = 2_000 if options.quick else 10_000
    if "nj" in options.parts:
        bench_neighbor_joining([m for m in (200, 1_000, 2_000, 5_000, 10_000) if m <= most], rng)
        bench_memory(min(most, 4_000))
    if "mst" in options.parts:
        bench_spanning_tree(most, rng)
    if "rg" in options.parts:
        bench_recursive_grouping((80, 500), rng)
    if "end" in options.parts:
        bench_end_to_end([m for m in (1_000, 2_000, 5_000, 10_000) if m <= most], rng)
    if "first" in options.parts:
        bench_first_call()
    if options.parts == PARTS:
        write("structure", options.quick)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")


if __name__ == "__main__":
    main()

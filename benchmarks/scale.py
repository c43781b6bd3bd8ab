"""What large tables cost, in time and memory, as ratios to plain work in the same run.

    python benchmarks/scale.py [--quick] [PART ...] [--variables M] [--rows N]

Every part runs in a process of its own, so that its peak memory is its own. ``gaussian``: CLNJ
from a known latent tree of many variables, against the blocked float32 product of all pairs.
``growth``: how the time of CLNJ grows with the variables. ``spanning``: spanning trees from blocks
and from the matrix, of inputs with ties. ``text``: structure and EM of sparse documents whose words
have Zipf's frequencies and hang on a known tree. ``parquet``: statistics of a file of many rows,
against pyarrow and numpy by hand. ``cluster``: the model of 2 and 4 dask workers, once with one of
them killed, against that of one process. ``passes``: EM of many 0/1 rows, a step against passes
over the data.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

import latentree as lt
from common import show
from latentree import information_distances, metrics, simulate, structure
from latentree.data import cut_table
from latentree.distances import BitLines, Functions, Sample, Statistics, gather
from latentree.em import make_problem
from latentree.structure._spanning import spanning_edges

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
    processor = time.process_time()
    learning, learned = timed(lambda: clnj(values))
    processor = time.process_time() - processor
    distance = metrics.robinson_foulds(tree.renamed(learned.names[:m]), learned)
    header = ["CLNJ, real variables", "rows", "sampled s", "product s", "CLNJ s", "× product",
              "goal", "peak GB", "goal", "hidden", "true", "Robinson-Foulds"]  # fmt: skip
    line = [f"{m:,}", f"{n:,}", f"{seconds:.1f}", f"{product:.1f}", f"{learning:.1f}",
            f"{learning / product:.2f}", "5", f"{peak_memory():.2f}", "8",
            f"{learned.n_hidden:,}", f"{tree.n_hidden:,}", f"{distance}"]  # fmt: skip
    show(header, [line])
    print(f"{processor:.0f} s of processor time for CLNJ\n")


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


def tied_table(m: int, n: int, kind: int, rng: np.random.Generator):
    """Return data with few ties (real columns, some of them copies) or many (0/1 columns)."""
    hidden = rng.standard_normal((n, 1 + m // 10))
    x = hidden[:, rng.integers(0, 1 + m // 10, m)] + rng.standard_normal((n, m))
    if kind == 0:
        x[:, rng.integers(0, m, m // 4)] = x[:, rng.integers(0, m, m // 4)]
        return x
    x = (x > 1.5 * (kind - 1)).astype(np.int8)
    x = x[:, (x.min(axis=0) == 0) & (x.max(axis=0) == 1)]
    return x if kind == 1 else scipy.sparse.csr_array(x)


def spanning(options: Options) -> None:
    """Whether spanning trees from blocks are those of the matrix."""
    most = options.variables or (200 if options.quick else 3_000)
    rng = np.random.default_rng(0)
    n_inputs = 20 if options.quick else 200
    same = 0
    for number in range(n_inputs):
        m = int(rng.integers(3, most + 1))
        x = tied_table(m, int(rng.integers(5, options.rows or 200)), number % 3, rng)
        dense, lazy = (information_distances(x, dense=choice) for choice in (True, False))
        same += np.array_equal(spanning_edges(dense), spanning_edges(lazy))
    print(f"spanning trees of blocks and of the matrix: {same} of {n_inputs} equal, "
          f"m up to {most:,}\n")  # fmt: skip


# Documents --------------------------------------------------------------------------------------


def zipf_shares(m: int, per_row: float) -> np.ndarray:
    """Return frequencies c/rank of m words, at most ½, that sum to so many words a document."""
    low, high = 0.0, float(m)
    for _ in range(100):
        c = 0.5 * (low + high)
        total = np.minimum(c / np.arange(1, m + 1), 0.5).sum()
        low, high = (c, high) if total < per_row else (low, c)
    return np.minimum(c / np.arange(1, m + 1), 0.5)


def documents(n: int, m: int, per_row: float, seed: int):
    """Return a known tree over m words, and n documents as a sparse 0/1 matrix.

    Topics (hidden nodes) are on in a fifth of the documents and correlate by 0.5 to 0.9 with their
    neighbors; 0.6 to 0.95 of a word's occurrences are where its topic is on.
    """
    rng = np.random.default_rng(seed)
    tree = simulate.random_latent_tree(m, rng, inner_share=0.0, merge_share=0.6)
    root = int(tree.hidden[0])
    tree = tree.rerooted(root)
    q, share = 0.2, rng.permutation(zipf_shares(m, per_row))
    topic = np.zeros((tree.n_nodes, n), bool)  # of hidden nodes only
    rows, columns = [], []
    for v in tree.order.tolist():
        above = int(tree.parent[v])
        if v == root:
            topic[v] = rng.random(n) < q
        elif v >= m:
            rho = rng.uniform(0.5, 0.9)
            topic[v] = rng.random(n, np.float32) < np.where(
                topic[above], q + rho * (1 - q), q - rho * q
            )
        else:
            inside = min(0.95, rng.uniform(0.6, 0.95) * share[v] / q)
            outside = (share[v] - q * inside) / (1 - q)
            for where, p in ((topic[above], inside), (~topic[above], outside)):
                open_ = np.flatnonzero(where)
                chosen = rng.choice(open_, rng.binomial(open_.size, p), replace=False)
                rows.append(chosen.astype(np.int32))
                columns.append(np.full(chosen.size, v, np.int32))
    cells = np.concatenate(rows), np.concatenate(columns)
    ones = np.ones(cells[0].size, np.int8)
    return tree, scipy.sparse.csr_array((ones, cells), shape=(n, m))


def learned_from(words):
    """Return seconds for the counts, the tree by CLNJ, and seconds for that."""
    counting, distances = timed(lambda: information_distances(words))
    learning, tree = timed(lambda: structure.cl_grouping(distances, "nj"))
    return counting, tree, learning


def text(options: Options) -> None:
    """Structure and EM of sparse documents."""
    n = options.rows or (5_000 if options.quick else 300_000)
    m = options.variables or (300 if options.quick else 10_000)
    sampling, (truth, words) = timed(lambda: documents(n, m, max(0.015 * m, 5.0), 1))
    before, processor = peak_memory(), time.process_time()
    counting, tree, learning = learned_from(words)
    distance = metrics.robinson_foulds(truth.renamed(tree.names[:m]), tree)
    fitting, (model, report) = timed(
        lambda: lt.fit_parameters(
            tree, words, n_starts=1, random_state=0, budget=lt.em.Budget(max_steps=options.steps)
        )
    )
    processor = time.process_time() - processor
    some = words[: min(n, 20_000)]
    scoring, _ = timed(lambda: model.log_likelihood(some))
    inferring, _ = timed(lambda: model.posterior(some))
    total = counting + learning + fitting
    header = ["sparse documents", "words a row", "sampled s", "counts s", "CLNJ s", "EM s",
              "steps", "in all s", "goal", "peak GB", "goal", "scored s", "inferred s"]  # fmt: skip
    line = [f"{n:,} × {m:,}", f"{words.nnz / n:.0f}", f"{sampling:.1f}", f"{counting:.1f}",
            f"{learning:.1f}", f"{fitting:.1f}", f"{report.n_steps}", f"{total:.1f}", "1800",
            f"{peak_memory():.2f}", "16", f"{scoring:.2f}", f"{inferring:.2f}"]  # fmt: skip
    show(header, [line])
    print(
        f"{processor:.0f} s of processor time; peak {before:.2f} GB before learning; "
        f"hidden {tree.n_hidden:,} (true "
        f"{truth.n_hidden:,}), Robinson-Foulds {distance}; log-likelihood "
        f"{report.log_likelihood:,.0f}, converged: {report.converged}\n"
    )


# Many rows --------------------------------------------------------------------------------------


def written_rows(path: str, n: int, m: int, chunk: int = 100_000) -> None:
    """Write n rows of a Gaussian latent tree as float32, part by part."""
    rng = np.random.default_rng(0)
    model = simulate.random_gaussian_model(simulate.random_latent_tree(m, rng), rng)
    schema = pa.schema([(f"v{j}", pa.float32()) for j in range(m)])
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for start in range(0, n, chunk):
            x = model.sample(min(chunk, n - start), rng).astype(np.float32)
            writer.write_table(pa.table([pa.array(column) for column in x.T.copy()], schema=schema))


def by_hand(path: str, batch: int = 65_536) -> np.ndarray:
    """Correlations as one writes them with pyarrow and numpy: sums of x and of x'x in float64."""
    n, first, products = 0, 0.0, 0.0
    for rows in pq.ParquetFile(path).iter_batches(batch):
        x = np.column_stack([column.to_numpy() for column in rows.columns]).astype(np.float64)
        n += len(x)
        first = first + x.sum(axis=0)
        products = products + x.T @ x
    mean = first / n
    covariance = products / n - np.outer(mean, mean)
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def in_own_process(code: str, *arguments: object) -> list[float]:
    """Run a few lines in a fresh process; they print numbers."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [float(word) for word in done.stdout.split()]


_STATISTICS = """
import sys, time
import numpy as np
import scale, latentree as lt
from latentree.distances import gather
from latentree.distances._dependence import dependence
from latentree.distances._arrays import mirrored
path, way, out = sys.argv[1:]
start = time.perf_counter()
r = scale.by_hand(path) if way == "hand" else mirrored(dependence(gather(lt.as_parts(path))))
print(time.perf_counter() - start, scale.peak_memory())
np.save(out, r)
"""


def parquet(options: Options) -> None:
    """Statistics of a Parquet file, each way twice in processes of their own."""
    n = options.rows or (40_000 if options.quick else 4_000_000)
    m = options.variables or (20 if options.quick else 200)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        written_rows(path, n, m)
        size = os.path.getsize(path) / 1e9
        runs: dict[str, list[list[float]]] = {"hand": [], "latentree": []}
        for _ in range(2):
            for way, found in runs.items():
                found.append(in_own_process(_STATISTICS, path, way, f"{folder}/{way}.npy"))
        error = np.abs(np.load(f"{folder}/hand.npy") - np.load(f"{folder}/latentree.npy")).max()
    hand, ours = (min(run[0] for run in found) for found in runs.values())
    peak = max(run[1] for run in runs["latentree"])
    header = ["Parquet, float32", "GB", "by hand s", "latentree s", "× by hand", "goal", "peak GB",
              "goal", "difference"]  # fmt: skip
    cells = [f"{n:,} × {m:,}", f"{size:.2f}", f"{hand:.2f}", f"{ours:.2f}", f"{ours / hand:.2f}",
             "1.30", f"{peak:.2f}", "1.50", f"{error:.1e}"]  # fmt: skip
    show(header, [cells])


def cluster(options: Options) -> None:
    """Learn from the same file in one process, and on 2 and 4 workers."""
    import distributed

    n = options.rows or (20_000 if options.quick else 400_000)
    m = options.variables or (10 if options.quick else 40)
    rng = np.random.default_rng(1)
    # A chain, so that nearly all rows differ and every step of EM needs the workers.
    tree = simulate.hidden_markov(m)
    X = simulate.random_discrete_model(tree, 2, rng, (0.5, 0.8)).sample(n, rng).astype(np.int8)
    budget = lt.em.Budget(max_steps=options.steps)
    fit = {"n_starts": 1, "random_state": 0, "budget": budget}
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        pq.write_table(pa.table({f"v{j}": X[:, j] for j in range(m)}), path)
        local, one = timed(lambda: lt.methods.learn_model(lt.as_parts(path), "clrg", **fit))
        lines.append(["one process", f"{local:.1f}", "", ""])
        for workers, killed in ((2, False), (4, False), (4, True)):
            with (
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0",
                    silence_logs="CRITICAL",
                ) as made,
                distributed.Client(made) as client,
            ):  # fmt: skip

                def kill(step: int, _: float, client=client, killed=killed) -> None:
                    if killed and step == 5:
                        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

                def learn(client=client, kill=kill):
                    parts = lt.as_parts(path, client=client)
                    return lt.methods.learn_model(parts, "clrg", progress=kill, **fit)

                seconds, found = timed(learn)
            same = np.array_equal(found.model.tree.parent, one.model.tree.parent)
            apart = np.abs(found.model.theta - one.model.theta).max() if same else np.inf
            what = f"{workers} workers{', one killed' if killed else ''}"
            lines.append([what, f"{seconds:.1f}", f"{apart:.1e}", "1e-10"])
    show([f"CLRG and EM, {n:,} × {m:,} 0/1", "seconds", "apart", "goal"], lines)


def passes(options: Options) -> None:
    """A step of EM on many 0/1 rows, against passes over the same rows packed into bits."""
    n = options.rows or (100_000 if options.quick else 10_000_000)
    m = options.variables or (20 if options.quick else 100)
    rng = np.random.default_rng(2)
    model = simulate.random_discrete_model(simulate.random_latent_tree(m, rng), 2, rng, (0.5, 0.9))
    codes = np.empty((n, m), np.int8)
    for start in range(0, n, 500_000):
        codes[start : start + 500_000] = model.sample(min(500_000, n - start), rng)
    table = lt.Table(codes, model.schema)
    bits = BitLines(Functions.of(table), table).functions(np.arange(m))
    reading = min(timed(lambda: np.bitwise_xor.reduce(bits, axis=1))[0] for _ in range(3))
    flat = codes.reshape(-1)[: codes.size // 8 * 8].view(np.uint64)
    scanning = min(timed(lambda: np.bitwise_xor.reduce(flat))[0] for _ in range(3))
    counting, _ = timed(lambda: Statistics.of(table))
    parts = cut_table(table)
    statistics, facts = timed(lambda: gather(parts))
    problem = make_problem(model.tree, Sample(parts, facts))
    point = problem.point(model)
    compiling, _ = timed(lambda: problem.step(point))
    step = min(timed(lambda: problem.step(point))[0] for _ in range(9))
    together, apart = problem.counts.split
    patterns = 0 if together is None else together.patterns.weights.size
    header = ["0/1 rows", "read bits s", "read bytes s", "pair counts s", "statistics s",
              "compile s", "patterns", "by part", "EM step s", "× bits", "goal", "× bytes",
              "× counts", "peak GB"]  # fmt: skip
    cells = [f"{n:,} × {m:,}", f"{reading:.3f}", f"{scanning:.3f}", f"{counting:.2f}",
             f"{statistics:.2f}", f"{compiling:.1f}", f"{patterns:,}",
             "no" if apart is None else "yes", f"{step:.3f}", f"{step / reading:.1f}", "2",
             f"{step / scanning:.2f}", f"{step / counting:.3f}",
             f"{peak_memory():.1f}"]  # fmt: skip
    show(header, [cells])


PARTS: dict[str, Callable[[Options], None]] = {
    "gaussian": gaussian,
    "growth": growth,
    "spanning": spanning,
    "text": text,
    "parquet": parquet,
    "cluster": cluster,
    "passes": passes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all, when none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--variables", type=int, help="number of variables")
    parser.add_argument("--rows", type=int, help="number of rows")
    parser.add_argument("--steps", type=int, default=50, help="most steps of EM")
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

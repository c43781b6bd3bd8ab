"""Ordinary tables: what the defaults make of them, and held-out likelihood beside StepMix.

    python benchmarks/tables.py            all parts
    python benchmarks/tables.py defaults   every table that is found: fit, score, transform, page
    python benchmarks/tables.py held-out   OFP, HI, Wages, Males: log-likelihood of held-out rows
    python benchmarks/tables.py step       seconds of an EM step
    python benchmarks/tables.py groups     questionnaires: groups of items against their key
    python benchmarks/tables.py trees      simulated trees: Robinson-Foulds distances
    python benchmarks/tables.py searched   the same where distances do not add up, by ``refined``
    python benchmarks/tables.py states     random trees of equal and unequal states, by ``refined``
    python benchmarks/tables.py distances  seconds for the distances of 2,000 columns

30 % of the rows are held out. StepMix gets normal densities for numbers and tables for the rest,
with 2 to 20 classes (--classes) of which the best on the held-out rows counts; its classes are
scored by the same probabilities of cells as latentree's. latentree chooses everything on the
training rows.

Simulated trees have 10,000 rows of columns a third each real, ordered (5 levels) and category (2 to
6 labels). Behind them are the paper's Gaussians, cut into levels and labels, or hidden variables of
3 states (random tables): then real and ordered columns are normal around the center of a state,
−1.22, 0 or 1.22 times the correlation. Correlations are uniform on [0.2, 0.8]. Random trees of 40
columns have 4 states each, or 2 to 6, and hidden variables of 2 or of 4 states.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import latentree as lt
from common import data_folder, learned, show
from latentree.data import Schema, Table
from latentree.em import Binning

CLASSES = (2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)
METHODS = (("clrg", "bic"), ("clrg", "cv"), ("clnj", "cv"), ("lcm", "cv"), ("refined", "bic"))


def frames() -> dict[str, Any]:
    """All ordinary tables that are found, by name."""
    import pandas as pd
    from sklearn import datasets

    found: dict[str, Any] = {}
    folder = data_folder()
    if folder is not None:
        for path in sorted((folder / "tables").glob("*.csv.gz")):
            found[path.name.removesuffix(".csv.gz")] = pd.read_csv(path)
    for name in ("iris", "wine", "breast_cancer", "diabetes", "linnerud"):
        found[name] = getattr(datasets, f"load_{name}")(as_frame=True).frame
    try:
        import statsmodels.datasets as sm
    except ImportError:
        print("statsmodels is not installed: its tables are left out")
        return found
    for name in sorted(sm.__all__):
        loader = getattr(getattr(sm, name), "load_pandas", None)
        if loader is not None:
            found[f"statsmodels {name}"] = loader().data
    return found


def defaults() -> None:
    """Fit every table with the defaults, and use the model in every way."""
    lines = []
    for name, frame in frames().items():
        clock = time.perf_counter()
        try:
            lines.append([name, *_used(frame), f"{time.perf_counter() - clock:.1f}"])
        except Exception as error:
            lines.append([name, f"{type(error).__name__}: {error}"[:90], *[""] * 5])
    show(["table", "rows × columns", "family", "kinds", "hidden", "LL a row", "seconds"], lines)


def _used(frame: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = lt.LatentTree(random_state=0).fit(frame)
        score = fitted.score(frame)
        fitted.transform(frame)
        fitted.impute(frame)
        with tempfile.TemporaryDirectory() as folder:
            fitted.model_.save(Path(folder) / "model.json")
            loaded = lt.load(Path(folder) / "model.json")
            lt.write_explorer(loaded, Path(folder) / "page.html")
    kinds = fitted.model_.schema.kinds
    shown = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    size = f"{len(frame)} × {frame.shape[1]}"
    return [size, fitted.model_.schema.family, shown, str(fitted.n_hidden_), f"{score:.2f}"]


# Held-out rows --------------------------------------------------------------------------------


def mixed_table(name: str) -> Table:
    """One of the tables as the door takes it, of the family mixed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lt.as_table(frames()[name], "mixed")


def halves(table: Table, seed: int) -> tuple[Table, Table]:
    """Return 70 % of the rows to learn from, and 30 % that are held out."""
    order = np.random.default_rng(seed).permutation(table.n_rows)
    cut = int(0.7 * table.n_rows)
    return table.take(np.sort(order[:cut])), table.take(np.sort(order[cut:]))


def held_out(
    names: list[str], seed: int, classes: list[int], keep: Path | None, methods: list[str]
) -> None:
    """Log-likelihood a held-out row of latentree's methods and of StepMix."""
    for name in names:
        lines = []
        train, test = halves(mixed_table(name), seed)
        kept = None if keep is None else keep / f"stepmix-{name}-{seed}.json"
        best, count, seconds = stepmix_best(train, test, classes, kept)
        lines.append([name, "StepMix", f"{count} classes", f"{best:.3f}", f"{seconds:.0f}"])
        for method, criterion in METHODS:
            if methods and method not in methods:
                continue
            clock = time.perf_counter()
            fit = learned(train, method, criterion=criterion)
            score = fit.score(test)
            states = f"{fit.n_hidden_} hidden, {int(fit.model_.n_states.sum())} states"
            took = f"{time.perf_counter() - clock:.0f}"
            lines.append([name, f"{method}, {criterion}", states, f"{score:.3f}", took])
        show(["table", "method", "size", "LL a row", "seconds"], lines)


def stepmix_best(
    train: Table, test: Table, classes: list[int], kept: Path | None
) -> tuple[float, int, float]:
    """Best log-likelihood a held-out row, its number of classes, and seconds for all."""
    if kept is not None and kept.exists():
        return tuple(json.loads(kept.read_text()))
    clock = time.perf_counter()
    scores = {}
    for count in classes:
        try:
            model = as_mixed(fit_stepmix(train, count), train)
        except lt.errors.ModelError:  # StepMix ended in NaN
            continue
        scores[count] = model.total_log_likelihood(as_reals(test)) / test.n_rows
    best = max(scores, key=scores.__getitem__)
    found = scores[best], best, time.perf_counter() - clock
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found))
    return found


def _split(table: Table) -> tuple[list[int], list[int]]:
    has_labels = table.cardinalities > 0
    return np.flatnonzero(has_labels).tolist(), np.flatnonzero(~has_labels).tolist()


def _units(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of numbers: StepMix's EM fails on columns in large units."""
    numbers = table.values[:, _split(table)[1]]
    return np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)


def fit_stepmix(table: Table, n_classes: int, max_iter: int = 500, n_init: int = 3) -> Any:
    """Fit StepMix: tables for columns with labels, normal densities for numbers."""
    import pandas as pd
    from stepmix import StepMix

    states, numbers = _split(table)
    order = states + numbers
    values = np.array(table.values[:, order])
    center, scale = _units(table)
    values[:, len(states) :] = (values[:, len(states) :] - center) / scale
    frame = pd.DataFrame(values, columns=[table.names[j] for j in order])
    suffix = "_nan" if table.has_missing else ""
    measurement = {}
    if states:
        measurement["states"] = {"model": f"categorical{suffix}", "n_columns": len(states)}
    if numbers:
        measurement["numbers"] = {"model": f"continuous{suffix}", "n_columns": len(numbers)}
    peer = StepMix(
        n_classes, measurement=measurement, n_init=n_init, max_iter=max_iter, random_state=0,
        progress_bar=0, verbose=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit(frame)


def as_reals(table: Table) -> Table:
    """Return the same values with counts taken as reals, as StepMix takes them."""
    kinds = tuple("real" if kind == "count" else kind for kind in table.schema.kinds)
    schema = Schema(table.names, "mixed", table.schema.labels, kinds)
    return Table(table.values, schema, table.weights)


def as_mixed(peer: Any, table: Table) -> lt.MixedTreeModel:
    """Return StepMix's classes as a mixed model, which scores cells as recorded."""
    states, numbers = _split(table)
    found = peer.get_parameters()
    m, parts = table.n_columns, [None] * (table.n_columns + 1)
    steps = np.array([_step(table.values[:, j]) for j in range(m)])
    if numbers:
        own = found["measurement"]["numbers"]
        center, scale = _units(table)
        for place, j in enumerate(numbers):
            mean = center[place] + scale[place] * own["means"][:, place]
            sd = scale[place] * np.sqrt(own["covariances"][:, place])
            parts[j] = lt.GaussianEmission(mean, sd, steps[j])
    if states:
        own = found["measurement"]["states"]
        width = int(own["max_n_outcomes"])
        pis = np.asarray(own["pis"]).reshape(len(found["weights"]), -1, width)
        for place, j in enumerate(states):
            rows = np.maximum(pis[:, place, : table.cardinalities[j]], 1e-6)
            parts[j] = rows / rows.sum(axis=1, keepdims=True)
    parts[m] = np.asarray(found["weights"])
    star = lt.Tree([m] * m + [-1], n_observed=m, names=table.names)
    return lt.MixedTreeModel(star, parts, table.schema.labels, as_reals(table).schema.kinds)


def _step(cells: np.ndarray) -> float:
    gaps = np.diff(np.unique(cells[~np.isnan(cells)]))
    return float(gaps[gaps > 1e-9 * np.nanmax(np.abs(cells))].min())


# Steps and groups -----------------------------------------------------------------------------


def steps(name: str, n_classes: int = 8) -> None:
    """Processor time of an EM step, beside StepMix and discrete data of the same size.

    The least of several measurements counts: others are those of a busy machine.
    """
    from latentree.distances import as_sample
    from latentree.em import Binning, make_problem, start_points

    table, _ = halves(mixed_table(name), 0)
    m = table.n_columns
    star = lt.Tree([m] * m + [-1], n_observed=m, names=table.names)
    lines = []
    for what, data in (("mixed", table), ("binned", Binning.of(table).table(table))):
        sample = as_sample(data)
        problem = make_problem(star, sample, n_classes, 1.0)
        rng = np.random.default_rng(0)
        point = start_points(problem, sample, None, 1, rng)[0]
        for _ in range(5):  # the first compiles
            point = problem.step(point).next_point
        found = [_milliseconds(lambda p=problem, x=point: [p.step(x) for _ in range(10)]) / 10
                 for _ in range(10)]  # fmt: skip
        lines.append([f"latentree, {what}", f"{min(found):.2f}"])
    short, n_short = _fit_milliseconds(table, n_classes, 5)
    long, n_long = _fit_milliseconds(table, n_classes, 35)
    lines.append(["StepMix", f"{(long - short) / (n_long - n_short):.2f}"])
    show([f"{name}, {n_classes} classes", "ms a step"], lines)


def _fit_milliseconds(table: Table, n_classes: int, most: int) -> tuple[float, int]:
    """Least time of some fits of StepMix, and their steps: it stops where nothing changes."""
    from threadpoolctl import threadpool_limits

    fits: list[Any] = []
    with threadpool_limits(1):  # threads of BLAS that wait take processor time, too
        found = [
            _milliseconds(lambda: fits.append(fit_stepmix(table, n_classes, most, n_init=1)))
            for _ in range(5)
        ]
    return min(found), fits[0].n_iter_


def _milliseconds(work: Callable[[], object]) -> float:
    clock = time.process_time()
    work()
    return (time.process_time() - clock) * 1e3


def groups() -> None:
    """Cut trees of questionnaires into groups and compare them with their key."""
    from sklearn.metrics import adjusted_rand_score

    lines = []
    for name, key, count in (("bfi", 1, 5), ("ability", None, 4)):
        frame = frames()[name]
        items = [c for c in frame.columns if name != "bfi" or (c[0] in "ACENO" and c[1:].isdigit())]
        for method in ("clrg", "clnj", "rg", "nj"):
            fitted = lt.LatentTree(method, random_state=0).fit(frame[items])
            cut = fitted.tree_.cut(count)
            number = {each: g for g, group in enumerate(cut.groups) for each in group}
            truth = [c[:key] if key else c.split(".")[0] for c in items]
            rand = adjusted_rand_score(truth, [number[c] for c in items])
            lines.append([name, method, f"{rand:.2f}", str(fitted.n_hidden_)])
    show(["table", "method", "adjusted Rand", "hidden"], lines)


# Simulated trees ------------------------------------------------------------------------------


LEARNERS = ("rg", "nj", "clrg", "clnj")
N_ROWS = 10_000


def trees(instances: int, seed: int) -> None:
    """Robinson-Foulds distances of mixed columns, and of the Gaussians behind them."""
    from latentree import simulate

    shapes = {
        "double star": simulate.double_star(80),
        "5-complete": simulate.complete_tree(5, 3),
        "HMM": simulate.hidden_markov(80),
    }
    lines = []
    for shape, tree in shapes.items():
        found: dict[str, list[list[float]]] = {}
        for instance in range(instances):
            rng = np.random.default_rng([seed, instance])
            gaussian, mixed = cut_gaussians(tree, rng)
            made = {"Gaussian": gaussian, "mixed, of Gaussians": mixed}
            made["mixed, of 3 states"] = columns_of_states(tree, rng)
            for what, table in made.items():
                found.setdefault(what, []).append(distances_to(tree, table))
        lines += [[shape, what, *_means(rows)] for what, rows in found.items()]
    for instance in range(instances):
        rng = np.random.default_rng([seed, instance])
        tree = simulate.random_latent_tree(40, rng)
        for hidden in (2, 4):
            for what, states in (("4 states", 4), ("2 to 6 states", rng.integers(2, 7, 40))):
                counts = np.full(tree.n_nodes, hidden)
                counts[:40] = states
                rows = simulate.random_discrete_model(tree, counts, rng).sample(N_ROWS, rng)
                table = lt.as_table(rows, "discrete")
                found.setdefault(f"{what}, {hidden} hidden", []).append(distances_to(tree, table))
    lines += [["random, m = 40", what, *_means(found[what])] for what in found if "hidden" in what]
    show(["tree", "columns", *LEARNERS], lines)


def searched(instances: int, seed: int, wanted: str) -> None:
    """Robinson-Foulds distances of ``refined`` where distances do not add up, and its BIC.

    Behind three states numbers show one direction of two, and behind four states columns of two or
    three states show too little. The search goes by the likelihood of binned numbers; its distance
    and its BIC are compared with those of the same search from the true tree. A column that is set
    apart, because nothing tells it from an independent one, does not count. Lines are left out
    whose name does not contain ``wanted``.
    """
    from latentree import simulate

    lines = []
    for instance in range(instances):
        rng = np.random.default_rng([seed, instance])
        made = {
            f"{name}, mixed of 3 states": (tree, columns_of_states(tree, rng))
            for name, tree in (
                ("double star", simulate.double_star(80)),
                ("5-complete", simulate.complete_tree(5, 3)),
            )
        }
        for what, (tree, table) in made.items():
            if wanted not in what:
                continue
            lines.append([what, *searched_both_ways(tree, table, instance)])
            print(*lines[-1], sep=" | ", flush=True)
    show(SEARCHED, sorted(lines, key=lambda line: line[0]))


SEARCHED = [
    "tree, columns", "instance", "RF", "set apart", "RF from truth", "BIC beside it", "seconds",
]  # fmt: skip


def searched_both_ways(tree: lt.Tree, table: Table, instance: int) -> list[str]:
    """Cells of a line: the search from its own start, and from the true tree."""
    codes = table if table.family == "discrete" else Binning.of(table).table(table)
    start = time.process_time()
    found = learned(codes, "refined")
    seconds = time.process_time() - start
    truth = lt.search.refine(tree, codes, random_state=0)
    ahead = found.report_.bic_score - truth.report.bic_score
    wrong, apart = different_splits(found.tree_, tree)
    of_truth, _ = different_splits(truth.model.tree, tree)
    return list(map(str, (instance, wrong, apart, of_truth, f"{ahead:+.0f}", f"{seconds:.0f}")))


def states(instances: int, seed: int) -> None:
    """Robinson-Foulds distances of ``refined`` on random trees of equal and unequal states.

    Columns of two states show less of a hidden variable than those of six. So tables with 2 to 6
    states, drawn for each column, are compared with tables that have 2, 3, 4, 5 or 6 states in all
    columns: the mean of these five has the same columns on average.
    """
    from latentree import simulate

    lines = []
    for instance in range(instances):
        rng = np.random.default_rng([seed, instance])
        tree = simulate.random_latent_tree(40, rng)
        uneven = rng.integers(2, 7, 40)
        for hidden in (2, 4):
            for what in ("2 to 6", 2, 3, 4, 5, 6):
                own = np.broadcast_to(uneven if what == "2 to 6" else what, 40)
                counts = np.append(own, np.full(tree.n_hidden, hidden))
                rows = simulate.random_discrete_model(tree, counts, rng).sample(N_ROWS, rng)
                table = lt.as_table(rows, "discrete")
                name = f"{hidden} hidden, {what} states"
                lines.append([name, *searched_both_ways(tree, table, instance)])
                print(*lines[-1], sep=" | ", flush=True)
    show(SEARCHED, sorted(lines, key=lambda line: line[0]))


def different_splits(found: lt.Tree, truth: lt.Tree) -> tuple[int, int]:
    """Count the splits of only one tree among the columns of the first's largest component.

    Returns this count, and how many columns are not in that component.
    """
    columns = found.components[: found.n_observed]
    kept = frozenset(np.flatnonzero(columns == np.bincount(columns).argmax()).tolist())
    sets = [
        {frozenset(side & kept for side in split) for split in tree.bipartitions()}
        for tree in (found, truth)
    ]
    wrong = sum(frozenset() not in split and len(split) == 2 for split in sets[0] ^ sets[1])
    return wrong, columns.size - len(kept)


def _means(rows: list[list[float]]) -> list[str]:
    return [f"{mean:.1f}" for mean in np.mean(rows, axis=0)]


def distances_to(tree: lt.Tree, table: Table) -> list[float]:
    """Robinson-Foulds distance of every learner's tree."""
    return [lt.metrics.robinson_foulds(learned(table, m).tree_, tree) for m in LEARNERS]


def random_kinds(m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Kinds of columns in random order, and their numbers of states."""
    kinds = np.resize(["real", "ordered", "category"], m)
    rng.shuffle(kinds)
    labels = np.where(kinds == "category", rng.integers(2, 7, m), 0)
    return kinds, np.where(kinds == "ordered", 5, labels)


def in_levels(x: np.ndarray, n_levels: int, rng: np.random.Generator) -> np.ndarray:
    """Cut numbers into levels; each has at least 1/(2K) of the rows, the rest at random."""
    shares = 0.5 / n_levels + 0.5 * rng.dirichlet(np.ones(n_levels))
    return np.searchsorted(np.quantile(x, np.cumsum(shares)[:-1]), x).astype(float)


def as_columns(values: np.ndarray, kinds: np.ndarray, states: np.ndarray) -> Table:
    names = tuple(f"x{j}" for j in range(len(kinds)))
    labels = tuple(tuple(range(count)) for count in states.tolist())
    return Table(values, Schema(names, "mixed", labels, tuple(kinds.tolist())))


def cut_gaussians(tree: lt.Tree, rng: np.random.Generator) -> tuple[Table, Table]:
    """Rows of a random Gaussian model, and the same with columns cut into levels and labels."""
    rows = lt.simulate.random_gaussian_model(tree, rng).sample(N_ROWS, rng)
    kinds, states = random_kinds(tree.n_observed, rng)
    values = rows.copy()
    for j in np.flatnonzero(states).tolist():
        values[:, j] = in_levels(rows[:, j], states[j], rng)
        if kinds[j] == "category":
            values[:, j] = rng.permutation(states[j])[values[:, j].astype(int)]
    return lt.as_table(rows), as_columns(values, kinds, states)


def columns_of_states(tree: lt.Tree, rng: np.random.Generator) -> Table:
    """Rows of a random model with 3 hidden states; centers of states are in random order."""
    m = tree.n_observed
    kinds, states = random_kinds(m, rng)
    counts = np.full(tree.n_nodes, 3)
    counts[:m] = np.where(kinds == "category", states, 3)
    rows = lt.simulate.random_discrete_model(tree, counts, rng).sample(N_ROWS, rng, hidden=True)
    values = rows[:, :m].astype(float)
    for j in np.flatnonzero(kinds != "category").tolist():
        source = j if tree.degrees[j] > 1 else tree.parent[j]  # an inner one has states of its own
        center = rng.permutation([-(1.5**0.5), 0.0, 1.5**0.5])[rows[:, source].astype(int)]
        rho = rng.uniform(0.2, 0.8)
        values[:, j] = rho * center + np.sqrt(1 - rho**2) * rng.standard_normal(N_ROWS)
        if kinds[j] == "ordered":
            values[:, j] = in_levels(values[:, j], 5, rng)
    return as_columns(values, kinds, states)


def distance_seconds(m: int = 2_000) -> None:
    """Seconds of processor time for all distances of mixed columns and of Gaussian ones."""
    rng = np.random.default_rng(0)
    tables = cut_gaussians(lt.simulate.double_star(m), rng)
    lines = []
    for what, table in zip(("Gaussian", "mixed"), tables, strict=True):
        lt.information_distances(table.take(np.arange(100)))  # compiles
        clock, processor = time.perf_counter(), time.process_time()
        lt.information_distances(table).dense()
        took = time.perf_counter() - clock, time.process_time() - processor
        lines.append([what, *(f"{seconds:.2f}" for seconds in took)])
    show([f"{m:,} columns", "seconds", "of processor time"], lines)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="all")
    parser.add_argument("--tables", nargs="*", default=["OFP", "HI", "Wages", "Males"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--instances", type=int, default=10, help="of simulated trees")
    parser.add_argument("--lines", default="", help="of searched: those whose name contains this")
    parser.add_argument("--methods", nargs="*", default=[], help="of held-out; default: all")
    parser.add_argument("--classes", nargs="*", type=int, default=CLASSES, help="of StepMix")
    parser.add_argument("--keep", type=Path, help="folder that keeps StepMix's scores")
    args = parser.parse_args()
    if args.part in ("all", "defaults"):
        defaults()
    if args.part in ("all", "held-out"):
        held_out(args.tables, args.seed, args.classes, args.keep, args.methods)
    if args.part in ("all", "step"):
        for name in args.tables:
            steps(name)
    if args.part in ("all", "groups"):
        groups()
    if args.part in ("all", "trees"):
        trees(args.instances, args.seed)
    if args.part in ("all", "searched"):
        searched(args.instances, args.seed, args.lines)
    if args.part in ("all", "states"):
        states(args.instances, args.seed)
    if args.part in ("all", "distances"):
        distance_seconds()


if __name__ == "__main__":
    main()

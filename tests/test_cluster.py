"""A real local cluster gives the models of one process, whatever its workers do."""

from __future__ import annotations

import gc
import os
import signal
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latentree as lt
from latentree import as_table, inference
from latentree.em import Budget
from latentree.errors import DataError, FileError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

# distributed leaves a socket open where the port of its status page is taken.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)

N, M = 1_200, 8
NAMES = [f"v{j}" for j in range(M)]
ROWS = 128


def shrink() -> None:
    """Many parts of little data; the workers need it as well as this process."""
    os.environ["LATENTREE_PART_CELLS"] = str(ROWS * M)


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Port .* already in use", UserWarning)
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        made = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
        )
        gc.collect()
    with made:
        yield made


@pytest.fixture
def client(cluster, monkeypatch):
    monkeypatch.setenv("LATENTREE_PART_CELLS", str(ROWS * M))
    with distributed.Client(cluster) as connected:
        connected.run(shrink)
        yield connected


def real(missing: float = 0.05) -> np.ndarray:
    X = lt.simulate.random_gaussian_model(lt.simulate.double_star(M), 0, (0.5, 0.8)).sample(N, 1)
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    return X


def coded() -> np.ndarray:
    model = lt.simulate.random_discrete_model(lt.simulate.double_star(M), 3, 0, (0.5, 0.8))
    return model.sample(N, 1)


def parameters(model) -> np.ndarray:
    if hasattr(model, "theta"):
        return model.theta
    return np.concatenate([model.correlations, model.means, model.scales])


def learn(X, family="auto", **options):
    learner = lt.LatentTree("clrg", family, random_state=0, max_steps=12)
    return learner.fit(X, **options)


def same(ours, theirs) -> None:
    assert ours.tree_.names == theirs.tree_.names
    np.testing.assert_array_equal(ours.tree_.parent, theirs.tree_.parent)
    np.testing.assert_allclose(
        parameters(ours.model_), parameters(theirs.model_), rtol=0, atol=1e-10
    )
    assert ours.report_.n_steps == theirs.report_.n_steps


def write(X, path) -> None:
    pq.write_table(pa.table({n: X[:, j] for j, n in enumerate(NAMES)}), path, row_group_size=300)


@pytest.mark.parametrize("data", [real, coded])
def test_files_on_workers_give_the_local_model(data, client, tmp_path):
    write(data(), tmp_path / "data.parquet")
    family = "discrete" if data is coded else "gaussian"
    local = learn(tmp_path / "data.parquet", family)
    same(learn(tmp_path / "data.parquet", family, client=client), local)
    if data is coded:
        return
    client.cluster.scale(4)
    client.wait_for_workers(4)
    client.run(shrink)
    same(learn(tmp_path / "data.parquet", client=client), local)
    client.cluster.scale(2)


def test_dask_collections_give_the_model_of_the_file_in_any_partition(client, tmp_path):
    X = coded()
    write(X, tmp_path / "data.parquet")
    local = learn(tmp_path / "data.parquet", "discrete")
    frame = pd.DataFrame(X, columns=NAMES)
    for n in (1, 5):
        same(learn(dd.from_pandas(frame, npartitions=n), "discrete", client=client), local)
    same(learn(dd.from_pandas(frame, npartitions=3), "discrete"), local)  # without a cluster
    arrays = learn(da.from_array(X, chunks=(500, 5)), "discrete", client=client)
    np.testing.assert_allclose(parameters(arrays.model_), parameters(local.model_), atol=1e-10)


def test_arrays_in_memory_go_to_the_workers(client):
    X = real()
    same(learn(X, client=client), learn(lt.as_parts(X)))
    weights = np.random.default_rng(0).uniform(0.5, 1.5, N)
    ours, theirs = (
        lt.LatentTree(random_state=0, max_steps=5).fit(X_, sample_weight=weights, client=engine)
        for X_, engine in ((X, client), (lt.as_parts(X), None))
    )
    same(ours, theirs)


def test_rows_of_weight_0_are_left_out_on_workers(client, tmp_path):
    X = real()
    weights = np.random.default_rng(0).uniform(0.5, 1.5, N)
    weights[::7] = 0.0
    weights[ROWS : 3 * ROWS] = 0.0
    known = weights > 0
    odd = np.where(known[:, None], X, 1e12)
    path = tmp_path / "data.parquet"
    write(odd, path)
    chunks = da.from_array(odd, chunks=(300, M))
    theirs = learn(lt.as_parts(as_table(X[known], names=NAMES, weights=weights[known])))
    for data, engine in ((odd, client), (chunks, client), (chunks, None), (path, client)):
        ours = learn(lt.as_parts(data, weights=weights, client=engine))
        np.testing.assert_array_equal(parameters(ours.model_), parameters(theirs.model_))


def test_fits_and_results_on_workers(client, tmp_path):
    X = real()
    path = tmp_path / "data.parquet"
    write(X, path)
    tree = lt.simulate.double_star(M)
    ours, theirs = (
        lt.fit_parameters(tree.renamed(NAMES), lt.as_parts(path, client=engine),
                          n_starts=1, random_state=0,
                          budget=Budget(max_steps=3)).model
        for engine in (client, None)
    )  # fmt: skip
    np.testing.assert_allclose(parameters(ours), parameters(theirs), rtol=0, atol=1e-10)
    for write_results in (
        inference.write_imputed,
        inference.write_scores,
        inference.write_posteriors,
    ):
        write_results(ours, path, tmp_path / "ours.parquet", client=client)
        write_results(ours, path, tmp_path / "theirs.parquet")
        first, second = (pq.read_table(tmp_path / f"{who}.parquet") for who in ("ours", "theirs"))
        assert first.equals(second)


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_worker_that_is_killed_changes_nothing(cluster, client, tmp_path):
    write(real(), tmp_path / "data.parquet")
    local = learn(tmp_path / "data.parquet")
    seen = []

    def kill(step: int, _: float) -> None:
        if step == 5:
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            seen.append(victim)

    parts = lt.as_parts(tmp_path / "data.parquet", client=client)
    fitted = lt.methods.learn_model(
        parts, "clrg", random_state=0, budget=Budget(max_steps=12), progress=kill
    )
    assert len(seen) == 1
    np.testing.assert_allclose(
        parameters(fitted.model), parameters(local.model_), rtol=0, atol=1e-10
    )


def test_errors_on_workers_name_the_file(client, tmp_path):
    X = real()
    X[800, 3] = np.inf
    write(X, tmp_path / "bad.parquet")
    with pytest.raises(FileError, match=r"bad\.parquet: rows 768 to 895: column 'v3'"):
        learn(tmp_path / "bad.parquet", client=client)


def test_a_scheduler_that_ends_is_an_error_that_says_so():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Port .* already in use", UserWarning)
        made = distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        )
    with made, distributed.Client(made.scheduler_address, timeout=1) as connected:
        parts = lt.as_parts(real(), client=connected)
        made.close()
        with pytest.raises(DataError, match="cluster cannot be reached"):
            learn(parts)

"""Kernels run compiled or as plain Python: by sizes alone, with the same results."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from latentree import simulate, structure
from latentree._kernels import compiling, threads
from latentree._kernels.compiling import Kernel, kernel, repeated, tiny
from latentree.data import as_table
from latentree.distances import information_distances
from latentree.errors import DataWarning
from latentree.inference import Expectation, Layout, compile_patterns


@kernel()
def whole_sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


@kernel(small=4)
def half_sum(values):
    return 0.5 * whole_sum(values)


def ran_compiled(function, *arguments):
    """Whether a call leads to compiled code."""
    called = []

    class Spy(Kernel):
        @property
        def compiled(self):
            called.append(self.__name__)
            return self.py_func

    Spy(function.py_func, False, function._small)(*arguments)
    return bool(called)


def test_sizes_decide_outside_any_context():
    assert ran_compiled(whole_sum, np.ones(2))
    assert not ran_compiled(half_sum, np.ones(4))
    assert ran_compiled(half_sum, np.ones(5))


def test_the_innermost_decision_counts_unless_work_is_repeated():
    with tiny(True):
        assert not ran_compiled(whole_sum, np.ones(2))
        assert not ran_compiled(half_sum, np.ones(5))
        with tiny(False):
            assert ran_compiled(half_sum, np.ones(2))
        assert not ran_compiled(whole_sum, np.ones(2))
    with repeated(), tiny(True):
        assert ran_compiled(half_sum, np.ones(2))


def test_the_way_is_left_after_an_error():
    with pytest.raises(ValueError, match="stop"), tiny(True):
        raise ValueError("stop")
    assert not compiling.is_interpreted()


def test_kernels_call_each_other_in_both_ways():
    values = np.array([1.0, 2.0, 4.0])
    with tiny(True):
        assert half_sum(values) == 3.5
    with tiny(False):
        assert half_sum(values) == 3.5


def test_threads_run_kernels_as_their_caller_does(monkeypatch):
    monkeypatch.setenv("LATENTREE_NUM_THREADS", "2")
    with repeated():
        assert all(threads.run(lambda part: ran_compiled(half_sum, np.ones(part)), [1, 2, 3, 4]))
    with tiny(True):
        assert not any(threads.run(lambda _: ran_compiled(whole_sum, np.ones(2)), range(4)))


def test_limits_of_openmp_are_kept(monkeypatch):
    importlib.import_module("sklearn.utils")  # which brings OpenMP
    for name in ("LATENTREE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert 1 <= threads.n_threads() <= os.cpu_count()
    with threadpool_limits(1):
        assert threads.n_threads() == 1
    with threadpool_limits(1, "blas"):  # what latentree itself does around its threads
        free = threads.n_threads()
    assert free == threads.n_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")  # joblib sets it in its processes
    assert threads.n_threads() == 1
    with threadpool_limits(1):
        monkeypatch.setenv("LATENTREE_NUM_THREADS", "3")
        assert threads.n_threads() == 3


def test_a_division_by_zero_is_infinite_without_a_warning():
    with tiny(True):
        assert np.float64(1.0) / np.float64(0.0) == np.inf


@pytest.mark.parametrize("method", structure.METHODS)
@given(m=st.integers(3, 20), seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_learners_find_the_same_tree_in_both_ways(method, m, seed):
    rng = np.random.default_rng(seed)
    model = simulate.random_gaussian_model(simulate.random_latent_tree(m, rng), rng)
    distances = information_distances(model.sample(400, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of independent blocks
        plain = structure.learn_structure(distances, method)
        with repeated():
            compiled = structure.learn_structure(distances, method)
    assert plain.equals(compiled, 1e-8)


@given(n_states=st.integers(2, 4), seed=st.integers(0, 10**6), gaps=st.booleans())
@example(n_states=4, seed=362879, gaps=False)  # a state does not occur
@settings(max_examples=15, deadline=None)
def test_expected_counts_are_the_same_in_both_ways(n_states, seed, gaps):
    rng = np.random.default_rng(seed)
    model = simulate.random_discrete_model(simulate.random_latent_tree(6, rng), n_states, rng)
    codes = model.sample(40, rng).astype(float)
    codes[0, 0] = n_states - 1  # so that all states may occur
    if gaps:
        codes[rng.random(codes.shape) < 0.2] = np.nan
    table = as_table(codes, "discrete")
    states = np.concatenate([table.cardinalities, np.full(model.tree.n_hidden, n_states)])
    results = []
    for way in (tiny(True), repeated()):
        with way:
            patterns = compile_patterns(model.tree, states, table)
            theta = np.random.default_rng(seed).random(patterns.layout.size)
            results.append(Expectation(patterns).run(patterns.layout.normalized(theta)))
    assert results[0].log_likelihood == pytest.approx(results[1].log_likelihood, rel=1e-12)
    np.testing.assert_allclose(results[0].counts, results[1].counts, rtol=1e-9, atol=1e-12)


@given(
    seed=st.integers(0, 10**6), gaps=st.booleans(), steepness=st.sampled_from([1.0, 80.0, 300.0])
)
@settings(max_examples=15, deadline=None)
def test_expected_counts_of_emissions_are_the_same_in_both_ways(seed, gaps, steepness):
    rng = np.random.default_rng(seed)
    tree = simulate.double_star(7)
    values = rng.integers(0, 20, (40, 7)) / 2.0  # equal values, so that patterns are shared
    if gaps:
        values[rng.random(values.shape) < 0.2] = np.nan
    states = np.array([0] * 7 + [3, 2])
    theta = rng.random(Layout(tree, states).size)
    results = []
    for way in (tiny(True), repeated()):
        with way:
            patterns = compile_patterns(tree, states, as_table(values))
            e = patterns.emissions
            logs = steepness * np.random.default_rng(seed).normal(size=e.n_likelihoods)
            theta = patterns.layout.normalized(theta)
            found = Expectation(patterns).run(theta, logs)  # whose counts take the place of logs
            results.append((found.log_likelihood, found.counts, logs))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def run_fresh(code, tmp_path):
    """Run code in a new process that has compiled nothing yet."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_small_table_needs_no_compiler(tmp_path):
    code = """
import sys
import numpy as np
import latentree as lt
x = np.random.default_rng(0).normal(size=(200, 1)) + np.random.default_rng(1).normal(size=(200, 7))
for method in ("clrg", "clnj", "rg", "nj", "cl_blind", "chow_liu", "hclt"):
    lt.structure.learn_structure(lt.information_distances(x), method)
print("numba" in sys.modules)
"""
    assert run_fresh(code, tmp_path) == "False\n"


@pytest.mark.parametrize("method", ["refined", "consensus", "lcm", "clrg"])
def test_a_small_table_of_mixed_kinds_needs_no_compiler(method, tmp_path):
    code = f"""
import sys
import latentree as lt
from latentree.datasets import load_holzinger
lt.LatentTree({method!r}).fit(load_holzinger().to_frame().head(150))
print("numba" in sys.modules)
"""
    assert run_fresh(code, tmp_path) == "False\n"


def test_the_first_compilation_is_announced_once(tmp_path):
    code = """
from latentree._kernels import compiling
compiling.on_first_compile.append(lambda: print("compiling"))

@compiling.kernel()
def double(x):
    return 2.0 * x

with compiling.tiny(True):
    print(double(1.0))
for value in (1.0, 2):
    print(double(value))
"""
    assert run_fresh(code, tmp_path) == "2.0\ncompiling\n2.0\n4.0\n"


def test_what_was_compiled_is_forgotten_when_any_kernel_changes(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("first.py", "inner/second.py"):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, ns=(10, 10))
    assert compiling.newest_source(tmp_path) == (10, 2)
    compiling.newest_source.cache_clear()
    os.utime(tmp_path / "inner/second.py", ns=(11, 11))
    assert compiling.newest_source(tmp_path) == (11, 2)
    folder = Path(compiling.__file__).parent
    stamp = whole_sum.compiled._cache._cache_file._source_stamp
    assert stamp == compiling.newest_source(folder)

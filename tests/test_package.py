"""The package as a whole: what an import costs, what it needs, where it runs."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import latentree
from latentree.errors import LatentTreeError, MissingExtraError, import_extra

ROOT = Path(__file__).parents[1]
PACKAGE = Path(latentree.__file__).parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages([str(PACKAGE)], "latentree.")
    if not module.name.endswith("__main__")
]


def run(code: str, **environment: str) -> str:
    """Run code in a new interpreter, warnings as errors, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = ["numba", "numpy", "matplotlib", "pandas", "dask", "sklearn", "scipy", "networkx"]


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, latentree; dir(latentree); print(set({HEAVY}) & set(sys.modules))"
    assert run(code).strip() == "set()"


def test_learning_from_arrays_loads_no_optional_library():
    code = (
        "import sys, latentree.simulate as s;"
        "s.random_gaussian_model(s.double_star(6), 0).sample(9, 0);"
        "print({'matplotlib', 'pandas', 'polars', 'dask', 'sklearn'} & set(sys.modules))"
    )
    assert run(code).strip() == "set()"


@pytest.mark.parametrize("name", latentree.__all__)
def test_public_names_resolve(name):
    assert getattr(latentree, name) is not None
    assert name in dir(latentree)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'tree_of_life'"):
        _ = latentree.tree_of_life


def test_version():
    assert latentree.__version__ == importlib.metadata.version("latentree")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


# Extras -----------------------------------------------------------------------------------------


def test_a_missing_library_names_its_extra(monkeypatch):
    for module in ("matplotlib", "matplotlib.pyplot"):  # as if it were not installed
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        import_extra("matplotlib.pyplot", "plot")
    message = "this needs matplotlib, which is not installed: pip install 'latentree[plot]'"
    assert str(caught.value) == message
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, LatentTreeError)


def test_an_installed_library_is_imported():
    assert import_extra("json", "plot") is json


def test_extras_that_errors_name_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = project["optional-dependencies"]
    source = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    named = re.findall(r"""import_extra\(\s*["'][\w.]+["'],\s*["'](\w+)["']""", source)
    assert set(named) <= set(known)
    assert {"plot", "cli", "data", "dask", "dev", "all"} <= set(known)


# Kernels ----------------------------------------------------------------------------------------

STAR = """
import latentree
from latentree._kernels.compiling import repeated
with repeated():  # so small a tree would need no compiler
    tree = latentree.Tree([3, 3, 3, -1], n_observed=3)
    diameter = tree.diameter()
"""


def test_kernels_run_where_no_cache_can_be_written(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "latentree", ignore=shutil.ignore_patterns("__pycache__"))
    # Files stand where folders would have to be made; permissions would not stop root.
    nowhere = tmp_path / "latentree" / "_kernels" / "__pycache__"
    nowhere.write_text("not a folder")
    code = (
        STAR + "from latentree._kernels import tree as kernels;"
        "print(latentree.__file__, type(kernels.preorder.compiled._cache).__name__, diameter)"
    )
    printed = run(
        code,
        PYTHONPATH=str(tmp_path),
        PYTHONDONTWRITEBYTECODE="1",
        NUMBA_CACHE_DIR=str(nowhere),
        XDG_CACHE_HOME=str(nowhere),
        HOME=str(nowhere),
    )
    assert printed.split() == [str(tmp_path / "latentree" / "__init__.py"), "NullCache", "2"]


def test_kernels_are_cached_where_that_is_possible(tmp_path):
    run(STAR, NUMBA_CACHE_DIR=str(tmp_path))
    assert list(tmp_path.rglob("tree.preorder*.nbi"))


RESULTS = """
import hashlib, numpy as np
from latentree import metrics, simulate
rng = np.random.default_rng(0)
tree = simulate.random_lengths(simulate.random_latent_tree(300, rng), rng)
gaussian = simulate.random_gaussian_model(tree, rng)
discrete = simulate.random_discrete_model(tree, 3, rng)
X, Y = gaussian.sample(2000, 1), discrete.sample(2000, 1)
hidden = np.where(rng.random(X.shape) < 0.01, np.nan, X)
results = [
    tree.path_lengths(), X, Y,
    gaussian.log_likelihood(X), gaussian.log_likelihood(hidden), gaussian.posterior(hidden).mean,
    discrete.log_likelihood(Y), discrete.posterior(Y).probabilities,
    *discrete.expected_counts(Y).tables,
]
print([hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest() for part in results])
"""


def test_results_do_not_depend_on_the_number_of_threads():
    alone = run(RESULTS, LATENTREE_NUM_THREADS="1")
    assert alone.count(",") > 300
    assert run(RESULTS, LATENTREE_NUM_THREADS="3") == alone

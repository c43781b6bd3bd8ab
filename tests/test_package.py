"""The package as a whole: what an import costs, what it needs, where it runs."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


# Documentation of public names ------------------------------------------------------------------

REFERENCE = ROOT / "docs" / "reference" / "functions.rst"
SECTIONS = {
    "Parameters", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References",
    "Examples", "Attributes",
}  # fmt: skip


class Public(NamedTuple):
    """A public name, as the reference page shows it."""

    name: str
    object: Any
    is_member: bool = False
    """Whether it is a method or an attribute of a class: an example is optional then."""


def directives(text: str) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """Kind, name and options of each auto directive; an option without a value is an empty list."""
    for block in re.split(r"^\.\. ", text, flags=re.MULTILINE)[1:]:
        head = re.match(r"auto(\w+):: ([\w.]+)\n", block)
        if head:
            found = re.findall(r"^   :([\w-]+):((?:.*\n(?:    .*\n)*)?)", block, re.MULTILINE)
            yield head[1], head[2], {key: re.findall(r"\w+", value) for key, value in found}


def members(owner: Any, options: dict[str, list[str]]) -> list[str]:
    """Names that a directive shows: those listed, or all public ones."""
    if "members" not in options:
        return []
    if options["members"]:
        return options["members"]
    if inspect.ismodule(owner):
        own = [name for name, value in vars(owner).items() if defined_in(value, owner)]
        names = getattr(owner, "__all__", own)
    else:
        names = dir(owner) if "inherited-members" in options else vars(owner)
    # Parameters describe the fields of a dataclass, of which those with a default are attributes.
    left_out = {*options.get("exclude-members", []), *getattr(owner, "__dataclass_fields__", {})}
    return [n for n in names if n[0] != "_" and n not in left_out]


def defined_in(value: Any, module: Any) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def public_names() -> Iterator[Public]:
    for kind, name, options in directives(REFERENCE.read_text("utf-8")):
        owner = pkgutil.resolve_name(name)
        yield Public(name, owner)
        for member in members(owner, options):
            static = inspect.getattr_static(owner, member)
            yield Public(f"{name}.{member}", static, is_member=kind == "class")
            if kind == "module" and inspect.isclass(static):
                for method in members(static, {"members": []}):
                    yield Public(f"{name}.{member}.{method}", vars(static)[method], is_member=True)


PUBLIC = {public.name: public for public in public_names()}


def missing_sections(public: Public) -> list[str]:
    """What the docstring of a public name lacks."""
    thing = public.object
    if isinstance(thing, classmethod | staticmethod):
        thing = thing.__func__
    doc = inspect.getdoc(thing) or ""
    if not doc.split("\n")[0].strip():
        return ["summary"]
    sections = set(re.findall(r"^(\w[\w ]*)\n-{3,}$", doc, re.MULTILINE))
    wrong = [f"section {name!r} is not of numpy style" for name in sorted(sections - SECTIONS)]
    return wrong + [name for name in needed_sections(public, thing) if name not in sections]


def needed_sections(public: Public, thing: Any) -> list[str]:
    if inspect.isclass(thing):
        exception = issubclass(thing, Exception)
        return ["Examples"] if exception or not parameters(thing) else ["Parameters", "Examples"]
    if not inspect.isfunction(thing):  # modules, properties, attributes
        return []
    needed = ["Parameters"] if parameters(thing) else []
    if inspect.signature(thing).return_annotation not in ("None", None):
        needed.append("Returns")
    return needed if public.is_member else [*needed, "Examples"]


def parameters(thing: Any) -> list[str]:
    if getattr(thing, "_is_protocol", False):
        return []
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    missing = missing_sections(PUBLIC[name])
    assert not missing, f"the docstring of {name} lacks: {', '.join(missing)}"


PROMISED = """
LatentTree.fit LatentTree.score LatentTree.transform LatentTree.bic
LatentTree.sample LatentTree.impute LatentTree.predict_proba
LatentTree.predict_column LatentTree.column_proba information_distances fit_parameters
plot_tree load write_explorer structure.chow_liu structure.neighbor_joining
structure.recursive_grouping
structure.cl_blind structure.cl_grouping structure.hidden_chow_liu
search.regularized_cl_grouping search.latent_class
search.binary_tree search.refine metrics.robinson_foulds metrics.same_structure
metrics.kl_divergence metrics.bic_score simulate.double_star simulate.hidden_markov
simulate.complete_tree simulate.random_latent_tree simulate.random_gaussian_model
simulate.random_discrete_model Tree.path_lengths GaussianTreeModel.save DiscreteTreeModel.posterior
models.TreeModel.sample errors.TreeError
"""
"""Names that do not change."""


@pytest.mark.parametrize("name", PROMISED.split())
def test_the_reference_shows_what_is_promised(name):
    assert f"latentree.{name}" in PUBLIC


@pytest.mark.parametrize(
    ("doc", "missing"),
    [
        (None, ["summary"]),
        ("Say it.", ["Parameters", "Returns", "Examples"]),
        ("Say it.\n\nArgs\n----\na", ["section 'Args' is not of numpy style", "Parameters"]),
        ("Say it.\n\nParameters\n---\na\n\nReturns\n---\nb\n\nExamples\n---\nc", []),
    ],
)
def test_missing_sections_are_found(doc, missing):
    def function(a: int) -> int:
        return a

    function.__doc__ = doc
    assert missing_sections(Public("function", function))[: len(missing) or 9] == missing


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

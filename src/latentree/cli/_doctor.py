"""``doctor``: what a report of a fault needs to say about the machine, and a short self-test."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from latentree import __version__
from latentree._kernels import tree as kernels
from latentree._kernels.compiling import repeated, tiny
from latentree._kernels.threads import n_threads
from latentree._memory import available, format_size
from latentree.cli._running import DONE, MISTAKE
from latentree.cli._screen import Screen
from latentree.datasets import load_holzinger
from latentree.methods import learn_model

_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+)[^;]*(?:;.*extra == [\"'](?P<extra>\w+)[\"'])?")
_COLLECTIONS = {"all", "dev", "docs"}
"""Extras that hold other extras, or what developers need."""

_SETTINGS = ("LATENTREE_", "NUMBA_", "OPENBLAS_", "OMP_", "MKL_")
"""How the names of environment variables begin that change how latentree runs."""


def doctor(screen: Screen) -> int:
    """Print what is installed and how it runs; return the exit code of the self-test."""
    facts = {name: value for section in (_versions, _machine) for name, value in section()}
    tests = dict(_self_test())
    if screen.as_json:
        screen.json({**facts, "self-test": tests})
    else:
        lines = {**facts, **{f"self-test: {name}": result for name, result in tests.items()}}
        screen.text("\n".join(f"{name}: {value}" for name, value in lines.items()))
    return DONE if all(result.startswith("ok") for result in tests.values()) else MISTAKE


def _versions() -> Iterator[tuple[str, str]]:
    """Yield versions: of latentree, Python and the system, of what is needed, of each extra."""
    yield "latentree", __version__
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    extras: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires("latentree") or ():
        found = _REQUIREMENT.match(requirement)
        if found is not None:
            extras.setdefault(found["extra"] or "", []).append(found["package"])
    yield "dependencies", ", ".join(map(_installed, [*extras.pop(""), "llvmlite"]))
    for extra in sorted(extras.keys() - _COLLECTIONS):
        yield f"extra {extra}", ", ".join(map(_installed, extras[extra]))
    yield "frames", ", ".join(map(_installed, ("pandas", "polars")))


def _installed(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed"


def _machine() -> Iterator[tuple[str, str]]:
    """Yield where compiled code is kept, and what there is to compute with."""
    yield "cache", _cache_state()
    yield "threads", f"{n_threads()} of {os.cpu_count()} processors"
    yield "memory", f"{format_size(available())} available"
    for library in threadpoolctl.threadpool_info():
        name, version = library["internal_api"], library.get("version")
        yield library["user_api"], f"{name} {version}, {library['num_threads']} threads"
    settings = {k: v for k, v in os.environ.items() if k.startswith(_SETTINGS)}
    yield "settings", ", ".join(f"{k}={v}" for k, v in sorted(settings.items())) or "none"


def _cache_state() -> str:
    """Say where compiled code is kept, and whether it can be."""
    kernel: Any = kernels.preorder
    folder = getattr(kernel.compiled._cache, "cache_path", None)
    if folder is None:
        return "none can be written: code is compiled again in every process"
    shown = _from_home(folder)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return f"{shown} (can be written)"
    except OSError as error:
        return f"{shown} (cannot be written: {error.strerror})"


def _from_home(folder: str) -> str:
    """Return a path without the name of the user, for reports that others read."""
    home = os.path.expanduser("~")
    return folder.replace(home, "~", 1) if folder.startswith(home + os.sep) else folder


def _self_test() -> Iterator[tuple[str, str]]:
    """Yield how two things went that everything depends on."""
    for name, test in (("compiled code", _check_compiler), ("learning", _check_learning)):
        started = time.perf_counter()
        try:
            said = test()
        except Exception as error:  # whatever it is, the report has to say it
            yield name, f"FAILED: {type(error).__name__}: {error}"
        else:
            yield name, f"{said} ({time.perf_counter() - started:.1f} s)"


def _check_compiler() -> str:
    """Compare a compiled kernel with the Python function that it is."""
    order, parent = np.arange(5), np.array([-1, 0, 0, 1, 1])
    length = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    with tiny(True):
        expected = kernels.diameter(order, parent, length)
    with repeated():
        found = kernels.diameter(order, parent, length)
    return "ok" if found == expected else f"FAILED: {found} in place of {expected}"


def _check_learning() -> str:
    """Learn the bundled table, whose three abilities are known."""
    model, _ = learn_model(load_holzinger().table, "clnj", random_state=0)
    n_hidden = model.tree.n_hidden
    return "ok" if n_hidden == 3 else f"FAILED: {n_hidden} hidden variables in place of 3"

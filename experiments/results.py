"""Results on disk: a unit of work is measured once, for as long as nothing changes that made it."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import latentree
from latentree._disk import write_bytes

LIBRARY = Path(latentree.__file__).parent
HERE = Path(__file__).parent
ALL = tuple(
    place.name
    for place in sorted(LIBRARY.iterdir())
    if place.name not in ("__main__.py", "cli", "explorer", "formats", "plot", "py.typed")
)
"""Parts of the library behind experiments with data: all but files, pictures and commands."""
ABOVE_LEARNERS = ("datasets", "estimator.py", "methods.py", "search")
LEARNERS = tuple(part for part in ALL if part not in ABOVE_LEARNERS)
"""Parts behind experiments with drawn samples: those that the learners may import."""


@cache
def version(experiment: str, library: Path = LIBRARY) -> str:
    """Name the code behind an experiment; comments and layout are no part of it."""
    # The layers of the library import downwards only, so that parts above do not matter.
    files = [HERE / f"{experiment}.py", HERE / "samples.py"]
    for part in importlib.import_module(f"experiments.{experiment}").PARTS:
        place = library / part
        files += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    digest = hashlib.sha256()
    for file in files:
        digest.update(_code(file).encode())
    return digest.hexdigest()[:12]


@cache
def _code(file: Path) -> str:
    return ast.dump(ast.parse(file.read_text("utf-8")))


@dataclass(frozen=True)
class Unit:
    """One piece of work: which experiment, and the parameters of its ``measure``."""

    experiment: str
    parameters: dict[str, Any] = field(hash=False)

    @property
    def key(self) -> str:
        """A name of these parameters."""
        text = json.dumps(self.parameters, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class Store:
    """A folder of results, one file a unit, under the version of the code that measured them."""

    def __init__(self, folder: Path, version: Callable[[str], str] = version) -> None:
        self.folder, self.version = folder, version

    def path(self, unit: Unit) -> Path:
        """Return the file of a unit's result, whether it is there or not."""
        return self.folder / unit.experiment / self.version(unit.experiment) / f"{unit.key}.json"

    def read(self, unit: Unit) -> dict[str, Any] | None:
        """Return what was measured, None if nothing was."""
        try:
            record: dict[str, Any] = json.loads(self.path(unit).read_bytes())
        except FileNotFoundError:
            return None
        return record

    def write(self, unit: Unit, record: dict[str, Any]) -> None:
        """Keep what was measured; the file appears complete or not at all."""
        path = self.path(unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps({**record, "parameters": unit.parameters}).encode())

    def known(self, units: Iterable[Unit]) -> list[dict[str, Any]]:
        """Return the records of those units that were measured, in their order."""
        return [record for unit in units if (record := self.read(unit)) is not None]

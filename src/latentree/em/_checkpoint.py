"""A fit on its way, kept in a file so that it can go on after an end that nobody wanted.

The file is an ``.npz`` of plain arrays and one text of JSON: it holds every start's point, history
and acceleration, and what identifies the fit. Whatever is in it is data; nothing is executed.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from latentree._disk import replacing
from latentree.distances import Statistics
from latentree.em._driver import DriverState, Run
from latentree.errors import FileError
from latentree.tree import Tree
from latentree.typing import PathLike

FORMAT = "latentree checkpoint 1"

Identity = Mapping[str, Any]
"""What two fits must share for one to go on where the other stopped: plain values by name."""


class Checkpoint:
    """Saves the state of a driver, at most once in ``every`` seconds, and reads it again."""

    def __init__(self, path: PathLike, identity: Identity, every: float = 10.0) -> None:
        self.path = Path(path)
        self.identity = json.loads(json.dumps(dict(identity)))
        self.every = every
        self._saved = time.monotonic()

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self.path.exists()

    def load(self) -> DriverState | None:
        """Return the state that was saved; None if there is no file yet.

        Raises
        ------
        FileError
            When it is no checkpoint, or that of other data or settings.
        """
        if not self.exists():
            return None
        arrays, about = self._read()
        for name, mine in self.identity.items():
            theirs = about["identity"].get(name)
            if theirs != mine:
                what = _difference(name, theirs, mine)
                raise FileError(
                    f"{self.path}: is the checkpoint of another fit ({what}): name another file, "
                    "or remove it to begin anew"
                )
        runs = [
            Run(
                arrays[f"point{i}"],
                arrays[f"trace{i}"].tolist(),
                float.fromhex(entry["objective"]),
                entry["n_steps"],
                entry["converged"],
                float.fromhex(entry["longest_jump"]),
                entry["calm"],
            )
            for i, entry in enumerate(about["runs"])
        ]
        return DriverState(runs, about["n_steps"], about["final"])

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            about = json.loads(str(arrays.pop("about")))
            if about["format"] != FORMAT:
                raise FileError(
                    f"{self.path}: is of the format {about['format']!r}, not {FORMAT!r}"
                )
        except (zipfile.BadZipFile, ValueError, KeyError, EOFError, TypeError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.path}: is no checkpoint, or is damaged: {error}") from None
        return arrays, about

    def save(self, state: DriverState, now: bool = False) -> None:
        """Write the state, all or nothing; if it is time, or at once."""
        if not now and time.monotonic() - self._saved < self.every:
            return
        about = {
            "format": FORMAT,
            "identity": self.identity,
            "n_steps": state.n_steps,
            "final": state.final,
            "runs": [
                {
                    "objective": run.objective.hex(),  # to the last bit, infinities too
                    "n_steps": run.n_steps,
                    "converged": bool(run.converged),
                    "longest_jump": run.longest_jump.hex(),
                    "calm": run.calm,
                }
                for run in state.runs
            ],
        }
        arrays = {f"point{i}": run.point for i, run in enumerate(state.runs)}
        arrays |= {f"trace{i}": np.array(run.trace) for i, run in enumerate(state.runs)}
        with replacing(self.path) as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        self._saved = time.monotonic()


def _difference(name: str, theirs: Any, mine: Any) -> str:
    if name in ("data", "tree", "start"):
        return f"its {name} differs"
    return f"its {name} is {theirs}, here it is {mine}"


# What identifies a fit --------------------------------------------------------------------------


def fingerprint(*arrays: Any) -> str:
    """Return a short text that arrays of other types, shapes or values do not give."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def data_fingerprint(statistics: Statistics) -> str:
    """Fingerprint of the sums over all rows."""
    sums = [getattr(statistics.sums, each.name) for each in fields(statistics.sums)]
    arrays = [value for value in sums if isinstance(value, np.ndarray)]
    return fingerprint(np.array([statistics.n_rows, statistics.total_weight]), *arrays)


def tree_fingerprint(tree: Tree) -> str:
    """Fingerprint of a tree: its edges, lengths and names."""
    return fingerprint(tree.parent, tree.length, np.array(tree.names, np.str_))

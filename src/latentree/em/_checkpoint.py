"""A fit on its way, kept in a file so that it can go on after an end that nobody wanted.

The file is an ``.npz`` of plain arrays and one text of JSON: it holds every start's point, history
and acceleration, and what identifies the fit. Whatever is in it is data; nothing is executed.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from latentree._disk import replacing
from latentree._plain import reason_of, shown
from latentree.distances import Statistics
from latentree.em._driver import DriverState, Run
from latentree.errors import DataWarning, FileError
from latentree.tree import Tree
from latentree.typing import FloatArray, PathLike

FORMAT = "latentree checkpoint 1"

Identity = Mapping[str, Any]
"""What two fits must share for one to go on where the other stopped: plain values by name."""


class Checkpoint:
    """Saves the state of a driver, at most once in ``every`` seconds, and reads it again."""

    def __init__(
        self,
        path: PathLike,
        identity: Identity,
        is_point: Callable[[FloatArray], bool],
        every: float,
    ) -> None:
        self.path = Path(path)
        self.is_point = is_point
        self.identity = json.loads(json.dumps(dict(identity)))
        self.every = every
        self._saved = time.monotonic()
        self._has_warned = False

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
        try:
            arrays, about = self._read()
            if about["format"] != FORMAT:
                raise FileError(f"is of the format {shown(about['format'])}, not {FORMAT!r}")
            self._refuse_other(about["identity"])
            runs = [_run(arrays, i, entry) for i, entry in enumerate(about["runs"])]
            final = _whole(about["final"], -1, len(runs) - 1)
            points = [point for run in runs for point in (run.point, run.top) if point is not None]
            if not runs or not all(map(self.is_point, points)):
                raise ValueError("its points are none of this model")
            return DriverState(runs, _whole(about["n_steps"]), final)
        except FileError as error:
            raise FileError(f"{self.path}: {error}") from None
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        except _DAMAGE as error:
            raise FileError(
                f"{self.path}: is no checkpoint, or is damaged: {reason_of(error)}"
            ) from None

    def _refuse_other(self, identity: dict[str, Any]) -> None:
        for name, mine in self.identity.items():
            theirs = identity.get(name)
            if theirs != mine:
                raise FileError(
                    f"is the checkpoint of another fit ({_difference(name, theirs, mine)}): name "
                    "another file, or remove it to begin anew"
                )

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return arrays, json.loads(str(arrays.pop("about")))

    def save(self, state: DriverState, now: bool = False) -> None:
        """Write the state, all or nothing; if it is time, or at once.

        A disk that does not take it costs the checkpoint, not the fit.
        """
        if not now and time.monotonic() - self._saved < self.every:
            return
        try:
            self._write(state)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                reason = error.strerror or error
                warnings.warn(
                    f"{self.path}: the checkpoint cannot be written ({reason}); the fit goes on",
                    DataWarning,
                    stacklevel=2,
                )
        self._saved = time.monotonic()

    def _write(self, state: DriverState) -> None:
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
        tops = {f"top{i}": run.top for i, run in enumerate(state.runs) if run.top is not None}
        arrays |= tops
        with replacing(self.path) as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]


def _difference(name: str, theirs: Any, mine: Any) -> str:
    if name in ("data", "tree", "start"):
        return f"its {name} differs"
    return f"its {name} is {shown(theirs)}, here it is {mine}"


# What a file may hold ---------------------------------------------------------------------------

_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, LookupError, EOFError, TypeError, AttributeError,
    OverflowError, NotImplementedError, MemoryError, RecursionError, struct.error, RuntimeError,
)  # fmt: skip
"""What reading a damaged file raises."""


def _run(arrays: Mapping[str, Any], number: int, entry: Mapping[str, Any]) -> Run:
    """Return a run as it was saved; what could not have been saved raises."""
    trace = _vector(arrays[f"trace{number}"], "trace")
    jump = float.fromhex(entry["longest_jump"])
    if not (0.0 < jump < np.inf):
        raise ValueError(f"longest_jump is {jump}")
    return Run(
        _vector(arrays[f"point{number}"], "point"),
        trace.tolist(),
        _objective(entry["objective"]),
        _whole(entry["n_steps"], trace.size),
        _truth(entry["converged"]),
        jump,
        _whole(entry["calm"]),
        _vector(arrays[f"top{number}"], "point") if f"top{number}" in arrays else None,
    )


def _vector(array: Any, name: str) -> FloatArray:
    if array.dtype != np.float64 or array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"a {name} is no vector of finite numbers")
    return np.ascontiguousarray(array)


def _objective(text: str) -> float:
    value = float.fromhex(text)
    if np.isnan(value) or value == np.inf:
        raise ValueError(f"an objective is {value}")
    return value


def _whole(value: Any, lowest: int = 0, highest: int = 2**53) -> int:
    if type(value) is not int or not lowest <= value <= highest:
        raise ValueError(f"{shown(value)} is not from {lowest} to {highest}")
    return value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{shown(value)} is not true or false")
    return value


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

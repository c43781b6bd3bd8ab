"""Pictures and pages, and whether they can be written."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from latentree._disk import try_writing
from latentree.cli._running import os_message
from latentree.cli._screen import Screen
from latentree.data import STANDARD, list_files
from latentree.errors import FileError, LatentTreeError, import_extra
from latentree.models import Model, TreeMixture

PICTURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".eps", ".webp", ".tif", ".tiff")
_DPI = 200
"""Dots an inch of pictures made of pixels: sharp in print."""

PlotOption = Any
"""A value of an option of :func:`latentree.plot_tree`, which checks it."""


def check_target(path: str) -> None:
    """Raise for a file that cannot be written: better before the work than after."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}: make it first")
    if Path(path).is_dir():
        raise FileError(f"{path}: is a folder, not a file")
    try_writing(path)


class Target(NamedTuple):
    """A file that was asked for, or None, and what writes it."""

    path: str | None
    write: Callable[[str], None]


def write_targets(screen: Screen, model: Target, *others: Target) -> Written:
    """Write a model and what goes with it, as far as that works.

    Where something fails and the model is in no file, it is written to a temporary folder: nobody
    should have to learn it again.
    """
    written, failures = [], []
    for path, write in (model, *others):
        if path is None:
            continue
        try:
            write(path)
        except (OSError, LatentTreeError) as error:
            failures.append(os_message(error) if isinstance(error, OSError) else str(error))
        else:
            written.append(path)
            screen.tell(f"wrote {path}")
    if failures and model.path not in written:
        failures += _rescue(model)
    return Written(written, failures)


class Written(NamedTuple):
    """Files that were written, and messages about those that were not."""

    paths: Sequence[str]
    failures: Sequence[str]

    def raise_failures(self) -> None:
        """Raise an error if a file could not be written."""
        if self.failures:
            raise FileError("; ".join(self.failures))


def _rescue(model: Target) -> list[str]:
    """Write a model to a temporary folder, and say where it is; nothing if that fails too."""
    with contextlib.suppress(OSError, LatentTreeError):
        folder = Path(tempfile.mkdtemp(prefix="latentree-"))
        path = folder / Path(model.path or "model.json").name
        try:
            model.write(str(path))
        except BaseException:
            folder.rmdir()
            raise
        return [f"the model is in {path}"]
    return []


def check_apart(written: Iterable[str | None], read: Sequence[str]) -> None:
    """Raise when a file is to be written that is read as well, or that is to be written twice."""
    taken = {_identity(path): "is read, and would be lost" for path in _files(read)}
    for path in written:
        if path is None or path == STANDARD or _is_device(path):
            continue
        reason = taken.get(_identity(path))
        if reason is not None:
            raise FileError(f"{path}: {reason}: write to another file")
        taken[_identity(path)] = "is to be written twice"


def _files(paths: Sequence[str]) -> list[str]:
    """Return the files behind paths, those in folders too."""
    return [file for path in paths if Path(path).exists() for file in list_files(path)]


def _is_device(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _identity(path: str) -> object:
    """Return what two paths of one file have in common."""
    if Path(path).is_file():
        found = Path(path).stat()
        return found.st_dev, found.st_ino
    return Path(path).resolve()


def check_picture(path: str) -> None:
    """Raise when matplotlib is absent or the suffix is none of a picture."""
    if Path(path).suffix.lower() not in PICTURES:
        raise FileError(
            f"{path}: the suffix {Path(path).suffix!r} names no picture: use one of "
            f"{', '.join(PICTURES)}"
        )
    # It complains of a home that it cannot write to, and copes.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import_extra("matplotlib", "plot").use("Agg")


def write_picture(
    model: Model, path: str, size: tuple[float, float] | None = None, **options: PlotOption
) -> None:
    """Draw a model into a file, which appears complete or not at all; ``size`` is in inches."""
    check_picture(path)
    plt = import_extra("matplotlib.pyplot", "plot")
    from latentree.plot import plot_tree

    ax = None
    if size is not None:
        colors = import_extra("latentree.plot._theme", "plot")
        paper = colors.theme_of(options.get("theme", "auto"), None).paper
        ax = plt.figure(figsize=size, facecolor=paper).add_axes((0, 0, 1, 1))
    picture = plot_tree(model, ax, **options)
    picture.save(path, _DPI)
    plt.close(picture.ax.figure)


def read_groups(path: str, model: Model | TreeMixture) -> dict[str, str]:
    """Return the groups of variables from a CSV file: names and groups in its first two columns."""
    known = set(model.schema.names)
    found = {row[0]: row[1] for row in _csv_rows(path) if len(row) > 1 and row[0] in known}
    if not found:
        raise FileError(
            f"{path}: no line begins with the name of a variable: say name,group in every line"
        )
    return found


def read_annotations(path: str, model: Model | TreeMixture) -> dict[str, dict[str, str]]:
    """Return what a CSV file says of variables, by the titles over its columns."""
    titles, *rows = _csv_rows(path) or [[]]
    known = set(model.schema.names)
    found = [row for row in rows if row[0] in known]
    if not found:
        raise FileError(
            f"{path}: no line begins with the name of a variable: say name,value,… in every line, "
            "and the titles of the columns in the first"
        )
    return {
        title: {row[0]: row[j] for row in found if j < len(row) and row[j].strip()}
        for j, title in enumerate(titles)
        if j > 0
    }


def _csv_rows(path: str) -> list[list[str]]:
    import csv

    with open(path, encoding="utf-8-sig", newline="") as lines:
        return [row for row in csv.reader(lines) if row]


def read_size(text: str | None) -> tuple[float, float] | None:
    """Return width and height from a text such as 8x6."""
    if text is None:
        return None
    try:
        width, height = (float(part) for part in text.lower().replace("×", "x").split("x"))
    except ValueError:
        width = height = 0.0
    if not (0 < width <= 100 and 0 < height <= 100):
        raise FileError(f"--size {text}: say width and height in inches, as in --size 8x6")
    return width, height


def write_page(*arguments: object, **options: object) -> None:
    """Write a page to explore a model in; what writes it is loaded here only."""
    from latentree.explorer import write_explorer

    write_explorer(*arguments, **options)  # type: ignore[arg-type]

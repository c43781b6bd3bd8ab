"""Where results and messages go, and how they look."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TextIO

from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from latentree._kernels import compiling
from latentree.cli._running import printable, say
from latentree.errors import DataWarning

_EVERY = 0.1
"""Seconds between two updates of the progress: faster ones cannot be read."""

Facts = dict[str, object]
"""Results for machines: texts, numbers, None, and lists and dicts of these, to be JSON."""


class _PipedConsole(Console):
    """A console that leaves a broken pipe to the one place where commands end."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _plain_console(file: TextIO) -> _PipedConsole:
    """Return a console that prints text as it is."""
    return _PipedConsole(file=file, markup=False, highlight=False, emoji=False)


class Screen:
    """Results on standard output, messages on standard error.

    Parameters
    ----------
    quiet : bool
        No messages and no progress.
    as_json : bool
        Results as one JSON value instead of tables.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._out = _plain_console(sys.stdout)
        self._err = _plain_console(sys.stderr)
        if quiet:
            warnings.simplefilter("ignore", DataWarning)  # until the command ends
        if self._err.is_terminal:
            told = partial(self.tell, "compiling, first use only (some seconds)")
            compiling.on_first_compile[:] = [told]

    # Messages -------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """Say something that is no result."""
        if not self.quiet:
            say(text)

    @contextlib.contextmanager
    def progress(
        self, what: str, text: Callable[[int, float], str]
    ) -> Iterator[Callable[[int, float], None]]:
        """Show that something is under way; gives the callback for steps."""
        if self.quiet or not self._err.is_terminal:
            yield lambda steps, reached: None
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self._err, transient=True) as bar:
            task = bar.add_task(what)
            last = [0.0]

            def step(steps: int, reached: float) -> None:
                at = f"{what}: {text(steps, reached)}"
                if time.monotonic() - last[0] > _EVERY:
                    last[0] = time.monotonic()
                    bar.update(task, description=at)

            yield step

    @contextlib.contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int, str], None] | None]:
        """Show how many of a number of things are done; gives the callback for it."""
        if self.quiet or not self._err.is_terminal:
            yield None
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self._err, transient=True) as bar:
            task = bar.add_task(what)

            def step(done: int, total: int, message: str) -> None:
                bar.update(task, description=f"{what}: {done:,} of {total:,}")

            yield step

    # Results --------------------------------------------------------------------------------

    def text(self, text: str = "") -> None:
        """Print a result as it is."""
        lines = map(printable, text.split("\n"))
        self._out.print(Text("\n".join(lines)), soft_wrap=True)

    def drawn(self, line: Text) -> None:
        """Print a line of a drawing, in ASCII where the terminal has no other characters."""
        plain = printable(line.plain)
        if not _is_encodable(_BOXES, self._out.encoding):
            plain = plain.translate(_IN_ASCII)
        self._out.print(Text(plain, spans=line.spans), soft_wrap=True)

    def prose(self, text: str) -> None:
        """Print sentences, broken into lines as wide as the terminal."""
        self._out.print(Text(text))

    def json(self, value: Facts) -> None:
        """Print a result for machines; what JSON cannot say (infinity) is null."""
        text = json.dumps(_finite(value), ensure_ascii=False, indent=2, allow_nan=False)
        self._out.print(Text(text), soft_wrap=True)

    @property
    def width(self) -> int:
        """Characters of a line of standard output."""
        return self._out.width

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        best: Sequence[int] = (),
        styles: Sequence[str] = (),
    ) -> None:
        """Print a table: the first column and text columns to the left, numbers to the right.

        Parameters
        ----------
        header, rows : sequences
            Of texts.
        best : sequence of int
            Rows that stand out.
        styles : sequence of str
            A color for the first cell of every row.
        """
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        table.padding = (0, 1, 0, 0)
        for j, title in enumerate(header):
            numbers = j > 0 and all(_is_number(row[j]) for row in rows)
            table.add_column(title, justify="right" if numbers else "left", overflow="fold")
        for i, row in enumerate(rows):
            cells = [Text(printable(cell)) for cell in row]
            if styles:
                cells[0].stylize(styles[i])
            table.add_row(*cells, style="bold green" if i in best else None)
        self._out.print(table)


_BOXES = "├└│─●…"
_IN_ASCII = str.maketrans("├└│─●…", "|`|-*~")
"""Characters of drawings, and what takes their place where an encoding lacks them."""


def _is_encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plural(count: int, noun: str) -> str:
    """Count something: 1 row, 2 rows.

    >>> plural(1, "row"), plural(1_000, "cell")
    ('1 row', '1,000 cells')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _is_number(cell: str) -> bool:
    return not cell.strip("0123456789.,-+*∞ %") or cell in ("–", "failed", "")


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

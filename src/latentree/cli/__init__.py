"""The command line: ``latentree learn data.csv``, and more under ``latentree --help``.

Commands are thin: they read files, call the library and show what it returns. Results go to
standard output, progress and messages to standard error. Exit codes: 0 done, 1 something is wrong
with the data or a file, 2 wrong usage, 130 interrupted, 141 nobody reads the output, 143 ended by
SIGTERM.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the shell, and return the exit code."""
    from latentree.cli._running import run

    return run(argv)

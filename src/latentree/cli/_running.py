"""From arguments to an exit code: the one place where mistakes, interrupts and pipes end."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from latentree.errors import DataWarning, LatentTreeError, import_extra

if TYPE_CHECKING:
    import typer

DONE, MISTAKE, USAGE, BROKEN_PIPE = 0, 1, 2, 141
"""Exit codes: 2 is what shells have for wrong usage, 141 is 128 + SIGPIPE."""

SignalHandler = Callable[[int, FrameType | None], object] | int | None
"""What is called for a signal, or a number that says to ignore it or to do the usual."""

_COMPLETING = "_LATENTREE_COMPLETE"
"""Environment variable by which shells ask for completions."""

_IN_OPTIONS = (  # what messages of the library say in Python, as the command line says it
    (re.compile(r"family='(\w+)'"), r"--family \1"),
    (re.compile(r"set it to NaN \(na=\['(\S+)'\] when a file is read\)"), r"say --na \1"),
    (re.compile(r"unseen='missing'"), "--unseen missing"),
    (re.compile(r"\bkinds: "), "--kind: "),
    (re.compile(r"kinds=\{'([^']*)': '(\w+)'\}"), r"--kind '\1=\2'"),
    (re.compile(r"encoding='(\S+)'"), r"--encoding \1"),
    (re.compile(r"\bsheet= chooses"), "--sheet chooses"),
    (re.compile(r"header=False"), "--no-header"),
    (re.compile(r"header=True"), "--header"),
    (re.compile(r"^k is (?=\d+, but the \d+ variables)"), "--cut is "),
)


_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""Signals that end a command: Ctrl-C, a request of the system, the end of the terminal."""


class Interrupted(BaseException):
    """A signal asks for the end, so that temporary files are removed on the way out.

    No KeyboardInterrupt: EM would take that as a wish to keep what it has so far.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def code(self) -> int:
        """Exit code, as shells count them."""
        return 128 + self.number

    def __str__(self) -> str:
        return "interrupted" if self.number == signal.SIGINT else "terminated"


_pending: list[int] = []


def raise_if_interrupted() -> None:
    """Raise for a signal that came where exceptions are dropped, as in callbacks of compilers."""
    if _pending:
        raise Interrupted(_pending[0])


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; mistakes become one line on standard error."""
    try:
        with _interruptible(), _open_streams(), _short_warnings():
            code = _invoke(list(sys.argv[1:] if argv is None else argv))
            sys.stdout.flush()
            return code
    except Interrupted as signaled:
        say(str(signaled))
        return signaled.code
    except KeyboardInterrupt:
        say("interrupted")
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return BROKEN_PIPE
    except MemoryError:
        say("error: there is not enough memory: take fewer rows or columns (--columns)")
        return MISTAKE
    except LatentTreeError as error:
        say(f"error: {in_options(str(error))}{_drop(error)}")
        return MISTAKE
    except OSError as error:
        say(f"error: {os_message(error)}")
        return MISTAKE


def _invoke(argv: list[str]) -> int:
    """Run the command that the arguments name, and return its exit code."""
    typer = import_extra("typer", "cli")
    import_extra("rich", "cli")
    from latentree.cli._app import app

    command = typer.main.get_command(app)
    usage_error = typer.BadParameter.__base__  # typer carries its own click, or takes click's
    if _COMPLETING in os.environ:  # the shell asks what can be typed next
        command.main(argv, prog_name="latentree")
    try:
        # Not app(argv): typer would handle pipes and interrupts in its own way.
        with command.make_context("latentree", argv) as context:
            return int(command.invoke(context) or DONE)
    except typer.Exit as done:
        return int(done.exit_code)
    except usage_error as error:
        return _usage(error)


def _usage(error: typer.BadParameter) -> int:
    """Say what is wrong with the arguments, or show help where there are none."""
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
        with contextlib.suppress(OSError):
            print(error.format_message(), file=sys.stderr)  # noqa: T201
        return USAGE
    path = error.ctx.command_path if error.ctx is not None else "latentree"
    say(f"error: {error.format_message()} (see {path} --help)")
    return USAGE


# Messages ---------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Write one line to standard error, whatever characters are in it."""
    line = " ".join(text.split())
    with contextlib.suppress(OSError, ValueError):  # nobody listens
        print(printable(line), file=sys.stderr, flush=True)  # noqa: T201


def printable(text: str) -> str:
    """Replace control characters: a name in a file must not command the terminal."""
    return "".join(c if c.isprintable() or c == "\u00a0" else "�" for c in text)


def in_options(message: str) -> str:
    """Say with options what a message of the library says in Python."""
    for pattern, option in _IN_OPTIONS:
        message = pattern.sub(option, message)
    return message


def _drop(error: BaseException | None) -> str:
    """Return the option that drops the columns which an error is about, to be pasted."""
    while error is not None:
        columns = getattr(error, "columns", ())
        if columns:
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(columns)
            return f" (--drop {shlex.quote(line.getvalue())})"
        error = error.__cause__
    return ""


def os_message(error: OSError) -> str:
    """Say what the system says of a file, beginning with its name."""
    reason = {FileNotFoundError: "there is no such file", IsADirectoryError: "is a folder"}.get(
        type(error), (error.strerror or str(error)).lower()
    )
    return f"{error.filename}: {reason}" if error.filename is not None else reason


# The surroundings -------------------------------------------------------------------------------


@contextlib.contextmanager
def _open_streams() -> Iterator[None]:
    """Let no stream that is closed, full or lacks a character end a command with a traceback."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # as Python has it where the shell says >&-
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        yield
    finally:
        _drop_what_cannot_be_written()


def _drop_what_cannot_be_written() -> None:
    """Send what a stream still holds nowhere if nobody takes it: the end of Python is silent."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def first_interrupt_keeps() -> Iterator[None]:
    """Let the first Ctrl-C reach a search, which keeps the best so far; a second one ends all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outside = signal.getsignal(signal.SIGINT)

    def once(number: int, frame: FrameType | None) -> None:
        if _again_later(number, frame):
            return
        signal.signal(signal.SIGINT, outside)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outside)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Make signals end the command at once, unless someone else listens to them."""
    _pending.clear()
    outside: dict[int, SignalHandler] = {}
    if threading.current_thread() is threading.main_thread():
        usual = (signal.SIG_DFL, signal.default_int_handler)
        found = {number: signal.getsignal(number) for number in _ENDING}
        outside = {number: handler for number, handler in found.items() if handler in usual}
    for number in outside:
        signal.signal(number, _interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, _unraisable
    try:
        yield
    finally:
        while _postponed:
            timer = _postponed.pop()
            timer.cancel()
            timer.join()
        for number, handler in outside.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def _interrupt(number: int, frame: FrameType | None) -> None:
    _pending.append(number)
    if not _again_later(number, frame):
        raise Interrupted(number)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Suppress messages about signals and closed streams where exceptions cannot be raised."""
    if not isinstance(unraisable.exc_value, Interrupted | KeyboardInterrupt | OSError):
        sys.__unraisablehook__(unraisable)


_postponed: list[threading.Timer] = []


def _signal_main(number: int) -> None:
    """Send a signal to the main thread, which may be asleep."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def _again_later(number: int, frame: FrameType | None) -> bool:
    """Send a signal again in a moment if it came while LLVM is at work on a kernel.

    There an exception would pass through callbacks, which lose it or end the process.
    """
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite.binding"):
            timer = threading.Timer(0.05, _signal_main, (number,))
            timer.start()
            _postponed.append(timer)
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning about the data once, as one line without the place in the code.

    Those of numpy's arithmetic are for us, not for users.
    """
    said = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = in_options(str(message))
        if text not in said:
            said.add(text)
            say(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield

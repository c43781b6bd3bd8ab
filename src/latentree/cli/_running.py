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
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from latentree.errors import DataWarning, LatentTreeError, import_extra

DONE, MISTAKE, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

_COMPLETING = "_LATENTREE_COMPLETE"
"""Environment variable by which shells ask for completions."""

_IN_OPTIONS = (  # what messages of the library say in Python, as the command line says it
    (re.compile(r"family='(\w+)'"), r"--family \1"),
    (re.compile(r"set it to NaN \(na=\['(\S+)'\] when a file is read\)"), r"say --na \1"),
    (re.compile(r"unseen='missing'"), "--unseen missing"),
    (re.compile(r"\bkinds: "), "--kind: "),
    (re.compile(r"header=False"), "--no-header"),
    (re.compile(r"header=True"), "--header"),
)


class Interrupted(BaseException):
    """Ctrl-C. No KeyboardInterrupt: EM would take that as a wish to keep what it has so far."""


_pending = threading.Event()


def raise_if_interrupted() -> None:
    """Raise for a Ctrl-C that came where exceptions are dropped, as in callbacks of compilers."""
    if _pending.is_set():
        raise Interrupted


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; mistakes become one line on standard error."""
    _encode_anything()
    try:
        with _interruptible(), _short_warnings():
            code = _invoke(list(sys.argv[1:] if argv is None else argv))
            sys.stdout.flush()
            return code
    except (Interrupted, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except MemoryError:
        say("error: there is not enough memory: take fewer rows or columns (--columns)")
        return MISTAKE
    except LatentTreeError as error:
        say(f"error: {in_options(str(error))}{_drop(error)}")
        return MISTAKE
    except OSError as error:
        say(f"error: {_os_message(error)}")
        return MISTAKE


def _invoke(argv: list[str]) -> int:
    typer: Any = import_extra("typer", "cli")
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


def _usage(error: Any) -> int:
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


def _os_message(error: OSError) -> str:
    reason = {FileNotFoundError: "there is no such file", IsADirectoryError: "is a folder"}.get(
        type(error), (error.strerror or str(error)).lower()
    )
    return f"{error.filename}: {reason}" if error.filename is not None else reason


# The surroundings -------------------------------------------------------------------------------


def _encode_anything() -> None:
    """Let no character that the terminal lacks end a command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@contextlib.contextmanager
def first_interrupt_keeps() -> Iterator[None]:
    """Let the first Ctrl-C reach a search, which keeps the best so far; a second one ends all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outside = signal.getsignal(signal.SIGINT)

    def once(number: int, frame: FrameType | None) -> None:
        if _again_later(frame):
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
    """Make Ctrl-C end the command at once, unless someone else listens to it."""
    _pending.clear()

    def interrupt(number: int, frame: FrameType | None) -> None:
        _pending.set()
        if not _again_later(frame):
            raise Interrupted

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if ours:
            while _postponed:
                timer = _postponed.pop()
                timer.cancel()
                timer.join()
            signal.signal(signal.SIGINT, signal.default_int_handler)


_postponed: list[threading.Timer] = []


def _interrupt_main() -> None:
    """Send Ctrl-C to the main thread, which may be asleep."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def _again_later(frame: FrameType | None) -> bool:
    """Send a Ctrl-C again in a moment if it came while LLVM is at work on a kernel.

    There an exception would pass through callbacks, which lose it or end the process.
    """
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite.binding"):
            timer = threading.Timer(0.05, _interrupt_main)
            timer.start()
            _postponed.append(timer)
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning about the data once, as one line without the place in the code."""
    said = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = in_options(str(message))
        if text not in said:
            said.add(text)
            say(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that the end of Python is silent too."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

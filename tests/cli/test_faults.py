"""Closed pipes, full disks, signals, targets that are inputs: what is finished is kept."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest

import latentree as lt
from latentree._disk import replacing
from latentree.cli import main
from latentree.data import write_table

resource = pytest.importorskip("resource", reason="limits and signals of POSIX")

LATENTREE = [sys.executable, "-m", "latentree"]


def shell(command: str) -> subprocess.CompletedProcess[str]:
    line = command.replace("latentree", " ".join(LATENTREE), 1)
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=600)


# Files come before what is printed --------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "code"), [("| head -1", 0), ("| true", 0), ("> /dev/full", 1), (">&-", 0)]
)
def test_a_finished_model_outlives_whoever_reads_the_output(made, tmp_path, end, code):
    done = shell(f"latentree learn {made / 'real.csv'} --out {tmp_path / 'm.json'} {end}")
    assert lt.load(tmp_path / "m.json").tree.n_observed == 6
    assert "Error" not in done.stderr
    assert done.returncode == code
    assert ("no space left on device" in done.stderr) == (end == "> /dev/full")


def test_a_model_that_cannot_be_written_is_still_shown(run, made, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "m.json")

    monkeypatch.setattr(lt.GaussianTreeModel, "save", full)
    code, out, err = run("learn", made / "real.csv", "--out", tmp_path / "m.json")
    assert code == 1
    assert "m.json: no space left on device" in err
    assert "Hidden" in out


@pytest.mark.parametrize(
    ("command", "closed"),
    [("--version", ">&-"), ("", ">&- 2>&-"), ("learn {} --quiet", ">&- 2>&-"),
     ("learn {} --json", "2>&-"), ("learn {}", "<&- 2>/dev/full")],
)  # fmt: skip
def test_closed_streams_are_no_errors(made, command, closed):
    done = shell(f"latentree {command.format(made / 'real.csv')} {closed}")
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr
    assert done.returncode == (2 if command == "" else 0)


def test_closed_standard_input_is_an_empty_table():
    done = shell("latentree learn - <&-")
    assert (done.returncode, done.stderr) == (1, "error: standard input: is empty: 0 bytes\n")


# Nothing that is read is overwritten ------------------------------------------------------------


@pytest.mark.parametrize("option", ["--out", "--html", "--plot"])
@pytest.mark.parametrize("path", ["data.csv", "symbolic.csv", "hard.csv", "../folder/data.csv"])
def test_learn_never_overwrites_its_data(run, made, tmp_path, monkeypatch, option, path):
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "data.csv").write_bytes((made / "real.csv").read_bytes())
    (folder / "symbolic.csv").symlink_to("data.csv")
    os.link(folder / "data.csv", folder / "hard.csv")
    before = (folder / "data.csv").read_bytes()
    for data in ("data.csv", folder):
        code, out, err = run("learn", data, option, path)
        assert (code, out) == (1, "")
        assert err == f"error: {path}: is read, and would be lost: write to another file\n"
    assert (folder / "data.csv").read_bytes() == before


def test_other_commands_never_overwrite_what_they_read(run, made, tmp_path):
    data, model = tmp_path / "d.csv", tmp_path / "m.csv"
    data.write_bytes((made / "real.csv").read_bytes())
    model.write_bytes((made / "real.json").read_bytes())
    picture = tmp_path / "m.png"
    picture.write_bytes(model.read_bytes())
    before = data.read_bytes(), model.read_bytes()
    for command in ("infer", "impute", "score"):
        for target in (data, model):
            assert run(command, model, data, "--out", target)[0] == 1
    assert run("sample", model, "--out", model)[0] == 1
    assert run("plot", picture, picture)[0] == 1
    assert (data.read_bytes(), model.read_bytes()) == before
    assert picture.read_bytes() == model.read_bytes()


def test_no_file_is_written_twice(run, made, tmp_path):
    both = tmp_path / "both"
    code, _, err = run("learn", made / "real.csv", "--out", both, "--html", both)
    assert (code, err) == (1, f"error: {both}: is to be written twice: write to another file\n")
    nowhere = ("--out", os.devnull, "--html", os.devnull)  # a device takes anything
    assert run("learn", made / "real.csv", "-q", *nowhere)[0] == 0


# Signals ----------------------------------------------------------------------------------------


_INTERRUPT_AT_IMPORT = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["latentree", "learn", {path!r}]
from latentree.__main__ import start
start()
"""


@pytest.mark.parametrize(
    "name",
    ["latentree.cli", "threading", "typer", "numpy", "latentree.cli._learning", "pyarrow"],
)
def test_an_interrupt_at_the_start_prints_no_traceback(made, name):
    """An interrupt while anything is imported: Python would say where it was."""
    code = _INTERRUPT_AT_IMPORT.format(name=name, path=str(made / "real.csv"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert done.returncode in (-signal.SIGINT, 130)
    assert done.stdout == ""
    assert done.stderr in ("", "interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_removes_temporary_files(run, made, tmp_path, monkeypatch, number):
    def signaled(self, *_):
        with replacing(tmp_path / "m.json") as file:
            file.write(b"half")
            signal.raise_signal(number)

    monkeypatch.setattr(lt.GaussianTreeModel, "save", signaled)
    code, _, err = run("learn", made / "real.csv", "-q", "--out", tmp_path / "m.json")
    assert (code, err) == (128 + number, "terminated\n")
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_signal_where_exceptions_are_dropped_is_not_shown(run, made, monkeypatch):
    learn_model = lt.methods.learn_model

    class Deaf:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def learn(*arguments, **options):
        Deaf()
        return learn_model(*arguments, **options)

    monkeypatch.setattr("latentree.cli._learning.learn_model", learn)
    # By clnj, since the search of refined would keep what it has found so far.
    assert run("learn", made / "real.csv", "-q", "-m", "clnj") == (130, "", "interrupted\n")


# The disk ---------------------------------------------------------------------------------------


def test_a_temporary_file_has_the_permissions_of_its_target(tmp_path):
    target = tmp_path / "secret.json"
    target.write_bytes(b"old")
    for mode in (0o600, 0o664, 0o400):
        target.chmod(mode)
        with replacing(target) as file:
            (temporary,) = set(tmp_path.iterdir()) - {target}
            assert stat.S_IMODE(temporary.stat().st_mode) == mode
            file.write(b"new")
        assert stat.S_IMODE(target.stat().st_mode) == mode


@contextlib.contextmanager
def full_disk(n_bytes: int = 100):
    """Let no file grow beyond so many bytes, as on a full disk; all processes below too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_file_and_no_other(made, tmp_path, capfd):
    target = tmp_path / "m.json"
    target.write_bytes(b"old")
    with full_disk(500):
        code = main(["learn", str(made / "real.csv"), "-q", "--out", str(target)])
    assert code == 1
    assert "too large" in capfd.readouterr().err  # what the system says of the limit
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "texts.txt"
    about = ["cats purr and mice run", "stocks rise and bonds fall", "rain falls and winds blow"]
    path.write_text("\n".join(about[row % 3] for row in range(60)), "utf-8")
    return path


def commands(made, documents, folder):
    """Commands that learn for long and write in the end, with the file."""
    target = folder / "m.json"
    return {
        "learn": ["learn", made / "real.csv", "--out", target],
        "support": ["support", made / "real.json", made / "real.csv", "-n", "2", "--out", target],
        "topics": ["topics", documents, "--out", target],
    }


WRITING = ["learn", "support", "topics"]


@pytest.mark.parametrize("command", WRITING)
def test_what_cannot_be_written_is_said_before_learning(
    run, made, documents, tmp_path, monkeypatch, command
):
    def learn(*_, **__):
        raise AssertionError("the file could not be written")

    monkeypatch.setattr("latentree.cli._learning.learn_one", learn)
    monkeypatch.setattr("latentree.cli._support_command.measure", learn)
    monkeypatch.setattr(lt.topics.TopicTree, "fit", learn)
    with full_disk(0):
        code, out, err = run(*commands(made, documents, tmp_path)[command])
    assert (code, out) == (1, "")
    assert err == f"error: {tmp_path / 'm.json'}: file too large\n"
    assert list(tmp_path.iterdir()) == [documents]


@pytest.fixture
def broken_folder(tmp_path, monkeypatch):
    """A folder that takes no file any more once something was learned."""
    folder = tmp_path / "broken"
    folder.mkdir()
    replace = os.replace

    def fail(old, new):
        if folder in Path(new).parents:
            raise OSError(errno.EROFS, "Read-only file system", str(old), None, str(new))
        replace(old, new)

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return folder


@pytest.mark.parametrize("command", WRITING)
def test_a_model_that_cannot_be_written_goes_to_a_temporary_folder(
    run, made, documents, broken_folder, command
):
    code, out, err = run(*commands(made, documents, broken_folder)[command])
    assert code == 1
    assert ("Topic" if command == "topics" else "Hidden") in out
    message = f"error: {broken_folder / 'm.json'}: read-only file system; the model is in "
    place = err.splitlines()[-1].removeprefix(message)
    assert lt.load(place).tree.n_observed > 2
    assert (lt.support.load_support(place) is not None) == (command == "support")
    assert ".tmp" not in err
    assert list(broken_folder.iterdir()) == []


def test_a_page_that_cannot_be_written_costs_no_model(run, made, tmp_path, broken_folder):
    page = broken_folder / "m.html"
    code, _, err = run("learn", made / "real.csv", "--html", page)
    assert code == 1
    assert f"{page}: read-only file system; the model is in {tmp_path}" in err
    model = tmp_path / "m.json"
    code, out, err = run("learn", made / "real.csv", "--html", page, "--out", model, "--json")
    assert code == 1
    assert err.endswith(f"{page}: read-only file system\n")
    assert lt.load(model).tree.n_observed == 6
    assert json.loads(out)["files"] == {"model": str(model)}


_COMPILE = """
import numpy as np
from latentree._kernels.compiling import repeated
from latentree._kernels.structure.spanning import minimum_spanning_tree
with repeated():
    found = minimum_spanning_tree(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2))
print([int(ends[0]) for ends in found])
"""


def _compiled(folder, **options) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _COMPILE], env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True, text=True, timeout=600, **options,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def test_a_full_disk_at_the_cache_only_loses_the_cache(tmp_path):
    limit = (200, resource.RLIM_INFINITY)
    expected = "[0, 1]\n"
    full = _compiled(tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert full == expected
    assert _compiled(tmp_path) == expected  # and now it is cached
    cached = [path for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert cached
    for path in cached:
        path.write_bytes(b"damaged")
    assert _compiled(tmp_path) == expected


# The cluster ------------------------------------------------------------------------------------


def test_a_scheduler_that_dies_is_one_line(run, made, monkeypatch):
    distributed = pytest.importorskip("distributed")

    class Client:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            logging.getLogger("distributed.client").critical("lost\nand more lines")

        def submit(self, *_, **__):
            raise CancelledError("plan cancelled for reason: scheduler-connection-lost.\nmore")

    monkeypatch.setattr(distributed, "Client", Client)
    code, out, err = run("learn", made / "real.csv", "-q", "--scheduler", "tcp://gone:1")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {made / 'real.csv'}: the cluster cannot be reached any more")
    assert "scheduler-connection-lost" in err
    assert err.count("\n") == 1
    assert logging.root.manager.disable == logging.NOTSET


# Warnings ---------------------------------------------------------------------------------------


def test_arithmetic_does_not_warn_users(run, tmp_path, monkeypatch):
    learn_model = lt.methods.learn_model

    def warning(*arguments, **options):
        np.log(np.zeros(1))
        return learn_model(*arguments, **options)

    monkeypatch.setattr("latentree.cli._learning.learn_model", warning)
    data = np.random.default_rng(0).normal(size=(50, 3))
    write_table(tmp_path / "d.csv", ["a", "b", "c"], data)
    code, _, err = run("learn", tmp_path / "d.csv", "-q")
    assert (code, err) == (0, "")

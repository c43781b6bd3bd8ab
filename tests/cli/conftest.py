"""A folder with a table and a model to run commands on."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from latentree import simulate
from latentree.cli import main
from latentree.data._files._writers import write_table

NAMES = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture(autouse=True)
def narrow_and_plain(monkeypatch):
    """A terminal of 80 columns, whatever the tests run in."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """Folder with ``real.csv``, ``words.csv`` and models learned from them."""
    folder = tmp_path_factory.mktemp("made")
    tree = simulate.double_star(6)
    real = simulate.random_gaussian_model(tree, 0).sample(400, 1)
    write_table(folder / "real.csv", NAMES, real)
    codes = simulate.random_discrete_model(tree, 2, 0).sample(400, 1)
    write_table(folder / "words.csv", NAMES, np.array(["no", "yes"], object)[codes])
    for kind in ("real", "words"):
        code = main(
            ["learn", str(folder / f"{kind}.csv"), "-q", "--out", str(folder / f"{kind}.json")]
        )
        assert code == 0
    return folder


@pytest.fixture
def run(capsys):
    """Run a command in this process: its exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(autouse=True)
def _usual_signals():
    """Signals as in a terminal: in the background, or under nohup, some are ignored."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    if hasattr(signal, "SIGHUP"):  # not on Windows
        usual[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)

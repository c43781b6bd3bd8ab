"""What ``latentree doctor`` says of a machine."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

import latentree
from latentree.cli import _doctor as doctor


def test_the_report_says_what_is_installed_and_that_it_works(run):
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    lines = dict(line.split(": ", 1) for line in out.replace("self-test: ", "").splitlines())
    assert lines["latentree"] == latentree.__version__
    assert f"numpy {version('numpy')}, " in lines["dependencies"]
    assert lines["extra plot"] == f"matplotlib {version('matplotlib')}"
    extras = {name.removeprefix("extra ") for name in lines if name.startswith("extra ")}
    assert extras == {"plot", "cli", "data", "dask", "excel", "pdf"}
    assert "processors" in lines["threads"]
    assert "threads" in lines["blas"]
    assert lines["compiled code"].startswith("ok")
    assert lines["learning"].startswith("ok")


def test_machines_get_json(run, monkeypatch):
    monkeypatch.setenv("LATENTREE_NUM_THREADS", "3")
    code, out, _ = run("doctor", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["threads"].startswith("3 of ")
    assert "LATENTREE_NUM_THREADS=3" in found["settings"]
    assert set(found["self-test"]) == {"compiled code", "learning"}


def test_a_library_that_is_not_there_is_named(run, monkeypatch):
    needed = ["numpy>=2.0", "nothing-of-this-name>=1 ; extra == 'plot'"]
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: needed)
    assert "extra plot: nothing-of-this-name is not installed" in run("doctor")[1]


def test_a_failed_self_test_is_the_exit_code(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr(doctor, "learn_model", broken)
    code, out, _ = run("doctor")
    assert code == 1
    assert "self-test: learning: FAILED: ZeroDivisionError: no such luck" in out


def test_wrong_results_of_compiled_code_are_found(monkeypatch):
    results = iter([1, 2])
    monkeypatch.setattr(doctor.kernels, "diameter", lambda *_: next(results))
    assert doctor._check_compiler() == "FAILED: 2 in place of 1"


def test_a_cache_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()

    class Compiled:
        class _cache:
            cache_path = str(file / "cache")

    monkeypatch.setattr(doctor.kernels.preorder, "compiled", Compiled)
    assert "cannot be written" in doctor._cache_state()
    monkeypatch.delattr(Compiled._cache, "cache_path")
    assert "compiled again" in doctor._cache_state()


@pytest.mark.parametrize("folder", ["/home/ann/.cache", "/home/anna/.cache"])
def test_reports_do_not_name_the_user(monkeypatch, folder):
    monkeypatch.setattr(doctor.os.path, "expanduser", lambda _: "/home/ann")
    assert doctor._from_home(folder) in ("~/.cache", "/home/anna/.cache")

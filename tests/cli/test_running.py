"""Exit codes, mistakes, pipes, interrupts and odd surroundings."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest

import latentree as lt
from latentree import __version__
from latentree.cli import main
from latentree.data._files._writers import write_table
from latentree.errors import LatentTreeError

LATENTREE = [sys.executable, "-m", "latentree"]


def spawn(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, without a terminal."""
    environment = {**os.environ, "PYTHONWARNINGS": "error", **options.pop("env", {})}
    return subprocess.run(
        [*LATENTREE, *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=False, timeout=600, **options,
    )  # fmt: skip


# The start --------------------------------------------------------------------------------------

HEAVY = {"numpy", "numba", "pandas", "sklearn", "scipy", "networkx", "pyarrow", "matplotlib"}


@pytest.mark.parametrize("arguments", [["--help"], ["learn", "--help"], ["--version"], []])
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys; from latentree.cli import main;"
        f"main({arguments!r}); print(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    modules = done.stdout.splitlines()[-1].split()
    loaded = {name.split(".")[0] for name in modules}
    assert "typer" in loaded
    assert not HEAVY & loaded
    ours = {name.split(".")[1] for name in modules if name.startswith("latentree.")}
    assert ours <= {"_display", "_version", "cli", "errors", "methods", "typing"}


def test_help_and_version(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    names = "learn compare infer impute score sample plot export show demo"
    for command in names.split():
        assert f"\n  {command} " in out
    assert max(map(len, out.splitlines())) <= 80
    assert run("--version") == (0, f"latentree {__version__}\n", "")


# Exit codes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn"],
        ["learn", "--nonsense", "x.csv"],
        ["nonsense"],
        ["learn", "x.csv", "--seed", "many"],
        ["learn", "x.csv", "--test-fraction", "2"],
        ["learn", "x.csv", "--method", "magic"],
        ["learn", "x.csv", "--family", "none"],
        ["learn", "x.csv", "--method", "clnj", "--start", "nj"],
        ["learn", "x.csv", "--method", "refined", "--start", "lcm"],
        ["learn", "x.csv", "--method", "refined", "--score", "best"],
        ["learn", "x.csv", "--method", "refined", "--score", "-1"],
        ["learn", "x.csv", "--method", "refined", "--score", "nan"],
        ["learn", "x.csv", "--method", "refined", "--max-states", "1"],
        ["learn", "x.csv", "--states", "1"],
        ["learn", "x.csv", "--states", "2.5"],
        ["learn", "x.csv", "--states", "few"],
        ["learn", "x.csv", "--trees", "0"],
        ["learn", "x.csv", "--time-limit", "-1"],
        ["learn", "x.csv", "--hidden", "odd"],
        ["learn", "x.csv", "--method", "refined", "--trees", "2"],
        ["compare", "x.csv", "--methods", "clrg,magic"],
        ["sample", "m.json", "-n", "0"],
    ],
)
def test_wrong_usage_is_one_line_and_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.endswith("--help)\n")
    assert err.count("\n") == 1


BY_DISTANCES = "chow_liu, nj, snj, rg, cl_blind, clnj"


@pytest.mark.parametrize(
    ("option", "method", "takers"),
    [
        (["--n-hidden", "2"], "clrg", "reg_clnj, reg_clrg or refined"),
        (["--criterion", "aic"], "reg_clrg", f"{BY_DISTANCES}, clrg, lcm or refined"),
        (["--max-states", "3"], "bin", f"{BY_DISTANCES}, clrg, lcm or refined"),
        (["--start", "nj"], "bin", "refined"),
        (["--trees", "2"], "bin", f"{BY_DISTANCES}, clrg or hclt"),
    ],
)
def test_options_of_other_methods_are_refused_with_those_that_take_them(
    run, option, method, takers
):
    code, _, err = run("learn", "x.csv", "--method", method, *option)
    assert code == 2
    assert f"{option[0]} is for --method {takers}, and {method} does not take it" in err


def test_the_former_name_of_an_option_is_told_by_its_present_one(run):
    code, _, err = run("learn", "x.csv", "--method", "reg_clrg", "--score", "aic")
    assert code == 2
    assert "--criterion is for --method" in err
    assert "reg_clrg does not take it" in err


def test_nothing_at_all_shows_the_help(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "Commands:" in err


def mistakes(made: Path, folder: Path):
    """Arguments of commands that cannot work, and what the message has to say."""
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("a,b\n1.5,2\n3\n")
    (folder / "numbers.csv").write_text("1.5,2.5\n1,2\n")
    (folder / "mixed.csv").write_text("id,b,c\nu,1.5,2\nv,2.5,3\n")
    (folder / "words.csv").write_text("id,b,c\nu,1,2\nv,2,3\n")
    (folder / "constant.csv").write_text("a,b,c\n1,1.5,2.1\n1,2.5,3.1\n1,3.5,7.1\n")
    (folder / "odd.csv").write_text("a,b\n1.5,2.5\n2.5,12 kg\n3.5,4.5\n")
    ids = "".join(f"p{i},{i % 2},{i // 2 % 2}\n" for i in range(20))
    (folder / "ids.csv").write_text(f"id,b,c\n{ids}")
    (folder / "latin.csv").write_bytes("größe,b\n1,2\n".encode() + b"gro\xdf,3\n")
    (folder / "latin-cells.csv").write_bytes(b"a,b\ngro\x81,2\n")
    (folder / "no.json").write_text("{")
    real, model = made / "real.csv", made / "real.json"
    yield ["learn", folder / "nope.csv"], "nope.csv: there is no such file"
    yield ["learn", folder], "empty.csv: is empty"
    yield ["compare", folder], "empty.csv: is empty"
    yield ["learn", folder / "empty.csv"], "empty.csv: is empty"
    yield ["learn", folder / "ragged.csv"], "line 3: 1 cell, but"
    yield ["learn", folder / "numbers.csv"], "say --no-header if it is data"
    yield ["learn", folder / "constant.csv", "--columns", "a"], "'a' (always 1)"
    yield ["learn", folder / "mixed.csv", "--kind", "id=real"], "--kind: column 'id' cannot be real"
    yield ["learn", folder / "mixed.csv", "--kind", "z=real"], "--kind: there is no column 'z'"
    yield (
        ["learn", folder / "words.csv", "--family", "gaussian"],
        "column 'id' holds labels ('u', …)",
    )
    odd = "column 'b' holds numbers, but '12 kg' in row 1 (counted from 0)"
    for several in ([], [folder / "odd.csv"]):
        yield ["learn", folder / "odd.csv", *several, "--family", "gaussian"], odd
    yield (
        ["learn", folder / "odd.csv", "--family", "gaussian"],
        "drop column 'b', or use --family discrete if numbers are codes (--drop b)",
    )
    yield (
        ["learn", folder / "latin.csv"],
        "latin.csv: byte 17 of the file is not text in UTF-8, but characters before it are",
    )
    yield (
        ["learn", folder / "latin-cells.csv"],
        "nor is the file cp1252: say which encoding it is in, as in --encoding latin-1",
    )
    yield ["learn", real, "--drop", "z"], "there is no column 'z'"
    yield ["learn", real, "--test-fraction", "1"], "leaves 400 rows to test on"
    yield ["learn", real, "--out", folder / "no" / "m.json"], "there is no folder"
    yield ["learn", real, "--out", folder], "is a folder"
    yield ["learn", real, "--plot", folder / "t.xyz"], "'.xyz' names no picture"
    yield ["learn", real, "--family", "discrete"], "no whole number"
    yield ["show", folder / "nope.json"], "nope.json: there is no such file"
    yield ["show", folder / "no.json"], "no.json: "
    yield ["show", real], "real.csv: "
    yield ["show", folder], "is a folder"
    yield ["export", model, folder / "t.xyz"], "'.xyz' names no known format"
    yield ["export", model, folder / "t.bif"], "BIF holds discrete models"
    yield ["plot", model, folder / "t.txt"], "'.txt' names no picture"
    yield ["infer", model, made / "words.csv"], "words.csv: "
    yield ["infer", model, folder / "mixed.csv"], "there is no column 'a'"
    yield ["infer", model, real, "--out", folder / "t.xls"], "'.xls' names no known format"
    yield ["sample", model, "--out", folder / "no" / "t.csv"], "there is no folder"
    yield ["demo", "--folder", folder / "empty.csv"], "is a file"


def test_mistakes_are_one_line_and_1(run, made, tmp_path):
    for arguments, expected in mistakes(made, tmp_path):
        before = {path.name for path in tmp_path.iterdir()}
        code, out, err = run(*arguments, *([] if arguments[0] == "show" else ["--quiet"]))
        assert (code, out) == (1, ""), arguments
        assert err.startswith("error: "), arguments
        assert expected in err, arguments
        assert err.count("\n") == 1, arguments
        assert {path.name for path in tmp_path.iterdir()} == before, arguments


def test_mistakes_of_a_process_leave_no_traceback(tmp_path):
    done = spawn("learn", tmp_path / "nope.csv")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"error: {tmp_path / 'nope.csv'}: there is no such file\n"


def test_too_little_memory_is_a_mistake(run, made, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("latentree.cli._data.open_table", fail)
    code, _, err = run("learn", made / "real.csv")
    assert code == 1
    assert "not enough memory" in err


def test_defects_are_not_hidden(made, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("latentree.cli._data.open_table", fail)
    with pytest.raises(ZeroDivisionError):
        main(["learn", str(made / "real.csv")])


def test_warnings_are_one_line(run, tmp_path):
    data = np.random.default_rng(0).normal(size=(50, 3))
    write_table(tmp_path / "twice.csv", list("abcd"), data[:, [0, 1, 2, 0]])
    code, _, err = run("learn", tmp_path / "twice.csv", "--method", "chow_liu")
    assert code == 0
    _, *told = err.splitlines()
    assert all(line.startswith(("warning: ", "note: ")) for line in told)
    assert sum("duplicate columns" in line for line in told) == 1
    assert run("learn", tmp_path / "twice.csv", "--method", "chow_liu", "--quiet")[2] == ""


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(run, monkeypatch, absent):
    for name in list(sys.modules):
        if name.partition(".")[0] in (absent, "typer") or name == "latentree.cli._app":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, absent, None)  # as if it were not installed
    code, out, err = run("--help")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert err.endswith("pip install 'latentree[cli]'\n")


def test_reading_without_pyarrow_says_what_to_install(run, made, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run("learn", made / "real.csv")
    assert code == 1
    assert err.endswith(
        "this needs pyarrow, which is not installed: pip install 'latentree[cli]'\n"
    )


# Streams ----------------------------------------------------------------------------------------


def test_standard_input(made):
    done = spawn("learn", "-", "--json", "-q", input=(made / "real.csv").read_text())
    assert done.returncode == 0
    assert done.stderr == ""
    assert '"source": "standard input"' in done.stdout
    done = spawn("learn", "-", input="a,b\n1,2\n3\n")
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard input: line 3: 1 cell")


@pytest.mark.parametrize(
    ("command", "reader"),
    [
        ("sample {model} -n 50000", "head -1"),
        ("show {model}", "true"),  # ends at once, so that the first line finds nobody
        ("learn {data}", "true"),
        ("--help", "true"),
    ],
)
def test_a_broken_pipe_is_silent(made, command, reader, tmp_path):
    command = command.format(model=made / "real.json", data=made / "real.csv")
    shell = f"{' '.join(LATENTREE)} {command} 2>{tmp_path}/err | {reader}"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=True, timeout=600
    )
    assert len(done.stdout.splitlines()) == (reader == "head -1")
    said = (tmp_path / "err").read_text()
    assert "Error" not in said
    assert "Broken" not in said


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_has_enough_ends_the_writer(made):
    writer = subprocess.Popen(
        [*LATENTREE, "sample", str(made / "real.json"), "-n", "300000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdout.readline() == "a,b,c,d,e,f\n"
    writer.stdout.close()
    assert writer.stderr.read() == ""
    writer.stderr.close()
    assert writer.wait(300) == 141


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_is_clean(tmp_path):
    data = np.random.default_rng(0).integers(0, 3, (20_000, 60))
    write_table(tmp_path / "data.csv", [f"v{j}" for j in range(60)], data)
    process = subprocess.Popen(
        [*LATENTREE, "compare", str(tmp_path / "data.csv"), "--methods", "lcm,bin,lcm,bin,lcm,bin"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert "20,000 rows" in process.stderr.readline()  # now it learns
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert out == ""
    assert err == "interrupted\n"


def test_an_interrupt_that_was_dropped_ends_the_command_later(run, made, monkeypatch):
    learn_model = lt.methods.learn_model

    def deaf(*arguments, **options):
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGINT)
        return learn_model(*arguments, **options)

    monkeypatch.setattr("latentree.cli._learning.learn_model", deaf)
    code, out, err = run("compare", made / "real.csv", "-q", "--methods", "nj,rg")
    assert (code, out, err) == (130, "", "interrupted\n")


def test_an_interrupt_while_kernels_are_compiled_waits_for_them(run, made, monkeypatch):
    """An exception would be lost in the compiler, as here, or end the process with a crash."""
    compiling = types.FunctionType(
        _interrupt_and_go_on.__code__, {**globals(), "__name__": "llvmlite.binding.x"}
    )
    learn_model, done = lt.methods.learn_model, []

    def learn(*arguments, **options):
        compiling()
        done.append("compiled")
        time.sleep(30)  # which the interrupt ends
        done.append("learned")
        return learn_model(*arguments, **options)

    monkeypatch.setattr("latentree.cli._learning.learn_model", learn)
    code, out, err = run("compare", made / "real.csv", "-q", "--methods", "nj,rg")
    assert (code, out, err) == (130, "", "interrupted\n")
    assert done == ["compiled"]


def _interrupt_and_go_on():
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.2)


def test_an_interrupt_leaves_no_file(run, made, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("latentree.cli._learning.learn_model", interrupt)
    code, out, err = run("learn", made / "real.csv", "-q", "--out", tmp_path / "m.json")
    assert (code, out, err) == (130, "", "interrupted\n")
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_ends_a_refinement_with_the_best_so_far(run, made, tmp_path, monkeypatch):
    from latentree.search._refinement._search import Search

    accept = Search._accept

    def interrupt(self, new, proposals):
        accepted = accept(self, new, proposals)
        signal.raise_signal(signal.SIGINT)
        return accepted

    monkeypatch.setattr(Search, "_accept", interrupt)
    model = tmp_path / "m.json"
    code, out, err = run(
        "learn", made / "real.csv", "--method", "refined", "--start", "chow_liu", "--out", model
    )
    assert code == 0
    assert "interrupted" in out + err
    assert "Refined by" in out
    assert model.exists()


# Surroundings -----------------------------------------------------------------------------------


def test_a_home_that_cannot_be_written_and_no_terminal(made, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("a file where folders would have to be made")
    home = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "XDG_CONFIG_HOME": str(nowhere)}
    done = spawn(
        "plot", made / "real.json", tmp_path / "t.pdf", env={**home, "PYTHONWARNINGS": "default"}
    )
    assert done.returncode == 0
    assert done.stderr == f"wrote {tmp_path / 't.pdf'}\n"
    assert done.stdout == ""


def test_a_terminal_without_the_characters(made):
    done = spawn("learn", made / "real.csv", "-q", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "refined" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of Unix")
@pytest.mark.parametrize("plain", [True, False])
def test_terminals_get_progress_and_color_unless_they_refuse(made, plain):
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*LATENTREE, "compare", str(made / "real.csv"), "--methods", "clrg,rg,lcm"],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment | ({"NO_COLOR": "1"} if plain else {}),
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65_536):
            seen += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    assert process.wait(30) == 0
    text = seen.decode()
    assert "learning by clrg" in text
    assert ("\x1b[1;32m" in text) is not plain
    assert "* best" in text


def test_every_error_of_ours_is_a_mistake(run, made, monkeypatch):
    def fail(*_, **__):
        raise LatentTreeError("first\nsecond \x1b[31m")

    monkeypatch.setattr("latentree.cli._data.open_table", fail)
    code, _, err = run("learn", made / "real.csv")
    assert (code, err) == (1, "error: first second �[31m\n")

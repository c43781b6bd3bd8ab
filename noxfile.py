"""Test with other interpreters and other versions of the dependencies: ``nox --list``.

Sessions take arguments for pytest, ``nox -s tests-3.13 -- tests/test_tree.py``; without any they
run all tests, the sessions ``oldest`` and ``core`` a small core of them. An interpreter that is not
installed is skipped, on a machine of continuous integration an error.

Tried so far, on Linux: all tests with Python 3.11; 90 of 112 files of tests with 3.13 and the
newest NumPy and SciPy, with coverage; ``oldest`` with 3.11; a few files of tests with 3.12. Not
tried, for want of machines, interpreters or time: all tests with 3.12, Python 3.14, macOS,
Windows, unreleased libraries.
"""

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = ["tests", "oldest", "core"]

OLDEST = "3.11"
PYTHONS = [OLDEST, "3.12", "3.13", "3.14"]

PINS = ("--constraint", "requirements/dev.txt")

CORE = [  # what needs neither extras nor data frames
    "tests/test_tree.py",
    "tests/test_statistics.py",
    "tests/test_simulate.py",
    "tests/models/test_gaussian.py",
    "tests/models/test_discrete.py",
    "tests/files/test_model_file.py",
    "tests/files/test_newick.py",
]
FRAMES = [  # what meets the extras and their oldest versions
    "tests/test_table.py",
    "tests/test_kinds.py",
    "tests/files/test_exports.py",
    "tests/cli/test_using.py",
    "tests/plot/test_tree_plot.py",
]
EXTRAS = ".[plot,cli,data,dask,excel,pdf]"
TESTING = ("pytest>=8.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "jsonschema>=4.20")

# Old versions of other libraries meet new versions of what these need, which warn of it.
THEIR_WARNINGS = [
    f"--pythonwarnings=ignore::{name}"
    for name in ("DeprecationWarning", "PendingDeprecationWarning", "SyntaxWarning")
]


def run_tests(session: nox.Session, *default: str) -> None:
    """Run what the call names, or the default, on all processors."""
    # Workers collect the same tests only where sets have the same order. On Windows tests write
    # text in UTF-8, as everywhere else.
    environment = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    arguments = ("-n", "auto", "--dist", "worksteal", *(session.posargs or default))
    session.run("python", "-m", "pytest", *arguments, env=environment)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, with the versions that are pinned."""
    session.install(*PINS, "--editable", ".[dev]")
    run_tests(session)


@nox.session(python=OLDEST)
def oldest(session: nox.Session) -> None:
    """A small core of tests, with the oldest version of every dependency."""
    frames = ("pandas>=2.2", "polars>=1.9")
    session.install("--resolution", "lowest-direct", EXTRAS, *TESTING, *frames)
    run_tests(session, *THEIR_WARNINGS, *CORE, *FRAMES)


@nox.session(python=PYTHONS)
def core(session: nox.Session) -> None:
    """A small core of tests, without any extra."""
    session.install(".", *TESTING)
    run_tests(session, *CORE)


@nox.session(python=PYTHONS[-1])
def newest(session: nox.Session) -> None:
    """All tests, with the newest version of every dependency."""
    session.install("--upgrade", ".[dev]")
    run_tests(session)


@nox.session(python=PYTHONS[-1])
def prerelease(session: nox.Session) -> None:
    """All tests, with dependencies that are not released yet."""
    session.install("--upgrade", "--prerelease", "allow", ".[dev]")
    run_tests(session)

"""Check the wheel and the source archive of a folder, ``python tests/release/check_dist.py dist``.

The wheel, which ``python -m build`` makes from the source archive, holds the package and nothing
else, and is the one that the checkout makes. In an empty environment the wheel works with its core
dependencies alone, and says which extra is missing; with all extras every one of them is there.
"""

# ruff: noqa: T201

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST_IMPORT = 0.15  # seconds, the best of a few, as the machine may be busy
ALLOWED = re.compile(r"latentree/[\w/]+\.(py|csv|md|js|css|html|schema\.json|typed)")
"""Sources, data with a note on its origin, the page, the schema of models, the mark of types."""

LEARN = """
import latentree as lt
pupils = lt.datasets.load_holzinger()
learned = lt.LatentTree(random_state=0).fit(pupils.table)
assert learned.n_hidden_ == 3, learned.n_hidden_
learned.model_.save("model.json")
assert lt.load("model.json").tree.names[0] == "x1"
"""

MISSING = {  # what names an extra that is missing, by how it is used
    "plot": "lt.plot_tree(lt.Tree([-1, 0]))",
    "data": "os.environ.pop('LATENTREE_DATA', 0); lt.datasets.load_newsgroups()",
    "excel": "open('a.xlsx', 'w').write('-'); lt.as_parts('a.xlsx')",
    "pdf": "open('a.pdf', 'w').write('-'); list(lt.topics.read_documents('a.pdf'))",
}

IMPORTED = {  # a module of what each extra brings
    "plot": "matplotlib",
    "cli": "typer, rich, pyarrow",
    "data": "pooch",
    "excel": "openpyxl, pyarrow",
    "pdf": "pypdf",
    "dask": "dask.array, dask.dataframe, distributed",
}


class Environment:
    """A virtual environment in a folder, with nothing in it but what is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run("uv", "venv", "--quiet", "--python", sys.executable, str(folder))
        scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
        self.python, self.latentree = scripts / "python", scripts / "latentree"

    def install(self, *what: str) -> None:
        """Install a wheel, with extras in brackets behind it."""
        run("uv", "pip", "install", "--quiet", "--python", str(self.python), *what)

    def run(self, code: str) -> str:
        """Run code in a folder in which nothing of the repository is found."""
        return run(str(self.python), "-I", "-c", code, cwd=self.folder)


def run(*command: str, cwd: Path | None = None, code: int = 0) -> str:
    """Run a command and return what it prints; another exit code than the one given is an error."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout + done.stderr


def main(folder: Path) -> None:
    """Check the one wheel and the one source archive of a folder."""
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_contents(wheel)
    print(f"{wheel.name}: the package and nothing else")
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        check_source(wheel, temporary)
        print(f"{source.name}: builds the wheel that the checkout builds")
        core = Environment(temporary / "core")
        core.install(str(wheel))
        check_core(core)
        print("core dependencies: imports quickly, learns, and names extras that are missing")
        full = Environment(temporary / "all")
        full.install(f"{wheel}[all]", "pandas")  # frames as the README has them
        check_extras(full)
        print("all extras: the first example of the README, and the command line")


def check_contents(wheel: Path) -> None:
    """Let a wheel hold sources and data of the package, whatever lies beside them on disk."""
    names = zipfile.ZipFile(wheel).namelist()
    metadata = re.compile(r"latentree-[\w.]+\.dist-info/")
    strange = [n for n in names if not (ALLOWED.fullmatch(n) or metadata.match(n))]
    assert not strange, f"{wheel.name} holds {strange}"
    sources = {f"latentree/{p.relative_to(ROOT / 'src/latentree').as_posix()}" for p in modules()}
    assert sources <= set(names), f"{wheel.name} lacks {sorted(sources - set(names))}"


def modules() -> list[Path]:
    """Return all modules of the package."""
    return list((ROOT / "src" / "latentree").rglob("*.py"))


def check_source(wheel: Path, folder: Path) -> None:
    """Build the wheel from the checkout, and compare it with the one from the source archive."""
    run("uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT))
    assert contents(folder / wheel.name) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    archive = zipfile.ZipFile(wheel)
    return {name: archive.read(name) for name in archive.namelist()}


def check_core(core: Environment) -> None:
    """Import, learn the bundled table, and ask for what is not installed."""
    seconds = min(import_seconds(core) for _ in range(5))
    assert seconds < LONGEST_IMPORT, f"import latentree takes {seconds:.2f} s"
    heavy = "{'numba', 'numpy', 'pandas', 'scipy', 'sklearn', 'networkx'}"
    assert core.run(f"import sys, latentree; print({heavy} & set(sys.modules))") == "set()\n"
    core.run(LEARN)
    for extra, code in MISSING.items():
        core.run(
            "import os, latentree as lt\n"
            f"try:\n    {code}\n"
            f"except lt.errors.MissingExtraError as error:\n"
            f"    assert 'latentree[{extra}]' in str(error), error\n"
            f"else:\n    raise SystemExit('{extra} is not missed')\n"
        )
    assert "latentree[cli]" in run(str(core.latentree), "--help", code=1)


def import_seconds(environment: Environment) -> float:
    """Return how long the import takes, without the start of Python."""
    clock = "import time; start = time.perf_counter(); import latentree;"
    return float(environment.run(f"{clock} print(time.perf_counter() - start)"))


def check_extras(full: Environment) -> None:
    """Import what every extra brings, run the first example of the README, and a command."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(IMPORTED) | {"all", "dev", "docs"} == set(project["optional-dependencies"])
    full.run("; ".join(f"import {modules}" for modules in IMPORTED.values()))
    readme = (ROOT / "README.md").read_text("utf-8")
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.S).groups()
    assert full.run(f"import sys; sys.stdout.reconfigure(encoding='utf-8')\n{code}") == printed
    version = full.run("import latentree; print(latentree.__version__)").strip()
    assert run(str(full.latentree), "--version").split() == ["latentree", version]


if __name__ == "__main__":
    main(Path(sys.argv[1]))

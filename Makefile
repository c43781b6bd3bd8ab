#: Each target installs what it needs into .venv first; `make` alone says what there is.
#:
#:   test            lint and all tests
#:   lint            ruff, mypy, import-linter, biome
#:   pytest          all tests, on all processors
#:   fuzz            damages files and frames at random for ten minutes; SECONDS=60 for one
#:   oldest          tests of a small core, with the oldest dependencies
#:   coverage        lines that tests run, module by module
#:   demo            learns the bundled examples, writes pictures and pages into demo/
#:   bench           measures ratios at small size and keeps them; BENCH= for full size
#:   bench-compare   what got slower since the last tag
#:   paper           runs the experiments of the paper; PAPER='--only stocks' for some
#:   docs            builds the documentation into build/docs
#:   dist            builds the wheel and the source archive into dist/, and checks both
#:   check-files     spelling, and the files of continuous integration
#:   audit           looks for known vulnerabilities in what is pinned
#:   pins            writes new versions of all tools into requirements/dev.txt
#:   hooks           lets git check every commit
#:   install         installs what developers need; PYTHON=python3.13 for another interpreter
#:   clean           removes .venv, caches and what was built

PYTHON ?= python3
BENCH ?= --quick
PAPER ?=
SECONDS ?= 600
BIN := .venv/bin
INSTALLED := .venv/.installed
# Modules are compiled to bytecode when they are first imported: most never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
TOOLS := PATH="$(CURDIR)/$(BIN):$$PATH"
TESTS ?=
KERNEL_TESTS ?= tests/structure/test_kernels.py tests/test_tree.py tests/models/test_gaussian.py
BIOME := npx --yes @biomejs/biome@2.6.6

.DELETE_ON_ERROR:
.PHONY: help install demo test pytest fuzz lint bench paper docs clean
.PHONY: oldest coverage bench-compare dist check-files audit pins hooks

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

# Types are checked on one processor while the tests begin on the other.
test: $(INSTALLED)
	$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: $(INSTALLED)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# Random damage to files and frames, for SECONDS.
fuzz: $(INSTALLED)
	$(BIN)/python tests/fuzz/run.py $(SECONDS)

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@if $(BIOME) --version >/dev/null 2>&1; then $(BIOME) ci; \
	else echo "$(BIOME) cannot be run here: the page's JavaScript is not linted"; fi

demo: $(INSTALLED)
	$(BIN)/latentree demo

# The benchmarks with a yardstick in the same run; the others are run one by one.
bench: $(INSTALLED)
	for name in em inference structure; do $(BIN)/python benchmarks/$$name.py $(BENCH) || exit 1; done
	$(BIN)/python docs/make_evidence.py

bench-compare: $(INSTALLED)
	$(BIN)/python benchmarks/ratios.py

paper: $(INSTALLED)
	$(BIN)/python -m experiments $(PAPER)

docs: .venv/.docs
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs

# The wheel is built from the source archive; TOOLS on the PATH, as nox and the check call uv.
dist: .venv/.tools
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(TOOLS) $(BIN)/python tests/release/check_dist.py dist

oldest: .venv/.tools
	$(TOOLS) $(BIN)/nox --session oldest

check-files: .venv/.tools
	$(BIN)/codespell
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --no-progress --quiet .github

# TESTS chooses what is measured. Compiled code is not seen: KERNEL_TESTS run kernels as Python.
coverage: .venv/.tools
	rm -rf build/coverage && mkdir -p build/coverage
	OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n auto --dist worksteal $(TESTS)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -n auto $(KERNEL_TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort cover
	$(BIN)/coverage json --quiet -o build/coverage/report.json
	$(BIN)/python tests/release/check_coverage.py build/coverage/report.json

audit: .venv/.tools
	$(BIN)/pip-audit --requirement requirements/dev.txt --disable-pip --no-deps

pins: .venv/.tools
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links --extra dev --extra docs \
	  pyproject.toml requirements/tools.in --output-file requirements/dev.txt

hooks: .venv/.tools
	$(BIN)/pre-commit install --hook-type pre-commit --hook-type commit-msg

install: $(INSTALLED)

# A stamp, so that a second call installs nothing; changed requirements install again.
$(INSTALLED): pyproject.toml requirements/dev.txt src/latentree/_version.py
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --constraint requirements/dev.txt --editable '.[dev]'
	touch $@

.venv/.docs: $(INSTALLED)
	$(PIP) --constraint requirements/dev.txt --editable '.[docs]'
	touch $@

.venv/.tools: $(INSTALLED) requirements/tools.in
	$(PIP) --constraint requirements/dev.txt --requirement requirements/tools.in
	touch $@

clean:
	rm -rf .venv .nox build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks experiments -name __pycache__ -prune -exec rm -rf {} +

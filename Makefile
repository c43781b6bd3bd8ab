# make test, fuzz, lint, demo, bench, paper, docs: each installs what it needs into .venv first.
# PYTHON chooses the interpreter for that, BENCH what the benchmarks are told, PAPER what the
# experiments are, SECONDS how long the fuzzers run.

PYTHON ?= python3
BENCH ?= --quick
PAPER ?=
SECONDS ?= 600
BIN := .venv/bin
INSTALLED := .venv/.installed
# Modules are compiled to bytecode when they are first imported: most never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
BIOME := npx --yes @biomejs/biome@2.6.6

.DELETE_ON_ERROR:
.PHONY: install demo test pytest fuzz lint bench paper docs clean

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

bench: $(INSTALLED)
	@for script in $(filter-out benchmarks/common.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script $(BENCH) || exit 1; done

paper: $(INSTALLED)
	$(BIN)/python -m experiments $(PAPER)

docs: .venv/.docs
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs

install: $(INSTALLED)

# A stamp, so that a second call installs nothing; a changed pyproject.toml installs again.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	touch $@

.venv/.docs: $(INSTALLED)
	$(PIP) --editable '.[docs]'
	touch $@

clean:
	rm -rf .venv build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks experiments -name __pycache__ -prune -exec rm -rf {} +

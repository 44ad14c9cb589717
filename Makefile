# make demo   compact the example session and show what happened
# make test   lint, types and tests
# make docs   the documentation, warnings are errors
# make bench  ours beside the peers, about ten minutes; writes the tables of docs/benchmarks.md
#
# Each target sets up what it needs in $(VENV): Python 3.11 or newer with pip and venv is enough.

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
BENCH := $(BENCH_VENV)/.bench

.PHONY: help setup demo test lint docs bench clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(DEVELOPMENT)

demo: $(RUNTIME)
	@mkdir -p build
	@$(BIN)/chat-compaction compact examples/release-agent.json --max-tokens 8000 --target-tokens 4000 \
		-o build/demo.json --report build/demo-report.json --table
	@echo "Written: build/demo.json (the messages), build/demo-report.json (the report)"

test: lint
	$(BIN)/pytest --cov --numprocesses auto --dist loadfile

lint: $(DEVELOPMENT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DEVELOPMENT)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --builder html --doctree-dir build/doctrees docs build/docs

# The peers bring a lot: they have an environment of their own.
bench: $(BENCH)
	$(BENCH_VENV)/bin/python -m benchmarks.peers --write docs/benchmarks.md $(BENCHFLAGS)

clean:
	rm -rf $(VENV) $(BENCH_VENV) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

# The stamps: the environment, what running needs, what working on it needs.
$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, try make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@echo "Setting up $(VENV) (once)" >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUNTIME): pyproject.toml | $(MADE)
	@$(PIP) install --editable ".[cli]"
	@touch $@

# Dependency groups need pip 25.1.
$(DEVELOPMENT): pyproject.toml | $(MADE)
	@$(PIP) install --upgrade "pip>=25.1"
	@$(PIP) install --editable ".[cli,config,endpoint,extractive,offload]" --group dev --group docs
	@touch $(RUNTIME) $@

$(BENCH): pyproject.toml
	@$(MAKE) --no-print-directory VENV=$(BENCH_VENV) $(BENCH_VENV)/.made
	@$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --upgrade "pip>=25.1"
	@$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --editable . --group bench
	@touch $@

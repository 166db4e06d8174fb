# Everything runs in $(VENV), made from nothing but Python and pip.
# The lock, and bit-for-bit results, are for Python 3.11; newer ones are tested, too.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p))))
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow fault fault-ray test-python lint format type docs check lock build clean

help:  ## list the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

setup: $(READY)  ## make .venv with the exact versions of requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "No Python 3.11 or newer: install one, or name it: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@echo "Installing into $(VENV) (about 800 MB, one to three minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -qq -r requirements.lock
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)  ## Point-Robot end to end: collect, train, evaluate, report.html
	@$(BIN)/ertrl demo

test: $(READY)  ## the tests, under 8 minutes on two cores
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not fault_ray"

test-slow: $(READY)  ## does every method learn? do the commands of the docs and the notebook run? six minutes
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/pytest -n 2 --dist worksteal -m slow

fault-ray: $(READY)  ## a grid on a Ray cluster that loses a machine: equal to the local one? a few minutes
	$(BIN)/pytest -m fault_ray

fault: $(READY)  ## crashes, damage, hostile files: under 15 minutes, one line of JSON at the end
	$(BIN)/python benchmarks/faults.py

test-python:  ## the tests with another Python, in an environment of its own: make test-python PYTHON=python3.13
	$(MAKE) test PYTHON=$(PYTHON) VENV=.venv-$(notdir $(PYTHON))

lint: $(READY)  ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)  ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(READY)  ## static types
	$(BIN)/ty check --python $(VENV)

docs: $(READY)  ## the docs site in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: lint type docs test  ## lint, types, docs and tests; CI also runs test-slow

results-%: $(READY) benchmarks/%.py  ## make a part of results/ again; NAME.py in benchmarks/ says what and how long; ARGS="..." are passed on
	$(BIN)/python benchmarks/$*.py $(ARGS)

lock: $(READY)  ## refresh requirements.lock from pyproject.toml
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile --quiet --python-version 3.11 --group dev --no-header --no-emit-index-url --no-annotate \
	  pyproject.toml -o requirements.lock

build: $(READY)  ## build the wheel and run it in an environment of its own
	rm -rf dist
	$(PIP) wheel --quiet --no-deps --no-build-isolation -w dist .
	$(PYTHON) -m venv dist/venv
	dist/venv/bin/pip install --quiet --disable-pip-version-check -c requirements.lock dist/ertrl-*.whl
	dist/venv/bin/ertrl list

clean:  ## remove everything that make made
	rm -rf .venv .venv-* dist build demo .pytest_cache .ruff_cache .hypothesis

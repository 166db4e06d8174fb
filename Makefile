# Everything runs in .venv, made from nothing but Python 3.11 and pip.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint format type check bench results results-cheetah results-style results-collect results-benefit report lock build clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 18

setup: $(READY)  ## make .venv with the exact versions of requirements.lock

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11, or run 'make PYTHON=/path/to/python3.11 ...'"; exit 1; }
	@echo "Installing into .venv (about 800 MB, one to three minutes) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install -qq --disable-pip-version-check -r requirements.lock
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)  ## Point-Robot end to end: collect, train, evaluate, report.html
	@$(BIN)/ertrl demo

test: $(READY)  ## the tests, under 10 minutes on two cores
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(READY)  ## the tests over a minute
	$(BIN)/pytest -n 2 --dist worksteal -m slow

lint: $(READY)  ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)  ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(READY)  ## static types
	$(BIN)/ty check

check: lint type test  ## what CI runs

bench: $(READY)  ## measure updates/s and the fraction of this machine's matrix-product peak
	$(BIN)/ertrl bench train

results: $(READY)  ## make results/ again: all methods on Point-Robot, three seeds, about 20 minutes
	$(BIN)/python benchmarks/methods.py

results-cheetah: $(READY)  ## all methods on Cheetah-Vel, with and without next states, about an hour
	$(BIN)/python benchmarks/methods.py cheetah-vel

results-style: $(READY)  ## dose and response: ER-TRL against FOCAL as collectors differ more and more
	$(BIN)/python benchmarks/style.py point-robot
	$(BIN)/python benchmarks/style.py cheetah-vel

results-collect: $(READY)  ## behaviour data of all MuJoCo families, about two hours
	$(BIN)/python benchmarks/collect.py

results-benefit: $(READY)  ## ER-TRL against FOCAL on all MuJoCo families, about three hours with their data
	$(BIN)/python benchmarks/benefit.py

report: $(READY)  ## one report over all methods on Point-Robot and Cheetah-Vel, with pictures of it
	$(BIN)/python benchmarks/report.py

lock: $(READY)  ## refresh requirements.lock from pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --python-version 3.11 --group dev --no-header --no-emit-index-url --no-annotate pyproject.toml -o requirements.lock

build: $(READY)  ## build the wheel and run it in an environment of its own
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation -w dist .
	$(PYTHON) -m venv dist/venv && dist/venv/bin/pip install --quiet -c requirements.lock dist/ertrl-*.whl && dist/venv/bin/ertrl list

clean:  ## remove everything that make made
	rm -rf .venv dist build demo .pytest_cache .ruff_cache .hypothesis

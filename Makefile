# Two commands do everything: `make demo` and `make test`. Each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint study bench docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   install and solve the wireless example"
	@echo "make test   install with the test tools; lint, type check, tests"
	@echo "make study  the full form of the statistical checks, and the studies (long)"
	@echo "make bench  ratios against what the machine allows"
	@echo "make docs   the site in docs/_build/html, and the examples that make test leaves out"

$(VENV)/created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/demo: $(VENV)/created pyproject.toml constraints.txt
	$(INSTALL) -e .
	@touch $@

$(VENV)/test: $(VENV)/created pyproject.toml constraints.txt
	$(INSTALL) -e ".[test]"
	@touch $@ $(VENV)/demo

demo: $(VENV)/demo
	$(BIN)/saddleback solve wireless --check

lint: $(VENV)/test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

test: lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not study"

$(VENV)/study: $(VENV)/test
	$(INSTALL) -e ".[test,study]"
	@touch $@

study: $(VENV)/study
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 -m study -rP tests
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m studies

bench: $(VENV)/test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks

$(VENV)/docs: $(VENV)/test
	$(INSTALL) -e ".[test,docs]"
	@touch $@

docs: $(VENV)/docs
	$(BIN)/python -m sphinx -W -n --keep-going -q docs docs/_build/html
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 SADDLEBACK_DOCS=1 $(BIN)/pytest -n 2 tests/test_docs.py

clean:
	rm -rf $(VENV) dist build docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis

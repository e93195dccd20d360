# `make demo` to see it, `make test` while you work, `make check` before you publish. Each makes its own environment.
PYTHON ?= python3
MINIMUM_PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
OLD := .venv-minimum
PIP := -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/python $(PIP) -c constraints.txt
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Hundreds of tests start Python: without the compiled files each would compile the library again.
unexport PYTHONDONTWRITEBYTECODE
WORKERS := 2
PYTEST = $(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) --durations=25

# What rests on how a processor rounds: the examples of the pages, and the golden record. Left to `make processors` and `make docs`.
PROCESSORS := Nehalem Haswell
ROUNDED := tests/golden tests/repository/test_docs.py tests/repository/test_yesterday.py

# What is tried with the oldest versions that pyproject.toml allows: two minutes of everything that calls other packages.
MINIMUM := tests/exact tests/method tests/designs tests/files tests/sampling/test_gather.py tests/sampling/test_maximum.py tests/sampling/store tests/runs \
	tests/sampling/test_buffer.py tests/sampling/executors/test_joblib.py tests/sampling/executors/test_serial.py \
	tests/solving/test_solve.py tests/solving/test_default.py tests/problem/test_cmdp.py tests/problem/test_policies.py \
	tests/cli/test_help.py tests/cli/test_solve.py tests/cli/test_act.py tests/cli/test_certify.py tests/reports/test_text.py

.PHONY: help demo lint test check long-tests processors minimum study bench docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo        install and solve the wireless example"
	@echo "make test        lint, types, and the core suite: a few minutes"
	@echo "make check       everything else: browser, Ray, kills, fuzz, coverage, docs, wheel, old versions, other processors"
	@echo "make study       the full form of the statistical checks, and the studies (long)"
	@echo "make bench       ratios against what the machine allows"
	@echo "make docs        the site in docs/_build/html, and the examples that make test leaves out"
	@echo "make minimum     the core suite with the oldest versions that pyproject.toml allows (Python 3.11)"
	@echo "make processors  pages and golden record as other processors round"

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
	$(PYTEST) --dist worksteal -m "not slow and not check and not study"

check: long-tests docs processors minimum

# Three workers for two cores: kills, browsers and Ray wait for other processes more than they compute.
long-tests: WORKERS := 3
long-tests: $(VENV)/test
	$(PYTEST) --dist loadgroup -m "(slow or check) and not study" $(addprefix --ignore=,$(ROUNDED))

processors: $(VENV)/test
	@for name in $(PROCESSORS); do \
		echo "as $$name"; OPENBLAS_CORETYPE=$$name $(PYTEST) --dist worksteal -m "not study" $(ROUNDED) || exit 1; \
	done
	$(BIN)/python tests/golden/processors.py --quick

$(OLD)/created: pyproject.toml constraints-minimum.txt
	@command -v $(MINIMUM_PYTHON) > /dev/null || \
		{ echo "make minimum needs Python 3.11, which the oldest versions were made for: MINIMUM_PYTHON=... names it"; exit 1; }
	$(MINIMUM_PYTHON) -m venv $(OLD)
	$(OLD)/bin/python $(PIP) -c constraints-minimum.txt -e ".[gymnasium]" hypothesis jsonschema pexpect pytest pytest-xdist
	@touch $@

minimum: $(OLD)/created
	$(ONE_THREAD) $(OLD)/bin/pytest -n 2 --dist worksteal -m "not check and not study" $(MINIMUM)

$(VENV)/study: $(VENV)/test
	$(INSTALL) -e ".[test,study]"
	@touch $@

study: $(VENV)/study
	$(PYTEST) -m study -rP tests
	$(ONE_THREAD) $(BIN)/python -m studies

bench: $(VENV)/test
	$(ONE_THREAD) $(BIN)/python -m benchmarks

$(VENV)/docs: $(VENV)/test
	$(INSTALL) -e ".[test,docs]"
	@touch $@

docs: $(VENV)/docs
	$(BIN)/python -m sphinx -W -n --keep-going -q docs docs/_build/html
	SADDLEBACK_DOCS=1 $(PYTEST) tests/repository/test_docs.py

clean:
	rm -rf $(VENV) $(OLD) dist build docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis

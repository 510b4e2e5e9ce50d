# Two commands on a fresh machine: `make demo` and `make test`. Paths are relative, so the project's may have spaces.
.DEFAULT_GOAL := help
.PHONY: help demo dashboard dashboard-check test test-all check docs docs-serve pages requirements bench clean

# What a caller's shell says about Python must not leak into the project's own environment.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
PYTHON_RUN := .venv/bin/python
# More arguments for pytest: make test ARGS="-k retry"
ARGS ?=
# How many processes share the tests, each with its own PostgreSQL; 0 runs them in one. Half of their time tests wait, for
# processes, leases and disks, so there are two a core; at full size they work, and there is one.
CORES := $(shell nproc 2>/dev/null || echo 2)
test: WORKERS ?= $(shell expr 2 \* $(CORES))
test-all: WORKERS ?= $(CORES)
PYTEST = $(PYTHON_RUN) -m pytest --numprocesses=$(WORKERS) --maxprocesses=8 --dist=worksteal
# make test-all ONLY_SIZED=1 leaves out what make test has already run at its only size.
ONLY_SIZED ?=

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: ## Install the core and watch tasks survive a killed worker
	@sh tools/install core
	@sh tools/dashboard build --optional
	@.venv/bin/headrace demo

dashboard: ## Build the dashboard into the server (node of the machine, or from PyPI)
	@sh tools/dashboard build

dashboard-check: ## Check the dashboard's types and run its unit tests
	@sh tools/dashboard check

test: ## Run the tests, two processes a core (each starts a private PostgreSQL)
	@sh tools/install test
	@HEADRACE_TEST_SIZE=small HEADRACE_HYPOTHESIS_PROFILE="$${HEADRACE_HYPOTHESIS_PROFILE:-repeatable}" $(PYTEST) $(ARGS)

test-all: ## Run every test, with the crash tests at full size and the parts that are large to install
	@sh tools/install all
	@sh tools/dashboard parts --optional
	@sh tools/dashboard build --optional
	@HEADRACE_TEST_SIZE=full HEADRACE_TEST_ONLY_SIZED=$(ONLY_SIZED) HEADRACE_HYPOTHESIS_PROFILE="$${HEADRACE_HYPOTHESIS_PROFILE:-random}" $(PYTEST) $(ARGS)

check: ## Lint, formatting, types and layers
	@sh tools/install check
	$(PYTHON_RUN) -m ruff check .
	$(PYTHON_RUN) -m ruff format --check .
	$(PYTHON_RUN) -m basedpyright
	.venv/bin/lint-imports

# The theme's own notice is no warning of ours.
docs: ## Build the documentation into build/docs; a warning is an error
	@sh tools/install docs
	@NO_MKDOCS_2_WARNING=1 $(PYTHON_RUN) -m mkdocs build --strict --quiet
	@echo "build/docs/index.html"

docs-serve: ## Serve the documentation on http://127.0.0.1:8000, built anew at each change
	@sh tools/install docs
	@NO_MKDOCS_2_WARNING=1 $(PYTHON_RUN) -m mkdocs serve

pages: ## Write the generated pages anew: states, settings, presets, options, specifications, commands
	@sh tools/install core
	@for tool in states references specifications cli_reference; do $(PYTHON_RUN) tools/$$tool.py || exit 1; done

requirements: ## List the requirement lines no passing test names (LINES="A1 K5-K9" checks those)
	@"$$(sh tools/find-python)" tools/requirements.py $(LINES)

# make bench PART=workflows, or PARTS="drain latency" PAIRS=7; SIZE=smoke only shows that everything runs, PARTS= only writes the page.
PART ?= drain enqueue latency growth recovery workflows server
PARTS ?= $(PART)
PAIRS ?=
SIZE ?= full
bench: ## Measure headrace against its peers and write docs/explanation/performance.md
	@sh tools/install-bench
	@.cache/bench-venv/bin/python -m bench --parts $(PARTS) --size $(SIZE) $(if $(PAIRS),--pairs $(PAIRS))

clean: ## Remove the environment and every cache
	rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	rm -rf dashboard/node_modules src/headrace/server/static
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run check test docs bench soak oracles mcp-conformance clean

PYTHON ?= python3
BIN := .venv/bin
FIGURES ?= build/soak.jsonl
# What is slow in a file is made once for its tests. Tests wait a third of their time: up to three cores have one worker more.
WORKERS = $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); echo $$((cores < 4 ? cores + 1 : 4)))
SPREAD = --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# A kill leaves what was written, on whatever disk: homes of tests are in memory, where it has room for them. What is
# measured, and what runs for hours, has the disk as it is.
AVAILABLE_GB = df --output=avail --block-size=1G /dev/shm 2>/dev/null | tail -n 1
IN_MEMORY = $(shell [ "$$($(AVAILABLE_GB))" -ge 3 ] 2>/dev/null && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)
# Alone are a few; collecting all for them would take as long as a test.
ALONE = $(shell grep --recursive --files-with-matches --include '*.py' 'mark\.alone' tests)
INSTALL := $(BIN)/python -m pip install -qq --editable .
TESTKIT := --editable packages/testkit
# Client libraries of others have versions of their own: they are never installed beside what the program runs with.
ORACLES := .venv/oracles/bin

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/.run .venv/.offered ## Install into .venv and start a chat
	@$(BIN)/keepsaid chat

check: .venv/.test ## Run the static checks: ruff, format, mypy, arrows
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary --num-workers 2
	@arrows=$$($(BIN)/lint-imports --no-logo 2>&1) || { printf '%s\n' "$$arrows"; exit 1; }

test: check ## Run the static checks, then the tests, on up to four cores
	@$(IN_MEMORY) $(BIN)/pytest --quiet -m "not soak and not alone" $(SPREAD)
	@$(BIN)/pytest --quiet -m "alone and not soak" --numprocesses 2 --dist loadfile --no-loadscope-reorder $(ALONE)

docs: .venv/.docs ## Build the site of the documentation into build/site; a broken link fails
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c . docs build/site

bench: .venv/.bench ## Measure
	@$(BIN)/python -m bench

soak: .venv/.test ## Run the long tests, or PART=property, points, kills, crash_loop, cuts, frozen, fuzz, seeds, scopes or hour; figures go to FIGURES
	@mkdir -p $(dir $(FIGURES))
	@$(if $(filter-out property,$(PART)),,KEEPSAID_TEST_EFFORT=10 $(BIN)/pytest --quiet --timeout 14400 $(SPREAD) tests/property)
	@$(if $(filter property,$(PART)),,$(BIN)/pytest --quiet -m soak --timeout 14400 -o faulthandler_timeout=14400 --figures $(FIGURES) $(if $(PART),-k $(PART)))

oracles: .venv/.oracles ## Run the popular client library of each provider against the scripted providers
	@$(ORACLES)/pytest --quiet --confcutdir tests/oracles tests/oracles

mcp-conformance: .venv/.mcp-conformance ## Run the conformance suite of the Model Context Protocol (needs npm)
	@$(BIN)/pytest --quiet -rs tests/acceptance/test_mcp_conformance.py

clean: ## Remove .venv, caches and build output
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests bench -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# `pip install --group` needs pip 25.1, which is newer than what many pythons put into a new venv.
.venv/.base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "keepsaid needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "Installing into .venv (once; a minute or so)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'
	@touch $@

.venv/.run: pyproject.toml .venv/.base
	@$(INSTALL)
	@touch $@

# Once: the local model is 84 MB, and wanted or not by who runs it.
.venv/.offered: | .venv/.run
	@$(BIN)/keepsaid models pull --offer
	@touch $@

.venv/.test .venv/.bench: .venv/.%: pyproject.toml packages/testkit/pyproject.toml .venv/.base
	@$(INSTALL) $(TESTKIT) --group $*
	@touch $@

.venv/.docs: pyproject.toml .venv/.base
	@$(BIN)/python -m pip install -qq --group docs
	@touch $@

# The suite needs a newer node than many machines have: npm brings that too.
.venv/.mcp-conformance: .venv/.test
	@npm install --silent --no-audit --no-fund --prefix .venv/mcp-conformance node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
	@touch $@

.venv/.oracles: pyproject.toml .venv/.base
	@$(PYTHON) -m venv .venv/oracles
	@$(ORACLES)/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(ORACLES)/python -m pip install -qq --editable '.[channels,email,nostr]' --group oracles
	@touch $@

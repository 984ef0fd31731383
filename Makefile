# Everything one does with this repository; `make help` lists it.
# Needs Python 3.11 or newer, nothing else: all tools are installed into .venv.

BIN := .venv/bin
PROJECTS := $(wildcard proto/pyproject.toml libs/*/pyproject.toml services/*/pyproject.toml deploy/*/pyproject.toml)
MEMBERS := $(PROJECTS:%/pyproject.toml=%)

# Each candidate is run, not only looked up: a version manager's shim may exist and fail.
PYTHON = $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)

# uv does not read pip's settings; an index that is set there is meant for us, too.
PIP_INDEX = $(shell $(BIN)/pip config list 2>/dev/null | sed -n "s/.*index-url='\(.*\)'/\1/p" | grep -v extra | head -n 1)
UV = $(if $(UV_DEFAULT_INDEX)$(UV_INDEX_URL),,$(if $(PIP_INDEX),UV_DEFAULT_INDEX='$(PIP_INDEX)')) $(BIN)/uv
# Compiled once here rather than by three services at once at the first start.
INSTALL = $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python \
	-c requirements.lock --build-constraints requirements.lock $(MEMBERS:%=-e %)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- environment ---

# A virtual environment holds absolute paths: one that was moved here, or whose Python is gone, is made anew.
ifneq ($(shell test -x $(BIN)/python && cat .venv/.folder 2>/dev/null),$(CURDIR))
.PHONY: $(BIN)/uv
endif

$(BIN)/uv:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@echo "first start: making the virtual environment"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@printf '%s\n' "$(CURDIR)" > .venv/.folder

.venv/.run: requirements.lock $(PROJECTS) $(BIN)/uv
	@echo "installing what the services need"
	@$(INSTALL)
	@touch $@

.venv/.dev: .venv/.run pyproject.toml
	@echo "installing the tools"
	@$(INSTALL) --group dev
	@touch $@

.venv/.bench: .venv/.dev
	@echo "installing what the benchmark needs"
	@$(INSTALL) --group dev --group bench
	@touch $@

setup: .venv/.run ## Install what running needs (done by `make run`)
dev: .venv/.dev ## Install what tests and tools need (done by `make test`)

# --- running ---

run: setup ## Run everything on this machine; Ctrl-C stops it
	@$(BIN)/taskexecutor-local

migrate: setup ## Bring the database TE_DATABASE_URL up to date
	@$(BIN)/taskexecutor-migrate

# --- tests ---

# The tests of one file stay together: they share a system, or a server.
test: dev ## Run every test, in PROCESSES=2 side by side
	@$(BIN)/pytest -n $(or $(PROCESSES),2) --dist loadfile

test-unit: dev ## Run the tests that start no whole system
	@$(BIN)/pytest tests/unit

test-one: dev ## Run some tests: make test-one T=tests/unit/local
	@$(BIN)/pytest -v $(T)

# Each round draws new examples and stops at the first test that fails; a round takes two to three minutes.
fuzz: dev ## Fuzz at random for MINUTES=10, in rounds of TIMES=5 times what the suite tries
	@end=$$(( $$(date +%s) + 60 * $(or $(MINUTES),10) )); \
	while TE_FUZZ_TIMES=$(or $(TIMES),5) $(BIN)/pytest -q -x tests/fuzz; do \
		[ $$(date +%s) -lt $$end ] || exit 0; \
	done; exit 1

chaos: dev ## Break every part on purpose and audit what is left; S='killed': some scenarios
	@TE_CHAOS=all $(BIN)/pytest tests/chaos --ignore tests/chaos/test_soak.py -q $(if $(S),-k '$(S)')

soak: dev ## A fault every few seconds for MINUTES=10 under JOBS=100000, then the audit
	@TE_CHAOS=all TE_SOAK_MINUTES=$(or $(MINUTES),10) TE_SOAK_JOBS=$(or $(JOBS),100000) $(BIN)/pytest tests/chaos/test_soak.py -q

# --- speed ---

# The peers get environments of their own, which are filled from the same index.
BENCH = $(UV:$(BIN)/uv=) $(BIN)/python -m bench

bench: .venv/.bench ## Measure this system beside its peers; B=drain: one scenario; BENCH_QUICK=1, BENCH_ROUNDS=n
	@$(BENCH) $(B)

bench-report: .venv/.bench ## Rewrite the figures in docs/performance.md; R=FILE: of that run
	@$(BENCH).report $(R)

# --- what a change must hold to ---

check: lint test-unit ## Lint, then the unit tests
lint: style types layers sql proto-check gen-check ## Every check that runs no code

fmt: dev ## Format, and fix what can be fixed
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

style: dev ## Check format and lint
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check

types: dev ## Check types
	@$(BIN)/mypy libs services deploy tools bench

layers: dev ## Check who imports whom
	@$(BIN)/lint-imports --no-logo

sql: dev ## Check the SQL against its rules; runs no database
	@$(BIN)/pytest -q tests/contract/test_sql_rules.py

# Built once, by hand: it is large, and few have Go.
CRDB_PARSER = github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser@v0.25.2

crdb-grammar: dev ## Have CockroachDB's own parser read the SQL; needs Go, and minutes the first time
	@mkdir -p .venv/crdb_parser && cp tests/tools/crdb_parser/main.go .venv/crdb_parser/
	@cd .venv/crdb_parser && { test -f go.mod || go mod init crdb_parser; } && go get $(CRDB_PARSER) && go build -o ../bin/crdb_parser .
	@$(BIN)/pytest -q tests/contract/test_crdb_grammar.py

# --- the contract ---

gen: dev ## Rewrite what is made from proto/
	@$(BIN)/python tools/gen.py
	@$(BIN)/taskexecutor-envoy-config

gen-check: dev ## Check that it is current
	@$(BIN)/python tools/gen.py --check
	@$(BIN)/taskexecutor-envoy-config --check

BUF_INPUT = .venv/described.binpb\#format=binpb

proto-check: dev ## Check the contract's style, and that it breaks no client
	@$(BIN)/python tools/gen.py --descriptor .venv/described.binpb
	@$(BIN)/buf lint '$(BUF_INPUT)' --config proto/buf.yaml
	@$(BIN)/buf breaking '$(BUF_INPUT)' --config proto/buf.yaml --against 'proto/baseline.binpb#format=binpb'

proto-baseline: dev ## Make the present contract the one that must not be broken
	@$(BIN)/python tools/gen.py --descriptor proto/baseline.binpb

# --- upkeep ---

lock: $(BIN)/uv ## Rewrite requirements.lock; with ARGS=--upgrade to the newest versions allowed
	@$(UV) pip compile --quiet $(ARGS) --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		$(PROJECTS) --group pyproject.toml:dev --group pyproject.toml:bench $(patsubst %,--no-emit-package taskexecutor-%,$(notdir $(MEMBERS))) -o requirements.lock

clean: ## Remove what can be made again; .data stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis bench/.cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup dev run migrate test test-unit test-one fuzz bench bench-report check lint fmt style types layers sql crdb-grammar
.PHONY: gen gen-check proto-check proto-baseline lock clean

# make demo | test | dev | check | lint | test-lake | proof | bench | scale-demo: each sets itself up first. ORDERS_HOME names the workspace (default: data).
SHELL := /bin/bash
export ORDERS_HOME := $(abspath $(or $(ORDERS_HOME),data))
export DAGSTER_HOME := $(ORDERS_HOME)/dagster
export DAGSTER_DISABLE_TELEMETRY := yes
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PORT ?= 3000
DAYS ?= 2026-01-05...2026-02-01
DAILY := raw_orders,stg_orders,fct_orders,revenue_daily
PYTEST := env -u ORDERS_HOME -u DAGSTER_HOME $(BIN)/python -m pytest

.PHONY: help setup demo test check lint dev test-lake proof bench scale-demo clean

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.venv/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and none was found. Try: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	@touch $@

setup: .venv/.installed  ## Install into .venv and create the workspace
	@$(BIN)/python -m compileall -q orders_platform
	@$(BIN)/orders setup

demo: setup  ## Fill a sample source, materialize four weeks, print what was published
	@$(BIN)/orders source init --yes
	@echo "Materializing $(DAILY) for $(DAYS) …"
	@$(BIN)/dagster asset materialize --select '$(DAILY)' --partition-range $(DAYS) >$(ORDERS_HOME)/demo.log 2>&1 \
		|| { grep -E 'Failure:|Error' $(ORDERS_HOME)/demo.log; echo "The whole log: $(ORDERS_HOME)/demo.log"; exit 1; }
	@$(BIN)/orders status
	@$(BIN)/orders query "select date_trunc('week', order_date)::date as week, currency, sum(orders) as orders, sum(revenue) as revenue from published.revenue_daily group by all order by all"

test: lint  ## Lint, types, import contracts, then the whole suite
	$(PYTEST) -n 3 --dist worksteal

check: lint test  ## Everything CI runs

lint: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

dev: setup  ## The Dagster UI, opened on the lineage: http://127.0.0.1:3000/asset-groups
	@for second in $$(seq 60); do sleep 1; \
		$(BIN)/python -c "import socket; socket.create_connection(('127.0.0.1', $(PORT))).close()" 2>/dev/null || continue; \
		$(BIN)/python -m webbrowser -t http://127.0.0.1:$(PORT)/asset-groups; break; done & \
	exec $(BIN)/dagster dev --host 127.0.0.1 --port $(PORT)

test-lake: setup  ## The same suites on DuckLake, its catalog in a Postgres that the tests start
	ORDERS_TEST_ENGINE=lake $(PYTEST) -n 2 --dist worksteal tests/warehouse tests/recovery tests/delivery tests/checks tests/scenarios tests/drills

proof: setup  ## The long versions of the kill, concurrency, history and delivery tests (about an hour)
	ORDERS_PROOF=1 $(PYTEST) -rP -s tests/warehouse tests/delivery tests/recovery tests/scenarios tests/drills tests/assets tests/test_scale.py

bench: setup  ## Ours beside a bare script, dbt, SQLMesh and stock Dagster (see docs/performance.md)
	$(BIN)/python -m benchmarks $(BENCH)

scale-demo: setup  ## 60 days by two workers on Postgres, Redis and S3, one killed midway (see docs/scale.md)
	$(BIN)/python scripts/scale_demo.py $(SCALE)

clean:  ## Remove what was generated, not what was committed
	rm -rf .venv .env $(filter-out $(ORDERS_HOME)/sample,$(wildcard $(ORDERS_HOME)/*))

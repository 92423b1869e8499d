# Needs Python >= 3.11 and make; everything else is installed into .venv from requirements.lock.
PYTHON ?= python3
CORES ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
BIN := .venv/bin
READY := .venv/.installed
# Images of containers set it, and then each of a run's hundreds of processes compiles the project's modules anew.
unexport PYTHONDONTWRITEBYTECODE
# The checks of `make lint`, one target each. .pre-commit-config.yaml has a hook for each (a test compares them).
CHECKS := lint-ruff lint-format lint-snakefmt lint-notebooks lint-config lint-imports lint-types

.PHONY: reproduce smoke real published paper test test-fast test-times test-faults test-workers test-slurm browser lint $(CHECKS) benchmark benchmark-tuner docs clean install reference lock

reproduce: install  ## every artefact of config.yaml, into results/laptop
	$(BIN)/snakemake --cores $(CORES)

smoke: install  ## offline figures on `tables`, synthetic studies and theory at toy sizes, into results/smoke
	$(BIN)/snakemake --cores $(CORES) --configfile config/smoke.yaml

real: install  ## headline figures of HyperBO on LCBench, which is downloaded (or copied from METABO_DATA)
	$(BIN)/snakemake --cores $(CORES) hyperbo_fig08_lcbench hyperbo_x05_lcbench hyperbo_x06_lcbench

published: install  ## the published sizes on the tables that can be had, what decides most first (downloads; days on two cores; goes on where it stopped)
	$(BIN)/python benchmarks/published.py run --cores $(CORES)

paper: install  ## the published sizes on the papers' archives (downloads; some 157,000 core hours)
	$(BIN)/snakemake --cores $(CORES) --configfile config/paper.yaml

test: install browser
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadscope --no-loadscope-reorder

test-fast: install  ## without the tests that take long (tests/slow.txt)
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadscope --no-loadscope-reorder -m "not slow"

test-times: install  ## all tests, timed: which of them take long is written to tests/slow.txt
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadscope --no-loadscope-reorder --junitxml=.cache/tests.xml
	$(BIN)/python -m tests.slow .cache/tests.xml

test-faults: install  ## what goes wrong outside the code: damaged files, texts, numbers, some 5,300 tries; then every call to the system that tell, claim and publish make, failing in turn, some 5,300 points; minutes
	$(BIN)/python -m tests.adversary
	$(BIN)/python -m tests.tuner.crashes

test-workers: install  ## eight workers of the Optuna sampler at once, threads and processes, on SQLite and Journal storage: nothing repeated, nothing lost; ten minutes
	$(BIN)/python -m tests.tuner.workers

test-slurm: install  ## part of the smoke workflow through a real Slurm of two nodes, from Debian's packages; root, up to an hour
	$(BIN)/python -m tests.slurm.run

browser:  ## Debian's Chromium and its driver, for the test of the report page; where it cannot be had that test is skipped
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	|| { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } \
	|| echo "browser: chromium and chromium-driver could not be installed (that needs apt and root)"

lint: $(CHECKS)  ## what every commit passes

lint-ruff: install
	$(BIN)/ruff check .

lint-format: install
	$(BIN)/ruff format --check .

lint-snakefmt: install
	$(BIN)/snakefmt --check Snakefile workflow

lint-notebooks: install  ## templates are stored without outputs
	find notebooks -name '*.ipynb' -exec $(BIN)/nbstripout --verify --keep-id {} +

lint-config: install  ## config.yaml, its overlays and the catalogue
	$(BIN)/metabo check-config

lint-imports: install  ## a room imports only rooms above it: the contracts of import-linter in pyproject.toml
	$(BIN)/lint-imports

lint-types: install  ## types of the rooms that pyproject.toml names
	$(BIN)/basedpyright

benchmark: install  ## speed and memory against a textbook implementation, BoTorch, Optuna, scikit-learn and a limit, as ratios
	$(BIN)/python -m pip install --quiet -r requirements-bench.lock
	$(BIN)/python benchmarks/run.py

benchmark-tuner: install  ## the tuner's default against Optuna's samplers, RGPE and a portfolio on held-out problems (hours; goes on where it stopped)
	$(BIN)/python -m pip install --quiet -r requirements-bench.lock
	$(BIN)/python benchmarks/tuner/run.py held_out --jobs $(CORES)
	$(BIN)/python benchmarks/tuner/report.py held_out --record --out benchmarks/tuner/results/held_out.csv

docs: install  ## the site, into site/; a warning or a link that leads nowhere stops it
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:  ## results, the site, workflow state and caches; keeps the environment and the downloaded archives
	find results/ -mindepth 1 -not -name README.md -delete
	rm -rf site .snakemake .cache/jax .cache/code .cache/unfinished .cache/run.lock .cache/jobs.lock .pytest_cache .ruff_cache .import_linter_cache .hypothesis

install: $(READY)

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -c 'import sys; sys.exit("Python >= 3.11 is needed; say make PYTHON=python3.x" if sys.version_info < (3, 11) else 0)'
	$(BIN)/python -m pip install --quiet --no-deps --no-compile --require-hashes -r requirements.lock # a complete list
	$(BIN)/python -m compileall -qq -j $(CORES) .venv/lib || true # on all cores; a few packages hold files for other Pythons
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

reference: install  ## re-make workflow/schemas/config.yaml and the keys of config/README.md from src/metabo/plan/sections
	$(BIN)/python -m metabo.plan.reference

LOCK := $(BIN)/uv pip compile --universal --fork-strategy fewest --generate-hashes --no-emit-index-url --python-version 3.11 --no-header
DOCS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")
lock:  ## re-make requirements.lock and requirements-docs.lock after a change of dependencies in pyproject.toml
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	$(LOCK) pyproject.toml --extra replication --extra dev -o requirements.lock
	$(BIN)/python -c '$(DOCS)' | $(LOCK) - --constraint requirements.lock -o requirements-docs.lock

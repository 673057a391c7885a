# Each target sets up what it needs: a virtual environment in this folder, pinned
# versions, nothing outside.

VENV := .venv
BIN := $(VENV)/bin
# The pair of Django and Python that `make corner` runs, in .ci/run.
CORNER := 6.1:3.13
# Which of the tested pairs `make matrix` runs: Django:Python.
MATRIX := 5.2:3.11 6.0:3.12 6.1:3.13 6.1:3.14 6.1:3.15
# On which databases `make matrix` and `make test` run them; empty: on all.
DATABASES :=
# Which tests; empty: all. `ONLY=servers`: those with this marker, which depend on the database.
TESTS :=
ONLY :=
# The slow files are not left for the end. What hangs ends, and tells where it was: later
# than the waits of tests/support/patience.py.
AT_ONCE := -n auto --dist loadfile --no-loadscope-reorder --timeout 1200
# Seconds of `make torture`, a database; empty: the full length.
SECONDS_EACH :=
# Of `make torture`: what it does, and what is broken so that it must find it (--help).
SEED :=
SABOTAGE :=
# Seconds under load of each part of `make cluster`; empty: enough for a first look.
HILO_CLUSTER_SECONDS :=
# Which measurements `make bench` takes; empty: all.
MEASURE :=
# Options of uv for `make pins`; empty: versions stay as long as they fit.
PINS := --upgrade
# The version that `make release` makes.
VERSION :=
# Set it to renew the pictures of the documentation.
SCREENSHOTS :=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/example ## Run the example shop on SQLite (NORTHWIND=folder: with Northwind's CSV files).
	$(BIN)/python manage.py demo $(NORTHWIND)

.PHONY: test
test: $(VENV)/test ## Run the tests on SQLite, and on the servers of HILO_TEST_POSTGRES, HILO_TEST_MARIADB and HILO_TEST_MYSQL.
	DATABASES="$(DATABASES)" tests/project/on_each_database.sh $(BIN)/python -m pytest -q $(AT_ONCE) $(if $(ONLY),-m $(ONLY)) $(TESTS)

.PHONY: drivers
drivers: $(VENV)/compiled $(VENV)/test ## Run what depends on a server with psycopg 2 and with PyMySQL.
	HILO_TEST_POSTGRES_DRIVER=psycopg2 DATABASES=postgres $(ON_SERVERS)
	HILO_TEST_MYSQL_DRIVER=pymysql DATABASES="mariadb $(if $(HILO_TEST_MYSQL),mysql)" $(ON_SERVERS)

ON_SERVERS = tests/project/on_each_database.sh $(BIN)/python -m pytest -q $(AT_ONCE) -m servers $(TESTS)

.PHONY: move
move: $(VENV)/test ## Move three tables of 200,000 rows each to HiLo ids, and back.
	HILO_TEST_MOVING_ROWS=200000 tests/project/on_each_database.sh $(BIN)/python -m pytest -q -s tests/long/moves/test_many_rows.py

.PHONY: processes
processes: $(VENV)/test ## Let processes write, adopt tables and raise counters beside each other; start 200 at once.
	tests/project/on_each_database.sh $(BIN)/python -m pytest -q tests/long/processes

.PHONY: torture
torture: $(VENV)/test ## Do anything to ids at random, and to servers of its own (SECONDS_EACH=60 for less).
	tests/project/on_each_database.sh $(BIN)/python -m tests.long.torture $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH),--full) \
	  $(if $(SEED),--seed $(SEED)) $(if $(SABOTAGE),--sabotage $(SABOTAGE))

.PHONY: protocol
protocol: $(VENV)/test ## Check a model of the protocol with Spin, in every order of its steps.
	$(BIN)/python -m pytest -q tests/long/protocol

.PHONY: cluster
cluster: $(VENV)/long ## Break nodes of Galera, Group Replication and Patroni, and primaries of PostgreSQL and MariaDB.
	HILO_CLUSTER_SECONDS=$(HILO_CLUSTER_SECONDS) $(BIN)/python -m pytest -q tests/long/cluster

.PHONY: hosting
hosting: $(VENV)/long ## Serve ids from gunicorn, uWSGI, uvicorn, Celery ... and through poolers.
	DATABASES=postgres tests/project/on_each_database.sh $(BIN)/python -m pytest -q -n auto --dist worksteal tests/long/hosting
	DATABASES="sqlite mariadb" tests/project/on_each_database.sh $(BIN)/python -m pytest -q -m everywhere tests/long/hosting

.PHONY: fellows
fellows: $(VENV)/fellows ## Use other packages with HiLo keys: wagtail, guardian, import-export ...
	tests/project/on_each_database.sh $(BIN)/python -m pytest -q --ds=tests.long.fellows.settings tests/long/fellows

.PHONY: browser
browser: $(VENV)/long ## Drive the admin in Debian's Chromium (SCREENSHOTS=1: renew those of docs/).
	$(if $(SCREENSHOTS),HILO_SCREENSHOTS=docs/screenshots) \
	  $(BIN)/python -m pytest -q --ds=tests.long.browser.settings tests/long/browser --ignore=tests/long/browser/with_unfold
	$(if $(SCREENSHOTS),HILO_SCREENSHOTS=docs/screenshots) \
	  $(BIN)/python -m pytest -q --ds=tests.long.browser.with_unfold.settings tests/long/browser/with_unfold

.PHONY: docs
docs: $(VENV)/docs build/mermaid.min.js ## Build the documentation into build/docs; a warning is an error (needs npm).
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html docs build/docs

# One file of npm's package, without the packages that it names.
build/mermaid.min.js:
	mkdir -p build
	npm pack mermaid@11.12.1 --silent --pack-destination build >build/mermaid.txt
	tar -xOzf build/$$(cat build/mermaid.txt) package/dist/mermaid.min.js >$@.part
	mv $@.part $@

.PHONY: interop
interop: $(VENV)/long tests/long/interop/node_modules ## Let RavenDB's clients, Hibernate, EclipseLink, Doctrine and django-sequences draw ids beside Django; fuzz the REST API.
	tests/project/on_each_database.sh $(BIN)/python -m pytest -q tests/long/interop

tests/long/interop/node_modules: tests/long/interop/package.json
	npm install --prefix tests/long/interop --silent --no-package-lock --no-audit --no-fund --ignore-scripts
	@touch $@

.PHONY: bench
bench: $(VENV)/bench ## Measure each goal beside its peers, and write docs/explanation/benchmarks.md and the costs in README (MEASURE="ids saves": only print these).
	$(BIN)/python -m benchmarks $(MEASURE)

.PHONY: bench-guard
bench-guard: $(VENV)/bench ## Fail where statements, Python calls, reservations or sizes are over their goals.
	$(BIN)/python -m benchmarks.guard
	$(BIN)/python -m pytest -q tests/long/times

.PHONY: matrix
matrix: ## Run the tests on each supported pair of Django and Python.
	DATABASES="$(DATABASES)" TESTS="$(TESTS)" ONLY="$(ONLY)" AT_ONCE="$(AT_ONCE)" tests/project/matrix.sh $(MATRIX)

# What depends on the database, which is most of what Django's versions do differently.
.PHONY: corner
corner: ## Run what depends on the database on SQLite, on another Django and Python.
	DATABASES=sqlite ONLY=servers AT_ONCE="$(AT_ONCE)" tests/project/matrix.sh $(CORNER)

.PHONY: corner-installed
corner-installed:
	INSTALL_ONLY=1 tests/project/matrix.sh $(CORNER)

.PHONY: lint
lint: $(VENV)/lint ## Check style, spelling, layers, types and migrations.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/typed/mypy.ini tests/typed
	$(BIN)/mypy --config-file tests/typed/plain.ini tests/typed/plain.py
	$(BIN)/basedpyright
	$(BIN)/pre-commit validate-config
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m django makemigrations --check --dry-run --pythonpath .
	$(BIN)/python manage.py makemigrations --check --dry-run

.PHONY: messages
messages: $(VENV)/test ## Write django_hilo/locale/django.pot, the texts to translate (needs gettext).
	cd django_hilo && PYTHONPATH=.. DJANGO_SETTINGS_MODULE=tests.settings ../$(BIN)/python -P -m django \
	  makemessages --keep-pot --all --add-location=file --no-wrap

.PHONY: pins
pins: $(VENV)/audit ## Write requirements/ with the newest versions and their hashes (PINS=: keep versions that fit).
	tests/project/pins.sh $(BIN)/uv $(PINS)

.PHONY: audit
audit: $(VENV)/audit ## Ask the advisory service about all pinned packages.
	$(BIN)/python -m tests.project.audit

.PHONY: coverage
coverage: $(VENV)/test ## Run `make test` with branch coverage; all servers must be there.
	rm -f .coverage .coverage.*
	HILO_TEST_REQUIRE=1 PYTEST_ADDOPTS="$$PYTEST_ADDOPTS --cov --cov-append --cov-report=" $(MAKE) test
	$(BIN)/coverage report --fail-under=$(COVERAGE)

COVERAGE := 97

.PHONY: package
package: $(VENV)/package ## Build wheel and sdist, and check what is in them.
	rm -rf dist
	$(BIN)/python -m build -q
	$(BIN)/twine check --strict dist/*
	tests/project/check_package.sh $(BIN)/python

.PHONY: nightly
nightly: ## Run everything long, with a summary: hours. Before a release, or when you change what a suite covers.
	.ci/nightly

.PHONY: release-check
release-check: HILO_CLUSTER_SECONDS := 600
release-check: export HILO_TEST_PROTOCOL := full
release-check: test lint docs audit coverage package matrix move processes torture protocol cluster hosting fellows browser interop bench ## Run everything at full length.

.PHONY: release
release: $(VENV)/package ## Build and tag VERSION=1.2.3 of this commit, and print the command that uploads it.
	tests/project/release.sh $(BIN)/python "$(VERSION)"

.PHONY: clean
clean: ## Remove what the other targets made.
	rm -rf .venv .venv-* build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache example.sqlite3* tests/long/interop/node_modules

$(BIN)/python:
	@python=$$(tests/project/find_python.sh) && { "$$python" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$$python cannot make a virtual environment. Debian: apt install python3-venv" >&2; exit 1; }; }

# One stamp a requirements file: installed again when it, or one it includes, changes.
$(VENV)/%: requirements/%.txt requirements/example.txt requirements/test.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

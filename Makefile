# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One thread a process: tests and workers already use every core.
export OMP_NUM_THREADS ?= 1
# Pins hold for the build backend too: new pips read the second variable there, older ones the first.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt

.PHONY: help demo extra test browser drills coverage lint docs pictures reference snippets constraints install-checked verify-pins \
	audit-dependencies format clean
.DEFAULT_GOAL := help

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 28

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp a set of dependencies: installed again when what they are made from changes.
$(VENV)/.installed-light: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Carina into $(VENV): about a minute, once."
	$(PIP) install -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt $(VENV)/.installed-light
	@echo "Installing what tests and documentation need into $(VENV), torch included: about two minutes, once."
	$(PIP) install -e '.[test,lint,docs,torch]'
	@touch $@

extra: $(VENV)/.installed-light  ## Install optional parts into the environment: make extra NAME=dicom,ocr
	$(PIP) install -e '.[$(NAME)]'

demo: $(VENV)/.installed-light  ## Make phantom studies and examinations, examine four models, and show it all, in demo/
	$(BIN)/carina demo --out demo
	@echo "The command is $(BIN)/carina: try $(BIN)/carina --help"

test: lint browser  ## Set up everything, check style and types, build the docs, run every test
	$(MAKE) --no-print-directory docs
	$(BIN)/python -m pytest -n auto --dist loadgroup

# Not part of the tests, which run a short version of each: in full they take hours.
drills: $(VENV)/.installed-dev  ## Kill, interrupt, damage and deceive every command, and count what breaks
	@for drill in kill signals server determinism fuzz dicom; do \
	  echo "== $$drill" && $(BIN)/python drills/$$drill.py || failed=1; done; exit $${failed:-0}

# Apart, because counting lines takes a third of the time again.
coverage: $(VENV)/.installed-dev  ## Run every test and tell which lines none of them reaches
	$(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=term

# The pages are tested in a real browser; where there is none and none can be installed, those tests are skipped.
browser:
	@command -v chromium google-chrome chromium-browser >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get -qq update >/dev/null && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
	echo "No Chromium here: the tests that need a browser are skipped."

lint: $(VENV)/.installed-dev  ## Style (ruff), types (mypy, strict), direction of imports (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev  ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-dev  ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/.installed-light  ## Make the pictures of the documentation anew, in docs/assets/
	$(BIN)/python docs/pictures.py

reference: $(VENV)/.installed-light  ## Write into the pages what they take from the code: options, columns, terms
	$(BIN)/python docs/hooks.py

snippets: $(VENV)/.installed-light  ## Run the examples of the documentation and write down what they print
	$(BIN)/python docs/snippets.py

# A fresh environment, so that nothing but what the ranges of pyproject.toml bring is pinned.
constraints:  ## Pin anew every version that an installation brings, in constraints.txt and hashes.txt
	rm -rf build/pins && $(PYTHON) -m venv build/pins
	unset PIP_CONSTRAINT PIP_BUILD_CONSTRAINT && build/pins/bin/python -m pip --quiet install '.[test,lint,docs,torch]' hatchling editables
	printf '# Every version that an installation brings, the build backend included. Made by: make constraints\n' > constraints.txt
	build/pins/bin/python -m pip freeze --all --exclude carina --exclude pip | sed 's/+cpu$$//' >> constraints.txt
	unset PIP_CONSTRAINT PIP_BUILD_CONSTRAINT && build/pins/bin/python tools/pins.py hashes
	rm -rf build/pins

# Not the ordinary installation: CONTRIBUTING.md says why.
install-checked: | $(BIN)/python  ## Install everything, each file compared with its SHA-256 in hashes.txt
	unset PIP_CONSTRAINT PIP_BUILD_CONSTRAINT && $(PIP) install --require-hashes --no-deps -r hashes.txt
	$(PIP) install --no-build-isolation -e '.[test,lint,docs,torch]'
	@touch $(VENV)/.installed-light && touch $(VENV)/.installed-dev

verify-pins: $(VENV)/.installed-light  ## Is everything that is installed pinned, consistent and unchanged? No network
	$(BIN)/python tools/pins.py installed

# An environment of its own: pip-audit is no dependency of Carina.
audit-dependencies:  ## Look for known vulnerabilities of all pinned versions; needs the network
	@rm -rf build/audit && $(PYTHON) -m venv build/audit
	@unset PIP_CONSTRAINT PIP_BUILD_CONSTRAINT && \
	build/audit/bin/python -m pip --disable-pip-version-check --quiet install pip-audit || \
	{ echo "Nothing was checked: pip-audit cannot be installed from here."; exit 2; }
	@build/audit/bin/python tools/pins.py audit

clean:  ## Remove everything that the other targets made
	rm -rf $(VENV) demo site build dist

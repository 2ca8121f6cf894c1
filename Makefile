# make demo: the demo.  make test: every check.  make quick: the tests that take a minute together.
# They do all the set-up they need, with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo
REST := $(VENV)/.rest
SITE := $(VENV)/.site
MAKEFLAGS += --jobs=3  # the checks beside the tests, a browser beside packages in two parts
unexport PYTHONDONTWRITEBYTECODE  # with it every process compiles the modules of Numba and SciPy anew: 1.4 s of CPU

.PHONY: demo test suite plain newest quick durations check browser pages wheel hooks docs site bench lock clean

demo: $(DEMO)
	$(BIN)/ravi demo

test: check suite

# Every test: one more process than cores works while others wait for what they have started. BLAS has a thread in each:
# more would wait for cores that others use.
suite plain newest quick: export OPENBLAS_NUM_THREADS = 1
suite: $(READY) browser
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# Every test where Numba compiles by itself; and with the newest Numba (`src/ravi/_jit/deferred.py`).
plain: export RAVI_PLAIN_NUMBA = 1
plain: suite

newest: $(READY)
	$(BIN)/python -m pip install --quiet --upgrade numba
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

quick: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

# Measure how long tests take, one after another: tests/durations.txt, by which tests are ordered and quick ones chosen.
durations: $(READY)
	$(BIN)/python -m pytest --measure

# The page is tested in Chromium: installed where that can be done (Debian, as root), else its tests are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1; } \
	  || echo "no Chromium here: the tests of the page in a browser are skipped"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# That docs, and pages that are generated from the code, say what the code says.
pages: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/docs

# What is published: built, checked, installed with nothing but what it asks for, and run.
wheel: $(READY)
	rm -rf dist build
	$(BIN)/hatchling build
	$(BIN)/python .ci/wheel.py dist
	$(PYTHON) -m venv build/venv
	build/venv/bin/python -m pip install --quiet dist/*.whl
	cd build && venv/bin/ravi run riverswim/6,discount=0.9 ravi-ucb --steps 1000 --seeds 2 && venv/bin/ravi doctor

# The checks before every commit.
hooks: $(READY)
	$(BIN)/pre-commit install

# The pages that are generated from the code.
docs: $(READY)
	$(BIN)/python docs/make_learners.py docs/reference
	$(BIN)/python docs/make_command.py docs/reference/command.md
	$(BIN)/ravi demo && cp demo/regret.png docs/demo.png
	$(BIN)/python docs/figures/front.py > /dev/null
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python docs/figures/draw.py
	$(BIN)/python docs/figures/simulators.py
	$(BIN)/python docs/figures/continuous.py
	$(BIN)/python docs/figures/beyond.py
	$(BIN)/python docs/figures/plus.py demo/plus
	$(BIN)/python docs/figures/lead.py demo/lead
	$(BIN)/python docs/figures/growth.py
	$(BIN)/python docs/figures/growth_mixture.py
	$(BIN)/python docs/figures/levels.py
	$(BIN)/python docs/make_guides.py
	$(BIN)/python docs/make_notebooks.py
	$(BIN)/ravi verify --json docs/explanation/verified.json > /dev/null
	$(BIN)/python docs/make_verified.py

# The docs as pages of HTML, in site/: to be read without a network. A link that leads nowhere is an error.
site: $(SITE)
	rm -rf site
	$(BIN)/python -m sphinx -q -W --keep-going -E -d build/doctrees -c docs/site . site

bench: $(READY)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/solve.py
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/inner.py
	$(BIN)/python benchmarks/kl.py
	$(BIN)/python benchmarks/learners.py
	$(BIN)/python benchmarks/experiments.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/large.py

# The set-up: a virtual environment; the locked packages by their hashes, those of the demo, with this one, beside those
# that only tests need. Modules are compiled when they are first imported: most never are.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile
$(MADE):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ravi needs Python 3.11 or newer; try: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(DEMO): $(MADE) demo.lock pyproject.toml
	$(INSTALL) --no-deps --require-hashes -r demo.lock
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(REST): $(MADE) demo.lock requirements.lock
	awk 'FNR == NR { demo[$$0]; next } /^[^ ]/ { rest = !($$0 in demo) } rest' demo.lock requirements.lock > $(VENV)/rest.lock
	$(INSTALL) --no-deps --require-hashes -r $(VENV)/rest.lock
	touch $@

$(READY): $(DEMO) $(REST)
	touch $@

$(SITE): $(DEMO) site.lock
	$(INSTALL) --no-deps --require-hashes -r site.lock
	touch $@

# Renew the locks after a change of dependencies (needs uv): all packages; in the same versions, those of demo and site.
COMPILED := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	uv pip compile $(COMPILED) --extra all --group dev pyproject.toml -o requirements.lock
	uv pip compile $(COMPILED) --constraint requirements.lock --extra report --group build pyproject.toml -o demo.lock
	uv pip compile $(COMPILED) --constraint requirements.lock --group site pyproject.toml -o site.lock

clean:
	rm -rf $(VENV) build demo dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

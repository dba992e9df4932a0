# One command each: `make demo`, `make setup`, `make quick`, `make test`, `make full`, `make nightly`, `make check`, `make types`, `make bench`, `make docs`, `make release`.
# On a bare Debian with Python 3.11 and root, `make test` installs what it needs first.

SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
HASH := $(firstword $(shell sha256sum pyproject.toml))
STAMP := .venv/stamp-$(HASH)
SINGE := .venv/singe-$(HASH)
SYSTEM := chromium libvulkan1 mesa-vulkan-drivers
# One more than the two cores: a test that waits for a browser or a process leaves its core to another.
JOBS ?= 3
# Mesa's driver without a GPU compiles shaders in two thirds of the time if it does not optimise them.
TESTS := GALLIVM_PERF=nopt $(BIN)/pytest -n $(JOBS) --dist worksteal
# Pip compiles the modules of a package, but not of one that it installs editable; without this, a shell that has
# PYTHONDONTWRITEBYTECODE set compiles Singe anew in each process, which doubles the time to a first answer.
COMPILE := $(BIN)/python -m compileall -q core cuda gpu wasm webgpu
PORT ?= 8000
MODELS ?=

# Python keeps what it compiled, even where the environment says otherwise: each worker, and each command that a test starts,
# else compiles the same files again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup system check check-types check-form check-javascript types test full quick nightly bench demo docs release

setup: system $(STAMP)

# The environment is made again when pyproject.toml changes.
$(STAMP):
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { apt-get update -q && apt-get install -y -q python3-venv; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	$(COMPILE)
	@rm -f .venv/stamp-* && touch $@

# Singe with what makes the documentation, for what needs no tests; an environment that has more will do.
$(SINGE):
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { apt-get update -q && apt-get install -y -q python3-venv; }
	[ -e $(STAMP) ] || { $(PYTHON) -m venv .venv && $(BIN)/pip install -q --disable-pip-version-check -e '.[docs]'; }
	$(COMPILE)
	@rm -f .venv/singe-* && touch $@

# A browser and a Vulkan driver that needs no GPU: tests skip, and say so, where they cannot be had.
system:
	@missing=$$(for p in $(SYSTEM); do dpkg-query -W -f '$${Status}\n' $$p 2>/dev/null | grep -q ' installed$$' || echo $$p; done); \
	if [ -z "$$missing" ]; then exit 0; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -q && apt-get install -y -q --no-install-recommends $$missing; \
	else echo "not installed:" $$missing "(needs apt-get and root); tests that want them will be skipped" >&2; fi

check: setup
	@$(MAKE) --no-print-directory -j 2 -O check-types check-form check-javascript

check-types:
	$(BIN)/pyright --pythonpath $(BIN)/python

check-form:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/lint-imports

check-javascript:
	$(BIN)/python .ci/javascript.py

# The declarations of the JavaScript, as tsc writes them, and its format.
types: setup
	$(BIN)/python .ci/javascript.py --write

# Every property, in every room, on each device.
test: check
	$(TESTS) -m 'not full'

# The same properties in all other types, sizes and networks, as tests/full.py says.
full: setup
	$(TESTS) -m 'full and not nightly'

quick: setup
	$(TESTS) -m 'not slow' tests/unit

# The tests that install large packages, such as other people's bundlers, those in Firefox and WebKit, the cases that repeat what
# `make full` tests, other random models each day, and more of those that `make test` draws.
nightly: SYSTEM += firefox-esr webkit2gtk-driver xvfb
nightly: setup
	$(BIN)/pytest -m 'nightly and not full'
	$(TESTS) -m 'nightly and full'
	$(BIN)/pytest tests/conformance/drawn --drawn 400 --graphs 150

# The models come from packages (tests/bench/inputs/packaged.py); MODELS=FOLDER takes others: ONNX models, each with an .npz of inputs
# and expected outputs beside it. For a machine with a GPU:
# `.venv/bin/python tests/bench/gpu.py prepare DIR`, and there `python DIR/gpu.py run`.
bench: setup
	$(BIN)/python tests/bench/suite.py $(if $(MODELS),--models $(MODELS))

# The front page and the demos at http://127.0.0.1:8000/ (PORT=9000 for another port).
demo: $(SINGE)
	$(BIN)/python demos/build.py
	$(BIN)/singe serve demos/site --port $(PORT)

# The documentation, in docs/site: to be opened from disk, or served. `make demo` serves it too, at /docs/.
docs: $(SINGE)
	PYTHONPATH=docs $(BIN)/python -m docsite

# The source archive, wheel, npm archive and documentation of a release, in dist: built, checked, installed and run. It needs
# npm and the package indexes, and uploads nothing.
release: $(SINGE)
	$(BIN)/python tests/release/release.py

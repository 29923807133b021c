# Two commands do all the set-up: `make demo` and `make test`. Each builds its own virtual environment.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/lock-tools

.PHONY: demo test test-fast lint lock bench clean

# A changed lock builds the environment anew, so nothing that the lock no longer names stays behind.
$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv --clear $(VENV) \
	    || { apt-get update -q && apt-get install -qy python3-venv && $(PYTHON) -m venv --clear $(VENV); }
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

demo: $(VENV)/ready
	$(BIN)/python -m weever_stream.demo

test: lint
	$(BIN)/python -m pytest -n 2

test-fast: $(VENV)/ready
	$(BIN)/python -m pytest -n 2 weever_stream tests/unit tests/property

lint: $(VENV)/ready
	$(BIN)/ruff check weever_stream tests benchmarks
	$(BIN)/mypy

# Names, versions and hashes alone: where the packages come from is the machine's own setting.
lock:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --upgrade pip pip-tools
	$(TOOLS)/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
	    --no-emit-trusted-host --no-emit-find-links --no-header --all-build-deps --all-extras \
	    -o requirements.lock pyproject.toml

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

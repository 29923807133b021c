# Two commands do all the set-up: `make demo` and `make test`. Each builds its own virtual environment.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast lint lock clean

$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV) || { apt-get update -q && apt-get install -qy python3-venv && $(PYTHON) -m venv $(VENV); }
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

demo: $(VENV)/ready
	$(BIN)/python -m weever_stream.demo

test: $(VENV)/ready lint
	$(BIN)/pytest -n 2

test-fast: $(VENV)/ready
	$(BIN)/pytest -n 2 weever_stream tests/unit tests/property

lint: $(VENV)/ready
	$(BIN)/ruff check weever_stream tests
	$(BIN)/mypy

lock: $(VENV)/ready
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host \
	    --no-emit-find-links --no-header --all-build-deps --all-extras -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV)

# make demo and make test need nothing but Python 3.10 or later; they make .venv themselves.
PYTHON ?= python3
EXTRAS ?= cpu,test
BIN = .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/ready
	$(BIN)/python -m ernie_gram.demo

test: .venv/ready
	$(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python -m tests.benchmarks.reader
	$(BIN)/python -m tests.benchmarks.pretrain_step

.venv/ready: setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf .venv output build *.egg-info

# make demo and make test need nothing but Python 3.10 or later; they make .venv themselves.
PYTHON ?= python3
EXTRAS ?= cpu,test
BIN = .venv/bin
READY = .venv/ready-$(subst $(comma),-,$(EXTRAS))
comma = ,

.PHONY: demo test lint bench clean

demo: $(READY)
	$(BIN)/python -m ernie_gram.demo

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m tests.benchmarks.reader
	$(BIN)/python -m tests.benchmarks.pretrain_step
	$(BIN)/python -m tests.benchmarks.softmax

$(READY): setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf .venv output build *.egg-info

# `make install`, `make demo` and `make test` need only Python 3.10 to 3.13; they create .venv themselves.
PYTHON ?= python3
EXTRAS ?= cpu,test
BIN = .venv/bin
HUB = .venv-hub
comma = ,
# Paddle has two packages, of which an environment may have only one. This is the other one.
OTHER = paddlepaddle$(if $(findstring gpu,$(EXTRAS)),,-gpu)
READY = .venv/ready-$(subst $(comma),-,$(EXTRAS))
# The tests of the Spark engine run wherever Java is found.
JAVA = $(or $(JAVA_HOME),$(shell command -v java))
SPARK = $(if $(JAVA),.venv/ready-spark)
# An environment whose interpreter is gone, for example after an upgrade of the system, is not ready.
$(shell [ ! -L .venv/bin/python ] || [ -e .venv/bin/python ] || rm -f .venv/ready-*)
# One test process more than cores: some tests wait for the processes that they start.
WORKERS = $(shell expr $$(nproc) + 1)
# The real data of `make data-test`, if this folder exists: the official files of the tasks, laid out as tasks/registry/
# expects, cases of official scorers, BERT's and ERNIE's vocabularies, and long texts.
ERNIE_GRAM_DATA ?= ../shared/data
DATA := $(shell [ -d "$(ERNIE_GRAM_DATA)" ] && realpath "$(ERNIE_GRAM_DATA)")
REAL_DATA = TASK_DATA="$(DATA)" \
	LARGE_TEXT="$(DATA)/corpus/en_books.txt.gz" LARGE_VOCAB="$(DATA)/vocab/en/vocab.txt"
# Options of the demo, e.g. make demo DEMO="--steps 100"
DEMO ?=

# Options of pytest for the GPU check, e.g. CHECK="-k float32"; GPU_CHECK_QUICK=1 makes models small.
CHECK ?=

# Texts over which `make hub-test` compares the tokenizers, e.g. TEXTS="--texts vocab.txt one.txt two.txt"
TEXTS ?=

.PHONY: install demo test data-test lint bench gpu-check hub-test clean

install: $(READY)

demo: $(READY)
	$(BIN)/python -m tests.support.ten_minutes $(DEMO)

test: $(READY) $(SPARK)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 9 --dist worksteal

# The tests that `make test` skips: they start four processes, are further cases, or need real data.
data-test: $(READY)
	FOUR_PROCESSES=1 EVERY_CASE=1 $(if $(DATA),$(REAL_DATA)) $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 9 \
		--dist worksteal -rs -m needs $$(grep -rlE --include='test_*.py' 'mark\.needs|further_cases' tests)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m tests.benchmarks.reader
	$(BIN)/python -m tests.benchmarks.pretrain_step

# pip keeps a GPU package of Paddle that is already installed, unless this project needs another version. A test that
# crashes or hangs ends its own process only. float32 is compared without TF32.
gpu-check:
	$(MAKE) EXTRAS=gpu,test .venv/ready-gpu-test
	NVIDIA_TF32_OVERRIDE=0 $(BIN)/python -m pytest tests/gpu -m gpu --numprocesses 1 -rA --junitxml gpu_check.xml $(CHECK)

# Not part of `test`: PaddleNLP's environment takes about 2 GB.
hub-test: $(READY) $(HUB)/ready
	rm -rf $(HUB)/models
	$(BIN)/python -m tests.hub.export $(HUB)/models $(TEXTS)
	$(HUB)/bin/python -I tests/hub/check.py $(HUB)/models
	$(BIN)/python -m tests.hub.read_back $(HUB)/models

$(HUB)/ready: $(READY)
	$(PYTHON) -m venv $(HUB)
	$(BIN)/python -m tests.hub.requirements > $(HUB)/requirements.txt
	$(HUB)/bin/pip install -qq --disable-pip-version-check -r $(HUB)/requirements.txt
	touch $@

$(READY): setup.py
	@! $(BIN)/pip show --quiet $(OTHER) 2>/dev/null || \
		{ echo "error: .venv has $(OTHER), not the package for EXTRAS=$(EXTRAS); remove the folder .venv" >&2; exit 1; }
	$(PYTHON) -m venv $$([ -e .venv/bin/python ] || echo --clear) .venv
	$(BIN)/pip install -qq --disable-pip-version-check -e '.[$(EXTRAS)]'
	@echo "compiling kernels for this processor, once (half a minute)"
	@.ci/compile >/dev/null 2>&1 || echo "not compiled; each command compiles what it needs when it is first run"
	touch $@

.venv/ready-spark: $(READY)
	$(BIN)/pip install -qq --disable-pip-version-check -e '.[spark]'
	touch $@

clean:
	rm -rf .venv .venv-hub output build *.egg-info

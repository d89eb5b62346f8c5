# Thin: every target makes the virtual environment it needs and then runs one command.
PYTHON ?= python3
VENV   ?= .venv
# Installed before everything else: plain `torch` from PyPI is a CUDA build of several GB on x86-64.
TORCH  ?= torch==2.13.0
BIN    := $(VENV)/bin
STORE  ?= artifacts/store
CONFIG ?=
OUT    ?= artifacts/demo
LATTICE ?=
BATCH  ?=
SECONDS ?= 20
# Axes and inputs of `make bench`; words may be several.
THREADS ?=
OPERATOR ?=
DTYPE  ?=
STORAGE ?=
TARGET ?=
NEURON ?=
NO_FUSED ?=
BENCH_OUT ?= artifacts/bench
ARGS   ?=
# One worker a core; the tests of one file stay together and share what it built.
PARALLEL ?= -n auto --dist loadfile

# AWS's package index, and the compiler to check with: empty for the real one, sim for a rehearsal without device and compiler.
NEURON_INDEX ?= https://pip.repos.neuron.amazonaws.com
COMPILER ?=

BENCH_NEURON = --neuron $(if $(COMPILER),--compiler $(COMPILER))
BENCH_CPU = --start-up $(if $(THREADS),--threads $(THREADS)) $(foreach word,$(OPERATOR),--operator $(word)) \
    $(foreach word,$(DTYPE),--dtype $(word)) $(foreach word,$(STORAGE),--storage $(word)) $(if $(TARGET),--target $(TARGET)) \
    $(if $(CONFIG),--config "$(CONFIG)")

.PHONY: demo test check bench fuzz neuron-check clean help
help:
	@echo "make demo [CONFIG=file]   recipes -> artifacts -> bundle -> plaquette, propagator, pion plot"
	@echo "make test                 all tests"
	@echo "make check                ruff, mypy --strict, import law, all tests"
	@echo "make bench [LATTICE='8x8x8x8 ...'] [BATCH=1,12] [THREADS=1,2] [OPERATOR=all] [DTYPE=float32] [STORAGE=...] [TARGET=x86-64-v3]"
	@echo "           [CONFIG=file]   the benchmark suite against this machine's roofline and torch eager; report in $(BENCH_OUT)"
	@echo "make bench NEURON=1 [LATTICE=...] [BATCH=8,16,32] [NO_FUSED=1]   the NeuronCores of this machine (COMPILER=sim: simulated)"
	@echo "make fuzz [SECONDS=20]    coverage-guided fuzzing of every parser of foreign bytes, so long for each"
	@echo "make neuron-check         on a machine with NeuronCores: build, compare, time, write one report (COMPILER=sim rehearses)"
	@echo "make clean                remove the environment, the store and all outputs"

$(VENV)/.ready: pyproject.toml runtime/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH)
	# Compat: the folders are on the path. Setuptools' import hooks would cost every start of Python some 20 ms.
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --config-settings editable_mode=compat -e runtime -e '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(BIN)/python examples/journey.py --store $(STORE) --out $(OUT) $(if $(CONFIG),--config $(CONFIG)) $(if $(LATTICE),--lattice $(LATTICE))

test: $(VENV)/.ready
	$(BIN)/python -m pytest tests $(PARALLEL) $(ARGS)

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/architecture
	$(BIN)/python -m pytest tests --ignore=tests/architecture $(PARALLEL) $(ARGS)

bench: $(VENV)/.ready
	$(BIN)/lqcd-aot bench --store $(STORE) --out $(BENCH_OUT) $(if $(NEURON),$(BENCH_NEURON),$(BENCH_CPU)) \
	    $(if $(LATTICE),--lattice "$(LATTICE)") $(if $(BATCH),--batch $(BATCH)) $(if $(NO_FUSED),--no-fused) $(ARGS)

fuzz: $(VENV)/.ready
	$(BIN)/pip install --quiet -e '.[fuzz]'
	$(BIN)/python -m tests.abuse.fuzz --seconds $(SECONDS) $(ARGS)

neuron-check: $(VENV)/.ready
	$(if $(filter sim,$(COMPILER)),$(BIN)/pip install --quiet -e '.[sim]',$(BIN)/pip install --quiet -e '.[neuron]' --extra-index-url $(NEURON_INDEX))
	$(BIN)/lqcd-aot neuron-check $(RECIPE) --store $(STORE) $(if $(COMPILER),--compiler $(COMPILER)) $(ARGS)

clean:
	rm -rf $(VENV) artifacts/store artifacts/bundles artifacts/demo artifacts/bench build *.egg-info runtime/*.egg-info

# Every target sets up all it needs: Python 3.11+ and a C++20 compiler are enough.
# The virtual environment is .venv in the project root; a usable one is kept.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Python files are seen through the editable install; only these need a new one.
KERNELS := $(wildcard pyproject.toml CMakeLists.txt cmake/*) \
           $(shell find src/atomlearn/_kernels -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name 'CMakeLists.txt')
CPP := $(filter %.cpp %.hpp %.h,$(KERNELS))
PYTHON_SOURCES := $(wildcard src tests docs benchmarks examples experiments)

RUNTIME := $(VENV)/.installed-runtime
DEVELOP := $(VENV)/.installed-develop
# The rivals ask for an older NumPy: they live in an environment of their own.
BENCH_VENV := .venv-bench
BENCH := $(BENCH_VENV)/.installed
# An environment for development serves the demo too: no second build.
DEMO := $(firstword $(wildcard $(DEVELOP)) $(RUNTIME))

.PHONY: demo say-demo test say-test test-core test-processors peers published contests fuzz sanitize mutants campaign nightly lint format types docs bench clean

say-demo:
	@echo "make demo: selects 6 of 30 measurements of tumors and writes a report to atomlearn-demo/:"
	@echo "about 6 seconds$(if $(wildcard $(DEMO)),., after setting up $(VENV): some minutes the first time.)"

demo: say-demo $(DEMO)
	$(BIN)/atomlearn demo

# One worker a core, each with one thread of its own: workers with more of them fight for cores.
# For one process, with the output of a debugger: make test PYTEST_ARGS="-n 0 tests/core/norms".
# Bytecode is kept, whatever the environment says: every worker and every command starts sooner.
say-test:
	@echo "make test: runs the tests, one worker a core, up to the first failure: about 10 minutes"
	@echo "on 2 cores$(if $(wildcard $(DEVELOP)),., after setting up $(VENV): some minutes the first time.)"

test: say-test $(DEVELOP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -x -q -n auto --dist worksteal $(PYTEST_ARGS)

# The tests of the core over a copy of the package without the packages above it: a minute.
test-core: $(DEVELOP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m tests.core_alone $(PYTEST_ARGS)

# The core by itself; then the whole suite on each of the processors that tests/processors.py
# describes: up to 12 minutes each on 2 cores. PROCESSORS=zen runs one; --turn the one whose turn it
# is on the day of the commit.
test-processors: $(DEVELOP) test-core
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.processors $(PROCESSORS)

# The tests of scikit-learn, skglm and celer on our estimators: some minutes. PEERS=celer runs one.
peers: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.peers $(PEERS)

# The source archive, a wheel for each Python, and the demo from each in an empty environment
# without a compiler: some minutes. PYTHONS="python3.12 python3.13" names them.
published:
	$(PYTHON) -m tests.published $(PYTHONS)

# Passes, calls of oracles and time in passes, against those that are kept: half a minute.
contests: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.contests

# Mutated files, shared between all readers: each is read, or refused in one line.
N ?= 10000
fuzz: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz -n $(N)

# Changes of one line, those that once went unnoticed and drawn ones.
mutants: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutation --known --random 50

# Random problems of every kind, for so many seconds.
S ?= 600
campaign: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.certificate.campaign --seconds $(S)

# Kills, full disks, occupied folders, odd inputs and sizes: the ledger is build/nightly.csv.
COUNT ?= 100
nightly: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.nightly --count $(COUNT)

# Kernels under the sanitizers: tests of kernels and masters, and random certificates.
sanitize: $(DEVELOP)
	$(PIP) install --quiet "nanobind>=2.2" cmake
	mkdir -p build
	tests/fuzz/sanitize.sh address
	tests/fuzz/sanitize.sh thread

lint: $(DEVELOP)
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/ruff format --check $(PYTHON_SOURCES)
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/numpydoc lint $(shell find src/atomlearn -name '*.py')
ifneq ($(CPP),)
	$(BIN)/clang-format --dry-run -Werror $(CPP)
endif

format: $(DEVELOP)
	$(BIN)/ruff check --fix $(PYTHON_SOURCES)
	$(BIN)/ruff format $(PYTHON_SOURCES)
ifneq ($(CPP),)
	$(BIN)/clang-format -i $(CPP)
endif

types: $(DEVELOP)
	$(BIN)/mypy --strict src/atomlearn

# -E reads everything afresh, so that no warning hides in a cache.
docs: $(DEVELOP)
	$(BIN)/sphinx-build -W --keep-going -E -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

bench: $(BENCH)
	$(BENCH_VENV)/bin/python benchmarks/run.py $(BENCH_ARGS)
	$(BENCH_VENV)/bin/python benchmarks/scoreboard.py

# The claims and figures of the four papers: make paper-tan PAPER_ARGS=--smoke for small sizes,
# PAPER_ARGS="--resume small" for one part, keeping what is there. All of it, with -j2: about an hour.
papers: paper-argyriou paper-liu paper-vinyes paper-tan

paper-argyriou paper-liu paper-vinyes paper-tan: paper-%: $(DEVELOP)
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.$*.run $(PAPER_ARGS)
	$(BIN)/python -m experiments.pages $(filter --smoke,$(PAPER_ARGS)) $*

clean:
	rm -rf build dist docs/_build docs/api/generated docs/gallery docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f $(RUNTIME) $(DEVELOP) $(BENCH)

# --- the environment -------------------------------------------------------------------------

# An environment that cannot run (moved, or its Python is gone) is set up again.
RECENT := import sys, pip; sys.exit(sys.version_info < (3, 11))
ifneq ($(shell $(BIN)/python -c '$(RECENT)' 2>/dev/null && echo usable),usable)
$(shell rm -f $(VENV)/pyvenv.cfg $(RUNTIME) $(DEVELOP) $(BENCH))
endif

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "atomlearn needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)

# Order-only: what matters is that the environment is there, not its date.
$(RUNTIME): $(KERNELS) | $(VENV)/pyvenv.cfg
	@echo "Setting up $(VENV): pip downloads packages, then compiles the kernels: 1 to 2 minutes on 2"
	@echo "cores, during which it prints little."
	$(PIP) install -e ".[report]"
	@touch $@

$(DEVELOP): $(KERNELS) | $(VENV)/pyvenv.cfg
	@echo "Setting up $(VENV): pip downloads some 150 packages, then compiles the kernels: 1 to 2"
	@echo "minutes on 2 cores, during which it prints little."
	$(PIP) install -e ".[report,dev,docs]"
	@touch $@ $(RUNTIME)

$(BENCH): $(KERNELS) | $(VENV)/pyvenv.cfg
	$(BIN)/python -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip --disable-pip-version-check install --quiet \
	  -C build-dir='build/bench-{wheel_tag}' -e ".[report,bench]"
	@touch $@

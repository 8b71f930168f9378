# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
# The doorway: with Python >= 3.11, make and a package index, `make run EXP=cnn` works in a fresh clone.
# Targets are thin over the app (`jaxbench run cnn`); only the virtual environment is made here.

VENV ?= .venv
JOBS ?= logical
known_extras := cuda12 cuda13 tpu target-tpu target-cuda tensorboard adapters dev

comma := ,
extras := $(subst $(comma), ,$(EXTRAS))
ifneq ($(filter-out $(known_extras),$(extras)),)
  $(error EXTRAS knows only: $(known_extras))
endif
created := $(VENV)/.created
runtime := $(VENV)/.installed-run$(addprefix -,$(extras))
runtime := $(subst $() ,,$(runtime))
develop := $(subst /.installed-run,/.installed-dev,$(runtime))

# Values are taken as they were typed, a $$ included, and reach the shell as "$$NAME", through the environment: no character
# in them is special to make or to the shell.
$(foreach name,A ACROSS ARGS B CARD EXP FILTER FROM K NAME PRESET RUN WORKDIR,\
  $(if $(filter-out undefined,$(origin $(name))),$(eval override $(name) := $$(value $(name)))))
export A ACROSS ARGS B CARD EXP FILTER FROM K JOBS NAME PRESET PYTHON RUN VENV WORKDIR
app = exec "$$VENV/bin/python" -c "$$WITH_ARGS" jaxbench
pytest = exec "$$VENV/bin/python" -c "$$WITH_ARGS" pytest --numprocesses="$$JOBS" --maxprocesses=8 --dist=worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: run try train new machine first-run report compare ab calibrate baseline check card cards repro doctor list env test test-all test-targets lint peers lock clean ci help need-exp need-run need-name

run: need-exp $(runtime)  ## measure how EXP scales: make run EXP=cnn, or EXP=path/to/mine.py
	@$(app) run "$$EXP" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

try: need-exp $(runtime)  ## which strategies take a model and are right, without timing: make try EXP=path/to/mine.py
	@$(app) try "$$EXP"

train: need-exp $(runtime)  ## train EXP to its target, with checkpoints: make train EXP=cnn
	@$(app) train "$$EXP" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

new: need-exp $(runtime)  ## write a model of your own to start from: make new EXP=mine.py [FROM=nnx|linen|functions|equinox|haiku]
	@$(app) new "$$EXP" $(if $(FROM),--from="$$FROM")

machine: $(runtime)  ## what this machine can do (peaks, launch cost, links): under three minutes
	@$(app) machine $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

first-run: $(runtime)  ## does all of it work here? one page to send, in half an hour at most; WORKDIR continues
	@$(app) first-run $(if $(WORKDIR),--workdir="$$WORKDIR")

report: need-run $(runtime)  ## draw the figures and pages of a run again: make report RUN=results/...
	@$(app) report --run="$$RUN"

compare: $(runtime)  ## is run B faster, slower, the same as A, or can that not be told: make compare A=results/x B=results/y
	@$(app) compare --a="$$A" --b="$$B" $(if $(ACROSS),--across="$$ACROSS") $(if $(WORKDIR),--workdir="$$WORKDIR")

ab: need-exp $(runtime)  ## the same, measured until it is answered: make ab EXP=cnn A="--config.strategy=pmap" B="--config.strategy=jit_auto"
	@$(app) ab "$$EXP" --a="$$A" --b="$$B" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

calibrate: $(runtime)  ## what this machine differs from itself by, for gates: make calibrate [EXP=mlp]
	@$(app) calibrate "$${EXP:-mlp}" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

baseline: need-run need-name $(runtime)  ## keep a run for gates: make baseline RUN=results/... NAME=main-mlp
	@$(app) baseline --run="$$RUN" --name="$$NAME"

check: need-exp need-name $(runtime)  ## a gate, with junit.xml and summary.md: make check EXP=mlp NAME=main-mlp
	@$(app) check "$$EXP" --name="$$NAME" $(if $(WORKDIR),--workdir="$$WORKDIR")

card: need-run $(runtime)  ## a run as one document under cards/: make card RUN=results/...
	@$(app) card --run="$$RUN"

cards: $(runtime)  ## all cards as one table and one figure: make cards FILTER="experiment=cnn devices=8"
	@$(app) cards $$FILTER

repro: $(runtime)  ## measure a card again: within its interval or outside? make repro CARD=cards/....json
	@$(app) repro --card="$$CARD" $(if $(WORKDIR),--workdir="$$WORKDIR")

doctor: $(runtime)  ## is this machine fit to measure on?
	@$(app) doctor

list: $(runtime)  ## the experiments and presets there are
	@$(app) list

# `-m ""` takes back the `-m "not full"` of pyproject.toml.
test: $(develop)  ## test every guarantee once: five minutes on two cores; K=word: all tests with the word in their name
	@$(pytest) $(if $(K),-m "" -k "$$K")

test-all: $(develop)  ## all tests: strategies by models by settings, half an hour on two cores
	@$(pytest) -m ""

env: $(develop)

test-targets:  ## compile afresh for a TPU and a GPU that are not here, in an environment of its own
	@$(MAKE) --no-print-directory test VENV="$(VENV)-targets" EXTRAS=target-tpu,target-cuda K=afresh

lint: $(develop)  ## ruff and the type checker
	"$$VENV/bin/ruff" check .
	"$$VENV/bin/ruff" format --check .
	"$$VENV/bin/mypy" jaxbench

peers: $(runtime)  ## kernels and training steps beside NumPy's, PyTorch's and Keras', as ratios (installs those two)
	"$$VENV/bin/python" -m pip install --quiet --editable ".[peers]"
	@"$$VENV/bin/python" -m benchmarks.kernel_peers
	@exec "$$VENV/bin/python" -c "$$WITH_ARGS" benchmarks.peers

lock:  ## pin every dependency again (needs uv); ARGS=--upgrade moves to the newest
	@command -v uv >/dev/null || { echo "make lock needs uv: install it first." >&2; exit 1; }
	uv pip compile --quiet --universal --python-version 3.11 $(addprefix --extra ,$(known_extras)) --no-header --no-annotate \
	  $(ARGS) --output-file requirements.lock pyproject.toml

clean:  ## remove caches and builds; the environment and results/ stay
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name '.venv*' -prune -o -name results -prune -o -type d -name __pycache__ -exec rm -rf {} +

ci:  ## everything the continuous integration does
	@.ci/run

help:  ## this list
	@echo "make run EXP=cnn [PRESET=auto|smoke|paper] [WORKDIR=dir] [ARGS=\"--config.a.b=v ...\"]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: EXTRAS=cuda12|cuda13|tpu|target-tpu|target-cuda|tensorboard|adapters, VENV=.venv, PYTHON=python3.x, JOBS=n (processes of make test)"

need-exp:
	@:$(if $(strip $(EXP)),,$(error EXP is missing, say which experiment: make $(firstword $(MAKECMDGOALS)) EXP=cnn (see: make list)))

need-run:
	@:$(if $(strip $(RUN)),,$(error RUN is missing, say which run folder: make $(firstword $(MAKECMDGOALS)) RUN=results/name))

need-name:
	@:$(if $(strip $(NAME)),,$(error NAME is missing, say which baseline: make $(firstword $(MAKECMDGOALS)) ... NAME=main-mlp))

# A stamp is written after its step succeeded, so an interrupted installation is taken up again by the next make.
$(created):
	@sh -c "$$MAKE_VENV"
	@touch "$@"

$(runtime): pyproject.toml requirements.lock | $(created)
	@sh -c "$$INSTALL" - "$(EXTRAS)"
	@touch "$@"

$(develop): pyproject.toml requirements.lock | $(created)
	@sh -c "$$INSTALL" - "dev$(addprefix $(comma),$(EXTRAS))"
	@touch "$@" "$(runtime)"

# A Python is tried before it is chosen: a version manager's shim may be there and not run.
define MAKE_VENV
if command -v uv >/dev/null; then exec uv venv --quiet --seed --allow-existing --python "$${PYTHON:->=3.11}" "$$VENV"; fi
try() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
if test -n "$$PYTHON"; then
  if try "$$PYTHON"; then exec "$$PYTHON" -m venv "$$VENV"; fi
  echo "PYTHON=$$PYTHON is not a Python >= 3.11 with venv: name another." >&2
  exit 1
fi
for python in python3 python3.14 python3.13 python3.12 python3.11 python; do
  if try "$$python"; then exec "$$python" -m venv "$$VENV"; fi
done
echo "No Python >= 3.11 with venv was found: install one (or uv), or name it with PYTHON=path/to/python3." >&2
exit 1
endef
export MAKE_VENV

# requirements.lock constrains what is installed and what builds it. Byte code is compiled now, not at first import: a run
# starts many processes, and in containers Python is often told not to write any.
define INSTALL
echo "Installing jaxbench$${1:+ with $$1} into $$VENV (once; a minute or two) ..." >&2
if command -v uv >/dev/null; then
  exec uv pip install --quiet --compile-bytecode --python "$$VENV/bin/python" \
    --constraints requirements.lock --build-constraints requirements.lock --editable ".$${1:+[$$1]}"
fi
export PIP_CONSTRAINT=requirements.lock PIP_BUILD_CONSTRAINT=requirements.lock PIP_DISABLE_PIP_VERSION_CHECK=1
exec "$$VENV/bin/python" -m pip install --quiet --editable ".$${1:+[$$1]}"
endef
export INSTALL

# Splits ARGS as a shell would, quotes included, and runs nothing in it. The app then sees the environment as if it had
# been started by hand.
define WITH_ARGS
import os, shlex, sys
try:
    args = shlex.split(os.environ.get("ARGS", ""))
except ValueError as error:
    sys.exit(f"ARGS cannot be split into words: {error}.")
ours = "A ACROSS ARGS B CARD EXP FILTER FROM K NAME JOBS PRESET PYTHON RUN VENV WORKDIR MAKE_VENV INSTALL WITH_ARGS MAKEFLAGS MAKELEVEL MFLAGS"
for name in ours.split():
    os.environ.pop(name, None)
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:], *args])
endef
export WITH_ARGS

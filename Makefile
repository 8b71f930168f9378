# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
# With Python >= 3.11, make and a package index, `make run EXP=cnn` works in a fresh clone.
# Targets only call the app (`jaxbench run cnn`); this file itself only creates the virtual environment.

VENV ?= .venv
JOBS ?= logical
unlocked := wandb mlflow
known_extras := cuda12 cuda13 tpu target-tpu target-cuda slurm ray tensorboard nvml mimalloc adapters docs wandb mlflow dev

comma := ,
extras := $(subst $(comma), ,$(EXTRAS))
ifneq ($(filter-out $(known_extras),$(extras)),)
  $(error EXTRAS accepts only: $(known_extras))
endif
created := $(VENV)/.created
runtime := $(VENV)/.installed-run$(addprefix -,$(extras))
runtime := $(subst $() ,,$(runtime))
develop := $(subst /.installed-run,/.installed-dev,$(runtime))

# Values are taken literally, $$ included, and reach the shell as "$$NAME" through the environment: no character in them is
# special to make or to the shell.
variables := A ACROSS AGAINST ARGS B CARD DEVICES DOCS ENGINE EXP FILTER FROM ID K LAUNCH MARGIN NAME NODES OF PRESET PROBES QUARTER RUN TABLE TARGET TO WORKDIR
$(foreach name,$(variables),$(if $(filter-out undefined,$(origin $(name))),$(eval override $(name) := $$(value $(name)))))
export $(variables) JOBS PYTHON VENV
export VARIABLES := $(variables) JOBS PYTHON VENV
app = exec "$$VENV/bin/python" -c "$$WITH_ARGS" jaxbench
pytest = exec "$$VENV/bin/python" -c "$$WITH_ARGS" pytest --numprocesses="$$JOBS" --maxprocesses=8 --dist=worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: run forecast advise try train launch new machine first-run paper gallery report figures compare site ab bisect audit calibrate baseline check card cards repro doctor accept cache list env test test-all test-cluster test-targets test-trackers lint peers lock clean ci help need-exp need-engine need-run need-name need-table need-id

run: need-exp $(runtime)  ## measure how EXP scales: make run EXP=cnn, or EXP=path/to/mine.py
	@$(app) run "$$EXP" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

forecast: need-exp $(runtime)  ## what EXP would be on a machine that is not here: make forecast EXP=gpt TARGET=v5e:16x16, or FROM=results/x
	@$(app) forecast "$$EXP" $(if $(TARGET),--targets="$$TARGET") $(if $(FROM),--from="$$FROM") $(if $(CARD),--card="$$CARD") $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

advise: need-exp $(runtime)  ## which accelerators for a training, in what time, at what cost: make advise EXP=gpt ARGS="--config.model.preset=7b --tokens=1e12 --deadline=14d"
	@$(app) advise "$$EXP" $(if $(TARGET),--targets="$$TARGET") $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

try: need-exp $(runtime)  ## check which strategies train a model correctly, without timing: make try EXP=path/to/mine.py
	@$(app) try "$$EXP"

train: need-exp $(runtime)  ## train EXP to its target, with checkpoints: make train EXP=cnn
	@$(app) train "$$EXP" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

launch: need-engine need-exp $(runtime)  ## run EXP on the nodes of a cluster: make launch ENGINE=slurm|mpi|k8s|ray EXP=gpt LAUNCH="--nodes=1,2 --devices=gpu:8"
	@$(app) launch "$$ENGINE" $(if $(WORKDIR),--workdir="$$WORKDIR") -- run "$$EXP" $(if $(PRESET),--preset="$$PRESET")

new: need-exp $(runtime)  ## write an example model to start from: make new EXP=mine.py [FROM=nnx|linen|functions|equinox|haiku|sums|step]
	@$(app) new "$$EXP" $(if $(FROM),--from="$$FROM")

machine: $(runtime)  ## measure this machine (peaks, launch cost, links) in under three minutes
	@$(app) machine $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

first-run: $(runtime)  ## run everything once at a small size and write one page of results, within half an hour; WORKDIR continues
	@$(app) first-run $(if $(WORKDIR),--workdir="$$WORKDIR")

paper: need-id $(runtime)  ## does what a paper claims hold on this machine? make paper ID=rajbhandari2020 [PRESET=paper], or ID=list
	@$(app) paper "$$ID" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

gallery: $(runtime)  ## write all papers that were run as one page and as GALLERY.md; DOCS=docs writes them into those of the documentation
	@$(app) gallery $(if $(WORKDIR),--workdir="$$WORKDIR") $(if $(DOCS),--docs="$$DOCS")

report: need-run $(runtime)  ## rebuild the figures and pages of a run: make report RUN=results/...
	@$(app) report --run="$$RUN"

compare: $(runtime)  ## is run B faster than A, slower, the same, or is that inconclusive? make compare A=results/x B=results/y
	@$(app) compare --a="$$A" --b="$$B" $(if $(ACROSS),--across="$$ACROSS") $(if $(WORKDIR),--workdir="$$WORKDIR")

ab: need-exp $(runtime)  ## measure A and B in turns until that question is answered: make ab EXP=cnn A="--config.strategy=pmap" B="--config.strategy=jit_auto", or A=ref:main B=ref:HEAD, or A=jax==0.10.0 B=jax==0.10.2
	@$(app) ab "$$EXP" --a="$$A" --b="$$B" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

bisect: $(runtime)  ## the first slow version of two releases or commits: make bisect EXP=gpt FROM=jax==0.10.0 TO=jax==0.10.2, or RUN="python my_script.py" FROM=ref:v1 TO=ref:main
	@$(app) bisect $(if $(EXP),"$$EXP") $(if $(RUN),--run="$$RUN") --from="$$FROM" --to="$$TO" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

audit: need-table $(runtime)  ## do the printed numbers of a table of training results agree? make audit TABLE=results.csv ARGS="seq_len=4096 device=H100"
	@$(app) audit "$$TABLE" $(if $(WORKDIR),--workdir="$$WORKDIR")

calibrate: $(runtime)  ## measure how much runs of one program vary here, the threshold of check: make calibrate [EXP=mlp]
	@$(app) calibrate "$${EXP:-mlp}" $(if $(PRESET),--preset="$$PRESET") $(if $(WORKDIR),--workdir="$$WORKDIR")

baseline: need-run need-name $(runtime)  ## keep a run as a baseline for check: make baseline RUN=results/... NAME=main-mlp
	@$(app) baseline --run="$$RUN" --name="$$NAME"

check: need-exp need-name $(runtime)  ## is EXP slower than its baseline? writes junit.xml and summary.md: make check EXP=mlp NAME=main-mlp
	@$(app) check "$$EXP" --name="$$NAME" $(if $(WORKDIR),--workdir="$$WORKDIR")

card: need-run $(runtime)  ## write a run as one document under cards/: make card RUN=results/...
	@$(app) card --run="$$RUN"

cards: $(runtime)  ## show all cards as one table and one figure: make cards FILTER="experiment=cnn scaling=strong"
	@$(app) cards $$FILTER

repro: $(runtime)  ## measure a card again: is the result within 20 %? make repro CARD=cards/....json
	@$(app) repro --card="$$CARD" $(if $(WORKDIR),--workdir="$$WORKDIR")

site: $(develop)  ## build the documentation with search as site/, which works without a network; fails for a link that leads nowhere
	@"$$VENV/bin/python" -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

figures: $(develop)  ## draw every committed figure again from its records, and say which can be read without their page
	@exec "$$VENV/bin/python" -c "$$WITH_ARGS" benchmarks.figures --draw

doctor: $(runtime)  ## is this machine fit to measure on?
	@$(app) doctor

accept: $(runtime)  ## is this rented machine as it should be? make accept [AGAINST=card:old/accept.json] [MARGIN=5%]; with ENGINE=slurm NODES=16 DEVICES=gpu:8: each host of a job
	@$(if $(ENGINE),$(app) launch "$$ENGINE" $(if $(NODES),--nodes="$$NODES") $(if $(DEVICES),--devices="$$DEVICES") $(if $(WORKDIR),--workdir="$$WORKDIR") -- accept,$(app) accept $(if $(WORKDIR),--workdir="$$WORKDIR")) $(if $(MARGIN),--margin="$$MARGIN") $(if $(AGAINST),--against="$$AGAINST") $(if $(PROBES),--probes="$$PROBES")

cache: $(runtime)  ## show the compiled programs that are kept; ARGS=--clear removes them
	@$(app) cache

list: $(runtime)  ## list the experiments and presets: make list, or OF=strategies|levers|targets|papers|templates
	@$(app) list $(if $(OF),"$$OF")

# `-m ""` overrides the `-m "not full"` of pyproject.toml.
test: $(develop)  ## test a chosen set, in a few minutes; K=word: all tests with this word in their name
	@$(pytest) $(if $(K),-m "" -k "$$K")

test-all: $(develop)  ## run all tests (strategies x models x settings), half an hour on two cores; QUARTER=1..4: of the products only this quarter
	@$(pytest) -m "" $(if $(QUARTER),--quarter="$$QUARTER")

test-cluster: $(develop)  ## test what needs Slurm, Open MPI or Ray, where they are installed; says which were not tried
	@$(pytest) tests/cluster -m cluster -rs --numprocesses=0

env: $(develop)  ## install everything into VENV, and do nothing more: make env EXTRAS=cuda13

test-targets:  ## test compilation for an absent TPU and GPU, in a separate environment
	@$(MAKE) --no-print-directory test VENV="$(VENV)-targets" EXTRAS=target-tpu,target-cuda K=afresh ARGS=tests/machine/test_afresh.py

lint: $(develop)  ## run ruff and the type checker
	"$$VENV/bin/ruff" check .
	"$$VENV/bin/ruff" format --check .
	"$$VENV/bin/mypy" jaxbench

test-trackers:  ## test jb.log with Weights & Biases, MLflow, TensorBoard and trackio, in a separate environment
	@$(MAKE) --no-print-directory env VENV="$(VENV)-trackers"
	"$$VENV-trackers/bin/python" -m pip install --quiet --editable ".[trackers]"
	@$(MAKE) --no-print-directory test VENV="$(VENV)-trackers" K=tracker ARGS="-rs tests/features/exports/test_trackers.py"

peers: $(runtime)  ## compare kernels and training steps with NumPy, PyTorch and Keras (installs the latter two)
	"$$VENV/bin/python" -m pip install --quiet --editable ".[peers]"
	@"$$VENV/bin/python" -m benchmarks.kernel_peers
	@exec "$$VENV/bin/python" -c "$$WITH_ARGS" benchmarks.peers

lock:  ## pin every dependency again (needs uv); ARGS=--upgrade takes the newest versions
	@command -v uv >/dev/null || { echo "make lock needs uv: install it first." >&2; exit 1; }
	uv pip compile --quiet --universal --python-version 3.11 $(addprefix --extra ,$(filter-out $(unlocked),$(known_extras))) --no-header --no-annotate \
	  $(ARGS) --output-file requirements.lock pyproject.toml

clean:  ## remove caches and builds; keep the environment and results/
	rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name '.venv*' -prune -o -name results -prune -o -type d -name __pycache__ -exec rm -rf {} +

ci:  ## run everything that continuous integration runs
	@.ci/run

help:  ## this list
	@echo "make run EXP=cnn [PRESET=auto|smoke|paper] [WORKDIR=dir] [ARGS=\"--config.a.b=v ...\"]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: EXTRAS=cuda12|cuda13|tpu|target-tpu|target-cuda|slurm|ray|tensorboard|wandb|mlflow|nvml|mimalloc|adapters|docs, VENV=.venv, PYTHON=python3.x, JOBS=n (processes of make test)"
	@echo "Under make any non-zero exit code becomes 2; in CI call jaxbench directly."

need-exp:
	@:$(if $(strip $(EXP)),,$(error EXP is missing, say which experiment: make $(firstword $(MAKECMDGOALS)) EXP=cnn (see: make list)))

need-id:
	@:$(if $(strip $(ID)),,$(error ID is missing, say which paper: make paper ID=rajbhandari2020 (see: make paper ID=list)))

need-engine:
	@:$(if $(strip $(ENGINE)),,$(error ENGINE is missing, say what starts the processes: make launch ENGINE=slurm EXP=gpt (or mpi, k8s, ray)))

need-run:
	@:$(if $(strip $(RUN)),,$(error RUN is missing, say which run folder: make $(firstword $(MAKECMDGOALS)) RUN=results/name))

need-name:
	@:$(if $(strip $(NAME)),,$(error NAME is missing, say which baseline: make $(firstword $(MAKECMDGOALS)) ... NAME=main-mlp))

need-table:
	@:$(if $(strip $(TABLE)),,$(error TABLE is missing, say which table: make audit TABLE=results.csv))

# A stamp is written after its step has succeeded, so the next make resumes an interrupted installation.
$(created):
	@sh -c "$$MAKE_VENV"
	@touch "$@"

$(runtime): pyproject.toml requirements.lock | $(created)
	@sh -c "$$INSTALL" - "$(EXTRAS)"
	@touch "$@"

$(develop): pyproject.toml requirements.lock | $(created)
	@sh -c "$$INSTALL" - "dev$(addprefix $(comma),$(EXTRAS))"
	@touch "$@" "$(runtime)"

# A Python is tried before it is chosen: a version manager's shim may exist and not run.
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

# requirements.lock constrains both what is installed and what builds it. Byte code is compiled now, jaxbench's own too, not
# at first import: a run starts many processes, and containers often disable writing byte code. It only saves time, so a
# folder that cannot be written is no failure.
define INSTALL
set -e
echo "Installing jaxbench$${1:+ with $$1} into $$VENV (once; a minute or two) ..." >&2
if command -v uv >/dev/null; then
  uv pip install --quiet --compile-bytecode --python "$$VENV/bin/python" \
    --constraints requirements.lock --build-constraints requirements.lock --editable ".$${1:+[$$1]}"
else
  export PIP_CONSTRAINT=requirements.lock PIP_BUILD_CONSTRAINT=requirements.lock PIP_DISABLE_PIP_VERSION_CHECK=1
  "$$VENV/bin/python" -m pip install --quiet --editable ".$${1:+[$$1]}"
fi
"$$VENV/bin/python" -m compileall -qq jaxbench || true
endef
export INSTALL

# Splits ARGS as a shell would, quotes included, without executing anything in it; and LAUNCH, which goes before the "--" of
# launch. The app then sees the same environment as if it had been started by hand.
# pytest does not see what changes Python itself, such as PYTHONOPTIMIZE, under which it would not test, and
# PYTHONDONTWRITEBYTECODE, under which each of its processes compiles all tests anew; tests/surroundings.py takes the other
# variables of the shell out of the tests.
define WITH_ARGS
import os, shlex, signal, sys
try:
    name = "ARGS"
    args = shlex.split(os.environ.get(name, ""))
    name = "LAUNCH"
    launch = shlex.split(os.environ.get(name, ""))
except ValueError as error:
    sys.exit(f"{name} cannot be split into words: {error}.")
words = sys.argv[1:]
if words[0] == "jaxbench":
    os.environ["JAXBENCH_FORM"] = "make"
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))  # until the app listens
if "--" in words:
    words[words.index("--"):words.index("--")] = launch
if words[0] == "pytest":
    for name in "OPTIMIZE WARNINGS DEVMODE INSPECT IOENCODING DONTWRITEBYTECODE".split():
        os.environ.pop(f"PYTHON{name}", None)
    os.environ["PYTHONUTF8"] = "1"
for name in [*os.environ.get("VARIABLES", "").split(), *"VARIABLES MAKE_VENV INSTALL WITH_ARGS MAKEFLAGS MAKELEVEL MFLAGS".split()]:
    os.environ.pop(name, None)
os.execv(sys.executable, [sys.executable, "-m", *words, *args])
endef
export WITH_ARGS

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The app as a user runs it: a real process, its exit code and its output."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import jax

ROOT = Path(__file__).resolve().parents[1]
# Most of the tests' time is LLVM optimising programs that run once. Without the newer fusion emitters XLA compiles
# another two times faster. From jax 0.11 on there are no others, and a process ends at an unknown flag.
UNOPTIMISED = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
if jax.__version_info__ < (0, 11):
    UNOPTIMISED += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
# Test processes compile the same programs, so they share a cache per process of pytest. A user's processes compile
# and optimise without this cache.
COMPILED = tempfile.mkdtemp(prefix="jaxbench-tests-")
atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
# Each process of pytest has its own machine lock, so that its tests do not wait for those of another.
os.environ["JAXBENCH_LOCK_DIR"] = COMPILED
QUICKER = {
    "XLA_FLAGS": UNOPTIMISED,
    "JAX_COMPILATION_CACHE_DIR": COMPILED,
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",  # the Python stack of each operation is a tenth of the time to compile
}
# The smallest sweep: two points of one strategy, two short rounds.
QUICK = (
    "--preset=smoke",
    "--config.strategy=jit_auto",
    "--config.scaling=strong",
    "--config.mesh.platform=cpu",
    "--config.measure.rounds=2",
    "--config.measure.block_s=0.001",
)
QUICK_MLP = (*QUICK, "--config.optimizer.name=sgd", "--config.optimizer.learning_rate=0.1")


drawn = False  # whether runs of `jaxbench` have figures; set by conftest.py for each test


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "jaxbench", *words]


def environment() -> dict[str, str]:
    """The environment without JAX settings of pytest or a developer; the package is found from any folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XLA_", "JAX_", "NPROC"))}
    ours = {"PYTHONPATH": str(ROOT), "COLUMNS": "120", "CUDA_VISIBLE_DEVICES": "", "TPU_VISIBLE_DEVICES": ""}
    return {**kept, **QUICKER, **ours}


@functools.cache
def _forking() -> subprocess.Popen[str]:
    """The process that forks one for each command (tests/forked.py): half of a short command's time is imports."""
    words = [sys.executable, str(ROOT / "tests" / "forked.py")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True)
    atexit.register(process.communicate)
    return process


# Drawing dominates a short run; api/test_calls.py checks the figures of one in all formats.
_SKETCH = "from jaxbench import app; from jaxbench.report.drawing import canvas; canvas.FORMATS = ('svg',); app.main()"


def sketching(*words: str) -> list[str]:
    """A command that draws each figure only in the format of the pages."""
    return [sys.executable, "-c", _SKETCH, *words]


def jaxbench(*words: str, cwd: Path | None = None, limit_s: float = 240) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, in a process that begins with the app's imports; `command` is for a new process."""
    ran, forking = sketching(*words), _forking()
    assert forking.stdin and forking.stdout
    with tempfile.NamedTemporaryFile("r+") as out, tempfile.NamedTemporaryFile("r+") as err:
        asked = {"command": ran, "words": words, "cwd": str(cwd or ROOT), "environment": environment()}
        forking.stdin.write(json.dumps({**asked, "out": out.name, "err": err.name, "drawn": drawn}) + "\n")
        forking.stdin.flush()
        pid = int(forking.stdout.readline())
        limit = threading.Timer(limit_s, os.kill, (pid, signal.SIGKILL))
        limit.start()
        code = int(forking.stdout.readline())
        limit.cancel()
        return subprocess.CompletedProcess(ran, code, out.read(), err.read())

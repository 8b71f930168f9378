# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Takes what a shell, a notebook, a queue or a hosted runner exports out of this process, before anything reads it.

A test asserts about variables that it sets itself. `HOSTILE` has one of each kind that made a test fail, or could.
`tests/house/test_surroundings.py` runs a few tests with all of them, and `python tests/surroundings.py` runs any.
"""

from __future__ import annotations

import os
import re
import sys

# What a library or a program reads that runs in these tests, and what jaxbench writes into a manifest.
_READ = re.compile(
    "(JAX|JAXBENCH|XLA|TF|NCCL|TPU|LIBTPU|OMP|MKL|KMP|GOMP|GOTO|BLIS|NUMEXPR|VECLIB|MALLOC)_.*"
    "|CUDA_(VISIBLE|DEVICE|MODULE|CACHE|LAUNCH|MPS).*|NVIDIA_TF32_OVERRIDE"
    "|SLURM_(?!CONF$).*|(SRUN|PMI|PMIX|KUBERNETES|JOBSET|RAY|CLOUD_TPU|MEGASCALE)_.*|OMPI_(COMM|UNIVERSE|FILE|APP).*"
    "|GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX|CEILING|OBJECT|TRACE|PAGER|EDITOR).*"
    "|(GITHUB|GITLAB|XDG|LC|KERAS|MPL|JUPYTER|COLAB|SOURCE_DATE|HYPOTHESIS)_.*"
    "|PYTHON(OPTIMIZE|WARNINGS|DEVMODE|INSPECT|IOENCODING|UTF8|COERCECLOCALE|TRACEMALLOC|HASHSEED|STARTUP"
    "|DONTWRITEBYTECODE)"
    "|OPENBLAS_(NUM|MAIN|VERBOSE|BLOCK|DEFAULT).*"  # not OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE: see below
    "|NPROC|GLIBC_TUNABLES|MPLBACKEND|MPLCONFIGDIR|MATPLOTLIBRC|COLUMNS|LINES|TERM|COLORTERM|NO_COLOR|FORCE_COLOR"
    "|CLICOLOR.*|TTY_.*|CI|TZ|LANG|LANGUAGE|PAGER|EDITOR|IPYTHONDIR|MAKEFLAGS|MFLAGS|MAKELEVEL"
)
# Some processors need these two to compute at all, so they stay. A test must not ask that they are not there.
KEPT = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "512"}
HOSTILE = {
    **KEPT,
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "7"),
    **{"OMP_PROC_BIND": "true", "KMP_AFFINITY": "none", "MALLOC_ARENA_MAX": "1", "NPROC": "3", "NCCL_DEBUG": "INFO"},
    **{"XLA_FLAGS": "--xla_dump_to=/dev/null/folder", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    **{"JAX_PLATFORMS": "cuda", "JAX_DISABLE_JIT": "1", "JAX_ENABLE_X64": "1", "JAX_DEBUG_NANS": "1"},
    **{"JAX_NUM_CPU_DEVICES": "3", "JAX_LOG_COMPILES": "1", "JAX_TRACEBACK_FILTERING": "off"},
    **{"CUDA_VISIBLE_DEVICES": "5", "TPU_VISIBLE_DEVICES": "5", "TF_CPP_MIN_LOG_LEVEL": "0"},
    **{"JAXBENCH_FORM": "make", "JAXBENCH_LOCK_DIR": "/dev/null/folder", "JAXBENCH_SHARED_WITH": "somebody"},
    **{"SLURM_JOB_ID": "9", "SLURM_STEP_NODELIST": "host", "SLURM_NTASKS": "4", "SLURM_PROCID": "2"},
    **{"SLURM_LOCALID": "2", "OMPI_COMM_WORLD_SIZE": "4", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    **{"MPLBACKEND": "module://matplotlib_inline.backend_inline", "MATPLOTLIBRC": "/dev/null/folder"},
    **{"LC_ALL": "C", "LANG": "tr_TR.UTF-8", "LC_NUMERIC": "de_DE.UTF-8", "TZ": "Pacific/Kiritimati"},
    **{"COLUMNS": "31", "LINES": "7", "TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"},
    **{"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/dev/null/folder/summary"},
    **{"GIT_DIR": "/dev/null/folder", "GIT_WORK_TREE": "/dev/null/folder", "GIT_INDEX_FILE": "/dev/null/folder/index"},
    **{
        "XDG_CACHE_HOME": "/dev/null/folder",
        "XDG_CONFIG_HOME": "/dev/null/folder",
        "XDG_RUNTIME_DIR": "/dev/null/folder",
    },
    **{"KERAS_BACKEND": "torch", "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "ascii", "PAGER": "false"},
}


def removed() -> dict[str, str]:
    """Removes the variables from this process, and so from those that it starts. Returns them."""
    found = {name: value for name, value in os.environ.items() if _READ.fullmatch(name)}
    for name in found:
        del os.environ[name]
    return found


removed()

if __name__ == "__main__":
    # As a process that a person starts in a shell with these variables.
    os.execve(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]], {**os.environ, **HOSTILE})

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Devices that are not here, for compiling only: JAX's topologies of the targets in `catalog/targets.py`.

In a process of its own: a TPU's library and a GPU's plug-in change how the rest of a process behaves, and a compiler
that fails a check of its own ends the process.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from jaxbench.catalog.targets import Target
from jaxbench.errors import UserError

# A process that compiles for a TPU asks no cloud who it is, and takes no lock that another could hold.
_TPU = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
# Trying out kernels needs the GPU.
_GPU = ("--xla_gpu_autotune_level=0", "--xla_gpu_enable_triton_gemm=false")
_NEEDS = {"tpu": (("libtpu",), "target-tpu"), "gpu": (("jax_plugins.xla_cuda12", "nvidia.cuda_nvcc"), "target-cuda")}


def require(target: Target) -> None:
    """Raises UserError, which says what to install, where the compiler for this target is not installed."""
    modules, extra = _NEEDS[target.platform]
    if not all(map(_installed, modules)):
        raise UserError(
            f"--target={target.text} needs XLA's compiler for it, which is not installed: use make with "
            f"EXTRAS={extra}, or pip install 'jaxbench[{extra}]'."
        )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def environment(target: Target) -> dict[str, str]:
    """What the process must find in its environment before it imports JAX."""
    found = {"JAX_PLATFORMS": "cpu"}
    if target.platform == "tpu":
        return found | _TPU
    return found | {"XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *_GPU]).strip()}


def devices(target: Target) -> list[Any]:
    """Its devices, which nothing can run on. Call in a process with `environment(target)`."""
    from jax.experimental import topologies

    platform, about = target.topology()
    return list(topologies.get_topology_desc(platform=platform, **about).devices)

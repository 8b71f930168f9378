# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Absent devices, only for compiling: JAX's topologies of the targets in `catalog/targets.py`.

They need a separate process: a TPU's library and a GPU's plug-in change the rest of a process, and a failed internal
check of a compiler kills it.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from jaxbench.catalog.targets import Target
from jaxbench.command_form import with_extra
from jaxbench.errors import UserError

# When compiling for a TPU, do not query a cloud's metadata server, and take no lock that another process may hold.
_TPU = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
# Autotuning would need the GPU.
_GPU = ("--xla_gpu_autotune_level=0", "--xla_gpu_enable_triton_gemm=false")
_NEEDS = {"tpu": (("libtpu",), "target-tpu"), "gpu": (("jax_plugins.xla_cuda12", "nvidia.cuda_nvcc"), "target-cuda")}


def require(target: Target) -> None:
    """Raises UserError if the compiler for this target is missing. The message names the package to install."""
    modules, extra = _NEEDS[target.platform]
    if not all(map(_installed, modules)):
        raise UserError(
            f"--target={target.text} needs XLA's compiler for it, which is not installed: {with_extra(extra)}."
        )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def environment(target: Target) -> dict[str, str]:
    """Environment variables that the process needs before it imports JAX."""
    if target.platform == "tpu":
        return {"JAX_PLATFORMS": "cpu", **_TPU}
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *_GPU]).strip()}


def devices(target: Target) -> list[Any]:
    """The devices of the target, on which nothing can run. Call in a process with `environment(target)`."""
    from jax.experimental import topologies

    platform, about = target.topology()
    return list(topologies.get_topology_desc(platform=platform, **about).devices)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Starts the devices of this process, before JAX's backend exists: fake CPU devices pinned to cores, or real ones."""

from __future__ import annotations

import functools
import os
from typing import Any

import jax

from jaxbench.errors import MoreCollectives, UserError
from jaxbench.machine.cores import pin_to_cores

# Collectives of one program that may wait for other devices at the same time, unless the caller says otherwise.
CONCURRENT_COLLECTIVES = 4


Options = dict[str, Any]  # of XLA


def only_cpu_here() -> None:
    """For the process that asks: only workers start accelerators, whose memory a model file must not take in both."""
    jax.config.update("jax_platforms", "cpu")


def start_fake_cpu(
    devices: int, *, pin: bool = True, cores: int | None = None, concurrent_collectives: int = CONCURRENT_COLLECTIVES
) -> None:
    """Makes this process a machine of `devices` CPU devices with one core each, as far as cores go.

    cores: instead, one device that may use that many cores, as a kernel of a library does.
    concurrent_collectives: the most collectives of one program that can wait for other devices at the same time.

    By default XLA lets one CPU device use every core, so that going from one device to two would show no gain, and a
    count above the cores a false one. Raises RuntimeError when the backend has already started.
    """
    # Many devices on few cores reach a collective far apart; XLA aborts the process after 40 s unless told to wait.
    flags = [f"--xla_cpu_collective_call_{what}_timeout_seconds=600" for what in ("warn_stuck", "terminate")]
    if cores is not None:
        pin_to_cores(cores)
    elif pin:
        pin_to_cores(devices)
        flags.append("--xla_cpu_multi_thread_eigen=false")
    # XLA's pool has one thread a core unless NPROC says otherwise.
    os.environ["NPROC"] = str(cores or threads(devices, concurrent_collectives))
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)


def threads(devices: int, concurrent_collectives: int) -> int:
    """The least threads of XLA's pool with which so many fake devices cannot hang.

    Each device holds a thread while its program runs, and one for each collective that waits; when all but one have
    come to each of those, one more must be free for the last. For one collective at once that is two a device, and
    exactly there hanging began and ended when it was tried (2 and 4 devices). More threads than that cost time,
    for XLA splits products over all of them: `benchmarks/sharing.py` measures how much.
    """
    return devices + (devices - 1) * concurrent_collectives + 1 if devices > 1 else 1


def require_threads(devices: int, concurrent_collectives: int) -> None:
    """Raises MoreCollectives where a program could hang because this process has too few threads for it."""
    if jax.default_backend() == "cpu" and "NPROC" in os.environ and devices > 1:
        if int(os.environ["NPROC"]) < threads(jax.device_count(), concurrent_collectives):
            raise MoreCollectives(concurrent_collectives)


def traced_for() -> str:
    """The platform of the devices that a function is being traced for: those of the mesh in use, else this process's
    own. They differ where a program is compiled for hardware that is not here."""
    mesh = jax.sharding.get_abstract_mesh()
    return jax.default_backend() if mesh.empty else mesh.abstract_device.platform


def run_once_options() -> Options:
    """Compiler options for programs that run a few times and are never timed: initialisation, the one-device reference.

    On the CPU most of a short run is LLVM optimising such programs; unoptimised they compile in a quarter of the time.
    """
    return dict(_unoptimised()) if jax.default_backend() == "cpu" else {}


@functools.cache
def _unoptimised() -> Options:
    """Without LLVM's optimisations, in one module, and by the plain code generator where jaxlib still has it."""
    least: Options = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
    plain: Options = {**least, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0).lower().compile(plain)
    except jax.errors.JaxRuntimeError:  # jaxlib 0.12 has only the newer generator
        return least
    return plain


def start(
    platform: str,
    devices: int,
    *,
    pin: bool = True,
    cores: int | None = None,
    concurrent_collectives: int = CONCURRENT_COLLECTIVES,
) -> list[jax.Device]:
    """Starts `devices` devices of `platform` (cpu, gpu, tpu) and returns them. The rest is for `start_fake_cpu`.

    Raises:
      UserError: the platform is absent here or has fewer devices.
    """
    if platform == "cpu":
        start_fake_cpu(devices, pin=pin, cores=cores, concurrent_collectives=concurrent_collectives)
    else:
        require(platform)
    found = jax.local_devices()  # what the manifest counts; another host's cannot be used from here
    if len(found) < devices:
        raise UserError(f"{devices} {platform} devices were asked for, this machine has {len(found)}.")
    return found[:devices]


def require(platform: str) -> None:
    """Makes JAX use `platform` or fail; it never falls back to the CPU, which is there beside it for what is named."""
    name = _gpu_platform() if platform == "gpu" else platform
    jax.config.update("jax_platforms", ",".join(dict.fromkeys((name, "cpu"))))
    try:
        found = jax.devices()[0].platform
    except (RuntimeError, AssertionError):  # the second: a plug-in that is not there at all, in some releases
        found = ""
    if found != platform:  # in some releases the next of the list is taken without a word
        raise UserError(
            f"a {platform.upper()} was asked for (--config.mesh.platform={platform}), but JAX finds none: install the "
            f"driver and the extra (EXTRAS=cuda13, cuda12 or tpu), or use --config.mesh.platform=cpu."
        )


def _gpu_platform() -> str:
    """JAX wants the vendor: rocm where its plug-in is installed, else cuda."""
    from importlib.util import find_spec

    return "rocm" if find_spec("jax_rocm7_plugin") or find_spec("jax_rocm60_plugin") else "cuda"

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Starts the devices of this process, before JAX's backend exists: fake CPU devices pinned to cores, or real ones."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import jax

from jaxbench.command_form import with_extra
from jaxbench.errors import MoreCollectives, UserError
from jaxbench.machine import settings, world
from jaxbench.machine.cores import pin_to_cores

# Default number of collectives of one program that may wait for other devices at the same time.
CONCURRENT_COLLECTIVES = 4
Options = dict[str, Any]  # XLA's compiler options

LARGE = 1.5e10  # FLOPs of one run: without optimization it takes seconds on one core
# LLVM's first level, in one module: deep models take seconds longer to compile, and half to two thirds of the run time.
_A_LITTLE: Options = {"xla_backend_optimization_level": 1, "xla_cpu_parallel_codegen_split_count": 1}


def only_cpu_here() -> None:
    """Hides accelerators from the parent process. Only workers start them: their memory must not be taken twice."""
    jax.config.update("jax_platforms", "cpu")


def start_fake_cpu(
    devices: int,
    *,
    pin: bool = True,
    cores: int | None = None,
    concurrent_collectives: int = CONCURRENT_COLLECTIVES,
    together: int = 0,
) -> None:
    """Gives this process `devices` CPU devices with one core each, as far as there are cores.

    cores: instead, one device that may use this number of cores, as a library's kernel does.
    concurrent_collectives: the maximum number of collectives of one program that can wait at the same time.
    together: the number of devices of all processes of a world. They share their cores, so that the threads that read
    from sockets find an idle core.

    By default XLA lets one CPU device use every core. Two devices would then show no gain over one, and more devices
    than cores a false gain. Raises RuntimeError when the backend has already started.
    """
    # Oversubscribed devices reach a collective at very different times; by default XLA aborts the process after 40 s.
    flags = [f"--xla_cpu_collective_call_{what}_timeout_seconds=600" for what in ("warn_stuck", "terminate")]
    if cores is not None:
        pin_to_cores(cores)
    elif pin:
        pin_to_cores(max(devices, together))
        flags.append("--xla_cpu_multi_thread_eigen=false")  # one device must not spread over the cores of others
    # XLA's thread pool has NPROC threads, by default one per core.
    os.environ["NPROC"] = str(cores or threads(devices, concurrent_collectives))
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)


def threads(devices: int, concurrent_collectives: int) -> int:
    """The smallest thread pool of XLA with which `devices` fake devices cannot hang.

    Each device holds a thread while its program runs, and one for each waiting collective. When all devices except one
    wait in every collective, the last device needs one more thread. For one collective that is two threads per device,
    which is exactly the limit found by experiment (2 and 4 devices). More threads cost time, because XLA splits matrix
    products over all of them: `benchmarks/sharing.py` measures how much.
    """
    return devices + (devices - 1) * concurrent_collectives + 1 if devices > 1 else 1


def require_threads(devices: int, concurrent_collectives: int) -> None:
    """Raises MoreCollectives if a program could hang because this process has too few threads for it."""
    if jax.default_backend() == "cpu" and "NPROC" in os.environ and devices > 1:
        if int(os.environ["NPROC"]) < threads(jax.local_device_count(), concurrent_collectives):
            raise MoreCollectives(concurrent_collectives)


def traced_for() -> str:
    """The platform for which a function is being traced: that of the current mesh or, without one, of this process.

    They differ when a program is compiled for absent hardware.
    """
    mesh = jax.sharding.get_abstract_mesh()
    return jax.default_backend() if mesh.empty else mesh.abstract_device.platform


def run_once_options(flops: float = 0.0) -> Options:
    """Compiler options for programs that run a few times and are never timed: initialization, the one-device reference.

    On the CPU, LLVM spends most of a short run optimizing them. Without optimization they compile in a quarter of the
    time. flops: of one run. From LARGE on, the runs take longer than a little optimization.
    """
    if jax.default_backend() != "cpu":
        return {}
    return dict(_A_LITTLE) if flops >= LARGE else dict(_unoptimised())


@functools.cache
def _unoptimised() -> Options:
    """Options without LLVM's optimizations, in one module, and without fusion emitters if jaxlib has that option."""
    unoptimised: Options = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
    plain: Options = {**unoptimised, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0).lower().compile(plain)
    except jax.errors.JaxRuntimeError:  # jaxlib 0.12 always uses the fusion emitters
        return unoptimised
    return plain


def start(
    platform: str,
    devices: int,
    *,
    pin: bool = True,
    cores: int | None = None,
    concurrent_collectives: int = CONCURRENT_COLLECTIVES,
    place: Mapping[str, Any] | None = None,
) -> list[jax.Device]:
    """Starts `devices` devices of `platform` (cpu, gpu, tpu) and returns them. The rest is for `start_fake_cpu`.

    place: the position of this process in a world, as for `world.join`; its processes have equal shares of the devices.

    Raises:
      UserError: the platform is absent or has fewer devices, or the port of a world is taken.
    """
    share = devices // place["processes"] if place else devices
    if platform == "cpu":
        of_cpus: dict[str, Any] = {"pin": pin, "cores": cores, "concurrent_collectives": concurrent_collectives}
        here = place.get("devices_here", devices) if place else devices
        start_fake_cpu(share, together=here, **of_cpus)
    if place:
        world.join(place)
    if platform != "cpu":
        require(platform)
    # Counted as in the manifest, unless there is a world: devices of other hosts cannot be used from here.
    available = jax.local_devices()
    if place:  # so that fewer devices are those of the first processes; a TPU has another order
        available = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if place and platform == "cpu":
        world.read_sockets_last()
    settings.settle()
    if len(available) < devices:
        raise UserError(f"{devices} {platform} devices were requested, but this machine has {len(available)}.")
    return available[:devices]


def require(platform: str) -> None:
    """Makes JAX use `platform` or fail. The CPU stays available for explicit use, but is never a fallback."""
    name = _gpu_platform() if platform == "gpu" else platform
    # The second platform is only for explicit use: JAX initializes both, and the first is the default.
    jax.config.update("jax_platforms", ",".join(dict.fromkeys((name, "cpu"))))
    try:
        default = jax.devices()[0].platform
    except (RuntimeError, AssertionError):  # AssertionError: for a missing plug-in, in some releases
        default = ""
    if default != platform:  # some releases silently use the next platform of the list
        raise UserError(
            f"a {platform.upper()} was requested (--config.mesh.platform={platform}), but JAX finds none: install the "
            f"driver and JAX's plug-in ({with_extra('tpu' if platform == 'tpu' else 'cuda13')}), or use "
            "--config.mesh.platform=cpu."
        )


def _gpu_platform() -> str:
    """JAX's name of the GPU platform, which depends on the vendor: rocm if its plug-in is installed, otherwise cuda."""
    from importlib.util import find_spec

    return "rocm" if find_spec("jax_rocm7_plugin") or find_spec("jax_rocm60_plugin") else "cuda"

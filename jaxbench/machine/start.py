# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Starts the devices of this process, before JAX's backend exists: fake CPU devices pinned to cores, or real ones.

The devices may be those of a process group, or absent ones of a target, for which programs are only compiled.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import socket
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax

from jaxbench.catalog.jax_settings import REFUSED, SETTINGS, refusal
from jaxbench.catalog.targets import Target
from jaxbench.command_form import with_extra
from jaxbench.errors import UserError
from jaxbench.machine.cores import pin_to_cores
from jaxbench.machine.position import Position

Options = dict[str, Any]  # XLA's compiler options

LARGE = 1.5e10  # FLOPs of one run: without optimization it takes seconds on one core
# LLVM's first level, in one module: deep models take seconds longer to compile, and half to two thirds of the run time.
_A_LITTLE: Options = {"xla_backend_optimization_level": 1, "xla_cpu_parallel_codegen_split_count": 1}
# By default XLA compiles and times variants of each product on the GPU, which pays only for a program that runs often.
_UNTUNED: Options = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}

# The system calls epoll_wait, epoll_pwait and epoll_pwait2, and epoll_pwait of arm64.
EPOLL = {"232", "281", "441", "22"}
# When compiling for a TPU, do not query a cloud's metadata server, and take no lock that another process may hold.
_TPU = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
# Autotuning would need the GPU.
_GPU = ("--xla_gpu_autotune_level=0", "--xla_gpu_enable_triton_gemm=false")
_NEEDS = {"tpu": (("libtpu",), "target-tpu"), "gpu": (("jax_plugins.xla_cuda12", "nvidia.cuda_nvcc"), "target-cuda")}


def only_cpu_here() -> None:
    """Hides accelerators from the parent process. Only workers start them: their memory must not be taken twice."""
    jax.config.update("jax_platforms", "cpu")


def start_fake_cpu(devices: int, *, pin: bool = True, cores: int | None = None, together: int = 0) -> None:
    """Gives this process `devices` CPU devices with one core each, as far as there are cores.

    cores: instead, one device that may use this number of cores, as a library's kernel does.
    together: the number of devices of all processes of a process group. They share their cores, so that the threads
    that read from sockets find an idle core.

    Raises RuntimeError when the backend has already started.
    """
    # Oversubscribed devices reach a collective at very different times; by default XLA aborts the process after 40 s.
    flags = [f"--xla_cpu_collective_call_{what}_timeout_seconds=600" for what in ("warn_stuck", "terminate")]
    if cores is not None:
        pin_to_cores(cores)
    elif pin:
        # By default XLA lets one CPU device use every core. Two devices would then show no gain over one, and more
        # devices than cores a false gain.
        pin_to_cores(max(devices, together))
        flags.append("--xla_cpu_multi_thread_eigen=false")  # one device must not spread over the cores of others
    # NPROC is left alone: XLA's thread pool then has one thread for each core that this process may use. A larger pool
    # splits small programs over threads that take each other's cores. It is not needed, because a program cannot hang
    # while the host runs at most a few steps ahead (`core.clock.RUN_AHEAD`).
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)


def traced_for() -> str:
    """The platform for which a function is being traced: that of the current mesh or, without one, of this process.

    They differ when a program is compiled for absent hardware.
    """
    mesh = jax.sharding.get_abstract_mesh()
    known = None if mesh.empty else getattr(mesh.abstract_device, "platform", None)  # jax 0.10.0 has none
    return known or jax.default_backend()


def run_once_options(flops: float = 0.0) -> Options:
    """Compiler options for programs that run a few times and are never timed: initialization, the one-device reference.

    flops: of one run.
    """
    if jax.default_backend() == "gpu":
        return dict(_UNTUNED)
    if jax.default_backend() != "cpu":
        return {}
    # On the CPU, LLVM spends most of a short run optimizing. Without optimization these programs compile in a quarter
    # of the time. From LARGE on, the runs take longer than a little optimization.
    return dict(_A_LITTLE) if flops >= LARGE else dict(_unoptimised())


@functools.cache
def _unoptimised() -> Options:
    """Options without LLVM's optimizations, in one module, and without fusion emitters if jaxlib has that option."""
    unoptimised: Options = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
    plain: Options = {**unoptimised, "xla_cpu_use_fusion_emitters": False}
    return plain if jax.__version_info__ < (0, 11) else unoptimised  # newer ones always use the fusion emitters


def start(
    platform: str, devices: int, *, pin: bool = True, cores: int | None = None, position: Position | None = None
) -> list[jax.Device]:
    """Starts `devices` devices of `platform` (cpu, gpu, tpu) and returns them. The rest is for `start_fake_cpu`.

    position: the position of this process in a process group. Its processes have equal shares of the devices.

    Raises:
      UserError: the platform is absent or has fewer devices, or the port of a process group is taken.
    """
    share = devices // position.processes if position else devices
    if platform == "cpu":
        together = position.devices_here if position and position.devices_here else devices
        start_fake_cpu(share, pin=pin, cores=cores, together=together)
    if position:
        join(position)
    if platform != "cpu":
        require(platform)
    # Counted as in the manifest, unless there is a process group: devices of other hosts cannot be used from here.
    available = jax.local_devices()
    if position:  # so that fewer devices are those of the first processes; a TPU has another order
        available = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if position and platform == "cpu":
        read_sockets_last()
    reset_jax_settings()
    if len(available) < devices:
        raise UserError(f"{devices} {platform} devices were requested, but this machine has {len(available)}.")
    return available[:devices]


def require(platform: str) -> None:
    """Makes JAX use `platform` or fail. The CPU stays available for explicit use, but is never a fallback."""
    # JAX names the GPU platform after its vendor: the plug-in that is installed tells which.
    rocm = find_spec("jax_rocm7_plugin") or find_spec("jax_rocm60_plugin")
    name = ("rocm" if rocm else "cuda") if platform == "gpu" else platform
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


def join(position: Position) -> None:
    """Joins this process to a process group, before JAX has a backend. Raises UserError if the port is taken."""
    if position.process == 0:
        require_free(position.address)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # MPI would need its own launcher
    jax.distributed.initialize(
        coordinator_address=position.address,
        num_processes=position.processes,
        process_id=position.process,
        local_device_ids=None if position.device is None else [position.device],
        cluster_detection_method="deactivate",
        coordinator_bind_address=position.address,  # by default JAX listens on all interfaces
    )


def require_free(address: str) -> None:
    """Raises UserError if another process uses the port, and for an address that this host does not have."""
    # JAX's service would share the port with the other process, and processes of another group would join this one.
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a run that has just ended does not take it
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise UserError(
                    f"process 0 must be reachable at {address}, which is no address of its host "
                    f"({socket.gethostname()}): give all processes one with --coordinator=host:port."
                ) from error
            raise UserError(
                f"the port {port} of {host}, where the processes of a group meet, is taken "
                f"({error.strerror}): choose another, or run again."
            ) from error


def free_address(host: str = "127.0.0.1") -> str:
    """A free "host:port". host: a name or an address of this host, by default the loopback."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"


def read_sockets_last(tasks: Path = Path("/proc/self/task")) -> int:
    """Gives the threads of this process that wait for sockets the lowest priority, once it has devices (Linux).

    Returns the number of threads found.
    """
    # From the moment when another process sends until this one receives, Gloo's thread polls for data without a pause.
    # It occupied the core of the receiving thread for a whole time slice: an all-reduce of 100 kB took 3.6 ms, and now
    # takes 0.7 ms. gRPC's threads, which have names of their own, are not changed.
    found = set()
    for _ in range(5):  # a thread that is not waiting now will be soon
        for task in tasks.iterdir() if tasks.exists() else ():
            with contextlib.suppress(OSError):
                mine = (task / "comm").read_text() == (tasks.parent / "comm").read_text()
                if mine and (task / "syscall").read_text().split()[0] in EPOLL:
                    os.setpriority(os.PRIO_PROCESS, int(task.name), 19)
                    found.add(task.name)
        time.sleep(0.01)
    return len(found)


changed_settings: dict[str, str] = {}  # by variable: settings that were reset here, or that the file changed
_before: dict[str, Any] = {}  # all values at the last check of this process


def reset_jax_settings() -> None:
    """Resets the settings that must be reset, and raises UserError for those that are refused.

    Called when devices start, and after an experiment's file has run, because it may change settings."""
    values: dict[str, Any] = jax.config.values
    changed = {name.upper(): str(value) for name, value in values.items() if value != _before.get(name, value)}
    changed_settings.update(changed)
    for name, setting in SETTINGS.items():
        value = values.get(name)
        if value in (None, setting.value):  # None: as if it were not set, or this JAX does not have it
            continue
        if setting.decision == REFUSED:
            raise refusal(f"{name}={value}", setting)
        changed_settings[name.upper()] = str(value)
        jax.config.update(name, setting.value)
    _before.update(jax.config.values)  # after the resets, which the next check must not take for changes of the file


def require_target(target: Target) -> None:
    """Raises UserError if the compiler for this target is missing. The message names the package to install."""
    modules, extra = _NEEDS[target.platform]
    if not all(map(_installed, modules)):
        raise UserError(
            f"--target={target.text} needs XLA's compiler for it, which is not installed: {with_extra(extra)}."
        )


def _installed(module: str) -> bool:
    """Whether a module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def target_environment(target: Target) -> dict[str, str]:
    """Environment variables that the process needs before it imports JAX."""
    if target.platform == "tpu":
        return {"JAX_PLATFORMS": "cpu", **_TPU}
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *_GPU]).strip()}


def target_devices(target: Target) -> list[Any]:
    """Devices that are absent: JAX's topology of a target, for which programs can be compiled but not run.

    Call in a separate process with `target_environment(target)`: a TPU's library and a GPU's plug-in change the rest of
    a process, and a failed internal check of a compiler kills it.
    """
    from jax.experimental import topologies

    platform, about = target.topology()
    return list(topologies.get_topology_desc(platform=platform, **about).devices)

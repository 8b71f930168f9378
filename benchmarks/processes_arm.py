# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One of two processes of the plain loop in `benchmarks.processes`: JAX, the model's loss and optax, and no barrier.

Cores, threads and XLA flags are those of the suite's processes, so that only the harness differs.
Run by the parent: python -m benchmarks.processes_arm MODEL BATCH ADDRESS PROCESS
"""

from __future__ import annotations

import os
import sys

import jax

from benchmarks.bare import BareLoop
from benchmarks.peers.arms import serve
from benchmarks.peers.suite_arm import configured
from jaxbench.machine.cores import pin_to_cores
from jaxbench.machine.start import read_sockets_last
from jaxbench.measure.arm import build_workload

PROCESSES = 2


def join(address: str, process: int) -> None:
    """Joins a group of two processes with one device each, as in the documentation of `jax.distributed`."""
    pin_to_cores(PROCESSES)
    os.environ["NPROC"] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, PROCESSES, process)
    jax.devices()
    read_sockets_last()  # a choice for the machine, not for the loop


def main() -> None:
    name, batch_size, address, process = sys.argv[1:]
    join(address, int(process))
    workload = build_workload(configured(name), name)
    with jax.default_device(jax.local_devices()[0]):
        drawn = jax.device_get(workload.synthetic(jax.random.PRNGKey(1), int(batch_size)))
    loop = BareLoop(workload, jax.devices(), drawn)

    def run(steps: int) -> float:
        loop.block(steps // 4 + 1)
        return loop.block(steps)

    serve(f"jax {jax.__version__}, by hand", [], run)
    os._exit(0)  # skips JAX's shutdown, which waits for the other process


if __name__ == "__main__":
    main()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One of two processes of the plain loop in `benchmarks.processes`: JAX, the model's loss and optax, and no barrier.

Cores, threads and XLA flags are those of the suite's processes, so that only the harness differs.
Run by the parent: python -m benchmarks.processes_arm MODEL BATCH ADDRESS PROCESS
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

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
    mesh = jax.make_mesh((PROCESSES,), ("data",))
    everywhere, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))

    with jax.default_device(jax.local_devices()[0]):
        drawn = jax.device_get(workload.synthetic(jax.random.PRNGKey(1), int(batch_size)))
    batch = jax.tree.map(lambda whole: jax.make_array_from_callback(whole.shape, split, whole.__getitem__), drawn)

    @partial(jax.jit, out_shardings=everywhere)
    def init(key: jax.Array) -> Any:
        params, model_state = workload.init(key)
        return params, model_state, workload.optimizer.init(params)

    @partial(jax.jit, donate_argnums=0, out_shardings=everywhere)
    def step(carry: Any, batch: Any) -> Any:
        params, model_state, opt_state = carry
        (loss, (model_state, metrics)), gradient = jax.value_and_grad(workload.mean_loss, has_aux=True)(
            params, model_state, batch, jax.random.PRNGKey(0)
        )
        updates, opt_state = workload.optimizer.update(gradient, opt_state, params)
        return (optax.apply_updates(params, updates), model_state, opt_state), (loss, metrics)

    def run(steps: int) -> float:
        carry = init(np.zeros(2, np.uint32))
        for _ in range(steps // 4 + 1):
            carry, loss = step(carry, batch)
        jax.block_until_ready((carry, loss))
        start_s = time.perf_counter()
        for _ in range(steps):
            carry, loss = step(carry, batch)
        jax.block_until_ready((carry, loss))
        return time.perf_counter() - start_s

    serve(f"jax {jax.__version__}, by hand", [], run)
    os._exit(0)  # skips JAX's shutdown, which waits for the other process


if __name__ == "__main__":
    main()

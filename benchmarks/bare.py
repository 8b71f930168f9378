# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training loop as a person writes it: JAX, a model's loss and optax. No Program, no Timer, no workers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.core.workload import TrainWorkload


class BareLoop:
    """Trains on one batch, split over the devices as in JAX's documentation; on one device without any sharding.

    drawn: the global batch, as arrays of the host or of one device.
    ahead: the most steps in flight; None: no limit.
    """

    def __init__(
        self, workload: TrainWorkload, devices: Sequence[jax.Device], drawn: Any, *, ahead: int | None = None
    ):  # fmt: skip
        shardings, self._ahead = {}, ahead
        self._batch = drawn
        if len(devices) > 1:
            mesh = jax.make_mesh((len(devices),), ("data",), devices=devices)
            everywhere, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
            shardings = {"out_shardings": everywhere}
            host = jax.device_get(drawn)
            self._batch = jax.tree.map(lambda x: jax.make_array_from_callback(x.shape, split, x.__getitem__), host)

        @partial(jax.jit, **shardings)
        def init(key: jax.Array) -> Any:
            params, model_state = workload.init(key)
            return params, model_state, workload.optimizer.init(params)

        @partial(jax.jit, donate_argnums=0, **shardings)
        def step(carry: Any, batch: Any) -> Any:
            params, model_state, opt_state = carry
            (loss, (model_state, metrics)), gradient = jax.value_and_grad(workload.mean_loss, has_aux=True)(
                params, model_state, batch, jax.random.PRNGKey(0)
            )
            updates, opt_state = workload.optimizer.update(gradient, opt_state, params)
            return (optax.apply_updates(params, updates), model_state, opt_state), (loss, metrics)

        self._step = step
        self._carry = init(np.zeros(2, np.uint32))  # a key

    def block(self, steps: int) -> float:
        """Seconds of `steps` further steps."""
        in_flight: deque[Any] = deque()
        start_s = time.perf_counter()
        for _ in range(steps):
            self._carry, loss = self._step(self._carry, self._batch)
            if self._ahead is not None:
                in_flight.append(loss)
                if len(in_flight) > self._ahead:
                    jax.block_until_ready(in_flight.popleft())
        jax.block_until_ready((self._carry, loss))
        return time.perf_counter() - start_s

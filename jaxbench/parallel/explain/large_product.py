# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A large matrix product on every device: the peak that the machine reaches, measured in the same rounds as a step."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import AXIS
from jaxbench.parallel.program import Program, TrainState, jit_once

# Rows of a square matrix: large enough that the product is limited by arithmetic, and takes about as long as a step.
SIZE = {"cpu": 1024}
LARGE = 8192  # on an accelerator


def size(platform: str) -> int:
    return SIZE.get(platform, LARGE)


def flops(platform: str, devices: int) -> float:
    """FLOPs of one step on all devices: 2 N^3 for each product."""
    return 2.0 * size(platform) ** 3 * devices


def build(devices: list[jax.Device], dtype: Any = jnp.float32, precision: str = "") -> Program:
    """The Program of a step that multiplies two matrices of `dtype` on each device, and keeps the product.

    Each step multiplies the same two matrices: a product of products would overflow in a long run. The state is
    donated, so each step waits for the previous one.

    precision: of products, as `jax.default_matmul_precision` names it; "": the platform's default.
    """
    mesh, rows = data_mesh(devices, AxisType.Auto), size(devices[0].platform)
    each, whole = NamedSharding(mesh, PartitionSpec(AXIS)), NamedSharding(mesh, PartitionSpec())
    lies = TrainState(whole, {"x": each, "w": each, "product": each}, (), (), whole)  # type: ignore[arg-type]

    def init(key: jax.Array) -> TrainState:
        # Random values: with zeros a GPU takes less power, and so runs faster.
        shape = len(devices), rows, rows
        drawn = {name: jax.random.normal(jax.random.fold_in(key, i), shape) for i, name in enumerate(("x", "w"))}
        params = {"x": drawn["x"].astype(dtype), "w": (drawn["w"] / rows**0.5).astype(dtype)}
        params["product"] = jnp.zeros(shape, dtype)
        return TrainState(jnp.zeros((), jnp.int32), params, (), (), key)

    def on_device(x: jax.Array, w: jax.Array) -> jax.Array:
        with jax.default_matmul_precision(precision) if precision else contextlib.nullcontext():
            return (x[0] @ w[0])[None]

    spread = PartitionSpec(AXIS)
    product = jax.shard_map(on_device, mesh=mesh, in_specs=(spread, spread), out_specs=spread, check_vma=False)

    def step(state: TrainState, batch: Any) -> tuple[TrainState, Any]:
        made = product(state.params["x"], state.params["w"])
        return dataclasses.replace(state, params={**state.params, "product": made}), {}

    return Program(
        mesh=mesh,
        init=jit_once(init, out_shardings=lies),
        step=jax.jit(step, donate_argnums=0, out_shardings=(lies, whole)),
        state_sharding=lies,
        batch_sharding=whole,
        put=lambda batch: {},
        export=lambda state: state,
        load=lambda state: state,
        expected=lambda _: {},
        sums=0,
    )

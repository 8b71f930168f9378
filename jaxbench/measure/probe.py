# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How fast a machine's cores are at a moment: the time of a fixed product on each of them, all at once.

Before a block it takes a millisecond or two. Many hypervisors do not report what they take from a machine, and this
shows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import jax
import numpy as np

SIDE = 224  # small enough for a core's own cache


class Probe:
    """Three products of a matrix on each of some CPU devices."""

    def __init__(self, devices: Sequence[jax.Device]):
        """Compiles and runs it once."""
        matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32)
        self._products = [_product(device) for device in devices]
        self._held = [jax.device_put(matrix, device) for device in devices]
        self()

    def __call__(self) -> float:
        """Seconds until all are done."""
        start = time.perf_counter()
        jax.block_until_ready([call(x) for call, x in zip(self._products, self._held, strict=True)])
        return time.perf_counter() - start


def _product(device: jax.Device) -> Callable[[jax.Array], jax.Array]:
    """Compiled for one device, whatever mesh is in use when it is called."""
    aval = jax.ShapeDtypeStruct((SIDE, SIDE), np.float32, sharding=jax.sharding.SingleDeviceSharding(device))
    with jax.set_mesh(jax.sharding.Mesh(np.array([device]), ("one",))):
        return jax.jit(lambda x: x @ x @ x @ x).lower(aval).compile()

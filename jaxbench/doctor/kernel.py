# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The reference kernel: a square float32 matrix product, timed call by call.

Runs as a child: python -m jaxbench.doctor.kernel PLATFORM SECONDS. It answers with one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

CALL_S = 0.010  # intended length of a call: long against its launch, short against disturbances
MIN_CALL_S, WARM_UP_S = 0.004, 0.5
SMALLEST, LARGEST, STEP = 256, 16384, 64  # rows


def size_for(seconds_of: Callable[[int], float]) -> int:
    """The rows of matrices whose product takes about CALL_S: by doubling, then by the cube root, as n rows cost n ** 3.
    seconds_of: rows -> the seconds of a product."""
    rows = SMALLEST
    while (took := seconds_of(rows)) < MIN_CALL_S and rows < LARGEST:
        rows *= 2
    fitted = rows * (CALL_S / took) ** (1 / 3)
    return int(min(LARGEST, max(SMALLEST, STEP * round(fitted / STEP))))


def run(platform: str, seconds: float) -> dict[str, Any]:
    """Times products on one device of `platform` for `seconds`.

    Returns rows, device_kind, and for each call its begin (after the first one's) and its duration, in seconds.
    """
    import jax
    import jax.numpy as jnp

    from jaxbench.machine.start import start as start_devices

    device = start_devices(platform, 1)[0]
    multiply = jax.jit(lambda a, b: a @ b)

    def call(a: jax.Array) -> float:
        start = time.perf_counter()
        jax.block_until_ready(multiply(a, a))
        return time.perf_counter() - start

    def seconds_of(rows: int) -> float:
        a = jnp.ones((rows, rows), jnp.float32)
        call(a)  # compiles
        return min(call(a) for _ in range(3))

    rows = size_for(seconds_of)
    a = jax.random.normal(jax.random.key(0), (rows, rows), jnp.float32)
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_UP_S:
        call(a)
    began, took, start = [], [], time.perf_counter()
    while (now := time.perf_counter() - start) < seconds:
        began.append(now)
        took.append(call(a))
    return {"rows": rows, "device_kind": device.device_kind, "began_s": began, "took_s": took}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], float(sys.argv[2]))) + "\n")

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Alternatives to XLA's gradient of a convolution's kernel on one CPU core: is one of them faster?

  taps:    one product per position of the kernel, with the shifted image
  rows:    one product per row of the kernel, with its positions concatenated
  im2col:  one product, with all positions concatenated

Prints XLA's time, and XLA's time over that of each alternative (above 1: the alternative is faster). These are medians
over rounds in which all alternate, with intervals by order statistics. All must give the same gradient.

Run: python -m benchmarks.kernel_gradients [--rounds=15]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from jaxbench.machine.start import start
from jaxbench.processes.messages import KEEP_MEMORY

# (examples, side, channels in and out, side of the kernel): of `resnet18` and `cnn` as `benchmarks.peers` runs them
LAYERS = ((32, 32, 64, 64, 3), (32, 16, 128, 128, 3), (32, 8, 256, 256, 3), (128, 28, 1, 16, 5), (128, 14, 16, 32, 5))
TOLERANCE = 1e-4


def own(x_BHWC: jax.Array, d_BHWO: jax.Array, side: int) -> jax.Array:
    def forward(kernel: jax.Array) -> jax.Array:
        names = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x_BHWC, kernel, (1, 1), "SAME", dimension_numbers=names)

    kernel = jnp.zeros((side, side, x_BHWC.shape[-1], d_BHWO.shape[-1]))
    return jax.linear_transpose(forward, kernel)(d_BHWO)[0]


def by_product(together: int, x_BHWC: jax.Array, d_BHWO: jax.Array, side: int) -> jax.Array:
    """together: positions of the kernel in one product."""
    batch, height, width, channels = x_BHWC.shape
    half, outputs = side // 2, d_BHWO.shape[-1]
    padded = jnp.pad(x_BHWC, ((0, 0), (half, half), (half, half), (0, 0)))
    starts = [(0, row, column, 0) for row in range(side) for column in range(side)]
    shifted = [jax.lax.dynamic_slice(padded, place, (batch, height, width, channels)) for place in starts]
    found = []
    for first in range(0, len(shifted), together):
        rows = jnp.concatenate(shifted[first : first + together], -1).reshape(-1, together * channels)
        found.append(rows.T @ d_BHWO.reshape(-1, outputs))
    return jnp.concatenate(found).reshape(side, side, channels, outputs)


def ways(side: int) -> dict[str, Any]:
    def jitted(together: int) -> Any:
        return jax.jit(lambda x, d: by_product(together, x, d, side))

    return {
        "XLA": jax.jit(lambda x, d: own(x, d, side)),
        **{"taps": jitted(1), "rows": jitted(side), "im2col": jitted(side * side)},
    }


def seconds(call: Any, *given: jax.Array) -> float:
    begun = time.perf_counter()
    jax.block_until_ready(call(*given))
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    if not KEEP_MEMORY.items() <= os.environ.items():  # as in a run; it must be set before a process starts
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **KEEP_MEMORY})
    start("cpu", 1)
    table = Table("layer", "XLA, ms", "taps", "rows", "im2col", title=f"one core, {rounds} rounds")
    for batch, size, inputs, outputs, side in LAYERS:
        keys = jax.random.split(jax.random.PRNGKey(0))
        x, d = (jax.random.normal(k, (batch, size, size, c)) for k, c in zip(keys, (inputs, outputs), strict=True))
        calls = ways(side)
        made = {name: np.asarray(call(x, d)) for name, call in calls.items()}
        for name, found in made.items():
            if not np.allclose(found, made["XLA"], atol=TOLERANCE * np.abs(made["XLA"]).max()):
                raise SystemExit(f"the way '{name}' gives another gradient")
        times = {name: np.array([]) for name in calls}
        for _ in range(rounds):
            times = {name: np.append(times[name], seconds(call, x, d)) for name, call in calls.items()}
        rank = int(stats.binom.ppf(0.025, rounds, 0.5))
        cells = [f"{1e3 * np.median(times['XLA']):.1f}"]
        for name in list(calls)[1:]:
            ratios = np.sort(times["XLA"] / times[name])
            cells.append(f"{np.median(ratios):.2f} [{ratios[max(rank - 1, 0)]:.2f}, {ratios[min(-rank, -1)]:.2f}]")
        table.add_row(f"{batch} x {size} x {size} x {inputs} to {outputs}, {side} x {side}", *cells)
    Console(width=None if sys.stdout.isatty() else 120, markup=False, highlight=False).print(table)


if __name__ == "__main__":
    main()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Overhead of the suite: its step time over that of a hand-written jit loop, interleaved in one run.

Both arms train the same model on one device, in this process, with the same synthetic batch. Goal: the median ratio is
at most 1.01. `benchmarks.plain_jax` compares processes, on several devices too.
Run: python -m benchmarks.overhead [--pairs=120]
"""

from __future__ import annotations

import argparse

import jax
import numpy as np
from rich.console import Console

from benchmarks.bare import BareLoop
from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.core.clock import Timer
from jaxbench.machine.start import start
from jaxbench.measure.arm import build_workload
from jaxbench.measure.compile_report import compile_step

BLOCK_S = 0.1
MODELS = "cnn", "mlp"  # short steps, so that an overhead is visible


def suite_arm(workload, batch):
    """() -> seconds per step, measured as in `jaxbench run`."""
    program = parallel.build("jit_auto", workload, jax.devices()[:1])
    step = compile_step(workload, program, len(next(iter(batch.values())))).call
    timer = Timer(blocks=1)
    key = jax.random.PRNGKey(0)
    with jax.set_mesh(program.mesh):
        steps, _ = timer.steps_per_block(step, program.init(key), program.put(batch), BLOCK_S)

    def measure():
        with jax.set_mesh(program.mesh):
            state, placed = program.init(key), program.put(batch)
            measured = timer.round(step, state, placed, steps)
        return measured.block_s[0] / steps

    return measure, steps


def bare_arm(workload, batch, steps):
    """() -> seconds per step of a plain loop."""
    loop = BareLoop(workload, jax.devices()[:1], batch)

    def measure():
        loop.block(2 * steps)
        return loop.block(steps) / steps

    return measure


def measure(name, pairs, rng):
    """The ratios suite / bare of `pairs` interleaved pairs, (pairs,), in random order within a pair."""
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("auto"))
    workload = build_workload(config, name)
    batch = jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), config.batch)
    suite, steps = suite_arm(workload, batch)
    arms = {"suite": suite, "bare": bare_arm(workload, batch, steps)}
    for arm in arms.values():
        arm()
    ratios = []
    for _ in range(pairs):
        seconds = {arm: arms[arm]() for arm in rng.permutation(list(arms))}
        ratios.append(seconds["suite"] / seconds["bare"])
    return np.array(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=120)
    pairs = parser.parse_args().pairs
    start("cpu", 1)
    rng = np.random.default_rng(0)
    console = Console()
    for name in MODELS:
        ratios = measure(name, pairs, rng)
        medians = np.median(rng.choice(ratios, (2000, pairs)), axis=1)
        low, high = np.percentile(medians, [2.5, 97.5])
        console.print(
            f"overhead {name}: suite / bare loop = {np.median(ratios):.4f} [{low:.4f}, {high:.4f}], {pairs} pairs"
        )


if __name__ == "__main__":
    main()

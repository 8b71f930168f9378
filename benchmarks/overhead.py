# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Overhead of the suite: its step time over that of a hand-written jit loop, interleaved in one run.

Both arms train the same model on one device with the same synthetic batch. The bare arm uses only plain JAX, the
model's loss and optax, as in a notebook: no Program, no Timer, no mesh. Goal: the median ratio is at most 1.01.
Run: python benchmarks/overhead.py [--pairs=120]
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np
import optax
from rich.console import Console

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
    step = compile_step(workload, program, len(batch["label"])).call
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

    @jax.jit
    def init(key):
        params, model_state = workload.init(key)
        return params, model_state, workload.optimizer.init(params)

    def step(carry, batch):
        params, model_state, opt_state = carry
        key = jax.random.PRNGKey(0)
        (loss, (model_state, metrics)), grads = jax.value_and_grad(workload.mean_loss, has_aux=True)(
            params, model_state, batch, key
        )
        updates, opt_state = workload.optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), model_state, opt_state), (loss, metrics)

    step = jax.jit(step, donate_argnums=0)

    def measure():
        carry = init(jax.random.PRNGKey(0))
        for _ in range(2 * steps):
            carry, loss = step(carry, batch)
        jax.block_until_ready((carry, loss))
        start_s = time.perf_counter()
        for _ in range(steps):
            carry, loss = step(carry, batch)
        jax.block_until_ready((carry, loss))
        return (time.perf_counter() - start_s) / steps

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

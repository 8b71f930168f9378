# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Overhead of the suite: its step time over that of a hand-written jit loop, interleaved in one run.

Both arms train the same model on one device, in this process, with the same synthetic batch. The suite reads clocks,
power and energy before each block, after it, and every EVERY_S inside it, which is 40 times as often as in a run. A
machine without a readable counter gets constant answers in the place of NVML's: then the reading itself takes no time,
and all else is as on a GPU. Goal: the median ratio is at most 1.01. `benchmarks.plain_jax` compares processes, on
several devices too.
Run: python -m benchmarks.overhead [--pairs=120] [--sampling=off]
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
from jaxbench.machine import energy
from jaxbench.machine.nvml import Nvml
from jaxbench.machine.power import Moment, PowerMeter, meter_of
from jaxbench.machine.start import start
from jaxbench.measure.arm import build_workload
from jaxbench.measure.compile_report import compile_step

BLOCK_S = 0.1
EVERY_S = 0.025  # between two readings: several are inside a block
ANSWERS = {  # of NVML, in MHz, milliwatts, degrees Celsius and millijoules
    "ClockInfo": 1980,
    "PowerUsage": 650_000,
    "Temperature": 61,
    "CurrentClocksEventReasons": 0,
    "TotalEnergyConsumption": 5_000_000,
    "DefaultApplicationsClock": 1980,
}
MODELS = "cnn", "mlp"  # short steps, so that an overhead is visible


class ConstantNvml:
    """The module `pynvml` of a machine with one GPU that always answers the same."""

    class NVMLError(Exception):
        pass

    nvmlInit = nvmlShutdown = staticmethod(lambda: None)  # noqa: N815 - the names are NVML's
    nvmlDeviceGetCount = staticmethod(lambda: 1)  # noqa: N815
    nvmlDeviceGetHandleByIndex = staticmethod(lambda index: index)  # noqa: N815

    def __getattr__(self, function):
        return lambda *given: ANSWERS[function.removeprefix("nvmlDeviceGet")]


def meter():
    """(a meter of this machine, or of constant answers; what it reads, for the table)."""
    if energy.packages():
        return PowerMeter(lambda: Moment({}, energy.packages()), every_s=EVERY_S), "RAPL"
    return meter_of(Nvml(ConstantNvml()), [0], every_s=EVERY_S), "constant answers, because no counter can be read here"


def suite_arm(workload, batch, power):
    """() -> seconds per step, measured as in `jaxbench run`. power: the meter; None: sampling is off."""
    program = parallel.build("jit_auto", workload, jax.devices()[:1])
    step = compile_step(workload, program, len(next(iter(batch.values())))).call
    timer = Timer(blocks=1, power=power)
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


def measure(name, pairs, rng, power):
    """The ratios suite / bare of `pairs` interleaved pairs, (pairs,), in random order within a pair. power: as in
    `suite_arm`."""
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("auto"))
    workload = build_workload(config, name)
    batch = jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), config.batch)
    suite, steps = suite_arm(workload, batch, power)
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
    parser.add_argument("--sampling", choices=("on", "off"), default="on")
    flags = parser.parse_args()
    pairs = flags.pairs
    start("cpu", 1)
    rng = np.random.default_rng(0)
    console = Console(width=120)
    power, source = meter() if flags.sampling == "on" else (None, "")
    console.print(f"sampling {flags.sampling}" + (f": {source}, every {1e3 * EVERY_S:g} ms" if source else ""))
    for name in MODELS:
        ratios = measure(name, pairs, rng, power)
        medians = np.median(rng.choice(ratios, (2000, pairs)), axis=1)
        low, high = np.percentile(medians, [2.5, 97.5])
        console.print(
            f"overhead {name}: suite / bare loop = {np.median(ratios):.4f} [{low:.4f}, {high:.4f}], {pairs} pairs"
        )


if __name__ == "__main__":
    main()

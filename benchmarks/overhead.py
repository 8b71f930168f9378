# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Overhead of the suite: its step time over that of a hand-written jit loop, interleaved in one run.

All arms train the same model on one device, in this process, with the same synthetic batch: the plain loop, the suite,
and the suite with sampling. Sampling reads clocks, power and energy before each block, after it, and every --every_s
inside it; the default is a run's own rate. A machine without a readable counter gets constant answers in the place of
NVML's: then the reading itself takes no time, and all else is as on a GPU. The second plain arm shows what the
benchmark finds where there is no difference. Goal: the median ratio is at most 1.01. `benchmarks.plain_jax` compares
processes, on several devices too.
Run: python -m benchmarks.overhead [--rounds=120] [--every_s=0.025]
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
from jaxbench.machine.power import EVERY_S, Moment, PowerMeter, meter_of
from jaxbench.machine.start import start
from jaxbench.measure.arm import build_workload
from jaxbench.measure.compile_report import compile_step

BLOCK_S = 0.1
ANSWERS = {  # of NVML, in MHz, milliwatts, degrees Celsius and millijoules
    "ClockInfo": 1980,
    "PowerUsage": 650_000,
    "Temperature": 61,
    "CurrentClocksEventReasons": 0,
    "TotalEnergyConsumption": 5_000_000,
    "DefaultApplicationsClock": 1980,
}
MODELS = "cnn", "mlp"  # short steps, so that an overhead is visible
PLAIN, AGAIN, SUITE, SAMPLED = "plain loop", "plain loop again", "suite", "suite with sampling"
COMPARED = (AGAIN, PLAIN), (SUITE, PLAIN), (SAMPLED, PLAIN), (SAMPLED, SUITE)


class ConstantNvml:
    """The module `pynvml` of a machine with one GPU that always answers the same."""

    class NVMLError(Exception):
        pass

    nvmlInit = nvmlShutdown = staticmethod(lambda: None)  # noqa: N815 - the names are NVML's
    nvmlDeviceGetCount = staticmethod(lambda: 1)  # noqa: N815
    nvmlDeviceGetHandleByIndex = staticmethod(lambda index: index)  # noqa: N815

    def __getattr__(self, function):
        return lambda *given: ANSWERS[function.removeprefix("nvmlDeviceGet")]


def meter(every_s):
    """(a meter of this machine, or of constant answers; what it reads, for the table). every_s: between readings."""
    if energy.packages():
        return PowerMeter(lambda: Moment({}, energy.packages()), every_s=every_s), "RAPL"
    return meter_of(Nvml(ConstantNvml()), [0], every_s=every_s), "constant answers, because no counter can be read here"


def suite_arms(workload, batch, power):
    """Two times () -> seconds per step, measured as in `jaxbench run`, without and with the meter `power`; and the
    steps of a block."""
    program = parallel.build("jit_auto", workload, jax.devices()[:1])
    step = compile_step(workload, program, len(next(iter(batch.values())))).call
    timers = Timer(blocks=1), Timer(blocks=1, power=power)
    key = jax.random.PRNGKey(0)
    with jax.set_mesh(program.mesh):
        steps, _ = timers[0].steps_per_block(step, program.init(key), program.put(batch), BLOCK_S)

    def measure(timer):
        with jax.set_mesh(program.mesh):
            state, placed = program.init(key), program.put(batch)
            measured = timer.round(step, state, placed, steps)
        return measured.block_s[0] / steps

    without, with_meter = timers
    return lambda: measure(without), lambda: measure(with_meter), steps


def bare_arm(workload, batch, steps):
    """() -> seconds per step of a plain loop."""
    loop = BareLoop(workload, jax.devices()[:1], batch)

    def measure():
        loop.block(2 * steps)
        return loop.block(steps) / steps

    return measure


def measure(name, rounds, rng, power):
    """The seconds per step of each arm, (rounds,), in random order within a round. power: a meter."""
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("auto"))
    workload = build_workload(config, name)
    batch = jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), config.batch)
    suite, sampled, steps = suite_arms(workload, batch, power)
    arms = {SUITE: suite, SAMPLED: sampled, PLAIN: bare_arm(workload, batch, steps)}
    arms[AGAIN] = bare_arm(workload, batch, steps)
    for arm in arms.values():
        arm()
    seconds = {arm: np.empty(rounds) for arm in arms}
    for number in range(rounds):
        for arm in rng.permutation(list(arms)):
            seconds[arm][number] = arms[arm]()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--every_s", type=float, default=EVERY_S)
    flags = parser.parse_args()
    start("cpu", 1)
    rng = np.random.default_rng(0)
    console = Console(width=120)
    power, source = meter(flags.every_s)
    console.print(f"sampling: {source}, every {flags.every_s:g} s; {flags.rounds} rounds")
    for name in MODELS:
        seconds = measure(name, flags.rounds, rng, power)
        for arm, base in COMPARED:
            ratios = seconds[arm] / seconds[base]
            medians = np.median(rng.choice(ratios, (2000, flags.rounds)), axis=1)
            low, high = np.percentile(medians, [2.5, 97.5])
            console.print(f"{name}: {arm} / {base} = {np.median(ratios):.4f} [{low:.4f}, {high:.4f}]")


if __name__ == "__main__":
    main()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The suite's kernels compared with NumPy, PyTorch and a hand-written loop, as ratios of interleaved times.

    matmul    float32, 2048 x 2048 x 2048: the suite's step against NumPy with out= and PyTorch, if that is installed
              (pip install "jaxbench[peers]"). Goal: at least 0.95 of the best.
    triad     a = b + s c, 2^24 float32 (64 MiB per array): against NumPy with out=, which needs two passes. Goal: at
              least 0.9 of NumPy's bandwidth.
    dispatch  the suite's time per call of a tiny program, against the plain loop x = f(x) over the same program. Goal:
              at most 1.1 of it.

Every round visits all arms of a comparison in random order. Each arm runs one warm-up block, in which the threads of
the previous arm go to sleep, and one timed block. A line gives the median ratio over rounds, its 95 % bootstrap
interval and the number of rounds.
Run: python -m benchmarks.kernel_peers [--rounds=60] [--only=matmul,triad,dispatch]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from jaxbench.machine.cores import available_cores, pin_to_cores

CORES = available_cores()
pin_to_cores(CORES)  # NumPy, PyTorch and XLA size their thread pools by the cores at import

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402

from benchmarks.peers.ratios import median_and_interval  # noqa: E402
from jaxbench.cases import runnable  # noqa: E402
from jaxbench.core.clock import Timer  # noqa: E402
from jaxbench.discovery import load_experiment  # noqa: E402
from jaxbench.machine.start import start  # noqa: E402
from jaxbench.workloads.cases import KernelWorkload  # noqa: E402
from jaxbench.workloads.kernels import elementwise, matmul  # noqa: E402

SIDE, ELEMENTS = 2048, 2**24
BLOCK_S = 0.1

Block = Callable[[int], float]  # calls -> seconds


@dataclass(frozen=True)
class Arm:
    """One implementation of the work. A block of `calls` calls lasts BLOCK_S."""

    name: str
    block: Block
    calls: int

    def per_call_s(self) -> float:
        """Seconds per call, in a block after a warm-up block."""
        self.block(self.calls)
        return self.block(self.calls) / self.calls


def arm(name: str, block: Block) -> Arm:
    """Doubles the number of calls until a block lasts BLOCK_S."""
    calls = 1
    while block(calls) < BLOCK_S and calls < 2**16:
        calls *= 2
    return Arm(name, block, calls)


def suite_arm(case: KernelWorkload) -> Arm:
    """The kernel as measured by `jaxbench run`: its step, in the timer's blocks."""
    ready = runnable.compile_kernel(case, jax.devices()[0])
    timer = Timer(fence=ready.fence)
    state, batch = ready.draw(0)

    def block(calls: int) -> float:
        nonlocal state
        seconds, state = timer.block(ready.step, state, batch, calls)
        return seconds

    suite = arm("suite", block)
    if ready.wrong is None or ready.wrong(state, 0):
        raise SystemExit(f"{case.key}: the result is wrong")
    return suite


def calls_arm(name: str, call: Callable[[], Any]) -> Arm:
    """A call that is complete when it returns."""

    def block(calls: int) -> float:
        start_s = time.perf_counter()
        for _ in range(calls):
            call()
        return time.perf_counter() - start_s

    return arm(name, block)


def loop_arm(name: str, step: Callable[[Any], Any], state: Any) -> Arm:
    """A hand-written loop: each call takes the result of the last one, with one fence at the end."""

    def block(calls: int) -> float:
        nonlocal state
        start_s = time.perf_counter()
        for _ in range(calls):
            state = step(state)
        jax.block_until_ready(state)
        return time.perf_counter() - start_s

    return arm(name, block)


def matmul_arms() -> list[Arm]:
    (case,) = matmul.cases(matmul.shape("square", SIDE), "float32", ("jit",))
    a, b = np.random.default_rng(0).standard_normal((2, SIDE, SIDE), np.float32)
    out = np.empty_like(a)
    arms = [suite_arm(case), calls_arm("NumPy", lambda: np.matmul(a, b, out=out))]
    if find_spec("torch"):
        import torch

        torch.set_num_threads(CORES)
        left, right, into = (torch.from_numpy(x.copy()) for x in (a, b, out))
        arms.append(calls_arm("PyTorch", lambda: torch.matmul(left, right, out=into)))
    return arms


def triad_arms() -> list[Arm]:
    suite, numpy = elementwise.stream_cases("triad", "float32", ELEMENTS, ("jit", "numpy"))
    assert numpy.prepare is not None
    c, b = np.random.default_rng(0).standard_normal((2, ELEMENTS), np.float32)
    return [suite_arm(suite), calls_arm("NumPy", numpy.prepare(c, b))]


def dispatch_arms() -> list[Arm]:
    (case,) = load_experiment("dispatch").cases("tiny", ("pipelined",))
    plain = jax.jit(lambda x: jnp.maximum(x, 0), donate_argnums=0)
    return [suite_arm(case), loop_arm("a plain loop", plain, jnp.ones(case.elements))]


def interleave(arms: list[Arm], rounds: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Seconds per call by arm, (rounds,) each, interleaved."""
    times: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for _ in range(rounds):
        for place in random.permutation(len(arms)):
            times[arms[place].name].append(arms[place].per_call_s())
    return {name: np.array(seconds) for name, seconds in times.items()}


# name: (arms, work of a call and its unit per second, quantity of the ratio, goal)
COMPARISONS = {
    "matmul": (matmul_arms, (2e-9 * SIDE**3, "GFLOP/s"), "speed", "goal: at least 0.95"),
    "triad": (triad_arms, (12e-9 * ELEMENTS, "GB/s"), "speed", "goal: at least 0.9"),
    "dispatch": (dispatch_arms, None, "time", "goal: at most 1.1 of the plain loop"),
}


def compare(name: str, rounds: int, console: Console) -> None:
    """Measures one comparison and prints a line for each peer."""
    make, work, quantity, goal = COMPARISONS[name]
    times = interleave(make(), rounds, np.random.default_rng(0))
    for arm_name, seconds in times.items():
        median = float(np.median(seconds))
        text = f"{work[0] / median:.1f} {work[1]}" if work else f"{1e6 * median:.2f} us per call"
        console.print(f"{name}: {arm_name}: {text}")
    suite = times.pop("suite")
    for peer, seconds in times.items():
        ratio = seconds / suite if quantity == "speed" else suite / seconds
        interval = median_and_interval(ratio, digits=3)
        console.print(f"{name}: {quantity} of the suite / {quantity} of {peer} = {interval}, {rounds} rounds ({goal})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default=",".join(COMPARISONS))
    args = parser.parse_args()
    names = args.only.split(",")
    if unknown := set(names) - set(COMPARISONS):
        sys.exit(f"--only={args.only}: {unknown.pop()} is unknown, choose from {', '.join(COMPARISONS)}.")
    start("cpu", 1, cores=CORES)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"{CORES} cores, jax {jax.__version__}, NumPy {np.__version__}, {args.rounds} rounds")
    if not find_spec("torch"):
        console.print('PyTorch is not installed, so it is left out: pip install "jaxbench[peers]"')
    for name in names:
        compare(name, args.rounds, console)


if __name__ == "__main__":
    main()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The suite's kernels beside what else there is on the same cores, as ratios of times interleaved in one run.

    matmul    float32, 2048 x 2048 x 2048: the suite's step against NumPy with out= and PyTorch, if that is installed
              (pip install "jaxbench[peers]"). Goal: at least 0.95 of the best.
    triad     a = b + s c, 2^24 float32 (64 MiB an array): against NumPy with out=, which needs two passes. Goal: at
              least 0.9 of NumPy's bandwidth.
    dispatch  the suite's time per call of a tiny program, against the barest loop by hand over the same one, x = f(x).
              Goal: at most 1.1 of it.

Every round visits all arms of a comparison in random order. Each runs one block that is not counted, in which the
threads of the arm before go to sleep, and one that is. A line gives the median ratio over rounds, its 95 % bootstrap
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
pin_to_cores(CORES)  # before NumPy, PyTorch and XLA count the cores to make their threads

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402

from jaxbench.machine.start import start  # noqa: E402
from jaxbench.measure import runnable  # noqa: E402
from jaxbench.measure.clock import Timer  # noqa: E402
from jaxbench.workloads.cases import KernelWorkload  # noqa: E402
from jaxbench.workloads.kernels import dispatch, matmul, stream  # noqa: E402

SIDE, ELEMENTS = 2048, 2**24
BLOCK_S = 0.1
DRAWS = 2000

Block = Callable[[int], float]  # how many calls -> seconds


@dataclass(frozen=True)
class Arm:
    """One way of doing the same work. `calls` of a block last BLOCK_S."""

    name: str
    block: Block
    calls: int

    def per_call_s(self) -> float:
        """Seconds per call, in a block after one that is not counted."""
        self.block(self.calls)
        return self.block(self.calls) / self.calls


def arm(name: str, block: Block) -> Arm:
    """Finds how many calls last BLOCK_S, by doubling."""
    calls = 1
    while block(calls) < BLOCK_S and calls < 2**16:
        calls *= 2
    return Arm(name, block, calls)


def suite_arm(case: KernelWorkload) -> Arm:
    """The kernel as `jaxbench run` measures it: its step, in the timer's blocks."""
    ready = runnable.compile_kernel(case, jax.devices()[0])
    timer = Timer(fence=ready.fence)
    state, batch = ready.draw(0)

    def block(calls: int) -> float:
        nonlocal state
        seconds, state = timer.block(ready.step, state, batch, calls)
        return seconds

    found = arm("suite", block)
    if ready.wrong is None or ready.wrong(state, 0):
        raise SystemExit(f"{case.key}: the result is not right")
    return found


def calls_arm(name: str, call: Callable[[], Any]) -> Arm:
    """Something that is done when it returns."""

    def block(calls: int) -> float:
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        return time.perf_counter() - begun

    return arm(name, block)


def loop_arm(name: str, step: Callable[[Any], Any], state: Any) -> Arm:
    """A hand-written loop: each call gets what the last one returned, and the end is waited for."""

    def block(calls: int) -> float:
        nonlocal state
        begun = time.perf_counter()
        for _ in range(calls):
            state = step(state)
        jax.block_until_ready(state)
        return time.perf_counter() - begun

    return arm(name, block)


def matmul_arms() -> list[Arm]:
    (case,) = matmul.cases(matmul.SHAPES["square"](SIDE), "float32", ("jit",))
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
    suite, numpy = stream.cases("triad", "float32", ELEMENTS, ("jit", "numpy"))
    assert numpy.prepare is not None
    c, b = np.random.default_rng(0).standard_normal((2, ELEMENTS), np.float32)
    return [suite_arm(suite), calls_arm("NumPy", numpy.prepare(c, b))]


def dispatch_arms() -> list[Arm]:
    (case,) = dispatch.cases("tiny", ("pipelined",))
    by_hand = jax.jit(lambda x: jnp.maximum(x, 0), donate_argnums=0)
    return [suite_arm(case), loop_arm("a loop by hand", by_hand, jnp.ones(case.elements))]


def times(arms: list[Arm], rounds: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Seconds per call by arm, (rounds,) each, measured in turns."""
    found: dict[str, list[float]] = {one.name: [] for one in arms}
    for _ in range(rounds):
        for place in random.permutation(len(arms)):
            found[arms[place].name].append(arms[place].per_call_s())
    return {name: np.array(seconds) for name, seconds in found.items()}


def shown(ratios: np.ndarray, random: np.random.Generator) -> str:
    """ "0.991 [0.985, 0.997], 60 rounds"."""
    medians = np.median(random.choice(ratios, (DRAWS, len(ratios))), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return f"{np.median(ratios):.3f} [{low:.3f}, {high:.3f}], {len(ratios)} rounds"


# name: (arms, what a call is worth and its unit, whether the ratio is of speeds or of times, the goal)
COMPARISONS = {
    "matmul": (matmul_arms, (2e-9 * SIDE**3, "GFLOP/s"), "speed", "goal: at least 0.95"),
    "triad": (triad_arms, (12e-9 * ELEMENTS, "GB/s"), "speed", "goal: at least 0.9"),
    "dispatch": (dispatch_arms, None, "time", "goal: at most 1.1 of the loop by hand"),
}


def compare(name: str, rounds: int, console: Console) -> None:
    """Measures one comparison and prints a line for each peer."""
    make, worth, of, goal = COMPARISONS[name]
    random = np.random.default_rng(0)
    found = times(make(), rounds, random)
    for arm_name, seconds in found.items():
        middle = float(np.median(seconds))
        text = f"{1e6 * middle:.2f} us" if worth is None else f"{worth[0] / middle:.1f} {worth[1]}"
        console.print(f"{name}: {arm_name}: {text} per call" if worth is None else f"{name}: {arm_name}: {text}")
    own = found.pop("suite")
    for peer, seconds in found.items():
        ratio = seconds / own if of == "speed" else own / seconds
        console.print(f"{name}: {of} of the suite / of {peer} = {shown(ratio, random)} ({goal})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default=",".join(COMPARISONS))
    asked = parser.parse_args()
    names = asked.only.split(",")
    if unknown := set(names) - set(COMPARISONS):
        sys.exit(f"--only={asked.only}: {unknown.pop()} is unknown, choose from {', '.join(COMPARISONS)}.")
    start("cpu", 1, cores=CORES)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"{CORES} cores, jax {jax.__version__}, NumPy {np.__version__}, {asked.rounds} rounds")
    if not find_spec("torch"):
        console.print('PyTorch is not installed and not compared with: pip install "jaxbench[peers]"')
    for name in names:
        compare(name, asked.rounds, console)


if __name__ == "__main__":
    main()

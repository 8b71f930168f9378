# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Training steps of the suite compared with PyTorch, eager and compiled, and Keras on JAX.

Models: mlp, cnn, resnet18 (for 32 images of 32x32), gpt ("tiny") and lstm, with the experiments' own sizes, batches and
optimizers, in float32. All arms train the same model from the same weights on the same batch on the same cores, each
in its own process. The losses before the first and after each of three updates must agree, or nothing is timed.

On the CPU the suite has two variants: one device with all cores, and one device per core with the batch split over
them. Every round visits all arms in random order, one at a time. Each arm starts from the initial weights with some
warm-up steps, in which the threads of the previous arm go to sleep. On both sides one half of the rounds selects the
faster variant, and the other half measures the ratio. A ratio is PyTorch's time over the suite's (above 1 the suite is
faster), with its 95 % bootstrap interval. Goals: a geometric mean of at least 1.0, and no model below 0.8. Needs the
extra "peers". On shared cores use --cores=1: with more, one delayed thread delays all.

Run: python -m benchmarks.peers [--rounds=30] [--only=mlp,cnn] [--block_s=0.3] [--cores=2] [--platform=cpu|gpu]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peers.arms import Arm
from benchmarks.peers.ratios import Ratio, best_over, geometric_mean
from jaxbench.machine.cores import available_cores, pin_to_cores
from jaxbench.machine.manifest import probe

MODELS = ("mlp", "cnn", "resnet18", "gpt", "lstm")
IN_KERAS = ("mlp", "cnn")
# Relative tolerance of each loss. On a GPU both may multiply in TF32, in different orders.
TOLERANCE = {"cpu": 1e-3, "gpu": 1e-2}
MEAN_GOAL, LEAST_GOAL = 1.0, 0.8
WHOLE, SPLIT = "suite", "suite, a device per core"
EAGER, COMPILED, KERAS = "torch eager", "torch.compile", "keras"
SUITE, TORCH = (WHOLE, SPLIT), (EAGER, COMPILED)
ARMS = (*SUITE, *TORCH, KERAS)


def available(name: str, platform: str) -> Iterator[tuple[str, str, list[str]]]:
    """(name, module, further arguments) of each arm that can run here. The first writes the weights for the others."""
    yield WHOLE, "peers.suite_arm", ["whole"]
    if platform == "cpu" and available_cores() > 1:
        yield SPLIT, "peers.suite_arm", ["split"]
    yield EAGER, "peers.torch_arm", ["eager"]
    if has_compiler():
        yield COMPILED, "peers.torch_arm", ["compile"]
    if name in IN_KERAS and find_spec("keras"):
        yield KERAS, "peers.keras_arm", []


def has_compiler() -> bool:
    """Whether there is a C++ compiler, which torch.compile needs on a CPU."""
    return any(shutil.which(compiler) for compiler in ("c++", "g++", "clang++"))


def start_arms(name: str, platform: str, open_arms: ExitStack, console: Console) -> list[Arm]:
    """Starts the arms in turn. Raises SystemExit if an arm trains another model than the first."""
    folder = open_arms.enter_context(tempfile.TemporaryDirectory())
    arms = []
    for label, module, words in available(name, platform):
        arms.append(Arm(label, module, name, platform, folder, *words))
        open_arms.callback(arms[-1].close)
        difference = max(abs(a / b - 1) for a, b in zip(arms[-1].losses, arms[0].losses, strict=True))
        console.print(f"{name}: {label}: {arms[-1].what}; its losses are within {difference:.1e} of the suite's")
        if not difference <= TOLERANCE[platform]:
            raise SystemExit(
                f"{name}: the losses of {label}, {arms[-1].losses}, differ from the suite's, {arms[0].losses}: "
                "they train different models, so their times are not compared."
            )
    return arms


def measure(name: str, args: argparse.Namespace, console: Console) -> dict[str, np.ndarray]:
    """Seconds per step by arm, (rounds,) each."""
    random = np.random.default_rng(0)
    with ExitStack() as open_arms:
        arms = start_arms(name, args.platform, open_arms, console)
        for arm in arms:
            arm.calibrate(args.block_s)
        times: dict[str, list[float]] = {arm.name: [] for arm in arms}
        for _ in range(args.rounds):
            for place in random.permutation(len(arms)):
                times[arms[place].name].append(arms[place].block_s())
    return {label: np.array(seconds) for label, seconds in times.items()}


def shown(ratio: Ratio) -> str:
    """ "1.21 [1.15, 1.30], 15 rounds"."""
    low, high = ratio.interval()
    return f"{ratio.middle:.2f} [{low:.2f}, {high:.2f}], {ratio.rounds} rounds"


def row(name: str, times: dict[str, np.ndarray], ratio: Ratio, random: np.random.Generator) -> list[str]:
    ms = [f"{1e3 * np.median(times[arm]):.3g}" if arm in times else "-" for arm in ARMS]
    keras = shown(best_over(_only(times, SUITE), {KERAS: times[KERAS]}, random)) if KERAS in times else "-"
    return [name, *ms, shown(ratio), f"{ratio.best} / {ratio.ours}", keras]


def _only(times: dict[str, np.ndarray], arms: tuple[str, ...]) -> dict[str, np.ndarray]:
    return {arm: seconds for arm, seconds in times.items() if arm in arms}


def report(measured: dict[str, dict[str, np.ndarray]], console: Console) -> None:
    """Prints the table and whether the goals are met."""
    random = np.random.default_rng(1)
    columns = (*(f"{arm} ms" for arm in ARMS), "torch's best / suite's best", "best", "keras / suite")
    table, ratios = Table("model", *columns, title="Milliseconds per training step, medians"), []
    for name, times in measured.items():
        ratios.append(best_over(_only(times, SUITE), _only(times, TORCH), random))
        table.add_row(*row(name, times, ratios[-1], random))
    mean, least = geometric_mean(ratios), min(ratios, key=lambda ratio: ratio.middle)
    low, high = mean.interval()
    console.print(table)
    console.print(
        f"geometric mean over {len(ratios)} models: {mean.middle:.2f} [{low:.2f}, {high:.2f}] "
        f"({_verdict(mean.middle, MEAN_GOAL)}); the smallest: {least.middle:.2f} ({_verdict(least.middle, LEAST_GOAL)})"
    )


def _verdict(value: float, goal: float) -> str:
    return f"goal: at least {goal}, {'met' if value >= goal else 'missed'}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--block_s", type=float, default=0.3)
    parser.add_argument("--cores", type=int, default=available_cores())
    parser.add_argument("--platform", choices=tuple(TOLERANCE))
    args = parser.parse_args()
    args.models = list(dict.fromkeys(args.only.split(",")))
    if unknown := set(args.models) - set(MODELS):
        sys.exit(f"--only={args.only}: {unknown.pop()} is unknown, choose from {', '.join(MODELS)}.")
    if args.rounds < 2:
        sys.exit(f"--rounds={args.rounds} is too few: one half selects and the other measures, use 30.")
    return args


def main() -> None:
    args = arguments()
    if not find_spec("torch"):
        sys.exit('PyTorch is not installed, so there is nothing to compare with: pip install "jaxbench[peers]".')
    args.platform = args.platform or ("cpu" if probe("auto")["platform"] == "cpu" else "gpu")
    pin_to_cores(args.cores)  # the arms inherit it
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False)
    console.print(f"{available_cores()} cores, on the {args.platform}, {args.rounds} rounds of {args.block_s} s blocks")
    if not find_spec("keras"):
        console.print('Keras is not installed, so it is left out: pip install "jaxbench[peers]"')
    report({name: measure(name, args, console) for name in args.models}, console)


if __name__ == "__main__":
    main()

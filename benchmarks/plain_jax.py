# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The suite's step against plain JAX in its defaults, and against other allocators: time, CPU time, context switches.

A cell is a model on a number of devices. Its ways to train, each in new processes for each pair:

  suite:       as `jaxbench run`: its variables, memory settings, threads and at most two steps in flight.
  plain:       a loop by hand in JAX's defaults. We set the number of devices and, as `taskset` would, the cores; the
               loop waits for the step before the last 16, because JAX 0.10 may hang if it runs further ahead.
  kept:        plain, but freed memory stays with the process, as in the suite (`KEEP_MEMORY`).
  processes:   as many processes with one device each at the same time, without communication; of 2 devices only.
  arenas, mimalloc (or --allocators): the suite with another allocator (measure.allocator).

All processes of a pair live at the same time and run blocks in turns, in random order. All ways have the same batch for
each device. A process' time is the median of its blocks; CPU time and switches are those of all its threads. A ratio is
the median over pairs with its 95 % bootstrap interval; the spread is the standard deviation over processes. Compiled
programs come from JAX's cache, in all ways. A process that does not answer in HANG_S is killed and counted as a hang.

More devices than cores have three pairs: bytes and schedules only, not speed. Goal: suite / plain at 2 devices at most
1.02, with a spread that is no larger.

FOLDER keeps plain_jax.json, and the same command continues. Run:
python -m benchmarks.plain_jax [--folder=docs/figures/plain_jax] [--pairs=9] [--only=cnn,mlp/2] [--ways=suite,plain]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import plain_jax_figure
from benchmarks.peers.arms import Arm, Lost
from benchmarks.plain_jax_ratios import (
    ALLOCATORS,
    KEPT,
    PLAIN,
    PROCESSES,
    SUITE,
    Cell,
    Cells,
    Sample,
    against,
    samples,
    spread,
)
from jaxbench.core.store import write_json
from jaxbench.errors import UserError
from jaxbench.machine import allocator
from jaxbench.machine.cores import available_cores
from jaxbench.machine.manifest import versions
from jaxbench.machine.program_cache import KEEP_ALL
from jaxbench.processes.messages import KEEP_MEMORY

# The batch is that of a device, with steps of 5 to 150 ms on a core.
MODELS: dict[str, dict[str, Any]] = {
    "cnn": {"batch": 64},
    "mlp": {"batch": 1024},
    "gpt": {"batch": 4},
    "resnet18": {"batch": 2},
    "lstm": {"batch": 16},
    "vit": {"batch": 4, "model.size": 64, "model.patch": 8, "model.depth": 4, "model.width": 192},
}
COMPARED = ("cnn", "mlp", "gpt", "resnet18")  # with plain JAX; allocators with all
DEVICES = (1, 2, 4)
BLOCKS = 3
OVERSUBSCRIBED_PAIRS = 3
HANG_S = 90.0  # XLA ends a process 40 s after a collective began to wait
GOAL = 1.02
FILE = "plain_jax.json"


def cells(only: Sequence[str]) -> list[Cell]:
    """All cells, or those of the models and of the names such as "cnn/2" in `only`."""
    every = [
        Cell(model, devices)
        for devices in DEVICES
        for model in MODELS
        if devices <= available_cores() or model in COMPARED
    ]
    names = {name for cell in every for name in (cell.model, cell.name)}
    if unknown := [name for name in only if name not in names]:
        raise SystemExit(f"--only={unknown[0]} is no cell: use a model ({', '.join(MODELS)}) or {every[0].name}.")
    return [cell for cell in every if not only or cell.model in only or cell.name in only]


def needed(allocators: Sequence[str], ways: Sequence[str]) -> list[str]:
    """The allocators that the chosen ways ask for, which must be on the machine; all of them if no way is chosen."""
    return [name for name in allocators if not ways or name in ways]


def ways_of(cell: Cell, allocators: Sequence[str]) -> list[str]:
    ways = [SUITE]
    if cell.model in COMPARED:
        ways += [PLAIN, KEPT, *([PROCESSES] if cell.devices == 2 else [])]
    return ways + [name for name in allocators if cell.devices <= available_cores()]


@dataclass
class Way:
    """Processes that train at the same time, and what their blocks took."""

    arms: list[Arm]
    lost: bool = False
    step_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)

    def hello(self) -> None:
        for arm in self.arms:
            arm.hello()

    def run(self, steps: int, *, keep: bool = True) -> float:
        """One block of all its processes. Returns seconds per step until the last is done. keep: as a sample."""
        for arm in self.arms:
            arm.steps = steps
            arm.begin()
        blocks = [arm.block() for arm in self.arms]
        step_s = max(block.seconds for block in blocks) / steps
        if keep:
            self.step_s.append(step_s)
            self.cpu_s.append(sum(block.cpu_s for block in blocks) / steps)
            self.waits.append(sum(block.waits for block in blocks) / steps)
            self.switches.append(sum(block.switches for block in blocks) / steps)
        return step_s

    def sample(self) -> Sample:
        others = [float(np.mean(values)) for values in (self.cpu_s, self.waits, self.switches)]
        return Sample(self.step_s, *others)


def start(cell: Cell, way: str, cache: str) -> Way:
    variables = {"JAX_COMPILATION_CACHE_DIR": cache, **KEEP_ALL}
    if way != PLAIN:
        variables |= KEEP_MEMORY
    if way in ALLOCATORS:
        variables |= allocator.variables(way)
    changes = json.dumps(MODELS[cell.model])

    def arm(kind: str, devices: int, core: int = 0) -> Arm:
        words = cell.model, kind, str(devices), str(core), "0", changes
        return Arm(f"{way} of {cell.name}", "sharing_arm", *words, ready=False, variables=variables, limit_s=HANG_S)

    if way == PROCESSES:
        return Way([arm("alone", 1, core) for core in range(cell.devices)])
    return Way([arm("plain" if way in (PLAIN, KEPT) else "together", cell.devices)])


def guarded(name: str, way: Way, action: Any) -> None:
    """Does something with a way, unless it is lost. Only plain JAX may be lost; for the suite that is an error."""
    if way.lost:
        return
    try:
        action()
    except Lost:
        if name not in (PLAIN, KEPT):
            raise
        way.lost = True


def pair(cell: Cell, ways: Sequence[str], found: Cells, args: argparse.Namespace, random: np.random.Generator) -> None:
    """Measures one pair of a cell, and adds it to what was found."""
    with ExitStack() as stack:
        running = {}
        for name in ways:
            running[name] = way = start(cell, name, args.cache)
            for arm in way.arms:
                stack.callback(arm.close)
            if cell not in args.compiled:  # one after the other, so that each finds the programs of the others
                guarded(name, way, way.hello)
        for name, way in running.items():
            if cell in args.compiled:
                guarded(name, way, way.hello)
        args.compiled.add(cell)
        if not (steps := found.steps.get(cell.name, 0)):
            steps = 1
            while running[SUITE].run(steps, keep=False) * steps < args.block_s:
                steps *= 2
            found.steps[cell.name] = steps
        for name, way in running.items():
            guarded(name, way, lambda way=way: way.run(steps, keep=False))
        for _ in range(BLOCKS):
            for name in random.permutation(list(running)):
                way = running[name]
                guarded(name, way, lambda way=way: way.run(steps))
    measured = {name: None if way.lost else way.sample() for name, way in running.items()}
    found.cells.setdefault(cell.name, []).append(measured)


def measure(found: Cells, wanted: Sequence[tuple[Cell, list[str]]], args: argparse.Namespace, console: Console) -> int:
    """Measures the pairs that are missing, in turns over the cells, and writes the file after each. Returns their
    number."""
    todo = []
    for number in range(args.pairs):
        for cell, ways in wanted:
            pairs = OVERSUBSCRIBED_PAIRS if cell.devices > available_cores() else args.pairs
            known = found.cells.get(cell.name, [])
            missing = [way for way in ways if way != SUITE and len(samples(known, way)) <= number]
            if number < pairs and missing:
                todo.append((cell, [SUITE, *missing]))
    random = np.random.default_rng()
    for cell, ways in track(todo, "pairs", console=console, transient=True):
        pair(cell, ways, found, args, random)
        args.folder.mkdir(parents=True, exist_ok=True)
        write_json(args.folder / FILE, found.to_json())
    return len(todo)


def table(found: Cells) -> Table:
    shown = Table("cell", "way", "ms", "CPU ms", "waits", "preempted", "spread", "pairs", "hangs", "ratio [95 %]")
    for name, pairs in found.cells.items():
        speed = "" if Cell.of(name).devices <= found.cores else f" ({plain_jax_figure.NOT_SPEED})"
        for way in dict.fromkeys(way for each in pairs for way in each):
            every = samples(pairs, way)
            some = [sample for sample in every if sample is not None]
            if not some:
                shown.add_row(name + speed, way, *7 * ("",), "")
                continue
            medians = [np.median(values) for values in zip(*(each.numbers for each in some), strict=True)]
            base, ratio = against(pairs, way)
            shown.add_row(
                name + speed, way, *(f"{v:.{d}f}" for v, d in zip(medians, (2, 2, 1, 1), strict=True)),
                f"{100 * spread(some):.1f} %", str(len(some)), str(len(every) - len(some)),
                f"{ratio.text} of {base}" if base else "",
            )  # fmt: skip
        shown.add_section()
    return shown


def verdict(found: Cells) -> str:
    """The goal, over the cells with two devices."""
    words = []
    for model in COMPARED:
        pairs = [pair for pair in found.cells.get(Cell(model, 2).name, []) if PLAIN in pair]
        if not pairs:
            continue
        _, ratio = against(pairs, SUITE)
        ours, theirs = (spread([each for each in samples(pairs, way) if each]) for way in (SUITE, PLAIN))
        met = "one pair tells nothing" if len(ratio.each) < 2 else "missed"
        if ratio.value <= GOAL and ours <= theirs:  # not where the spread is unknown
            met = "met"
        words.append(f"{model} {ratio.text}, spread {100 * ours:.1f} % against {100 * theirs:.1f} %: {met}")
    return f"suite / plain on 2 devices (goal: at most {GOAL}, and a spread no larger): {'; '.join(words)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("results/plain_jax"))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", default="", help="models or cells: cnn,mlp/2")
    parser.add_argument("--ways", default="", help="of the ways of each cell, only these; the suite is always there")
    parser.add_argument("--allocators", default=",".join(ALLOCATORS))
    parser.add_argument("--block_s", type=float, default=0.2)
    args = parser.parse_args()
    if available_cores() < 2:
        raise SystemExit("Devices on one core take turns: use a machine with 2 cores or more.")
    chosen = [word for word in args.ways.split(",") if word]
    allocators = needed([name for name in args.allocators.split(",") if name], chosen)
    try:
        for name in allocators:
            allocator.variables(name)
    except UserError as error:
        raise SystemExit(f"{error} Or leave it out: --allocators=arenas.") from error
    wanted = []
    for cell in cells([word for word in args.only.split(",") if word]):
        ways = [way for way in ways_of(cell, allocators) if not chosen or way == SUITE or way in chosen]
        if len(ways) > 1:
            wanted.append((cell, ways))
    file, console = args.folder / FILE, Console(width=None if sys.stdout.isatty() else 120, markup=False)
    found = Cells.read(file) if file.exists() else Cells(available_cores(), versions()["jax"])
    with tempfile.TemporaryDirectory() as cache:
        args.cache, args.compiled = os.path.join(cache, "compiled"), set()
        begun_s = time.monotonic()
        pairs = measure(found, wanted, args, console)
        seconds = time.monotonic() - begun_s
    console.print(table(found), highlight=False)
    console.print(verdict(found), highlight=False)
    console.print(f"{seconds:.0f} s for {pairs} pairs of cells.", highlight=False)
    plain_jax_figure.save(found, args.folder)


if __name__ == "__main__":
    main()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses of known size in real steps on two devices: is each found in its factor of the waterfall, and in no other?

Each loss is one run of the suite. What its factors must be follows from a run without the loss, to whose times it is
added (docs/METRICS.md, Waterfall); for a bubble from the closed form, and for memory from NumPy in two threads.

  twice:   all gradients are sent twice -> communication
  late:    the second device waits 10 ms when its gradients are ready -> shared machine and not explained, together.
           Without communication the first device need not wait for it and may use both cores meanwhile: what that
           saves, only the whole step loses.
  heard:   both devices wait 10 ms in the whole step only -> not explained
  fixed:   each device waits 10 ms however small its share is, so a small batch costs more -> smaller share
  memory:  elementwise passes over arrays larger than the caches -> shared machine
  few:     a pipeline of two stages, a process each, with 2 micro-batches -> pipeline bubble. The factor is the closed
           form itself, so what is compared is its product with what is not explained.
  many:    the same with 16 micro-batches.

A factor is FOUND if the interval of measured over expected contains 1 and not the value without the loss; with both one
cannot tell. Another factor may move by 2 points. Of about 25 intervals of 95 %, one or two miss by chance.

Steps that wait do so in a callback to Python, for which the check `host` refuses a run: that verdict, and no other, is
taken out of the records before they are read.

Run: python -m benchmarks.known_losses [--only=twice,late,heard,fixed,memory,few,many] [--rounds=5]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxbench.analysis import points, scaling, waterfall
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.waterfall import (
    BUBBLE,
    COMMUNICATION,
    NAMES,
    NOT_EXPLAINED,
    SHARED_MACHINE,
    SMALLER_SHARE,
    Waterfall,
)
from jaxbench.records.store import RunFolder

DEVICES, WAIT_S = 2, 0.01
OTHER = 0.02  # how far a factor may move into which nothing was built
MODEL = (str(Path(__file__).with_name("known_losses_model.py")), "strategy=shard_map", f"model.wait_s={WAIT_S}")
# A process for each device: devices of one share its threads, and a stage that works while another waits uses them too.
PIPELINE = ("gpt", "strategy=pipeline", "batch=32", "mesh.processes=per_device")
Factors = dict[str, Estimate]


@dataclass(frozen=True)
class Times:
    """Seconds per step: of one device with all of the work and with its share, of all devices without communication, of
    the collectives alone, and of the whole step."""

    one: float
    alone: float
    local: float
    communication: float
    step: float

    @classmethod
    def of(cls, measured: Waterfall) -> Times:
        parts = [measured.row.explained_by[part].timing.step_s.value for part in waterfall.PARTS]
        return cls(measured.row.base_step_s, *parts, measured.row.timing.step_s.value)

    def factors(self) -> dict[str, float]:
        """As docs/METRICS.md defines them, written out once more."""
        seen = min(max(self.step - self.local, 0), self.communication)
        return {
            SMALLER_SHARE: self.one / (DEVICES * self.alone),
            SHARED_MACHINE: self.alone / self.local,
            COMMUNICATION: self.local / (self.local + seen),
            NOT_EXPLAINED: (self.local + seen) / self.step,
        }

    def with_loss(self, name: str, found: Times) -> Times:
        """The times with a loss built in. found: those that were measured with it."""
        if name == "twice":
            return replace(self, communication=2 * self.communication, step=self.step + self.communication)
        if name == "fixed":
            one, alone, local = (seconds + WAIT_S for seconds in (self.one, self.alone, self.local))
            return replace(self, one=one, alone=alone, local=local, step=self.step + WAIT_S)
        local = min(max(found.local, self.local), self.local + WAIT_S) if name == "late" else self.local
        return replace(self, local=local, step=self.step + WAIT_S)


# The factors into which a loss is built, and the settings of its run.
LOSSES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "twice": ((COMMUNICATION,), (*MODEL, "model.loss=twice")),
    "late": ((SHARED_MACHINE, NOT_EXPLAINED), (*MODEL, "model.loss=late")),
    "heard": ((NOT_EXPLAINED,), (*MODEL, "model.loss=heard")),
    "fixed": ((SMALLER_SHARE,), (*MODEL, "model.loss=fixed")),
    "memory": ((SHARED_MACHINE,), (*MODEL, "model.loss=memory")),
    "few": ((BUBBLE, NOT_EXPLAINED), (*PIPELINE, "lever.accumulate=2")),
    "many": ((BUBBLE, NOT_EXPLAINED), (*PIPELINE, "lever.accumulate=16")),
}
MICRO_BATCHES = {"few": 2, "many": 16}


def measure(settings: tuple[str, ...], rounds: int, folder: Path) -> Waterfall:
    """Runs two devices under strong scaling. Exits if that gives no waterfall, or one with a part missing."""
    experiment, *chosen = *settings, "scaling=strong", f"mesh.devices=1,{DEVICES}", f"measure.rounds={rounds}"
    flags = [f"--config.{setting}" for setting in chosen]
    command = [sys.executable, "-m", "jaxbench", "run", experiment, f"--workdir={folder}", "--share_machine", *flags]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not (folder / "records.jsonl").exists():
        raise SystemExit(done.stdout)
    without_host_verdict(folder / "records.jsonl")
    run = RunFolder(folder)
    found = waterfall.find(scaling.analyse(points.load(run), config=run.config()))
    if len(found) != 1 or found[0].missing:
        raise SystemExit(f"{done.stdout}\nNo waterfall, or parts are missing: {found[0].missing if found else ''}")
    return found[0]


def without_host_verdict(path: Path) -> None:
    """Takes the verdict `host` out of the records of a point."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("kind") == "point":
            line["checks"] = [check for check in line["checks"] if check["name"] != "host"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def factors_of(measured: Waterfall | None) -> Factors:
    return {factor.name: factor.value for factor in measured.factors} if measured else {}


def product(factors: Factors, names: tuple[str, ...]) -> Estimate:
    """A factor that is left out is 1."""
    found = Estimate(value=1.0)
    for name in names:
        found = times(found, factors.get(name, Estimate(value=1.0)))
    return found


def times(left: Estimate, right: Estimate, power: int = 1) -> Estimate:
    """left x right^power, as of independent estimates: relative half widths add up as squares."""
    value = left.value * right.value**power
    known = [each for each in (left, right) if each.has_interval]
    half = math.sqrt(sum(math.log(each.hi / each.lo) ** 2 for each in known)) / 2
    return (
        Estimate(value=value, lo=value * math.exp(-half), hi=value * math.exp(half)) if known else Estimate(value=value)
    )


def interval(value: float, around: Iterable[float]) -> Estimate:
    """around: other values of the same."""
    found = [value, *around]
    return Estimate(value=value, lo=min(found), hi=max(found))


def expected(name: str, plain: Waterfall | None, found: Waterfall, memory: Estimate | None = None) -> Factors:
    """What the factors must be; those of which nothing is known are left out. memory: of NumPy, by `two_threads`."""
    exact = Estimate(value=1.0)
    if name in MICRO_BATCHES:
        count = MICRO_BATCHES[name]
        return {BUBBLE: Estimate(value=count / (count + DEVICES - 1)), NOT_EXPLAINED: exact}
    assert plain is not None
    before, own = Times.of(plain), Times.of(found)
    if memory is not None:
        passes = own.alone - before.alone  # the rest of the step needs little memory
        shared, *ends = (own.alone / (before.local + passes / r) for r in (memory.value, memory.lo, memory.hi))
        return {SMALLER_SHARE: exact, SHARED_MACHINE: interval(shared, ends), NOT_EXPLAINED: exact}
    noise = {each: times(value, Estimate(value=value.value), -1) for each, value in factors_of(plain).items()}
    values = before.with_loss(name, own).factors()
    return {each: times(Estimate(value=value), noise.get(each, exact)) for each, value in values.items()}


def two_threads(passes: int = 10, repeats: int = 9) -> Estimate:
    """A thread's time for passes over 64 MB by itself over its time beside another one, in NumPy."""
    arrays = [np.ones(1 << 24, np.float32) for _ in range(DEVICES)]

    def seconds(array: np.ndarray) -> float:
        start = time.perf_counter()
        for _ in range(passes):
            np.multiply(array, 0.999, out=array)
        return time.perf_counter() - start

    with ThreadPoolExecutor(DEVICES) as threads:
        ratios = [seconds(arrays[0]) / max(threads.map(seconds, arrays)) for _ in range(repeats)]
    return interval(float(np.median(ratios)), ratios)


def judge_built_in(found: Estimate, wanted: Estimate, without: float) -> str:
    """without: the value without the loss."""
    if not found.has_interval:
        return "cannot tell"
    ratio = times(found, wanted, -1)
    if not ratio.lo <= 1 <= ratio.hi:
        return "MISSED"
    return "cannot tell" if ratio.lo <= without / wanted.value <= ratio.hi else "FOUND"


def judge_other(found: Estimate, wanted: Estimate) -> str:
    ratio = times(found, wanted, -1)
    return "as expected" if ratio.lo <= 1 <= ratio.hi or abs(found.value - wanted.value) <= OTHER else "MOVED"


Line = tuple[str, Estimate | None, Estimate | None, Estimate, str]  # factor, without the loss, must be, found, verdict


def lines(name: str, measured: Waterfall, plain: Waterfall | None, memory: Estimate | None = None) -> list[Line]:
    """The factor of one run into which the loss was built, and then all others."""
    into, one = LOSSES[name][0], Estimate(value=1.0)
    wanted, found, before = expected(name, plain, measured, memory), factors_of(measured), factors_of(plain)
    own = product(before, into), product(wanted, into), product(found, into)
    made: list[Line] = [(" x ".join(into), *own, judge_built_in(own[2], own[1], own[0].value))]
    for factor in (each for each in NAMES if each not in into and (each in found or each in wanted)):
        value, must = found.get(factor, one), wanted.get(factor)
        made.append((factor, before.get(factor), must, value, judge_other(value, must) if must else ""))
    return made


def shown(value: Estimate | None) -> str:
    """ "0.910 [0.890, 0.930]"."""
    if value is None:
        return ""
    return f"{value.value:.3f}" + (f" [{value.lo:.3f}, {value.hi:.3f}]" if value.has_interval else "")


def fill(table: Table, names: list[str], rounds: int, folder: Path, console: Console) -> None:
    """Measures each loss, after a step without one if its factors follow from that."""
    plain = None
    if set(names) - set(MICRO_BATCHES):
        with console.status("without a loss"):
            plain = measure(MODEL, rounds, folder / "none")
    for name in names:
        with console.status(name):
            before = None if name in MICRO_BATCHES else plain
            memory = two_threads() if name == "memory" else None
            found = measure(LOSSES[name][1], rounds, folder / name)
        for factor, *values, said in lines(name, found, before, memory):
            table.add_row(name, factor, *map(shown, values), said)
            name = ""
        table.add_section()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(LOSSES))
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120, markup=False, highlight=False)
    table = Table("built in", "factor", "without it", "must be", "found", "", title=f"2 devices, {args.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        try:
            fill(table, args.only.split(","), args.rounds, Path(folder), console)
        finally:  # a run that fails does not take the others with it
            console.print(table)


if __name__ == "__main__":
    main()

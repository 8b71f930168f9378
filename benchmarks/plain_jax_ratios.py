# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What `benchmarks.plain_jax` has measured, and the ratios of it. Without jax."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.ratios import median_of
from jaxbench.statistics.bootstrap import Estimate

SUITE, PLAIN, KEPT, PROCESSES = "suite", "plain", "kept", "processes"
ALLOCATORS = ("arenas", "mimalloc")


@dataclass(frozen=True)
class Cell:
    """A model on a number of devices."""

    model: str
    devices: int

    @property
    def name(self) -> str:
        return f"{self.model}/{self.devices}"

    @staticmethod
    def of(name: str) -> Cell:
        model, _, devices = name.rpartition("/")
        return Cell(model, int(devices))


@dataclass(frozen=True)
class Sample:
    """A process, or several at the same time. step_s: of each block, until the last process is done. cpu_s, waits
    (voluntary context switches), switches (involuntary ones): of all threads of all processes, per step."""

    step_s: list[float]
    cpu_s: float
    waits: float
    switches: float

    @property
    def time_s(self) -> float:
        """Seconds per step."""
        return float(np.median(self.step_s))

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """ms per step, ms of CPU time, voluntary and involuntary context switches."""
        return 1e3 * self.time_s, 1e3 * self.cpu_s, self.waits, self.switches


Pair = dict[str, Sample | None]


@dataclass
class Cells:
    """cells: by cell, the pairs, each with a sample by way; None: it hung. A pair has only the ways that were measured
    together. steps: of a block, by cell."""

    cores: int
    jax: str
    steps: dict[str, int] = field(default_factory=dict)
    cells: dict[str, list[Pair]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def read(file: Path) -> Cells:
        data = json.loads(file.read_text())
        cells = {
            cell: [{way: Sample(**one) if one else None for way, one in pair.items()} for pair in pairs]
            for cell, pairs in data["cells"].items()
        }
        return Cells(data["cores"], data["jax"], data["steps"], cells)


@dataclass(frozen=True)
class Ratio:
    """The median of the ratios of pairs, `each`, with its interval."""

    each: list[float]
    estimate: Estimate

    @property
    def value(self) -> float:
        return self.estimate.value

    @property
    def text(self) -> str:
        return f"{self.value:.3f} [{self.estimate.lo:.3f}, {self.estimate.hi:.3f}]"


def samples(pairs: Sequence[Pair], way: str) -> list[Sample | None]:
    """Of one way, where it was measured."""
    return [pair[way] for pair in pairs if way in pair]


def against(pairs: Sequence[Pair], way: str, number: int = 0) -> tuple[str, Ratio]:
    """(the way that this one is compared with, the ratio over pairs). The suite and the processes are compared with
    plain JAX, an allocator with the suite. ("", an unknown ratio): with nothing. number: of `Sample.numbers`."""
    base = SUITE if way in ALLOCATORS else PLAIN if way != PLAIN else ""
    both = [(a.numbers[number], b.numbers[number]) for p in pairs if (a := p.get(way)) and (b := p.get(base))]
    each = [a / b for a, b in both if b]
    if not each:
        return "", Ratio([], Estimate())
    median, low, high = median_of(np.array(each))
    return base, Ratio(each, Estimate(value=median, lo=low, hi=high))


def spread(samples: Sequence[Sample]) -> float:
    """The standard deviation of the step time over processes, relative to its mean; NaN for fewer than two."""
    times = [each.time_s for each in samples]
    return float(np.std(times, ddof=1) / np.mean(times)) if len(times) > 1 else float("nan")

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What all studies share: a step compiled at other settings, what that says of memory, and the search for the largest
setting that fits."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.runner import fits
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Point

CPU_LIMIT_BYTES = 2**30  # a CPU shares its memory with everything else: a limit to try the search with


@dataclass(frozen=True, kw_only=True)
class MemoryLimit:
    """How much memory one device may hold, and who says so."""

    bytes: int
    source: str


def limit(asked: int, machine: dict[str, Any]) -> MemoryLimit:
    """The limit of a search. asked: ``config.search_bytes``; 0 means the device's own limit."""
    has = machine.get("device_memory_bytes")
    if asked and not (has and has < asked):  # no setting makes a device larger
        return MemoryLimit(bytes=asked, source="config.search_bytes")
    if has:
        return MemoryLimit(bytes=has, source="what the device lets JAX use")
    return MemoryLimit(bytes=CPU_LIMIT_BYTES, source="1 GiB, because a CPU's memory is not the step's alone")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What the compiler says of a step, in bytes per device. refused: its words where the step does not fit; then
    `peak_bytes` is more than the limit, and `temp_bytes` is not known."""

    peak_bytes: int
    temp_bytes: int | None
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A run whose step is studied. points: those of the run; config: as a worker is told; folder: of the run."""

    points: Sequence[Point]
    experiment: str
    config: dict[str, Any]
    limit: MemoryLimit
    folder: Path
    console: Console

    def with_model(self, **fields: Any) -> Study:
        """The same run with other fields of ``config.model``."""
        return dataclasses.replace(self, config={**self.config, "model": {**self.config["model"], **fields}})

    def worker(self, name: str, point: Point, environment: dict[str, str] | None = None) -> Worker:
        """A process for `point`. name: of the study, for its log. environment: instead of the point's own."""
        setup = {**point.worker()[1], "experiment": self.experiment, "config": self.config, "worker": name}
        setup |= {} if environment is None else {"environment": environment}
        return Worker(setup, self.folder / "logs" / f"{name}.log")

    @contextlib.contextmanager
    def compiling(self, what: str, worker: Worker) -> Iterator[Callable[[dict[str, Any]], Memory]]:
        """Yields `compiled` of a worker, and closes it. Raises UserError, which names `what`, if it fails."""
        try:
            yield functools.partial(self.compiled, worker)
        except WorkerError as error:
            raise UserError(f"{what} cannot be compiled: {error}.") from error
        finally:
            worker.close()

    def compiled(self, worker: Worker, point: dict[str, Any]) -> Memory:
        """What the compiler says of a point's step. Raises WorkerError unless it compiles or is refused for memory."""
        try:
            answer = worker.ask({"do": "compile", "point": point})
        except WorkerError as error:
            if not fits.refused(error):
                raise
            # A device has no more than the limit, so that what is refused counts as more.
            needs = max(fits.needed_bytes(error) or 0, self.limit.bytes + 1)
            return Memory(peak_bytes=needs, temp_bytes=None, refused=str(error))
        return Memory(peak_bytes=answer["peak_bytes"], temp_bytes=answer["temp_bytes"])

    def require_fits(self, what: str, memory: Memory, instead: str) -> None:
        """Raises UserError if `what`, the smallest setting there is, does not fit."""
        allowed = f"{self.limit.bytes:,} bytes ({self.limit.source})"
        if memory.refused:
            raise UserError(f"{what} does not fit {allowed}; the compiler says '{memory.refused}': {instead}.")
        if memory.peak_bytes > self.limit.bytes:
            raise UserError(
                f"{what} needs {memory.peak_bytes:,} bytes and the limit is {allowed}: raise it with "
                f"--config.search_bytes={2 * memory.peak_bytes}."
            )


def largest_within(
    peak_bytes: Callable[[int], int], limit_bytes: int, *, first: int, step: Callable[[int], int]
) -> int:
    """The largest number whose `peak_bytes` is within the limit, to a step; 0 if even `first` does not fit.

    peak_bytes: number -> bytes, which grow with the number. step: the largest number that was reached by doubling and
    fits -> how exact the answer is to be.

    Doubles `first` until it does not fit, then narrows the gap, guided by the straight line through both ends.
    """
    peak = functools.cache(peak_bytes)
    low, high = 0, first
    while peak(high) <= limit_bytes:
        low, high = high, 2 * high
    grain = step(low)
    while high - low > grain:
        below, above = peak(low), peak(high)
        # A refusal that names no bytes counts as one byte too many. A line through that would end in single steps.
        share = 0.5 if above == limit_bytes + 1 else (limit_bytes - below) / (above - below)
        guess = low + round(share * (high - low) / grain) * grain
        middle = min(max(guess, low + grain), high - grain)
        low, high = (middle, high) if peak(middle) <= limit_bytes else (low, middle)
    return low

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Shared by all studies: compiling a step at other settings, its memory, and the search for the largest that fits."""

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
    """The bytes that one device may hold, and the source of the limit."""

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
    """The compiler's memory figures for a step, in bytes per device.

    refused: the compiler's message if the step does not fit. Then `peak_bytes` is more than the limit, and `temp_bytes`
    is unknown.
    """

    peak_bytes: int
    temp_bytes: int | None
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A run and its step. points: those of the run; config: as sent to a worker; folder: of the run."""

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
        """A process for `point`. name: of the study, for the log. environment: replaces that of the point."""
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
        """The memory of a point's step. Raises WorkerError unless it compiles or the compiler runs out of memory."""
        try:
            answer = worker.ask({"do": "compile", "point": point})
        except WorkerError as error:
            if not fits.refused(error):
                raise
            # A device has no more than the limit, so a refused step counts as more.
            needs = max(fits.needed_bytes(error) or 0, self.limit.bytes + 1)
            return Memory(peak_bytes=needs, temp_bytes=None, refused=str(error))
        return Memory(peak_bytes=answer["peak_bytes"], temp_bytes=answer["temp_bytes"])

    def require_fits(self, what: str, memory: Memory, instead: str) -> None:
        """Raises UserError if `what`, the smallest possible setting, does not fit."""
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
    """The largest number with `peak_bytes` within the limit, to a step; 0 if even `first` does not fit.

    peak_bytes: number -> bytes, which grow with the number. step: the largest number that was reached by doubling and
    fits -> the required precision of the answer.

    It doubles `first` until it does not fit, then narrows the gap, guided by the straight line through both ends.
    """
    peak = functools.cache(peak_bytes)
    low, high = 0, first
    while peak(high) <= limit_bytes:
        low, high = high, 2 * high
    grain = step(low)
    while high - low > grain:
        below, above = peak(low), peak(high)
        # A refusal without a number of bytes counts as one byte too many. A line through that point would lead to
        # single steps, so the gap is halved.
        share = 0.5 if above == limit_bytes + 1 else (limit_bytes - below) / (above - below)
        guess = low + round(share * (high - low) / grain) * grain
        middle = min(max(guess, low + grain), high - grain)
        low, high = (middle, high) if peak(middle) <= limit_bytes else (low, middle)
    return low

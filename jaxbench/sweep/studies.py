# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Studies: facts that a run finds before it times anything, by compiling its step at other settings.

The largest batch that fits is predicted from the compiler's own memory figure, then proven by running it. A batch is
predicted to fit if the memory of the compiled step (`peak_bytes`) is within the limit. The largest such batch is found
without running anything. Then child processes run it and its neighbours. A process that dies because it runs out of
memory is an answer, and so is a compiler that refuses. On a CPU the limit is enforced while a batch runs. On other
platforms, a batch that ran with more memory than the limit did not fit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.core.point import Point
from jaxbench.core.store import write_json
from jaxbench.digits import counted
from jaxbench.errors import UserError, present
from jaxbench.hlo.out_of_memory import needed_bytes
from jaxbench.levers import ACCUMULATE
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.messages import Compile, Fields, Ran, RunWithin
from jaxbench.records.documents import plain
from jaxbench.records.manifest import Machine
from jaxbench.records.studies import (
    LONGEST,
    REMAT_LAW,
    SEARCH,
    CompiledBatch,
    Depth,
    Depths,
    Longest,
    LongestOn,
    Search,
    TriedBatch,
)
from jaxbench.sweep.plan import worker_of
from jaxbench.sweep.progress import working

LENGTH = "context"  # the field of config.model with the number of positions of a sequence
DEPTH = "layers"  # the field of config.model with the number of identical blocks
MAX_PROOFS = 16  # processes; each starts JAX and compiles a step
# One arena, and every array mapped separately and returned at once, so that resident memory is that of the arrays.
EXACT_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
CPU_LIMIT_BYTES = 2**30  # a CPU shares its memory with everything else: a limit to try the search with


@dataclass(frozen=True, kw_only=True)
class MemoryLimit:
    """The bytes that one device may hold, and the source of the limit."""

    bytes: int
    source: str


def limit(asked: int, machine: Machine) -> MemoryLimit:
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
        setup = dataclasses.replace(worker_of(point)[1], experiment=self.experiment, config=self.config, worker=name)
        if environment is not None:
            setup = dataclasses.replace(setup, environment=environment)
        return Worker(setup, self.folder / "logs" / f"{name}.log")

    @contextlib.contextmanager
    def compiling(self, what: str, worker: Worker) -> Iterator[Callable[[Fields], Memory]]:
        """Yields `compiled` of a worker, and closes it. Raises UserError, which names `what`, if it fails."""
        try:
            yield functools.partial(self.compiled, worker)
        except WorkerError as error:
            raise UserError(f"{what} cannot be compiled: {error}.") from error
        finally:
            worker.close()

    def compiled(self, worker: Worker, point: Fields) -> Memory:
        """The memory of a point's step. Raises WorkerError unless it compiles or the compiler runs out of memory."""
        try:
            answer = worker.ask(Compile(point=point))
        except WorkerError as error:
            if not out_of_memory(error):
                raise
            # A device has no more than the limit, so a refused step counts as more.
            needs = max(needed_bytes(str(error)) or 0, self.limit.bytes + 1)
            return Memory(peak_bytes=needs, temp_bytes=None, refused=str(error))
        peak_bytes = present(answer.peak_bytes)  # a step with a known size, of a strategy that is compiled as a whole
        return Memory(peak_bytes=peak_bytes, temp_bytes=answer.temp_bytes)

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
    peak = functools.cache(peak_bytes)  # each call compiles
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
        middle = min(max(guess, low + grain), high - grain)  # between both ends, so that every step narrows the gap
        low, high = (middle, high) if peak(middle) <= limit_bytes else (low, middle)
    return low


def out_of_memory(error: WorkerError) -> bool:
    """Whether the compiler refused the step because it does not fit the memory of a device.

    An accelerator's compiler then raises RESOURCE_EXHAUSTED; a CPU's only reports the memory. A kernel that overflows
    another memory of the chip (vmem, smem) is an ordinary error.
    """
    space = re.search(r"memory space (\w+)", str(error))
    return error.stage == "compile" and "RESOURCE_EXHAUSTED" in str(error) and (space is None or space[1] == "hbm")


def asked(config: dict[str, Any]) -> dict[str, Callable[[Study], Search | Longest | Depths]]:
    """The studies that a config asks for, by the name of their file in the run folder. Raises UserError as `depths`."""
    studies: dict[str, tuple[bool, Callable[[Study], Search | Longest | Depths]]] = {
        SEARCH: (config["search"] == "max", lambda study: _LargestBatch(study).run()),
        LONGEST: (config["search"] == LENGTH, max_sequence),
        REMAT_LAW: (bool(depths(config)), memory_by_depth),
    }
    return {file: carry_out for file, (wanted, carry_out) in studies.items() if wanted}


def run(study: Study) -> None:
    """Carries out the studies that the config asks for, except those with a file in the folder. Raises UserError."""
    for file, carry_out in asked(study.config).items():
        if not (study.folder / file).exists():
            write_json(study.folder / file, plain(carry_out(study)))


class _LargestBatch:
    def __init__(self, study: Study):
        self.study, self.point, self.limit = study, study.points[0], study.limit
        self.step = self.point.devices * ACCUMULATE.of(self.point.levers)
        self.compiled: dict[int, Memory] = {}
        self.proven: list[TriedBatch] = []

    def run(self) -> Search:
        """Searches on the run's first point. Raises UserError when not even the smallest batch fits or compiles."""
        worker = self.study.worker("max_batch", self.point, EXACT_MEMORY)

        def peak_bytes(batch: int) -> int:
            self.compiled[batch] = compiled(self._fields_with_batch(batch))
            return self.compiled[batch].peak_bytes

        status = working(self.study.console, "searching the largest batch: compiling")
        with status, self.study.compiling("a step of the search for the largest batch", worker) as compiled:
            predicted = largest_within(peak_bytes, self.limit.bytes, first=self.step, step=lambda _: self.step)
        smaller = "use a smaller model, more devices or --config.lever.remat=block"
        self.study.require_fits(f"a batch of {self.step}", self.compiled[self.step], smaller)
        with working(self.study.console, "searching the largest batch: running it"):
            largest = self._prove(predicted)
        ran = [(proof.peak_bytes, proof.measured_bytes) for proof in self.proven]
        errors = [peak / measured - 1 for peak, measured in ran if peak and measured]
        return Search(
            point=self.point.point,
            levers=self.point.levers,
            limit_bytes=self.limit.bytes,
            limit_source=self.limit.source,
            step=self.step,
            predicted=predicted,
            proven=tuple(self.proven),
            tried=tuple(
                CompiledBatch(batch=batch, peak_bytes=memory.peak_bytes, refused=memory.refused)
                for batch, memory in sorted(self.compiled.items())
            ),
            largest=largest,
            error=errors[0] if errors else None,  # of the first that ran: usually the predicted one
        )

    def _prove(self, predicted: int) -> int:
        """Runs the predicted batch, then narrows down to a batch that runs while the next larger one does not.

        Returns the largest that ran. It uses up to MAX_PROOFS processes, and tries at most 1.5 times the prediction.
        """
        low, high = (predicted, None) if self._runs(predicted) else (0, predicted)
        most = predicted + max(self.step, predicted // 2 // self.step * self.step)
        while len(self.proven) < MAX_PROOFS and low < most and (high is None or high - low > self.step):
            if high is None:
                # Above the prediction: one step first, since it is usually exact, then steps that double.
                batch = min(most, low + self.step if low == predicted else 2 * low - predicted + self.step)
            else:
                batch = low + max(self.step, (high - low) // 2 // self.step * self.step)
            if self._runs(batch):
                low = batch
            else:
                high = batch
        return low

    def _runs(self, batch: int) -> bool:
        """Whether a child process takes the batch through a step within the limit."""
        # A new process for each batch: the limit holds for the rest of a process's life, and memory may end it.
        worker = self.study.worker("max_batch", self.point, EXACT_MEMORY)
        try:
            answer = worker.ask(RunWithin(point=self._fields_with_batch(batch), limit_bytes=self.limit.bytes))
            reason, peak_bytes, measured_bytes = self._above(answer), answer.peak_bytes, answer.measured_bytes
        except WorkerError as error:
            known = self.compiled.get(batch)
            reason, peak_bytes, measured_bytes = str(error), known.peak_bytes if known is not None else None, None
        finally:
            worker.close()
        bytes_ = {"peak_bytes": peak_bytes, "measured_bytes": measured_bytes}
        self.proven.append(TriedBatch(batch=batch, ok=not reason, reason=reason, **bytes_))
        return not reason

    def _above(self, answer: Ran) -> str:
        """The reason why a batch that ran does not fit; "" if it fits. A process on a CPU cannot exceed the limit."""
        used, how = answer.measured_bytes, "measured"
        if used is None:
            used, how = answer.peak_bytes, "by the compiler's count, for the device does not say"
        if self.point.platform == "cpu" or used is None or used <= self.limit.bytes:
            return ""
        return f"it ran and used {used:,} bytes ({how}), more than the limit of {self.limit.bytes:,}"

    def _fields_with_batch(self, batch: int) -> Fields:
        return {**dataclasses.asdict(self.point), "global_batch": batch, "point": f"search/{batch}"}


def max_sequence(study: Study) -> Longest:
    """The longest sequence that fits the memory of a device, by device count, from compiling alone.

    A length fits if the memory of the compiled step (`peak_bytes`) is within the limit. It does not fit if the compiler
    runs out of memory. The answer is exact to one part in ``config.search_sharpness``. Raises UserError if the model
    has no sequences, or the length in the config does not fit.
    """
    if not study.config["model"].get(LENGTH):
        raise UserError(f"--config.search=context: this model has no config.model.{LENGTH} of its own; gpt has.")
    by_devices = {point.devices: point for point in reversed(study.points)}  # the first of each
    rows: list[LongestOn] = []
    for devices in sorted(by_devices):
        rows.append(_longest(study, by_devices[devices], fewer=rows[-1].longest if rows else 0))
    return Longest(
        limit_bytes=study.limit.bytes,
        limit_source=study.limit.source,
        sharpness=int(study.config["search_sharpness"]),
        rows=tuple(rows),
    )


def _longest(study: Study, point: Point, *, fewer: int) -> LongestOn:
    """The search on one device count. fewer: the longest sequence on fewer devices, where the search begins."""
    tried: dict[int, int] = {}

    @functools.cache
    def peak_bytes(length: int) -> int:
        # The model is a part of a process's setup, so each length has a process.
        worker = study.with_model(**{LENGTH: length}).worker("max_sequence", point)
        with study.compiling(f"the step of {length} positions", worker) as compiled:
            memory = compiled(point.to_json())
        if length == shortest:
            what = f"a sequence of {length} on {counted(point.devices, 'device')}"
            study.require_fits(what, memory, f"use a smaller --config.model.{LENGTH}")
        return tried.setdefault(length, memory.peak_bytes)

    shortest = first = study.config["model"][LENGTH]
    while 2 * first <= fewer:  # a power of two times the shortest, which divides over the devices as that does
        first *= 2
    with working(study.console, f"searching the longest sequence on {counted(point.devices, 'device')}: compiling"):
        if peak_bytes(first) > study.limit.bytes:
            first = shortest
        longest = largest_within(
            peak_bytes,
            study.limit.bytes,
            first=first,
            step=lambda length: max(2 * point.devices, length // study.config["search_sharpness"]),
        )
    return LongestOn(devices=point.devices, longest=longest, tried=tuple(sorted(tried.items())))


def depths(config: dict[str, Any]) -> list[int]:
    """Reads ``config.depths``. Raises UserError unless it lists numbers of blocks and the model has such a field."""
    words = [word.strip() for word in str(config["depths"]).split(",") if word.strip()]
    if words and DEPTH not in config["model"]:
        raise UserError(f"--config.depths={config['depths']}: this model has no config.model.{DEPTH}; gpt has.")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"--config.depths={config['depths']} is not a list of numbers of blocks such as 4,8,16,32.")
    return sorted({int(word) for word in words})


def memory_by_depth(study: Study) -> Depths:
    """The memory of a step by number of blocks, for each `remat`, from compiling alone on the smallest device count.

    The scratch memory of a step that does not fit the device is None. Raises UserError when a step cannot be compiled
    for another reason.
    """
    fewest = min(point.devices for point in study.points)
    arms = {point.levers["remat"]: point for point in reversed(study.points) if point.devices == fewest}
    rows = []
    for blocks in depths(study.config):
        with working(study.console, f"memory of {blocks} blocks: compiling"):
            # All arms have the same device count, so one process compiles them.
            worker = study.with_model(**{DEPTH: blocks}).worker("memory_by_depth", next(iter(arms.values())))
            with study.compiling(f"the step of {blocks} blocks", worker) as compiled:
                for remat, point in reversed(arms.items()):
                    temp_bytes = compiled(point.to_json()).temp_bytes
                    rows.append(Depth(remat=remat, blocks=blocks, temp_bytes=temp_bytes))
    return Depths(rows=tuple(rows))

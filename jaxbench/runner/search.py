# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The largest batch that fits: found from the compiler's own memory figure, then proven by running it.

A batch is predicted to fit if what the compiled step says it holds (`peak_bytes`) is within the limit. The largest such
batch is bisected without running anything. Then child processes run it and its neighbours for real: one that dies for
want of memory is an answer, as is a compiler that refuses. On a CPU the limit is enforced while a batch runs; elsewhere
one that ran and held more than the limit did not fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.levers.accumulate import ACCUMULATE
from jaxbench.records.store import write_json
from jaxbench.runner import fits
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Point

FILE = "search.json"
CPU_LIMIT_BYTES = 2**30  # a CPU shares its memory with everything else: a limit to try the search with
MOST_PROOFS = 16
HELD = ("peak_bytes", "measured_bytes")  # what a proof says of memory: predicted and measured
# One arena, and every array mapped by itself and given back at once: resident memory then is what the arrays take.
EXACT_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much one device may hold, and who says so."""

    bytes: int
    source: str


def limit(asked: int, machine: dict[str, Any]) -> Limit:
    """The limit of a search. `asked`: ``config.search_bytes``, 0 for the device's own."""
    has = machine.get("device_memory_bytes")
    if asked and not (has and has < asked):  # no setting makes a device larger
        return Limit(bytes=asked, source="config.search_bytes")
    if has:
        return Limit(bytes=has, source="what the device lets JAX use")
    return Limit(bytes=CPU_LIMIT_BYTES, source="1 GiB, because a CPU's memory is not the step's alone")


def largest_fitting(peak: Callable[[int], int], limit_bytes: int, step: int) -> int:
    """The largest multiple of `step` whose `peak` is within the limit, if peak grows with the batch; 0: not even one.

    Doubles until one does not fit, then narrows the gap, guided by the line through its two ends.
    """
    low, high, below = 0, step, 0
    while (above := peak(high)) <= limit_bytes:
        low, below, high = high, above, 2 * high
    while high - low > step:
        share = (limit_bytes - below) / (above - below) if low and above > below else 0.5
        share = fits.share(share, above, limit_bytes)
        guess = low + round(share * (high - low) / step) * step
        middle = min(max(guess, low + step), high - step)
        found = peak(middle)
        if found <= limit_bytes:
            low, below = middle, found
        else:
            high, above = middle, found
    return low


class Search:
    """One search, in the process that asks."""

    def __init__(self, point: Point, *, experiment: str, config: dict[str, Any], limit: Limit, logs: Path):
        self.point, self.limit, self._logs = point, limit, logs
        self._setup = {
            **point.worker()[1], "experiment": experiment, "config": config, "worker": "search",
            "environment": EXACT_MEMORY,
        }  # fmt: skip
        self.step = point.devices * ACCUMULATE.of(point.levers)
        self.tried: dict[int, int] = {}
        self.refused: dict[int, str] = {}  # what the compiler said to some of them
        self.proven: list[dict[str, Any]] = []

    def run(self, console: Console) -> dict[str, Any]:
        """Returns what `search.json` holds. Raises UserError when not even the smallest batch fits or compiles."""
        self._logs.mkdir(exist_ok=True)
        worker = Worker(self._setup, self._logs / "search.log")
        try:
            with console.status("searching the largest batch: compiling"):
                predicted = largest_fitting(lambda batch: self._peak(worker, batch), self.limit.bytes, self.step)
        except WorkerError as error:
            raise UserError(f"the search for the largest batch cannot compile a step: {error}.") from error
        finally:
            worker.close()
        if not predicted and self.step in self.refused:
            raise UserError(
                f"not even a batch of {self.step} fits {self.limit.bytes:,} bytes ({self.limit.source}), its compiler "
                f"says ({self.refused[self.step]}): use a smaller model, more devices or --config.lever.remat=block."
            )
        if not predicted:
            raise UserError(
                f"a batch of {self.step} needs {self.tried[self.step]:,} bytes and the limit is {self.limit.bytes:,} "
                f"({self.limit.source}): give more with --config.search_bytes={2 * self.tried[self.step]}."
            )
        with console.status("searching the largest batch: running it"):
            largest = self._prove(predicted)
        return self._found(predicted, largest)

    def _peak(self, worker: Worker, batch: int) -> int:
        if batch not in self.tried:
            try:
                self.tried[batch] = worker.ask({"do": "compile", "point": self._of(batch)})["peak_bytes"]
            except WorkerError as error:
                if not fits.refused(error):
                    raise
                self.tried[batch], self.refused[batch] = fits.needed_bytes(error, self.limit.bytes), str(error)
        return self.tried[batch]

    def _prove(self, predicted: int) -> int:
        """Runs the predicted batch, then narrows down to one that runs and whose next larger does not.

        Returns the largest that ran. Up to MOST_PROOFS processes are spent on it; the search goes no further above the
        prediction than half of it again.
        """
        low, high = (predicted, None) if self._runs(predicted) else (0, predicted)
        most = predicted + max(self.step, predicted // 2 // self.step * self.step)
        while len(self.proven) < MOST_PROOFS and low < most and (high is None or high - low > self.step):
            if high is None:
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
        worker = Worker(self._setup, self._logs / "search.log")
        found: dict[str, Any] = {"batch": batch, "peak_bytes": self.tried.get(batch), "measured_bytes": None}
        try:
            answer = worker.ask({"do": "prove", "point": self._of(batch), "limit_bytes": self.limit.bytes})
            reason = self._above(answer)
            found |= {"ok": not reason, "reason": reason, **{name: answer[name] for name in HELD}}
        except WorkerError as error:
            found |= {"ok": False, "reason": str(error)}
        finally:
            worker.close()
        self.proven.append(found)
        return bool(found["ok"])

    def _above(self, answer: dict[str, Any]) -> str:
        """Why a batch that ran does not fit all the same; "" where it does. A CPU's process cannot take more."""
        held, how = answer["measured_bytes"], "measured"
        if held is None:
            held, how = answer["peak_bytes"], "by the compiler's count, for the device does not say"
        if self.point.platform == "cpu" or held <= self.limit.bytes:
            return ""
        return f"it ran and held {held:,} bytes ({how}), more than the limit of {self.limit.bytes:,}"

    def _of(self, batch: int) -> dict[str, Any]:
        return {**dataclasses.asdict(self.point), "global_batch": batch, "point": f"search/{batch}"}

    def _found(self, predicted: int, largest: int) -> dict[str, Any]:
        ran = [p for p in self.proven if p["measured_bytes"]]
        error = ran[0]["peak_bytes"] / ran[0]["measured_bytes"] - 1 if ran else None
        return {
            "schema": 1,
            "point": self.point.point,
            "levers": self.point.levers,
            "limit_bytes": self.limit.bytes,
            "limit_source": self.limit.source,
            "step": self.step,
            "tried": [self._compiled(batch) for batch in sorted(self.tried)],
            "predicted": predicted,
            "proven": self.proven,
            "largest": largest,
            "error": error,
        }

    def _compiled(self, batch: int) -> dict[str, Any]:
        found = {"batch": batch, "peak_bytes": self.tried[batch]}
        return found | ({"refused": self.refused[batch]} if batch in self.refused else {})


def run(point: Point, *, experiment: str, config: dict[str, Any], limit: Limit, folder: Path, console: Console) -> None:
    """Searches and writes `search.json`, unless the folder has one."""
    if (folder / FILE).exists():
        return
    search = Search(point, experiment=experiment, config=config, limit=limit, logs=folder / "logs")
    write_json(folder / FILE, search.run(console))

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The largest batch that fits: predicted from the compiler's own memory figure, then proven by running it.

A batch is predicted to fit if the memory of the compiled step (`peak_bytes`) is within the limit. The largest such
batch is found without running anything. Then child processes run it and its neighbours. A process that dies because it
runs out of memory is an answer, and so is a compiler that refuses. On a CPU the limit is enforced while a batch runs.
On other platforms, a batch that ran with more memory than the limit did not fit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxbench.levers.accumulate import ACCUMULATE
from jaxbench.runner.client import WorkerError
from jaxbench.runner.studies.study import Memory, Study, largest_within

FILE = "search.json"
NAME = "max_batch"
MAX_PROOFS = 16
# One arena, and every array mapped separately and returned at once, so that resident memory is that of the arrays.
EXACT_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def asked(config: dict[str, Any]) -> bool:
    """Whether the config wants this study."""
    return bool(config["search"] == "max")


def run(study: Study) -> dict[str, Any]:
    """Searches on the run's first point. Raises UserError when not even the smallest batch fits or compiles."""
    return _Search(study).run()


class _Search:
    def __init__(self, study: Study):
        self.study, self.point, self.limit = study, study.points[0], study.limit
        self.step = self.point.devices * ACCUMULATE.of(self.point.levers)
        self.compiled: dict[int, Memory] = {}
        self.proven: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        worker = self.study.worker(NAME, self.point, EXACT_MEMORY)

        def peak_bytes(batch: int) -> int:
            self.compiled[batch] = compiled(self._of(batch))
            return self.compiled[batch].peak_bytes

        status = self.study.console.status("searching the largest batch: compiling")
        with status, self.study.compiling("a step of the search for the largest batch", worker) as compiled:
            predicted = largest_within(peak_bytes, self.limit.bytes, first=self.step, step=lambda _: self.step)
        smaller = "use a smaller model, more devices or --config.lever.remat=block"
        self.study.require_fits(f"a batch of {self.step}", self.compiled[self.step], smaller)
        with self.study.console.status("searching the largest batch: running it"):
            largest = self._prove(predicted)
        return self._found(predicted, largest)

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
        worker = self.study.worker(NAME, self.point, EXACT_MEMORY)
        known = self.compiled.get(batch)
        proof: dict[str, Any] = {"batch": batch, "peak_bytes": known and known.peak_bytes, "measured_bytes": None}
        try:
            answer = worker.ask({"do": "run_within", "point": self._of(batch), "limit_bytes": self.limit.bytes})
            reason = self._above(answer)
            proof |= {"ok": not reason, "reason": reason, **answer}
        except WorkerError as error:
            proof |= {"ok": False, "reason": str(error)}
        finally:
            worker.close()
        self.proven.append(proof)
        return bool(proof["ok"])

    def _above(self, answer: dict[str, Any]) -> str:
        """The reason why a batch that ran does not fit; "" if it fits. A process on a CPU cannot exceed the limit."""
        used, how = answer["measured_bytes"], "measured"
        if used is None:
            used, how = answer["peak_bytes"], "by the compiler's count, for the device does not say"
        if self.point.platform == "cpu" or used <= self.limit.bytes:
            return ""
        return f"it ran and used {used:,} bytes ({how}), more than the limit of {self.limit.bytes:,}"

    def _of(self, batch: int) -> dict[str, Any]:
        return {**dataclasses.asdict(self.point), "global_batch": batch, "point": f"search/{batch}"}

    def _found(self, predicted: int, largest: int) -> dict[str, Any]:
        ran = [proof for proof in self.proven if proof["measured_bytes"]]
        return {
            "point": self.point.point,
            "levers": self.point.levers,
            "limit_bytes": self.limit.bytes,
            "limit_source": self.limit.source,
            "step": self.step,
            "tried": [
                {"batch": batch, "peak_bytes": memory.peak_bytes}
                | ({"refused": memory.refused} if memory.refused else {})
                for batch, memory in sorted(self.compiled.items())
            ],
            "predicted": predicted,
            "proven": self.proven,
            "largest": largest,
            "error": ran[0]["peak_bytes"] / ran[0]["measured_bytes"] - 1 if ran else None,
        }

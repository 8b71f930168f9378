# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The worker processes of a sweep: which one measures a point, and how one replaces another."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.job import SweepJob
from jaxbench.runner.plan import Placed, groups


def note_workers(run: RunFolder, workers: Workers) -> None:
    """Writes into the manifest what each process has: its CPUs and its variables."""
    manifest = run.manifest()
    write_json(run.path / MANIFEST, {**manifest, "workers": {**manifest.get("workers", {}), **workers.surroundings}})


def kept_in(folder: str) -> dict[str, str]:
    """Variables for JAX's compilation cache, for programs however small."""
    return {
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


class Workers:
    """The worker processes of a sweep, by group; a dead one is restarted."""

    def __init__(self, job: SweepJob, points: Sequence[Placed], *, begun: int = 0):
        """begun: the number of processes that each group has already had."""
        self._job = job
        self._groups = groups(points)
        self._started: Counter[str] = Counter(dict.fromkeys(self._groups, begun))
        self._of = {point: name for name, (members, _) in self._groups.items() for point in members}
        self._keep = begun == 0  # else each group has one process here
        self._workers = {name: self._start(name) for name in self._groups}
        self._lost: set[str] = set()

    def _start(self, name: str, learned: Mapping[str, Any] = MappingProxyType({})) -> Worker:
        logs = self._job.run.path / "logs"
        again = f"#{self._started[name]}" if self._started[name] else ""
        self._started[name] += 1
        setup = self._groups[name][1]
        if again and self._keep and setup["platform"] == "cpu" and not self._job.crew:  # other hosts lack the folder
            setup = {**setup, "environment": {**setup.get("environment", {}), **self._compiled()}}
        setup = {
            **setup,
            **learned,
            "experiment": self._job.experiment,
            "config": self._job.config,
            "order": list(self._job.order),
            "worker": f"session{self._job.session}/{name}{again}",
            **({"source": self._job.source} if self._job.source else {}),
        }
        return Worker(setup, logs / f"{name}.log", self._job.crew)

    @property
    def _cache(self) -> Path:
        return self._job.run.path.resolve() / "compiled"

    def _compiled(self) -> dict[str, str]:
        """The variables with which a process keeps what it compiles for those after it.

        Not for the first of a group: its compile times are recorded. Not on accelerators, whose compilers try variants:
        there another choice is part of how processes differ.
        """
        return {name: os.environ.get(name, value) for name, value in kept_in(str(self._cache)).items()}

    def wait_ready(self) -> None:
        """Waits until all workers have started: a starting one takes cores from the first that compiles."""
        for worker in self._workers.values():
            worker.wait_ready()

    @property
    def surroundings(self) -> dict[str, dict[str, Any]]:
        """The CPUs and variables of each process, by the name that records give it."""
        return {worker.name: worker.surroundings for worker in self._workers.values()}

    def name(self, point: str) -> str:
        """Of the process that measures a point, as records give it."""
        return self._workers[self._of[point]].name

    def renew(self, points: Iterable[str]) -> None:
        """Replaces the processes that measure these points, which discards all that they have prepared."""
        names = sorted({self._of[point] for point in points})
        for name in names:
            self._workers[name].close()
            self._workers[name] = self._start(name, self._workers[name].learned)
        self.wait_ready()

    def send_ahead(self, point: str, request: dict[str, Any]) -> None:
        """Lets the process of a point begin with what `ask` is about to ask of it."""
        self._workers[self._of[point]].send_ahead(request)

    def ask(self, point: str, request: dict[str, Any]) -> dict[str, Any]:
        """Raises WorkerError; if the worker died, a new one is started for the group's other points."""
        name = self._of[point]
        worker, restarts = self._workers[name], self._workers[name].restarts
        try:
            return worker.ask(request)
        except WorkerError as error:
            if not error.alive or error.stage in ("start", "model"):
                worker.close()
                self._workers[name] = self._start(name)
                self._lose(point)
            raise
        finally:
            if worker.restarts > restarts:
                self._lose(point)

    def lost(self) -> set[str]:
        """The points whose preparation was lost with a process since the last call."""
        lost, self._lost = self._lost, set()
        return lost

    def _lose(self, point: str) -> None:
        """The process that was working on this point is gone, and with it the group's other points."""
        self._lost.update(other for other in self._groups[self._of[point]][0] if other != point)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets the workers finish; after an exception, such as an interrupt, kills them."""
        for worker in self._workers.values():
            worker.close() if kind is None else worker.kill()
        shutil.rmtree(self._cache, ignore_errors=True)

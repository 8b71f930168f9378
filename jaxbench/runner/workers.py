# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The worker processes of a sweep: sets of them that take turns, and how one process replaces another."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from jaxbench.measure import memory
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner.job import SweepJob
from jaxbench.runner.plan import Placed, groups

PROCESS_BYTES = 4.2e8  # of one that waits, before it has a model
SHARE = 0.5  # of the memory that is free, for all sets


def note_workers(run: RunFolder, sets: Sequence[Workers]) -> None:
    """Writes into the manifest what each process has: its CPUs and its variables; and how many sets there were."""
    manifest = run.manifest()
    about = {name: each for workers in sets for name, each in workers.surroundings.items()}
    if "plan" in manifest:
        most = max(workers.number for workers in sets) + 1
        manifest["plan"]["sets"] = max(most, manifest["plan"].get("sets", 1))
    write_json(run.path / MANIFEST, {**manifest, "workers": {**manifest.get("workers", {}), **about}})


def kept_in(folder: str) -> dict[str, str]:
    """Variables for JAX's compilation cache, for programs however small."""
    return {
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def processes_of(points: Sequence[Placed]) -> int:
    """How many processes a set has."""
    return sum(setup.get("processes", setup.get("trainings", 1)) for _, setup in groups(points).values())


def affordable(asked: int, points: Sequence[Placed], memory_bytes: float) -> int:
    """How many sets may live at the same time, at most `asked`. memory_bytes: of the machine."""
    free = min(memory.available(), memory_bytes)
    return max(1, min(asked, int(min(1e6, SHARE * free / (PROCESS_BYTES * processes_of(points))))))


class Workers:
    """A set of worker processes, one for each group of points; a dead one is replaced.

    Attributes:
      ready: the points that its processes have prepared, which whoever asks them adds.
    """

    def __init__(
        self,
        job: SweepJob,
        points: Sequence[Placed],
        *,
        number: int = 0,
        cache: Path | None = None,
        learned: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    ):
        """number: of the set, which the names of its processes carry. cache: the folder in which they keep what they
        compile for each other; None: each compiles for itself. learned: as another set has `learned` it."""
        self._job, self.number, self._cache = job, number, cache
        self._groups = groups(points)
        self._of = {point: name for name, (members, _) in self._groups.items() for point in members}
        self._died: Counter[str] = Counter()
        self._workers = {name: self._start(name, learned.get(name, {})) for name in self._groups}
        self.ready: set[str] = set()

    def _start(self, name: str, learned: Mapping[str, Any] = MappingProxyType({})) -> Worker:
        again = f"#{self.number}" if self.number or self._died[name] else ""
        log = self._job.run.path / "logs" / f"{name}{again}.log"
        again += f".{self._died[name]}" if self._died[name] else ""
        setup = self._groups[name][1]
        if self._cache is not None and setup["platform"] == "cpu":
            setup = {**setup, "environment": {**setup.get("environment", {}), **self._compiled(self._cache)}}
        setup = {
            **setup,
            **learned,
            "experiment": self._job.experiment,
            "config": self._job.config,
            "order": list(self._job.order),
            "worker": f"session{self._job.session}/{name}{again}",
            **({"source": self._job.source} if self._job.source else {}),
        }
        return Worker(setup, log, self._job.followers)

    def _compiled(self, folder: Path) -> dict[str, str]:
        """The variables with which a process loads what another has compiled.

        Not on accelerators: their compilers try variants, and another choice is part of how processes differ.
        """
        return {name: os.environ.get(name, value) for name, value in kept_in(str(folder.resolve())).items()}

    def wait_ready(self) -> None:
        """Waits until all workers have started."""
        for worker in self._workers.values():
            worker.wait_ready()

    @property
    def surroundings(self) -> dict[str, dict[str, Any]]:
        """The CPUs and variables of each process, by the name that records give it."""
        return {worker.name: worker.surroundings for worker in self._workers.values()}

    @property
    def learned(self) -> dict[str, dict[str, Any]]:
        """What its processes found out themselves, by group, for those of another set."""
        return {name: worker.learned for name, worker in self._workers.items()}

    @property
    def bytes(self) -> float:
        """The memory that its processes on this machine hold, as far as the system says."""
        files = [Path(f"/proc/{pid}/status") for worker in self._workers.values() for pid in worker.pids if pid]
        texts = [file.read_text() for file in files if file.exists()]
        return 1024.0 * sum(int(kib) for text in texts for kib in re.findall(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE))

    def name(self, point: str) -> str:
        """Of the process that measures a point, as records give it."""
        return self._workers[self._of[point]].name

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
                self._died[name] += 1
                self._workers[name] = self._start(name)
                self.ready -= set(self._groups[name][0])
            raise
        finally:
            if worker.restarts > restarts:
                self.ready -= set(self._groups[name][0])

    def close(self) -> None:
        """Lets the workers finish."""
        for worker in self._workers.values():
            worker.let_go()
        for worker in self._workers.values():
            worker.close()

    def kill(self) -> None:
        for worker in self._workers.values():
            worker.kill()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets the workers finish; after an exception, such as an interrupt, kills them."""
        self.close() if kind is None else self.kill()

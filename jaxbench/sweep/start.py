# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One start of a run: where its processes keep compiled programs, and what preparing has cost it."""

from __future__ import annotations

import datetime
import functools
import shutil
import time
from pathlib import Path

from jaxbench.config import FRESH
from jaxbench.machine import program_cache
from jaxbench.machine.program_cache import ProgramCache
from jaxbench.processes.client import Spend
from jaxbench.records.manifest import Machine, Preparation
from jaxbench.records.preparation import Ledger
from jaxbench.sweep.job import SweepJob

FOLDER = "compiled"  # of a run with no lasting cache, until it ends: the sets of a CPU share it
ASKED = "Compiled programs are not kept, because --config.measure.compile=fresh asks for new ones."


def programs_of(compile_: str, machine: Machine) -> tuple[ProgramCache | None, str]:
    """(the cache of a run, ""), or (None, a sentence that says why there is none). compile_: `measure.compile`."""
    return (None, ASKED) if compile_ == FRESH else program_cache.opened(machine)


class Start:
    """What one start keeps and counts. ledger: what preparing has cost so far."""

    def __init__(self, job: SweepJob):
        self._job, self.ledger = job, Ledger()
        self._started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._parts: set[Path] = set()

    def variables(self, number: int) -> dict[str, str]:
        """The variables that say where the processes of a set keep compiled programs. Raises OSError."""
        if self._job.programs is None:
            folder = self._compiled_folder.resolve() if self._job.live else None
            if folder is not None and self._job.not_kept == ASKED:  # each set compiles, and its own processes share
                folder = folder / f"set{number}"
            return program_cache.variables(folder)
        part = self._job.programs.begin(number)
        self._parts.add(part)
        return program_cache.variables(part)

    @property
    def _compiled_folder(self) -> Path:
        return self._job.run.path / FOLDER

    def spend(self, number: int) -> Spend:
        """What the processes of a set tell of what they spend."""
        return functools.partial(self.ledger.add, number)

    def preparation(self) -> Preparation:
        """The ledger so far, for the manifest."""
        total_s = time.monotonic() - self._job.begun_s
        return self.ledger.to_json(started=self._started, total_s=total_s, note=self._job.not_kept)

    def close(self) -> str:
        """Removes what could not be written to its end and what is too much, once the processes have ended.

        Returns a sentence if a program was lost.
        """
        shutil.rmtree(self._compiled_folder, ignore_errors=True)
        if self._job.programs is None:
            return ""
        cut_off = sum(program_cache.seal(part) for part in self._parts)
        program_cache.evict(self._job.programs.root, self._job.programs.limit_bytes)
        return f"{cut_off} compiled programs could not be kept: the disk may be full." if cut_off else ""

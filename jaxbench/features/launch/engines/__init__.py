# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The engines that start jobs: one file each, found by its name.

A file has `OPTIONS`, a description of --options; `check(job)`, which raises UserError for illegal options; `text(job)`,
the exact text that would be submitted, for --dry_run; `require_here()`, which raises UserError if the cluster or an
optional package is missing; and `submit(job) -> Submitted`.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from rich.console import Console

from jaxbench.analysis import launched
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.launch.job import Job


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> ModuleType:
    """The module of an engine. Raises UserError for an engine that does not exist."""
    if name not in names():
        raise UserError(f"there is no engine '{name}' to launch with: {did_you_mean(name, names())}")
    return importlib.import_module(f"{__name__}.{name}")


def submit(name: str, command: Sequence[str], jobs: Sequence[Job], workdir: Path, console: Console) -> int | None:
    """Submits every job. Returns the largest exit code if they were run here, None if they are still to run.

    Raises UserError if the engine is missing, or refuses a job. Jobs that were submitted before it stay submitted.
    """
    engine, codes = load(name), []
    engine.require_here()  # before any job is noted
    for job in jobs:
        # Noted before it is submitted: a process of the job may begin before `submit` returns.
        about = launched.Job(folder=job.folder.name, nodes=job.nodes, text=job.text, id="")
        launched.note(workdir, name, command, about)
        try:
            done = engine.submit(job)
        except UserError:
            launched.forget(workdir, job.folder.name)
            raise
        launched.note(workdir, name, command, dataclasses.replace(about, id=done.id))
        console.print(f"{job.text}: {done.sentence}", highlight=False, soft_wrap=True)
        codes += [] if done.code is None else [done.code]
    return max(codes, default=None)

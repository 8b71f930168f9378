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
from types import ModuleType

from rich.console import Console

from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.launch.job import LaunchRequest
from jaxbench.records import launched


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> ModuleType:
    """The module of an engine. Raises UserError for an engine that does not exist."""
    if name not in names():
        raise UserError(f"there is no engine '{name}' to launch with: {did_you_mean(name, names())}")
    return importlib.import_module(f"{__name__}.{name}")


def require(request: LaunchRequest) -> None:
    """Raises UserError for an unknown engine, an illegal flag or an illegal option."""
    engine = load(request.engine)
    for job in request.jobs():
        engine.check(job)


def show(request: LaunchRequest, console: Console) -> None:
    """Prints exactly what would be submitted. Raises UserError."""
    engine = load(request.engine)
    for job in request.jobs():
        console.out(f"# {job.text}\n{engine.text(job)}\n", highlight=False)


def submit(request: LaunchRequest, console: Console) -> int | None:
    """Submits every job. Returns the largest exit code if they were run here, None if they are still to run.

    Raises UserError if the engine is missing, or refuses a job. Jobs that were submitted before it stay submitted.
    """
    engine, codes = load(request.engine), []
    engine.require_here()
    for job in request.jobs():
        about = launched.Job(folder=job.folder.name, nodes=job.nodes, text=job.text, id="")
        launched.note(request.workdir, request.engine, request.command, about)
        try:
            done = engine.submit(job)
        except UserError:
            launched.forget(request.workdir, job.folder.name)
            raise
        launched.note(request.workdir, request.engine, request.command, dataclasses.replace(about, id=done.id))
        console.print(f"{job.text}: {done.sentence}", highlight=False, soft_wrap=True)
        codes += [] if done.code is None else [done.code]
    return max(codes, default=None)

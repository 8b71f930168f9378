# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Submits the jobs of a request to its engine, and records them in the folder of the run."""

from __future__ import annotations

import dataclasses

from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.launch import engines
from jaxbench.launch.request import LaunchRequest
from jaxbench.records import launched


def require(request: LaunchRequest) -> None:
    """Raises UserError for an unknown engine, an illegal flag or an illegal option."""
    engine = engines.load(request.engine)
    for job in request.jobs():
        engine.check(job)


def show(request: LaunchRequest, console: Console) -> None:
    """Prints exactly what would be submitted. Raises UserError."""
    engine = engines.load(request.engine)
    for job in request.jobs():
        console.out(f"# {job.text}\n{engine.text(job)}\n", highlight=False)


def submit(request: LaunchRequest, console: Console) -> int | None:
    """Submits every job. Returns the largest exit code if they were run here, None if they are still to run.

    Raises UserError if the engine is missing, or refuses a job. Jobs that were submitted before it stay submitted.
    """
    engine, codes = engines.load(request.engine), []
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

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A run that was launched as several jobs: a folder with one run folder per job, which `gather` merges into one run.

A run folder belongs to one process at a time and to one machine, so each job has its own, and concurrent jobs never
write the same file. `gather` may be called at any time: it merges the records so far.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jaxbench.core.schema import Record
from jaxbench.core.store import (
    CONFIG,
    LAUNCH,
    MANIFEST,
    RECORDS,
    RunFolder,
    chained,
    read_json,
    write_atomic,
    write_json,
)
from jaxbench.errors import UserError
from jaxbench.records import identity
from jaxbench.records.documents import decode, flatten
from jaxbench.records.manifest import Manifest, Plan

DEVICES = "mesh.devices"  # the only field in which the configs of jobs may differ
SESSIONS = 1000  # the offset between the session numbers of two jobs, so that no session spans two jobs


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job with its own run folder.

    Attributes:
      folder: its run folder, within the workdir.
      nodes: how many nodes it uses.
      text: a description for people.
      id: its id in the queue; "" before the engine has accepted it.
    """

    folder: str
    nodes: int
    text: str
    id: str


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The jobs of one command, by the number of their nodes."""

    engine: str
    command: tuple[str, ...]
    jobs: tuple[Job, ...] = ()
    schema: int = 1


def note(workdir: Path, engine: str, command: Sequence[str], job: Job) -> None:
    """Adds a job to the list in `workdir`. It replaces an earlier job with the same run folder.

    Raises UserError if the folder has jobs of another command.
    """
    launch = Launch(engine=engine, command=tuple(command))
    before = read(workdir) if is_launched(workdir) else launch
    if before.command != launch.command:
        raise UserError(
            f"'{workdir}' has jobs of another command ({' '.join(before.command)}): choose a new --workdir."
        )
    if not is_launched(workdir) and (workdir / CONFIG).exists():
        raise UserError(f"'{workdir}' is the folder of a run that was not launched: choose a new --workdir.")
    jobs = {each.folder: each for each in (*before.jobs, job)}.values()
    workdir.mkdir(parents=True, exist_ok=True)
    _write(workdir, dataclasses.replace(launch, jobs=tuple(sorted(jobs, key=lambda each: each.nodes))))


def forget(workdir: Path, folder: str) -> None:
    """Removes a job that the engine refused from the list. Without any job left, the list itself is deleted."""
    about = read(workdir)
    if jobs := [job for job in about.jobs if job.folder != folder]:
        _write(workdir, dataclasses.replace(about, jobs=tuple(jobs)))
    else:
        (workdir / LAUNCH).unlink()


def begun(workdir: Path) -> bool:
    """Whether a job has begun to measure."""
    return any((workdir / job.folder / MANIFEST).exists() for job in read(workdir).jobs)


def is_launched(workdir: Path) -> bool:
    return (workdir / LAUNCH).exists()


def read(workdir: Path) -> Launch:
    """The list of jobs. Raises UserError if the file is damaged."""
    return read_json(workdir / LAUNCH, partial(decode, Launch), "restore it, or launch again in a new --workdir.")


def _write(workdir: Path, launch: Launch) -> None:
    write_json(workdir / LAUNCH, dataclasses.asdict(launch))


def gather(workdir: Path) -> None:
    """Makes `workdir` a run folder with all records of its jobs so far. Its manifest lists the jobs that wait.

    Raises UserError if no job has begun, if the job is a training, or if records are damaged or of different configs.
    """
    about = read(workdir)
    if about.command[:1] == ("train",):
        raise UserError(f"the job in '{workdir}' is a training: its page is in {about.jobs[0].folder}.")
    begun = [job for job in about.jobs if (workdir / job.folder / MANIFEST).exists()]
    waiting = [
        f"{job.text}: {f'{about.engine} job {job.id} has not begun' if job.id else 'not begun'}."
        for job in about.jobs if job not in begun
    ]  # fmt: skip
    if not begun:
        raise UserError(f"no job of '{workdir}' has begun: {' '.join(waiting)}")
    parts = [RunFolder(workdir / job.folder) for job in begun]
    first = [job.nodes * SESSIONS for job in begun]
    config, manifest = _config(parts), _manifest(parts, first)
    # Rounds of two jobs share no drift, so each job keeps sessions of its own.
    records = [
        _moved_record(each, session) for part, session in zip(parts, first, strict=True) for each in part.records()
    ]
    write_json(workdir / CONFIG, config)
    write_json(workdir / MANIFEST, {**manifest, "waiting": waiting})
    write_atomic(workdir / RECORDS, chained(records, config))


def _config(parts: Sequence[RunFolder]) -> dict[str, Any]:
    """The first job's config, with the device counts of all jobs. Raises UserError if another setting differs."""
    configs = [part.config() for part in parts]
    first = flatten(configs[0])
    for part, other in zip(parts, map(flatten, configs), strict=True):
        names = (name for name in first.keys() | other.keys() if not name.startswith(("report.", DEVICES)))
        if differing := sorted(name for name in names if first.get(name) != other.get(name)):
            raise UserError(f"'{part.path}' and '{parts[0].path}' have different configs ({', '.join(differing)}).")
    counts = ",".join(str(flatten(config).get(DEVICES, "")) for config in configs)
    return {**configs[0], "mesh": {**configs[0].get("mesh", {}), "devices": counts}}


def _manifest(parts: Sequence[RunFolder], first: Sequence[int]) -> Manifest:
    """The first job's manifest, with the plans and workers of all jobs, and the differences between their machines."""
    manifests = [part.manifest() for part in parts]
    plans = [manifest.get("plan", {}) for manifest in manifests]
    points = {point["point"]: point for plan in plans for point in plan.get("points", ())}
    workers = {
        _moved(name, session): about
        for manifest, session in zip(manifests, first, strict=True)
        for name, about in manifest.get("workers", {}).items()
    }
    apart = []
    for part, manifest in zip(parts[1:], manifests[1:], strict=True):
        found = identity.differences(manifests[0], manifest)
        found.pop("devices", None)  # jobs are meant to differ in this
        if found:
            differing = "; ".join(f"{identity.FACTS[name]} {a!r} and {b!r}" for name, (a, b) in found.items())
            apart.append(f"{parts[0].path.name} and {part.path.name}: {differing}.")
    # Each job has planned its own device count; together they are the plan of one run.
    plan: Plan = {
        **plans[0],
        "points": [*points.values()],
        "processes": max(int(each.get("processes", 1)) for each in plans),
    }
    return {**manifests[0], "plan": plan, "workers": workers, "apart": apart}


def _moved_record(record: Record, session: int) -> Record:
    """The record with a session number that no other job uses."""
    names = {name: _moved(getattr(record, name), session) for name in ("worker", "checked_by") if hasattr(record, name)}
    return dataclasses.replace(record, **names)  # type: ignore[arg-type]


def _moved(worker: str, first: int) -> str:
    """The worker's name with its session number moved: "session1/cpu2" -> "session2001/cpu2" for first=2000."""
    return re.sub(r"^session(\d+)", lambda match: f"session{first + int(match[1])}", worker)

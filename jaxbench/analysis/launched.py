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

from jaxbench.core import store
from jaxbench.core.schema import Record
from jaxbench.core.store import CONFIG, LAUNCH, MANIFEST, RECORDS, RunFolder, write_json, write_manifest
from jaxbench.errors import UserError
from jaxbench.records import identity, reading
from jaxbench.records.documents import decode, flatten
from jaxbench.records.manifest import Manifest, Plan

DEVICES = "mesh.devices"  # the only field in which the configs of jobs may differ
SAID = "jaxbench: "  # how the sentence of an error begins in a log
SESSIONS = 1000  # the offset between the session numbers of two jobs, so that no session spans two jobs


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job with its own run folder."""

    folder: str  # its run folder, within the workdir
    nodes: int  # how many it uses
    text: str  # a description for people
    id: str  # in the queue; "" before the engine has accepted it


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
    before = read(workdir) if is_launched(workdir) else launch  # each call of a command adds its jobs one by one
    if before.command != launch.command:
        raise UserError(
            f"'{workdir}' has jobs of another command ({' '.join(before.command)}): choose a new --workdir."
        )
    if not is_launched(workdir) and (workdir / CONFIG).exists():
        raise UserError(f"'{workdir}' is the folder of a run that was not launched: choose a new --workdir.")
    jobs = {each.folder: each for each in (*before.jobs, job)}.values()  # the new one in place of the old one
    workdir.mkdir(parents=True, exist_ok=True)
    _write_launch(workdir, dataclasses.replace(launch, jobs=tuple(sorted(jobs, key=lambda each: each.nodes))))


def forget(workdir: Path, folder: str) -> None:
    """Removes a job that the engine refused from the list. Without any job left, the list itself is deleted."""
    launch = read(workdir)
    if jobs := [job for job in launch.jobs if job.folder != folder]:
        _write_launch(workdir, dataclasses.replace(launch, jobs=tuple(jobs)))
    else:
        (workdir / LAUNCH).unlink()


def begun(workdir: Path) -> bool:
    """Whether a job has begun to measure."""
    return any((workdir / job.folder / MANIFEST).exists() for job in read(workdir).jobs)


def is_launched(workdir: Path) -> bool:
    return (workdir / LAUNCH).exists()


def read(workdir: Path) -> Launch:
    """The list of jobs. Raises UserError if the file is damaged."""
    advice = "restore it, or launch again in a new --workdir."
    return reading.read_json(workdir / LAUNCH, partial(decode, Launch), advice)


def _write_launch(workdir: Path, launch: Launch) -> None:
    write_json(workdir / LAUNCH, dataclasses.asdict(launch))


def gather(workdir: Path) -> None:
    """Makes `workdir` a run folder with all records of its jobs so far. Its manifest lists the jobs that wait.

    Raises UserError if no job has begun, if the job is a training, or if records are damaged or of different configs.
    """
    launch = read(workdir)
    if launch.command[:1] == ("train",):
        raise UserError(f"the job in '{workdir}' is a training: its page is in {launch.jobs[0].folder}.")
    if launch.command[:1] == ("accept",):
        raise UserError(f"the job in '{workdir}' is an acceptance test: its page is in {launch.jobs[0].folder}.")
    begun = [job for job in launch.jobs if (workdir / job.folder / MANIFEST).exists()]
    waiting = [f"{job.text}: {_state(workdir, launch.engine, job)}." for job in launch.jobs if job not in begun]
    if not begun:
        raise UserError(f"no job of '{workdir}' has measured yet: {' '.join(waiting)}")
    parts = [RunFolder(workdir / job.folder) for job in begun]
    first = [job.nodes * SESSIONS for job in begun]  # of its nodes, and not of its place: more jobs may begin later
    config, manifest = _config(parts), _manifest(parts, first)
    # Rounds of two jobs share no drift, so each job keeps sessions of its own.
    of_parts = zip(parts, first, strict=True)
    records = [_moved_record(record, session) for part, session in of_parts for record in part.records()]
    write_json(workdir / CONFIG, config)
    write_manifest(workdir, {**manifest, "waiting": waiting})
    store.write_atomic(workdir / RECORDS, store.chained(records, config))  # new hashes: the lines before differ


def _state(workdir: Path, engine: str, job: Job) -> str:
    """What became of a job without a manifest, as a clause."""
    if not job.id:
        return "not begun"
    # A task of Slurm leaves its result when it ends, which is never opened here: it is a pickle.
    if not any((workdir / engine).glob(f"{job.id}_*_result.pkl")):
        return f"{engine} job {job.id} has not begun"
    ended = f"{engine} job {job.id} ended before it measured"
    for log in sorted((workdir / engine).glob(f"{job.id}_*_log.err")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(SAID):
                return f"{ended}, because {line.removeprefix(SAID).strip().rstrip('.')}"
    return f"{ended}: see '{workdir / engine}'"


def _config(parts: Sequence[RunFolder]) -> dict[str, Any]:
    """The first job's config, with the device counts of all jobs. Raises UserError if another setting differs."""
    configs = [part.config() for part in parts]
    first = flatten(configs[0])
    for part, other in zip(parts, map(flatten, configs), strict=True):
        # How a report looks changes no number.
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
        _moved(name, session): surroundings
        for manifest, session in zip(manifests, first, strict=True)
        for name, surroundings in manifest.get("workers", {}).items()
    }
    apart = []
    for part, manifest in zip(parts[1:], manifests[1:], strict=True):
        found = identity.differences(manifests[0], manifest)
        found.pop("devices", None)  # jobs are meant to differ in this
        if found:
            differing = "; ".join(f"{identity.FACTS[name]} {a!r} and {b!r}" for name, (a, b) in found.items())
            apart.append(f"{parts[0].path.name} and {part.path.name}: {differing}.")
        if identity.other_speed(manifests[0], manifest):
            (speed, *_) = identity.cautions(manifests[0], manifest, f"in {parts[0].path.name}", f"in {part.path.name}")
            apart.append(f"{speed[:1].upper()}{speed[1:]}.")
    # Each job has planned its own device count; together they are the plan of one run.
    processes = max(int(each.get("processes", 1)) for each in plans)
    plan: Plan = {**plans[0], "points": [*points.values()], "processes": processes}
    return {**manifests[0], "plan": plan, "workers": workers, "apart": apart}


def _moved_record(record: Record, session: int) -> Record:
    """The record with a session number that no other job uses."""
    names = {name: _moved(getattr(record, name), session) for name in ("worker", "checked_by") if hasattr(record, name)}
    return dataclasses.replace(record, **names)  # type: ignore[arg-type]


def _moved(worker: str, first: int) -> str:
    """The worker's name with its session number moved: "session1/cpu2" -> "session2001/cpu2" for first=2000."""
    return re.sub(r"^session(\d+)", lambda match: f"session{first + int(match[1])}", worker)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A run that was launched as several jobs: a folder with one run folder per job, which `gather` merges into one run.

A run folder belongs to one process at a time and to one machine, so each job has its own. Jobs that run at the same
time never write the same file. `gather` may be called at any time: it merges the records so far.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records import identity
from jaxbench.records.store import CONFIG, LAUNCH, MANIFEST, RECORDS, RunFolder, flatten, write_atomic, write_json

DEVICES = "mesh.devices"  # the only field in which the configs of jobs may differ
SESSIONS = 1000  # the offset between the session numbers of two jobs, so that no session spans two jobs


def note(workdir: Path, engine: str, command: Sequence[str], job: dict[str, Any]) -> None:
    """Adds a job to the list in `workdir`. It replaces an earlier job with the same run folder.

    job: its "folder" within the workdir, its "nodes", a "text" for people and its "id" in the queue.

    Raises UserError if the folder has jobs of another command, or cannot be written.
    """
    before = read(workdir) if is_launched(workdir) else {"command": [*command], "jobs": []}
    if before["command"] != [*command]:
        raise UserError(
            f"'{workdir}' has jobs of another command ({' '.join(before['command'])}): choose a new --workdir."
        )
    if not is_launched(workdir) and (workdir / CONFIG).exists():
        raise UserError(f"'{workdir}' is the folder of a run that was not launched: choose a new --workdir.")
    kept = {each["folder"]: each for each in (*before["jobs"], job)}
    listed = sorted(kept.values(), key=lambda each: int(each["nodes"]))
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        write_json(workdir / LAUNCH, {"schema": 1, "engine": engine, "command": [*command], "jobs": listed})
    except OSError as error:
        raise UserError(f"cannot write to '{workdir}' ({error.strerror}): choose another --workdir.") from error


def forget(workdir: Path, folder: str) -> None:
    """Removes a job that the engine refused from the list. Without any job left, the list itself is deleted."""
    about = json.loads((workdir / LAUNCH).read_text(encoding="utf-8"))
    if jobs := [job for job in about["jobs"] if job["folder"] != folder]:
        write_json(workdir / LAUNCH, {**about, "jobs": jobs})
    else:
        (workdir / LAUNCH).unlink()


def begun(workdir: Path) -> bool:
    """Whether a job has begun to measure."""
    return any((workdir / job["folder"] / MANIFEST).exists() for job in read(workdir)["jobs"])


def is_launched(workdir: Path) -> bool:
    return (workdir / LAUNCH).exists()


def read(workdir: Path) -> dict[str, Any]:
    """The list of jobs: "engine", "command" and "jobs". Raises UserError if the file is damaged."""
    path = workdir / LAUNCH
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        jobs = [{name: job[name] for name in ("folder", "nodes", "text", "id")} for job in value["jobs"]]
        return {"engine": str(value["engine"]), "command": [*value["command"]], "jobs": jobs}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r}).") from error


def gather(workdir: Path) -> None:
    """Makes `workdir` a run folder with all records of its jobs so far. Its manifest lists the jobs that wait.

    Raises UserError if no job has begun, if the job is a training, or if records are damaged or of different configs.
    """
    about = read(workdir)
    if about["command"][:1] == ["train"]:
        raise UserError(f"the job in '{workdir}' is a training: its page is in {about['jobs'][0]['folder']}.")
    begun = [job for job in about["jobs"] if (workdir / job["folder"] / MANIFEST).exists()]
    waiting = [f"{job['text']}: {_queued(about['engine'], job)}." for job in about["jobs"] if job not in begun]
    if not begun:
        raise UserError(f"no job of '{workdir}' has begun: {' '.join(waiting)}")
    parts = [RunFolder(workdir / job["folder"]) for job in begun]
    first = [int(job["nodes"]) * SESSIONS for job in begun]
    config, manifest = _config(parts), _manifest(parts, first)
    lines = [line for part, session in zip(parts, first, strict=True) for line in _lines(part, session)]
    write_json(workdir / CONFIG, config)
    write_json(workdir / MANIFEST, {**manifest, "waiting": waiting})
    write_atomic(workdir / RECORDS, "".join(lines))


def _queued(engine: str, job: dict[str, Any]) -> str:
    return f"{engine} job {job['id']} has not begun" if job["id"] else "not begun"


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


def _manifest(parts: Sequence[RunFolder], first: Sequence[int]) -> dict[str, Any]:
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
            apart.append(f"{parts[0].path.name} and {part.path.name}: {_differing(found)}.")
    plan = {**plans[0], "points": [*points.values()], "processes": max(int(each.get("processes", 1)) for each in plans)}
    return {**manifests[0], "plan": plan, "workers": workers, "apart": apart}


def _differing(found: identity.Differences) -> str:
    return "; ".join(f"{identity.FACTS[name]} {a!r} and {b!r}" for name, (a, b) in found.items())


def _lines(part: RunFolder, session: int) -> list[str]:
    """The complete lines of a job's records, with session numbers that no other job uses."""
    path = part.path / RECORDS
    if not path.exists():
        return []
    moved = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):  # the job is still writing this line
            break
        try:
            record = json.loads(line)
            names = {name: _moved(record[name], session) for name in ("worker", "checked_by") if record.get(name)}
            moved.append(json.dumps({**record, **names}, separators=(",", ":"), allow_nan=False) + "\n")
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{path}, line {number} is damaged ({error}): restore or delete that line.") from error
    return moved


def _moved(worker: str, first: int) -> str:
    """The worker's name with its session number moved: "session1/cpu2" -> "session2001/cpu2" for first=2000."""
    return re.sub(r"^session(\d+)", lambda match: f"session{first + int(match[1])}", worker)

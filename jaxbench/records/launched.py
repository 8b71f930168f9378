# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A run that was launched as several jobs: a folder with one run folder for each job, and these gathered into one.

Each job has a run folder of its own, because a run folder belongs to one process at a time and to one machine. So jobs
that run at the same time never write the same file. `gather` makes one run of what they have recorded so far.
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

DEVICES = "mesh.devices"  # the one field in which the configs of jobs differ
SESSIONS = 1000  # of one job: the sessions of the next are counted from there, because nothing of two jobs is at once


def note(workdir: Path, engine: str, command: Sequence[str], job: dict[str, Any]) -> None:
    """Writes that a job adds to a folder. It replaces a job that was launched before into the same folder of a run.

    job: its "folder" within the workdir, "nodes", "text" for people and "id" in the queue.

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
    """Takes a job off the list, which the engine refused; with the last one the list itself."""
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
    """Raises UserError if it is damaged."""
    path = workdir / LAUNCH
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        jobs = [{name: job[name] for name in ("folder", "nodes", "text", "id")} for job in value["jobs"]]
        return {"engine": str(value["engine"]), "command": [*value["command"]], "jobs": jobs}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r}).") from error


def gather(workdir: Path) -> None:
    """Makes `workdir` a run folder with all that its jobs have recorded. What has not begun is in its manifest.

    Raises UserError if no job has begun, the jobs trained, or what they recorded is damaged or of different configs.
    """
    about = read(workdir)
    if about["command"][:1] == ["train"]:
        raise UserError(f"the job in '{workdir}' is a training, whose page lies in {about['jobs'][0]['folder']}.")
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
    """The first, with the device counts of all. Raises UserError if they differ in more."""
    configs = [part.config() for part in parts]
    first = flatten(configs[0])
    for part, other in zip(parts, map(flatten, configs), strict=True):
        names = (name for name in first.keys() | other.keys() if not name.startswith(("report.", DEVICES)))
        if differing := sorted(name for name in names if first.get(name) != other.get(name)):
            raise UserError(f"'{part.path}' and '{parts[0].path}' have different configs ({', '.join(differing)}).")
    counts = ",".join(str(flatten(config).get(DEVICES, "")) for config in configs)
    return {**configs[0], "mesh": {**configs[0].get("mesh", {}), "devices": counts}}


def _manifest(parts: Sequence[RunFolder], first: Sequence[int]) -> dict[str, Any]:
    """That of the first job, with the plans of all, their processes, and how their machines differ."""
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
        found.pop("devices", None)  # is what the jobs are for
        if found:
            apart.append(f"{parts[0].path.name} and {part.path.name}: {_differing(found)}.")
    plan = {**plans[0], "points": [*points.values()], "processes": max(int(each.get("processes", 1)) for each in plans)}
    return {**manifests[0], "plan": plan, "workers": workers, "apart": apart}


def _differing(found: identity.Differences) -> str:
    return "; ".join(f"{identity.FACTS[name]} {a!r} and {b!r}" for name, (a, b) in found.items())


def _lines(part: RunFolder, session: int) -> list[str]:
    """The complete lines of its records, with sessions that no other job has."""
    path = part.path / RECORDS
    if not path.exists():
        return []
    moved = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):  # is being written
            break
        try:
            record = json.loads(line)
            names = {name: _moved(record[name], session) for name in ("worker", "checked_by") if record.get(name)}
            moved.append(json.dumps({**record, **names}, separators=(",", ":"), allow_nan=False) + "\n")
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{path}, line {number} is damaged ({error}): restore or delete that line.") from error
    return moved


def _moved(worker: str, first: int) -> str:
    """ "session1/cpu2" -> "session2001/cpu2"."""
    return re.sub(r"^session(\d+)", lambda match: f"session{first + int(match[1])}", worker)

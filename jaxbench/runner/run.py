# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run`: from an experiment and a config to a run folder, or, for a dry run, to what it would hold."""

from __future__ import annotations

import datetime
import hashlib
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.table import Table

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.errors import UserError
from jaxbench.machine import manifest as manifest_lib
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner import plan, sweep
from jaxbench.runner.client import WorkerError
from jaxbench.runner.progress import GUESS_S, format_s

# A run folder is one machine and one software: continuing it on another would mix two answers.
SAME_SESSION_KEYS = (
    "platform",
    "device_kind",
    "devices",
    "cores",
    "cpu_model",
    "python",
    "experiment_sha256",
    "environment",
    "versions",
)


def run(experiment: str, config: ConfigDict, workdir: Path, console: Console) -> None:
    """Measures every point of the sweep that the folder lacks. Raises UserError; KeyboardInterrupt loses nothing."""
    settings = config_lib.parse(config, parallel.strategies())
    machine = _machine(settings.platform, console)
    points = plan.make(settings, machine)
    folder = RunFolder.begin(workdir, config_lib.plain(config))
    try:
        session = _begin_session(folder, _session(machine, experiment, settings, points))
        for note in folder.notes:
            console.print(note, style="yellow", soft_wrap=True)
        job = _job(folder, points, machine, config, experiment, session=session)
        console.print(
            f"{config.experiment}: {len(points)} points x {settings.rounds} rounds, into {workdir}",
            highlight=False,
            soft_wrap=True,
        )
        left_out = set(plan.device_counts(settings, machine)) - {point.devices for point in points}
        if left_out:
            console.print(
                f"Left out: {', '.join(map(str, sorted(left_out)))} devices, over which a batch of {settings.batch} "
                "does not divide.",
                style="yellow",
                soft_wrap=True,
            )
        signal.signal(signal.SIGTERM, _interrupt)
        sweep.run(job, console)
    finally:
        folder.close()


def dry_run(experiment: str, config: ConfigDict, console: Console) -> bool:
    """Compiles every point, runs and writes nothing; says what, how long and how much memory. True: all compile."""
    settings = config_lib.parse(config, parallel.strategies())
    machine = _machine(settings.platform, console)
    points = plan.make(settings, machine)
    table = Table(title=f"{config.experiment}: {len(points)} points x {settings.rounds} rounds")
    for column in ("point", "global batch", "compile", "peak memory per device", "all devices"):
        table.add_column(column, justify="left" if column == "point" else "right")
    seconds: list[float | None] = []
    with tempfile.TemporaryDirectory() as folder:
        job = _job(RunFolder(folder), points, machine, config, experiment, session=0)
        with sweep.Workers(job, points) as workers:
            for point in points:
                cells, guess_s = _dry_point(point, workers, settings, machine)
                table.add_row(point.point + (" (oversubscribed)" if point.oversubscribed else ""), *cells)
                seconds.append(guess_s)
    console.print(table)
    failing = seconds.count(None)
    if failing:
        console.print(f"{failing} of {len(points)} points would fail.")
    elif machine["platform"] == "cpu":
        total = format_s(sum(s for s in seconds if s is not None))
        console.print(f"Measuring would take roughly {total}. Nothing was run or written.")
    else:
        console.print("How long the steps take is not known before they run. Nothing was run or written.")
    return not failing


def _dry_point(
    point: plan.Point, workers: sweep.Workers, settings: config_lib.Settings, machine: dict[str, Any]
) -> tuple[list[str], float | None]:
    """The cells of a point's row, and a guess of the seconds it would take on a CPU; None if it would fail."""
    try:
        answer = workers.ask(point.point, {"do": "compile", "point": point.to_json()})
    except WorkerError as error:
        if error.stage == "model":
            raise UserError(str(error)) from error
        return [str(point.global_batch), f"would fail: {error}"], None
    peak, compile_s = answer["peak_bytes"], answer["compile_s"]
    cells = [f"{compile_s:.1f} s", f"{peak / 1e6:.1f} MB", f"{peak * point.devices / 1e6:.1f} MB"]
    step_s = answer["flops"] / (GUESS_FLOP_PER_S_PER_CORE * min(point.devices, machine["cores"]))
    round_s = (2 + 3 * settings.blocks) * max(settings.block_s, step_s)  # two to warm up; K and 2 K for each pair
    return [str(point.global_batch), *cells], 2 * compile_s + GUESS_S["prepare"] / 2 + settings.rounds * round_s


# For the dry run only, never printed as a result: what a CPU core does on a small model.
GUESS_FLOP_PER_S_PER_CORE = 2e10


def _machine(platform: str, console: Console) -> dict[str, Any]:
    with console.status("looking at this machine"):
        machine = manifest_lib.probe(platform)
    if machine["platform"] == "cpu" and platform == "auto" and Path("/dev/nvidiactl").exists():
        console.print(
            "An NVIDIA GPU is here, but JAX does not see it: this run measures the CPU. "
            "For the GPU install the extra cuda13 or cuda12.",
            style="yellow",
        )
    return machine


def _job(
    folder: RunFolder,
    points: list[plan.Point],
    machine: dict[str, Any],
    config: ConfigDict,
    experiment: str,
    *,
    session: int,
) -> sweep.Job:
    return sweep.Job(
        run=folder,
        points=points,
        platform=machine["platform"],
        config=config_lib.plain(config),
        experiment=_absolute(experiment),
        session=session,
    )


def _absolute(experiment: str) -> str:
    return str(Path(experiment).expanduser().resolve()) if experiment.endswith(".py") else experiment


def _session(
    machine: dict[str, Any], experiment: str, settings: config_lib.Settings, points: list[plan.Point]
) -> dict[str, Any]:
    """The manifest of this start of the run."""
    source = discovery.experiment_path(experiment)
    return {
        **machine,
        "command": ["jaxbench", *sys.argv[1:]],
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "experiment_file": source.name,
        "experiment_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "plan": {
            "experiment": settings.experiment,
            "platform": machine["platform"],
            "processes": machine["processes"],
            "rounds": settings.rounds,
            "blocks": settings.blocks,
            "points": [point.to_json() for point in points],
        },
    }


def _begin_session(folder: RunFolder, session: dict[str, Any]) -> int:
    """Writes the manifest, or adds a session to it when the machine is the same. Returns the session's number."""
    path = folder.path / MANIFEST
    digest = hashlib.sha256(json.dumps(folder.config(), sort_keys=True).encode()).hexdigest()
    if not path.exists():
        write_json(path, {**session, "config_sha256": digest, "sessions": []})
        return 0
    manifest = folder.manifest()
    for key in SAME_SESSION_KEYS:
        old, new = manifest.get(key), session[key]
        if old != new:
            raise UserError(f"'{folder.path}' was measured with {key} {old}, now it is {new}: choose a new WORKDIR.")
    if manifest["git"] != session["git"]:
        folder.notes.append(f"{folder.path} was begun with jaxbench at {manifest['git']}, now it is {session['git']}.")
    sessions = [*manifest["sessions"], {key: session[key] for key in ("started", "command", "git")}]
    write_json(path, {**manifest, "sessions": sessions})
    return len(sessions)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt

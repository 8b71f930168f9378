# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run EXPERIMENT --dry_run --target=h100:8`: compiles every point for absent hardware.

If the compiler refuses a program, ends its process or takes too long, this is a result and is recorded.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench.cases import placement
from jaxbench.cases.case_bench import build_cases, makes_calls
from jaxbench.catalog import targets
from jaxbench.catalog.targets import Target
from jaxbench.core.point import Point
from jaxbench.core.schema import OWN, CompiledRecord, FailureRecord
from jaxbench.core.store import MANIFEST, RunFolder, write_manifest
from jaxbench.errors import UserError
from jaxbench.machine import start as start_lib
from jaxbench.machine.manifest import versions
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.messages import CompileFor, Setup
from jaxbench.records.manifest import Machine
from jaxbench.sweep import plan
from jaxbench.sweep.progress import SweepProgress
from jaxbench.sweep.run import absolute, parse
from jaxbench.sweep.workers import failure_of

LIMIT_S = 900.0  # for one compilation: a process that takes longer ends, and the point is recorded as failed


def run(
    experiment: str,
    config: ConfigDict,
    text: str,
    workdir: Path,
    console: Console,
    *,
    keep: bool = False,
    options: Mapping[str, object] | None = None,
    limit_s: float = LIMIT_S,
) -> None:
    """Compiles the points that the folder lacks for the target `text`. Raises UserError. An interrupt loses nothing.

    keep: also keep the compiled texts, in the files of `text_file`. options: further compiler options for all points.
    limit_s: for one compilation.
    """
    target = targets.parse(text)
    start_lib.require_target(target)
    points = _points(experiment, config, target)
    folder = RunFolder.begin(workdir, {**config_lib.plain(config), "target": text})
    try:
        if not (folder.path / MANIFEST).exists():
            write_manifest(folder.path, _compiled_manifest(config, target, points))
        if keep:
            (folder.path / "compiled").mkdir(exist_ok=True)
        # What a compiler has refused it would refuse again, so a failed point is done, too.
        done = {record.point for record in folder.records() if isinstance(record, CompiledRecord | FailureRecord)}
        todo = [point for point in points if point.point not in done]
        title = f"{config.experiment}: compiling {len(points)} points for {text} into {workdir}; nothing is run"
        console.print(title, highlight=False, soft_wrap=True)
        setup = Setup(
            platform=target.platform,
            devices=target.devices,
            experiment=absolute(experiment),
            config=config_lib.plain(config),
            worker=f"compile/{text}",
        )
        with SweepProgress(console, [("prepare", point.point) for point in todo]) as progress:
            # A program cannot use a part of a topology, so each device count has a process with a topology of its size.
            for devices in sorted({_devices(point) for point in todo}):
                part = target.part(devices)
                environment = start_lib.target_environment(part)
                if setup.config.get("strategy") == OWN:  # a user's own step is made on fake CPU devices first
                    environment["JAX_NUM_CPU_DEVICES"] = str(devices)
                of_part = dataclasses.replace(setup, target=part.text, devices=devices, environment=environment)
                group = [point for point in todo if _devices(point) == devices]
                _compile(folder, of_part, group, progress, options or {}, limit_s, keep=keep)
    finally:
        folder.close()


def text_file(workdir: Path, point: str) -> Path:
    """The file for the compiled text of a point, compressed."""
    return workdir / "compiled" / f"{re.sub('[^A-Za-z0-9=.,-]+', '_', point)}.hlo.gz"  # names of points have slashes


def _points(experiment: str, config: ConfigDict, target: Target) -> Sequence[Point]:
    """The points that a target can compile. Raises UserError if there are none."""
    machine = cast(Machine, target.machine())
    if config.get("measures") == "cases":
        cases = build_cases(config, experiment)
        placed, _ = placement.place(cases, config_lib.parse_cases(config), machine)
        calls = {case.key for case in cases.cases if makes_calls(case)}
        points = [point for point in placed if point.platform == target.platform and point.key not in calls]
        if not points:
            raise UserError(f"'{experiment}' has nothing to compile: it has only copies and calls; leave out --target.")
        return points
    config_lib.choose_batch(config, target.platform)
    settings = dataclasses.replace(parse(experiment, config), batch=config.batch)
    if settings.platform not in ("auto", target.platform):
        raise UserError(
            f"--config.mesh.platform={settings.platform} contradicts --target={target.text}: leave one out."
        )
    return plan.make(settings, machine)


def _devices(point: Point) -> int:
    """The device count of the process that must compile the point."""
    return plan.worker_of(point)[1].devices


def _compiled_manifest(config: ConfigDict, target: Target, points: Sequence[Point]) -> dict[str, Any]:
    return {
        **target.machine(),
        "target": target.text,
        "versions": versions(),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "plan": {
            "measures": "compiled",
            "experiment": config.experiment,
            "platform": target.platform,
            "points": [point.to_json() for point in points],
        },
    }


def _compile(
    folder: RunFolder,
    setup: Setup,
    points: Sequence[Point],
    progress: SweepProgress,
    options: Mapping[str, object],
    limit_s: float,
    *,
    keep: bool,
) -> None:
    """Compiles the points of one device count, in a process that is replaced when a compiler ends it."""
    log = folder.path / "logs" / f"{setup.target.replace(':', '_')}.log"
    worker = Worker(setup, log)
    try:
        for point in points:
            progress.begin("prepare", point.point, f"compile {point.text} for {setup.target}")
            text = str(text_file(folder.path, point.point).resolve()) if keep else ""
            try:
                record = worker.ask(CompileFor(point=point.to_json(), text=text, options=dict(options)), limit_s).record
            except WorkerError as error:
                if error.stage == "model":  # the model itself cannot be built: no point can be compiled
                    raise UserError(str(error)) from error
                record = failure_of(point, str(setup.config["experiment"]), error)
                if not error.alive:  # a failed internal check of XLA ends its process
                    worker.close()
                    worker = Worker(setup, log)
            folder.append(record)
            progress.end("prepare", point.point)
    except KeyboardInterrupt:
        worker.kill()
        raise
    finally:
        worker.close()

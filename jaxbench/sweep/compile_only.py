# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run EXPERIMENT --dry_run --target=h100:8`: compiles every point for absent hardware.

Each device count has its own process with a topology of that size, because a program cannot use a part of a topology.
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
from jaxbench.core import plan
from jaxbench.core.schema import OWN, CompiledRecord, FailureRecord
from jaxbench.core.store import MANIFEST, RunFolder, write_json
from jaxbench.errors import UserError
from jaxbench.machine import start as start_lib
from jaxbench.machine.manifest import versions
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.messages import CompileFor, Setup
from jaxbench.records.manifest import Machine
from jaxbench.sweep.progress import SweepProgress
from jaxbench.sweep.run import absolute, parse
from jaxbench.sweep.workers import failure_of

LIMIT_S = 900.0  # for one compilation


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
            write_json(folder.path / MANIFEST, _manifest(config, target, points))
        done = {record.point for record in folder.records() if isinstance(record, CompiledRecord | FailureRecord)}
        todo = [point for point in points if point.point not in done]
        console.print(
            f"{config.experiment}: compiling {len(points)} points for {text} into {workdir}; nothing is run",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        setup = Setup(
            platform=target.platform, devices=target.devices, experiment=absolute(experiment),
            config=config_lib.plain(config), worker=f"compile/{text}",
        )  # fmt: skip
        with SweepProgress(console, [("prepare", point.point) for point in todo]) as progress:
            for devices in sorted({_devices(point) for point in todo}):
                group = [point for point in todo if _devices(point) == devices]
                part = target.part(devices)
                _Compiler(folder, part, setup, progress, options or {}, limit_s, keep=keep).compile(group)
    finally:
        folder.close()


def text_file(workdir: Path, point: str) -> Path:
    """The file for the compiled text of a point, compressed."""
    return workdir / "compiled" / f"{re.sub('[^A-Za-z0-9=.,-]+', '_', point)}.hlo.gz"


def _points(experiment: str, config: ConfigDict, target: Target) -> Sequence[plan.Placed]:
    machine = cast(Machine, target.machine())
    if config.get("measures") == "cases":
        cases = build_cases(config, experiment)
        placed, _ = placement.place(cases, config_lib.parse_cases(config), machine)
        calls = {case.key for case in cases.cases if makes_calls(case)}
        points = [point for point in placed if point.platform == target.platform and point.case not in calls]
        if not points:
            raise UserError(f"'{experiment}' has nothing to compile: it has only copies and calls; leave out --target.")
        return points
    config_lib.settle_batch(config, target.platform)
    settings = dataclasses.replace(parse(experiment, config), batch=config.batch)
    if settings.platform not in ("auto", target.platform):
        raise UserError(
            f"--config.mesh.platform={settings.platform} contradicts --target={target.text}: leave one out."
        )
    return plan.make(settings, machine)


def _devices(point: plan.Placed) -> int:
    """The device count of the process that must compile the point."""
    return point.worker()[1].devices


def _manifest(config: ConfigDict, target: Target, points: Sequence[plan.Placed]) -> dict[str, Any]:
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


def _fake_devices(setup: Setup, target: Target) -> dict[str, str]:
    """A user's own step is made on fake CPU devices, and then compiled for the target."""
    return {"JAX_NUM_CPU_DEVICES": str(target.devices)} if setup.config.get("strategy") == OWN else {}


class _Compiler:
    """The process that compiles for one device count of a target, restarted when a compiler kills it."""

    def __init__(
        self,
        folder: RunFolder,
        target: Target,
        setup: Setup,
        progress: SweepProgress,
        options: Mapping[str, object],
        limit_s: float,
        *,
        keep: bool,
    ):
        self._folder, self._target, self._progress, self._keep, self._limit_s = folder, target, progress, keep, limit_s
        environment = {**start_lib.target_environment(target), **_fake_devices(setup, target)}
        self._options = dict(options)
        self._setup = dataclasses.replace(setup, target=target.text, devices=target.devices, environment=environment)
        if keep:
            (folder.path / "compiled").mkdir(exist_ok=True)

    def _worker(self) -> Worker:
        return Worker(self._setup, self._folder.path / "logs" / f"{self._target.text.replace(':', '_')}.log")

    def _request(self, point: plan.Placed) -> CompileFor:
        text = str(text_file(self._folder.path, point.point).resolve()) if self._keep else ""
        return CompileFor(point=point.to_json(), text=text, options=self._options)

    def compile(self, points: Sequence[plan.Placed]) -> None:
        worker = self._worker()
        try:
            for point in points:
                self._progress.begin("prepare", point.point, f"compile {point.text} for {self._target.text}")
                try:
                    record = worker.ask(self._request(point), self._limit_s).record
                except WorkerError as error:
                    if error.stage == "model":
                        raise UserError(str(error)) from error
                    record = failure_of(point, str(self._setup.config["experiment"]), error)
                    if not error.alive:
                        worker.close()
                        worker = self._worker()
                self._folder.append(record)
                self._progress.end("prepare", point.point)
        except KeyboardInterrupt:
            worker.kill()
            raise
        finally:
            worker.close()

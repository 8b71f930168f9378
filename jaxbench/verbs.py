# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The body of each verb: it calls the package that does the work, with the flags. Each returns the exit code.

Imports are inside the functions: `jaxbench doctor` must not wait for jax, nor `jaxbench list` for matplotlib.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags
from rich.console import Console

from jaxbench import commandline, discovery
from jaxbench.errors import UserError

if TYPE_CHECKING:
    from jaxbench.processes.launch import Followers

FLAGS = flags.FLAGS


def run(experiment: str, workdir: Path, console: Console, followers: Followers | None = None) -> int:
    from jaxbench.analysis import allocation
    from jaxbench.machine_command import add_links, adopt
    from jaxbench.price_command import Meter
    from jaxbench.records.store import RunFolder
    from jaxbench.runner import compile_only
    from jaxbench.runner import run as runner
    from jaxbench.verdicts import calibration

    if FLAGS.config.get("measures") == "targets":
        return targets(experiment, workdir, console, followers)
    meter = Meter(FLAGS.price_per_hour, FLAGS.config)
    if FLAGS.target and not FLAGS.dry_run:
        raise UserError(f"--target={FLAGS.target} is absent hardware, so points are only compiled: add --dry_run.")
    if FLAGS.target:
        compile_only.run(experiment, FLAGS.config, FLAGS.target, workdir, console)
        return report(workdir, console)
    if FLAGS.dry_run:
        return 0 if runner.dry_run(experiment, FLAGS.config, console, followers) else 1
    runner.run(experiment, FLAGS.config, workdir, console, allocation.look, followers)
    meter.stop()
    if FLAGS.config.get("measures") == "cases" and FLAGS.preset != "smoke":
        add_links(workdir, console)
    adopt(workdir, console)
    calibration.adopt(workdir, RunFolder(workdir).manifest(), str(FLAGS.config.experiment))
    code = report(workdir, console)
    meter.show(workdir, console)
    return code


def check(experiment: str) -> None:
    """Raises UserError for settings that are invalid on every machine."""
    from jaxbench import config_targets
    from jaxbench.runner import run as runner

    if FLAGS.config.get("measures") == "targets":
        config_targets.parse(FLAGS.config)
    else:
        runner.check(experiment, FLAGS.config)


def targets(experiment: str, workdir: Path, console: Console, followers: Followers | None) -> int:
    """`run` for trainings to a target over batch sizes."""
    from jaxbench.price_command import require_price
    from jaxbench.training import targets as trainings

    require_price(FLAGS.price_per_hour)
    if followers or FLAGS.target:
        raise UserError(f"'{experiment}' trains in one process on local devices: drop --target or --process.")
    if FLAGS.dry_run:
        trainings.dry_run(FLAGS.config, console)
        return 0
    trainings.run(experiment, FLAGS.config, workdir, console, FLAGS.price_per_hour)
    return report(workdir, console)


def forecast(experiment: str, workdir: Path, console: Console) -> int:
    from jaxbench import forecast_command
    from jaxbench.report import forecast as page

    texts = {name: FLAGS[name].value for name in ("targets", "counts", "depths", "link", "card")}
    asked = forecast_command.request({**texts, "from": FLAGS["from"].value if FLAGS["from"].present else None})
    records = forecast_command.forecast(experiment, FLAGS.config, asked, workdir, console)
    answer = forecast_command.smallest_need(records)
    page.write(workdir, console, answer)
    return 1 if answer or all(record.status != "ok" for record in records) else 0


def advise(experiment: str, workdir: Path, console: Console) -> int:
    from jaxbench import advise_command
    from jaxbench.report import advice as page

    texts = {name: FLAGS[name].value for name in ("tokens", "examples", "deadline", "prices", "targets", "counts")}
    asked = advise_command.request(texts, today=datetime.date.today())
    fits = advise_command.advise(experiment, FLAGS.config, asked, workdir, console)
    page.write(workdir, console)
    return 0 if fits else 1


def trial(experiment: str, console: Console) -> int:
    from jaxbench.runner import trial as runner

    return 0 if runner.run(experiment, FLAGS.config, console) else 1


def train(experiment: str, workdir: Path, console: Console, followers: Followers | None = None) -> int:
    from jaxbench.report import training as page
    from jaxbench.training import run as runner

    faults = runner.Faults(timeout_s=FLAGS.fault_timeout, elastic=FLAGS.elastic)
    code = runner.train(experiment, FLAGS.config, workdir, console, faults, followers)
    page.write(workdir)
    console.print(f"Page: {workdir / page.PAGE}", highlight=False, soft_wrap=True)
    return code


def new(file: str, console: Console) -> int:
    from jaxbench import new

    new.write(Path(file), str(FLAGS["from"].value))
    console.print(f"Written: {file}. To measure it: jaxbench run {file}", highlight=False, soft_wrap=True)
    return 0


def machine(workdir: Path, console: Console) -> int:
    from jaxbench import machine_command

    outcome = machine_command.machine(workdir, preset=FLAGS.preset, console=console)
    console.print(f"\nPage and card: {workdir / 'machine.html'}, {workdir / 'machine.json'}", soft_wrap=True)
    return 0 if outcome.ok else 1


def first_run(workdir: Path, console: Console) -> int:
    from jaxbench.first_run import session

    if FLAGS.dry_run:
        session.dry_run(console)
        return 0
    ok = session.first_run(workdir, console)
    files = f"{workdir / 'first-run.html'}, {workdir / 'first-run.json'}"
    console.print(f"\nTo attach to an issue: {files}", soft_wrap=True)
    return 0 if ok else 1


def paper(id: str, workdir: Path, console: Console) -> int:
    from jaxbench.papers import session

    if FLAGS.dry_run:
        session.dry_run(id, FLAGS.preset, console)
        return 0
    return 0 if session.paper(id, FLAGS.preset, workdir, console) else 1


def paper_list(console: Console) -> int:
    from jaxbench.papers import session

    session.show_list(console)
    return 0


def gallery(console: Console) -> int:
    from jaxbench.papers import gallery as papers
    from jaxbench.papers import session

    docs = Path(FLAGS.docs) if FLAGS.docs else None
    papers.gallery(Path(FLAGS.workdir) if FLAGS.workdir else session.FOLDER, console, docs)
    return 0


def launch(engine: str, command: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.launch import engines
    from jaxbench.launch.job import LaunchRequest
    from jaxbench.records import launched
    from jaxbench.runner import run as runner

    request = LaunchRequest(
        engine=engine,
        command=tuple(command),
        workdir=workdir,
        nodes=FLAGS.nodes,
        devices=FLAGS.devices,
        processes_per_node=FLAGS.processes_per_node,
        minutes=FLAGS.minutes,
        options=FLAGS.options,
    )
    dry_run = FLAGS.dry_run
    engines.require(request)
    commandline.check_command(command)  # report a mistake now instead of after hours in a queue
    if command[0] == "run" and FLAGS.config.get("measures") == "targets":
        raise UserError(f"'{command[1]}' trains in one process on one host: use jaxbench run, without launch.")
    if command[0] == "run":
        runner.check(command[1], FLAGS.config)
    if dry_run:
        engines.show(request, console)
        return 0
    code = engines.submit(request, console)
    if code is None:
        console.print(f"Report on the results so far: jaxbench report --run={workdir}", highlight=False, soft_wrap=True)
    if code is None or command[0] == "train" or not launched.begun(workdir):
        return code or 0
    return max(code, report(workdir, console))


def report(workdir: Path, console: Console, look: Mapping[str, Any] | None = None) -> int:
    """Writes the report of any kind of run. look: settings of the figures that replace the run's config."""
    from jaxbench.records.account import ACCOUNT
    from jaxbench.records.targets import FILE as TARGETS
    from jaxbench.report import build, targets, training

    if (workdir / ACCOUNT).exists():
        training.write(workdir, console, look=look)
        console.print(f"\nPage: {workdir / training.PAGE}", highlight=False, soft_wrap=True)
        return 0
    if (workdir / TARGETS).exists():
        targets.write(workdir, console, look=look)
        return 0
    outcome = build.write(workdir, console=console, look=look)
    page = workdir / "report.html"
    console.print(f"\nPage, figures, table and every sample: {page}", highlight=False, soft_wrap=True)
    return 0 if outcome.ok else 1


def doctor(console: Console) -> int:
    from jaxbench.doctor import examine

    findings = examine.examine(console, folder=Path("."))
    examine.write(findings, Path(examine.FILE))
    return 0 if examine.ok(findings) else 1


def list_all(console: Console) -> int:
    for title, files in (("experiments", discovery.experiments()), ("presets", discovery.presets())):
        console.print(title, style="bold")
        width = max(map(len, files))
        for name, path in files.items():
            console.print(f"  {name:<{width}} {discovery.describe(path)}", highlight=False, soft_wrap=True)
    return 0


def answer(verb: str, arguments: list[str], workdir: Path, console: Console) -> int:
    """Runs a verb of `compare_commands`."""
    from jaxbench import compare_commands

    return int(getattr(compare_commands, verb)(*arguments, workdir, FLAGS, console))

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run`: measures what an experiment asks for, and reports it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.machine import manifest
from jaxbench.verbs import FLAGS, OF_A_LAUNCH, Verb

if TYPE_CHECKING:
    from jaxbench.processes.launch import Followers

flags.DEFINE_float("price_per_hour", None, "run: the price of this machine per hour; prints the cost of steps.")

VERB = Verb(
    usage="run EXPERIMENT",
    help="measure how it scales, then report (EXPERIMENT: a name, or a path to your own .py file)",
    group="measure",
    details="run takes --price_per_hour=2.50, the price of this machine: prints the cost of 1,000 steps and of a "
    "training to target. run, compare, ab and check take --export=summary,bmf,pytest-benchmark,openmetrics,mlperf.",
    argument="experiment",
    flags=("preset", "workdir", "dry_run", "target", "share_machine", "price_per_hour", "export", *OF_A_LAUNCH),
    configured=True,
    examples=(
        "run cnn",
        "run gpt --config.model.preset=small --config.strategy=jit_auto,fsdp",
        "run path/to/mine.py --preset=smoke --workdir=results/mine",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console, followers: Followers | None = None) -> int:
    if FLAGS.config.get("measures") != "targets" and not FLAGS.target:
        manifest.begin_probe(FLAGS.config.mesh.platform)  # it runs next to these imports, which take a second, too
    from jaxbench.commands.report import report
    from jaxbench.machine import power_limits
    from jaxbench.sweep import compile_only
    from jaxbench.sweep import run as runner

    (experiment,) = arguments
    if FLAGS.config.get("measures") == "targets":
        return _targets(experiment, workdir, console, followers)
    exports_asked()  # raises for an unknown one before anything is measured
    require_price(per_hour := FLAGS.price_per_hour)
    if per_hour and FLAGS.config.get("measures") == "cases":
        raise UserError("--price_per_hour needs a model, which has steps: use jaxbench run cnn, for example.")
    if FLAGS.target and not FLAGS.dry_run:
        raise UserError(f"--target={FLAGS.target} is absent hardware, so points are only compiled: add --dry_run.")
    if FLAGS.target:
        compile_only.run(experiment, FLAGS.config, FLAGS.target, workdir, console)
        return report(workdir, console)
    if FLAGS.dry_run:
        return 0 if runner.dry_run(experiment, FLAGS.config, console, followers) else 1
    for sentence in power_limits.restore_left():
        console.print(sentence, style="yellow", highlight=False, soft_wrap=True)
    limits = power_limits.parse(FLAGS.config.get("power_limit", ""))
    if limits and followers:
        raise UserError("--config.power_limit changes the GPUs of this host only: start it without a launcher.")
    if len(limits) > 1:
        from jaxbench.features.power_limits import page

        code = max(_limited(experiment, watts, workdir, console) for watts in limits)
        page.write(workdir, console)
        return code
    with power_limits.at(limits[0]) if limits else contextlib.nullcontext():
        return _measured(experiment, workdir, console, followers)


def _limited(experiment: str, watts: float, workdir: Path, console: Console) -> int:
    """A run at one power limit, in a folder of its own. Returns its exit code."""
    from jaxbench.features.power_limits.page import folder_of
    from jaxbench.machine import power_limits

    FLAGS.config.power_limit = f"{watts:g}"
    with power_limits.at(watts):
        return _measured(experiment, workdir / folder_of(watts), console, None)


def _measured(experiment: str, workdir: Path, console: Console, followers: Followers | None) -> int:
    """Measures and reports. Returns the exit code."""
    from jaxbench.commands.report import report
    from jaxbench.core.store import RunFolder
    from jaxbench.features.comparison import calibration
    from jaxbench.features.machine_profile.machine_command import add_links, adopt
    from jaxbench.machine import energy
    from jaxbench.statistics import looks
    from jaxbench.sweep import run as runner

    per_hour = FLAGS.price_per_hour
    generates = FLAGS.config.get("measures") == "decode"
    if per_hour and generates:  # its page has the cost of tokens
        FLAGS.config.price_per_hour = per_hour
    before, started = energy.read() if per_hour else {}, time.monotonic()
    runner.run(experiment, FLAGS.config, workdir, console, looks.look, followers)
    used = energy.between(before, energy.read()) if per_hour else {}  # before the report, which uses energy, too
    wall_s = time.monotonic() - started
    if FLAGS.config.get("measures") == "cases" and FLAGS.preset != "smoke":  # with blocks of 1 ms, too short for a fit
        add_links(workdir, console)
    # Into the run folder, so that its report needs no other file.
    adopt(workdir, console)
    calibration.adopt(workdir, RunFolder(workdir).manifest(), str(FLAGS.config.experiment))
    code = report(workdir, console)
    export(workdir, exports_asked(), console)
    if per_hour and not generates:
        show_cost(workdir, per_hour, used, wall_s, console)
    return code


def exports_asked() -> tuple[str, ...]:
    """The formats of --export. Raises UserError before anything is measured."""
    if FLAGS.export is None:
        return ()
    from jaxbench.features.exports import formats  # late: most commands export nothing

    if FLAGS.dry_run:
        raise UserError(f"--export={FLAGS.export} needs a measurement, and --dry_run measures nothing: drop one.")
    return formats.asked(FLAGS.export, measures=str(FLAGS.config.get("measures", "")))


def export(workdir: Path, names: Sequence[str], console: Console) -> None:
    if names:
        from jaxbench.features.exports import formats, source

        formats.export(source.find(workdir), names, console)


def check(experiment: str) -> None:
    """Raises UserError for settings that are refused on every machine."""
    from jaxbench.config import parse_targets
    from jaxbench.sweep import run as runner

    exports_asked()
    if FLAGS.config.get("measures") == "targets":
        parse_targets(FLAGS.config)
    else:
        runner.check(experiment, FLAGS.config)


def _targets(experiment: str, workdir: Path, console: Console, followers: Followers | None) -> int:
    """Trainings to a target accuracy, over batch sizes."""
    from jaxbench.commands.report import report
    from jaxbench.features.time_to_target import targets as trainings

    require_price(FLAGS.price_per_hour)
    exports_asked()  # raises for an unknown one before anything is measured
    if followers or FLAGS.target:
        raise UserError(f"'{experiment}' trains, in one process on devices that are here: drop --target or --process.")
    if FLAGS.dry_run:
        trainings.dry_run(FLAGS.config, console)
        return 0
    trainings.run(experiment, FLAGS.config, workdir, console, FLAGS.price_per_hour)
    code = report(workdir, console)
    export(workdir, exports_asked(), console)
    return code


def require_price(per_hour: float | None) -> None:
    """Raises UserError for a price that is not above 0."""
    if per_hour is not None and not 0 < per_hour < math.inf:
        raise UserError(f"--price_per_hour={per_hour:g} is not a price: use 2.50, for example.")


def show_cost(workdir: Path, per_hour: float, used: Mapping[str, float], wall_s: float, console: Console) -> None:
    """Prints the cost of a thousand steps of each point and of the training to target, and the joules.

    used: joules by counter, in `wall_s` seconds.
    """
    from jaxbench.analysis import points, run_rows
    from jaxbench.core.store import RunFolder
    from jaxbench.features.training import costs
    from jaxbench.statistics import bootstrap

    run = RunFolder(workdir)
    config = run.config()
    # The same rows as in the report, so that prices and table agree.
    rows = run_rows.analyse(points.load(run), config=config, spread=bootstrap.read_spread(run.path))
    known = costs.steps_to_target(workdir, config)
    console.print(f"\nAt {per_hour:g} an hour for this machine", style="bold", highlight=False)
    for sentence in costs.price_sentences(rows, per_hour, known, used, wall_s):
        console.print(f"  {sentence}", highlight=False, soft_wrap=True)

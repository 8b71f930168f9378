# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench check`, for CI: is an experiment slower than its baseline?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import jax_import
from jaxbench.errors import UserError
from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.comparison.calibration import Calibration
    from jaxbench.features.comparison.comparable import FinishedRun

VERB = Verb(
    usage="check EXPERIMENT --name=N",
    help="for CI: rerun; is it slower than that baseline?",
    group="compare",
    argument="experiment",
    flags=("name", "workdir", "share_machine", "export"),
    required=("name",),
    answers=True,
    examples=(
        "check mlp --name=main-mlp",
        "check cnn --name=release --workdir=results/check",
        "check mlp --name=main-mlp --share_machine",
    ),
)


def check(experiment: str) -> tuple[FinishedRun, Calibration, ConfigDict]:
    """The baseline, this machine's calibration, and the config to run. Raises UserError for what needs no run."""
    from jaxbench import config as config_lib
    from jaxbench.commands.calibrate import MAX_THRESHOLD, too_noisy
    from jaxbench.features.comparison import calibration, comparable

    name = FLAGS.name
    old = comparable.read(comparable.find_baseline(name))
    if old.config.get("experiment") != Path(experiment).stem:
        raise UserError(f"baseline '{name}' measured {old.config.get('experiment')}, not {experiment}.")
    known = calibration.load(old.manifest, str(old.config["experiment"]))
    if known is None:
        raise UserError("this machine is not calibrated, so check has no threshold: run jaxbench calibrate first.")
    if known.threshold > MAX_THRESHOLD:
        raise UserError(f"{too_noisy(known.threshold)} and run jaxbench calibrate again.")
    return old, known, config_lib.restored(experiment, old.config)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    """Reruns with the baseline's config, and compares."""
    jax_import.require("jaxbench check")
    from jaxbench import config as config_lib
    from jaxbench.commands.calibrate import MIN_THRESHOLD
    from jaxbench.commands.compare import answer, export, exports_asked
    from jaxbench.features.comparison import comparison, judge
    from jaxbench.machine import manifest
    from jaxbench.records import identity
    from jaxbench.statistics import looks
    from jaxbench.statistics.bootstrap import MIN_PROCESSES
    from jaxbench.sweep import run as runner

    (experiment,) = arguments
    name, names = FLAGS.name, exports_asked()
    old, known, config = check(experiment)
    # Before anything is measured: the times of another machine would be judged by this one's threshold.
    if other := identity.differences(old.manifest, manifest.probe(str(config.mesh.platform))):
        raise UserError(f"baseline '{name}' was measured {identity.refused(other)}.")
    if config.measure.rounds != config_lib.AUTO:  # with "auto" there are enough processes anyway
        rounds, processes = config_lib.counts(config.measure.rounds, config.measure.processes, live=False)
        with config.unlocked():
            config.measure.processes = max(processes, MIN_PROCESSES)
            config.measure.rounds = max(rounds, config.measure.processes)
    runner.run(experiment, config, workdir, console, looks.look)
    # What the machine cannot tell apart must not fail a CI job.
    margin = max(MIN_THRESHOLD, known.threshold)
    found = comparison.compare(old.path, workdir, judge.METRICS["step_s"], margin=margin)
    code = answer(found, workdir, title := f"{experiment} against {name}", console)
    export(found, title, workdir, workdir, names, console)
    return code

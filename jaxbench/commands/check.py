# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench check`, for CI: is an experiment slower than its baseline?"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import jax_import
from jaxbench.commands import FLAGS, Verb
from jaxbench.errors import UserError

VERB = Verb(
    usage="check EXPERIMENT --name=N", help="for CI: rerun; is it slower than that baseline?", group="compare",
    argument="experiment", flags=("name", "workdir", "share_machine"), required=("name",), answers=True,
)  # fmt: skip


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    """Reruns with the baseline's config, and compares."""
    jax_import.require("jaxbench check")
    from jaxbench import config as config_lib
    from jaxbench.commands.calibrate import MAX_THRESHOLD, MIN_THRESHOLD, too_noisy
    from jaxbench.commands.compare import answer
    from jaxbench.features.comparison import calibration, comparable, comparison, judge
    from jaxbench.machine import manifest
    from jaxbench.records import identity
    from jaxbench.statistics import looks
    from jaxbench.statistics.bootstrap import MIN_PROCESSES
    from jaxbench.sweep import run as runner

    (experiment,) = arguments
    name = FLAGS.name
    path = comparable.find_baseline(name)
    old = comparable.read(path)
    if old.config.get("experiment") != Path(experiment).stem:
        raise UserError(f"baseline '{name}' measured {old.config.get('experiment')}, not {experiment}.")
    known = calibration.load(old.manifest, str(old.config["experiment"]))
    if known is None:
        raise UserError("this machine is not calibrated, so check has no threshold: run jaxbench calibrate first.")
    if known.threshold > MAX_THRESHOLD:
        raise UserError(f"{too_noisy(known.threshold)} and run jaxbench calibrate again.")
    config = config_lib.restored(experiment, old.config)
    # Before anything is measured: the times of another machine would be judged by this one's threshold.
    if other := identity.differences(old.manifest, manifest.probe(str(config.mesh.platform))):
        raise UserError(f"baseline '{name}' was measured on another machine ({identity.sentence(other)}).")
    if config.measure.rounds != config_lib.AUTO:  # with "auto" there are enough processes anyway
        rounds, processes = config_lib.counts(config.measure.rounds, config.measure.processes, live=False)
        with config.unlocked():
            config.measure.processes = max(processes, MIN_PROCESSES)
            config.measure.rounds = max(rounds, config.measure.processes)
    runner.run(experiment, config, workdir, console, looks.look)
    # What the machine cannot tell apart must not fail a CI job.
    margin = max(MIN_THRESHOLD, known.threshold)
    found = comparison.compare(path, workdir, judge.METRICS["step_s"], margin=margin)
    return answer(found, workdir, f"{experiment} against {name}", console)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench calibrate`: how much runs of one program vary on this machine, which is the threshold of `check`."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.commands import ab
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.comparison.calibration import Calibration

MIN_THRESHOLD = 0.01  # of check: no smaller difference is worth an alarm
MAX_THRESHOLD = 0.5  # a machine that varies by more cannot judge
PROCESSES, ROUNDS_EACH = 8, 3  # two more than `calibration` needs; what it estimates is how processes differ

VERB = Verb(
    usage="calibrate EXPERIMENT",
    help="measure how much runs of one program vary on this machine, the threshold of check",
    group="compare",
    argument="experiment",
    flags=("preset", "workdir", "share_machine"),
    configured=True,
    refused=("targets",),
    answers=True,
    examples=(
        "calibrate mlp",
        "calibrate cnn --config.mesh.devices=1",
        "calibrate mlp --config.measure.block_s=0.2",
    ),
)


def prepare(config: ConfigDict) -> None:
    ab.prepare(config)
    config.measure.processes, config.measure.rounds = PROCESSES, PROCESSES * ROUNDS_EACH


def check(experiment: str) -> None:
    """Raises UserError for settings that are refused on every machine."""
    from jaxbench.features.comparison import calibration
    from jaxbench.sweep import run as runner

    count, least = FLAGS.config.measure.processes, calibration.MIN_CALIBRATION_PROCESSES
    if count < least:
        raise UserError(f"--config.measure.processes={count} is too few to calibrate with: use at least {least}.")
    runner.check(experiment, FLAGS.config)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    """Measures the experiment against itself, in many processes."""
    from jaxbench.features.comparison import calibration, comparable
    from jaxbench.statistics import looks
    from jaxbench.sweep import run as runner

    (experiment,) = arguments
    check(experiment)
    runner.run(experiment, FLAGS.config, workdir, console, looks.look)
    run = comparable.read(workdir)
    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    name = str(run.config["experiment"])
    found = calibration.calibrate(comparable.samples_of(run), name, time, comparable.measured(run))
    earlier = calibration.load(run.manifest, name)  # perhaps of another experiment, if this one has none
    found = found.after(earlier if earlier and earlier.experiment == name else None)
    path = calibration.save(run.manifest, found)
    threshold = max(MIN_THRESHOLD, found.threshold)
    use = f"jaxbench check ignores differences below {digits(100 * threshold, 2)} %."
    if threshold > MAX_THRESHOLD:
        use = f"{too_noisy(threshold)} and calibrate again."
    for sentence in (
        f"The A/A spread between processes is {digits(100 * found.sd, 2)} % here (standard deviation, {found.df} "
        "degrees of freedom).",
        _sessions(found),
        f"{found.alarms} of {found.comparisons} comparisons of this run with itself raised a false alarm; in 95 % of "
        f"them the overall difference is below {digits(100 * found.threshold, 2)} %.",
        f"{use} Kept in {path}.",
    ):
        console.print(sentence, highlight=False, soft_wrap=True)
    return 0


def _sessions(found: Calibration) -> str:
    """Whether the variation between sessions is measured, or how many more sessions show it."""
    from jaxbench.features.comparison import calibration

    count = len(found.sessions)
    if count >= calibration.MIN_SESSIONS:
        return (
            f"Its {count} runs differ by {100 * found.session_sd:.2g} % (standard deviation). Every comparison of two "
            "runs includes that; more calibrations make it more certain."
        )
    return (
        f"The variation between runs at different times is assumed ({100 * found.spread.session_sd:.2g} %) until "
        f"there are {calibration.MIN_SESSIONS}, at least an hour apart; this is number {count}: calibrate again on "
        "another day."
    )


def too_noisy(threshold: float) -> str:
    return (
        f"Runs of one program vary by {digits(100 * threshold)} % on this machine, too much for check: stop other "
        "programs, or measure longer blocks (--config.measure.block_s=0.2),"
    )

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""jaxbench VERB ...

  run EXPERIMENT     measure how it scales, then report (EXPERIMENT: a name, or a path to your own .py file)
  train EXPERIMENT   train it on real data to its target accuracy
  machine            what this machine can do: its peaks, launch cost and links, and its card, machine.json
  report --run=DIR   rebuild the tables, figures and page of a run
  list               the experiments and presets there are

Flags: --preset=auto|smoke|paper, --workdir=DIR (an old one is continued), --dry_run, --verbosity=1 (stack traces),
--config.<field>=<value>, such as --config.mesh.devices=1,2,4 --config.strategy=all --config.scaling=strong,weak
--config.batch=64 --config.measure.rounds=10 --config.model.width=32. Every field stands in the run's config.json.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from absl import app as absl_app
from absl import flags
from rich.console import Console

from jaxbench import commandline, discovery
from jaxbench.errors import UserError

FLAGS = flags.FLAGS


def run(experiment: str, console: Console) -> int:
    from jaxbench.characterise import adopt
    from jaxbench.runner import run as runner

    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(experiment)
    try:
        if FLAGS.dry_run:
            return 0 if runner.dry_run(experiment, FLAGS.config, console) else 1
        runner.run(experiment, FLAGS.config, workdir, console)
    except KeyboardInterrupt:
        return stopped(workdir, console)
    adopt(workdir, console)
    return report(workdir, console)


def machine(console: Console) -> int:
    from jaxbench import characterise

    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir("machine")
    try:
        outcome = characterise.machine(workdir, preset=FLAGS.preset, console=console)
    except KeyboardInterrupt:
        return stopped(workdir, console)
    console.print(f"\nPage and card: {workdir / 'machine.html'}, {workdir / 'machine.json'}", soft_wrap=True)
    return 0 if outcome.ok else 1


def stopped(workdir: Path, console: Console) -> int:
    console.print(f"Stopped. What is finished is kept: the same command with WORKDIR={workdir} continues.")
    return 130


def train(experiment: str, console: Console) -> int:
    from jaxbench.training import run as runner

    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(experiment, "-train")
    try:
        return runner.train(experiment, FLAGS.config, workdir, console)
    except KeyboardInterrupt:  # before the first step; from then on a signal is answered by a checkpoint
        console.print(f"Stopped before the first step: the same command with WORKDIR={workdir} starts again.")
        return 130


def new_workdir(experiment: str, kind: str = "") -> Path:
    """A new folder under results/, named by the experiment and the time."""
    return Path("results") / f"{Path(experiment).stem}{kind}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def report(workdir: Path, console: Console) -> int:
    from jaxbench.report import build

    outcome = build.write(workdir, console=console)
    console.print(
        f"\nPage, figures, table and every sample: {workdir / 'report.html'}", highlight=False, soft_wrap=True
    )
    return 0 if outcome.ok else 1


def list_all(console: Console) -> int:
    for title, files in (("experiments", discovery.experiments()), ("presets", discovery.presets())):
        console.print(title, style="bold")
        for name, path in files.items():
            console.print(f"  {name:<12} {discovery.describe(path)}", highlight=False, soft_wrap=True)
    return 0


def dispatch(argv: list[str]) -> int:
    """`argv`: the program, a verb, and for run and train an experiment. Returns the exit code."""
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False)
    match argv[1:]:
        case ["run", experiment]:
            return run(experiment, console)
        case ["train", experiment]:
            return train(experiment, console)
        case ["machine"]:
            return machine(console)
        case ["report"]:
            if not FLAGS.run:
                raise UserError("jaxbench report needs --run=DIR, the folder of a run.")
            return report(Path(FLAGS.run), console)
        case ["list"]:
            return list_all(console)
        case [] | ["help", *_]:
            console.print(__doc__, highlight=False, soft_wrap=True)
            return 0
    raise UserError(f"'{' '.join(argv[2:])}' is too much for jaxbench {argv[1]}: see jaxbench help.")


def main() -> None:
    absl_app.run(commandline.explained(dispatch), flags_parser=commandline.explained(commandline.parse))


if __name__ == "__main__":
    main()

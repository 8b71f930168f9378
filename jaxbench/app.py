# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""jaxbench VERB ...

  run EXPERIMENT     measure how it scales, then report (EXPERIMENT: a name, or a path to your own .py file)
  try EXPERIMENT     what a model is, and which strategies take it and are right; no timing
  train EXPERIMENT   train it on real data to its target accuracy
  new FILE.py        write an example to start from (--from=nnx, linen, functions, equinox or haiku)
  machine            what this machine can do: its peaks, launch cost and links, and its card, machine.json
  first-run          all of it once, small, and one page of what is as expected and what is not: half an hour at most
  report --run=DIR   rebuild the tables, figures and page of a run
  compare --a=DIR --b=DIR      is run B faster, slower, the same as A, or can that not be told?
  ab EXPERIMENT --a="--config.x=1" --b="--config.x=2"   the same question, measured until it is answered
  calibrate EXPERIMENT         what this machine differs from itself by; gates take their threshold from it
  baseline --run=DIR --name=N  keep a run, for check EXPERIMENT --name=N to be held against
  card --run=DIR     a run as one document; cards: all that are kept; repro --card=FILE: measure it again
  doctor             is this machine fit to measure on?
  list               the experiments and presets there are

Flags: --preset=auto|smoke|paper, --workdir=DIR (an old one is continued), --dry_run, --verbosity=1 (stack traces),
--dry_run --target=h100:8 (compile for hardware that is not here; also v5e:4x4, v5p:2x2x2, v6e:2x4, a100, h200, b200),
--config.<field>=<value>, such as --config.mesh.devices=1,2,4 --config.strategy=all --config.scaling=strong,weak
--config.batch=64 --config.measure.rounds=10 --config.model.width=32. Every field stands in the run's config.json.

Verdicts take --metric=step_s|throughput, --margin=0.02, compare also --across=FIELD,... and ab --budget_s=600. They end
with 0: same or faster, 1: slower, 2: cannot tell, 3: no answer.
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

    if FLAGS.target:
        return compile_only(experiment, console)
    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(experiment)
    try:
        if FLAGS.dry_run:
            return 0 if runner.dry_run(experiment, FLAGS.config, console) else 1
        runner.run(experiment, FLAGS.config, workdir, console)
    except KeyboardInterrupt:
        return stopped(workdir, console)
    adopt(workdir, console)
    return report(workdir, console)


def compile_only(experiment: str, console: Console) -> int:
    from jaxbench.runner import compile_only as runner

    if not FLAGS.dry_run:
        raise UserError(f"--target={FLAGS.target} is compiled for and never run on: add --dry_run.")
    kind = f"-{FLAGS.target.replace(':', '-')}"
    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(experiment, kind)
    try:
        runner.run(experiment, FLAGS.config, FLAGS.target, workdir, console)
    except KeyboardInterrupt:
        return stopped(workdir, console)
    return report(workdir, console)


def new(words: list[str], console: Console) -> int:
    from jaxbench import new

    if len(words) != 1:
        raise UserError("jaxbench new takes one file to write: jaxbench new mine.py.")
    new.write(Path(words[0]), str(FLAGS["from"].value))
    console.print(f"Written: {words[0]}. To measure it: jaxbench run {words[0]}", highlight=False, soft_wrap=True)
    return 0


def machine(console: Console) -> int:
    from jaxbench import characterise

    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir("machine")
    try:
        outcome = characterise.machine(workdir, preset=FLAGS.preset, console=console)
    except KeyboardInterrupt:
        return stopped(workdir, console)
    console.print(f"\nPage and card: {workdir / 'machine.html'}, {workdir / 'machine.json'}", soft_wrap=True)
    return 0 if outcome.ok else 1


def first_run(console: Console) -> int:
    from jaxbench.first_run import session

    if FLAGS.dry_run:
        session.dry_run(console)
        return 0
    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir("first-run")
    try:
        ok = session.first_run(workdir, console)
    except KeyboardInterrupt:
        return stopped(workdir, console)
    console.print(
        f"\nTo attach to an issue: {workdir / 'first-run.html'}, {workdir / 'first-run.json'}", soft_wrap=True
    )
    return 0 if ok else 1


def stopped(workdir: Path, console: Console) -> int:
    console.print(f"Stopped. What is finished is kept: the same command with WORKDIR={workdir} continues.")
    return 130


def trial(experiment: str, console: Console) -> int:
    from jaxbench.runner import trial as runner

    return 0 if runner.run(experiment, FLAGS.config, console) else 1


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


def doctor(console: Console) -> int:
    from jaxbench.doctor import examine

    findings = examine.examine(console, folder=Path("."))
    examine.write(findings, Path(examine.FILE))
    return 0 if examine.ok(findings) else 1


def verdict(verb: str, name: str, words: list[str], console: Console) -> int:
    """One of the verbs that answer. name: of the folder for what it measures, if it measures."""
    from jaxbench import verdict_verbs

    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(name, f"-{verb}")
    try:
        return int(getattr(verdict_verbs, verb)(*words, workdir, FLAGS, console))
    except KeyboardInterrupt:
        return stopped(workdir, console)


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
        case ["try", experiment]:
            return trial(experiment, console)
        case ["new", *words]:
            return new(words, console)
        case ["machine"]:
            return machine(console)
        case ["first-run"]:
            return first_run(console)
        case ["ab" | "check" | "calibrate" as verb, experiment]:
            return verdict(verb, experiment, [experiment], console)
        case ["compare" | "baseline" | "card" | "repro" as verb]:
            return verdict(verb, "", [], console)
        case ["cards", *filters]:
            from jaxbench.cards import gallery

            return gallery.cards(gallery.FOLDER, filters, console)
        case ["doctor"]:
            return doctor(console)
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

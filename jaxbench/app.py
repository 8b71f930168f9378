# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""jaxbench VERB ...

  run EXPERIMENT     measure how it scales, then report (EXPERIMENT: a name, or a path to your own .py file)
  forecast EXPERIMENT --targets=v5e:16x16,h100:8   compile it for machines that are not here: memory, and a band of time
  advise EXPERIMENT --tokens=1e12 --deadline=14d   which accelerators for a training: what fits, time, cost and energy
  try EXPERIMENT     describe a model, and check which strategies train it correctly; no timing
  train EXPERIMENT   train it on real data to its target accuracy
  new FILE.py        write an example model to start from (--from=nnx, linen, functions, equinox or haiku)
  machine            measure this machine: peaks, launch cost and links; writes its card, machine.json
  first-run          run everything once at a small size and write one page of results, within half an hour
  paper ID           does what this paper claims hold here? (paper list: all of them; --preset=paper: its own size)
  gallery            all papers that were run, as one page
  launch ENGINE -- run EXPERIMENT ...   start it on the nodes of a cluster: ENGINE is slurm, mpi, k8s or ray
  report --run=DIR   rebuild the tables, figures and page of a run or a training
  compare --a=DIR --b=DIR      is run B faster than A, slower, the same, or is that inconclusive?
  ab EXPERIMENT --a="--config.x=1" --b="--config.x=2"   measure both in turns until that question is answered
  ab EXPERIMENT --a=ref:main --b=ref:HEAD               the same for two commits: is the newer one slower?
  calibrate EXPERIMENT         measure how much runs of one program vary on this machine, the threshold of check
  baseline --run=DIR --name=N  keep a run as a baseline
  check EXPERIMENT --name=N    for CI: measure again; is it slower than that baseline?
  card --run=DIR     write a run as one document; cards: show all cards; repro --card=FILE: measure a card again
  doctor             is this machine fit to measure on?
  list               list the experiments and presets

Flags: --preset=auto|smoke|paper, --workdir=DIR (continues the run in it), --dry_run, --verbosity=1 (stack traces),
--share_machine (measure although another measurement runs here: one at a time is the rule),
--dry_run --target=h100:8 (compile for absent hardware; also v5e:4x4, v5p:2x2x2, v6e:2x4, a100, h200, b200),
--coordinator=host:port --processes=2 --process=0 (started once per process; srun and mpirun need no flags),
--elastic --fault_timeout=60 (train in several processes: go on without one that is lost; seconds until it is),
--config.<field>=<value>, such as --config.mesh.devices=1,2,4 --config.strategy=all --config.scaling=strong,weak
--config.batch=64 --config.measure.rounds=10 --config.model.width=32. A run's config.json has every field.

launch takes, before the --: --nodes=1,2,4 (a job each) --devices=gpu:8 (of a node; also tpu:4, cpu:2) --minutes=60
--processes_per_node=1 --options="further words for the engine" --workdir=DIR, and --dry_run, which shows the jobs.
forecast takes --counts=1..1024 (reckoned from two compiled counts), --depths=2,4 (compiled in place of all blocks),
--from=DIR --counts=2 --link=1gbit (from a measured run, over that link), --card=FILE (links of a machine's card).
advise takes --tokens=1e12 or --examples=1e8, --deadline=14d, --prices=FILE, --targets=h100,v5p and --counts=8..256.
run takes --price_per_hour=2.50, of this machine: what a thousand steps and the training to target cost.
compare and ab take --metric=step_s|throughput and --margin=0.02; compare also --across=FIELD,..., ab --budget_s=600.
compare of two trainings, or of two folders with seeds of one each, says which reaches its target sooner.
Exit codes of compare, ab, check and repro: 0 same or faster, 1 slower, 2 inconclusive, 3 no answer.
"""

from __future__ import annotations

import contextlib
import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app as absl_app
from absl import flags
from rich.console import Console

from jaxbench import commandline, discovery
from jaxbench.errors import UserError

if TYPE_CHECKING:
    from jaxbench.machine.launch import Launch
    from jaxbench.runner.crew import Crew

FLAGS = flags.FLAGS


def run(experiment: str, workdir: Path, console: Console, crew: Crew | None = None) -> int:
    from jaxbench.analysis import stopping
    from jaxbench.machine_command import add_links, adopt
    from jaxbench.price_command import Meter
    from jaxbench.records.store import RunFolder
    from jaxbench.runner import compile_only
    from jaxbench.runner import run as runner
    from jaxbench.verdicts import calibration

    if FLAGS.config.get("measures") == "targets":
        return targets(experiment, workdir, console, crew)
    meter = Meter(FLAGS.price_per_hour, FLAGS.config)
    if FLAGS.target and not FLAGS.dry_run:
        raise UserError(f"--target={FLAGS.target} is absent hardware, so points are only compiled: add --dry_run.")
    if FLAGS.target:
        compile_only.run(experiment, FLAGS.config, FLAGS.target, workdir, console)
        return report(workdir, console)
    if FLAGS.dry_run:
        return 0 if runner.dry_run(experiment, FLAGS.config, console, crew) else 1
    runner.run(experiment, FLAGS.config, workdir, console, stopping.look, crew)
    meter.stop()
    if FLAGS.config.get("measures") == "cases" and FLAGS.preset != "smoke":
        add_links(workdir, console)
    adopt(workdir, console)
    calibration.adopt(workdir, RunFolder(workdir).manifest(), str(FLAGS.config.experiment))
    code = report(workdir, console)
    meter.show(workdir, console)
    return code


def targets(experiment: str, workdir: Path, console: Console, crew: Crew | None) -> int:
    """`run` of trainings to a target over batch sizes."""
    from jaxbench.training import targets as trainings

    if crew or FLAGS.target:
        raise UserError(f"'{experiment}' trains, in one process on devices that are here: drop --target or --process.")
    if FLAGS.dry_run:
        trainings.dry_run(FLAGS.config, console)
        return 0
    trainings.run(experiment, FLAGS.config, workdir, console)
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


def train(experiment: str, workdir: Path, console: Console, crew: Crew | None = None) -> int:
    from jaxbench.report import training as page
    from jaxbench.training import run as runner

    faults = runner.Faults(timeout_s=FLAGS.fault_timeout, elastic=FLAGS.elastic)
    code = runner.train(experiment, FLAGS.config, workdir, console, faults, crew)
    page.write(workdir)
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

    papers.gallery(Path(FLAGS.workdir) if FLAGS.workdir else session.FOLDER, console)
    return 0


def launch(engine: str, command: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.launch import submission
    from jaxbench.launch.request import Request
    from jaxbench.records import launched
    from jaxbench.runner import run as runner

    request = Request(
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
    submission.require(request)
    commandline.check_command(command)  # now, and not after hours in a queue
    if command[0] == "run" and FLAGS.config.get("measures") == "targets":
        raise UserError(f"'{command[1]}' trains in one process on one host: use jaxbench run, without launch.")
    if command[0] == "run":
        runner.check(command[1], FLAGS.config)
    if dry_run:
        submission.show(request, console)
        return 0
    code = submission.submit(request, console)
    if code is None:
        console.print(f"What is there at any time: jaxbench report --run={workdir}", highlight=False, soft_wrap=True)
    if code is None or command[0] == "train" or not launched.begun(workdir):
        return code or 0
    return max(code, report(workdir, console))


def report(workdir: Path, console: Console) -> int:
    from jaxbench.records.account import ACCOUNT
    from jaxbench.records.targets import FILE as TARGETS
    from jaxbench.report import build, targets, training

    if (workdir / ACCOUNT).exists():
        training.write(workdir, console)
        return 0
    if (workdir / TARGETS).exists():
        targets.write(workdir, console)
        return 0
    outcome = build.write(workdir, console=console)
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
    """A verb of `compare_commands`."""
    from jaxbench import compare_commands

    return int(getattr(compare_commands, verb)(*arguments, workdir, FLAGS, console))


def new_workdir(verb: str, arguments: list[str]) -> Path:
    """A folder under results/, named after the experiment, the verb and the time. That of a paper is always the same,
    so that its command continues."""
    if verb == "paper":
        return Path("results/papers") / "-".join([*arguments, *([] if FLAGS.preset == "auto" else [FLAGS.preset])])
    named = arguments[2:] if verb == "launch" else arguments
    words = [Path(named[0]).stem] if named else []
    if verb != "run":
        words.append(verb)
    if FLAGS.target:
        words.append(FLAGS.target.replace(":", "-"))
    return Path("results") / f"{'-'.join(words)}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def dispatch(argv: list[str]) -> int:
    """`argv`: the program, a verb and its arguments, as `commandline.parse` leaves them. Returns the exit code."""
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False)
    verb, *arguments = argv[1:] or ["help"]
    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(verb, arguments)
    try:
        if launch := launch_of(verb):
            return launched(launch, verb, arguments, workdir, console)
        with alone(verb, arguments, workdir):
            return carry_out(verb, arguments, workdir, console)
    except KeyboardInterrupt:
        again = f" Finished measurements are kept: the same command with WORKDIR={workdir} continues."
        console.print(f"Stopped.{again if workdir.exists() else ''}")
        return 130


def launch_of(verb: str) -> Launch | None:
    """The launch that this process is a part of, for a verb that takes part in one."""
    from jaxbench.machine import launch

    if "coordinator" not in commandline.VERBS[verb].flags or FLAGS.target:
        return None
    return launch.of(FLAGS.coordinator, FLAGS.processes, FLAGS.process)


def launched(launch: Launch, verb: str, arguments: list[str], workdir: Path, console: Console) -> int:
    """`run` or `train` as one process of a launch."""
    from jaxbench.runner import launched as parts
    from jaxbench.runner import run as runner

    (experiment,) = arguments

    def say() -> dict[str, Any]:
        machine = runner.look(FLAGS.config.mesh.platform, Console(quiet=True))
        return parts.mine(launch, machine, experiment, FLAGS.config)

    lead = {"run": run, "train": train}[verb]
    return parts.take_part(
        launch,
        lambda crew: lead(experiment, workdir, console, crew),
        say,
        runner.absolute(experiment),
        lambda: alone(verb, arguments, workdir, launch.address),
    )


def alone(verb: str, arguments: list[str], workdir: Path, launch: str = "") -> contextlib.AbstractContextManager[None]:
    """Holds the machine for a verb that measures. Raises UserError if another process measures."""
    from jaxbench.machine import lock

    if not commandline.VERBS[verb].measures or FLAGS.dry_run or [verb, *arguments] == ["paper", "list"]:
        return contextlib.nullcontext()
    return lock.measuring(" ".join(("jaxbench", verb, *arguments)), workdir, share=FLAGS.share_machine, launch=launch)


def carry_out(verb: str, arguments: list[str], workdir: Path, console: Console) -> int:
    match [verb, *arguments]:
        case ["run", experiment]:
            return run(experiment, workdir, console)
        case ["forecast", experiment]:
            return forecast(experiment, workdir, console)
        case ["advise", experiment]:
            return advise(experiment, workdir, console)
        case ["try", experiment]:
            return trial(experiment, console)
        case ["train", experiment]:
            return train(experiment, workdir, console)
        case ["new", file]:
            return new(file, console)
        case ["machine"]:
            return machine(workdir, console)
        case ["first-run"]:
            return first_run(workdir, console)
        case ["paper", "list"]:
            return paper_list(console)
        case ["paper", id]:
            return paper(id, workdir, console)
        case ["gallery"]:
            return gallery(console)
        case ["launch", engine, *command]:
            return launch(engine, command, workdir, console)
        case ["report"] if not FLAGS.run:
            raise UserError("jaxbench report needs --run=DIR, the folder of a run.")
        case ["report"]:
            return report(Path(FLAGS.run), console)
        case ["cards", *filters]:
            from jaxbench.cards import gallery as shown

            return shown.cards(shown.FOLDER, filters, console)
        case ["doctor"]:
            return doctor(console)
        case ["list"]:
            return list_all(console)
        case ["help", *_]:
            console.print(__doc__, highlight=False, soft_wrap=True)
            return 0
    return answer(verb, arguments, workdir, console)


def main() -> None:
    absl_app.run(commandline.explained(dispatch), flags_parser=commandline.explained(commandline.parse))


if __name__ == "__main__":
    main()

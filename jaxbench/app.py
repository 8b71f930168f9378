# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""jaxbench VERB ...

  run EXPERIMENT     measure how it scales, then report (EXPERIMENT: a name, or a path to your own .py file)
  forecast EXPERIMENT --targets=v5e:16x16,h100:8   compile it for absent hardware: memory, and a range of step times
  advise EXPERIMENT --tokens=1e12 --deadline=14d   which accelerators for a training: what fits, time, cost and energy
  try EXPERIMENT     describe a model, and check which strategies train it correctly; no timing
  train EXPERIMENT   train it on real data to its target accuracy
  new FILE.py        write an example model to start from (--from=nnx, linen, functions, equinox or haiku)
  machine            measure this machine: peaks, launch cost and links; writes its profile, machine.json
  first-run          run everything once at a small size and write one page of results, within half an hour
  paper ID           does what this paper claims hold here? (paper list: all of them; --preset=paper: its own size)
  gallery            all papers that were run, as one page
  launch ENGINE -- run EXPERIMENT ...   start it on the nodes of a cluster: ENGINE is slurm, mpi, k8s or ray
  report --run=DIR   rebuild the tables, figures and page of a run or a training
  compare --a=DIR --b=DIR      is run B faster than A, slower, the same, or is that inconclusive?
  ab EXPERIMENT --a="--config.x=1" --b="--config.x=2"   measure both in turns until that question is answered
  ab EXPERIMENT --a=ref:main --b=ref:HEAD               the same for two commits: is the newer commit slower?
  calibrate EXPERIMENT         measure how much runs of one program vary on this machine, the threshold of check
  baseline --run=DIR --name=N  keep a run as a baseline
  check EXPERIMENT --name=N    for CI: rerun; is it slower than that baseline?
  card --run=DIR     write a run as one document; cards: show all cards; repro --card=FILE: rerun a card
  doctor             is this machine fit to measure on?
  list               list the experiments and presets

Flags: --preset=auto|smoke|paper, --workdir=DIR (continues the run in it), --dry_run, --verbosity=1 (stack traces),
--version, --share_machine (measure although another measurement runs on this machine),
--dry_run --target=h100:8 (compile for absent hardware; also v5e:4x4, v5p:2x2x2, v6e:2x4, a100, h200, b200),
--coordinator=host:port --processes=2 --process=0 (started once per process; srun and mpirun need no flags),
--elastic --fault_timeout=60 (train in several processes: go on without a lost process, and after how many seconds),
--config.<field>=<value>, such as --config.mesh.devices=1,2,4 --config.strategy=all --config.scaling=strong,weak
--config.batch=64 --config.measure.rounds=10 --config.model.width=32. A run's config.json has every field.

launch takes, before the --: --nodes=1,2,4 (a job each) --devices=gpu:8 (of a node; also tpu:4, cpu:2) --minutes=60
--processes_per_node=1 --options="further words for the engine" --workdir=DIR, and --dry_run, which shows the jobs.
forecast takes --counts=1..1024 (extrapolated from two compiled counts), --depths=2,4 (compiled instead of all blocks),
--from=DIR --counts=2 --link=1gbit (from a measured run, over that link), --card=FILE (links of a machine profile).
advise takes --tokens=1e12 or --examples=1e8, --deadline=14d, --prices=FILE, --targets=h100,v5p and --counts=8..256.
run takes --price_per_hour=2.50, the price of this machine: prints the cost of 1,000 steps and of a training to target.
compare and ab take --metric=step_s|throughput and --margin=0.02; compare also --across=FIELD,..., ab --budget_s=600.
compare of two trainings, or of two folders with seeds of one each, says which reaches its target sooner.
Exit codes of compare, ab, check and repro: 0 same or faster, 1 slower, 2 inconclusive, 3 no answer.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime
import io
import locale
import os
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app as absl_app
from absl import flags
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from jaxbench import __version__, commandline, native_log, verbs
from jaxbench.command_form import as_typed
from jaxbench.errors import UserError
from jaxbench.machine.lock import Busy

if TYPE_CHECKING:
    from jaxbench.processes.launch import Launch

FLAGS = flags.FLAGS


class Terminal(Console):
    """A console that prints commands in the form in which this process was started: `jaxbench VERB` or `make VERB`."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (said := as_typed(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = said
        return super().render(renderable, options)

    def out(self, *objects: Any, **how: Any) -> None:
        """Prints text for another program, such as a job script, unchanged."""
        self.file.write(" ".join(map(str, objects)) + "\n")


def new_workdir(verb: str, arguments: list[str]) -> Path:
    """A new folder under results/, named after the experiment, the verb and the time. For a paper the name is always
    the same, so that its command continues."""
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
    """Runs a verb. argv: the program, the verb and its arguments, as `commandline.parse` leaves them. Returns the exit
    code."""
    console = Terminal(width=None if sys.stdout.isatty() else 100, markup=False)
    verb, *arguments = argv[1:] or ["help"]
    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(verb, arguments)
    try:
        if launch := launch_of(verb):
            return launched(launch, verb, arguments, workdir, console)
        with alone(verb, arguments, workdir):
            return carry_out(verb, arguments, workdir, console)
    except Busy:  # report an invalid setting now, instead of after waiting for the other measurement
        if commandline.VERBS[verb].configured:
            verbs.check(*arguments)
        raise
    except KeyboardInterrupt:
        again = f" Finished measurements are kept: the same command with --workdir={workdir} continues."
        console.print(f"Stopped.{again if workdir.exists() else ''}")
        return 130
    finally:
        native_log.write(workdir / "logs")


def launch_of(verb: str) -> Launch | None:
    """The launch that this process is a part of; None if there is none, or if the verb runs in a single process."""
    from jaxbench.processes import launch

    if "coordinator" not in commandline.VERBS[verb].flags or FLAGS.target:
        return None
    return launch.of(FLAGS.coordinator, FLAGS.processes, FLAGS.process)


def launched(launch: Launch, verb: str, arguments: list[str], workdir: Path, console: Console) -> int:
    """`run` or `train` as one process of a launch."""
    from jaxbench.processes.launch import facts, take_part
    from jaxbench.runner import run as runner

    (experiment,) = arguments

    def say() -> dict[str, Any]:
        machine = runner.probe_machine(FLAGS.config.mesh.platform, Console(quiet=True))
        return facts(launch, machine, experiment, FLAGS.config)

    lead = {"run": verbs.run, "train": verbs.train}[verb]
    return take_part(
        launch,
        lambda followers: lead(experiment, workdir, console, followers),
        say,
        runner.absolute(experiment),
        lambda: alone(verb, arguments, workdir, launch.address),
    )


def alone(verb: str, arguments: list[str], workdir: Path, launch: str = "") -> contextlib.AbstractContextManager[None]:
    """A context that locks the machine for a verb that measures. Raises UserError if another process measures."""
    from jaxbench.machine import lock

    if not commandline.VERBS[verb].measures or FLAGS.dry_run or [verb, *arguments] == ["paper", "list"]:
        return contextlib.nullcontext()
    return lock.measuring(" ".join(("jaxbench", verb, *arguments)), workdir, share=FLAGS.share_machine, launch=launch)


def carry_out(verb: str, arguments: list[str], workdir: Path, console: Console) -> int:
    match [verb, *arguments]:
        case ["run", experiment]:
            return verbs.run(experiment, workdir, console)
        case ["forecast", experiment]:
            return verbs.forecast(experiment, workdir, console)
        case ["advise", experiment]:
            return verbs.advise(experiment, workdir, console)
        case ["try", experiment]:
            return verbs.trial(experiment, console)
        case ["train", experiment]:
            return verbs.train(experiment, workdir, console)
        case ["new", file]:
            return verbs.new(file, console)
        case ["machine"]:
            return verbs.machine(workdir, console)
        case ["first-run"]:
            return verbs.first_run(workdir, console)
        case ["paper", "list"]:
            return verbs.paper_list(console)
        case ["paper", id]:
            return verbs.paper(id, workdir, console)
        case ["gallery"]:
            return verbs.gallery(console)
        case ["launch", engine, *command]:
            return verbs.launch(engine, command, workdir, console)
        case ["report"] if not FLAGS.run:
            raise UserError("jaxbench report needs --run=DIR, the folder of a run.")
        case ["report"]:
            return verbs.report(Path(FLAGS.run), console, commandline.config_lib.check_look(FLAGS.config))
        case ["cards", *filters]:
            from jaxbench.cards import gallery as shown

            return shown.cards(shown.FOLDER, filters, console)
        case ["doctor"]:
            return verbs.doctor(console)
        case ["list"]:
            return verbs.list_all(console)
        case ["version"]:
            console.print(f"jaxbench {__version__}, jax {metadata.version('jax')}", highlight=False)
            return 0
        case ["help", *_]:
            console.print(__doc__, highlight=False, soft_wrap=True)
            return 0
    return verbs.answer(verb, arguments, workdir, console)


def main() -> None:
    native_log.keep()
    # Other encodings may have no µ, neither for the terminal nor for files, so start again with UTF-8.
    if codecs.lookup(locale.getpreferredencoding(False)).name != "utf-8":
        utf8 = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], utf8)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # PYTHONIOENCODING may still have chosen another encoding
            stream.reconfigure(errors="replace")
    absl_app.run(commandline.explained(dispatch), flags_parser=commandline.explained(commandline.parse))


if __name__ == "__main__":
    main()

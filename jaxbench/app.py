# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench VERB ...`: from the words of a command to its exit code. The verbs are in `commands`."""

from __future__ import annotations

import codecs
import contextlib
import datetime
import io
import locale
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app as absl_app
from absl import flags
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from jaxbench import commandline, interrupts, native_log, verbs
from jaxbench.machine.lock import Busy
from jaxbench.texts import visible

if TYPE_CHECKING:
    from jaxbench.machine.position import Position

FLAGS = flags.FLAGS


class Terminal(Console):
    """A console that prints control characters of foreign texts as their names."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (said := visible(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = said
        return super().render(renderable, options)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)  # such as a cell of a table, which `render` does not see

    def out(self, *objects: Any, **how: Any) -> None:
        """Prints text for another program, such as a job script, unchanged."""
        try:
            self.file.write(" ".join(map(str, objects)) + "\n")
            self.file.flush()
        except BrokenPipeError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Goes on in silence: a reader that left, as `head` does, does not stop a run or change the exit code."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def new_workdir(verb: str, arguments: list[str]) -> Path:
    """A new folder under results/, named after the experiment, the verb and the time. For a paper the name is always
    the same, so that its command continues."""
    if verb == "paper":
        return Path("results/papers") / "-".join([*arguments, *([] if FLAGS.preset == "auto" else [FLAGS.preset])])
    named = arguments[2:] if verb == "launch" else arguments  # without the engine and the verb that it starts
    words = [Path(named[0]).stem] if named else []
    if verb != "run":
        words.append(verb)
    if FLAGS.target:
        words.append(FLAGS.target.replace(":", "-"))
    return Path("results") / f"{'-'.join(words)}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def dispatch(argv: list[str]) -> int:
    """Runs a verb. argv: the program, the verb and its arguments, as `commandline.parse` leaves them. Returns the exit
    code."""
    # Without a terminal rich would cut tables at 80 columns. A message may contain brackets ('.[cuda13]').
    console = Terminal(width=None if sys.stdout.isatty() else 100, markup=False)
    verb, *arguments = argv[1:] or ["help"]
    workdir = Path(FLAGS.workdir) if FLAGS.workdir else new_workdir(verb, arguments)
    interrupts.ends_with(lambda: stopped(workdir))
    try:
        if launch := launch_of(verb):
            return launched(launch, verb, arguments, workdir, console)
        with alone(verb, arguments, workdir):
            return int(verbs.load(verb).main(arguments, workdir, console))
    except Busy:  # report an invalid setting now, instead of after waiting for the other measurement
        verbs.refuse(verb, arguments)
        raise
    except KeyboardInterrupt:
        interrupts.heard()
        console.print(stopped(workdir))
        return interrupts.STOPPED
    finally:
        native_log.write(workdir / "logs")


def stopped(workdir: Path) -> str:
    """What a stopped command says: how to continue it, if it has a folder."""
    again = f" Finished measurements are kept: the same command with --workdir={workdir} continues."
    return f"Stopped.{again if workdir.exists() else ''}"


def launch_of(verb: str) -> Position | None:
    """The launch that this process is a part of; None if there is none, or if the verb runs in a single process."""
    if "coordinator" not in commandline.VERBS[verb].flags or FLAGS.target:
        return None
    from jaxbench.processes import launch  # after the question above, because it imports JAX

    return launch.of(FLAGS.coordinator, FLAGS.processes, FLAGS.process)


def launched(launch: Position, verb: str, arguments: list[str], workdir: Path, console: Console) -> int:
    """A verb as one process of a launch."""
    module = verbs.load(verb)
    if hasattr(module, "launched"):  # it has a protocol of its own: the others measure an experiment together
        return int(module.launched(launch, workdir, console, lambda: alone(verb, arguments, workdir, launch.address)))
    from jaxbench.processes.launch import facts, take_part
    from jaxbench.processes.messages import HostFacts
    from jaxbench.sweep import run as runner

    (experiment,) = arguments

    def say() -> HostFacts:
        machine = runner.probe_machine(FLAGS.config.mesh.platform, Console(quiet=True))  # process 0 prints for all
        return facts(launch, machine, experiment, FLAGS.config)

    lead = verbs.load(verb).main
    return take_part(
        launch,
        lambda followers: lead(arguments, workdir, console, followers),
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


def open_streams() -> None:
    """Opens the null device for each standard stream that the shell has closed, as `>&-` does.

    Otherwise the next file, such as that of the records, would get the stream's number, and the output of libraries.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))


def main() -> None:
    """Runs the command of `sys.argv`, and ends the process."""
    open_streams()
    with interrupts.ending():
        interrupts.listen()
        native_log.keep()
        # Figures are files; a notebook's backend, or an unknown one, would end the import.
        os.environ["MPLBACKEND"] = "agg"
        # Other encodings may have no µ, neither for the terminal nor for files, so start again with UTF-8.
        if codecs.lookup(locale.getpreferredencoding(False)).name != "utf-8":
            utf8 = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
            interrupts.replace(sys.executable, [sys.executable, *sys.orig_argv[1:]], utf8)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # PYTHONIOENCODING may still have chosen another encoding
                stream.reconfigure(errors="replace")
        absl_app.run(commandline.explained(dispatch), flags_parser=commandline.explained(commandline.parse))

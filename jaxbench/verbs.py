# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verbs. A verb is one file in `commands`: its flags, its help, and `main`. The file name is its only registration.

A file defines `VERB` and `main(arguments, workdir, console) -> exit code`, and with absl the flags that only it takes.
It may define `prepare(config)`, which changes the experiment's defaults before settings are read, and
`check(*arguments)`, which raises UserError for what needs no measurement.
`list_.py` is the verb `list`, because a name of Python would hide it, and `first_run.py` is `first-run`.
Bodies import inside `main`: `jaxbench doctor` must not wait for jax, nor `jaxbench list` for matplotlib.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from absl import flags

from jaxbench import command_form, ranges
from jaxbench.errors import UserError, did_you_mean

FLAGS = flags.FLAGS
OF_A_LAUNCH = ("coordinator", "processes", "process")

DEFINE_share = functools.partial(flags.DEFINE, ranges.Share())  # of 1, typed as 0.05 or 5%

# Flags of several verbs. Absl refuses to define one twice.
flags.DEFINE_string("preset", "auto", "How much to measure: the name of a preset, or a path to a .py file.")
flags.DEFINE_string("workdir", None, "The run folder; the default is a new one under results/.")
flags.DEFINE_bool("dry_run", False, "Compile every point and print the expected time and memory; measure nothing.")
flags.DEFINE_bool("share_machine", False, "Measure although another measurement runs on this machine; the run says so.")
flags.DEFINE_string("target", None, "With --dry_run: absent hardware to compile for, such as h100:8 or v5e:4x4.")
flags.DEFINE_string("coordinator", None, "run, train, accept: the address of process 0, host:port; see --process.")
flags.DEFINE_integer("processes", None, "run, train, accept: the number of processes, if no launcher sets it.")
flags.DEFINE_integer("process", None, "run, train, accept: the index of this process, from 0.")
flags.DEFINE_string(  # a keyword of Python, so it is read as FLAGS["from"]
    "from",
    "nnx",
    "new: the example's library: nnx, linen, functions, equinox or haiku; step: your own train step. forecast: a run. "
    "bisect: the oldest version: jax==0.10.0 or ref:v1.",
)
flags.DEFINE_alias("template", "from")
flags.DEFINE_string("targets", None, "forecast, advise: absent hardware, several with commas: v5e:16x16,h100:8.")
flags.DEFINE_string("counts", None, "forecast, advise: device counts: 1,8,64 or 1..1024.")
flags.DEFINE_string(
    "run",
    None,
    "report, baseline, card: the run folder. advise: a run with power. bisect: a program that prints a number.",
)
flags.DEFINE_string(
    "a", None, "compare: the reference, a run folder. ab: the same, a commit (ref:main), releases or settings."
)
flags.DEFINE_string(
    "b", None, "compare: what is judged, a run folder. ab: the same, a commit (ref:HEAD), releases or settings."
)
flags.DEFINE_string(
    "metric",
    "step_s",
    "compare: step_s or throughput. ab: the same, or trace, lower, compile, first_run or memory. "
    "bisect: step, compile, trace or memory.",
)
DEFINE_share(
    "margin",
    0.02,
    "compare, ab, bisect: the largest relative difference that counts as the same, as 0.02 or 2%. repro: as compare, "
    "and 0.2 by default. accept: how much slower than its reference a device may be, 5% by default.",
)
flags.DEFINE_string("name", "", "baseline, check: the name of the baseline.")
flags.DEFINE_string("card", None, "repro: the file of a card. forecast: a machine profile, for its links.")
flags.DEFINE_string(
    "export",
    None,
    "run, compare, ab, check: formats, with commas: summary, bmf, pytest-benchmark, openmetrics, mlperf.",
)


@dataclass(frozen=True, kw_only=True)
class Verb:
    """What a verb accepts, and its help.

    Attributes:
      usage: the command, without "jaxbench". help: what it does, in one line.
      group: the heading of the help under which it is listed; see `help.GROUPS`.
      details: a paragraph at the end of the help, about its flags.
      argument: the name of its single argument; "" for none, "..." for any number of words.
      example: a command with an argument. examples: three complete commands, without "jaxbench".
      flags: the flags that it takes. required: those that it cannot do without.
      configured: whether it takes --config settings of its experiment. refused: kinds of experiment that it does not
        take, by what they measure.
      trains: its config is that of a training.
      answers: whether its exit code is a verdict, as in `judge`.
    """

    usage: str
    help: str
    group: str
    details: str = ""
    argument: str = ""
    example: str = ""
    examples: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    configured: bool = False
    refused: tuple[str, ...] = ()
    trains: bool = False
    answers: bool = False

    @property
    def measures(self) -> bool:
        """Whether it measures time. Only one such verb may run on a machine at a time."""
        return "share_machine" in self.flags


def load(name: str) -> Any:
    """The module of a verb. Raises UserError for an unknown one."""
    if name not in command_form.verbs():
        raise UserError(f"there is no verb '{name}': {did_you_mean(name, command_form.verbs())}")
    return importlib.import_module(command_form.verbs()[name])


def refuse(name: str, arguments: Sequence[str]) -> None:
    """Raises UserError for what a verb would refuse before it measures anything, if its module can say so."""
    if hasattr(module := load(name), "check"):
        module.check(*arguments)


def verbs() -> dict[str, Verb]:
    """All verbs by name. This imports them all: `load` is faster for one."""
    return {name: load(name).VERB for name in command_form.verbs()}

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parses the command line: verbs, flags, and the experiment's config with its overrides. Errors are one sentence."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.catalog import jax_settings
from jaxbench.command_form import as_typed
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import CONFIG, RunFolder

flags.DEFINE_string("preset", "auto", "How much to measure: the name of a preset, or a path to a .py file.")
flags.DEFINE_string("workdir", None, "The run folder; the default is a new one under results/.")
flags.DEFINE_bool("dry_run", False, "Compile every point and print the expected time and memory; measure nothing.")
flags.DEFINE_string("target", None, "With --dry_run: absent hardware to compile for, such as h100:8 or v5e:4x4.")
flags.DEFINE_string(
    "from", "nnx", "new: the example's library: nnx, linen, functions, equinox or haiku. forecast: a measured run."
)
flags.DEFINE_string("targets", None, "forecast: absent hardware, several with commas, such as v5e:16x16,h100:8.")
flags.DEFINE_string("counts", None, "forecast: device counts, extrapolated from two compiled ones: 1,8,64 or 1..1024.")
flags.DEFINE_string("depths", None, "forecast: compile the model with these two numbers of blocks: 2,4.")
flags.DEFINE_string("link", None, "forecast: the link between hosts, 1gbit or 300mbit:50us.")
flags.DEFINE_string("tokens", None, "advise: how many tokens the training sees: 1e12.")
flags.DEFINE_string("examples", None, "advise: how many examples the training sees, such as images: 1.2e8.")
flags.DEFINE_string("deadline", None, "advise: how long the training may take: 36h, 14d or 2w.")
flags.DEFINE_string("prices", None, "advise: a CSV file of prices that replaces the catalogue's.")
flags.DEFINE_float("price_per_hour", None, "run: the price of this machine per hour; prints the cost of steps.")
flags.DEFINE_string("run", None, "report, baseline, card: the run folder.")
flags.DEFINE_string(
    "a", None, "compare: the reference run folder. ab: the reference arm, a commit (ref:main) or settings."
)
flags.DEFINE_string(
    "b", None, "compare: the run folder to judge. ab: the arm to judge, a commit (ref:HEAD) or settings."
)
flags.DEFINE_string("across", "", "compare: the config fields that may differ between the runs.")
flags.DEFINE_string("metric", "step_s", "compare, ab: step_s or throughput.")
flags.DEFINE_float("margin", 0.02, "The largest relative difference that counts as the same: compare, ab; repro (0.2).")
flags.DEFINE_float("budget_s", 600.0, "ab: seconds after which no new pair of processes starts.")
flags.DEFINE_string("name", "", "baseline, check: the name of the baseline.")
flags.DEFINE_string("card", None, "repro: the file of a card. forecast: a machine profile, for its links.")
flags.DEFINE_string("docs", None, "gallery: the documentation folder that gets GALLERY.md and its figures.")
flags.DEFINE_bool("share_machine", False, "Measure although another measurement runs on this machine; the run says so.")
flags.DEFINE_bool("elastic", False, "train in several processes: if one is lost, the others go on.")
flags.DEFINE_float("fault_timeout", 60.0, "train in several processes: seconds after which a silent process is lost.")
flags.DEFINE_string("coordinator", None, "run, train: the address of process 0, host:port; see --process.")
flags.DEFINE_integer("processes", None, "run, train: the number of processes, if no launcher sets it.")
flags.DEFINE_integer("process", None, "run, train: the index of this process, from 0.")

flags.DEFINE_string("nodes", "1", "launch: the number of hosts; each of several counts, such as 1,2,4, is a job.")
flags.DEFINE_string("devices", "gpu:1", "launch: the devices of one host: gpu:8, tpu:4 or cpu:2.")
flags.DEFINE_integer("processes_per_node", 1, "launch: processes on each host.")
flags.DEFINE_integer("minutes", 60, "launch: the time limit of a job.")
flags.DEFINE_string("options", "", "launch: further words for Slurm, mpirun, Kubernetes or Ray.")

NO_ANSWER = 3  # exit code of a comparing verb that could not compare

OF_A_LAUNCH = ("coordinator", "processes", "process")


@dataclass(frozen=True)
class Verb:
    """What a verb accepts.

    Attributes:
      argument: the name of its single argument; "" for none, "..." for any number of words.
      flags: the flags that it takes.
      configured: whether it takes --config settings of its experiment.
      answers: whether its exit code is a verdict, as in `judge`.
      measures: whether it measures time. Only one such verb may run on a machine at a time.
    """

    argument: str = ""
    flags: tuple[str, ...] = ()
    configured: bool = False
    answers: bool = False

    @property
    def measures(self) -> bool:
        return "share_machine" in self.flags


VERBS = {
    "run": Verb(
        "experiment",
        ("preset", "workdir", "dry_run", "target", "share_machine", "price_per_hour", *OF_A_LAUNCH),
        configured=True,
    ),
    "forecast": Verb(
        "experiment", ("preset", "workdir", "targets", "counts", "depths", "from", "link", "card"), configured=True
    ),
    "advise": Verb(
        "experiment",
        ("preset", "workdir", "tokens", "examples", "deadline", "prices", "targets", "counts"),
        configured=True,
    ),
    "try": Verb("experiment", ("preset",), configured=True),
    "train": Verb("experiment", ("preset", "workdir", "elastic", "fault_timeout", *OF_A_LAUNCH), configured=True),
    "new": Verb("file to write", ("from",)),
    "machine": Verb("", ("preset", "workdir", "share_machine")),
    "first-run": Verb("", ("workdir", "dry_run", "share_machine")),
    "paper": Verb("paper, or list", ("preset", "workdir", "dry_run", "share_machine")),
    "gallery": Verb("", ("workdir", "docs")),
    "report": Verb("", ("run",), configured=True),
    "launch": Verb("engine", ("nodes", "devices", "processes_per_node", "minutes", "options", "workdir", "dry_run")),
    "compare": Verb("", ("a", "b", "across", "metric", "margin", "workdir"), answers=True),
    "ab": Verb(
        "experiment", ("a", "b", "metric", "margin", "budget_s", "preset", "workdir", "share_machine"), True, True
    ),
    "baseline": Verb("", ("run", "name"), answers=True),
    "check": Verb("experiment", ("name", "workdir", "share_machine"), answers=True),
    "calibrate": Verb("experiment", ("preset", "workdir", "share_machine"), configured=True, answers=True),
    "card": Verb("", ("run",)),
    "cards": Verb("..."),
    "repro": Verb("", ("card", "margin", "workdir", "share_machine"), answers=True),
    "doctor": Verb(),
    "list": Verb(),
    "help": Verb("..."),
    "version": Verb(),
}
# All flags. A test pins this list, because settings of a measurement belong in --config.<field>.
OWN_FLAGS = sorted({name for verb in VERBS.values() for name in verb.flags})

PROCESSES, ROUNDS_EACH = 8, 3  # the processes of a calibration, and the rounds of each
PAIR_ROUNDS = 15  # the rounds of a pair of ab: measuring them takes about as long as starting both processes


def parse(argv: list[str]) -> list[str]:
    """Reads the verb, loads experiment and preset, and parses --config.* against what they define.

    Returns argv without its flags; their values are in flags.FLAGS. Raises UserError.
    """
    argv, after = _split(argv)
    if any(re.fullmatch("-h|--?help(full|short|xml)?", word) for word in argv):
        argv = [argv[0], "help"]
    if "--version" in argv:
        argv = [argv[0], "version"]
    try:
        name, *rest = _parsed(argv, known_only=True)[1:] or ["help"]
        if name not in VERBS:
            raise UserError(f"there is no verb '{name}': {did_you_mean(name, VERBS)}")
        verb, arguments = VERBS[name], _arguments(rest)
        if len(arguments) < len(rest) and not verb.configured:
            raise UserError(f"jaxbench {name} takes no --config settings: jaxbench run EXPERIMENT does.")
        _check_flags(name, verb)
        _check_arguments(name, verb, arguments)
        if verb.measures or verb.configured:
            jax_settings.refuse()
        if after and name != "launch":
            raise UserError(f"jaxbench {name} takes nothing after '--': jaxbench launch does.")
        if name == "report":
            _define_look(argv)
        elif verb.configured:
            _define_config(name, arguments[0], argv)
        return [*_parsed(argv), *after]
    except flags.Error as error:
        raise UserError(_sentence(error)) from error


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """(the words before the first "--", the words after it). The latter are the command that `launch` starts."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def check_command(words: list[str]) -> None:
    """Parses `words` as a command. Raises UserError for anything that a new process would refuse."""
    flags.FLAGS.unparse_flags()
    parse(["jaxbench", *words])


def _parsed(argv: list[str], **how: bool) -> list[str]:
    """argv without its flags. Raises flags.Error, even for --noFLAG=value, for which absl raises ValueError."""
    try:
        return flags.FLAGS(argv, **how)
    except ValueError as error:
        raise flags.Error(str(error)) from error


def _arguments(words: list[str]) -> list[str]:
    """The words that are neither a flag nor a --config setting. Raises UserError for an unknown flag."""
    settings = [word for word in words if re.match("--?config", word)]
    for word in settings:
        if not re.match(r"--config\.[^=]+=", word):
            raise UserError(f"'{word}' is not a setting: write --config.<field>=<value>, such as --config.batch=64.")
    others = [word for word in words if word not in settings]
    for word in others:
        if word.startswith("-"):
            name = word.lstrip("-").partition("=")[0]
            known = [*OWN_FLAGS, "verbosity", "config.<field>"]
            raise UserError(f"there is no flag --{name}: {did_you_mean(name, known)}")
    return others


def _check_flags(name: str, verb: Verb) -> None:
    for flag in OWN_FLAGS:
        if flags.FLAGS[flag].present and flag not in verb.flags:
            takes = f"it takes --{', --'.join(verb.flags)}" if verb.flags else "it takes no flags"
            raise UserError(f"jaxbench {name} does not take --{flag}: {takes}.")


def _check_arguments(name: str, verb: Verb, arguments: list[str]) -> None:
    most = {"": 0, "...": len(arguments)}.get(verb.argument, 1)
    if len(arguments) > most:
        takes = f"one {verb.argument}" if verb.argument else "no argument"
        raise UserError(f"unexpected argument '{arguments[most]}': jaxbench {name} takes {takes}.")
    if verb.argument not in ("", "...") and not arguments:
        known = f"{', '.join(discovery.experiments())}, or the path of a .py file"
        example = {
            "paper": "jaxbench paper rajbhandari2020",
            "new": "jaxbench new mine.py",
            "launch": "jaxbench launch mpi --devices=cpu:1 -- run cnn",
        }
        raise UserError(f"jaxbench {name} takes one {verb.argument}: {example.get(name, known)}.")


_KINDS = {"bool": ("true or false", "true"), "float": ("a number", "0.02"), "int": ("a whole number", "1")}


def _sentence(error: flags.Error) -> str:
    """absl's message about a flag as one sentence of this program."""
    text = " ".join(str(error).split())
    if illegal := re.match(r"flag --([\w.]+)=(.*?): ", text):
        name, value = illegal.groups()
        kind, example = _KINDS.get(flags.FLAGS[name].flag_type(), ("legal", str(flags.FLAGS[name].default)))
        return f"--{name}={value} is not {kind}: use {example}, for example."
    if missing := re.fullmatch(r"Missing value for flag -*([\w.]+)\.?", text):
        return f"--{missing.group(1)} needs a value: --{missing.group(1)}=VALUE."
    return f"{text.removeprefix('ERROR:: ').rstrip('.')}."


def _define_config(verb: str, experiment: str, argv: list[str]) -> None:
    if verb != "train":
        from jaxbench.machine import start  # late: doctor must be able to report that jax does not start

        start.only_cpu_here()
    module, preset = discovery.load_experiment(experiment), discovery.load_preset(flags.FLAGS.preset)
    trains = verb == "train"
    config = config_lib.compose(Path(experiment).stem, module, preset, tiny=not trains, training=trains)
    if verb == "forecast" and "weak" in str(config.get("scaling", "")):
        config.scaling = "weak"  # the usual question about absent hardware; both scalings would compile twice as much
    if verb == "advise":
        _prepare_advice(config)
    refused: dict[str, tuple[str, ...]] = {"cases": ("train", "try", "forecast", "advise")}
    refused["targets"] = (*refused["cases"], "ab", "calibrate")
    if verb in refused.get(config.get("measures", ""), ()):
        raise UserError(f"'{experiment}' is not a model, so jaxbench {verb} cannot take it: use jaxbench run.")
    if verb in ("ab", "calibrate"):
        _prepare_verdict(verb, config)
    _define(config, argv, flags.FLAGS)
    if verb in ("train", "try"):
        _check_ignored(verb, argv, config)


def _define_look(argv: list[str]) -> None:
    """Defines the settings of `report`: the look of the figures of an existing run."""
    run = RunFolder(Path(flags.FLAGS.run or "."))
    recorded = run.config() if (run.path / CONFIG).is_file() else {}
    _define(config_lib.look(recorded), argv, flags.FLAGS)


def _check_ignored(verb: str, argv: list[str], config: ConfigDict) -> None:
    """Raises UserError for a setting that `train` or `try` would ignore, such as ``--config.strategy``."""
    for word in argv:
        name, _, text = word.removeprefix("--config.").partition("=")
        if not word.startswith("--config."):
            continue
        if verb == "train" and name in config.train:
            raise UserError(f"--config.{name}={text} is for 'run': use --config.train.{name}={text} for training.")
        if verb == "try" and (name == "strategy" or name.startswith("lever.")):
            raise UserError(f"{word} has no effect on jaxbench try, which tries every strategy: use jaxbench run.")


def _prepare_verdict(verb: str, config: ConfigDict) -> None:
    """Sets the defaults of ab and calibrate: strong scaling, up to as many devices as cores."""
    with config.unlocked():
        for name in ("rounds", "processes"):  # only numbers, not "auto": these verbs have their own stopping rule
            del config.measure[name]
        if verb == "ab":
            config.measure.rounds, config.measure.processes = PAIR_ROUNDS, 1  # of each pair
        else:
            config.measure.processes, config.measure.rounds = PROCESSES, PROCESSES * ROUNDS_EACH
        if config.get("measures") != "cases":
            config.mesh.oversubscribe = False
            if "strong" in config.scaling:
                config.scaling = "strong"


def _prepare_advice(config: ConfigDict) -> None:
    """Sets the defaults of advise: weak scaling. A model of blocks shards its state and recomputes its blocks."""
    if "scaling" in config:
        config.scaling = "weak"
    if config.get("model", {}).get("layers") is not None and config.strategy == "jit_auto":
        config.strategy, config.lever.remat, config.accelerator_batch = "fsdp", "block", 1


def _define(config: ConfigDict, argv: list[str], values: flags.FlagValues) -> None:
    config_lib.check_overrides(argv, config)
    for word in argv:
        if word.startswith("--config.report.view="):
            _check_view(word.partition("=")[2])
    fields = {word.partition("=")[0] for word in argv}
    if "--config.batch" in fields and "--config.accelerator_batch" not in fields:
        config.accelerator_batch = 0
    config_flags.DEFINE_config_dict("config", config, flag_values=values, sys_argv=argv)


def _check_view(view: str) -> None:
    from jaxbench.report import views

    known = views.views("training")
    if view and view not in known:
        raise UserError(f"--config.report.view={view} is unknown: {did_you_mean(view, known)}")


def changed(config: ConfigDict, words: list[str]) -> ConfigDict:
    """A copy with these --config settings. Raises UserError for any other word."""
    other = [word for word in words if not word.startswith("--config.") or "=" not in word]
    if other:
        raise UserError(f"'{other[0]}' is not a setting: write --config.strategy=pmap, for example.")
    argv, values = ["jaxbench", *words], flags.FlagValues()
    _define(config.copy_and_resolve_references(), argv, values)
    values(argv)
    return values.config


def _follows() -> bool:
    """Whether a launcher started this process and it is not process 0, which reports errors in the command."""
    from jaxbench.processes import launch

    found = launch.detected()
    return found is not None and found.process > 0


def explained(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps `action`: a UserError ends the program with its sentence, and with the stack trace at --verbosity=1."""

    def run(argument: Any) -> Any:
        try:
            return action(argument)
        except UserError as error:
            name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            if logging.level_debug():
                traceback.print_exc()
            if not (action is parse and _follows()):
                trains = str(error).replace("--config.strategy=", "--config.train.strategy=")
                sys.stderr.write(f"jaxbench: {as_typed(trains if name == 'train' else str(error))}\n")
            verb = VERBS.get(name, Verb())
            sys.exit(NO_ANSWER if verb.answers else 2)  # a comparing verb returns 2 for "inconclusive"

    return run

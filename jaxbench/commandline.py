# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parses the command line: verbs, flags, and the experiment's config with its overrides. Errors are one sentence."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from jaxbench import config as config_lib
from jaxbench import discovery, interrupts, jax_import, verbs
from jaxbench.catalog import jax_settings
from jaxbench.command_form import for_make
from jaxbench.core.store import CONFIG, RunFolder
from jaxbench.errors import UserError, did_you_mean
from jaxbench.jax_import import NoJax
from jaxbench.texts import visible
from jaxbench.verbs import Verb

NO_ANSWER = 3  # exit code of a comparing verb that could not compare
VERBS = verbs.verbs()  # all are imported: a flag that another verb takes is refused by name, not as unknown
# All flags. A test pins this list, because settings of a measurement belong in --config.<field>.
OWN_FLAGS = sorted({name for verb in VERBS.values() for name in verb.flags})
_KINDS = {"bool": "true or false", "float": "a number", "int": "a whole number"}
# Legal values of flags without a default. That of the others is their default.
EXAMPLES = {"export": "summary,bmf", "price_per_hour": "2.5", "processes": "2", "process": "0"}


def parse(argv: list[str]) -> list[str]:
    """Reads the verb, loads experiment and preset, and parses --config.* against what they define.

    Returns argv without its flags; their values are in flags.FLAGS. Raises UserError.
    """
    argv, after = _split(argv)
    argv = [*argv[:2], *map(_as_flag, argv[2:])] if argv[1:2] == ["launch"] else argv
    if any(re.fullmatch("-h|--?help(full|short|xml)?", word) for word in argv):
        argv = [argv[0], "help", *[word for word in argv[1:] if not word.startswith("-")][:1]]
    if "--version" in argv:
        argv = [argv[0], "version"]
    if completion := [word for word in argv if re.match(r"--install[-_]completion(=|$)", word)]:
        argv = [argv[0], "install-completion", *filter(None, [completion[0].partition("=")[2]])]
    try:
        # Only known flags, because those of --config are defined by the experiment, which the verb's argument names.
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
        if name == "report":  # only the look of the figures of an existing run
            run = RunFolder(Path(flags.FLAGS.run or "."))
            recorded = run.config() if (run.path / CONFIG).is_file() else {}
            _define(config_lib.look(recorded), argv, flags.FLAGS)
        elif verb.configured and arguments:
            _define_config(name, verb, arguments[0], argv)
        return [*_parsed(argv), *after]
    except flags.Error as error:
        raise UserError(_sentence(error)) from error


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """(the words before the first "--", the words after it). The latter are the command that `launch` starts."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def _as_flag(word: str) -> str:
    """A variable of make before the "--" of launch as its flag or argument, such as ENGINE=slurm NODES=16."""
    name, equals, value = word.partition("=")
    if not equals or name not in ("ENGINE", *(flag.upper() for flag in VERBS["launch"].flags)):
        return word
    return value if name == "ENGINE" else f"--{name.lower()}={value}"


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
        if flag in verb.required and not flags.FLAGS[flag].value:
            raise UserError(f"jaxbench {name} needs --{flag}: jaxbench {verb.usage}.")


def _check_arguments(name: str, verb: Verb, arguments: list[str]) -> None:
    most = {"": 0, "...": len(arguments)}.get(verb.argument, 1)
    if len(arguments) > most:
        takes = f"one {verb.argument}" if verb.argument else "no argument"
        raise UserError(f"unexpected argument '{arguments[most]}': jaxbench {name} takes {takes}.")
    if verb.argument not in ("", "...") and not arguments:
        known = f"{', '.join(discovery.experiments())}, or the path of a .py file"
        raise UserError(f"jaxbench {name} takes one {verb.argument}: {verb.example or known}.")


def example_of(name: str) -> str:
    """A legal value of a flag, as it is typed."""
    flag = flags.FLAGS[name]
    if flag.flag_type() == "bool":
        return "true"
    return (
        EXAMPLES[name]
        if name in EXAMPLES
        else f"{flag.default:g}"
        if flag.flag_type() == "float"
        else str(flag.default)
    )


def _sentence(error: flags.Error) -> str:
    """absl's message about a flag as one sentence of this program."""
    text = " ".join(str(error).split())
    if illegal := re.match(r"flag --([\w.]+)=(.*?): ", text):
        name, value = illegal.groups()
        kind = _KINDS.get(flags.FLAGS[name].flag_type(), "legal")
        return f"--{name}={value} is not {kind}: use {example_of(name)}, for example."
    if missing := re.fullmatch(r"Missing value for flag -*([\w.]+)\.?", text):
        return f"--{missing.group(1)} needs a value: --{missing.group(1)}=VALUE."
    return f"{text.removeprefix('ERROR:: ').rstrip('.')}."


def _define_config(name: str, verb: Verb, experiment: str, argv: list[str]) -> None:
    discovery.experiment_path(experiment)  # a name that is mistyped is said without JAX, too
    discovery.preset_path(flags.FLAGS.preset)
    jax_import.require(f"jaxbench {name}")
    if not verb.trains:
        from jaxbench.machine import start  # late: it imports JAX

        start.only_cpu_here()
    module, preset = discovery.load_experiment(experiment), discovery.load_preset(flags.FLAGS.preset)
    config = config_lib.compose(Path(experiment).stem, module, preset, tiny=not verb.trains, training=verb.trains)
    if config.get("measures", "") in verb.refused:
        raise UserError(f"'{experiment}' is not a model, so jaxbench {name} cannot take it: use jaxbench run.")
    if hasattr(module_of_verb := verbs.load(name), "prepare"):
        module_of_verb.prepare(config)
    _define(config, argv, flags.FLAGS)
    if name in ("train", "try"):
        _check_ignored(name, argv, config)


def _check_ignored(verb: str, argv: list[str], config: ConfigDict) -> None:
    """Raises UserError for a setting that `train` or `try` would ignore, such as ``--config.strategy``."""
    for word in argv:
        name, _, text = word.removeprefix("--config.").partition("=")
        if not word.startswith("--config."):
            continue
        if verb == "train" and name in config.train:
            raise UserError(f"--config.{name} is for 'run': use --config.train.{name}={text} for training.")
        if name == "measure.allocator":
            raise UserError(f"{word} has no effect on jaxbench {verb}, which times no blocks: use jaxbench run.")
        # With micro-batches, `try` also counts what each way to gather parameters sends.
        if verb == "try" and (name == "strategy" or (name.startswith("lever.") and name != "lever.accumulate")):
            raise UserError(f"{word} has no effect on jaxbench try, which tries every strategy: use jaxbench run.")


def _define(config: ConfigDict, argv: list[str], values: flags.FlagValues) -> None:
    """Defines the flags of the config. A typed batch also holds on accelerators."""
    config_lib.check_overrides(argv, config)
    for word in argv:
        if word.startswith("--config.report.view="):
            _check_view(word.partition("=")[2])
    fields = {word.partition("=")[0] for word in argv}
    # A typed batch holds on every platform.
    if "--config.batch" in fields and "--config.accelerator_batch" not in fields:
        config.accelerator_batch = 0
    config_flags.DEFINE_config_dict("config", config, flag_values=values, sys_argv=argv)


def _check_view(view: str) -> None:
    from jaxbench.report import build

    known = build.views_of("training")
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
    try:
        jax_import.require("jaxbench")
    except NoJax:  # JAX also detects the launcher, so each process reports its errors itself
        return False
    from jaxbench.processes import launch

    found = launch.detected()
    return found is not None and found.process > 0


def explained(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps `action`: a UserError ends the program with its sentence, and with the stack trace at --verbosity=1.

    So does an error of the operating system that no other code expects, such as a folder that may not be written.
    """

    def run(argument: Any) -> Any:
        try:
            return action(argument)
        except (UserError, OSError) as error:
            if interrupts.pending():  # an import that a signal ends fails in the words of its library
                raise KeyboardInterrupt from error
            said = str(error)
            if isinstance(error, OSError):
                said = f"cannot use '{error.filename}' ({error.strerror})." if error.filename else f"{error}."
            name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            if logging.level_debug():
                traceback.print_exc()
            if not (action is parse and _follows()):
                # Code that `run` and `train` share names the field of `run`.
                said = said.replace("--config.strategy=", "--config.train.strategy=") if name == "train" else said
                sys.stderr.write(f"jaxbench: {visible(said)}{for_make(said)}\n")
            answers = name in VERBS and VERBS[name].answers
            sys.exit(NO_ANSWER if answers else 2)  # a comparing verb returns 2 for "inconclusive"

    return run

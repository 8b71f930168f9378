# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reading the command line: flags, the experiment's config with its overrides, and errors as one sentence."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from absl import flags, logging
from ml_collections import config_flags

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError, did_you_mean

flags.DEFINE_string("preset", "auto", "How much to measure: the name of a preset, or a path to a .py file.")
flags.DEFINE_string("workdir", None, "The run folder; the default is a new one under results/.")
flags.DEFINE_bool("dry_run", False, "Say what would be measured, how long and with how much memory; measure nothing.")
flags.DEFINE_string("run", None, "report: the run folder.")

# The whole list; a test holds it frozen. What is measured is set by --config.<field>, not by flags.
OWN_FLAGS = ("preset", "workdir", "dry_run", "run", "verbosity", "config.<field>")
VERBS = ("run", "train", "machine", "report", "list", "help")


def parse(argv: list[str]) -> list[str]:
    """Reads the verb, loads experiment and preset, and parses --config.* against what they define.

    Returns argv without its flags; their values are in flags.FLAGS. Raises UserError.
    """
    if {"-h", "--help"} & set(argv):
        argv = [argv[0], "help"]
    try:
        verb, *rest = flags.FLAGS(argv, known_only=True)[1:] or ["help"]
        if verb not in VERBS:
            raise UserError(f"there is no verb '{verb}': {did_you_mean(verb, VERBS)}")
        names = [word for word in rest if not word.startswith("--config")]
        unknown = [word for word in names if word.startswith("-")]
        if unknown:
            name = unknown[0].lstrip("-").partition("=")[0]
            raise UserError(f"there is no flag --{name}: {did_you_mean(name, OWN_FLAGS)}")
        if verb in ("run", "train"):
            _define_config(verb, names, argv)
        elif len(names) < len(rest):
            raise UserError(f"jaxbench {verb} takes no --config settings: jaxbench run EXPERIMENT does.")
        return flags.FLAGS(argv)
    except flags.Error as error:
        raise UserError(f"{' '.join(str(error).split())}.") from error


def _define_config(verb: str, names: list[str], argv: list[str]) -> None:
    if len(names) != 1:
        known = ", ".join(discovery.experiments())
        raise UserError(f"jaxbench {verb} takes one experiment: {known}, or the path of a .py file.")
    if verb == "run":
        # Only workers may start accelerators. A model file that computes at import must not take their memory here.
        jax.config.update("jax_platforms", "cpu")
    module, preset = discovery.load_experiment(names[0]), discovery.load_preset(flags.FLAGS.preset)
    config = config_lib.compose(Path(names[0]).stem, module, preset, tiny=verb == "run")
    if verb == "train" and config.get("measures") == "cases":
        raise UserError(f"'{names[0]}' is no model and is not trained: jaxbench run {names[0]} measures it.")
    config_lib.check_overrides(argv, config)
    config_flags.DEFINE_config_dict("config", config, sys_argv=argv)


def explained(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`action`, in which bad input ends the program with its one sentence, and the stack trace with --verbosity=1."""

    def run(argument: Any) -> Any:
        try:
            return action(argument)
        except UserError as error:
            if logging.level_debug():
                traceback.print_exc()
            sys.stderr.write(f"jaxbench: {error}\n")
            sys.exit(2)

    return run

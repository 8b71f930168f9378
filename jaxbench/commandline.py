# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reading the command line: flags, the experiment's config with its overrides, and errors as one sentence."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError, did_you_mean

flags.DEFINE_string("preset", "auto", "How much to measure: the name of a preset, or a path to a .py file.")
flags.DEFINE_string("workdir", None, "The run folder; the default is a new one under results/.")
flags.DEFINE_bool("dry_run", False, "Say what would be measured, how long and with how much memory; measure nothing.")
flags.DEFINE_string(
    "target", None, "With --dry_run: hardware that is not here to compile for, such as h100:8 or v5e:4x4."
)
flags.DEFINE_string("from", "nnx", "new: what the example is written in: nnx, linen, functions, equinox or haiku.")
flags.DEFINE_string("run", None, "report, baseline, card: the run folder.")
flags.DEFINE_string("a", None, "compare: a run folder. ab: the settings of one arm.")
flags.DEFINE_string("b", None, "compare: the other run folder, which is judged. ab: the settings of the other arm.")
flags.DEFINE_string("across", "", "compare: the fields that differ because that is the question.")
flags.DEFINE_string("metric", "step_s", "compare, ab: step_s or throughput.")
flags.DEFINE_float("margin", 0.02, "compare, ab: a smaller difference is none, as a share.")
flags.DEFINE_float("budget_s", 600.0, "ab: seconds after which no further pair of processes is begun.")
flags.DEFINE_string("name", "", "baseline, check: what the baseline is called.")
flags.DEFINE_string("card", None, "repro: the file of a card.")

# The whole list; a test holds it frozen. What is measured is set by --config.<field>, not by flags.
VERDICTS = ("compare", "ab", "baseline", "check", "calibrate")
NO_ANSWER = 3  # exit code of a verdict that there is none of
VERDICT_FLAGS = ("a", "b", "across", "metric", "margin", "budget_s", "name", "card")
OWN_FLAGS = ("preset", "workdir", "dry_run", "target", "from", "run", *VERDICT_FLAGS, "verbosity", "config.<field>")
VERBS = (
    "run", "try", "train", "new", "machine", "first-run", "report", *VERDICTS, "card", "cards", "repro", "doctor",
    "list", "help",
)  # fmt: skip
CONFIGURED = ("run", "try", "train", "ab", "calibrate")  # they take --config settings

PROCESSES, ROUNDS_EACH = 8, 3  # of a calibration
PAIR_ROUNDS = 15  # of ab: they take about as long as starting and preparing two processes does


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
        if verb in CONFIGURED:
            _define_config(verb, names, argv)
        elif verb == "check" and len(names) != 1:
            raise UserError("jaxbench check takes one experiment, that of the baseline.")
        elif len(names) < len(rest):
            raise UserError(f"jaxbench {verb} takes no --config settings: jaxbench run EXPERIMENT does.")
        return flags.FLAGS(argv)
    except flags.Error as error:
        raise UserError(f"{' '.join(str(error).split())}.") from error


def _define_config(verb: str, names: list[str], argv: list[str]) -> None:
    if len(names) != 1:
        known = ", ".join(discovery.experiments())
        raise UserError(f"jaxbench {verb} takes one experiment: {known}, or the path of a .py file.")
    if verb != "train":
        import jax  # not above: the doctor must be able to say that jax does not start

        # Only workers may start accelerators. A model file that computes at import must not take their memory here.
        jax.config.update("jax_platforms", "cpu")
    module, preset = discovery.load_experiment(names[0]), discovery.load_preset(flags.FLAGS.preset)
    config = config_lib.compose(Path(names[0]).stem, module, preset, tiny=verb != "train")
    if verb in VERDICTS:
        _prepare_verdict(verb, config)
    if verb == "train" and config.get("measures") == "cases":
        raise UserError(f"'{names[0]}' is no model and is not trained: jaxbench run {names[0]} measures it.")
    _define(config, argv, flags.FLAGS)
    if verb == "train":
        config_lib.check_training(argv, config)


def _prepare_verdict(verb: str, config: ConfigDict) -> None:
    """What ab and calibrate measure unless told otherwise: strong scaling, on as many devices as there are cores."""
    with config.unlocked():
        if verb == "ab":
            config.measure.rounds = PAIR_ROUNDS
        else:
            config.measure.processes, config.measure.rounds = PROCESSES, PROCESSES * ROUNDS_EACH
        if config.get("measures") != "cases":
            config.mesh.oversubscribe = False
            if "strong" in config.scaling:
                config.scaling = "strong"


def _define(config: ConfigDict, argv: list[str], values: flags.FlagValues) -> None:
    config_lib.check_overrides(argv, config)
    config_flags.DEFINE_config_dict("config", config, flag_values=values, sys_argv=argv)


def changed(config: ConfigDict, words: list[str]) -> ConfigDict:
    """A copy with these --config settings. Raises UserError for any other word."""
    other = [word for word in words if not word.startswith("--config.") or "=" not in word]
    if other:
        raise UserError(f"'{other[0]}' is no setting: write --config.strategy=pmap, say.")
    argv, values = ["jaxbench", *words], flags.FlagValues()
    _define(config.copy_and_resolve_references(), argv, values)
    values(argv)
    return values.config


def explained(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`action`, in which bad input ends the program with its one sentence, and the stack trace with --verbosity=1."""

    def run(argument: Any) -> Any:
        try:
            return action(argument)
        except UserError as error:
            if logging.level_debug():
                traceback.print_exc()
            sys.stderr.write(f"jaxbench: {error}\n")
            # 2 is an answer of the verbs that answer: without one they end with 3.
            asked = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            sys.exit(NO_ANSWER if asked in (*VERDICTS, "repro") else 2)

    return run

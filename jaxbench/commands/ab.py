# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench ab`: measures two settings, commits or releases in turns, until it is clear whether B is faster."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.comparison.ab import Budget, Side

STEPS = ("step", "step_s", "throughput")  # metrics of steps
PAIR_ROUNDS = 15  # measuring them takes about as long as starting and preparing two processes

flags.DEFINE_float(
    "budget_s",
    600.0,
    "ab: seconds after which no new pair of processes starts. bisect: seconds of each comparison. accept: seconds of "
    "rounds, 36 on a CPU and else 75.",
)

VERB = Verb(
    usage='ab EXPERIMENT --a="--config.x=1" --b="--config.x=2"',
    help="measure both in turns until that question is answered (--a=ref:main --b=ref:HEAD: of two commits; "
    "--a=jax==0.10.0 --b=jax==0.10.2: of two releases)",
    group="compare",
    details="ab takes --budget_s=600, after which no new pair of processes starts. A side is any of a commit, releases "
    "and settings: --b='ref:HEAD jax==0.10.2 flax==0.12.8 --config.batch=64'; --b=nightly takes JAX's nightly build "
    "where an index offers it. --metric is also trace, lower, compile, first_run or memory.",
    argument="experiment",
    flags=("a", "b", "metric", "margin", "budget_s", "preset", "workdir", "share_machine", "export"),
    configured=True,
    refused=("targets",),
    answers=True,
    examples=(
        'ab cnn --a="--config.strategy=pmap" --b="--config.strategy=jit_auto"',
        "ab cnn --a=ref:main --b=ref:HEAD",
        "ab gpt --a=jax==0.10.0 --b=jax==0.10.2",
    ),
)


def prepare(config: ConfigDict) -> None:
    """The defaults of ab and calibrate: strong scaling, on as many devices as there are cores."""
    with config.unlocked():
        for name in ("rounds", "processes"):  # numbers only: these verbs have a rule of their own
            del config.measure[name]
        # Of each pair. What happens before the first step needs no rounds.
        config.measure.rounds, config.measure.processes = PAIR_ROUNDS if FLAGS.metric in STEPS else 1, 1
        if config.get("measures") != "cases":
            config.mesh.oversubscribe = False  # the times of devices that share a core decide nothing
            if "strong" in config.scaling:
                config.scaling = "strong"


def asked() -> tuple[tuple[Side, Side], Budget]:
    """Both arms, and when to stop. Raises UserError for what was typed."""
    from jaxbench.features.comparison import ab as runner
    from jaxbench.features.comparison import judge, phases

    sides = side_of(FLAGS.config, FLAGS.a or ""), side_of(FLAGS.config, FLAGS.b or "")
    by, margin = phases.metric_named(FLAGS.metric), judge.margin_of(FLAGS.margin)
    return sides, runner.Budget(seconds=FLAGS.budget_s, metric=by, margin=margin)


def check(experiment: str) -> None:
    """Raises UserError for settings that are refused on every machine."""
    from jaxbench.commands.compare import exports_asked
    from jaxbench.sweep import run as runner

    exports_asked()
    for side in asked()[0]:
        runner.check(experiment, side.config)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.commands.compare import answer, export, exports_asked
    from jaxbench.features.comparison import ab as runner

    (experiment,) = arguments
    sides, budget, names = *asked(), exports_asked()
    found, why = runner.run(experiment, sides, workdir, budget, console)
    console.print(why[:1].upper() + why[1:] + ".", highlight=False)
    code = answer(found, workdir, name := f"{experiment}: {found.a} against {found.b}", console)
    export(found, name, workdir / "b", workdir, names, console)
    return code


def side_of(config: ConfigDict, text: str) -> Side:
    """One arm: "ref:main jax==0.10.0 --config.batch=64". Any part may be missing. Raises UserError."""
    from jaxbench import commandline
    from jaxbench.environments import release
    from jaxbench.features.comparison.ab import Side
    from jaxbench.features.comparison.other_commit import PREFIX

    words = words_of(text)
    refs = [word for word in words if word.startswith(PREFIX)]
    if len(refs) > 1:
        raise UserError(f"{text!r} names two commits, {refs[0]} and {refs[1]}: each side measures one.")
    releases = [word for word in words if release.is_release(word)]
    settings = [word for word in words if word not in (*refs, *releases)]
    return Side(commandline.changed(config, settings), text, refs[0] if refs else "", release.parse(releases))


def words_of(text: str) -> list[str]:
    """The words of an arm. Raises UserError."""
    try:
        return shlex.split(text)
    except ValueError as error:  # from shlex: a missing closing quotation mark
        raise UserError(f"{text!r} cannot be read ({error}).") from error

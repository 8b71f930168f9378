# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench bisect`: the first slow version between two releases or two commits.

Exit codes: 0 none is slower, 1 a slow version or a range was found, 2 cannot tell, 3 bad input, or an end of the range
cannot be measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.commands import ab
from jaxbench.errors import UserError
from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.bisect.run import Asked

flags.DEFINE_string("to", None, "bisect: the newest version: jax==0.10.2, ref:main, or nightly.")

VERB = Verb(
    usage="bisect EXPERIMENT --from=jax==0.10.0 --to=jax==0.10.2",
    help="the first slow version between two releases or two commits (--from=ref:v1 --to=ref:main)",
    group="compare",
    details="bisect takes --metric=step|compile|trace|memory, and --budget_s=600, the seconds of each comparison. "
    '--run="python my_script.py" in place of an experiment bisects any program that prints a number, such as seconds.',
    argument="...",
    flags=("from", "to", "run", "metric", "margin", "budget_s", "preset", "workdir", "share_machine"),
    required=("from", "to"),
    configured=True,
    refused=("targets",),
    answers=True,
    examples=(
        "bisect gpt --from=jax==0.10.0 --to=jax==0.10.2",
        "bisect gpt --from=ref:v1 --to=ref:main --metric=compile",
        'bisect --run="python my_script.py" --from=jax==0.10.0 --to=jax==0.10.2',
    ),
)


def prepare(config: ConfigDict) -> None:
    """The defaults of ab: each comparison of a bisection is one."""
    ab.prepare(config)


def asked(arguments: list[str]) -> Asked:
    """Raises UserError for what was typed."""
    from jaxbench.features.bisect import program, versions
    from jaxbench.features.bisect.run import Asked
    from jaxbench.features.comparison import judge, other_commit, phases

    if not FLAGS["from"].present:  # it has a default, for other verbs
        raise UserError(f"jaxbench bisect needs --from: jaxbench {VERB.usage}.")
    if bool(FLAGS.run) == bool(arguments) or len(arguments) > 1:
        raise UserError(
            "jaxbench bisect takes one experiment, or a program that prints a number, such as "
            '--run="python my_script.py".'
        )
    if FLAGS.run and FLAGS["metric"].present:
        raise UserError(f"--metric={FLAGS.metric} has no effect on --run, which compares the number that is printed.")
    if not FLAGS.budget_s > 0:
        raise UserError(f"--budget_s={FLAGS.budget_s:g} leaves no time for a pair: use seconds, such as 600.")
    first, last = (versions.End.of(f"--{flag}", ab.words_of(str(FLAGS[flag].value))) for flag in ("from", "to"))
    repository = other_commit.repository_of(Path.cwd()) if FLAGS.run and first.ref else None
    return Asked(
        ends=(first, last),
        versions=versions.between(first, last, repository),
        experiment=arguments[0] if arguments else "",
        command=FLAGS.run or "",
        metric=program.METRIC if FLAGS.run else phases.metric_named(FLAGS.metric),
        margin=judge.margin_of(FLAGS.margin),
        seconds=FLAGS.budget_s,
    )


def check(*arguments: str) -> None:
    """Raises UserError for settings that are refused on every machine."""
    from jaxbench.sweep import run as runner

    asked([*arguments])
    for experiment in arguments:
        runner.check(experiment, FLAGS.config)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.bisect import page, run

    question = asked(arguments)
    found = run.run(question, FLAGS.config if arguments else None, workdir, console)
    page.write(found, workdir, console)
    return found.exit_code

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench help`: all verbs. `jaxbench help VERB`: its settings with their defaults, and three examples."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from jaxbench.errors import UserError, did_you_mean
from jaxbench.verbs import FLAGS, Verb, verbs

VERB = Verb(
    usage="help [VERB]",
    help="this list, or the settings and examples of one verb",
    group="about",
    argument="...",
    examples=("help", "help run", "run --help"),
)

GROUPS = ("measure", "explain", "compare", "bring your own", "absent hardware", "clusters", "about")
MORE = """\
jaxbench help VERB, or jaxbench VERB --help: its settings with their defaults, and examples.
jaxbench list [strategies|levers|targets|papers|templates]: what their values may be.
Of every verb: --verbosity=1 (stack traces). Exit codes of compare, ab, bisect, check and repro: 0 same or faster,
1 slower, 2 inconclusive, 3 no answer."""
# The settings that most people change. docs/USAGE.md and the config.json of a run have all of them.
SETTINGS = {
    "mesh.devices": "device counts, such as 1,2,4; auto: accelerators in powers of two, else 1,2,4,8 CPU devices",
    "mesh.platform": "cpu, gpu or tpu: use it or fail",
    "strategy": "how devices share the work, several with commas, or all (jaxbench list strategies)",
    "scaling": "strong: the same global batch; weak: the same batch per device",
    "batch": "global batch of strong scaling, per-device batch of weak scaling; 0 or as the experiment says",
    "lever.precision": "one of 14 levers; several values are compared (jaxbench list levers)",
    "measure.rounds": "a number, or auto: until every efficiency is known within 3 points",
    "measure.budget_s": "seconds of rounds after which auto stops",
    "measure.processes": "groups of worker processes that measure in turns",
    "measure.block_s": "seconds of a timed block",
    "seed": "of the random numbers",
}
OTHERS = "model.*, .optimizer.*, .data.*"
_WIDTH = 118


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    every = verbs()
    name = arguments[0] if arguments else ""
    if name and name not in every:
        raise UserError(f"there is no verb '{name}': {did_you_mean(name, every)}")
    lines = of_verb(name, every[name]) if name and name != "help" else of_all(every)
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    return 0


def of_all(every: dict[str, Verb]) -> Iterator[str]:
    """The lines of the list of all verbs."""
    # Longer ones stand out instead of pushing all others to the right.
    width = max(len(verb.usage) for verb in every.values() if len(verb.usage) < 32)
    yield "jaxbench VERB ..."
    for group in GROUPS:
        yield f"\n{group}"
        # First the verb that most people came for.
        for verb in sorted(every.values(), key=lambda verb: verb.usage != "run EXPERIMENT"):
            if verb.group == group:
                yield f"  {verb.usage:<{width}}  {verb.help}"
    yield f"\n{MORE}"


def of_verb(name: str, verb: Verb) -> Iterator[str]:
    """The lines of the help of one verb: one sentence, settings with defaults, examples."""
    yield f"jaxbench {verb.usage}"
    yield f"  {verb.help[0].upper()}{verb.help[1:].rstrip('.')}{'' if verb.help.endswith('?') else '.'}"
    if rows := [*_flags(name, verb), *_settings(verb)]:
        yield "\nSettings, with their defaults"
        width = min(34, max(len(setting) for setting, _ in rows))
        for setting, said in rows:
            first, *rest = textwrap.wrap(said, _WIDTH - width - 4) or [""]
            yield f"  {setting:<{width}}  {first}"
            yield from (f"  {'':<{width}}  {line}" for line in rest)
    yield "\nExamples"
    for example in verb.examples:
        yield f"  jaxbench {example}"


def _flags(name: str, verb: Verb) -> Iterator[tuple[str, str]]:
    """(flag with its default, its meaning) of each flag."""
    for each in verb.flags:
        flag = FLAGS[each]
        value = "..." if flag.default in (None, "") else f"{flag.default}".lower()
        needed = " (needed)" if each in verb.required else ""
        yield f"--{each}={value}", f"{_of(name, str(flag.help))}{needed}"


def _of(name: str, said: str) -> str:
    """The part of a flag's help about one verb: "compare: a run folder. ab: a commit." has one for each."""
    parts = re.split(r"(?:^|(?<=[.;] ))((?:[a-z-]+, )*[a-z-]+)(?: \([^)]*\))?: ", said)
    about = dict(zip(parts[1::2], parts[2::2], strict=True))
    chosen = [text for names, text in about.items() if name in names.split(", ")]
    text = f"{parts[0]}{chosen[0] if chosen else '' if parts[0] else said}".strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"


def _settings(verb: Verb) -> Iterator[tuple[str, str]]:
    """(setting with its default, its meaning) of the settings of an experiment."""
    if not verb.configured or verb.usage.startswith("report"):
        if verb.configured:
            yield "--config.report.width_in=7.0", "inches of every figure: 3.5 for a column of a paper"
            yield "--config.report.title=...", "replaces the experiment's name in titles; none: no titles"
        return
    from jaxbench import config
    from jaxbench.records.documents import flatten

    known = {**flatten(config.plain(config.defaults())), "batch": "by experiment"}
    for name, said in SETTINGS.items():
        shown = f"train.{name}" if verb.trains and f"train.{name}" in known else name
        yield f"--config.{shown}={known.get(shown, '...')}", said
    yield f"--config.{OTHERS}", "the experiment's own: a run's config.json has every field with its value"

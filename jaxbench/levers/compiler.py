# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `compiler`: options with which XLA compiles the step.

A value is a set: a name of ``catalog/compiler_options.csv``, an option such as ``xla_cpu_prefer_vector_width=512``, or
several of both, joined by "+" or blanks. Sets are separated by ";", because the value of an option may contain commas.
"all" stands for every named set of the platform.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jaxbench.catalog import compiler_options
from jaxbench.errors import UserError, did_you_mean
from jaxbench.levers.lever import Lever

Options = dict[str, str | bool]

EVERY_SET = "all"
_DEFAULT = "default"
_JOINED = re.compile(r"[+\s]+(?=[a-z-])")  # a "+" can also begin a value
# Options that XLA accepts for a program but ignores there: it reads them when the process starts.
_OF_THE_PROCESS = {"xla_force_host_platform_device_count": "--config.mesh.devices"}


def _parse(text: str) -> Options:
    """The options of one set; {} for `default`, and for `all`, which the plan replaces by the named sets."""
    options: Options = {}
    for word in _JOINED.split(text) if text != EVERY_SET else ():
        more = _read(word)
        if twice := sorted(options.keys() & more.keys()):
            raise ValueError(f"sets {twice[0]} twice: give each option one value.")
        options |= more
    return options


def _read(word: str) -> Options:
    """The options of one word: `default`, the name of a set, or an option with its value."""
    name, equals, value = word.removeprefix("--").partition("=")
    if name.startswith("xla_"):
        if not equals:
            raise ValueError(f"has {name} without a value: write {name}=true, for example.")
        if instead := _OF_THE_PROCESS.get(name):
            raise ValueError(f"has {name}, which belongs to the process, not to a program: use {instead}.")
        # XLA reads a number or a word of any type from text, but not a boolean, which must be passed as one.
        return {name: value.lower() == "true" if value.lower() in ("true", "false") else value}
    if word == _DEFAULT:
        return {}
    sets = compiler_options.sets()
    if word not in sets:
        if word.partition(",")[0] in (_DEFAULT, *sets):
            raise ValueError(f"has '{word}': separate sets by ';', because the value of an option may contain commas.")
        legal = did_you_mean(word, [_DEFAULT, EVERY_SET, *sets])
        raise ValueError(f"has '{word}', which is no set, and no option such as xla_option=value: {legal}")
    return _parse(sets[word].options)  # options joined by blanks, as a person may also type them


COMPILER = Lever(
    "compiler", default=_DEFAULT, parse=_parse, changes="program", view="compiler", separator=";", sweeps=(EVERY_SET,)
)


def every_set(config: Mapping[str, Any]) -> bool:
    """Whether a run's config asks for all named sets, including those that its XLA does not know."""
    return EVERY_SET in str(config.get("lever", {}).get(COMPILER.name, "")).replace(COMPILER.separator, " ").split()


def named(levers: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The named sets of an arm: (options, source) by name."""
    sets, words = compiler_options.sets(), _JOINED.split(levers.get(COMPILER.name, _DEFAULT))
    return {word: (sets[word].options, sets[word].source) for word in words if word in sets}


def require_platform(levers: Mapping[str, str], platform: str) -> None:
    """Raises UserError for an option that only the compiler of another platform reads: XLA would ignore it."""
    for option in COMPILER.of(levers):
        other = compiler_options.platform_of(option)
        if other not in (None, platform):
            raise UserError(
                f"--config.lever.compiler={levers[COMPILER.name]} has {option}, which is for a {other}, but this is a "
                f"{platform}: use {', '.join(compiler_options.names(platform))}, or options of its compiler."
            )

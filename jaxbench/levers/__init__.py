# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The levers of a training step, fields of any training experiment: ``--config.lever.precision=default,bfloat16``.

Each lever has one file, which declares it under its name in capitals; there is no other registration. A field with
several values is swept: every combination is an *arm*, measured interleaved with the others. Instead, the field
`ladder` names rungs. Each rung adds one setting to the previous rung: ``"execution=jit; precision=bfloat16"``.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from dataclasses import dataclass
from typing import Any

from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean
from jaxbench.levers._lever import Lever


def _declared() -> dict[str, Lever[Any]]:
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    levers = [getattr(importlib.import_module(f"{__name__}.{name}"), name.upper()) for name in names]
    return {lever.name: lever for lever in sorted(levers, key=lambda lever: lever.rank)}


LEVERS = _declared()
DEFAULTS = {name: lever.default for name, lever in LEVERS.items()}


@dataclass(frozen=True)
class Arm:
    """One setting of all levers. name: distinguishes it from the other arms of the run; "" for the only arm."""

    name: str
    levers: dict[str, str]


def defaults() -> ConfigDict:
    """The group `lever` of a training experiment's config."""
    return ConfigDict({**DEFAULTS, "ladder": ""})


def arms(config: ConfigDict) -> list[Arm]:
    """The arms of a group `lever`, in the order typed. Raises UserError that names the field and its value."""
    words = _words(config)
    if str(config.ladder).strip():
        return _ladder(str(config.ladder), words)
    several = [name for name in words if LEVERS[name].swept(words[name])]
    settings = [dict(zip(words, values, strict=True)) for values in itertools.product(*words.values())]
    return [Arm(", ".join(f"{name}={levers[name]}" for name in several), levers) for levers in settings]


def swept(config: ConfigDict) -> tuple[str, ...]:
    """The levers with more than one value; ("ladder",) for a ladder. Raises UserError as `arms` does."""
    if str(config.ladder).strip():
        return ("ladder",)
    return tuple(name for name, words in _words(config).items() if LEVERS[name].swept(words))


def _words(config: ConfigDict) -> dict[str, tuple[str, ...]]:
    return {name: lever.words(str(config[name])) for name, lever in LEVERS.items()}


def _ladder(text: str, words: dict[str, tuple[str, ...]]) -> list[Arm]:
    several = [name for name, values in words.items() if len(values) > 1]
    if several:
        raise UserError(
            f"--config.lever.{several[0]} has several values, but --config.lever.ladder is set: use only one of them."
        )
    levers, ladder = {name: values[0] for name, values in words.items()}, []
    for rung in filter(None, (word.strip() for word in text.split(";"))):
        name, equals, value = (part.strip() for part in rung.partition("="))
        if not equals or name not in LEVERS:
            raise UserError(f"--config.lever.ladder has the rung '{rung}': {did_you_mean(name, LEVERS)}")
        levers = {**levers, name: LEVERS[name].words(value)[0]}
        ladder.append(Arm(rung, levers))
    if len(ladder) < 2:
        raise UserError(f"--config.lever.ladder={text} has one rung: use at least two, separated by ';'.")
    return ladder

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The levers of one training step, as fields of any training experiment: ``--config.lever.precision=default,bfloat16``.

One file a lever, which declares it under its own name in capitals; the file is its only registration. A field that
holds several values is swept: every combination is an *arm*, measured interleaved with the others. The field `ladder`
instead names rungs, each of which adds to the one below: ``"execution=jit; precision=bfloat16"``.
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
    found = [getattr(importlib.import_module(f"{__name__}.{name}"), name.upper()) for name in names]
    return {lever.name: lever for lever in sorted(found, key=lambda lever: lever.rank)}


LEVERS = _declared()
DEFAULTS = {name: lever.default for name, lever in LEVERS.items()}


@dataclass(frozen=True)
class Arm:
    """One setting of all levers. name: what tells it from the run's other arms, "" if there is one arm only."""

    name: str
    levers: dict[str, str]


def defaults() -> ConfigDict:
    """The group `lever` of a training experiment's config."""
    return ConfigDict({**DEFAULTS, "ladder": ""})


def arms(config: ConfigDict) -> list[Arm]:
    """The arms that a group `lever` asks for, in the order typed. Raises UserError naming the field and its value."""
    words = _words(config)
    if str(config.ladder).strip():
        return _ladder(str(config.ladder), words)
    several = [name for name in words if LEVERS[name].swept(words[name])]
    found = []
    for values in itertools.product(*words.values()):
        levers = dict(zip(words, values, strict=True))
        found.append(Arm(", ".join(f"{name}={levers[name]}" for name in several), levers))
    return found


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
        raise UserError(f"--config.lever.{several[0]} has several values and --config.lever.ladder is set: use one.")
    levers, found = {name: values[0] for name, values in words.items()}, []
    for rung in filter(None, (word.strip() for word in text.split(";"))):
        name, equals, value = (part.strip() for part in rung.partition("="))
        if not equals or name not in LEVERS:
            raise UserError(f"--config.lever.ladder has the rung '{rung}': {did_you_mean(name, LEVERS)}")
        levers = {**levers, name: LEVERS[name].words(value)[0]}
        found.append(Arm(rung, levers))
    if len(found) < 2:
        raise UserError(f"--config.lever.ladder={text} has one rung: name at least two, with ';' between them.")
    return found

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The levers of one training step, as fields of any training experiment: ``--config.lever.precision=default,bfloat16``.

A field that holds several values is swept: every combination is an *arm*, measured interleaved with the others. The
field `ladder` instead names rungs, each of which adds to the one below: ``"execution=jit; precision=bfloat16"``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean

# How gradients are averaged over devices; with ":bfloat16", in that format.
REDUCTIONS = ("each", "fused", "bucketed", "scatter", "ring")
LEGAL: dict[str, tuple[str, ...]] = {
    "precision": ("default", "float32", "tf32", "bfloat16", "float16", "mixed"),
    "remat": ("none", "sqrt", "block", "dots_saveable", "offload"),
    "part": ("step", "forward", "gradient", "local", "inference"),
    "execution": ("eager", "unfused", "jit", "donated"),
    "reduction": ("strategy", *(way + dtype for dtype in ("", ":bfloat16") for way in REDUCTIONS)),
    "schedule": ("gpipe", "1f1b", "interleaved"),
    "sequence_parallel": ("off", "on"),
}
EVERY_MESH = "all"  # a value of `mesh`: each mesh that the strategy hybrid has for so many devices
# The precisions whose products are made in 16 bits, and in which.
SIXTEEN_BITS = {"bfloat16": "bfloat16", "float16": "float16", "mixed": "bfloat16"}
DEFAULTS = {
    "precision": "default",  # what JAX does unasked: float32 arrays, products as the platform does them
    "remat": "none",
    "accumulate": "1",  # micro-batches per step
    "freeze": "none",  # a regular expression over parameter paths such as "embed|blocks/[0-3]/"
    "batch": "0",  # 0: config.batch
    "part": "step",
    "execution": "donated",
    "reduction": "strategy",  # the strategy's own
    "mesh": "strategy",  # of the strategy hybrid: "data=2,tensor=4"; several with ";" between them; "all"
    "schedule": "gpipe",  # of a pipeline; its micro-batches are those of `accumulate`
    "sequence_parallel": "off",  # of the axis tensor: positions are split between the split products
    "input": "device",  # device, host, pipeline:<batches fetched ahead>
}


@dataclass(frozen=True)
class Arm:
    """One setting of all levers. name: what tells it from the run's other arms, "" if there is one arm only."""

    name: str
    levers: dict[str, str]


def defaults() -> ConfigDict:
    """The group `lever` of a training experiment's config."""
    return ConfigDict({**DEFAULTS, "ladder": ""})


def arms(lever: ConfigDict) -> list[Arm]:
    """The arms that a config asks for, in the order typed. Raises UserError naming the field and its value."""
    chosen = {name: _values(name, str(lever[name])) for name in DEFAULTS}
    if str(lever.ladder).strip():
        return _ladder(str(lever.ladder), chosen)
    swept = [name for name, values in chosen.items() if _several(values)]
    found = []
    for values in itertools.product(*chosen.values()):
        levers = dict(zip(chosen, values, strict=True))
        found.append(Arm(", ".join(f"{name}={levers[name]}" for name in swept), levers))
    return found


def swept(lever: ConfigDict) -> tuple[str, ...]:
    """The levers with more than one value; ("ladder",) for a ladder. Raises UserError as `arms` does."""
    if str(lever.ladder).strip():
        return ("ladder",)
    return tuple(name for name in DEFAULTS if _several(_values(name, str(lever[name]))))


def _several(values: tuple[str, ...]) -> bool:
    return len(values) > 1 or values == (EVERY_MESH,)


def _ladder(text: str, chosen: dict[str, tuple[str, ...]]) -> list[Arm]:
    several = [name for name, values in chosen.items() if len(values) > 1]
    if several:
        raise UserError(f"--config.lever.{several[0]} has several values and --config.lever.ladder is set: use one.")
    levers, found = {name: values[0] for name, values in chosen.items()}, []
    for rung in filter(None, (word.strip() for word in text.split(";"))):
        name, equals, value = (part.strip() for part in rung.partition("="))
        if not equals or name not in DEFAULTS:
            raise UserError(f"--config.lever.ladder has the rung '{rung}': {did_you_mean(name, list(DEFAULTS))}")
        levers = {**levers, name: _values(name, value)[0]}
        found.append(Arm(rung, levers))
    if len(found) < 2:
        raise UserError(f"--config.lever.ladder={text} has one rung: name at least two, with ';' between them.")
    return found


def _values(name: str, text: str) -> tuple[str, ...]:
    between = ";" if name == "mesh" else ","  # a mesh has commas of its own
    words = tuple(dict.fromkeys(word.strip() for word in text.split(between) if word.strip()))
    if not words:
        raise UserError(f"--config.lever.{name} is empty: use {DEFAULTS[name]}, for example.")
    for word in words:
        _CHECKS.get(name, _legal)(name, word)
    return words


def _legal(name: str, word: str) -> None:
    if name in LEGAL and word not in LEGAL[name]:
        raise UserError(f"--config.lever.{name}={word} is unknown: {did_you_mean(word, LEGAL[name])}")


def _whole(least: int) -> Callable[[str, str], None]:
    def check(name: str, word: str) -> None:
        if not word.isdecimal() or int(word) < least:
            raise UserError(f"--config.lever.{name}={word} is not a whole number of at least {least}.")

    return check


def _input(name: str, word: str) -> None:
    head, _, ahead = word.partition(":")
    if word not in ("device", "host") and (head != "pipeline" or not ahead.isdecimal()):
        raise UserError(f"--config.lever.input={word} is unknown: use device, host or pipeline:2, for example.")


_CHECKS = {"accumulate": _whole(1), "batch": _whole(0), "input": _input}

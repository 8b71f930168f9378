# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The levers of a training step, fields of any training experiment: ``--config.lever.precision=default,bfloat16``.

A field with several values is swept: every combination is an *arm*, measured interleaved with the others. Instead, the
field `ladder` names rungs. Each rung adds one setting to the previous rung: ``"execution=jit; precision=bfloat16"``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean
from jaxbench.levers.compiler import COMPILER
from jaxbench.levers.lever import Lever, whole
from jaxbench.levers.remat import REMAT

# One declaration for each lever. `_DECLARED` has their order in names of arms, on pages and in ``summary.csv``. It is
# also the order of their effects on a workload. A new lever comes last.

# The 16-bit precisions, and the format of the operands of their products.
SIXTEEN_BITS = {"bfloat16": "bfloat16", "float16": "float16", "float16_unscaled": "float16", "mixed": "bfloat16"}

# The number format of the products in a step. "default" is JAX's: float32 arrays, and products as the platform prefers.
PRECISION = Lever(
    "precision", default="default", values=("default", "float32", "tf32", *SIXTEEN_BITS), parse=str, changes="workload",
    view="precision",
)  # fmt: skip

# The number of micro-batches over which a step adds up gradients.
ACCUMULATE = Lever("accumulate", default="1", parse=whole(1), changes="workload", view="accumulate")

# Parameters that are not trained: a regular expression for their path, such as "embed|blocks/[0-3]/"; "none": all are.
FREEZE = Lever("freeze", default="none", parse=str, changes="workload", view="freeze")

# Several batch sizes in one run. 0 means ``config.batch``.
BATCH = Lever(
    "batch", default="0", parse=whole(0), changes="feed", untrained="the batch of a training is --config.train.batch",
    view="batch",
)  # fmt: skip

# The whole step, the step without its last phases, or inference.
PART = Lever(
    "part", default="step", values=("step", "forward", "gradient", "local", "inference"), parse=str, changes="program",
    untrained="a part of a step does not train", view="phases",
)  # fmt: skip

# How the step reaches the devices.
EXECUTION = Lever(
    "execution", default="donated", values=("eager", "unfused", "jit", "donated"), parse=str, changes="program",
    untrained="a training always compiles its step and donates its state",
)  # fmt: skip


class Source(NamedTuple):
    """The source of the batch of each step.

    kind: device, host or pipeline. ahead: the number of batches that a pipeline prefetches."""

    kind: str
    ahead: int = 0


def _source(text: str) -> Source:
    kind, _, ahead = text.partition(":")
    if text in ("device", "host"):
        return Source(text)
    if kind != "pipeline" or not ahead.isdecimal():
        raise ValueError("is unknown: use device, host or pipeline:2, for example.")
    return Source(kind, int(ahead))


INPUT = Lever(
    "input", default="device", parse=_source, changes="feed", untrained="a training reads real data in its own order",
    view="inputs",
)  # fmt: skip

REDUCTIONS = ("each", "fused", "bucketed", "scatter", "ring")


class Reduction(NamedTuple):
    """How gradients are averaged over devices.

    way: one of `REDUCTIONS`. dtype: of the sums and of the transfers; None: each array's own."""

    way: str
    dtype: str | None


def _reduction(text: str) -> Reduction | None:
    """None for the strategy's own way."""
    way, _, dtype = text.partition(":")
    return None if text == "strategy" else Reduction(way, dtype or None)


REDUCTION = Lever(
    "reduction", default="strategy",
    values=("strategy", *(way + dtype for dtype in ("", ":bfloat16") for way in REDUCTIONS)), parse=_reduction,
    changes="program", untrained="a training averages gradients as its strategy does",
)  # fmt: skip

EVERY_MESH = "all"
# The mesh of the strategy hybrid, "data=2,tensor=4", or all possible meshes. The value stays text, because only the
# strategies know the axes. A mesh contains commas, so several are separated by semicolons.
MESH = Lever("mesh", default="strategy", parse=str, changes="program", separator=";", sweeps=(EVERY_MESH,))

# The order of work in a pipeline's stages. `accumulate` sets the number of micro-batches.
SCHEDULE = Lever("schedule", default="gpipe", values=("gpipe", "1f1b", "interleaved"), parse=str, changes="program")

# Splits positions over the axis `tensor`, between the products that it splits.
SEQUENCE_PARALLEL = Lever(
    "sequence_parallel", default="off", values=("off", "on"), parse=lambda text: text == "on", changes="program"
)


class Sharing(NamedTuple):
    """Equal concurrent trainings on the same devices, each in its own process.

    at_once: their number. mps: whether they share a GPU by NVIDIA's Multi-Process Service, which overlaps their
    kernels. Without it they take turns.
    """

    at_once: int
    mps: bool = False


def _sharing(text: str) -> Sharing:
    count, colon, service = text.partition(":")
    if not count.isdecimal() or int(count) < 1 or (colon and service != "mps"):
        raise ValueError("is no number of trainings: use 2, or 2:mps on an NVIDIA GPU, for example.")
    return Sharing(int(count), bool(colon))


TRAININGS = Lever(
    "trainings", default="1", parse=_sharing, changes="feed",
    untrained="several trainings at once are measured, not kept", view="sharing",
)  # fmt: skip

_DECLARED: tuple[Lever[Any], ...] = (
    *(PRECISION, REMAT, ACCUMULATE, FREEZE, BATCH, PART, EXECUTION, INPUT, REDUCTION, MESH),
    *(SCHEDULE, SEQUENCE_PARALLEL, COMPILER, TRAININGS),
)
LEVERS = {lever.name: lever for lever in _DECLARED}
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
    for rung in (word.strip() for word in text.strip().removesuffix(";").split(";")):
        if not rung:
            raise UserError(f"--config.lever.ladder={text} has an empty rung: use 'execution=jit; remat=block'.")
        name, equals, value = (part.strip() for part in rung.partition("="))
        if not equals or name not in LEVERS:
            raise UserError(f"--config.lever.ladder has the rung '{rung}': {did_you_mean(name, LEVERS)}")
        levers = {**levers, name: LEVERS[name].words(value)[0]}  # in addition to those of the rungs before
        ladder.append(Arm(rung, levers))
    if len(ladder) < 2:
        raise UserError(f"--config.lever.ladder={text} has one rung: use at least two, separated by ';'.")
    return ladder

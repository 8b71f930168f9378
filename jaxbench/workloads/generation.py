# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`GenerationWorkload`: a decoder that generates text greedily, with a fixed cache of keys and values.

Lengths have the names of serving benchmarks: `input` tokens of a prompt, `output` tokens that are generated, and the
number of requests at once, which is the batch. `context` is the number of places in the cache of each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean
from jaxbench.levers import ATTENTION_KERNEL, CACHE_FORMAT, CACHE_LAYOUT, CONTEXT, WEIGHT_FORMAT
from jaxbench.workloads.models import gpt
from jaxbench.workloads.models.gpt import Dimensions

DEFAULT_INPUT, DEFAULT_OUTPUT = 96, 32
# The blocks of gpt with the sizes of Llama: gated, RMSNorm, few heads of keys and values. Positions are learned and the
# embedding is tied, as in gpt, so "8b" has 0.5 billion parameters fewer than Llama 3 8B.
PRESETS: Mapping[str, Dimensions] = {
    **gpt.PRESETS,
    "8b": Dimensions(32, 4096, 32, 8192, 128256, hidden=14336, gated=1, kv_heads=8, rms=1),
    "13b": Dimensions(40, 5120, 40, 8192, 32000, hidden=13824, gated=1, rms=1),
    "70b": Dimensions(80, 8192, 64, 8192, 128256, hidden=28672, gated=1, kv_heads=8, rms=1),
}


@dataclass(frozen=True)
class Lengths:
    """Tokens of a request. input + output <= context: a longer text would overflow the cache."""

    input: int
    output: int
    context: int


@dataclass(frozen=True, kw_only=True)
class GenerationWorkload:
    """A decoder to measure.

    Attributes:
      shape: of the model; its `context` is the number of learned positions.
      weights, cache: number formats: float32 | bfloat16 | int8 | fp8 (`levers.FORMATS`), or "auto".
      layout: of the cache, a value of the lever `cache_layout`. attention: of the lever `attention`.
    """

    name: str
    shape: Dimensions
    lengths: Lengths
    weights: str = "auto"
    cache: str = "auto"
    layout: str = CACHE_LAYOUT.default
    attention: str = ATTENTION_KERNEL.default

    @property
    def parameters(self) -> int:
        """The number of parameters without the padding of the vocabulary."""
        return parameters(self.shape)


def workload(config: ConfigDict, levers: Mapping[str, str] | None = None) -> GenerationWorkload:
    """The workload of a config with one value for each lever. levers: of a point; None: the defaults.

    Raises UserError for a model or lengths that cannot be.
    """
    given = levers or {}
    lengths = lengths_of(config, int(CONTEXT.of(given)))
    sizes = dimensions(config.model)
    # A longer cache needs more learned positions than the preset has.
    positions = max(sizes.context, lengths.context)
    return GenerationWorkload(
        name=str(config.get("experiment", "decode")),
        shape=Dimensions(**{**vars(sizes), "context": positions}),
        lengths=lengths,
        weights=WEIGHT_FORMAT.of(given),
        cache=CACHE_FORMAT.of(given),
        layout=CACHE_LAYOUT.of(given),
        attention=ATTENTION_KERNEL.of(given),
    )


def dimensions(model: ConfigDict) -> Dimensions:
    """The shape of ``config.model``, as `gpt.dimensions` reads it, with further presets. Raises UserError."""
    preset = str(model.preset)
    if preset not in PRESETS:
        raise UserError(f"--config.model.preset={preset} is unknown: {did_you_mean(preset, PRESETS)}")
    if model.get("experts", 0):
        raise UserError(f"--config.model.experts={model.experts}: generation has no mixtures of experts: use 0.")
    if preset in gpt.PRESETS:
        return gpt.dimensions(model)
    numbers = {name: model.get(name, 0) or value for name, value in vars(PRESETS[preset]).items()}
    return gpt.dimensions(ConfigDict({"preset": "tiny", **numbers}))


def lengths_of(config: ConfigDict, context: int = 0) -> Lengths:
    """The lengths of a config: each that is 0 follows from the others. context: replaces the config's if it is not 0.

    Raises UserError for lengths that do not fit into the cache.
    """
    places, prompt, answer = context or config.context, config.input, config.output or DEFAULT_OUTPUT
    for name, value in (("context", config.context), ("input", prompt), ("output", config.output)):
        if value < 0:
            raise UserError(f"--config.{name}={value} is not a number of tokens: use 128, for example.")
    if not places:
        places = (prompt or DEFAULT_INPUT) + answer
    prompt = prompt or places - answer
    if prompt < 1 or prompt + answer > places:
        raise UserError(
            f"--config.context={places} overflows: an input of {max(prompt, 1)} and an output of {answer} tokens need "
            f"--config.context={max(prompt, 1) + answer}."
        )
    if places < 4:
        raise UserError(
            f"--config.context={places} is too short to check a first, a middle and a last position: use 4."
        )
    return Lengths(prompt, answer, places)


def parameters(shape: Dimensions) -> int:
    """The number of parameters of a decoder, without the padding of its vocabulary."""
    kv, inner, width = shape.kv_heads or shape.heads, shape.heads * shape.head, shape.width
    products = width * (inner + 2 * kv * shape.head) + inner * width
    products += (3 if shape.gated else 2) * width * shape.between
    vectors = 2 * width * (1 if shape.rms else 2)
    if not shape.rms:
        vectors += inner + 2 * kv * shape.head + width + shape.between * (2 if shape.gated else 1) + width
    last = width * (1 if shape.rms else 2)
    return shape.layers * (products + vectors) + last + (shape.vocab + shape.context) * width

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers that are typed as `--config.FIELD=NUMBER`, and that no parser of the harness checks.

A model with a depth of -1 is built without complaint, because `range(-1)` is empty, and a learning rate that rounds to
0 in float32 trains nothing. So the name and the default of a field say which numbers make sense.
"""

from __future__ import annotations

import math

from absl import flags

from jaxbench.errors import UserError

# float32, the type of parameters and of rates in most models
LARGEST, SMALLEST = 3.4028234663852886e38, 1.1754943508222875e-38
MOST = 2**63 - 1  # of a whole number that arrays can hold
# What these words count cannot be negative, in any model; of the first line, there must be at least one if the default
# has one.
_SOME = set(
    "width hidden heads classes vocab context size length features filters embedding nodes patch rows clusters columns "
    "batch units dim channels kernel ring reach pooled tried".split()
)
_COUNTS = _SOME | set(
    "depth layers experts trees count rounds steps epochs warmup kv_heads head_width padded_vocab groups blocks stages "
    "keep checkpoint_every evaluate_every noise_examples".split()
)
_RATES = {
    "learning_rate",
    "rate",
    "temperature",
    "weight_decay",
    "momentum",
    "dropout",
    "l2",
    "decay",
    "epsilon",
    "eps",
}


def check(name: str, text: str, value: object, default: object, *, own: bool, preset: bool = False) -> None:
    """Raises UserError if the number of a setting is impossible for it. text: as it was typed.

    own: the field belongs to an experiment outside of the suite, where only words like "depth" have a known meaning.
    preset: the model has named sizes, and a number of 0 leaves it to the named size.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    word = name.rpartition(".")[2]
    legal = f"use {default}, for example." if isinstance(default, int | float) else "use 1, for example."
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"--config.{name}={text} is not a finite number: {legal}")
    if isinstance(value, float) and abs(value) > LARGEST:
        raise UserError(f"--config.{name}={text} is beyond float32, which ends at {LARGEST:.2g}: {legal}")
    if isinstance(value, float) and 0 < abs(value) < SMALLEST:
        raise UserError(f"--config.{name}={text} is 0 in float32, which begins at {SMALLEST:.2g}: {legal}")
    if abs(value) > MOST and isinstance(value, int):
        raise UserError(f"--config.{name}={text} is beyond {MOST}: {legal}")
    known = not own or word in _COUNTS or word in _RATES
    if value < 0 and known and isinstance(default, int | float) and default >= 0:
        raise UserError(f"--config.{name}={text} is negative, which no {word} can be: {legal}")
    if value == 0 and not preset and word in _SOME and isinstance(default, int | float) and default > 0:
        raise UserError(f"--config.{name}={text} is no {word}: {legal}")


class Share(flags.FloatParser):
    """Parses a flag that is a share of 1, typed as 0.05 or as 5%."""

    def convert(self, argument: int | float | str) -> float:
        if isinstance(argument, str) and argument.endswith("%"):
            return float(super().convert(argument[:-1])) / 100
        return float(super().convert(argument))

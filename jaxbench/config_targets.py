# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The settings of time-to-target runs over batch sizes (measures="targets"). Each is declared and checked here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxbench.config_fields import AUTO, ConfigField, as_is, device_counts, device_limit, integer, names_of, one_of
from jaxbench.errors import UserError

LINEAR, SQRT, TUNED = RULES = ("linear", "sqrt", "tuned")


def batch_sizes(path: str, value: Any) -> tuple[int, ...]:
    """Batch sizes: "8,32,128" -> (8, 32, 128). Raises UserError."""
    words = [word.strip() for word in str(value).split(",")]
    sizes = [int(word) if word.isdecimal() else 0 for word in words]
    if min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise UserError(f"--config.{path}={value} is not a list of different batch sizes: use 8,32,128, for example.")
    return tuple(sorted(sizes))


def factors(path: str, value: Any) -> tuple[float, ...]:
    """A grid of factors: "0.5,1,2" -> (0.5, 1.0, 2.0). Raises UserError."""
    try:
        found = sorted({float(word) for word in str(value).split(",")})
    except ValueError:
        found = []
    if len(found) < 2 or not 0 < found[0] <= found[-1] < math.inf:
        raise UserError(f"--config.{path}={value} is not a grid of factors: use 0.5,1,2, for example.")
    return tuple(found)


def share(path: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise UserError(f"--config.{path}={value} is not an accuracy: use 0.97, or 0 for each model's own target.")
    return float(value)


def epochs(path: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise UserError(f"--config.{path}={value} is not a number of epochs: use 2, or 0 for none.")
    return float(value)


def names(path: str, value: Any) -> tuple[str, ...]:
    """Names or paths of experiments without duplicates. Raises UserError if there is none."""
    found = tuple(dict.fromkeys(word.strip() for word in str(value).split(",") if word.strip()))
    if not found:
        raise UserError(f"--config.{path}={value} names no model: use mlp,cnn, for example.")
    return found


FIELDS = (
    ConfigField("measures", "targets", as_is),
    ConfigField("seed", 0, integer(0, 2**31 - 1)),  # the first seed; the others count up from it
    ConfigField("models", "mlp", names),  # experiments with data, by name or path
    ConfigField("batches", "8,16,32,64,128,256,512,1024", batch_sizes),
    ConfigField("seeds", 3, integer(1, 1000)),  # the number of trainings that differ only in their seed
    ConfigField("rule", LINEAR, names_of(*RULES)),  # how the learning rate depends on the batch
    ConfigField("warmup", 0.0, epochs),  # epochs over which the learning rate grows to its value
    ConfigField("rates", "0.25,0.5,1,2,4", factors),  # the grid of `tuned`: multiples of the rate that `sqrt` gives
    ConfigField("target", 0.0, share),  # a test accuracy; 0: the model's own train.target
    ConfigField("epochs", 0, integer(0, 1_000_000)),  # the budget, then a training is censored; 0: the model's own
    ConfigField("evaluations", 4, integer(1, 10_000)),  # per epoch, at most one per step
    ConfigField("noise_examples", 256, integer(0, 2**31 - 1)),  # per measurement of the gradient noise scale; 0: none
    ConfigField("strategy", "jit_auto", as_is),
    ConfigField("mesh.platform", "auto", one_of("auto", "cpu", "gpu", "tpu")),
    ConfigField("mesh.devices", AUTO, device_counts),
)


@dataclass(frozen=True, kw_only=True)
class TargetSettings:
    """The parsed fields. devices: None means that the machine decides, at most `max_devices`."""

    experiment: str
    seed: int
    models: tuple[str, ...]
    batches: tuple[int, ...]
    seeds: int
    rule: tuple[str, ...]
    rates: tuple[float, ...]
    warmup: float
    target: float
    epochs: int
    evaluations: int
    noise_examples: int
    strategy: str
    platform: str
    devices: tuple[int, ...] | None
    max_devices: int | None
    oversubscribe: bool = False


def parse(config: Any) -> TargetSettings:
    """Parses a config with measures="targets". Raises UserError naming the field and a legal value."""
    read: dict[str, Any] = {}
    for field in FIELDS:
        group, _, name = field.path.rpartition(".")
        value = (config[group] if group else config)[name]
        read[name] = field.read(field.path, value)
        if name == "devices":
            read["max_devices"] = device_limit(field.path, value)
    read.pop("measures")
    return TargetSettings(experiment=config.experiment, **read)


def rates(rule: str, batch: int, *, base_rate: float, base_batch: int, grid: tuple[float, ...]) -> tuple[float, ...]:
    """The learning rates to try at a batch: a single rate for a rule, or for `tuned` the grid around the `sqrt` rate.

    `linear`: base_rate x batch / base_batch (Goyal et al. 2017). `sqrt`: base_rate x sqrt(batch / base_batch)
    (Krizhevsky 2014). base_rate, base_batch: from the model's own training.
    """
    scale: Callable[[float], float] = float if rule == LINEAR else math.sqrt
    rate = base_rate * scale(batch / base_batch)
    return tuple(float(f"{rate * factor:.6g}") for factor in (grid if rule == TUNED else (1.0,)))

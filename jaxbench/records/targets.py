# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The trainings of a time-to-target run: targets.jsonl, one line each (docs/metrics, Time to target)."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records.store import write_atomic

FILE = "targets.jsonl"
TRAININGS = "trainings"  # the subfolder with one folder per training
RESULT = "result.json"  # in the folder of a training that has ended
HOUR_S = 3600.0
GRID = "tuned grid"  # the rule of a training that only served to choose a learning rate


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A training that has ended.

    Attributes:
      rule: how its learning rate was found: one of `config_targets.RULES`, or GRID.
      steps: the steps at the first evaluation that reached the target. Without one, the training is censored at the
        steps of its budget.
      diverged: the step with a loss that was not finite; None: it did not diverge.
      accuracy: at the newest evaluation; None before the first.
      step_s: seconds per step, by the training's own clock; None without a step.
      noise: (step, estimate of |G|^2, estimate of tr(Sigma)) of each measurement.
      folder: its folder, relative to TRAININGS.
      joules: energy used while it trained, compiled and evaluated, from the energy counters; None: unknown.
      price_per_hour: the price of the whole machine; None: not given.
    """

    model: str
    batch: int
    devices: int
    seed: int
    learning_rate: float
    rule: str
    target: float
    steps: int
    reached: bool
    diverged: int | None
    accuracy: float | None
    step_s: float | None
    noise: tuple[tuple[int, float, float], ...]
    folder: str
    joules: float | None = None
    price_per_hour: float | None = None

    @property
    def cost(self) -> float | None:
        """The price of `seconds`, in the currency of `price_per_hour`; None: unknown."""
        known = self.seconds is not None and self.price_per_hour is not None
        return self.seconds * self.price_per_hour / HOUR_S if known else None  # type: ignore[operator]

    @property
    def seconds(self) -> float | None:
        """The seconds of the steps to the target; of a censored training, a lower limit. None: unknown."""
        return None if self.step_s is None else self.steps * self.step_s

    @property
    def noise_scale(self) -> float | None:
        """tr(Sigma) / |G|^2 in examples, both averaged over the steps of the training; None unless |G|^2 > 0.

        A measurement stands for the steps since the previous one.
        """
        at, signal, noise = 0, 0.0, 0.0
        for step, square, trace in self.noise:
            signal, noise, at = signal + (step - at) * square, noise + (step - at) * trace, step
        return noise / signal if signal > 0 and noise > 0 else None


def parse(line: dict[str, Any], **known: Any) -> Trained:
    """A training from a line of the file, or from a result with `known` fields added. Raises KeyError or TypeError."""
    values = {**line, **known}
    values["noise"] = tuple((int(step), float(a), float(b)) for step, a, b in values["noise"])
    values = {"joules": None, "price_per_hour": None, **values}  # older lines lack them
    return Trained(**{field.name: values[field.name] for field in dataclasses.fields(Trained)})


def write(folder: Path, trained: Sequence[Trained]) -> None:
    write_atomic(folder / FILE, "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in trained))


def read(folder: Path) -> list[Trained]:
    """The trainings of a run. Raises UserError if the file is missing or damaged."""
    path = folder / FILE
    if not path.exists():
        raise UserError(f"'{folder}' has no {FILE}: give the folder of a 'jaxbench run time_to_target'.")
    try:
        return [parse(json.loads(line)) for line in path.read_text().splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r}): delete it, and the same command makes it again.") from error


def sentence(one: Trained) -> str:
    """One training as a line for the terminal."""
    where = f"{one.model}, {one.devices} device{'s' if one.devices > 1 else ''}, batch {one.batch}, seed {one.seed}"
    how = f"{one.steps} steps" if one.reached else f"not reached in {one.steps} steps"
    if one.diverged:
        how = f"diverged at step {one.diverged}"
    accuracy = "" if one.accuracy is None else f", accuracy {one.accuracy:.4f}"
    scale = one.noise_scale
    noise = "" if scale is None or not math.isfinite(scale) else f", noise scale {scale:.3g}"
    return f"{where}, rate {one.learning_rate:g} ({one.rule}): {how}{accuracy}{noise}"

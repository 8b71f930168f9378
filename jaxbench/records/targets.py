# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The trainings to a target of a run: targets.jsonl, one line each (docs/metrics, Time to target)."""

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
TRAININGS = "trainings"  # the folder of the folders of the trainings
RESULT = "result.json"  # in each of them, once it has ended
HOUR_S = 3600.0
GRID = "tuned grid"  # the rule of a training that only helped to choose a rate


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A training that has ended.

    Attributes:
      rule: by which its learning rate was found, one of `config_targets.RULES`, or GRID.
      steps: at the first evaluation that reached the target; if none did, those of its budget: it is censored there.
      diverged: the step whose loss was not finite; None: none.
      accuracy: of the newest evaluation; None before the first.
      step_s: seconds a step, by the training's own clock; None: it took none.
      noise: (step, estimate of |G|^2, estimate of tr(Sigma)) of each measurement.
      folder: below TRAININGS.
      joules: of the counters of energy while it trained, compiling and evaluating included; None: not known.
      price_per_hour: of the whole machine; None: not given.
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
        """Of `seconds`, in the currency of the price."""
        known = self.seconds is not None and self.price_per_hour is not None
        return self.seconds * self.price_per_hour / HOUR_S if known else None  # type: ignore[operator]

    @property
    def seconds(self) -> float | None:
        """Of the steps to the target, or at least so many of a censored training."""
        return None if self.step_s is None else self.steps * self.step_s

    @property
    def noise_scale(self) -> float | None:
        """tr(Sigma) / |G|^2 in examples, both averaged over the steps of the training; None where |G|^2 is not above 0.

        A measurement stands for the steps since the one before.
        """
        at, signal, noise = 0, 0.0, 0.0
        for step, square, trace in self.noise:
            signal, noise, at = signal + (step - at) * square, noise + (step - at) * trace, step
        return noise / signal if signal > 0 and noise > 0 else None


def parse(line: dict[str, Any], **known: Any) -> Trained:
    """A line of the file, or a result with `known` fields. Raises KeyError and TypeError for what is none."""
    values = {**line, **known}
    values["noise"] = tuple((int(step), float(a), float(b)) for step, a, b in values["noise"])
    values = {"joules": None, "price_per_hour": None, **values}  # older lines lack them
    return Trained(**{field.name: values[field.name] for field in dataclasses.fields(Trained)})


def write(folder: Path, trained: Sequence[Trained]) -> None:
    write_atomic(folder / FILE, "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in trained))


def read(folder: Path) -> list[Trained]:
    """The trainings of a run. Raises UserError when there is no such file, or a damaged one."""
    path = folder / FILE
    if not path.exists():
        raise UserError(f"'{folder}' has no {FILE}: give the folder of a 'jaxbench run time_to_target'.")
    try:
        return [parse(json.loads(line)) for line in path.read_text().splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r}): delete it, and the same command makes it again.") from error


def sentence(one: Trained) -> str:
    """One training, as a line of a terminal."""
    where = f"{one.model}, {one.devices} device{'s' if one.devices > 1 else ''}, batch {one.batch}, seed {one.seed}"
    how = f"{one.steps} steps" if one.reached else f"not reached in {one.steps} steps"
    if one.diverged:
        how = f"diverged at step {one.diverged}"
    accuracy = "" if one.accuracy is None else f", accuracy {one.accuracy:.4f}"
    scale = one.noise_scale
    noise = "" if scale is None or not math.isfinite(scale) else f", noise scale {scale:.3g}"
    return f"{where}, rate {one.learning_rate:g} ({one.rule}): {how}{accuracy}{noise}"

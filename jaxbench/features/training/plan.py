# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The data and the settings of a training. Both are checked before anything starts."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from jaxbench.core.workload import Dataset, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.features.training.trainings import ACCURACY, AUTO, at_target
from jaxbench.workloads.data import own

Row = dict[str, Any]  # of metrics.jsonl


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a training. With the step and the rows so far, they decide whether it has finished.

    Attributes:
      checkpoint_every: steps; 0 saves only after each epoch.
      metric: the metric on the test set that must reach the target.
      mode: whether it must be at least ("max") or at most ("min") the target. auto: min for a loss, otherwise max.
      evaluate_every: steps; 0 evaluates after each epoch. The target is reached at an evaluation.
      noise_examples: the examples from which the gradient noise scale is measured (see `NoiseMeter`); 0: not measured.
      keep: the number of checkpoints on the disk.
      examples: the number of examples in the training split.
    """

    seed: int
    batch: int
    epochs: int
    target: float
    checkpoint_every: int
    keep: int
    tensorboard: bool
    examples: int
    evaluate_every: int = 0
    noise_examples: int = 0
    metric: str = ACCURACY
    mode: str = AUTO

    @property
    def steps_per_epoch(self) -> int:
        return self.examples // self.batch  # the rest of an epoch is left out: a smaller batch would be another program

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    def evaluates(self, step: int) -> bool:
        """Whether there is an evaluation after `step`; always after the last one."""
        # The last step may lie between two evaluations, and nobody would know whether it reached the target.
        return step % (self.evaluate_every or self.steps_per_epoch) == 0 or step == self.steps

    def saves(self, step: int) -> bool:
        """Whether a checkpoint is due after `step` by the settings alone."""
        return step % self.steps_per_epoch == 0 or bool(self.checkpoint_every and step % self.checkpoint_every == 0)

    def reached(self, rows: list[Row]) -> bool:
        return bool(rows) and at_target(rows[-1], self.metric, self.mode, self.target)

    def finished(self, step: int, rows: list[Row]) -> bool:
        return self.reached(rows) or step >= self.steps


def read_plan(config: ConfigDict, examples: int) -> Plan:
    """Parses ``config.seed`` and ``config.train``. Raises UserError naming the field, the value and a legal one."""
    train = config.train
    # `get`: the config of a time-to-target run, or of an older jaxbench, has not all of these fields.
    for field, value, lower in (
        ("seed", config.seed, 0),
        ("train.batch", train.batch, 1),
        ("train.epochs", train.epochs, 1),
        ("train.checkpoint_every", train.checkpoint_every, 0),
        ("train.keep", train.keep, 1),
        ("train.warmup", train.get("warmup", 0), 0),
        ("train.evaluate_every", train.get("evaluate_every", 0), 0),
        ("train.noise_examples", train.get("noise_examples", 0), 0),
    ):
        if value < lower:
            raise UserError(f"--config.{field}={value} is too small: it must be at least {lower}.")
    metric = train.get("metric", ACCURACY)
    # Only an accuracy has known limits: any finite number may be the target of a loss.
    if metric == ACCURACY and not 0 < train.target <= 1 or not math.isfinite(train.target):
        raise UserError(f"--config.train.target={train.target} is not an {metric}: use a number such as 0.97.")
    if train.batch > examples:
        raise UserError(f"--config.train.batch={train.batch} is more than the {examples} examples: use at most those.")
    settings = {field.name: train[field.name] for field in dataclasses.fields(Plan) if field.name in train}
    return Plan(seed=config.seed, examples=examples, **settings)


def read_data(workload: TrainWorkload, *, seed: int) -> Dataset:
    """Loads the workload's data. seed: for splitting data that comes without a split.

    Raises UserError when the data does not fit the workload.
    """
    data = own.read(workload, seed=seed)
    for part, arrays in (("train", data.train), ("test", data.test)):
        own.require(workload, arrays, f"the {part} split of '{data.name}'")
    return data


def count(arrays: dict[str, np.ndarray]) -> int:
    """The number of examples in one split."""
    return len(next(iter(arrays.values())))

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings to a target over the batch: accuracy, steps, the knee and the gradient noise scale.

They are read from `targets.csv` of a run of the experiment `time_to_target`: one line per training, with the columns of
`NEEDED`. A training that did not reach its target gives only a lower bound of its steps. So a batch has a number of
steps only if all of its trainings reached the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.analysis.targets import fit_knee
from jaxbench.errors import UserError
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate
from jaxbench.verdicts.ratio import of_seeds

NAME, RUN = "targets.csv", "targets"
WORDS = ("run", "time_to_target", "--config.mesh.devices=1")
NEEDED = ("model", "batch", "devices", "seed", "rule", "steps", "reached", "accuracy", "noise_scale", "diverged")
LEARNT = 0.5


@dataclass(frozen=True, kw_only=True)
class TrainingsByBatch:
    """The trainings of one model on one device under one rule, by batch.

    Attributes:
      steps: {batch: (seeds,)} to the target; only batches with all trainings at the target.
      accuracy: {batch: (seeds,)} of all trainings, as a share.
      diverged: {batch: how many of its trainings}: the loss was not finite, or the accuracy is below LEARNT times the
        best batch's. Such a network has not learnt the task, so it says nothing of what a batch costs.
      noise: (trainings,) gradient noise scale in examples; unknown ones are left out.
    """

    steps: dict[int, np.ndarray]
    accuracy: dict[int, np.ndarray]
    diverged: dict[int, int]
    noise: np.ndarray


def read(found: Evidence, rule: str) -> TrainingsByBatch:
    """The trainings under a rule for the learning rate. Raises NotTestable without any, UserError if damaged."""
    path = found.path(RUN, NAME) / NAME
    import pandas as pd  # here: few papers need it

    try:
        table = pd.read_csv(path)
    except ValueError as error:
        raise UserError(f"'{path}' is damaged ({error}): delete it, and the run makes it again.") from error
    if missing := [name for name in NEEDED if name not in table]:
        raise UserError(f"'{path}' is damaged, it has no column '{missing[0]}': the run makes it again.")
    rows = table[(table["rule"] == rule) & (table["model"] == table["model"].min())]
    rows = rows[rows["devices"] == rows["devices"].min()]
    if rows.empty:
        raise NotTestable(f"No training used the rule '{rule}' for its learning rate.")
    rows = rows.assign(reached=rows["reached"].astype(str).str.lower().isin(["true", "1", "1.0"]))
    groups = {int(batch): group for batch, group in sorted(rows.groupby("batch"))}
    noise = rows["noise_scale"].to_numpy(dtype=float)
    least = LEARNT * rows.groupby("batch")["accuracy"].mean().max()
    blown = rows["diverged"].notna() | ~(rows["accuracy"] >= least)  # an unknown accuracy is none
    return TrainingsByBatch(
        steps={batch: g["steps"].to_numpy(dtype=float) for batch, g in groups.items() if g["reached"].all()},
        accuracy={batch: g["accuracy"].to_numpy(dtype=float) for batch, g in groups.items()},
        diverged={batch: int(blown[g.index].sum()) for batch, g in groups.items()},
        noise=noise[np.isfinite(noise) & (noise > 0)],
    )


def student(values: np.ndarray) -> Estimate:
    """The mean with its 95 % Student interval; of a single value, without one."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Estimate(value=mean)
    half = float(special.stdtrit(count - 1, 0.975)) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(value=mean, lo=mean - half, hi=mean + half)


def difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The mean of `a` less that of `b`, with Welch's 95 % interval."""
    found = of_seeds(b, a)
    return Estimate(value=found.log, lo=found.log - found.half(0.05), hi=found.log + found.half(0.05))


def ratio(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The geometric mean of `a` over that of `b`, with Welch's interval of the logarithms."""
    return of_seeds(np.log(b), np.log(a)).estimate()


def exponential(logarithm: Estimate) -> Estimate:
    """A number from its logarithm, ends included."""
    return Estimate(value=math.exp(logarithm.value), lo=math.exp(logarithm.lo), hi=math.exp(logarithm.hi))


def knee(trainings: TrainingsByBatch) -> Estimate:
    """The critical batch B of steps = S (1 + B / batch), fitted to the logarithms of the mean steps (McCandlish 2018).

    Its interval is Student's over seeds: one fit for each. UNKNOWN with fewer than three batches.
    """
    seeds = min((len(steps) for steps in trainings.steps.values()), default=0)
    if len(trainings.steps) < 3 or not seeds:
        return UNKNOWN
    batches = [float(batch) for batch in trainings.steps]
    fits = [fit_knee(batches, [steps[i] for steps in trainings.steps.values()])[1] for i in range(seeds)]
    return exponential(student(np.log(fits)))

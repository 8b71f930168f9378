# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Steps and seconds to a target over batch sizes, the knee, and the noise scale (docs/metrics, Time to target).

A training that did not reach its target is censored: it needs more steps than its budget. If one of several seeds is
censored, their mean is a lower limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.features.training.trainings import GRID, Trained
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, over_seeds

LEAST_BATCHES = 3  # the fewest batches for a fit of two numbers: with two, any knee would fit
REACH = 16.0  # the knee is searched from the smallest batch / REACH to the largest batch x REACH


@dataclass(frozen=True, kw_only=True)
class SeedGroup:
    """The seeds of one (model, rule, devices, batch)."""

    model: str
    rule: str
    devices: int
    batch: int
    trained: tuple[Trained, ...]

    @property
    def censored(self) -> int:
        """The number of seeds that did not reach the target."""
        return sum(not one.reached for one in self.trained)

    @property
    def steps(self) -> Estimate:
        return self._of(lambda one: float(one.steps))

    @property
    def seconds(self) -> Estimate:
        """The seconds of the steps to the target, without starting, compiling, evaluating and checkpoints."""
        return self._of(lambda one: one.seconds)

    @property
    def noise_scale(self) -> Estimate:
        return over_seeds(one.noise_scale for one in self.trained)  # no lower limit: it needs no target

    @property
    def joules(self) -> Estimate:
        return self._of(lambda one: one.joules)

    @property
    def cost(self) -> Estimate:
        return self._of(lambda one: one.cost)

    def _of(self, get: Callable[[Trained], float | None]) -> Estimate:
        """The geometric mean over seeds. If a seed is censored, it is a lower limit and has no interval."""
        found = over_seeds(map(get, self.trained))
        return found.alone() if self.censored else found


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The steps to the target over batches, for one (model, rule).

    Attributes:
      groups: the groups of seeds, by batch and devices.
      least, knee: the parameters of the fit steps = least (1 + knee / batch); UNKNOWN without a fit.
      straight: the steps fall as 1/batch over all batches, so the knee is above them.
      flat: the steps do not fall, so the knee is below all batches.
      noise_scale: the measured noise scale over the batches that the fit uses.
      ratio: knee over noise_scale, computed for each seed.
    """

    model: str
    rule: str
    groups: tuple[SeedGroup, ...]
    least: Estimate = UNKNOWN
    knee: Estimate = UNKNOWN
    straight: bool = False
    flat: bool = False
    noise_scale: Estimate = UNKNOWN
    ratio: Estimate = UNKNOWN

    @property
    def counts(self) -> list[int]:
        return sorted({group.devices for group in self.groups})

    def on(self, devices: int) -> list[SeedGroup]:
        """The groups on this number of devices, by batch."""
        return sorted((group for group in self.groups if group.devices == devices), key=lambda group: group.batch)

    def fastest(self, devices: int) -> SeedGroup | None:
        """The batch with the fewest seconds among the batches with no censored seed; None if there is none."""
        known = [group for group in self.on(devices) if not group.censored and group.seconds.known]
        return min(known, key=lambda group: group.seconds.value, default=None)


def fit_knee(batches: Sequence[float], steps: Sequence[float]) -> tuple[float, float]:
    """(least, knee) of steps = least (1 + knee / batch), by least squares of logarithms.

    Source: McCandlish et al. 2018, section 2.3: at the critical batch size, twice the least number of steps are needed.
    The knee is searched within REACH of the batches. A result at an end of that range means that the data show no knee.
    """
    sizes, logs = np.asarray(batches, float), np.log(np.asarray(steps, float))

    def residuals(knee: float) -> np.ndarray:
        return logs - np.log1p(knee / sizes)

    # For a given knee `least` follows from the mean, so the search is over one number.
    low, high = math.log(sizes.min() / REACH), math.log(sizes.max() * REACH)
    for _ in range(4):  # each pass narrows the range to two steps of the previous grid, in the end to 1e-5
        grid = np.linspace(low, high, 61)
        best = grid[int(np.argmin([np.var(residuals(math.exp(knee))) for knee in grid]))]
        low, high = max(best - (grid[1] - grid[0]), grid[0]), min(best + (grid[1] - grid[0]), grid[-1])
    knee = math.exp(best)
    return math.exp(float(np.mean(residuals(knee)))), knee


def curves(trained: Sequence[Trained]) -> list[Curve]:
    """One curve for each (model, rule), in the order of the trainings, without the learning-rate grid."""
    shown = [one for one in trained if one.rule != GRID]
    keys = dict.fromkeys((one.model, one.rule) for one in shown)
    return [_curve(*key, [one for one in shown if (one.model, one.rule) == key]) for key in keys]


def _curve(model: str, rule: str, trained: list[Trained]) -> Curve:
    """The curve of one model and rule over batches, with its knee."""
    at = sorted({(one.devices, one.batch) for one in trained})
    groups = tuple(
        SeedGroup(
            model=model,
            rule=rule,
            devices=devices,
            batch=batch,
            trained=tuple(one for one in trained if (one.devices, one.batch) == (devices, batch)),
        )
        for devices, batch in at
    )
    # A batch counts if all its seeds reached the target: the steps of a censored one are not known.
    reached = {group.batch for group in groups} - {group.batch for group in groups if group.censored}
    if len(reached) < LEAST_BATCHES:
        return Curve(model=model, rule=rule, groups=groups)
    used = [one for one in trained if one.batch in reached]
    seeds = sorted({one.seed for one in used})
    # One fit for each seed: the spread of the fits is the uncertainty of the knee.
    fits = [_fit([one for one in used if one.seed == seed]) for seed in seeds]
    noises = [over_seeds(one.noise_scale for one in used if one.seed == seed) for seed in seeds]
    noise = [each.value if each.known else None for each in noises]
    knees, low, high = [knee for _, knee in fits], min(reached) / REACH, max(reached) * REACH
    known = dict(model=model, rule=rule, groups=groups, noise_scale=over_seeds(noise))
    # At an end of the search (within a factor of 1.5, for seeds differ) the data show no knee in between.
    if max(knees) > high / 1.5 or min(knees) < low * 1.5:
        mean = math.exp(float(np.mean(np.log(knees))))
        return Curve(**known, straight=mean > max(reached), flat=mean < min(reached))  # type: ignore[arg-type]
    return Curve(
        **known,  # type: ignore[arg-type]
        least=over_seeds(least for least, _ in fits),
        knee=over_seeds(knees),
        ratio=over_seeds(None if n is None else knee / n for knee, n in zip(knees, noise, strict=True)),
    )


def _fit(of_seed: list[Trained]) -> tuple[float, float]:
    """The fit of one seed. At each batch it uses the geometric mean over device counts, which compute the same."""
    batches = sorted({one.batch for one in of_seed})
    steps = [over_seeds(float(one.steps) for one in of_seed if one.batch == batch).value for batch in batches]
    return fit_knee(batches, steps)

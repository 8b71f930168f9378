# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Shallue et al. 2019 and McCandlish et al. 2018: steps to a target over the batch, and where they stop falling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbench.papers import targets
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run
from jaxbench.report.drawing.marks import Mark

RULE = "tuned"


def small(found: Evidence) -> Reading:
    """Examples to the target at the second smallest batch over those at the smallest."""
    return _examples(found, 0)


def large(found: Evidence) -> Reading:
    """Steps at the largest batch over those at half of its size, or at the next smaller one."""
    steps = _steps(found)
    before, last = list(steps)[-2:]
    if last / before < 1.9:
        raise NotTestable("The two largest batches that reach the target differ by less than a factor of two.")
    return Reading(targets.ratio(steps[last], steps[before]), f"batch {last} against {before}")


def predicted(found: Evidence) -> Reading:
    """The knee over the mean noise scale, on logarithms; the spread of the noise scale is small next to the knee's."""
    trainings = targets.read(found, RULE)
    knee = targets.knee(trainings)
    if not knee.known or not len(trainings.noise):
        raise NotTestable("It needs three batches that reach the target, and the gradient noise scale.")
    noise = float(np.exp(np.mean(np.log(trainings.noise))))
    return Reading(knee.times(1 / noise), f"knee at batch {knee.value:.0f}, noise scale {noise:.0f}")


def _steps(found: Evidence) -> dict[int, np.ndarray]:
    steps = targets.read(found, RULE).steps
    if len(steps) < 2:
        raise NotTestable("Fewer than two batches reached the target with every seed.")
    return steps


def _examples(found: Evidence, at: int) -> Reading:
    steps = _steps(found)
    first, second = list(steps)[at : at + 2]
    value = targets.ratio(second * steps[second], first * steps[first])
    return Reading(value, f"batch {second} against {first}")


def curve(found: Evidence) -> Sequence[Ours]:
    logs = {batch: (targets.student(np.log(steps)), len(steps)) for batch, steps in _steps(found).items()}
    points = [Mark(at=batch, value=targets.exponential(value), n=(n,)) for batch, (value, n) in logs.items()]
    return [Ours(label="here", marks=points)]


def laws(found: Evidence) -> Sequence[PublishedSeries]:
    """1 / batch through the smallest batch, and the fitted curve with its knee."""
    trainings = targets.read(found, RULE)
    batches = np.array(list(_steps(found)), dtype=float)
    first = float(np.mean(trainings.steps[int(batches[0])]))
    perfect = PublishedSeries(
        label="1 / batch", x=batches[[0, -1]], y=first * batches[0] / batches[[0, -1]], formula=True
    )
    knee = targets.knee(trainings).value
    if not knee > 0:
        return [perfect]
    curve = first * (1 + knee / batches) / (1 + knee / batches[0])
    return [perfect, PublishedSeries(label=f"1 + B / batch, knee B = {knee:.0f}", x=batches, y=curve, formula=True)]


_MATHEMATICS = "Steps do not depend on the machine; the model and the data set are small."

PAPER = Paper(
    id="shallue2019",
    citation="C. Shallue et al., Measuring the Effects of Data Parallelism on Neural Network Training, 2019, "
    "arXiv:1811.03600; S. McCandlish et al., An Empirical Model of Large-Batch Training, 2018, arXiv:1812.06162",
    title="Steps to a target over the batch",
    tables=(),
    runs=(Run(name=targets.RUN, minutes=5, words=(*targets.WORDS, "--config.models=mlp", "--config.rule=tuned")),),
    claims=(
        Claim(
            name="perfect scaling",
            sentence="At small batches, doubling the batch halves the steps.",
            source="Shallue, Figure 1",
            quantity="examples to the target at the second smallest batch over those at the smallest",
            low=0.8,
            high=1.25,
            read=small,
            here=_MATHEMATICS,
        ),
        Claim(
            name="no further gain",
            sentence="At large batches, a larger batch saves no further steps.",
            source="Shallue, Figure 1",
            quantity="steps at the largest batch over those at the next smaller one",
            low=0.8,
            read=large,
            here=_MATHEMATICS,
        ),
        Claim(
            name="the knee",
            sentence="The gradient noise scale predicts the knee within an order of magnitude.",
            source="McCandlish, sections 2 and 4",
            quantity="critical batch of the fit over the measured gradient noise scale",
            low=0.1,
            high=10,
            read=predicted,
            here=_MATHEMATICS,
        ),
    ),
    panels=(
        Panel(title="steps to the target", x="batch", y="steps", log="xy", ours=curve, laws=laws),
    ),
)  # fmt: skip

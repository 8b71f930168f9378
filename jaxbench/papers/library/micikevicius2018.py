# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Micikevicius et al. 2018: training in 16 bits with loss scaling ends as well as in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbench.catalog import published
from jaxbench.papers import targets
from jaxbench.papers.evidence import Evidence, NotTestable, arm_of
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run
from jaxbench.report.drawing.marks import Mark

TABLE = "micikevicius_table1"
SEEDS = (0, 1, 2, 3)
WHOLE, HALF, UNSCALED = "default", "float16", "float16_unscaled"


def accuracy(found: Evidence, precision: str) -> np.ndarray:
    """(seeds,) the share of test images that each training of the precision gets right. Raises NotTestable."""
    places = [found.place(f"seed{seed}") for seed in SEEDS]
    values = np.array([arm_of(place, precision).outcome("final_accuracy") for place in places])
    if not np.isfinite(values).all():
        raise NotTestable(f"The trainings in {precision} ended without an accuracy.")
    return values


def lost(found: Evidence) -> Reading:
    """Pairs of trainings with one seed, so that the effect of the seed cancels."""
    difference = accuracy(found, WHOLE) - accuracy(found, HALF)
    return Reading(targets.student(100 * difference), f"cnn, {len(SEEDS)} seeds, 400 steps")


def unscaled(found: Evidence) -> Reading:
    difference = accuracy(found, HALF) - accuracy(found, UNSCALED)
    return Reading(targets.student(100 * difference), f"cnn, {len(SEEDS)} seeds, 400 steps")


def pairs(found: Evidence) -> Sequence[Ours]:
    means = [100 * targets.student(accuracy(found, name)).value for name in (WHOLE, HALF)]
    half = 100 * accuracy(found, HALF)
    return [Ours(label="cnn here", marks=[Mark(at=means[0], value=targets.student(half), n=(len(half),))])]


def published_pairs() -> Sequence[PublishedSeries]:
    table = published.read(TABLE).frame
    same = PublishedSeries(label="no difference", x=[50, 100], y=[50, 100], formula=True)
    return [same, PublishedSeries(label="ImageNet models, Table 1", x=[*table["fp32"]], y=[*table["mixed"]])]


PAPER = Paper(
    id="micikevicius2018",
    citation="P. Micikevicius et al., Mixed Precision Training, 2018, arXiv:1710.03740",
    title="Accuracy after training in 16 bits over that in 32 bits",
    tables=(TABLE,),
    runs=tuple(
        Run(
            name=f"seed{seed}",
            minutes=0.9,
            words=(
                "run", "precision", f"--config.lever.precision={WHOLE},{HALF},{UNSCALED}", "--config.measure.rounds=1",
                "--config.measure.processes=1", f"--config.seed={seed}",
            ),
        )
        for seed in SEEDS
    ),
    claims=(
        Claim(
            name="same accuracy",
            sentence="With loss scaling, training in 16 bits reaches the accuracy of 32 bits (within 0.3 points).",
            source="Table 1",
            quantity="accuracy in float32 minus that in float16 with dynamic loss scaling, in points",
            high=1.0,
            read=lost,
            here="Arithmetic in float16 is the same on a core, only slower; the test set has a few hundred images.",
        ),
        Claim(
            name="gradients vanish",
            sentence="Without loss scaling, small gradients become zero in 16 bits, and some trainings diverge.",
            source="section 3.2",
            quantity="accuracy with loss scaling minus that without, in points",
            low=0.5,
            read=unscaled,
            here="Arithmetic, not speed: one core can show it, but a network this small need not lose anything; the "
            "paper's detection network diverged.",
        ),
    ),
    panels=(
        Panel(
            title="accuracy in 16 bits over that in 32 bits", x="32 bits, %", y="16 bits, %",
            published=published_pairs, ours=pairs,
        ),
    ),
)  # fmt: skip

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Goyal et al. 2017: a large batch trains as well as a small one, with the right learning rate, and scales well."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.intervals import Estimate
from jaxbench.catalog import published
from jaxbench.papers import targets
from jaxbench.papers.evidence import Evidence, NotTestable, most_devices
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run, curve
from jaxbench.report.drawing.marks import Mark
from jaxbench.verdicts.judge import DIVERGED

ERROR = "goyal_error_vs_batch"
KEPT, FAR = 32, 256  # times the smallest batch: the paper's 8,192 over 256, and its 65,536 over 256


def efficiency(found: Evidence) -> Reading:
    row = most_devices(found.training("cnn").rows, scaling="weak")
    return Reading(row.efficiency, f"cnn, {row.point.devices} devices against {row.base.devices}")  # type: ignore[union-attr]


def kept(found: Evidence) -> Reading:
    """Accuracy lost at the largest batch that is at most KEPT times the smallest."""
    return _lost(found, most=KEPT)


def far(found: Evidence) -> Reading:
    """Accuracy lost at the largest batch of all, which must be beyond KEPT times the smallest."""
    return _lost(found, least=KEPT + 1, most=FAR)


def _lost(found: Evidence, *, most: int, least: int = 2) -> Reading:
    trainings = targets.read(found, "linear")
    accuracy, small = trainings.accuracy, min(trainings.accuracy)
    large = max((batch for batch in accuracy if least <= batch / small <= most), default=None)
    if large is None:
        raise NotTestable(f"No batch is {least} to {most} times the smallest, {small}.")
    for batch in (small, large):
        if count := trainings.diverged[batch]:
            how = f"diverged ({100 - 100 * accuracy[batch].mean():.3g} % error): its learning rate is too high here."
            raise NotTestable(f"{count} of {len(accuracy[batch])} trainings at batch {batch} {how}", DIVERGED)
    return Reading(targets.difference(accuracy[small], accuracy[large]).times(100), f"batch {large} against {small}")


def errors(found: Evidence) -> Sequence[Ours]:
    trainings = targets.read(found, "linear")
    points = [
        Mark(
            at=batch,
            value=_error(targets.student(each)),
            state="refused" if trainings.diverged[batch] else "solid",
            n=(len(each),),
        )
        for batch, each in trainings.accuracy.items()
    ]
    return [Ours(label="here, linear rule", marks=points, crosses="small grey x: a training of this batch diverged")]


def _error(value: Estimate) -> Estimate:
    return Estimate(value=100 - 100 * value.value, lo=100 - 100 * value.hi, hi=100 - 100 * value.lo)


def throughput(found: Evidence) -> Sequence[Ours]:
    return [curve(found.training("cnn").rows, "cnn here", lambda row: row.efficiency.times(100))]


def published_error() -> Sequence[PublishedSeries]:
    table = published.read(ERROR).frame
    return [PublishedSeries(label="ResNet-50, Goyal Figure 3", x=[*table["batch"]], y=[*table["top1_error_pct"]])]


def ideal() -> Sequence[PublishedSeries]:
    return [PublishedSeries(label="90 %, claimed for 8 to 256 GPUs", x=[1, 256], y=[90, 90])]


PAPER = Paper(
    id="goyal2017",
    citation="P. Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, 2017, arXiv:1706.02677",
    title="Validation error over the batch, and weak-scaling efficiency over devices",
    tables=(ERROR, "goyal_lr_rules"),
    runs=(
        Run(
            name="cnn",
            minutes=2,
            words=(
                "run", "cnn", "--config.strategy=shard_map", "--config.scaling=weak",
                "--config.mesh.oversubscribe=false", "--config.measure.rounds=9", "--config.measure.processes=3",
            ),
            paper=("run", "resnet50", "--config.strategy=shard_map", "--config.scaling=weak", "--config.batch=32"),
        ),
        Run(
            name=targets.RUN,
            minutes=5,
            words=(*targets.WORDS, "--config.models=cnn", "--config.rule=linear", "--config.warmup=3"),
        ),
    ),
    claims=(
        Claim(
            name="efficiency",
            sentence="Images per second grow with the number of devices at about 90 % of the ideal.",
            source="abstract and section 5.5",
            quantity="weak-scaling efficiency on the most devices",
            low=0.9,
            read=efficiency,
            here="Two cores are two devices without a network between them, and the model is far smaller.",
        ),
        Claim(
            name="kept accuracy",
            sentence="With the learning rate proportional to the batch and a warm-up, a batch up to 32 times larger "
            "loses no accuracy (23.60 % error at 256, 23.74 % at 8,192).",
            source="Figure 3",
            quantity="accuracy at the smallest batch minus that at the largest up to 32 times as large, in points",
            high=0.5,
            read=kept,
            here="The effect of the batch does not depend on the machine; the data set is small.",
        ),
        Claim(
            name="lost accuracy",
            sentence="Beyond that the error grows (24.79 % at 16,384, 33.96 % at 65,536).",
            source="Figure 3",
            quantity="accuracy at the smallest batch minus that at the largest beyond 32 times, in points",
            low=0.5,
            read=far,
            here="The effect of the batch does not depend on the machine; the data set is small.",
        ),
    ),
    panels=(
        Panel(
            title="validation error", x="batch", y="%", log="x", published=published_error, ours=errors
        ),
        Panel(title="efficiency", x="devices", y="%", log="x", top=112, published=ideal, ours=throughput),
    ),
)  # fmt: skip

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Li et al. 2020 (PyTorch DDP): buckets of gradients, and communication that hides behind the backward pass."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.papers.evidence import Evidence, NotTestable, arm_of
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, Reader, Reading, Run
from jaxbench.report.drawing.marks import Mark, n_of
from jaxbench.statistics import paired_ratio

EACH, BUCKETED, FUSED = "each", "bucketed", "fused"  # one all-reduce an array, one a bucket, one in all


def against(other: str) -> Reader:
    """A reader of the step time with another way of reduction over that with buckets."""

    def read(found: Evidence) -> Reading:
        top, bottom = (arm_of(found.place("buckets"), name, honest=True) for name in (other, BUCKETED))
        return Reading(paired_ratio.ratio(top, bottom), f"mlp of 8 million parameters, {top.row.point.devices} devices")

    return read


def hidden(found: Evidence) -> Reading:
    """The share of the collectives' time in which the devices also compute, on the most devices."""
    falls = [fall for fall in found.training("overlap").waterfalls if fall.hidden.known]
    if not falls:
        raise NotTestable("No communication was measured alone, which needs two devices that share no core.")
    fall = max(falls, key=lambda fall: fall.point.devices)
    return Reading(fall.hidden, f"mlp, {fall.point.devices} devices, {fall.point.scaling} scaling")


def times(found: Evidence) -> Sequence[Ours]:
    arms = [arm_of(found.place("buckets"), name) for name in (EACH, BUCKETED, FUSED)]
    made = [Mark(at=i, value=arm.timing.step_s.times(1e3), n=n_of(arm)) for i, arm in enumerate(arms)]
    return [Ours(label="mlp here", marks=made)]


_MODEL = ("--config.model.width=1024", "--config.model.depth=8", "--config.batch=64")

PAPER = Paper(
    id="li2020",
    citation="S. Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, 2020, "
    "arXiv:2006.15704",
    title="Step time by the number of all-reduces of a gradient, and how much of them overlaps",
    tables=(),
    runs=(
        Run(
            name="buckets",
            minutes=2,
            words=(
                "run", "reduction", "--config.lever.reduction=each,bucketed,fused", *_MODEL,
                "--config.measure.rounds=9", "--config.measure.processes=3",
            ),
            paper=(
                "run", "resnet50", "--config.strategy=shard_map", "--config.scaling=weak", "--config.batch=32",
                "--config.lever.reduction=each,bucketed,fused",
            ),
        ),
        Run(
            name="overlap",
            minutes=2,
            words=(
                "run", "mlp", "--config.strategy=shard_map", "--config.scaling=weak", *_MODEL,
                "--config.mesh.oversubscribe=false", "--config.measure.rounds=9", "--config.measure.processes=3",
            ),
            paper=("run", "resnet50", "--config.strategy=shard_map", "--config.scaling=weak", "--config.batch=32"),
        ),
    ),
    claims=(
        Claim(
            name="not one each",
            sentence="Buckets are faster than one all-reduce for each array.",
            source="section 3.2 and Figure 2",
            quantity="step time with one all-reduce per array over that with buckets",
            low=1.0,
            read=against(EACH),
            here="Two cores pay for the launch of each all-reduce, as devices do, but have no link.",
        ),
        Claim(
            name="not one for all",
            sentence="Buckets are faster than one all-reduce for the whole gradient, so the bucket has a best size.",
            source="section 5.3",
            quantity="step time with one all-reduce for the whole gradient over that with buckets",
            low=1.0,
            read=against(FUSED),
            here="It needs communication that overlaps with the backward pass; on a CPU XLA runs them in sequence.",
        ),
        Claim(
            name="overlap",
            sentence="Overlap with the backward pass hides most of the all-reduce.",
            source="section 5.1, Figure 6",
            quantity="share of the collectives' time in which the devices also compute",
            low=0.5,
            read=hidden,
            here="A core that sums gradients cannot compute at the same time; an accelerator has copy engines.",
        ),
    ),
    panels=(
        Panel(
            title="ways to reduce a gradient", x="all-reduces", y="step time, ms",
            names=("one an array", "buckets", "one for all"), ours=times,
        ),
    ),
)  # fmt: skip

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sergeev and Del Balso 2018 (Horovod) and the TensorFlow benchmarks of 2017: images/s against the ideal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, most_devices
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run, curve
from jaxbench.statistics.bootstrap import estimate

TENSORFLOW, HOROVOD = "tf_dgx1_p100_synth", "horovod_efficiency"
MODELS = {"resnet18": "ResNet-50", "vgg16": "VGG16"}  # ours: theirs, in the TensorFlow benchmarks


def of_resnet(found: Evidence) -> Reading:
    row = most_devices(found.training("resnet18").rows, scaling="weak")
    return Reading(row.efficiency, f"resnet18, {row.point.devices} devices")


def vgg_over_resnet(found: Evidence) -> Reading:
    """The runs are two sessions, and efficiencies are ratios within each, so their draws are independent."""
    rows = [most_devices(found.training(name).rows, scaling="weak") for name in ("vgg16", "resnet18")]
    shuffled = np.random.default_rng(0).permutation(rows[1].speedup_draws)
    scale = rows[1].relative_devices / rows[0].relative_devices
    value = rows[0].efficiency.value / rows[1].efficiency.value
    rounds = min(row.timing.rounds for row in rows)
    drawn = estimate(value, scale * rows[0].speedup_draws / shuffled, rounds=rounds)
    return Reading(drawn, f"{rows[0].point.devices} devices")


def speedups(found: Evidence) -> Sequence[Ours]:
    return [curve(found.training(name).rows, f"{name} here", lambda row: row.speedup) for name in MODELS]


def published_speedups() -> Sequence[PublishedSeries]:
    table = published.read(TENSORFLOW).frame
    ideal = PublishedSeries(label="ideal", x=[1, 8], y=[1, 8], formula=True)
    return [
        ideal,
        *(
            PublishedSeries(label=f"{name}, TensorFlow, P100", x=[*table["gpus"]], y=[*(table[name] / table[name][0])])
            for name in MODELS.values()
        ),
    ]


def efficiencies(found: Evidence) -> Sequence[Ours]:
    return [curve(found.training(name).rows, f"{name} here", lambda row: row.efficiency.times(100)) for name in MODELS]


def published_efficiencies() -> Sequence[PublishedSeries]:
    table = published.read(HOROVOD).frame
    return [
        PublishedSeries(label=f"{name}, Horovod", x=[1, *table["gpus"]], y=[100, *(100 * table[name])])
        for name in ("ResNet-101", "VGG-16")
    ]


_COMMON = (
    "--config.strategy=shard_map", "--config.scaling=weak", "--config.mesh.oversubscribe=false",
    "--config.model.size=32", "--config.model.classes=10", "--config.model.width=32", "--config.batch=16",
    "--config.measure.rounds=9", "--config.measure.processes=3",
)  # fmt: skip
_PAPER = ("--config.strategy=shard_map", "--config.scaling=weak", "--config.batch=64")

PAPER = Paper(
    id="sergeev2018",
    citation="A. Sergeev and M. Del Balso, Horovod: fast and easy distributed deep learning in TensorFlow, 2018, "
    "arXiv:1802.05799; TensorFlow benchmarks, May 2017",
    title="Speed-up and efficiency of a residual network and of VGG over devices",
    tables=(TENSORFLOW, HOROVOD),
    runs=(
        Run(
            name="resnet18",
            minutes=2,
            words=("run", "resnet18", "--config.model.stem=cifar", *_COMMON),
            paper=("run", "resnet50", *_PAPER),
        ),
        Run(
            name="vgg16",
            minutes=2,
            words=("run", "vgg16", "--config.model.pooled=1", *_COMMON),
            paper=("run", "vgg16", *_PAPER),
        ),
    ),
    claims=(
        Claim(
            name="resnet",
            sentence="A residual network reaches 90 % of the ideal (ResNet-101 on 128 and 512 GPUs).",
            source="Horovod's benchmarks",
            quantity="weak-scaling efficiency of resnet18 on the most devices",
            low=0.9,
            read=of_resnet,
            here="Two cores share one memory and have no network, so the cost of a network does not appear.",
        ),
        Claim(
            name="vgg below resnet",
            sentence="A model with more gradient bytes per FLOP scales worse (VGG-16: 68 % on 512 GPUs, where "
            "ResNet-101 has 90 %; VGG16: 7.02 of 8 GPUs, ResNet-50: 7.92).",
            source="Horovod's benchmarks; TensorFlow benchmarks, DGX-1",
            quantity="efficiency of vgg16 over that of resnet18, on the most devices",
            high=1.0,
            read=vgg_over_resnet,
            here="Two cores show the sign for two devices; its size depends on the network between hosts.",
        ),
    ),
    panels=(
        Panel(
            title="speed-up", x="devices", y="speed-up over 1 device", log="xy",
            published=published_speedups, ours=speedups,
        ),
        Panel(
            title="efficiency",
            x="devices",
            y="%",
            log="x",
            top=112,
            published=published_efficiencies,
            ours=efficiencies,
        ),
    ),
)  # fmt: skip

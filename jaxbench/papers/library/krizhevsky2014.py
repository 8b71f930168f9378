# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Krizhevsky 2014: convolutions by data parallelism and dense layers by model parallelism."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, NotTestable, arm_of, most_devices
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, Published, Reading, Run, exact
from jaxbench.report.drawing import marks

TABLE = "tf_dgx1_p100_synth"
CONVOLUTIONS = "convolutions"


def dense_share(found: Evidence) -> Reading:
    """Gradient bytes that remain when the convolutions are frozen, over all of them."""
    places = [place for place in found.levers("freeze").places if place.devices == 2]
    if not places:
        raise NotTestable("The run 'freeze' has no step on two devices.")
    arms = [arm_of(places[0], label) for label in ("none", CONVOLUTIONS)]
    total, dense = (arm.point.record.passport.expected_gradient_bytes for arm in arms if arm.point.record)
    return Reading(exact(dense / total), "alexnet")


def data_parallel(found: Evidence) -> Reading:
    row = most_devices(found.training("alexnet").rows, scaling="weak")
    return Reading(row.efficiency, f"alexnet, {row.point.devices} devices")


def hybrid(found: Evidence) -> Reading:
    raise NotTestable("No strategy of the suite splits the dense layers of a convolutional model over devices yet.")


def speedups(found: Evidence) -> Sequence[Ours]:
    rows = [row for row in found.training("alexnet").rows if row.point.scaling == "weak"]
    ours = marks.of(rows, lambda r: r.point.devices, lambda r: r.speedup)
    return [Ours(label="alexnet here, data parallelism", marks=ours)]


def published_speedups() -> Sequence[Published]:
    table = published.read(TABLE).frame
    curve = [*(table["AlexNet"] / table["AlexNet"][0])]
    return [
        Published(label="ideal", x=[1, 8], y=[1, 8]),
        Published(label="AlexNet, TensorFlow, data parallelism, P100", x=[*table["gpus"]], y=curve),
    ]


_SIZE = ("--config.model.size=127", "--config.model.classes=100", "--config.model.hidden=1024")

PAPER = Paper(
    id="krizhevsky2014",
    citation="A. Krizhevsky, One Weird Trick for Parallelizing Convolutional Neural Networks, 2014, arXiv:1404.5997; "
    "TensorFlow benchmarks, May 2017",
    title="Convolutions by data, dense layers by model parallelism",
    tables=(TABLE,),
    runs=(
        Run(
            name="alexnet",
            minutes=3,
            words=(
                "run", "alexnet", "--config.strategy=shard_map", "--config.scaling=weak", "--config.batch=16", *_SIZE,
                "--config.measure.rounds=9", "--config.measure.processes=3",
            ),
            paper=("run", "alexnet", "--config.strategy=shard_map", "--config.scaling=weak", "--config.batch=128"),
        ),
        Run(
            name="freeze",
            minutes=5,
            words=(
                "run", "alexnet", "--config.strategy=shard_map", "--config.scaling=strong", "--config.mesh.devices=2",
                f"--config.lever.freeze=none,{CONVOLUTIONS}", "--config.batch=2",
                "--config.optimizer.learning_rate=0.0001", "--config.measure.rounds=1",
                "--config.measure.processes=1",
            ),
        ),
    ),
    claims=(
        Claim(
            name="dense parameters",
            sentence="Dense layers hold about 95 % of the parameters, and convolutions do about 90 % of the work.",
            source="section 2",
            quantity="share of the gradient's bytes that belongs to dense layers",
            low=0.9,
            read=dense_share,
            here="Exact: the bytes of the full model's gradient.",
        ),
        Claim(
            name="data parallelism alone",
            sentence="Data parallelism alone loses to the dense layers' gradients (5.97 of 8 GPUs, TensorFlow).",
            source="section 3; TensorFlow benchmarks",
            quantity="weak-scaling efficiency of data parallelism on the most devices",
            high=0.95,
            read=data_parallel,
            here="Two cores share one memory: the gradient is summed in it and not sent over a link.",
        ),
        Claim(
            name="hybrid",
            sentence="Data parallelism for convolutions with model parallelism for dense layers beats either alone.",
            source="section 4",
            quantity="images/s of the mixture over those of the better of the two",
            low=1.0,
            read=hybrid,
            here="Two cores could show the bytes that are sent, which are exact, and the time of two devices.",
        ),
    ),
    panels=(
        Panel(
            title="speed-up", x="devices", y="times one device", log="xy", published=published_speedups, ours=speedups
        ),
    ),
)  # fmt: skip

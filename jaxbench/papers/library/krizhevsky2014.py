# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Krizhevsky 2014: convolutions by data parallelism and dense layers by model parallelism."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, NotTestable, arm_of, most_devices
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run, curve, exact
from jaxbench.report.drawing.marks import Mark, n_of

TABLE = "tf_dgx1_p100_synth"
CONVOLUTIONS = "convolutions"
DATA, MIXTURE = "data=2", "tensor=2"


def dense_share(found: Evidence) -> Reading:
    """Gradient bytes with frozen convolutions over all gradient bytes."""
    places = [place for place in found.levers("freeze").places if place.devices == 2]
    if not places:
        raise NotTestable("The run 'freeze' has no step on two devices.")
    arms = [arm_of(places[0], label) for label in ("none", CONVOLUTIONS)]
    total, dense = (arm.point.record.passport.expected_gradient_bytes for arm in arms if arm.point.record)
    return Reading(exact(dense / total), "alexnet")


def data_parallel(found: Evidence) -> Reading:
    row = most_devices(found.training("alexnet").rows, scaling="weak")
    return Reading(row.efficiency, f"alexnet, {row.point.devices} devices")


def images(found: Evidence) -> Reading:
    """Images per second of the mixture over those of data parallelism, from the rounds that both share."""
    place, data, mixture = _arms(found, honest=True)
    return Reading(place.speedup(mixture, data), f"alexnet, {place.devices} devices")


def sent(found: Evidence) -> Reading:
    """Bytes sent per device and step by the mixture over those of data parallelism."""
    place, *arms = _arms(found)
    records = [arm.point.record for arm in arms]
    data, mixture = (sum(c.wire_bytes for c in r.passport.collectives) for r in records if r is not None)
    return Reading(exact(mixture / data), f"alexnet, {place.devices} devices")


def _arms(found: Evidence, *, honest: bool = False) -> tuple[ArmGroup, ArmResult, ArmResult]:
    """The place of the run, data parallelism and the mixture. Raises NotTestable without them. honest: speeds, too."""
    place = found.place("mixture")
    return place, arm_of(place, DATA, honest=honest), arm_of(place, MIXTURE, honest=honest)


def speedups(found: Evidence) -> Sequence[Ours]:
    return [curve(found.training("alexnet").rows, "alexnet here, data parallelism", lambda row: row.speedup)]


def rates(found: Evidence) -> Sequence[Ours]:
    _, *arms = _arms(found)
    per_s = [(arm.timing.step_s.under(arm.point.examples), n_of(arm)) for arm in arms]
    return [Ours(label="alexnet here", marks=[Mark(at=i, value=each, n=n) for i, (each, n) in enumerate(per_s)])]


def published_speedups() -> Sequence[PublishedSeries]:
    table = published.read(TABLE).frame
    curve = [*(table["AlexNet"] / table["AlexNet"][0])]
    return [
        PublishedSeries(label="ideal", x=[1, 8], y=[1, 8], formula=True),
        PublishedSeries(label="AlexNet, TensorFlow, data parallelism, P100", x=[*table["gpus"]], y=curve),
    ]


_IMAGE = ("--config.model.size=127", "--config.model.pooled=3")  # the paper's convolutions on a fifth of the pixels
_SIZE = (*_IMAGE, "--config.model.classes=100", "--config.model.hidden=1024")

PAPER = Paper(
    id="krizhevsky2014",
    citation="A. Krizhevsky, One Weird Trick for Parallelizing Convolutional Neural Networks, 2014, arXiv:1404.5997; "
    "TensorFlow benchmarks, May 2017",
    title="Speed-up of AlexNet, and its rate with dense layers split by data or by tensor",
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
        Run(
            name="mixture",
            minutes=3,
            words=(
                "run", "alexnet", "--config.strategy=hybrid", f"--config.lever.mesh={DATA};{MIXTURE}",
                "--config.mesh.devices=2", "--config.scaling=strong", "--config.batch=16", *_IMAGE,
                "--config.measure.rounds=9", "--config.measure.processes=3",
            ),
            paper=(
                "run", "alexnet", "--config.strategy=hybrid", f"--config.lever.mesh={DATA};{MIXTURE}",
                "--config.mesh.devices=2", "--config.scaling=strong", "--config.batch=256",
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
            here="Two cores share one memory: the gradient is summed there, not sent over a link.",
        ),
        Claim(
            name="less is sent",
            sentence="With the dense layers split, a step sends activations instead of gradients for them, which is "
            "less.",
            source="section 4",
            quantity="bytes sent per device and step by the mixture over those of data parallelism",
            high=1.0,
            read=sent,
            here="Exact: the bytes of the compiled step. They depend on the batch: activations grow with it.",
        ),
        Claim(
            name="hybrid",
            sentence="Data parallelism for convolutions with model parallelism for dense layers beats either alone.",
            source="section 4",
            quantity="images/s of the mixture over those of data parallelism alone",
            low=1.0,
            read=images,
            here="Two devices share one memory: each reads half of the dense weights, and there is no link to relieve. "
            "Model parallelism alone is not measured: it does not split the convolutions, nine tenths of the work.",
        ),
    ),
    panels=(
        Panel(
            title="speed-up", x="devices", y="speed-up over 1 device", log="xy",
            published=published_speedups, ours=speedups,
        ),
        Panel(
            title="two devices", x="parallelism of the dense layers", y="images a second", names=("data", "tensor"),
            ours=rates,
        ),
    ),
)  # fmt: skip

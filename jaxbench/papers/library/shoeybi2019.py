# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Shoeybi et al. 2019 (Megatron-LM): tensor parallelism, its weak scaling and its four all-reduces per block."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, NotTestable, most_devices
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run, curve, exact

WEAK, STRONG = "megatron2019_weak_scaling", "megatron2019_strong_scaling"
DEPTHS = (2, 4)


def efficiency(found: Evidence) -> Reading:
    row = most_devices(found.training("weak").rows, scaling="weak")
    return Reading(row.efficiency, f"gpt, {row.point.devices} devices")


def all_reduces(found: Evidence) -> Reading:
    """All-reduces over the tensor axis per block: the difference of two depths, in which the rest cancels."""
    few, many = (_tensor_sums(found, depth) for depth in DEPTHS)
    return Reading(exact((many - few) / (DEPTHS[1] - DEPTHS[0])), f"{DEPTHS[0]} and {DEPTHS[1]} blocks")


def _tensor_sums(found: Evidence, depth: int) -> int:
    """Arrays that the compiled step of a depth sums over two devices, scalars left out."""
    for row in found.training(f"depth{depth}").rows:
        if row.point.devices == 2 and row.point.strategy == "tensor" and not row.wrong and row.point.record:
            sums = [c for c in row.point.record.passport.collectives if c.kind == "all-reduce"]
            return sum(c.count - c.scalars for c in sums)
    raise NotTestable(f"The step of {depth} blocks on two devices was not compiled and checked.")


def measured(found: Evidence) -> Sequence[Ours]:
    return [curve(found.training("weak").rows, "gpt here", lambda row: row.efficiency.times(100))]


def published_weak() -> Sequence[PublishedSeries]:
    table = published.read(WEAK).frame
    return [PublishedSeries(label="Megatron-LM, V100", x=[*table["mp_gpus"]], y=[*table["mp_scaling_pct"]])]


def _depth(layers: int) -> Run:
    words = ("--config.strategy=tensor", "--config.mesh.devices=2", "--config.scaling=strong")
    sizes = (f"--config.model.layers={layers}", "--config.measure.rounds=1")
    return Run(name=f"depth{layers}", minutes=0.5, words=("run", "gpt", "--preset=smoke", *words, *sizes))


PAPER = Paper(
    id="shoeybi2019",
    citation="M. Shoeybi et al., Megatron-LM: Training Multi-Billion Parameter Language Models Using Model "
    "Parallelism, 2019, arXiv:1909.08053",
    title="Weak-scaling efficiency of tensor parallelism, and its all-reduces in a block",
    tables=(WEAK, STRONG),
    runs=(
        Run(
            name="weak",
            minutes=4,
            words=(
                "run", "tensor_parallel", "--config.scaling=weak", "--config.mesh.devices=1,2",
                "--config.measure.rounds=6", "--config.measure.processes=3",
            ),
            paper=(
                "run", "tensor_parallel", "--config.scaling=weak", "--config.mesh.oversubscribe=false",
                "--config.model.width=1536", "--config.model.heads=16", "--config.model.layers=40",
                "--config.model.context=1024", "--config.model.vocab=51200",
            ),
        ),
        *map(_depth, DEPTHS),
    ),
    claims=(
        Claim(
            name="weak scaling",
            sentence="If the model grows with the devices, eight reach 77 % of the ideal FLOP/s (95 % on two).",
            source="Table 1 and Figure 5",
            quantity="weak-scaling efficiency on the most devices, in FLOP/s",
            low=0.77,
            read=efficiency,
            here="Two cores are two devices that share one memory; the paper's loss comes from a link.",
        ),
        Claim(
            name="all-reduces",
            sentence="A block needs two all-reduces in the forward and two in the backward pass, and no more.",
            source="section 3, Figure 4",
            quantity="all-reduces over the tensor axis that each further block adds to the compiled step",
            low=4,
            high=4,
            read=all_reduces,
            here="Exact: they are counted in the compiled program, which is the same for any two devices.",
        ),
    ),
    panels=(
        Panel(title="weak scaling", x="devices", y="%", log="x", top=112, published=published_weak, ours=measured),
    ),
)  # fmt: skip

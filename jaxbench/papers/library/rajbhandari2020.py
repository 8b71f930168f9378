# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rajbhandari et al. 2020 (ZeRO): bytes of model state on a device, and what each stage communicates."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reader, Reading, Run, exact
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.figures import memory

TABLE = "zero_table1"
PLAIN, STAGES = "jit_auto", {"zero1": 1.0, "zero2": 1.0, "fsdp": 1.5}  # volume over that of data parallelism


def bytes_held(found: Evidence) -> Reading:
    """The largest relative error of the bytes a device holds against the paper's formulas."""
    rows = [row for row in found.training("zero").rows if not row.wrong and row.point.record]
    counts = sorted({row.point.devices for row in rows})
    if not {PLAIN, *STAGES} <= {row.point.strategy for row in rows} or counts[-1] < 2:
        raise NotTestable("The run 'zero' lacks one of the stages, or a second device count.")
    return Reading(exact(memory.worst(rows)), f"three stages on {counts[0]} to {counts[-1]} devices")


def volume_of(strategy: str) -> Reader:
    """A reader of the bytes sent per device and step over those of data parallelism."""

    def read(found: Evidence) -> Reading:
        sent = {row.point.strategy: _sent(row) for row in found.training("volume").rows if not row.wrong}
        if not (sent.get(PLAIN) and sent.get(strategy)):
            raise NotTestable(f"The run 'volume' lacks {PLAIN} or {strategy}.")
        return Reading(exact(sent[strategy] / sent[PLAIN]), "gpt with 8 blocks, 2 devices")

    return read


def _sent(row: Row) -> int:
    """Bytes that a device sends, scalars left out."""
    collectives = row.point.record.passport.collectives if row.point.record else ()
    return sum(each.wire_bytes for each in collectives if each.elements)


def held(found: Evidence) -> Sequence[Ours]:
    rows = [row for row in found.training("zero").rows if not row.wrong]
    series = []
    for strategy in (PLAIN, *STAGES):
        ours = [
            Mark(at=row.point.devices, value=marks.exact(memory.per_parameter(row)))
            for row in rows
            if row.point.strategy == strategy
        ]
        series.append(Ours(label=f"{strategy} here", marks=ours))
    return series


def published_held() -> Sequence[PublishedSeries]:
    table = published.read(TABLE).frame
    return [
        PublishedSeries(label=f"{stage.name}: Table 1", x=[*table["dp"]], y=[*(table[stage.column] / memory.BILLIONS)])
        for stage in memory.STAGES
        if stage.column
    ]


def _volume(strategy: str, name: str, times: float) -> Claim:
    return Claim(
        name=f"volume of {name}",
        sentence=f"{name} sends {times:g} times the bytes of data parallelism.",
        source="section 7",
        quantity=f"bytes sent per device and step by {strategy} over those of {PLAIN}",
        low=0.95 * times,
        high=1.05 * times,
        read=volume_of(strategy),
        here="Exact: bytes of the compiled program. The first layer's parameters are gathered once, not twice.",
    )


_NAMES = {"zero1": "P_os", "zero2": "P_os+g", "fsdp": "P_os+g+p"}

PAPER = Paper(
    id="rajbhandari2020",
    citation="S. Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020, "
    "arXiv:1910.02054",
    title="Bytes of model state on a device, and what each stage sends",
    tables=(TABLE,),
    runs=(
        Run(
            name="zero",
            minutes=2,
            words=("run", "zero", "--config.measure.rounds=1", "--config.measure.processes=1"),
            paper=("run", "zero", "--config.measure.rounds=1", "--config.measure.processes=1"),
        ),
        Run(
            name="volume",
            minutes=1.5,
            words=(
                "run", "gpt", "--preset=smoke", "--config.strategy=jit_auto,zero1,zero2,fsdp",
                "--config.mesh.devices=2", "--config.scaling=strong", "--config.measure.rounds=1",
                "--config.model.layers=8", "--config.model.width=64",
            ),
        ),
    ),
    claims=(
        Claim(
            name="bytes",
            sentence="Of 16 bytes per parameter, a device keeps 4 + 12/N, 2 + 14/N and 16/N in the three stages.",
            source="Figure 1 and Table 1",
            quantity="largest relative error of the bytes on the first device against the formulas",
            high=0.02,
            read=bytes_held,
            here="Exact: array sizes on fake devices are the same as on any other.",
        ),
        *(_volume(strategy, _NAMES[strategy], times) for strategy, times in STAGES.items()),
    ),
    panels=(
        Panel(
            title="model state on a device", x="data-parallel degree N", y="bytes per parameter", log="xy",
            published=published_held, ours=held,
        ),
    ),
)  # fmt: skip

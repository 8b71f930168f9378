# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Huang et al. 2019 (GPipe) and Narayanan et al. 2021 (PTD-P): the bubble of a pipeline, and what divides it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbench.analysis import bubble
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.levers import SCHEDULE
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Claim, Ours, Panel, Paper, PublishedSeries, Reading, Run, exact
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.marks import Mark

TABLE = "gpipe_table2_tpu"
STAGES = (2, 4)


def formula(found: Evidence) -> Reading:
    """The largest difference between an executed schedule's idle share and the formula."""
    rows = _rows(found, "pipeline")
    worst = max(abs(idle(row) - bubble.idle(bubble.stages(row.point), bubble.micro_batches(row.point))) for row in rows)
    return Reading(exact(worst), f"{len(rows)} pipelines of {min(STAGES)} to {max(STAGES)} stages")


def divided(found: Evidence) -> Reading:
    """Idle / busy slots of 1F1B over idle / busy slots of the interleaved schedule with two chunks per stage."""
    rows = {SCHEDULE.of(row.point.levers): row for row in _rows(found, "interleaved")}
    if not {"1f1b", "interleaved"} <= rows.keys():
        raise NotTestable("The run 'interleaved' lacks one of the two schedules.")
    plain, many = (idle(rows[name]) / (1 - idle(rows[name])) for name in ("1f1b", "interleaved"))
    return Reading(exact(plain / many), "two chunks of blocks a stage")


def mixture(found: Evidence) -> Reading:
    reason = "It needs several hosts, so that a tensor axis can lie inside one or across two; there is only one."
    raise NotTestable(reason)


def idle(row: Row) -> float:
    """The share of idle slots in the executed schedule."""
    return 1 - row.point.fact("busy_share")


def _rows(found: Evidence, run: str) -> list[Row]:
    rows = [row for row in found.levers(run).rows if row.believed and np.isfinite(row.point.fact("busy_share"))]
    if not rows:
        raise NotTestable(f"The run '{run}' has no pipeline that passed its checks.")
    return rows


def throughput(found: Evidence) -> Sequence[Ours]:
    rows = [row for row in _rows(found, "pipeline") if row.timing.step_s.known]
    base = next((r for r in rows if bubble.stages(r.point) == 2 and bubble.micro_batches(r.point) == 1), None)
    if base is None:
        raise NotTestable("Two stages with one micro-batch were not measured.")
    step_s = base.timing.step_s.value
    series = []
    for stages in STAGES:
        of_stages = [row for row in rows if bubble.stages(row.point) == stages]
        ours = marks.of(of_stages, lambda r: bubble.micro_batches(r.point), lambda r: r.timing.step_s.under(step_s))
        series.append(Ours(label=f"K = {stages} here", marks=ours))
    return series


def published_throughput() -> Sequence[PublishedSeries]:
    table = published.read(TABLE).frame
    return [
        PublishedSeries(
            label=f"K = {stages}, GPipe, transformer", x=[*table["M"]], y=[*table[f"transformer_K{stages}"]]
        )
        for stages in STAGES
    ]


def idle_shares(found: Evidence) -> Sequence[Ours]:
    rows = _rows(found, "pipeline")
    return [
        Ours(
            label=f"K = {stages} here",
            marks=[
                Mark(at=bubble.micro_batches(r.point), value=marks.exact(100 * idle(r)))
                for r in sorted(rows, key=lambda r: bubble.micro_batches(r.point))
                if bubble.stages(r.point) == stages
            ],
        )
        for stages in STAGES
    ]


def formulas() -> Sequence[PublishedSeries]:
    parts = [1, 2, 4, 8, 16, 32]
    return [
        PublishedSeries(
            label=f"K = {stages}: (K - 1) / (M + K - 1)",
            x=parts,
            y=[100 * bubble.idle(stages, m) for m in parts],
            formula=True,
        )
        for stages in STAGES
    ]


_SMALL = ("--config.measure.rounds=2", "--config.measure.processes=1")

PAPER = Paper(
    id="huang2019",
    citation="Y. Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2019, "
    "arXiv:1811.06965; D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using "
    "Megatron-LM (PTD-P), 2021, arXiv:2104.04473",
    title="Throughput and idle share of a pipeline over micro-batches",
    tables=(TABLE,),
    runs=(
        Run(
            name="pipeline",
            minutes=3,
            words=("run", "pipeline", "--config.mesh.devices=2,4", "--config.lever.schedule=gpipe", *_SMALL),
            paper=("run", "pipeline", "--config.model.preset=small"),
        ),
        Run(
            name="interleaved",
            minutes=2,
            words=(
                "run", "pipeline", "--config.mesh.devices=2", "--config.lever.schedule=1f1b,interleaved",
                "--config.lever.accumulate=4", *_SMALL,
            ),
        ),
    ),
    claims=(
        Claim(
            name="bubble",
            sentence="With K stages and M micro-batches (K - 1) / (M + K - 1) of a pipeline's time is idle.",
            source="GPipe, section 2.3",
            quantity="largest difference between an executed schedule's idle share and the formula",
            high=0.001,
            read=formula,
            here="Exact: the slots of the executed schedule, counted on the devices. Times with more stages than "
            "cores mean nothing.",
        ),
        Claim(
            name="interleaving",
            sentence="With V chunks of blocks per stage, the bubble is V times smaller than that of 1F1B.",
            source="PTD-P, section 2.2",
            quantity="idle / busy slots of 1F1B over idle / busy slots of the interleaved schedule, V = 2",
            low=1.999,
            high=2.001,
            read=divided,
            here="Exact: the slots of the executed schedule, counted on the devices.",
        ),
        Claim(
            name="mixture",
            sentence="The best mixture of axes keeps tensor parallelism inside a host and pipelines across hosts.",
            source="PTD-P, section 3",
            quantity="step time with the tensor axis across hosts over that with it inside a host",
            low=1.0,
            read=mixture,
            here="Nothing: two cores are one host.",
        ),
    ),
    panels=(
        Panel(
            title="throughput", x="micro-batches M", y="relative to K = 2, M = 1", log="xy",
            published=published_throughput, ours=throughput,
        ),
        Panel(title="idle share", x="micro-batches M", y="%", log="x", published=formulas, ours=idle_shares),
    ),
)  # fmt: skip

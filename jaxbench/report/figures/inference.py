# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Inference: median and 99th-percentile latency of single calls, and throughput, over the batch."""

from __future__ import annotations

from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Figure, Mark, Sheet, entitle, log_axis, plain, seconds_tick, short, si
from jaxbench.report.findings import unit
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/inference", "levers/phases", "levers/arms")
ORDER = 1
CAPTION = (
    "Left: wall time of a single call from start to result: median and 99th percentile with confidence intervals. "
    "Right: examples per second. The 99th percentile needs at least 100 single calls; with fewer it is left out."
)


def draw(run: LeverFindings) -> Figure | None:
    """Draws two panels. None when no inference was measured."""
    if not any(one.arm.timing.step_s.known for _, many in run.latencies for one in many):
        return None
    sheet = Sheet(1, 2)
    left, right = sheet.panels[0]
    for place, (_, many) in enumerate(run.latencies):
        for name, style in (("p50", {}), ("p99", dict(between=marks.DASHED, shape="^"))):
            made = [
                Mark(at=one.arm.point.global_batch, value=getattr(one, name), state=marks.state(one.arm))
                for one in many if getattr(one, name).known
            ]  # fmt: skip
            marks.line(left, made, place=place, **style)
        batch, arms = (lambda arm: arm.point.global_batch), [one.arm for one in many]
        marks.line(right, marks.of(arms, batch, lambda arm: arm.timing.examples_per_s), place=place)
    for axes, show, title in ((left, seconds_tick, "latency of one call"), (right, si, f"{short(unit(run.rows))}/s")):
        log_axis(axes, "x", base=2, show=plain, max_ticks=6)
        log_axis(axes, "y", show=show, max_ticks=6)
        entitle(axes, title, x="global batch")
    inferring = [place for place, _ in run.latencies]
    handles = [
        marks.style_handle("p50", marker="o"), marks.style_handle("p99", marker="^", linestyle=marks.DASHED)
    ]  # fmt: skip
    title = f"{run.experiment}: inference, latency against throughput"
    remarks = [*_notes(run), *places.remarks(inferring, paired=False)]
    return sheet.finish(title, [*places.handles(inferring), *handles], remarks)


def _notes(run: LeverFindings) -> list[str]:
    """Notes on missing percentiles: each reason with its batches."""
    batches: dict[str, list[str]] = {}
    for _, many in run.latencies:
        for one in many:
            if one.why_not and one.arm.timing.step_s.known:
                batches.setdefault(one.why_not, []).append(str(one.arm.point.global_batch))
    return [f"no p99 at batch {', '.join(dict.fromkeys(sizes))}: {why}" for why, sizes in batches.items()]

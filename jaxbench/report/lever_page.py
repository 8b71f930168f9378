# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A sweep of levers as a page: every arm beside its baseline, what its training came to, and its passport."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from jaxbench.analysis.arms import Arm
from jaxbench.analysis.headline import seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import interval, scaled
from jaxbench.analysis.summary import OUTCOMES
from jaxbench.report import lever_tables, tables
from jaxbench.report.lever_findings import LeverFindings
from jaxbench.report.page import Cell, Column, Fold, Line, Page, Picture, Sheet, facts
from jaxbench.report.training_page import fold

_VERDICTS = {"cannot tell": "unchecked", "faster": "ok"}


def page(findings: LeverFindings, pictures: Sequence[Picture]) -> Page:
    """Everything that the page of a sweep of levers shows."""
    return Page(
        name=findings.experiment,
        heading=lever_tables.heading(findings),
        headlines=findings.headlines,
        alarm=bool(findings.shortfalls()),
        pictures=pictures,
        table=_summary(findings),
        sections=findings.sections(),
        folds=[_fold(arm, findings) for arm in findings.arms],
        sources=[("Manifest", findings.manifest), ("Config", findings.config)],
    )


def _summary(findings: LeverFindings) -> Sheet:
    results = [name for name in OUTCOMES if any(math.isfinite(arm.outcome(name)) for arm in findings.arms)]
    texts = ("arm", "strategy", "scaling", "verdict", "state")
    names = ["arm", "strategy", "scaling", "devices", "global batch", "ms per step", "x time", "x faster", "verdict"]
    names += [f"{tables.unit(findings.rows)}/s", "memory", "x memory", "scratch", "compiler's FLOPs"]
    late = latency_columns(findings)
    names += [*late, *(name.replace("_", " ") for name in results), "state", "blocks", "CV, %", "clock ratio"]
    columns = tuple(Column(name, "text" if name in texts else "") for name in names)
    lines, before = [], None
    for place in findings.places:
        for arm in place.arms:
            cells = _cells(arm, results, late)
            lines.append(Line(cells=cells, first=place is not before, soft=arm.point.oversubscribed))
            before = place
    return Sheet(columns=columns, lines=tuple(lines), note=lever_tables.legend(findings))


def _cells(arm: Arm, results: Sequence[str], late: dict[str, dict[str, Estimate]]) -> tuple[str | Cell, ...]:
    point, timing = arm.point, arm.timing
    passport = point.record.passport if point.record is not None else None
    flops = passport.compiler_flops_per_step if passport is not None else None
    return (
        arm.label,
        point.strategy,
        point.scaling,
        f"{point.devices}{'°' if point.oversubscribed else ''}",
        str(point.global_batch),
        tables.milliseconds(timing.step_s),
        lever_tables.ratio(arm, "ratio"),
        lever_tables.ratio(arm, "speedup"),
        Cell(arm.verdict, _VERDICTS.get(arm.verdict, "")),
        tables.throughput(timing.examples_per_s.value),
        lever_tables.memory(arm),
        f"{arm.memory_ratio:.2f}" if math.isfinite(arm.memory_ratio) else "",
        scaled(arm.temp_bytes, "B") if math.isfinite(arm.temp_bytes) else "",
        "" if flops is None else scaled(flops, "FLOP"),
        *(_latency(values.get(point.point, Estimate())) for values in late.values()),
        *(_outcome(arm, name) for name in results),
        Cell(tables.state(arm.row), tables.state(arm.row)),
        str(timing.samples or ""),
        f"{100 * timing.step_s_cv:.1f}" if timing.step_s_cv == timing.step_s_cv else "",
        tables.ratio(timing.clock_ratio),
    )


def latency_columns(findings: LeverFindings) -> dict[str, dict[str, Estimate]]:
    """Column -> point -> percentile, in a run that infers; {} in any other."""
    many = [one for _, place in findings.latencies for one in place]
    if not many:
        return {}
    return {
        "p50 of a call": {one.arm.point.point: one.p50 for one in many},
        "p99 of a call": {one.arm.point.point: one.p99 for one in many},
    }


def _latency(value: Estimate) -> str:
    return interval(value, seconds) if value.known else ""


def _outcome(arm: Arm, name: str) -> str:
    value = arm.outcome(name)
    return f"{value:.4g}" if math.isfinite(value) else ""


def _fold(arm: Arm, findings: LeverFindings) -> Fold:
    whole = fold(arm.row, len(findings.rows))
    levers = facts([(f"lever {name}", value) for name, value in arm.point.levers.items()])
    notes = (*whole.notes, *([f"cannot tell: {arm.why}"] if arm.verdict == "cannot tell" else []))
    return dataclasses.replace(whole, sheets=(*whole.sheets, levers), notes=notes)

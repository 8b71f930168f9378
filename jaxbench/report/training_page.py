# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training run as a page: how its points scale, and the passport of each."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.headline import percent, seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.summary import gradient_bytes
from jaxbench.records.schema import Passport, PointRecord, Verdict
from jaxbench.report import profile_table, tables
from jaxbench.report.findings import Findings
from jaxbench.report.page import Cell, Column, Fold, Line, Page, Picture, Sheet, facts, raw_rounds


def page(findings: Findings, pictures: Sequence[Picture]) -> Page:
    """Everything that the page of a training run shows."""
    rows = findings.rows
    return Page(
        name=findings.experiment,
        heading=f"{findings.experiment}: how training scales from device to device",
        headlines=findings.headlines,
        alarm=bool(findings.shortfalls()),
        pictures=pictures,
        table=_summary(rows),
        sections=findings.sections(),
        folds=[fold(row, len(rows)) for row in rows],
        sources=[("Manifest", findings.manifest), ("Config", findings.config)],
    )


def _summary(rows: list[Row]) -> Sheet:
    names = ["strategy", "scaling", "devices", "global batch", "ms per step", f"{tables.unit(rows)}/s", "speed-up"]
    names += ["efficiency", "state", "blocks", "p95, ms", "CV, %", "clock ratio"]
    columns = tuple(Column(name, "text" if name in ("strategy", "scaling", "state") else "") for name in names)
    lines, family = [], None
    for row in rows:
        mine = (row.point.strategy, row.point.scaling)
        lines.append(Line(cells=_cells(row), first=mine != family, soft=row.point.oversubscribed))
        family = mine
    return Sheet(columns=columns, lines=tuple(lines), note=tables.legend(rows))


def _cells(row: Row) -> tuple[str | Cell, ...]:
    point, timing = row.point, row.timing
    speedup, efficiency = row.speedup, row.efficiency
    if point.oversubscribed:  # an interval around a meaningless ratio would look like a finding
        speedup, efficiency = speedup.alone(), efficiency.alone()
    share = percent(efficiency) if efficiency.known else ""
    return (
        point.strategy,
        point.scaling,
        f"{point.devices}{'°' if point.oversubscribed else ''}",
        str(point.global_batch),
        tables.milliseconds(timing.step_s),
        tables.throughput(timing.examples_per_s.value),
        "1" if row.base is point else tables.ratio(speedup),
        "base" if row.base is point else share,
        Cell(tables.state(row), tables.state(row)),
        str(timing.samples or ""),
        tables.milliseconds(Estimate(value=timing.step_s_p95)),
        f"{100 * timing.step_s_cv:.1f}" if timing.step_s_cv == timing.step_s_cv else "",
        tables.ratio(timing.clock_ratio),
    )


def fold(row: Row, points: int) -> Fold:
    """What a reader may unfold about one of `points` points: its checks, its passport, its raw samples."""
    point, record = row.point, row.point.record
    sheets = [] if record is None else [verdicts(record.checks), facts(_facts(row, record)), _collectives(record)]
    if point.profile is not None:
        sheets += [profile_table.kinds(point.profile), profile_table.operations(point.profile)]
    shown, hidden = raw_rounds(point.rounds, points)
    columns = ("round", ""), ("K, steps", ""), ("blocks of K", "fold"), ("blocks of 2 K", "fold"), ("warm-up", "fold")
    samples = [
        Line(
            cells=(str(r.round), str(r.steps), *map(milliseconds, (r.block_s, r.double_block_s, r.warmup_block_s))),
        )
        for r in shown
    ]
    return Fold(
        name=point.point,
        state=tables.state(row),
        reason=point.reason,
        detail=point.failure.detail if point.failure is not None else "",
        sheets=tuple(sheets),
        notes=row.notes,
        raw=Sheet(columns=tuple(Column(*c) for c in columns), lines=tuple(samples)),
        hidden=hidden,
    )


def verdicts(checks: Sequence[Verdict]) -> Sheet:
    """The checks of a point, each with its value, limit and reason."""
    columns = ("check", "text"), ("verdict", "text"), ("value", ""), ("limit", ""), ("reason", "fold")
    lines = [
        Line(
            cells=(
                check.name,
                Cell("ok", "ok") if check.ok else Cell("unchecked" if check.unchecked else "not ok", "no"),
                "" if check.value is None else f"{check.value:.3g}",
                "" if check.limit is None else f"{check.limit:.3g}",
                check.reason,
            )
        )
        for check in checks
    ]
    return Sheet(columns=tuple(Column(*c) for c in columns), lines=tuple(lines))


def _facts(row: Row, record: PointRecord) -> list[tuple[str, str]]:
    passport = record.passport
    phases = ("trace_s", "lower_s", "compile_s", "first_run_s")
    times = [(name[:-2].replace("_", " "), getattr(passport, name)) for name in phases]
    memory = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes", "peak_bytes")
    return [
        *((name, "not told apart" if value is None else seconds(value)) for name, value in times),
        *((f"{name[:-6]} memory per device", memory_size(getattr(passport, name))) for name in memory),
        ("parameters", f"{passport.parameters:,}"),
        *([("the loss is", record.loss)] if record.loss else []),
        ("model FLOPs per step", f"{passport.flops_per_step:.4g}"),
        ("compiler's FLOPs per step", maybe(passport.compiler_flops_per_step)),
        ("products in the compiled program, FLOP", maybe(passport.product_flops_per_step)),
        *_bytes_moved(passport),
        ("gradient bytes reduced", f"{gradient_bytes(row):,} (closed form {passport.expected_gradient_bytes:,})"),
        ("device", f"{record.device_kind} ({record.platform}), {record.processes} process(es)"),
    ]


def _bytes_moved(passport: Passport) -> list[tuple[str, str]]:
    moved = passport.compiler_bytes_per_step
    return [] if moved is None else [("compiler's bytes per step", f"{moved:.4g}")]


def _collectives(record: PointRecord) -> Sheet:
    columns = ("collective", "text"), ("count", ""), ("bytes", ""), ("of them scalars", "")
    lines = tuple(
        Line(cells=(c.kind, str(c.count), str(c.bytes), str(c.scalar_bytes))) for c in record.passport.collectives
    )
    note = "" if lines else "No collectives in the compiled step."
    return Sheet(columns=tuple(Column(*c) for c in columns), lines=lines, note=note)


def milliseconds(values: tuple[float, ...]) -> str:
    """Raw samples, in milliseconds."""
    return ", ".join(f"{1e3 * v:.4g}" for v in values)


def memory_size(value: int | None) -> str:
    """ "1.05 MB (1,050,000 bytes)"."""
    if value is None:
        return "not known"
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {unit} ({value:,} bytes)"
    return f"{value:,} bytes"


def maybe(value: float | None) -> str:
    return "not reported" if value is None else f"{value:.4g}"

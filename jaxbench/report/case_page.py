# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A run of cases as a page: every row with both clocks, its rates and its gates, and its raw samples."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import percent, seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.records.schema import CaseRecord, RoundRecord
from jaxbench.report import case_tables, tables
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.case_tables import digits, place, size, state, time
from jaxbench.report.page import Cell, Column, Fold, Line, Page, Picture, Sheet, facts, raw_rounds
from jaxbench.report.training_page import maybe, memory_size, milliseconds, verdicts

_GATES = {True: Cell("passed", "ok"), False: Cell("refused", "no"), None: Cell("cannot tell", "unchecked")}


def page(findings: CaseFindings, pictures: Sequence[Picture]) -> Page:
    """Everything that the page of a run of cases shows."""
    sources = [("Manifest", findings.manifest), ("Config", findings.config)]
    return Page(
        name=findings.experiment,
        heading=case_tables.heading(findings),
        headlines=findings.headlines,
        alarm=bool(findings.shortfalls()),
        pictures=pictures,
        table=_summary(findings.rows),
        sections=findings.sections(),
        folds=[_fold(row, len(findings.rows)) for row in findings.rows],
        sources=[*sources, *([("The machine's card", findings.card)] if findings.card is not None else [])],
    )


def _rates(rows: Sequence[CaseRow]) -> list[tuple[str, str, float]]:
    """(column, field, unit) of the rates that some row has."""
    known = [("GFLOP/s", "flop_per_s", 1e9), ("GB/s", "bytes_per_s", 1e9), ("algbw GB/s", "algbw", 1e9)]
    known += [("busbw GB/s", "busbw", 1e9)]
    return [rate for rate in known if any(getattr(row, rate[1]).known for row in rows)]


def _summary(rows: Sequence[CaseRow]) -> Sheet:
    rates = _rates(rows)
    texts = ("op", "impl", "dtype", "where")
    names = [*texts, "size", "time per call", "per iteration of the loop", "clock ratio", *(name for name, *_ in rates)]
    names += ["% of peak", "wrong", "state", "blocks", "p95", "CV, %"]
    columns = tuple(Column(name, "text" if name in (*texts, "state") else "") for name in names)
    lines, before = [], None
    for row in case_tables.in_order(rows):
        mine = (row.point.op, row.point.impl)
        lines.append(Line(cells=_cells(row, rates), first=mine != before, soft=row.point.oversubscribed))
        before = mine
    return Sheet(columns=columns, lines=tuple(lines), note=case_tables.legend(rows))


def _cells(row: CaseRow, rates: Sequence[tuple[str, str, float]]) -> tuple[str | Cell, ...]:
    point, timing, record = row.point, row.timing, row.point.record
    wrong = record.wrong if record is not None else None
    return (
        point.op,
        point.impl,
        point.dtype,
        place(row),
        size(row),
        time(timing.step_s),
        time(row.loop_s),
        tables.ratio(timing.clock_ratio),
        *(_rate(getattr(row, field), unit) for _, field, unit in rates),
        percent(row.peak_share).replace(" %", "") if row.peak_share.known and row.gate != "refused" else "",
        "" if wrong is None else Cell(f"{wrong:,}", "no" if wrong else ""),
        Cell(state(row), state(row)),
        str(timing.samples or ""),
        time(Estimate(value=timing.step_s_p95)),
        f"{100 * timing.step_s_cv:.1f}" if timing.step_s_cv == timing.step_s_cv else "",
    )


def _rate(value: Estimate, unit: float) -> str:
    """ "12.3 [12.1, 12.4]"."""
    if not value.known:
        return ""
    between = f" [{digits(value.lo / unit)}, {digits(value.hi / unit)}]" if value.has_interval else ""
    return digits(value.value / unit) + between


def _fold(row: CaseRow, points: int) -> Fold:
    point, record = row.point, row.point.record
    sheets = [_gates(row)] if row.gates else []
    if record is not None:
        sheets += [verdicts(record.checks), facts(_facts(row, record))]
    raw, hidden = _raw(point.rounds, points)
    reason = point.reason or (row.gate_reason if row.gate == "refused" else "")
    return Fold(
        name=point.point,
        state=state(row),
        reason=reason,
        detail=point.failure.detail if point.failure is not None else "",
        sheets=tuple(sheets),
        notes=(*row.notes, *([row.peak_note] if row.peak_note else [])),
        raw=raw,
        hidden=hidden,
    )


def _gates(row: CaseRow) -> Sheet:
    columns = (Column("gate", "text"), Column("verdict", "text"), Column("reason", "fold"))
    lines = tuple(Line(cells=(gate.name, _GATES[gate.passed], gate.reason)) for gate in row.gates)
    return Sheet(columns=columns, lines=lines)


def _facts(row: CaseRow, record: CaseRecord) -> list[tuple[str, str]]:
    compiled = [("compile", record.compile_s), ("a call of an empty program", record.launch_s)]
    counts = [("FLOP, analytic", record.flops), ("FLOP, by the compiler", record.compiler_flops)]
    counts += [("bytes moved, analytic", record.bytes_moved), ("bytes moved, by the compiler", record.compiler_bytes)]
    scratch = [] if record.temp_bytes is None else [("scratch memory", memory_size(record.temp_bytes))]
    return [
        *((name, "not measured" if value is None else seconds(value)) for name, value in compiled),
        *((name, maybe(value)) for name, value in counts),
        ("memory held at once", memory_size(record.resident_bytes)),
        *scratch,
        ("zeros among the inputs", f"{100 * record.zeros:.3g} %"),
        ("device", f"{record.device_kind} ({record.platform}), {record.cores} core(s), {record.processes} process(es)"),
    ]


def _raw(rounds: tuple[RoundRecord, ...], points: int) -> tuple[Sheet, int]:
    """Both clocks: blocks of calls, and the jitted loop."""
    shown, hidden = raw_rounds(rounds, points)
    looped = any(r.loop_s for r in shown)
    names = ["round", "K, calls", "blocks of K", "blocks of 2 K"]
    names += ["L, iterations", "loops of L", "loops of 2 L"] if looped else []
    names += ["warm-up"]
    lines = []
    for r in shown:
        loops = [str(r.loop_steps), milliseconds(r.loop_s), milliseconds(r.double_loop_s)] if looped else []
        cells = [str(r.round), str(r.steps), milliseconds(r.block_s), milliseconds(r.double_block_s), *loops]
        lines.append(Line(cells=(*cells, milliseconds(r.warmup_block_s))))
    numbers = ("round", "K, calls", "L, iterations")
    columns = tuple(Column(name, "" if name in numbers else "fold") for name in names)
    return Sheet(columns=columns, lines=tuple(lines)), hidden

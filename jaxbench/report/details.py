# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The details of one point on a page: its gates, checks, compile report, raw samples and block timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from jaxbench.analysis.quantities import scaled, seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.core.schema import CaseRecord, CompileReport, PointRecord, ProfileRecord, RoundRecord
from jaxbench.digits import counted, digits
from jaxbench.report.page import Fold, Timeline
from jaxbench.report.table import FOLD, NUMBER, TEXT, Column, Table, facts, fill, plain

RAW_ROUNDS = 2000  # of a whole page, so that it stays small; records.jsonl has all of them
IDLE = "idle"
_SPENT = {"ms per step": NUMBER, "% of the step": NUMBER}
_GATES = {True: "passed", False: "refused", None: "cannot tell"}
_CHECKS = {True: "ok", False: "not ok", None: "unchecked"}
_GOOD = {"passed": "ok", "cannot tell": "unchecked", "ok": "ok"}
COLLECTIVES = (
    Column("collective", "kind", kind=TEXT, definition="the-collectives-check"),
    Column("count", "count"),
    Column("bytes", "bytes"),
    Column("bytes of scalars", "scalar_bytes"),
)
_PHASES = ("trace", "lower", "compile", "first_run")
_MEMORY = ("argument", "output", "temp", "alias", "peak")
# In units of the drawing, which the style sheet scales to the page. EDGE: from the border, so that no mark is cut.
WIDTH, HEIGHT, EDGE = 1000, 150, 8
SPEED = 50  # the height of the band of the machine's speed
LONGEST = 2.0  # a block that takes longer than this many medians is drawn at the upper edge


def _verdict_style(word: str) -> str:
    return _GOOD.get(word, "no")


def _three_digits(value: float) -> str:
    return f"{value:.3g}"


def _in_milliseconds(values: Sequence[float]) -> str:
    return ", ".join(digits(1e3 * value, 4) for value in values)


GATES = (
    Column("gate", "name", kind=TEXT, definition="gates"),
    Column("verdict", lambda gate: _GATES[gate.passed], kind=TEXT, style=_verdict_style),
    Column("reason", "reason", kind=FOLD),
)
CHECKS = (
    Column("check", "name", kind=TEXT, definition="verdicts"),
    Column("verdict", lambda check: _CHECKS[None if check.unchecked else check.ok], kind=TEXT, style=_verdict_style),
    Column("value", "value", _three_digits),
    Column("limit", "limit", _three_digits),
    Column("reason", "reason", kind=FOLD),
)
SAMPLES = (
    Column("round", "round", definition="raw-samples-recordsjsonl"),
    Column("K", "steps"),
    Column("blocks of K", "block_s", _in_milliseconds, kind=FOLD),
    Column("blocks of 2 K", "double_block_s", _in_milliseconds, kind=FOLD),
    Column("L, iterations", lambda r: r.loop_steps if r.loop_s else None),
    Column("loops of L", "loop_s", _in_milliseconds, kind=FOLD),
    Column("loops of 2 L", "double_loop_s", _in_milliseconds, kind=FOLD),
    Column("warm-up", "warmup_block_s", _in_milliseconds, kind=FOLD),
)


def fold(row: Row, points: int) -> Fold:
    """The details of one point. points: the number of points on the page, which limits the raw samples of each."""
    point = row.point
    refusal = row.gate_reason if row.gate == "refused" else ""
    shown = point.every_round[: max(3, RAW_ROUNDS // max(1, points))]  # at least 3, even among thousands of points
    inconclusive = [f"cannot tell: {row.why}"] if row.verdict == "cannot tell" else []
    return Fold(
        name=point.point,
        state=row.state,
        reason=point.reason or refusal,
        detail=point.failure.detail if point.failure is not None else "",
        tables=tuple(_tables(row)),
        notes=(*row.notes, *filter(None, [row.peak_note]), *inconclusive),
        strip=timeline(point.every_round),
        raw=fill(SAMPLES, shown),
        hidden=len(point.every_round) - len(shown),
    )


def _tables(row: Row) -> Iterator[Table]:
    """What was found and compiled: gates, checks, facts, collectives and the profile."""
    point = row.point
    if row.gates:
        yield fill(GATES, row.gates)
    if point.prepared is not None:
        yield fill(CHECKS, point.checks)
    if point.case is not None:
        yield facts(_case_facts(point.case))
    if point.record is not None:
        yield facts(_training_facts(row, point.record))
        collectives = point.record.compile_report.collectives
        yield fill(COLLECTIVES, collectives, note="" if collectives else "No collectives in the compiled step.")
    if point.profile is not None:
        yield profile_kinds(point.profile)
        yield profile_operations(point.profile)
    if row.label:
        yield facts([(f"setting {name}", value) for name, value in point.levers.items()])


def _case_facts(record: CaseRecord) -> list[tuple[str, str]]:
    compiled = [(_compile_label(record), record.compile_s), ("one call of an empty program", record.launch_s)]
    counts = [
        ("work, by formula", record.flops, "FLOP"),
        ("work, by the compiler", record.compiler_flops, "FLOP"),
        ("memory traffic, by formula", record.bytes_moved, "B"),
        ("memory traffic, by the compiler", record.compiler_bytes, "B"),
    ]
    scratch = [] if record.temp_bytes is None else [("scratch memory", memory_size(record.temp_bytes))]
    return [
        *((name, "not measured" if value is None else seconds(value)) for name, value in compiled),
        *((name, _scaled_or_missing(value, unit)) for name, value, unit in counts),
        ("resident memory", memory_size(record.resident_bytes)),
        *scratch,
        ("zeros among the inputs", f"{100 * record.zeros:.3g} %"),
        ("device", _device(record)),
    ]


def _compile_label(report: CompileReport | CaseRecord) -> str:
    return "compile (recorded when it was first compiled; now it was loaded)" if report.compile_recorded else "compile"


def _training_facts(row: Row, record: PointRecord) -> list[tuple[str, str]]:
    compile_report = record.compile_report
    times = [(name.replace("_", " "), getattr(compile_report, f"{name}_s")) for name in _PHASES]
    times[_PHASES.index("compile")] = _compile_label(compile_report), compile_report.compile_s
    moved, expected = compile_report.compiler_bytes_per_step, compile_report.expected_gradient_bytes
    return [
        *((name, "not timed separately" if value is None else seconds(value)) for name, value in times),
        *((f"{name} memory per device", memory_size(getattr(compile_report, f"{name}_bytes"))) for name in _MEMORY),
        ("parameters", f"{compile_report.parameters:,}"),
        *([("the loss is", record.loss)] if record.loss else []),
        *([("attention", compile_report.attention)] if compile_report.attention else []),
        ("model FLOPs per step", scaled(compile_report.flops_per_step, "FLOP")),
        ("compiler's FLOPs per step", _scaled_or_missing(compile_report.compiler_flops_per_step, "FLOP")),
        ("matmul FLOPs in the compiled program", _scaled_or_missing(compile_report.product_flops_per_step, "FLOP")),
        *([] if moved is None else [("compiler's bytes per step", memory_size(int(moved)))]),
        ("collectives", "your own step: listed, not judged")
        if expected is None
        else ("gradient bytes reduced", f"{row.gradient_bytes:,} (expected {expected:,})"),
        ("device", _device(record)),
    ]


def _device(record: PointRecord | CaseRecord) -> str:
    """ "NVIDIA H100 80GB HBM3 (gpu), 1 process"; XLA's only name for a processor is "cpu"."""
    kind, cores = record.device_kind, getattr(record, "cores", None)
    named = record.platform if kind == record.platform else f"{kind} ({record.platform})"
    return ", ".join(
        filter(None, [named, counted(cores, "core") if cores else "", counted(record.processes, "process")])
    )


def memory_size(value: int | None) -> str:
    """A size: "1.05 MB (1,050,000 bytes)"."""
    if value is None:
        return "unknown"
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{digits(value / size)} {unit} ({value:,} bytes)"
    return f"{value:,} bytes"


def _scaled_or_missing(value: float | None, unit: str) -> str:
    return "not reported" if value is None else scaled(value, unit)


def profile_kinds(record: ProfileRecord) -> Table:
    """Milliseconds per step and share of each op category, longest first, idle last."""
    named = sorted(record.kinds.items(), key=lambda item: (item[0] == IDLE, -item[1]))  # idle is what is left
    rows = [(kind, *_ms_and_percent(seconds, record)) for kind, seconds in named if seconds > 0]
    rows.append(("all", *_ms_and_percent(record.wall_s, record)))
    return plain({"time goes to": TEXT, **_SPENT}, rows, first=lambda row: row[0] == "all", note=_of_profile(record))


def profile_operations(record: ProfileRecord) -> Table:
    """The operations that took longest, by their names in the compiled program."""
    rows = [(name, kind, *_ms_and_percent(seconds, record)) for name, kind, seconds in record.top if seconds > 0]
    note = "" if rows else "No operation of the program ran in the trace."
    return plain({"operation": FOLD, "kind": TEXT, **_SPENT}, rows, note=note)


def _ms_and_percent(seconds: float, record: ProfileRecord) -> tuple[str, str]:
    return digits(1e3 * seconds / record.steps), f"{100 * seconds / record.wall_s:.1f}"


def _of_profile(record: ProfileRecord) -> str:
    steps = counted(record.steps, "traced step")
    return (
        f"Mean over devices of {steps}; profiling slows them down. A fusion counts as its most expensive operation. A "
        f"collective or copy counts only while no operation computes. {record.trace} opens in Perfetto; for "
        "TensorBoard, install xprof and pass the folder profiles as --logdir."
    )


def timeline(rounds: Sequence[RoundRecord]) -> Timeline | None:
    """The timeline of rounds in the order of measurement; None without a timed block.

    Heights are times per step, linear, from the shortest timed block to the longest or to `LONGEST` medians.
    """
    marks = [(number, kind, seconds) for number, each in enumerate(rounds) for kind, seconds, _ in _blocks(each)]
    probes = [probe for each in rounds for *_, probe in _blocks(each)]
    timed = [seconds for _, kind, seconds in marks if kind != "warm"]  # a slow warm-up must not squeeze the others
    if not timed:
        return None
    low, middle, high = min(timed), float(np.median(timed)), max(timed)
    high = min(high, LONGEST * middle)
    step = (WIDTH - 2 * EDGE) / max(1, len(marks) - 1)
    workers = list(dict.fromkeys(each.worker for each in rounds))  # processes in order of first appearance
    process = [workers.index(each.worker) for each in rounds]
    # Dots are zero-length strokes with round caps: one path for all of a kind, which is small and quick to draw.
    rules, dots = [], defaultdict(list)
    for place, (number, kind, value) in enumerate(marks):
        if place and number != marks[place - 1][0]:
            rules.append(f"M{EDGE + (place - 0.5) * step:.1f} 0v{HEIGHT}")
        dots[f"{kind} p{process[number] % 2}"].append(f"M{EDGE + place * step:.1f} {_svg_y(value, low, high):.1f}h0")
    paths = {"rule": rules, "median": [f"M0 {_svg_y(middle, low, high):.1f}h{WIDTH}"], **dict(sorted(dots.items()))}
    # A smaller dot in the colour of the page on top of each warm-up makes it a ring, so these come last.
    paths["hollow"] = [dot for name, many in dots.items() if name.startswith("warm") for dot in many]
    shapes = "".join(f'<path class="{name}" d="{"".join(many)}"/>' for name, many in paths.items())
    outside = sum(not low <= seconds <= high for *_, seconds in marks)
    speed, said = _speed(probes, step)
    svg = _svg_element(HEIGHT, "blocks in the order of time", shapes) + speed
    return Timeline(svg=svg, caption=_timeline_caption(low, middle, high, outside) + said)


def _svg_element(height: int, label: str, shapes: str) -> str:
    return f'<svg class="strip" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{shapes}</svg>'


def _speed(probes: Sequence[float | None], step: float) -> tuple[str, str]:
    """(a band with the machine's speed at the blocks above it, its caption); ("", "") without probes.

    probes: seconds of the probe before each block.
    """
    known = [(place, seconds) for place, seconds in enumerate(probes) if seconds is not None]
    if not known:
        return "", ""
    speeds = np.median([seconds for _, seconds in known]) / np.array([seconds for _, seconds in known])
    low, high = float(speeds.min()), float(speeds.max())
    dots = "".join(
        f"M{EDGE + place * step:.1f} {_svg_y(speed, low, high) * SPEED / HEIGHT:.1f}h0"
        for (place, _), speed in zip(known, speeds.tolist(), strict=True)
    )
    said = (
        f" The band below is the speed of the machine during the run, from {100 * low:.0f} % of its median (bottom) to "
        f"{100 * high:.0f} % (top), from a small product before each block. No time is corrected with it."
    )
    return _svg_element(SPEED, "speed of the machine", f'<path class="probe p0" d="{dots}"/>'), said


def _timeline_caption(low: float, middle: float, high: float, outside: int) -> str:
    beyond = f"; blocks outside this range, drawn at its edges: {outside}" if outside else ""
    return (
        f"Every block in order of time, in ms per step, from {1e3 * low:.4g} (bottom) to {1e3 * high:.4g} (top)"
        f"{beyond}. The line is the median, {1e3 * middle:.4g}. Circle: K steps; square: 2 K steps; hollow: warm-up, "
        "which no statistic uses. A thin rule separates rounds; colours alternate between processes."
    )


def _blocks(each: RoundRecord) -> Iterator[tuple[str, float, float | None]]:
    """(kind, seconds per step, seconds of its probe) of the blocks of a round, in the order in which they ran."""
    yield from (("warm", seconds / (each.warmup_steps or each.steps), None) for seconds in each.warmup_block_s)
    probes = iter(each.probe_s)  # of timed blocks only, in this order; none in older records
    for one, two in zip_longest(each.block_s, each.double_block_s):
        if one is not None:
            yield "block", one / each.steps, next(probes, None)
        if two is not None:
            yield "double", two / (2 * each.steps), next(probes, None)


def _svg_y(seconds: float, low: float, high: float) -> float:
    share = (min(high, max(low, seconds)) - low) / (high - low) if high > low else 0.5  # y grows downwards in SVG
    return HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE)

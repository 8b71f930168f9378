# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every column of ``summary.csv`` and of the tables of points: a new one is one line of `COLUMNS`.

Columns with ``csv`` are in the file, in the order of ``summary_columns.txt``. Other people's scripts read the file, so
a new column comes last, wherever it is declared. A cell is empty if its value is unknown, never 0 or inf.
docs/metrics has a table of these columns, and a test compares both.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

from jaxbench.analysis import gates, lever_results, quantities, step_work, stragglers, waterfall
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.run_rows import Row
from jaxbench.levers import LEVERS
from jaxbench.report import generation_columns, page, table
from jaxbench.report.table import ALWAYS, DISTINCT, TEXT, Column, Get, Kind, Position, Table, take
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.statistics.timing import wall_s

T, L, C, D = Kind.TRAINING, Kind.LEVERS, Kind.CASES, Kind.DECODE
MEASURED = T | L | C | D
ID, QUALITY = Position.IDENTITY, Position.QUALITY
_Shown = partial(Column, csv=False)  # only in tables for people: the file has its value in other columns
_VERDICTS = {"cannot tell": "unchecked", "faster": "ok"}

# A column that is not listed yet comes last, and a test then says which line the list lacks.
_PLACES = {name: n for n, name in enumerate(Path(__file__).with_name("summary_columns.txt").read_text().split())}


def _defined_in(anchor: str, *columns: Column) -> tuple[Column, ...]:
    """The columns that one section of docs/metrics defines."""
    return tuple(dataclasses.replace(column, definition=anchor) for column in columns)


def _claim(path: str) -> Get:
    """The value at `path`. An oversubscribed point's has no interval, because that would look like a finding."""

    def claim(row: Row) -> Estimate | None:
        value: Estimate | None = take(path, row)
        return value.alone() if value is not None and row.point.oversubscribed else value

    return claim


def _lever(name: str, other: str = "") -> Column:
    """The value of a lever. other: the path of the same quantity in a run of cases."""
    return Column(name, lambda row: row.point.levers.get(name) or (other and take(other, row)))


def _precision(row: Row) -> str | None:
    """The lever, or the number formats in which the compiled step multiplies, if these are others."""
    return step_work.products(row.point.work, row.point.levers) or row.point.levers.get("precision")


def _work(name: str) -> Get:
    """A number of what the compiled step does."""
    return lambda row: getattr(row.point.work, name, None)


def _joined_names(name: str) -> Get:
    return lambda row: ", ".join(getattr(row.point.work, name, ()))


def _outcome(name: str, terminal: int = 0) -> Column:
    """One number of an arm's short training."""
    get, show = (lambda row: row.point.outcome(name)), "{:.4g}".format
    return Column(name, get, show, heading=name.replace("_", " "), on=L, terminal=terminal, unit="1")


def _explained(name: str) -> Get:
    """A number of the waterfall."""
    return lambda row: row.derived.get(name)


def _pace(path: str) -> Get:
    """A number on the slowest process."""
    return lambda row: take(path, stragglers.of(row))


def _sharing_fairness(row: Row) -> Estimate | None:
    shared = lever_results.sharing_of(row)
    return shared.fairness if shared is not None else None


def _measured_s(row: Row) -> float | None:
    """The seconds of all timed blocks and loops; None without any."""
    rounds = row.point.every_round
    return sum(wall_s(each) + sum(each.loop_s) + sum(each.double_loop_s) for each in rounds) or None


def _load(name: str) -> Get:
    """One number of the load of a point."""
    return lambda row: getattr(gates.load_of(row.point), name)


def _samples_or_none(row: Row) -> int | None:
    return row.timing.samples or None


def _marked_devices(row: Row) -> str:
    return f"{row.point.devices}{'°' if row.point.oversubscribed else ''}"


def _place(row: Row) -> str:
    """Where a case ran: "8 of 2x4:x", "2 devices, 2 hosts", "host→cpu:0", "1 core", "gpu"."""
    point = row.point
    over = "°" if point.oversubscribed else ""
    if point.family == "collective":
        count = devices(point.devices).replace(" ", f"{over} ")
        group = f"{point.devices}{over} {point.mesh}:{point.axis}" if "x" in point.mesh else count
        return f"{group}, {point.between}" if point.between else group
    return f"{point.source}→{point.target}{over}" if point.family == "transfer" else point.where


def _size(row: Row) -> str:
    """The size of a case: its shape, its elements, or its payload."""
    point = row.point
    if point.family != "kernel" and point.payload_bytes is not None:
        return quantities.payload(point.payload_bytes)
    return point.shape or ("" if point.elements is None else f"{point.elements:,}")


def _elements_per_s(row: Row) -> Estimate | None:
    return row.timing.step_s.under(row.point.elements) if row.point.elements else None


def _shown_efficiency(row: Row) -> object:
    if not row.timing.step_s.has_interval:  # "no base" would then hide the true reason, too few rounds
        return None
    return "no base" if row.base is None else "base" if row.base is row.point else take(_claim("efficiency"), row)


def _throughput_unit(row: Row) -> str:
    if row.point.of_case:
        return "calls/s" if row.timing.samples else ""
    return f"{row.point.unit}/s" if row.point.record is not None else ""


def _short_seconds(value: float) -> str:
    return table.short_time(Estimate(value=value))


def _percent(part: float) -> str:
    return f"{100 * part:.1f}"


_bytes = partial(quantities.scaled, unit="B")

# In the order of the tables for people; `Column.at` moves identity to the left and quality to the right.
COLUMNS: tuple[Column, ...] = (
    *_defined_in("levers", _Shown("setting", "label", on=L, kind=TEXT, at=ID, terminal=ALWAYS)),
    *_defined_in(
        "symbols",
        Column("experiment", "point.experiment"),
        Column("strategy", "point.strategy", on=T | L | D, kind=TEXT, at=ID, terminal=DISTINCT),
        Column("scaling", "point.scaling", on=T | L, kind=TEXT, at=ID, terminal=DISTINCT),
        Column("devices", "point.devices", unit="1", shown=_marked_devices, on=T | L | D, at=ID, terminal=ALWAYS),
        Column("processes", "point.processes", unit="1"),
        Column("platform", "point.platform"),
        Column("oversubscribed", "point.oversubscribed"),
        Column(
            "global_batch",
            lambda row: row.point.global_batch or None,
            unit="1",
            heading="global batch",
            short="batch",
            on=T | L,
            at=ID,
            terminal=1,
        ),
    ),
    *_defined_in(
        "kernels-transfers-and-collectives",
        _Shown("op", "point.op", on=C, kind=TEXT, at=ID, terminal=ALWAYS),
        _Shown("impl", "point.impl", on=C, kind=TEXT, at=ID, terminal=DISTINCT),
        _Shown("dtype", "point.dtype", on=C, kind=TEXT, at=ID, terminal=ALWAYS),
        _Shown("where", _place, on=C, kind=TEXT, at=ID, terminal=ALWAYS),
        _Shown("size", _size, on=C, at=ID, terminal=ALWAYS),
    ),
    _Shown("state", "state", on=MEASURED, kind=TEXT, style=str, at=QUALITY, terminal=ALWAYS, definition="verdicts"),
    *_defined_in(
        "time-per-step",
        _Shown("time per call", "timing.step_s", table.short_time, short="per call", on=C, terminal=ALWAYS, interval=2),
    ),
    _Shown("per iteration of the loop", "loop_s", table.short_time, on=C, definition="two-clocks-of-a-case"),
    *_defined_in(
        "time-per-step",
        Column(
            "step_s",
            "timing.step_s",
            table.milliseconds,
            unit="s",
            bounds=True,
            heading="ms per step",
            on=T | L,
            terminal=ALWAYS,
            interval=2,
        ),
        Column("samples", _samples_or_none, unit="1", heading="blocks", on=MEASURED, at=QUALITY),
    ),
    *_defined_in(
        "throughput",
        Column(
            "throughput",
            "timing.examples_per_s.value",
            table.throughput,
            unit="`throughput_unit`",
            heading="{unit}/s",
            on=T | L,
            terminal=3,
        ),
        Column("throughput_unit", _throughput_unit),
    ),
    *_defined_in(
        "speed-up-and-efficiency",
        Column(
            "speedup",
            "speedup",
            table.ratio,
            unit="1",
            bounds=True,
            heading="speed-up",
            on=T,
            terminal=2,
            interval=1,
            shown=_claim("speedup"),
        ),
        Column(
            "efficiency",
            "efficiency",
            table.share,
            unit="1",
            bounds=True,
            heading="efficiency %",
            on=T | D,
            terminal=ALWAYS,
            interval=7,
            shown=_shown_efficiency,
        ),
    ),
    *_defined_in(
        "compile-report",
        Column("compile_s", ("point.compile_report.compile_s", "point.case.compile_s"), unit="s"),
        Column("compile_recorded", ("point.compile_report.compile_recorded", "point.case.compile_recorded")),
        Column(
            "peak_bytes",
            lambda row: (row.point.compile_report and row.point.compile_report.peak_bytes) or None,
            _bytes,
            unit="bytes",
            heading="memory",
            on=L,
            terminal=5,
        ),
    ),
    *_defined_in(
        "energy",
        Column("joules_per_step", "energy.joules_per_step", unit="J", bounds=True),
        Column("joules_per_unit", "energy.joules_per_unit", unit="J", bounds=True),
        Column("power_w", "energy.power_w", unit="W"),
        Column("energy_efficiency", "energy_efficiency", table.ratio, unit="1", heading="energy efficiency", on=T),
        *(Column(f"energy_efficiency_{end}", f"energy_efficiency.{end}", unit="1") for end in ("lo", "hi")),
        Column("sm_mhz", "energy.sm_mhz", unit="MHz"),
        Column("slowed_blocks", lambda row: row.energy.slowed if row.energy.known else None, unit="1"),
    ),
    _Shown("x memory", "memory_ratio", "{:.2f}".format, on=L, definition="levers"),
    *_defined_in("verdicts", Column("check_ok", "point.check_ok"), Column("status", "point.status")),
    *_defined_in(
        "time-per-step",
        Column("step_s_p95", "timing.step_s_p95", unit="s"),
        Column(
            "step_s_cv", "timing.step_s_cv", _percent, unit="1", heading="CV, %", on=MEASURED, at=QUALITY, terminal=1
        ),
    ),
    *_defined_in(
        "throughput",
        Column("throughput_lo", "timing.examples_per_s.lo", unit="`throughput_unit`"),
        Column("throughput_hi", "timing.examples_per_s.hi", unit="`throughput_unit`"),
    ),
    *_defined_in(
        "time-per-step",
        Column(
            "clock_ratio",
            "timing.clock_ratio",
            table.ratio,
            unit="1",
            bounds=True,
            heading="clock ratio",
            on=T | L | C,
            at=QUALITY,
        ),
        Column("clock_note", "timing.clock_note"),
    ),
    *_defined_in(
        "speed-up-and-efficiency",
        Column("base_devices", "base.devices", unit="1"),
        Column("base_step_s", "base_step_s", unit="s"),
    ),
    *_defined_in(
        "work-and-utilisation",
        Column("flops_per_step", "use.flops_per_step", unit="FLOP"),
        Column(
            "flop_per_s",
            ("use.flop_per_s", "flop_per_s.value"),
            table.giga,
            unit="FLOP/s",
            heading="GFLOP/s",
            on=C,
            shown="flop_per_s",
            terminal=ALWAYS,
            interval=1,
            views=("matmul", "linalg"),
        ),
        Column("mfu", "use.mfu", unit="1"),
        Column("mfu_note", ("use.full_note", "peak_note")),
    ),
    *_defined_in(
        "what-the-step-does",
        Column("product_flops_per_step", lambda row: step_work.counted(row.point.work), unit="FLOP"),
        Column("product_formats", lambda row: ", ".join(step_work.formats(row.point.work))),
        Column("moved_share", _work("moved_share"), unit="1"),
        Column("changing_steps", _work("changing_steps"), unit="1"),
        Column("watched_steps", lambda row: (row.point.work and row.point.work.steps) or None, unit="1"),
        Column("still_arrays", _joined_names("still_arrays")),
        Column("reads_batch", _work("reads_batch")),
        Column("idle_fields", _joined_names("idle_fields")),
        Column("examples_with_gradient", _work("examples_with_gradient"), unit="1"),
        Column("watched_examples", lambda row: (row.point.work and row.point.work.examples) or None, unit="1"),
    ),
    *_defined_in("compile-report", Column("gradient_bytes", "gradient_bytes", unit="bytes")),
    *_defined_in("time-per-step", Column("rounds", lambda row: row.timing.rounds or None, unit="1")),
    *_defined_in("symbols", Column("device_kind", "point.prepared.device_kind")),
    *_defined_in("verdicts", Column("notes", lambda row: "; ".join(row.notes)), Column("reason", "point.reason")),
    *_defined_in(
        "kernels-transfers-and-collectives",
        *(Column(name, f"point.{name}") for name in ("op", "dtype", "impl", "shape")),
        Column("elements", "point.elements", unit="1"),
        Column("payload_bytes", "point.payload_bytes", unit="bytes"),
        _lever("mesh", "point.mesh"),
        *(Column(name, f"point.{name}") for name in ("axis", "source", "target")),
        Column("cores", "point.cores", unit="1"),
        Column("flops", ("use.flops_per_step", "point.flops"), unit="FLOP"),
        Column("bytes_moved", ("point.compile_report.compiler_bytes_per_step", "point.bytes_moved"), unit="bytes"),
        _Shown(
            "elements/s",
            _elements_per_s,
            lambda rate: table.throughput(rate.value),
            on=C,
            terminal=ALWAYS,
            views=("curves", "versus"),
        ),
        Column(
            "bytes_per_s",
            "bytes_per_s",
            table.giga,
            unit="bytes/s",
            bounds=True,
            heading="GB/s",
            on=C,
            terminal=ALWAYS,
            interval=1,
            views=("stream", "fusion"),
        ),
    ),
    *_defined_in(
        "collectives-conventions",
        Column(
            "algbw",
            "algbw",
            table.giga,
            unit="bytes/s",
            bounds=True,
            heading="algbw GB/s",
            on=C,
            terminal=ALWAYS,
            interval=1,
            views=("transfer",),
        ),
        Column(
            "busbw",
            "busbw",
            table.giga,
            unit="bytes/s",
            bounds=True,
            heading="busbw GB/s",
            on=C,
            terminal=ALWAYS,
            interval=1,
            views=("collectives",),
        ),
    ),
    *_defined_in(
        "ceilings-and-shares-of-a-peak",
        # Not of a refused row, because readers would take it for valid.
        _Shown(
            "% of peak",
            lambda row: None if row.gate == "refused" else row.peak_share,
            table.share,
            short="% peak",
            on=C,
            terminal=ALWAYS,
            interval=1,
        ),
    ),
    *_defined_in(
        "kernels-transfers-and-collectives",
        Column(
            "wrong",
            "point.case.wrong",
            "{:,}".format,
            unit="1",
            on=C,
            at=QUALITY,
            style=lambda count: "no" if count else "",
        ),
    ),
    *_defined_in("two-clocks-of-a-case", Column("loop_s", "loop_s.value", unit="s")),
    *_defined_in(
        "fits-of-time-against-size",
        Column("alpha_s", "alpha_s.value", unit="s"),
        Column("beta_bytes_per_s", "beta_bytes_per_s.value", unit="bytes/s"),
    ),
    *_defined_in(
        "ceilings-and-shares-of-a-peak",
        Column("peak_share", ("use.mfu", "use.measured_peak_share", "peak_share.value"), unit="1"),
    ),
    *_defined_in("gates", Column("gate", "gate"), Column("gate_reason", "gate_reason")),
    *_defined_in(
        "levers",
        Column("arm", "point.arm"),
        Column("precision", _precision),
        # The last two are declared elsewhere.
        *(_lever(name) for name in LEVERS if name not in ("precision", "mesh", "trainings")),
        Column("baseline", lambda row: row.baseline.point_id if row.label else None),
        Column(
            "ratio",
            "ratio",
            table.ratio,
            unit="1",
            bounds=True,
            heading="x time",
            on=L,
            terminal=ALWAYS,
            interval=7,
            shown=_claim("ratio"),
        ),
        Column(
            "arm_speedup",
            "gain",
            table.ratio,
            unit="1",
            bounds=True,
            heading="x faster",
            on=L,
            terminal=1,
            shown=_claim("gain"),
        ),
        Column("verdict", "verdict", on=L, kind=TEXT, style=lambda word: _VERDICTS.get(word, ""), terminal=ALWAYS),
        Column("temp_bytes", "point.compile_report.temp_bytes", _bytes, unit="bytes", heading="scratch", on=L),
        Column(
            "compiler_flops_per_step",
            "point.compile_report.compiler_flops_per_step",
            partial(quantities.scaled, unit="FLOP"),
            unit="FLOP",
            heading="compiler's FLOPs",
            on=L,
        ),
        _outcome("final_loss", 3),
        _outcome("final_accuracy", 4),
        _outcome("steps"),
        _outcome("skipped_steps"),
        _outcome("waited_share", 4),
    ),
    _Shown("p50 of a call", "p50", table.short_time, on=L, definition="inference"),
    _Shown("p99 of a call", "p99", table.short_time, on=L, definition="inference"),
    *_defined_in(
        "throughput",
        Column("tokens_per_s", "tokens_per_s", unit="tokens/s"),
        Column("real_tokens_per_s", lambda row: row.tokens_per_s * row.real_share, unit="tokens/s"),
        Column("real_share", "real_share", unit="1"),
    ),
    Column("mfu_unmasked", lambda row: row.use.mfu_unmasked(row.point), unit="1", definition="flops-of-attention"),
    *_defined_in(
        "time-per-step",
        Column("measured_s", _measured_s, _short_seconds, unit="s", heading="timed", on=T | L | C, at=QUALITY),
    ),
    *_defined_in(
        "intervals",
        Column(
            "interval_processes",
            lambda row: row.timing.processes or None,
            unit="1",
            heading="processes",
            on=T | L | C,
            at=QUALITY,
        ),
        Column("interval_from", "timing.rests_on"),
    ),
    *_defined_in(
        "load",
        Column(
            "contended",
            _load("contended"),
            _percent,
            unit="1",
            heading="contended, %",
            on=T | L | C,
            at=QUALITY,
            terminal=1,
        ),
        Column("cpu_share", _load("cpu_share"), unit="1"),
        Column("others_share", _load("others"), unit="1"),
        Column("steal_share", _load("steal"), unit="1"),
    ),
    *_defined_in(
        "the-timed-steps",
        Column(
            "loss_before",
            lambda row: row.point.fact("first_loss"),
            "{:.4g}".format,
            unit="1",
            heading="loss before",
            on=T,
            at=QUALITY,
        ),
        Column("loss_after", "point.loss_after", "{:.4g}".format, unit="1", heading="loss after", on=T, at=QUALITY),
    ),
    *_defined_in(
        "waterfall",
        Column("lost_smaller_share", _explained(waterfall.SMALLER_BATCH), unit="1", bounds=True),
        Column("lost_shared_machine", _explained(waterfall.CONTENTION), unit="1", bounds=True),
        Column("lost_communication", _explained(waterfall.COMMUNICATION), unit="1", bounds=True),
        Column("lost_other", _explained(waterfall.UNEXPLAINED), unit="1"),
        Column("lost_unequal", _explained(waterfall.UNEQUAL), unit="1", bounds=True),
        Column("lost_runtime", _explained(waterfall.RUNTIME), unit="1", bounds=True),
    ),
    *_defined_in(
        "communication-alone-and-hidden",
        Column("communication_s", _explained("communication_s"), unit="s", bounds=True),
        Column("communication_hidden", _explained("hidden"), unit="1", bounds=True),
        Column("communication_predicted_s", _explained("predicted_s"), unit="s"),
    ),
    *_defined_in("work-and-utilisation", Column("product_share", "use.product_share", unit="1", bounds=True)),
    *_defined_in(
        "stragglers",
        Column("slowest_over_median", _pace("step.slowest_over_median"), unit="1", bounds=True),
        Column("local_slowest_over_median", _pace("local.slowest_over_median"), unit="1", bounds=True),
        Column("slow_process", _pace("clearest.slow")),
    ),
    *_defined_in(
        "collectives-conventions",
        *(Column(name, f"point.{name}", unit="1") for name in ("group_processes", "group_hosts")),
    ),
    *_defined_in(
        "sharing",
        _lever("trainings"),
        Column("fairness", _sharing_fairness, table.share, unit="1", bounds=True, heading="fairness", on=L),
    ),
    *_defined_in("first-and-last-third", Column("last_over_first", "thirds.ratio", unit="1", bounds=True)),
    *generation_columns.columns(),
)

FILE = tuple(sorted((c for c in COLUMNS if c.csv), key=lambda column: _PLACES.get(column.name, len(_PLACES))))


def on(kind: Kind, *, view: str = "", unit: str = "") -> list[Column]:
    """The columns in the tables of a kind of run, in order. unit: what an example is, such as "images".

    view: the view of a run of cases; its terminal table has only the rates of that view.
    """
    columns = []
    for column in sorted((column for column in COLUMNS if kind in column.on), key=lambda column: column.at):
        fits = not column.views or view in column.views
        if column.csv or fits:  # a rate of another view is worth a column of the page, but not on the terminal
            heading = column.heading.format(unit=unit)
            columns.append(dataclasses.replace(column, heading=heading, terminal=column.terminal if fits else 0))
    return columns


def rate(view: str) -> Column | None:
    """The rate of a view of cases; None if the view is about times."""
    return next((column for column in COLUMNS if view in column.views), None)


def documentation() -> Table:
    """The table of these columns for docs/metrics. Columns with the same unit and section share a line."""
    groups: list[list[Column]] = []
    sections = page.definitions()
    for column in FILE:
        alike = groups and (groups[-1][0].unit, groups[-1][0].definition) == (column.unit, column.definition)
        groups[-1].append(column) if alike else groups.append([column])
    rows = []
    for group in groups:
        anchor, names = group[0].definition, ", ".join(f"`{name}`" for column in group for name in column.names)
        link = f"[{anchor.replace('-', ' ').capitalize()}]({sections[anchor].file}#{anchor})"
        rows.append((names, group[0].unit, link))
    return table.plain(dict.fromkeys(("columns", "unit", "defined in"), TEXT), rows)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report of a run that only compiled, for absent hardware."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis import compiled
from jaxbench.analysis.compiled import MARK, CompiledRow, gigabytes
from jaxbench.core.store import RunFolder
from jaxbench.report import table
from jaxbench.report.page import Fold
from jaxbench.report.run_report import NO_POINTS, RunReport, of_folder
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill, to_csv

NOTE = f"Every row: {MARK}. Memory is per device: arguments, results and scratch; shared bytes count once."
ANY = table.Kind.TRAINING | table.Kind.CASES
COLLECTIVES = (
    Column("collective", "kind", kind=TEXT),
    Column("mesh axis", "axis", kind=TEXT),
    Column("group", lambda each: each.group or None),
    Column("operands", "count"),
    Column("bytes", "bytes", "{:,}".format),
    Column("bytes of metrics", "scalar_bytes", "{:,}".format),
    Column("bytes sent by a device", "wire_bytes", "{:,}".format),
)
# Other people's scripts read the file by position: new columns come last.
COLUMNS = (
    Column("point", "name", on=ANY, kind=TEXT, terminal=ALWAYS),
    Column("target", "target"),
    Column("experiment", "record.experiment"),
    Column("strategy", lambda row: row.point.get("strategy")),
    Column("scaling", lambda row: row.point.get("scaling")),
    Column("devices", lambda row: row.point.get("devices"), on=ANY),
    Column("global_batch", lambda row: row.point.get("global_batch")),
    Column("mesh", lambda row: row.record and ",".join(f"{axis}={size}" for axis, size in row.record.mesh.items())),
    Column("status", "status", on=ANY, heading="state", kind=TEXT, style=lambda value: _cell_style(value), terminal=3),
    Column("reason", "reason"),
    Column("peak_bytes", "record.peak_bytes", gigabytes, on=ANY, heading="memory", terminal=ALWAYS),
    Column("compiler_peak_bytes", "record.compiler_peak_bytes", gigabytes, on=ANY, heading="compiler's peak"),
    Column("device_memory_bytes", "memory_bytes"),
    Column(
        "fits",
        "fits",
        lambda fits: "yes" if fits else "NO",
        on=ANY,
        style=lambda value: _cell_style(value),
        terminal=ALWAYS,
    ),
    Column("collectives", lambda row: row.record and compiled.describe_collectives(row.record.collectives)),
    Column("bytes", lambda row: row.record and sum(each.bytes for each in row.record.collectives)),
    Column(
        "wire_bytes",
        lambda row: row.record and row.wire_bytes,
        shown=lambda row: _sent_text(row),
        on=ANY,
        heading="sent per step",
        terminal=ALWAYS,
    ),
    # The names of these two are older than the words on the page; readers of the file know them.
    Column(
        "closed_form",
        "right",
        lambda right: "equal" if right else "DIFFERS",
        on=ANY,
        heading="expected bytes",
        kind=TEXT,
        style=lambda value: _cell_style(value),
        terminal=ALWAYS,
    ),
    Column("closed_form_reason", lambda row: row.record and row.why),
    Column("parameters", "record.parameters"),
    Column("flops", "record.flops"),
    Column("product_flops", "record.product_flops"),
    Column("compile_s", "record.compile_s", "{:.1f} s".format, on=ANY, heading="compile", terminal=2),
    Column("note", lambda row: MARK),  # in every line, because a line may be copied without the file's name
)


@dataclass(frozen=True, kw_only=True)
class CompiledReport(RunReport):
    """A run that only compiled. It has no rows with times."""

    compiled: list[CompiledRow]  # in place of `rows`, which stays empty, so that no page mixes them with measured rows
    definition = "compiled-for-hardware-that-is-not-here"

    @property
    def title(self) -> str:
        return f"{self.experiment} on {self.manifest['target']}: {MARK}"

    def csv(self) -> str:
        return to_csv(COLUMNS, self.compiled)

    @property
    def headlines(self) -> list[str]:
        return [headline(self.compiled), "Nothing was run: no number here is a measured time."]

    def shortfalls(self) -> list[str]:
        return compiled.problems(self.compiled) if self.compiled else [NO_POINTS]

    def brief(self) -> None:
        return None

    def table(self) -> Table:
        shown = (dataclasses.replace(column, definition=self.definition) for column in COLUMNS if column.on)
        return fill(list(shown), self.compiled, note=NOTE)

    def folds(self) -> list[Fold]:
        return [_collectives_detail(row) for row in self.compiled]


def find(run: RunFolder) -> CompiledReport:
    """Reads a run folder. Raises UserError if it is not one, is damaged or has another schema."""
    common, rows = of_folder(run), compiled.rows(run)
    experiment = str(common["manifest"]["plan"]["experiment"])
    return CompiledReport(**common, kind="compiled", experiment=experiment, rows=[], compiled=rows)


def headline(rows: Sequence[CompiledRow]) -> str:
    """Such as "40 of 40 points compile, 40 fit into a device's memory, 40 of 40 communicate exactly as expected."."""
    count = len(rows)
    compiles = sum(row.record is not None for row in rows)
    fits, right = (sum(bool(getattr(row, name)) for row in rows) for name in ("fits", "right"))  # None: unknown
    asked = sum(row.right is not None for row in rows)  # a kernel has no communication to compare
    sentence = f"{compiles} of {count} points compile, {fits} fit into a device's memory"
    return f"{sentence}, {right} of {asked} communicate exactly as expected." if asked else f"{sentence}."


def _collectives_detail(row: CompiledRow) -> Fold:
    record = row.record
    if record is None:
        return Fold(name=row.name, state=row.status, reason=row.why)
    state = "ok" if row.right is not False else "wrong"
    return Fold(name=row.name, state=state, tables=(fill(COLLECTIVES, record.collectives),), notes=(row.why,))


def _sent_text(row: CompiledRow) -> str | None:
    return None if row.record is None else gigabytes(row.wire_bytes) if row.wire_bytes else "nothing"


def _cell_style(value: object) -> str:
    return "ok" if value is True or value == "compiled" else "no"

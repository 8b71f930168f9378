# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The terminal table: one line a point, readable at 100 columns."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jaxbench.analysis.headline import percent
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.findings import Findings

_WIDE = 96  # columns below which batch, speed-up and the interval of the step time are left out
_STYLES = {
    "ok": "green",
    "failed": "bold red",
    "wrong": "bold red",
    "partial": "yellow",
    "missing": "yellow",
    "unsupported": "dim",
}


def show(findings: Findings, console: Console) -> None:
    """Prints the headline, the table and every note. The base of each group of rows is marked in the table."""
    console.print()
    console.print(Text(f"{findings.experiment}: how training scales from device to device", style="bold"))
    for sentence in findings.headlines:
        console.print(Text(sentence))
    console.print()
    console.print(_table(findings.rows, wide=console.width >= _WIDE))
    console.print()
    console.print(Text(legend(findings.rows), style="dim"))
    for heading, sentences in findings.sections():
        if heading != "Base":
            console.print(Text(heading, style="bold"))
            console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences), sep="")


def state(row: Row) -> str:
    """One word for status and check together: ok, wrong (a check failed), unchecked, partial, failed, unsupported,
    missing."""
    if row.point.status in ("failed", "missing", "unsupported"):
        return row.point.status
    if row.point.check_ok is False:
        return "wrong"
    return "unchecked" if row.point.check_ok is None else row.point.status


def colour(state: str) -> str:
    """How the word `state` of a row looks."""
    return _STYLES.get(state, "yellow")


def milliseconds(estimate: Estimate, *, interval: bool = True) -> str:
    """ "12.3 [12.1, 12.4]" in milliseconds, with three or more digits."""
    if not estimate.known:
        return ""
    digits = max(0, 2 - math.floor(math.log10(estimate.value * 1e3)))
    between = f" [{estimate.lo * 1e3:.{digits}f}, {estimate.hi * 1e3:.{digits}f}]"
    return f"{estimate.value * 1e3:.{digits}f}{between if interval and estimate.has_interval else ''}"


def ratio(estimate: Estimate) -> str:
    """ "1.82 [1.79, 1.85]"."""
    if not estimate.known:
        return ""
    between = f" [{estimate.lo:.2f}, {estimate.hi:.2f}]" if estimate.has_interval else ""
    return f"{estimate.value:.2f}{between}"


def throughput(value: float) -> str:
    """Three digits with an SI prefix: "20.8k"."""
    if not math.isfinite(value):
        return ""
    size, prefix = next(((s, p) for s, p in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= s), (1.0, ""))
    return f"{value / size:#.3g}".removesuffix(".") + prefix


def _table(rows: list[Row], *, wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("strategy", overflow="fold")
    headers = ["devices", "batch", "ms per step", f"{unit(rows)}/s", "speed-up", "efficiency %"]
    for name in headers if wide else [name for name in headers if name not in ("batch", "speed-up")]:
        table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    family = None
    for row in rows:
        if family is not None and family != (row.point.strategy, row.point.scaling):
            table.add_section()
        family = (row.point.strategy, row.point.scaling)
        cells = map(Text, _cells(row, wide=wide))  # as strings they would be read as markup
        style = "dim" if row.point.oversubscribed else ""
        table.add_row(*cells, Text(state(row), style=colour(state(row))), style=style)
    return table


def _cells(row: Row, *, wide: bool) -> list[str]:
    point, timing = row.point, row.timing
    claims = not point.oversubscribed  # an interval around a meaningless ratio would look like a finding
    efficiency = (
        "" if not row.efficiency.known else percent(row.efficiency if claims else row.efficiency.alone(), fine=wide)
    )
    return [
        f"{point.strategy} {point.scaling}",
        f"{point.devices}{'°' if point.oversubscribed else ' '}",
        *([str(point.global_batch)] if wide else []),
        milliseconds(timing.step_s, interval=wide),
        throughput(timing.examples_per_s.value),
        *([f"{row.speedup.value:.2f}" if row.speedup.known else ""] if wide else []),
        "base" if row.base is point else efficiency.replace(" %", ""),
    ]


def unit(rows: list[Row]) -> str:
    """What an example is called, "examples" where points differ or none was measured."""
    units = {r.point.record.unit for r in rows if r.point.record is not None}
    return units.pop() if len(units) == 1 else "examples"


def legend(rows: list[Row]) -> str:
    """What the numbers and marks of the table mean."""
    text = "Medians with 95 % bootstrap intervals over rounds."
    if any(r.point.oversubscribed for r in rows):
        text += " ° more devices than cores: proves correctness, not speed."
    return text

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The terminal table of a run of cases: one line a point, readable at 100 columns; of long runs the telling sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import Estimate
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing.axes import si
from jaxbench.report.drawing.series import per_second

TITLES = {
    "curves": "from latency to throughput",
    "matmul": "how fast matrix products are",
    "stream": "how fast memory is",
    "dispatch": "what a call costs",
    "fusion": "what fusing operations saves",
    "linalg": "how fast factorisations are",
    "transfer": "how fast copies are",
    "collectives": "how fast devices reduce and exchange",
}
MOST = 40  # lines; a longer run is shown by its telling sizes
_SENTENCES = 6  # of a section on the terminal
_WIDE = 96  # columns below which the interval of the time is left out
_STYLES = {"passed": "green", "refused": "yellow", "wrong": "bold red", "failed": "bold red"}
Rate = Callable[[CaseRow], Estimate]
# Which rate a view shows, what it is called, and what 1 of it is.
_RATES: dict[str, tuple[str, Rate, float]] = {
    "curves": ("elements/s", per_second, 1.0),
    "matmul": ("GFLOP/s", lambda row: row.flop_per_s, 1e9),
    "linalg": ("GFLOP/s", lambda row: row.flop_per_s, 1e9),
    "stream": ("GB/s", lambda row: row.bytes_per_s, 1e9),
    "fusion": ("GB/s", lambda row: row.bytes_per_s, 1e9),
    "transfer": ("GB/s", lambda row: row.algbw, 1e9),
    "collectives": ("busbw GB/s", lambda row: row.busbw, 1e9),
}


def show(findings: CaseFindings, console: Console) -> None:
    """Prints the headline, the table and every section, cut where it is long: the page has all."""
    rows, cut = shortened(in_order(findings.rows), findings.view)
    console.print()
    console.print(Text(heading(findings), style="bold"))
    for sentence in findings.headlines:
        console.print(Text(sentence))
    console.print()
    console.print(_table(rows, findings.view, wide=console.width >= _WIDE))
    console.print()
    console.print(Text(legend(findings.rows) + cut, style="dim"))
    for name, sentences in findings.sections():
        shown = list(sentences[:_SENTENCES])
        if len(sentences) > len(shown):
            shown.append(f"and {len(sentences) - len(shown)} more on the page.")
        console.print(Text(name, style="bold"))
        console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in shown), sep="")


def heading(findings: CaseFindings) -> str:
    """The title of the terminal table and of the page."""
    return f"{findings.experiment}: {TITLES.get(findings.view, findings.view)}"


def state(row: CaseRow) -> str:
    """One word for status, check and gates together: failed, missing, partial, wrong, unchecked, refused, passed."""
    point = row.point
    if point.status in ("failed", "missing"):
        return point.status
    if point.check_ok is False:
        return "wrong"
    if row.gate == "refused":
        return "refused"
    return point.status if point.status != "ok" else "unchecked" if point.check_ok is None else "passed"


def rate(row: CaseRow, view: str) -> str:
    """The rate that the view is about, in its unit; "" where it means nothing."""
    if view not in _RATES:
        return ""
    _, of, unit = _RATES[view]
    value = of(row) if row.timing.step_s.known else Estimate()
    if not value.known:
        return ""
    return si(value.value) if unit == 1 else digits(value.value / unit)


def rate_name(view: str) -> str:
    return _RATES[view][0] if view in _RATES else ""


def digits(value: float) -> str:
    """Three digits, no exponent: "0.0123", "12.3", "1230"."""
    if value == 0 or not math.isfinite(value):
        return ""
    if abs(value) < 1e-4:
        return f"{value:.2g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def time(estimate: Estimate, *, interval: bool = True) -> str:
    """ "12.3 [12.1, 12.4] µs": value and interval in one unit."""
    if not estimate.known:
        return ""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    size, unit = next(((s, u) for s, u in units if estimate.value >= s), (1e-9, "ns"))
    value = estimate.value / size
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2
    between = f" [{estimate.lo / size:.{places}f}, {estimate.hi / size:.{places}f}]"
    return f"{value:.{places}f}{between if interval and estimate.has_interval else ''} {unit}"


def size(row: CaseRow) -> str:
    """What the case's size is called: its shape, its elements, or its payload."""
    point = row.point
    if point.family != "kernel" and point.payload_bytes is not None:
        return quantities.payload(point.payload_bytes)
    return point.shape or ("" if point.elements is None else f"{point.elements:,}")


def place(row: CaseRow) -> str:
    """Where it ran: "8 of 2x4:x", "host→cpu:0", "1 core", "gpu"."""
    point = row.point
    over = "°" if point.oversubscribed else ""
    if point.family == "collective":
        along = f" {point.mesh}:{point.axis}" if "x" in point.mesh else ""
        return f"{point.devices}{over}{along or ' devices'}"
    if point.family == "transfer":
        return f"{point.source}→{point.target}{over}"
    return f"{point.cores} core{'s' if point.cores != 1 else ''}" if point.platform == "cpu" else point.platform


def legend(rows: Sequence[CaseRow]) -> str:
    """What the numbers and marks of the table mean."""
    text = "Medians with 95 % bootstrap intervals over rounds."
    if any(row.peak_share.known for row in rows):
        text += " % of peak: of the ceiling that binds, named under Peaks."
    if any(row.point.oversubscribed for row in rows):
        text += " ° more devices than cores: fake devices prove bytes and arithmetic, never speed."
    return text


def in_order(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """The rows of one operation and implementation together, otherwise as planned."""
    groups: dict[tuple[str, str], list[CaseRow]] = {}
    for row in rows:
        groups.setdefault((row.point.op, row.point.impl), []).append(row)
    return [row for mine in groups.values() for row in mine]


def shortened(rows: Sequence[CaseRow], view: str) -> tuple[list[CaseRow], str]:
    """At most `MOST` rows: of each series its smallest size, the one at half of its best rate, and its largest.

    Where those are too many, the largest alone; what cannot be shown is counted in the sentence that is returned.
    """
    if len(rows) <= MOST:
        return list(rows), ""
    series: dict[tuple[object, ...], list[CaseRow]] = {}
    for row in rows:
        series.setdefault(_series(row), []).append(row)
    chosen = [row for mine in series.values() for row in _telling(mine, view)]
    how = "of each series the smallest size, the one at half of the best rate (n½), and the largest"
    if len(chosen) > MOST:
        chosen = [max(mine, key=_size) for mine in series.values()]
        how = "of each series the largest size"
    if len(chosen) > MOST:
        chosen, how = chosen[:MOST], f"{how}, of the first {MOST} series"
    return chosen, f" Shown: {how}; all {len(rows)} points are on the page."


def _series(row: CaseRow) -> tuple[object, ...]:
    point = row.point
    names = ("op", "impl", "dtype", "platform", "cores", "devices", "mesh", "axis", "source", "target")
    return tuple(getattr(point, name) for name in names)


def _size(row: CaseRow) -> int:
    return row.point.payload_bytes or row.point.elements or 0


def _telling(rows: Sequence[CaseRow], view: str) -> list[CaseRow]:
    """Smallest, the first at half of the best rate of its view, largest; each once, by size."""
    by_size = sorted(rows, key=_size)
    of = _RATES[view][1] if view in _RATES else per_second
    rates = [(of(row).value, row) for row in by_size if row.timing.step_s.known and of(row).known]
    half = [row for value, row in rates if value >= max(rate for rate, _ in rates) / 2]
    picked = [by_size[0], *half[:1], by_size[-1]]
    return list({row.point.point: row for row in picked}.values())


def _table(rows: Sequence[CaseRow], view: str, *, wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shares = any(row.peak_share.known for row in rows)
    for name in ("op", "dtype", "where"):
        table.add_column(Text(name), overflow="fold")
    for name in ("size", "per call", rate_name(view), "% peak" if shares else ""):
        if name:
            table.add_column(
                Text(name), justify="right", overflow="fold" if name == "size" else "ellipsis", no_wrap=name != "size"
            )
    table.add_column("gate", no_wrap=True)
    before = None
    for row in rows:
        if before is not None and before != row.point.op:
            table.add_section()
        before = row.point.op
        share = _percent(row.peak_share) if row.gate != "refused" else ""
        cells = [_what(row), row.point.dtype, place(row), size(row), time(row.timing.step_s, interval=wide)]
        cells += [rate(row, view)] if rate_name(view) else []
        cells += [share] if shares else []
        texts = map(Text, cells)  # as strings they would be read as markup
        word = state(row)
        style = "dim" if row.point.oversubscribed else ""
        table.add_row(*texts, Text(word, style=_STYLES.get(word, "yellow")), style=style)
    return table


def _percent(share: Estimate) -> str:
    if not share.known:
        return ""
    return f"{100 * share.value:.0f}" if share.value >= 0.005 else "<1"


def _what(row: CaseRow) -> str:
    """The operation and who does it, where that is not plain."""
    point = row.point
    return f"{point.op} {point.impl}" if point.family == "kernel" and point.impl else point.op

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The forecasts of a folder as a table, forecast.csv and a page. None of its numbers is a measured time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from jaxbench.analysis.compiled import gigabytes
from jaxbench.core.store import write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.forecast import forecasts
from jaxbench.features.forecast.figures import draw_forecast, draw_links
from jaxbench.features.forecast.forecasts import COMPILED, LINKS, ForecastRecord
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Purpose, Section
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, to_csv

PAGE, CSV, DEFINITION = "forecast.html", "forecast.csv", "forecasts"


def _times(record: ForecastRecord) -> str:
    """A range of milliseconds: "120 .. 190", or "at least 64" for a bound."""
    if record.low_s is None:
        return ""
    low = digits(1e3 * record.low_s)
    return f"at least {low}" if record.high_s is None else f"{low} .. {digits(1e3 * record.high_s)}"


def _utilisation(record: ForecastRecord) -> str:
    most, least = record.utilisation(record.low_s), record.utilisation(record.high_s)
    if most is None:
        return ""
    return f"at most {100 * most:.3g}" if least is None else f"{100 * least:.3g} .. {100 * most:.3g}"


def _fits(record: ForecastRecord) -> str:
    return {True: "yes", False: "NO", None: "not known"}[record.fits]


_COLUMNS = (
    Column("target", "target", kind=TEXT, terminal=ALWAYS),
    Column("point", "point", kind=TEXT, terminal=ALWAYS),
    Column("basis", "basis", kind=TEXT, terminal=ALWAYS),
    Column("state", "status", kind=TEXT, style=lambda value: "ok" if value == "ok" else "no", terminal=ALWAYS),
    Column("fits", _fits, kind=TEXT, style=lambda value: "no" if value == "NO" else "", terminal=ALWAYS),
    Column("memory", lambda row: row.peak_bytes and gigabytes(row.peak_bytes), kind=TEXT, terminal=ALWAYS),
    Column("sent", lambda row: gigabytes(row.wire_bytes) if row.status == "ok" else None, kind=TEXT, terminal=ALWAYS),
    Column("grade", lambda r: f"{r.grade}, plain attention" if r.only_plain else r.grade, kind=TEXT, terminal=ALWAYS),
    Column("time, ms", _times, kind=TEXT, terminal=ALWAYS, definition=DEFINITION),
    Column("MFU, %", _utilisation, kind=TEXT, terminal=ALWAYS, definition=DEFINITION),
)
_FILE = tuple(
    Column(name, name) for name in (
        "target", "experiment", "device_kind", "point", "strategy", "scaling", "arm", "devices", "global_batch",
        "basis", "status", "reason", "fits", "peak_bytes", "memory_bytes", "wire_bytes", "grade", "low_s",
        "scheduled_s", "high_s", "work_s", "communication_s", "host_s", "host_bytes", "bubble_s", "slowest_s", "family",
        "runs", "flops", "peak_flop_per_s", "parameters", "kernels", "attention", "link",
    )
)  # fmt: skip
_PLOTS = (draw_forecast, draw_links)


def write(folder: Path, console: Console, answer: str = "") -> None:
    """Prints the table, and writes forecast.csv, forecast.html and figures/forecast. answer: the page's first sentence.

    Raises UserError: the folder has no forecasts, or cannot be written.
    """
    records = forecasts.read(folder)
    drawn = {plot: canvas.render(functools.partial(plot, records, title=title(records))) for plot in _PLOTS}
    pictures = [Picture(name=p.name, svg=files["svg"], caption=p.caption) for p, files in drawn.items() if files]
    made = page_of(records, pictures, answer)
    # Everything is made before anything is written: an error in a figure leaves the last page as it was.
    try:
        for plot, files in drawn.items():
            canvas.write(files, folder / "figures", plot.name)
        write_atomic(folder / CSV, fill_csv(records))
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the forecast into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)


def fill_csv(records: Sequence[ForecastRecord]) -> str:
    """forecast.csv: every record, with the columns of `_FILE`."""
    return to_csv(_FILE, records)


def title(records: Sequence[ForecastRecord]) -> str:
    """The heading of the page and of its figure."""
    names = ", ".join(dict.fromkeys(record.experiment for record in records))
    sizes = {record.parameters for record in records if record.parameters}
    # Models of different sizes get no size in the heading.
    size = f" of {_count(max(sizes))} parameters" if sizes and max(sizes) < 1.01 * min(sizes) else ""
    run = ": nothing was run" if any(record.basis != "measured" for record in records) else ""
    return f"Forecast of {names}{size}{run}"


def _count(number: int) -> str:
    """A number in words: "16.2 billion"."""
    for unit, word in ((1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{digits(number / unit)}{word}"
    return f"{number:,}"


def page_of(records: Sequence[ForecastRecord], pictures: Sequence[Picture] = (), answer: str = "") -> Page:
    """The page of these forecasts. answer: its first sentence."""
    exact = sum(record.basis == COMPILED and record.status == "ok" for record in records)
    of = " for this program with plain attention" if any(record.only_plain for record in records) else ""
    headlines = [
        f"{exact} of {len(records)} forecasts are of compiled points, so their memory and bytes are exact.",
        "No number here is a measured time. A range reflects how far published runs were from their forecasts; 'at "
        f"least' is a lower bound{of}.",
    ]
    sections = []
    if bad := [f"{r.target} {r.point}: {r.status}: {r.reason}" for r in records if r.status != "ok"]:
        sections.append(Section(heading="Not compiled, or too large", sentences=bad, purpose=Purpose.SHORTFALL))
    if parts := _waterfall(records):
        sections.append(Section(heading="Where the time goes", sentences=parts, definition=DEFINITION))
    if links := [_link(record) for record in records if record.by_link and record.status == "ok"]:
        sections.append(Section(heading="What the link costs", sentences=links, definition=DEFINITION))
    sections.append(Section(heading="How the times were estimated", sentences=_methods(records), definition=DEFINITION))
    table = fill(_COLUMNS, records, group=lambda record: record.target.partition(":")[0])
    return Page(
        name="forecast", heading=title(records), headlines=[*([answer] if answer else []), *headlines],
        pictures=pictures, table=table, sections=sections, definition=DEFINITION, made_from=forecasts.FILE,
    )  # fmt: skip


def _link(record: ForecastRecord) -> str:
    """The factor "link" of a step: the share of it that is work and not waiting for messages, by link."""
    factors = {name: record.link_factor(seconds) for name, seconds in record.by_link.items()}
    words = [f"{100 * (factor or 0.0):.0f} % of a step over {LINKS[name]}" for name, factor in factors.items()]
    slow = record.link_factor(record.slowest_s)
    used = f", here {record.link}" if record.link else ""
    least = f"; {100 * slow:.0f} % at the slowest that was measured of this kind" if slow is not None else ""
    return f"{record.target} {record.point}{used}: work is {', '.join(words)}{least}."


_PARTS = {
    "cycles": "products", "roofline": "products", "kernel": "attention and kernels that state FLOPs",
    "memory": "memory", "unknown": "other kernels", "measured": "measured work",
}  # fmt: skip


def _waterfall(records: Sequence[ForecastRecord]) -> list[str]:
    """For each family of points, the parts of the step on the most devices, in the compiler's order."""
    largest: dict[tuple[str, ...], ForecastRecord] = {}
    for record in sorted((each for each in records if each.scheduled_s), key=lambda each: each.devices):
        largest[record.target.partition(":")[0], record.strategy, record.scaling, record.arm] = record
    sentences = []
    for record in largest.values():
        step, work = record.scheduled_s or 1.0, record.work_s or 0.0
        seconds: dict[str, float] = {}
        for how, part in record.seconds_by.items():
            # The idle time of a pipeline is in the work, spread over its kinds, and has a line of its own below.
            seconds[_PARTS[how]] = seconds.get(_PARTS[how], 0.0) + part * (1 - record.bubble_s / (work or 1.0))
        seconds["idle in the pipeline"] = record.bubble_s
        seconds["waiting for messages" + (" and the host" if record.host_bytes else "")] = step - work
        parts = [f"{name} {100 * part / step:.0f} %" for name, part in seconds.items() if part > 0.005 * step]
        host = f" A device copies {gigabytes(record.host_bytes)} to or from its host." if record.host_bytes else ""
        sentences.append(f"{record.target} {record.point}: {digits(1e3 * step)} ms: {', '.join(parts)}.{host}")
    return sentences


def _methods(records: Sequence[ForecastRecord]) -> list[str]:
    notes: dict[str, list[str]] = {}  # each note once: dozens of points of a target share it
    for record in records:
        for note in record.notes:
            notes.setdefault(note, []).append(f"{record.target} {record.point}")
        if record.sources and record.basis != COMPILED:
            notes.setdefault(f"From {', '.join(record.sources)}.", []).append(f"{record.target} {record.point}")
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {note}" for note, names in notes.items()
    ]

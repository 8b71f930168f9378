# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The forecasts of a folder as a table, forecast.csv and a page. None of its numbers is a measured time.

The answer of `jaxbench advise` as a table, advise.csv, a figure and a page, made from advise.json.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.analysis.compiled import gigabytes
from jaxbench.catalog import power_share
from jaxbench.core.store import write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.forecast import forecasts
from jaxbench.features.forecast.figures import clock, draw_advice, draw_forecast, draw_links
from jaxbench.features.forecast.forecasts import COMPILED, LINKS, ForecastRecord
from jaxbench.records.documents import decode, unsealed
from jaxbench.records.reading import read_json
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Purpose, Section
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill, to_csv

PAGE, CSV, DEFINITION = "forecast.html", "forecast.csv", "forecasts"
_FILE = tuple(
    Column(name, name)
    for name in (
        "target",
        "experiment",
        "device_kind",
        "point",
        "strategy",
        "scaling",
        "arm",
        "devices",
        "global_batch",
        "basis",
        "status",
        "reason",
        "fits",
        "peak_bytes",
        "memory_bytes",
        "wire_bytes",
        "grade",
        "low_s",
        "scheduled_s",
        "high_s",
        "work_s",
        "communication_s",
        "host_s",
        "host_bytes",
        "bubble_s",
        "slowest_s",
        "family",
        "runs",
        "flops",
        "peak_flop_per_s",
        "parameters",
        "kernels",
        "attention",
        "link",
    )
)
_PLOTS = (draw_forecast, draw_links)
_PARTS = {
    "cycles": "products",
    "roofline": "products",
    "kernel": "attention and kernels that state FLOPs",
    "memory": "memory",
    "unknown": "other kernels",
    "measured": "measured work",
}
FILE, ADVICE_PAGE, ADVICE_CSV, ADVICE_DEFINITION = "advise.json", "advise.html", "advise.csv", "advice"
_DAY_S, _KWH = 86400.0, 3.6e6
_DRAWN = f"counted at {100 * power_share.TRAINING:.0f} % ({power_share.MEASURED_ON}, published in {power_share.SOURCE})"


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
        f"{exact} of {len(records)} forecast{'s are' if len(records) != 1 else ' is'} of compiled points, so memory "
        "and bytes are exact.",
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
        name="forecast",
        heading=title(records),
        headlines=[*([answer] if answer else []), *headlines],
        pictures=pictures,
        table=table,
        sections=sections,
        definition=DEFINITION,
        made_from=forecasts.FILE,
    )


def _link(record: ForecastRecord) -> str:
    """The factor "link" of a step: the share of it that is work and not waiting for messages, by link."""
    factors = {name: record.link_factor(seconds) for name, seconds in record.by_link.items()}
    words = [f"{100 * (factor or 0.0):.0f} % of a step over {LINKS[name]}" for name, factor in factors.items()]
    slow = record.link_factor(record.slowest_s)
    used = f", here {record.link}" if record.link else ""
    least = f"; {100 * slow:.0f} % at the slowest that was measured of this kind" if slow is not None else ""
    return f"{record.target} {record.point}{used}: work is {', '.join(words)}{least}."


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


Line = dict[str, Any]


def _band(line: Line, name: str, scale: float = 1.0) -> str:
    """A range: "1,200 .. 1,900", or "at least 1,200" for a bound."""
    low, high = line[f"low_{name}"], line[f"high_{name}"]
    if low is None:
        return ""
    return f"at least {digits(low / scale)}" if high is None else f"{digits(low / scale)} .. {digits(high / scale)}"


def _paid(line: Line) -> str:
    most, least = line["most_examples_per_money"], line["least_examples_per_money"]
    return f"at most {digits(most)}" if least is None else f"{digits(least)} .. {digits(most)}"


def _price(line: Line) -> str:
    return f"{line['price_per_device_hour']:.3g}{' (old)' if line['price_is_old'] else ''}"


def _offer(line: Line) -> str:
    """The provider and the kind of its price: "RunPod, spot"."""
    return f"{line['provider']}, {line['kind']}"


def _columns(document: Line) -> tuple[Column, ...]:
    money = next((line["currency"] for line in document["candidates"]), "")
    unit = document["job"]["unit"]
    unit_of_time, scale = clock(document["candidates"])
    deadline = (
        []
        if document["job"]["deadline_s"] is None
        else [Column("in time", lambda line: line["meets_deadline"], kind=TEXT, terminal=ALWAYS)]
    )
    # Always shown is what decides: hardware, grade, time and cost.
    return (
        Column("hardware", lambda line: line["name"], kind=TEXT, terminal=ALWAYS),
        Column("provider", _offer, kind=TEXT, terminal=5),
        Column("strategy", lambda line: " ".join(filter(None, (line["strategy"], line["arm"]))), kind=TEXT, terminal=4),
        Column("grade", lambda line: line["grade"], kind=TEXT, terminal=ALWAYS),
        *deadline,
        Column(
            unit_of_time, lambda line: _band(line, "s", scale), kind=TEXT, terminal=ALWAYS, definition=ADVICE_DEFINITION
        ),
        Column(money, lambda line: _band(line, "cost"), kind=TEXT, terminal=ALWAYS, definition=ADVICE_DEFINITION),
        Column("kWh", lambda line: _band(line, "joules", _KWH) or "unknown", kind=TEXT, terminal=6),
        Column(f"{unit} per {money}", _paid, kind=TEXT, terminal=7, definition=ADVICE_DEFINITION),
        Column("memory", lambda line: gigabytes(line["peak_bytes"]), kind=TEXT, terminal=3),
        Column(f"{money} per hour", _price, kind=TEXT, terminal=8),
    )


def write_advice(folder: Path, console: Console) -> None:
    """Prints the table, and writes advise.csv, advise.html and figures/advise.

    Raises UserError: the folder has no advice, or cannot be written.
    """
    again = "make it again with 'jaxbench advise'."
    document = read_json(folder / FILE, lambda value: unsealed(decode(dict[str, Any], value)), again)
    lines, columns = document["candidates"], _columns(document)
    files = canvas.render(lambda: draw_advice(lines, document["job"], title=_title(document)))
    pictures = [Picture(name="advise", svg=files["svg"], caption=draw_advice.caption)] if files else []
    brief = fill(columns, [line for line in lines if line["best"]])
    made = _page(document, fill(columns, lines), brief, pictures)
    try:
        canvas.write(files, folder / "figures", "advise")
        write_atomic(folder / ADVICE_CSV, _csv(lines))
        write_atomic(folder / ADVICE_PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the advice into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage, figure and table: {folder / ADVICE_PAGE}", highlight=False, soft_wrap=True)


def _csv(lines: list[Line]) -> str:
    names = list(lines[0]) if lines else ["name"]  # a file without candidates still has a heading
    return to_csv([Column(name, operator.itemgetter(name)) for name in names], lines)


def _title(document: Line) -> str:
    job = document["job"]
    size = f"{job['examples']:,.0f} {job['unit']}"
    tokens = f" ({job['examples'] * job['tokens']:.3g} tokens)" if job["tokens"] else ""
    days = "" if job["deadline_s"] is None else f", within {job['deadline_s'] / _DAY_S:g} d"
    return f"Hardware for {document['experiment']}, {size}{tokens}{days}: nothing was run"


def _page(document: Line, table: Table, brief: Table, pictures: list[Picture]) -> Page:
    sections = [Section("Assumed", document["assumed"], definition=ADVICE_DEFINITION)]
    if document["missing"]:
        sections.insert(0, Section("Not estimated", document["missing"]))
    if grown := [_growth(each) for each in document.get("growth", [])]:
        sections.insert(
            0, Section("What another GPU brings, and what NVLink is worth", grown, definition=ADVICE_DEFINITION)
        )
    if ways := document.get("gathers"):
        sections.insert(0, Section("How often to gather parameters", ways, definition=ADVICE_DEFINITION))
    if prices := _old(document["candidates"]):
        sections.insert(0, Section("Old prices", prices, definition="prices"))
    sections.append(Section("Prices", _sources(document["candidates"]), page.Purpose.DETAIL, "prices"))
    return Page(
        name="advise",
        heading=_title(document),
        headlines=_answers(document),
        pictures=pictures,
        table=table,
        brief=brief,
        sections=sections,
        definition=ADVICE_DEFINITION,
        made_from=FILE,
    )


def _answers(document: Line) -> list[str]:
    lines = [line for line in document["candidates"] if line["meets_deadline"] != "no"]
    if not lines:
        return ["No candidate ends by the deadline." if document["candidates"] else "No device is known to fit."]
    unit, scale = clock(document["candidates"])
    sentences = []
    for grade, how in (("estimated", "Cheapest by an estimate"), ("at best", "Cheapest by a lower bound on the time")):
        found = [line for line in lines if line["grade"] == grade]
        if found:
            line = min(found, key=lambda line: line["sort_cost"])  # within a grade: a bound is below every estimate
            if grade == "at best" and "plain" in line.get("attention", ""):
                how += " for this program with plain attention"
            sentences.append(
                f"{how}: {line['name']} from {_offer(line)}, {_band(line, 's', scale)} {unit}, "
                f"{_band(line, 'cost')} {line['currency']}."
            )
    grades = {line["grade"] for line in lines}
    if "at best" in grades:
        sentences.append(
            "At best: kernels are shorter here than in any published run. The gaps between them are not counted, so a "
            "step may be much slower. A larger per-device batch makes kernels longer."
        )
    both = "; a bound and an estimate cannot be compared" if len(grades) > 1 else ""
    return [*sentences, f"No time here was measured{both}."]


def _growth(each: Line) -> str:
    """What more GPUs of a host bring: "rtx4090 (PCIe 4.0 x16, ...): 2 do 0.9 times the work of 1, ..."."""
    fewest, many = each["devices"][0], each["devices"][-1]
    steps = ", ".join(
        f"{count} do {digits(speed)}" for count, speed in zip(each["devices"][1:], each["speed"][1:], strict=True)
    )
    who = " ".join(filter(None, (each["target"], each["strategy"], each["arm"])))
    others = {
        # Its own link, and links that hardly matter, would only repeat the number.
        name: speed[-1]
        for name, speed in each["by_link"].items()
        if abs(speed[-1] / each["speed"][-1] - 1) > 0.02
    }
    words = ", ".join(f"{digits(speed)} over {LINKS[name]}" for name, speed in others.items())
    link = f"{each['link'] or 'NVLink'}{', at best' if each['bound'] else ''}"
    return (
        f"{who} ({link}): {steps} times the work of {fewest}. "
        + (f"From {each['too_many']} on, more cost more than they bring. " if each["too_many"] else "")
        + (f"{many} would do {words}." if words else f"No other link would change this for {many} by more than 2 %.")
    )


def _old(lines: list[Line]) -> list[str]:
    known = {(line["device"], _offer(line)): line["price_date"] for line in lines if line["price_is_old"]}
    return [
        f"{device} from {provider}: the price is from {date}, more than a year ago: give a new one with --prices=FILE."
        for (device, provider), date in known.items()
    ]


def _sources(lines: list[Line]) -> list[str]:
    return list(
        dict.fromkeys(
            f"{line['device']}, {_offer(line)}: {line['price_per_device_hour']:g} {line['currency']} per device-hour "
            f"on {line['price_date']} ({line['price_source']}); "
            + (f"{line['watts']:g} W, {_DRAWN}." if line["watts"] else "power not published.")
            for line in lines
        )
    )

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The answer of `jaxbench advise` as a table, advise.csv, a figure and a page, made from advise.json."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.analysis.compiled import gigabytes
from jaxbench.core.store import write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.forecast.figures import clock, draw_advice
from jaxbench.features.forecast.forecasts import LINKS
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Section
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill, to_csv

FILE, PAGE, CSV, DEFINITION = "advise.json", "advise.html", "advise.csv", "advice"
_DAY_S, _KWH = 86400.0, 3.6e6
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
    deadline = [] if document["job"]["deadline_s"] is None else [
        Column("in time", lambda line: line["meets_deadline"], kind=TEXT, terminal=ALWAYS)
    ]  # fmt: skip
    # Always shown is what decides: hardware, grade, time and cost.
    return (
        Column("hardware", lambda line: line["name"], kind=TEXT, terminal=ALWAYS),
        Column("provider", _offer, kind=TEXT, terminal=5),
        Column("strategy", lambda line: " ".join(filter(None, (line["strategy"], line["arm"]))), kind=TEXT, terminal=4),
        Column("grade", lambda line: line["grade"], kind=TEXT, terminal=ALWAYS),
        *deadline,
        Column(unit_of_time, lambda line: _band(line, "s", scale), kind=TEXT, terminal=ALWAYS, definition=DEFINITION),
        Column(money, lambda line: _band(line, "cost"), kind=TEXT, terminal=ALWAYS, definition=DEFINITION),
        Column("kWh", lambda line: _band(line, "joules", _KWH) or "unknown", kind=TEXT, terminal=6),
        Column(f"{unit} per {money}", _paid, kind=TEXT, terminal=7, definition=DEFINITION),
        Column("memory", lambda line: gigabytes(line["peak_bytes"]), kind=TEXT, terminal=3),
        Column(f"{money} per hour", _price, kind=TEXT, terminal=8),
    )


def write(folder: Path, console: Console) -> None:
    """Prints the table, and writes advise.csv, advise.html and figures/advise.

    Raises UserError: the folder has no advice, or cannot be written.
    """
    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"'{folder}' has no readable {FILE}: make one with 'jaxbench advise'.") from error
    lines, columns = document["candidates"], _columns(document)
    files = canvas.render(lambda: draw_advice(lines, document["job"], title=_title(document)))
    pictures = [Picture(name="advise", svg=files["svg"], caption=draw_advice.caption)] if files else []
    brief = fill(columns, [line for line in lines if line["best"]])
    made = _page(document, fill(columns, lines), brief, pictures)
    try:
        canvas.write(files, folder / "figures", "advise")
        write_atomic(folder / CSV, _csv(lines))
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the advice into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)


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
    sections = [Section("Assumed", document["assumed"], definition=DEFINITION)]
    if document["missing"]:
        sections.insert(0, Section("Not estimated", document["missing"]))
    if grown := [_growth(each) for each in document.get("growth", [])]:
        sections.insert(0, Section("What another GPU brings, and what NVLink is worth", grown, definition=DEFINITION))
    if prices := _old(document["candidates"]):
        sections.insert(0, Section("Old prices", prices, definition="prices"))
    sections.append(Section("Prices", _sources(document["candidates"]), page.Purpose.DETAIL, "prices"))
    return Page(
        name="advise", heading=_title(document), headlines=_answers(document), pictures=pictures, table=table,
        brief=brief, sections=sections, definition=DEFINITION, made_from=FILE,
    )  # fmt: skip


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
    return list(dict.fromkeys(
        f"{line['device']}, {_offer(line)}: {line['price_per_device_hour']:g} {line['currency']} per device-hour "
        f"on {line['price_date']} ({line['price_source']}); "
        + (f"{line['watts']:g} W." if line["watts"] else "power not published.")
        for line in lines
    ))  # fmt: skip

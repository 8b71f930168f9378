# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The forecasts of a folder as a table, forecast.csv and a page. None of its numbers is a measured time.

The answer of `jaxbench advise` as a table, advise.csv, a figure and a page, made from advise.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.analysis.compiled import gigabytes
from jaxbench.core.store import write_atomic
from jaxbench.digits import counted, digits
from jaxbench.errors import UserError
from jaxbench.features.forecast import columns, forecasts
from jaxbench.features.forecast.advice import NO, Offer, TrainingBudget
from jaxbench.features.forecast.columns import ADVICE_DEFINITION, DEFINITION, band
from jaxbench.features.forecast.figures import draw_advice, draw_forecast, draw_links
from jaxbench.features.forecast.forecasts import AT_BEST, COMPILED, ESTIMATED, LINKS, ForecastRecord
from jaxbench.records.documents import decode, unsealed
from jaxbench.records.reading import read_json
from jaxbench.report import page
from jaxbench.report.drawing import canvas
from jaxbench.report.page import Page, Picture, Purpose, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.table import fill, to_csv

PAGE, CSV = "forecast.html", "forecast.csv"
_PLOTS = (draw_forecast, draw_links)
_PARTS = {
    "cycles": "products",
    "roofline": "products",
    "kernel": "attention and kernels that state FLOPs",
    "memory": "memory",
    "unknown": "other kernels",
    "measured": "measured work",
}
FILE, ADVICE_PAGE, ADVICE_CSV = "advise.json", "advise.html", "advise.csv"
# The answers of `jaxbench advise`.
CHEAPEST = {ESTIMATED: "Cheapest by an estimate", AT_BEST: "Cheapest by a lower bound on the time"}
PLAIN = " for this program with plain attention"
NOT_IN_TIME, NOTHING_FITS = "No candidate ends by the deadline.", "No device is known to fit."
WHY_A_BOUND = (
    "At best: kernels are shorter here than in any published run. The gaps between them are not counted, so a step may "
    "be much slower. A larger per-device batch makes kernels longer."
)
NOT_MEASURED = "No time here was measured."
NOT_COMPARABLE = "No time here was measured; a bound and an estimate cannot be compared."
GROWTH = {
    "all": "{who} ({link}): {steps} times the work of {fewest}. {too_many}{others}",
    "too many": "From {count} on, more cost more than they bring. ",
    "other links": "{many} would do {words}.",
    "no other link": "No other link would change this for {many} by more than 2 %.",
}
OLD_PRICE = "{device} from {offer}: the price is from {date}, more than a year ago: give a new one with --prices=FILE."


def write(folder: Path, console: Console, answer: str = "") -> None:
    """Prints the table, and writes forecast.csv, forecast.html and figures/forecast. answer: the page's first sentence.

    Raises UserError: the folder has no forecasts, or cannot be written.
    """
    records = forecasts.read(folder)
    named = title(records)
    drawn = {plot: pictured(plot.name, partial(plot, records, title=named), plot.caption) for plot in _PLOTS}
    made = page_of(records, [picture for _, shown in drawn.values() for picture in shown], answer)
    # Everything is made before anything is written: an error in a figure leaves the last page as it was.
    try:
        for plot, (files, _) in drawn.items():
            canvas.write(files, folder / "figures", plot.name)
        write_atomic(folder / CSV, fill_csv(records))
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the forecast into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage, figure and table: {folder / PAGE}", highlight=False, soft_wrap=True)


def fill_csv(records: Sequence[ForecastRecord]) -> str:
    """forecast.csv: every record."""
    return to_csv([column for column in columns.of_forecasts() if column.csv], records)


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
        f"{exact} of {counted(len(records), 'point')} {'was' if exact == 1 else 'were'} compiled"
        f"{', so memory and bytes are exact' if exact == len(records) else '; only there memory and bytes are exact'}.",
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
    methods = _method_notes(records)
    sections.append(Section(heading="How the times were estimated", sentences=methods, definition=DEFINITION))
    shown = [column for column in columns.of_forecasts() if column.terminal]
    table = fill(shown, records, group=lambda record: record.target.partition(":")[0])
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
    least = f"; {100 * slow:.0f} % over the slowest link of this kind that was measured" if slow is not None else ""
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
        sentences.append(f"{record.target} {record.point}, {digits(1e3 * step)} ms: {', '.join(parts)}.{host}")
    return sentences


def _method_notes(records: Sequence[ForecastRecord]) -> list[str]:
    notes: dict[str, list[str]] = {}  # each note once: dozens of points of a target share it
    for record in records:
        for note in record.notes:
            notes.setdefault(note, []).append(f"{record.target} {record.point}")
        if record.sources and record.basis != COMPILED:
            made = f"Extrapolated from {' and '.join(record.sources)}."
            notes.setdefault(made, []).append(f"{record.target} {record.point}")
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {note}" for note, names in notes.items()
    ]


def _read_advice(value: object) -> tuple[dict[str, Any], list[Offer], TrainingBudget]:
    """(the whole document, its candidates, what was to be trained). Raises ValueError."""
    document = unsealed(decode(dict[str, Any], value))
    return document, decode(list[Offer], document["candidates"]), decode(TrainingBudget, document["job"])


def write_advice(folder: Path, console: Console) -> None:
    """Prints the table, and writes advise.csv, advise.html and figures/advise.

    Raises UserError: the folder has no advice, or cannot be written.
    """
    document, lines, job = read_json(folder / FILE, _read_advice, "make it again with 'jaxbench advise'.")
    title = _advice_title(str(document["experiment"]), job)
    files, pictures = pictured("advise", partial(draw_advice, lines, job, title=title), draw_advice.caption)
    shown = columns.of_advice(lines, job)
    made = Page(
        name="advise",
        heading=title,
        headlines=_answers(lines),
        pictures=pictures,
        table=fill(shown, lines),
        brief=fill(shown, [line for line in lines if line.best]),
        sections=_sections(document, lines),
        definition=ADVICE_DEFINITION,
        made_from=FILE,
    )
    try:
        canvas.write(files, folder / "figures", "advise")
        write_atomic(folder / ADVICE_CSV, to_csv(columns.of_advice_file(), lines))
        write_atomic(folder / ADVICE_PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the advice into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage, figure and table: {folder / ADVICE_PAGE}", highlight=False, soft_wrap=True)


def _advice_title(experiment: str, job: TrainingBudget) -> str:
    size = f"{job.examples:,.0f} {job.unit}"
    tokens = f" ({job.examples * job.tokens:.3g} tokens)" if job.tokens else ""
    days = "" if job.deadline_s is None else f", within {counted(_rounded(job.deadline_s / columns.DAY_S), 'day')}"
    return f"Hardware for {experiment}, {size}{tokens}{days}: nothing was run"


def _rounded(days: float) -> float:
    """To three digits."""
    return float(f"{days:.3g}")


def _sections(document: dict[str, Any], lines: Sequence[Offer]) -> list[Section]:
    """The sections with sentences, what a reader should know first on top."""
    grown = [_growth(each) for each in document.get("growth", [])]
    sections = [
        Section("Old prices", _old_prices(lines), definition="prices"),
        Section("How often to gather parameters", document.get("gathers") or [], definition=ADVICE_DEFINITION),
        Section("What another GPU brings, and what NVLink is worth", grown, definition=ADVICE_DEFINITION),
        Section("Not estimated", document["missing"]),
        Section("Assumed", document["assumed"], definition=ADVICE_DEFINITION),
    ]
    prices = Section("Prices", _price_sources(lines), page.Purpose.DETAIL, "prices")
    return [*(section for section in sections if section.sentences or section.heading == "Assumed"), prices]


def _answers(every: Sequence[Offer]) -> list[str]:
    """The cheapest offer that meets the deadline, for each grade, as sentences."""
    lines = [line for line in every if line.meets_deadline != NO]
    if not lines:
        return [NOT_IN_TIME if every else NOTHING_FITS]
    unit, scale = columns.clock(every)
    sentences = []
    for grade, how in CHEAPEST.items():
        found = [line for line in lines if line.grade == grade and line.best]
        found = found or [line for line in lines if line.grade == grade]
        if found:
            line = min(found, key=lambda line: line.sort_cost)  # within a grade: a bound is below every estimate
            plain = PLAIN if grade == AT_BEST and "plain" in line.attention else ""
            took, cost = band(line.low_s, line.high_s, scale), band(line.low_cost, line.high_cost)
            sentences.append(f"{how}{plain}: {line.name} from {line.offer}, {took} {unit}, {cost} {line.currency}.")
    grades = {line.grade for line in lines}
    bounds = [WHY_A_BOUND] if AT_BEST in grades else []
    return [*sentences, *bounds, NOT_COMPARABLE if len(grades) > 1 else NOT_MEASURED]


def _growth(each: dict[str, Any]) -> str:
    """What more GPUs of a host bring: "rtx4090 (PCIe 4.0 x16, ...): 2 do 0.9 times the work of 1, ..."."""
    fewest, many = each["devices"][0], each["devices"][-1]
    steps = [f"{count} do {digits(speed)}" for count, speed in zip(each["devices"][1:], each["speed"][1:], strict=True)]
    others = {
        # Its own link, and links that hardly matter, would only repeat the number.
        name: speed[-1]
        for name, speed in each["by_link"].items()
        if abs(speed[-1] / each["speed"][-1] - 1) > 0.02
    }
    words = ", ".join(f"{digits(speed)} over {LINKS[name]}" for name, speed in others.items())
    return GROWTH["all"].format(
        who=" ".join(filter(None, (each["target"], each["strategy"], each["arm"]))),
        link=f"{each['link'] or 'NVLink'}{', at best' if each['bound'] else ''}",
        steps=", ".join(steps),
        fewest=fewest,
        too_many=GROWTH["too many"].format(count=each["too_many"]) if each["too_many"] else "",
        others=GROWTH["other links" if words else "no other link"].format(many=many, words=words),
    )


def _old_prices(lines: Sequence[Offer]) -> list[str]:
    known = {(line.device, line.offer): line.price_date for line in lines if line.price_is_old}
    return [OLD_PRICE.format(device=device, offer=offer, date=date) for (device, offer), date in known.items()]


def _price_sources(lines: Sequence[Offer]) -> list[str]:
    return list(
        dict.fromkeys(
            f"{line.device}, {line.offer}: {line.price_per_device_hour:g} {line.currency} per device-hour on "
            f"{line.price_date} ({line.price_source}); {_power_clause(line)}."
            for line in lines
        )
    )


def _power_clause(line: Offer) -> str:
    if not line.watts:
        return "power not published"
    return f"{line.watts:g} W, counted at {100 * line.drawn:.0f} % ({line.drawn_source})"

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The columns of forecasts and of advice, for the page, the terminal and the CSV file alike. Without jax."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from jaxbench.analysis.compiled import gigabytes
from jaxbench.digits import digits
from jaxbench.features.forecast.advice import NO, Offer, TrainingBudget
from jaxbench.features.forecast.forecasts import COMPILED, MEASURED, RECKONED, ForecastRecord
from jaxbench.report.table import ALWAYS, TEXT, Column

DEFINITION, ADVICE_DEFINITION = "forecasts", "advice"  # their sections in docs/metrics
DAY_S, KWH = 86400.0, 3.6e6
BASES = {COMPILED: "compiled", RECKONED: "extrapolated", MEASURED: "measured"}
FITS = {True: "yes", False: "NO", None: "not known"}


def band(low: float | None, high: float | None, scale: float = 1.0, *, least: str = "at least") -> str:
    """A range: "1,200 .. 1,900", or "at least 1,200" for a bound; "" if it is unknown."""
    if low is None:
        return ""
    first = digits(low / scale)
    return f"{least} {first}" if high is None else f"{first} .. {digits(high / scale)}"


def _mfu_range(record: ForecastRecord) -> str:
    most, least = record.utilisation(record.low_s), record.utilisation(record.high_s)
    if most is None:
        return ""
    return f"at most {100 * most:.3g}" if least is None else f"{100 * least:.3g} .. {100 * most:.3g}"


def _in_file(*names: str) -> list[Column]:
    return [Column(name, name) for name in names]


def of_forecasts() -> tuple[Column, ...]:
    """A record of forecast.jsonl: all that have `csv` are in forecast.csv, all with a rank in the table."""
    return (
        Column("target", "target", kind=TEXT, terminal=ALWAYS),
        *_in_file("experiment", "device_kind"),
        Column("point", "point", kind=TEXT, terminal=ALWAYS),
        *_in_file("strategy", "scaling", "arm", "devices", "global_batch"),
        Column("basis", "basis", shown=lambda row: BASES[row.basis], kind=TEXT, terminal=ALWAYS),
        Column(
            "status",
            "status",
            heading="state",
            kind=TEXT,
            style=lambda value: "ok" if value == "ok" else "no",
            terminal=ALWAYS,
        ),
        *_in_file("reason"),
        Column(
            "fits",
            "fits",
            shown=lambda row: FITS[row.fits],
            kind=TEXT,
            style=lambda value: "no" if value == FITS[False] else "",
            terminal=ALWAYS,
        ),
        Column("peak_bytes", "peak_bytes", gigabytes, heading="memory", kind=TEXT, terminal=ALWAYS),
        *_in_file("memory_bytes"),
        Column(
            "wire_bytes",
            "wire_bytes",
            shown=lambda row: gigabytes(row.wire_bytes) if row.status == "ok" else None,
            heading="sent per step",
            kind=TEXT,
            terminal=ALWAYS,
        ),
        Column(
            "grade",
            "grade",
            shown=lambda row: f"{row.grade}, plain attention" if row.only_plain else row.grade,
            kind=TEXT,
            terminal=ALWAYS,
        ),
        Column(
            "low_s",
            "low_s",
            shown=lambda row: band(row.low_s, row.high_s, 1e-3),
            heading="time, ms",
            kind=TEXT,
            terminal=ALWAYS,
            definition=DEFINITION,
        ),
        Column("MFU, %", _mfu_range, kind=TEXT, terminal=ALWAYS, definition=DEFINITION, csv=False),
        *_in_file(
            "scheduled_s", "high_s", "work_s", "communication_s", "host_s", "host_bytes", "bubble_s", "slowest_s"
        ),
        *_in_file("family", "runs", "flops", "peak_flop_per_s", "parameters", "kernels", "attention", "link"),
    )


def of_advice(lines: Sequence[Offer], job: TrainingBudget) -> tuple[Column, ...]:
    """The table of candidates. Always shown is what decides: hardware, grade, time and cost."""
    money = lines[0].currency if lines else ""
    unit, scale = clock(lines)

    def paid(line: Offer) -> str:
        most, least = line.most_examples_per_money, line.least_examples_per_money
        return band(most, None, least="at most") if least is None else band(least, most)

    defined = partial(Column, kind=TEXT, definition=ADVICE_DEFINITION)
    columns = (
        Column("hardware", "name", kind=TEXT, terminal=ALWAYS),
        Column("provider", "offer", kind=TEXT, terminal=5),
        Column("strategy", "way", kind=TEXT, terminal=4),
        Column("grade", "grade", kind=TEXT, terminal=ALWAYS),
        Column("in time", "meets_deadline", kind=TEXT, terminal=ALWAYS),
        defined(unit, lambda line: band(line.low_s, line.high_s, scale), terminal=ALWAYS),
        defined(money, lambda line: band(line.low_cost, line.high_cost), terminal=ALWAYS),
        defined("more devices", _saved_by(lines), terminal=9),
        Column("kWh", lambda line: band(line.low_joules, line.high_joules, KWH) or "unknown", kind=TEXT, terminal=6),
        defined(f"{job.unit} per {money}", paid, terminal=7),
        Column("memory", "peak_bytes", gigabytes, kind=TEXT, terminal=3),
        Column(f"{money} per hour", _hourly_price, kind=TEXT, terminal=8),
    )
    return columns if job.deadline_s is not None else tuple(each for each in columns if each.name != "in time")


def of_advice_file() -> list[Column]:
    """The columns of advise.csv."""
    return _in_file(*(each.name for each in dataclasses.fields(Offer)))


def clock(lines: Sequence[Offer]) -> tuple[str, float]:
    """(name of the time unit, its seconds): hours if all trainings end within two days, else days."""
    return ("days", DAY_S) if max((line.sort_s for line in lines), default=0.0) > 2 * DAY_S else ("hours", 3600.0)


def _hourly_price(line: Offer) -> str:
    return f"{line.price_per_device_hour:.3g}{' (old)' if line.price_is_old else ''}"


def _saved_by(lines: Sequence[Offer]) -> Callable[[Offer], str]:
    """What the devices of a candidate beyond the fewest of its kind save: "64 more save 0.04 %"."""
    fewest: dict[tuple[str, ...], Offer] = {}
    for line in sorted((line for line in lines if line.meets_deadline != NO), key=lambda line: line.devices):
        fewest.setdefault(line.family, line)

    def say(line: Offer) -> str:
        base = fewest.get(line.family)
        if base is None or line.devices <= base.devices or not base.sort_cost:
            return ""
        saved = 100 * (1 - line.sort_cost / base.sort_cost)
        what = f"save {saved:.2g} %" if saved > 0 else f"cost {-saved:.2g} % more"
        return f"{line.devices - base.devices} more {what}"

    return say

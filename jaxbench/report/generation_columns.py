# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The columns of generation, with `docs/metrics/generation.md` as their definition."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import partial

from jaxbench.analysis import decoding, quantities
from jaxbench.analysis.run_rows import Row
from jaxbench.report import table
from jaxbench.report.table import ALWAYS, DISTINCT, TEXT, Column, Get, Kind, Position
from jaxbench.statistics.bootstrap import Estimate

D, ID = Kind.DECODE, Position.IDENTITY


def columns() -> Iterator[Column]:
    """All of them, in the order of a table."""
    yield from (dataclasses.replace(each, definition="generation") for each in (*_settings(), *_measured()))
    for part in decoding.PARTS:
        name = f"token_{part.replace(' ', '_')}_s"
        yield Column(name, _number(name), unit="s", bounds=True, definition="time-of-a-token")


def _settings() -> Iterator[Column]:
    """Columns of what was asked for."""
    # In the file it is global_batch. On a terminal it tells the lines of one strategy apart.
    yield Column("requests", lambda row: row.point.global_batch, csv=False, on=D, at=ID, terminal=DISTINCT)
    named = partial(Column, on=D, kind=TEXT, at=ID)
    yield named("weight_format", _lever_value("weights"), heading="weights", terminal=DISTINCT)
    yield named("cache_format", _lever_value("cache"), heading="cache", terminal=DISTINCT)
    yield named("cache_layout", _lever_value("cache_layout"), heading="layout")
    yield named("attention_kernel", _lever_value("attention"), heading="attention")
    tokens = partial(Column, unit="tokens")
    yield tokens("context_tokens", _fact("context"), heading="context", on=D, at=ID, terminal=DISTINCT)
    yield tokens("input_tokens", _fact("input"))
    yield tokens("output_tokens", _fact("output"))
    size = partial(quantities.scaled, unit="B")
    yield Column("weight_bytes", _fact("weight_bytes"), size, unit="bytes", heading="weights of a device", on=D)
    yield Column("cache_bytes", _fact("cache_bytes"), size, unit="bytes", heading="cache of a device", on=D)


def _measured() -> Iterator[Column]:
    """Columns of measured times and rates."""
    times, rates = partial(_estimate, table.milliseconds, "s"), partial(_estimate, _rate_text, "tokens/s")
    yield times("ttft_s", "TTFT, ms", terminal=6)
    yield times("tpot_s", "TPOT, ms", terminal=ALWAYS, interval=3)
    yield times("tpot_scan_s", "in a scan", terminal=5)
    yield rates("tokens_per_s_device", "tokens/s per device", short="/s/device", terminal=7)
    yield rates("tokens_per_s_user", "tokens/s per user", short="/s/user", terminal=6)
    bandwidth = partial(_estimate, _bytes_rate, "bytes/s")
    yield bandwidth("decode_bytes_per_s", "bytes/s per device", short="bytes/s", terminal=2)
    yield _estimate(table.share, "1", "triad_share", "% of triad", terminal=3)
    yield _estimate(table.ratio, "USD", "cost_per_million_tokens", "USD per 1M tokens", short="USD/1M", terminal=4)
    yield Column("joules_per_token", _number("joules_per_token.value"), "{:.3g}".format, unit="J", heading="J", on=D)


def _estimate(show: Callable[[Estimate], str], unit: str, name: str, heading: str, **more: int | str) -> Column:
    """A number with its interval, which the terminal drops first."""
    shown = {"interval": 1, **more}
    return Column(name, _number(name), show, unit=unit, bounds=True, heading=heading, on=D, **shown)  # type: ignore[arg-type]


def _lever_value(name: str) -> Get:
    return lambda row: row.point.levers.get(name) if decoding.generates(row) else None


def _fact(name: str) -> Get:
    """A whole number of the step other than its time."""

    def fact(row: Row) -> int | None:
        value = row.point.fact(name)
        return int(value) if decoding.generates(row) and math.isfinite(value) else None

    return fact


def _number(path: str) -> Get:
    """A number of `Row.derived`, or its value alone."""
    name, _, alone = path.partition(".")

    def number(row: Row) -> Estimate | float | None:
        found = row.derived.get(name)
        return found.value if found is not None and alone else found

    return number


def _rate_text(value: Estimate) -> str:
    return quantities.interval(value, lambda each: quantities.scaled(each, "").replace(" ", ""))


def _bytes_rate(value: Estimate) -> str:
    return quantities.interval(value, quantities.per_second)

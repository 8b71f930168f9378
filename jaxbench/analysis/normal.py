# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Is this normal? Compares the all-reduce bus bandwidth with published results for the same devices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.quantities import devices as devices_word
from jaxbench.analysis.quantities import interval, payload, per_second, percent
from jaxbench.catalog import published

LOW, HIGH = 0.8, 1.2  # between these shares of the published value, a result is normal
LARGE_BYTES = 2**20  # payloads of at least this size are bandwidth-bound


@dataclass(frozen=True, kw_only=True)
class PublishedShare:
    """One payload: the measured and the published bus bandwidth, and their ratio."""

    payload_bytes: int
    busbw: Estimate
    published: float
    ratio: Estimate


@dataclass(frozen=True, kw_only=True)
class PublishedVerdict:
    """All-reduce of one dtype in one group of devices, against a published series.

    Attributes:
      series: the column of the published table; "" if none applies, and then `why_none` gives the reason.
      shares: one for each payload within the range of the series.
      word: normal | low | high | cannot tell, at the largest common payload.
      lowest, highest: the ratios of payloads of at least LARGE_BYTES; NaN without such a payload.
      slower_series, all_series: how many published series are slower at the largest common payload, and how many exist.
      percentile: 100 x slower_series / all_series.
    """

    dtype: str
    devices: int
    series: str = ""
    shares: tuple[PublishedShare, ...] = ()
    word: str = ""
    lowest: float = math.nan
    highest: float = math.nan
    slower_series: int = 0
    all_series: int = 0
    percentile: float = math.nan
    why_none: str = ""

    @property
    def sentence(self) -> str:
        none = f"No verdict on whether this is normal: {self.why_none}."
        return none if self.why_none else _sentence(self)


def judge(view: str, rows: list[CaseRow], *, manifest: dict[str, Any]) -> list[PublishedVerdict]:
    """A verdict for each dtype and group of devices with a published series, or one verdict with the reason for none.

    Only rows that passed every gate count. Views other than "collectives" have no verdict.
    """
    if view != "collectives":
        return []
    kind = str(manifest.get("device_kind", ""))
    reduced = [row for row in rows if row.point.op == "all_reduce"]
    if not reduced:
        return [_none("", 0, "no all_reduce was measured")]
    groups: dict[tuple[str, int], list[CaseRow]] = {}
    for row in reduced:
        if row.headline and row.busbw.known and _whole_node(row):
            groups.setdefault((row.point.dtype, row.point.devices), []).append(row)
    if not groups:
        return [_none("", 0, _why_none(reduced, kind))]
    known = {key: column for key in groups if (column := published.allreduce_column(kind, key[1])) is not None}
    if not known:
        most = max(devices for _, devices in groups)
        return [_none("", most, published.why_no_allreduce(kind, most))]
    table = published.allreduce()
    return [_verdict(*key, column, groups[key], table) for key, column in known.items()]


def _whole_node(row: CaseRow) -> bool:
    """Whether the group is all devices of one node. Groups along an axis of a 2-D mesh would share the links."""
    return row.point.mesh == str(row.point.devices) and row.point.processes == 1


def _why_none(rows: list[CaseRow], kind: str) -> str:
    """Why no row can be compared. An unknown device is named first, because better rows would not help."""
    most = max(row.point.devices for row in rows)
    if published.allreduce_column(kind, most) is None:
        return published.why_no_allreduce(kind, most)
    return "no all_reduce over one whole node passed every gate"


def _none(dtype: str, devices: int, why: str) -> PublishedVerdict:
    return PublishedVerdict(dtype=dtype, devices=devices, why_none=why)


def _verdict(dtype: str, devices: int, column: str, rows: list[CaseRow], table: pd.DataFrame) -> PublishedVerdict:
    shares = tuple(
        _share(row, float(interpolate(table[column], row.point.payload_bytes or 0)))
        for row in sorted(rows, key=lambda row: row.point.payload_bytes or 0)
        if table.index[0] <= (row.point.payload_bytes or 0) <= table.index[-1]
    )
    if not shares:
        ends = f"{payload(table.index[0])} to {payload(table.index[-1])}"
        return _none(dtype, devices, f"no payload of {dtype} is in the published range, {ends}")
    last = shares[-1]
    large = [share.ratio.value for share in shares if share.payload_bytes >= LARGE_BYTES]
    others = [float(interpolate(table[name], last.payload_bytes)) for name in table.columns]
    slower = sum(value < last.busbw.value for value in others)
    return PublishedVerdict(
        dtype=dtype, devices=devices, series=column, shares=shares, word=word(last.ratio),
        lowest=min(large, default=math.nan), highest=max(large, default=math.nan), slower_series=slower,
        all_series=len(others), percentile=100 * slower / len(others),
    )  # fmt: skip


def interpolate(series: pd.Series, payload_bytes: float) -> float:
    """The value of the series at a payload inside its range, by linear interpolation of logarithms."""
    x, y = np.log(series.index.to_numpy(dtype=float)), np.log(series.to_numpy(dtype=float))
    return float(np.exp(np.interp(math.log(payload_bytes), x, y)))


def _share(row: CaseRow, value: float) -> PublishedShare:
    busbw = row.busbw
    ratio = Estimate(value=busbw.value / value, lo=busbw.lo / value, hi=busbw.hi / value)
    return PublishedShare(payload_bytes=row.point.payload_bytes or 0, busbw=busbw, published=value, ratio=ratio)


def word(ratio: Estimate = UNKNOWN) -> str:
    """normal, low or high if the whole interval is in that range; else, or without an interval, cannot tell."""
    if not ratio.has_interval:
        return "cannot tell"
    if ratio.hi < LOW:
        return "low"
    if ratio.lo > HIGH:
        return "high"
    return "normal" if ratio.lo >= LOW and ratio.hi <= HIGH else "cannot tell"


def _sentence(verdict: PublishedVerdict) -> str:
    last = verdict.shares[-1]
    words = {
        "cannot tell": "Inconclusive whether this is normal"
        if last.ratio.has_interval
        else "Unknown whether this is normal, without an interval (fewer than 3 rounds)",
        "normal": "This is normal",
        "low": "This is lower than normal",
        "high": "This is higher than normal",
    }
    text = (
        f"{words[verdict.word]}: at {payload(last.payload_bytes)} all_reduce {verdict.dtype} on "
        f"{devices_word(verdict.devices)} has {interval(last.busbw, per_second)} of bus bandwidth, "
        f"{percent(last.ratio)} of the {per_second(last.published)} published for {verdict.series}"
    )
    if math.isfinite(verdict.lowest):
        span = f"{100 * verdict.lowest:.0f} to {100 * verdict.highest:.0f} %"
        text += f"; from {payload(LARGE_BYTES)} on it is {span} of the series"
    rank = f"{verdict.slower_series} of the {verdict.all_series} published series of all devices are slower there"
    source = published.read("allreduce_busbw").project
    return f"{text}. {rank} (percentile {verdict.percentile:.0f}). They are single measurements by others ({source})."

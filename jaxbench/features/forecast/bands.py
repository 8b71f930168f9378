# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The band of a forecast: what published runs took over their forecasts, and how much a step differs from those runs.

Large matrix products run at a rate that was measured many times. The rest of a step (bytes, attention, messages) is
less certain: single kernels and messages took 0.6 to 2.1 times what a forecast counts for them
(`catalog/slow_parts.csv`). In the runs behind a family's band the rest is a quarter to a half of the step. If it is
more, the band reaches as much further as the additional rest may take by those measurements. So a small model has a
wide band. No number here is fitted to a training.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.catalog import hardware
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.features.forecast.schedule import Times

WIDER = "so the band is wider than theirs"  # in the sentence about a wider band
_WIDE = (
    "{rest:.0f} % of the step is not large matrix products, and {usual:.0f} % in the published runs of its family, "
    f"{WIDER}: by what single kernels and messages took."
)
# The part of a step that each method of estimating counts for. Products are divided by `ForecastRecord.large_s`.
_PARTS = {"memory": "memory", "unknown": "memory", "kernel": "attention"}
_PRODUCTS = ("cycles", "roofline")


@dataclass(frozen=True, kw_only=True)
class Band:
    """low, high: over the forecast. rest: the share of the step that is not large products. usual: that of the runs
    behind the family's band. wider: what the difference adds to the band's width."""

    low: float
    high: float
    rest: float
    usual: float
    wider: float


@dataclass(frozen=True)
class Range:
    """The mean of what the parts of the rest took in published measurements, over what a forecast counts."""

    fastest: float
    slowest: float


def of(forecast: ForecastRecord, times: Times, middle_s: float) -> Band:
    """The band of a forecast of `middle_s` seconds."""
    known, rest = hardware.forecast_band(forecast.family), rest_share(forecast.large_s, middle_s)
    found = rest_range(forecast, times, middle_s)
    low, high = widened(known.low, known.high, rest - known.rest, found)
    return Band(low=low, high=high, rest=rest, usual=known.rest, wider=(high - low) - (known.high - known.low))


def widened(low: float, high: float, more: float, rest: Range) -> tuple[float, float]:
    """A family's band for a step with `more` rest, as a share of the step, than the runs of the family."""
    more = max(0.0, more)
    return low - more * (1 - rest.fastest), high + more * (rest.slowest - 1)


def rest_share(large_s: float, seconds: float) -> float:
    """The share of a step that is not large products; 0 if no product is known."""
    return max(0.0, 1 - large_s / seconds) if large_s and seconds else 0.0


def rest_range(forecast: ForecastRecord, times: Times, middle_s: float) -> Range:
    """The range of the parts of a step that are no products, weighted by their forecast seconds."""
    platform = "tpu" if forecast.family == "tpu" else "gpu"
    seconds = {"messages": max(0.0, middle_s - times.work_s)}
    for how, part in _PARTS.items():
        seconds[part] = seconds.get(part, 0.0) + forecast.seconds_by.get(how, 0.0)
    ranges = {part: hardware.part_range(platform, part) for part in seconds}
    # Small products have rates of their own (`work.product_s`), which agree with those of single products.
    products_s = sum(forecast.seconds_by.get(how, 0.0) for how in _PRODUCTS)
    small_s = max(0.0, products_s - forecast.large_s)
    total = small_s + sum(seconds.values())
    if not total:
        return Range(1.0, 1.0)
    return Range(
        (small_s + sum(ranges[part].fastest * spent for part, spent in seconds.items())) / total,
        (small_s + sum(ranges[part].slowest * spent for part, spent in seconds.items())) / total,
    )


def sentence(band: Band) -> str:
    """What a page says of a wider band."""
    return _WIDE.format(rest=100 * band.rest, usual=100 * band.usual)

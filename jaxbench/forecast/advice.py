# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which hardware for a training of known size: time, cost and energy of each forecast at each price, sorted.

Every number is a band with the ends of the forecast's, or a bound like it; the two grades are sorted apart, because a
bound that is lower than a band says nothing about which of them is cheaper.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.catalog.prices import Price
from jaxbench.records.forecasts import AT_BEST, ESTIMATED, ForecastRecord

HOUR_S, DAY_S = 3600.0, 86400.0
_EQUAL = 1e-3  # costs that differ by less are equal: the last step of a training is begun, whatever its size
YES, PERHAPS, NO = "yes", "perhaps", "no"
GRADES = (ESTIMATED, AT_BEST)
Band = tuple[float, float | None]  # the upper end of a bound is None


@dataclass(frozen=True, kw_only=True)
class TrainingBudget:
    """examples: that are to be trained on. tokens: of one of them, 0 where an example is no text. unit: "images"."""

    examples: float
    tokens: int = 0
    unit: str = "examples"
    deadline_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One forecast at one price, for one job. The forecast fits, and has a time."""

    forecast: ForecastRecord
    price: Price
    job: TrainingBudget

    @property
    def name(self) -> str:
        """ "v5p x 64" """
        return f"{self.forecast.target.partition(':')[0]} x {self.forecast.devices}"

    @property
    def steps(self) -> int:
        return math.ceil(self.job.examples / self.forecast.global_batch)

    @property
    def seconds(self) -> Band:
        """Of all steps; nothing is added for starts, input, evaluation or failures."""
        assert self.forecast.low_s is not None
        high = self.forecast.high_s
        return self.steps * self.forecast.low_s, None if high is None else self.steps * high

    @property
    def cost(self) -> Band:
        return self._times(self.forecast.devices * self.price.per_device_hour / HOUR_S)

    @property
    def joules(self) -> Band | None:
        """At the most that the devices draw; None: not published."""
        return None if self.price.watts is None else self._times(self.forecast.devices * self.price.watts)

    @property
    def examples_per_money(self) -> Band:
        """What one unit of money pays for: (at most, at least); None instead of at least, for a bound."""
        low, high = self.cost
        trained = self.steps * self.forecast.global_batch
        return trained / low, None if high is None else trained / high

    @property
    def meets(self) -> str:
        """Whether it ends by the deadline: yes (the whole band does) | perhaps | no; "" without one."""
        if self.job.deadline_s is None:
            return ""
        low, high = self.seconds
        if low > self.job.deadline_s:
            return NO
        return YES if high is not None and high <= self.job.deadline_s else PERHAPS

    @property
    def at(self) -> tuple[float, float]:
        """(seconds, cost) that it is sorted and drawn by: the slow end of a band, or the bound."""
        (low_s, high_s), (low, high) = self.seconds, self.cost
        return (low_s if high_s is None else high_s), (low if high is None else high)

    def _times(self, rate: float) -> Band:
        low, high = self.seconds
        return low * rate, None if high is None else high * rate


def candidates(forecasts: Iterable[ForecastRecord], prices: Sequence[Price], job: TrainingBudget) -> list[Candidate]:
    """Every forecast with a time that fits, at each of the prices."""
    return [
        Candidate(forecast=each, price=price, job=job)
        for each in forecasts for price in prices if each.low_s is not None and each.fits
    ]  # fmt: skip


def ranked(found: Iterable[Candidate]) -> list[Candidate]:
    """Within the deadline first, estimates before bounds, then by cost."""
    return sorted(found, key=_rank)


def _rank(each: Candidate) -> tuple[Any, ...]:
    """Ends with names, so that ties have an order."""
    grade = each.forecast.grade != ESTIMATED
    return each.meets == NO, grade, each.at[1], each.at[0], each.name, each.price.provider, each.forecast.point


def frontier(found: Iterable[Candidate], grade: str) -> list[Candidate]:
    """Those of one grade that cost less than all that are as fast, by a thousandth or more, from the fastest on."""
    kept: list[Candidate] = []
    for each in sorted(
        (each for each in found if each.forecast.grade == grade), key=lambda each: (*each.at, each.name)
    ):
        if not kept or each.at[1] < (1 - _EQUAL) * kept[-1].at[1]:
            kept.append(each)
    return kept


def best(found: Iterable[Candidate]) -> list[Candidate]:
    """Of each device, provider, strategy and arm the first."""
    kept: dict[tuple[str, ...], Candidate] = {}
    for each in found:
        of = each.forecast
        kept.setdefault((each.price.device, each.price.provider, of.strategy, of.arm), each)
    return list(kept.values())


def lines(found: Sequence[Candidate], today: datetime.date) -> list[dict[str, Any]]:
    """The candidates of advise.json and advise.csv, in their order. Units are in the names; money is in `currency`.

    sort_s, sort_cost: what a candidate is sorted and drawn by. frontier, best: whether it is in these lists.
    """
    on_frontier = {id(each) for grade in GRADES for each in frontier(found, grade)}
    first = {id(each) for each in best(found)}
    return [{**_line(each, today), "frontier": id(each) in on_frontier, "best": id(each) in first} for each in found]


def _line(each: Candidate, today: datetime.date) -> dict[str, Any]:
    of, price = each.forecast, each.price
    (low_s, high_s), (cost, cost_high), (joules, joules_high) = each.seconds, each.cost, each.joules or (None, None)
    most, least = each.examples_per_money
    return {
        "name": each.name, "target": of.target, "device": price.device, "devices": of.devices,
        "provider": price.provider, "strategy": of.strategy, "arm": of.arm, "global_batch": of.global_batch,
        "steps": each.steps, "basis": of.basis, "grade": of.grade, "peak_bytes": of.peak_bytes,
        "memory_bytes": of.memory_bytes, "low_s": low_s, "high_s": high_s, "meets_deadline": each.meets,
        "low_cost": cost, "high_cost": cost_high, "currency": price.currency, "low_joules": joules,
        "high_joules": joules_high, "most_examples_per_money": most, "least_examples_per_money": least,
        "sort_s": each.at[0], "sort_cost": each.at[1], "price_per_device_hour": price.per_device_hour,
        "price_date": price.date.isoformat(), "price_is_old": price.old(today), "price_source": price.source,
        "watts": price.watts,
    }  # fmt: skip

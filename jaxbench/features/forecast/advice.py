# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ranks hardware for a training of known size: time, cost and energy of each forecast at each price.

Every number is a range, from the ends of the forecast's range, or a lower bound if the forecast is a bound. The two
grades are sorted separately, because a bound below a range does not show which of the two is cheaper.

Prices are from `catalog/prices.csv`, or from a file with the same columns. Each line has its source, its date, its kind
and its unit. Prices are never converted from one currency into another.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jaxbench.catalog import hardware
from jaxbench.digits import digits
from jaxbench.errors import UserError, did_you_mean, present
from jaxbench.features.forecast.forecasts import AT_BEST, ESTIMATED, ForecastRecord
from jaxbench.features.forecast.power import PowerShare
from jaxbench.records import reading

HOUR_S, DAY_S = 3600.0, 86400.0
_EQUAL = 1e-3  # relative: smaller differences in cost count as equal, because the number of steps is rounded up
HARDLY = 0.01  # relative: a smaller saving is not worth more devices
YES, PERHAPS, NO = "yes", "perhaps", "no"
GRADES = (ESTIMATED, AT_BEST)
Band = tuple[float, float | None]  # (low, high); for a bound, high is None
COLUMNS = ("device", "provider", "price", "unit", "date", "watts", "source")  # that a file of prices must have
KINDS = ("on demand", "spot", "community", "own")
OLD = datetime.timedelta(days=365)
_UNIT = re.compile(r"([A-Z]{3})/device-hour")


@dataclass(frozen=True, kw_only=True)
class Price:
    """One line of a file of prices.

    Attributes:
      device: a row of hardware.csv.
      per_device_hour: in `currency`, an ISO 4217 code.
      date: when the source gave this price.
      kind: on demand | spot (may end at any time) | community (rented from other people) | own.
      most: the most devices of one rental; None: no limit.
      watts: the maximum power of one device, without its host and its cooling; None: not published.
    """

    device: str
    provider: str
    per_device_hour: float
    currency: str
    date: datetime.date
    watts: float | None
    source: str
    kind: str = "own"
    most: int | None = None

    def old(self, today: datetime.date) -> bool:
        """Whether the price is more than a year old."""
        return today - self.date > OLD


def read_prices(path: Path | None = None) -> list[Price]:
    """The catalogue's prices, or those of a file. Raises UserError that names the wrong line."""
    if path is None:
        name, text = "prices.csv", resources.files("jaxbench.catalog").joinpath("prices.csv").read_bytes()
    else:
        name = str(path)
        text = reading.data(path, "give a CSV file of prices with --prices.")
    table = reading.csv_table(name, text, COLUMNS, f"a file of prices has {','.join(COLUMNS)}.")
    prices = [_price(f"{name}, line {line}", row) for line, row in table]
    if not prices:
        raise UserError(f"{name} has no prices: write a line for each device, with {','.join(COLUMNS)}.")
    currencies = sorted({price.currency for price in prices})
    if len(currencies) > 1:  # rates of exchange change daily, and a ranking would change with them
        raise UserError(f"{name} has prices in {' and '.join(currencies)}: give all in one currency, such as USD.")
    return prices


def _price(where: str, row: dict[str, str]) -> Price:
    """A price from a line of the file. where: file and line. Raises UserError for a bad field."""
    row = {name: text.strip() for name, text in row.items()}
    if row["device"] not in hardware.names():
        raise UserError(
            f"{where}: device '{row['device']}' is unknown: {did_you_mean(row['device'], hardware.names())}"
        )
    unit = _UNIT.fullmatch(row["unit"])
    if unit is None:
        raise UserError(
            f"{where}: unit '{row['unit']}' is not the unit of a price: write USD/device-hour, for example."
        )
    for name in ("provider", "source"):
        if not row[name]:
            raise UserError(f"{where} has no {name}: every price names where it is from.")
    try:
        date = datetime.date.fromisoformat(row["date"])
    except ValueError as error:
        raise UserError(f"{where}: date '{row['date']}' is not a day: write 2026-11-24, for example.") from error
    kind, most = row.get("kind") or "own", row.get("most", "")
    if kind not in KINDS:
        raise UserError(f"{where}: kind '{kind}' is none of {', '.join(KINDS)}: write on demand, for example.")
    return Price(
        device=row["device"],
        provider=row["provider"],
        per_device_hour=_positive_number(where, "price", row["price"]),
        kind=kind,
        most=int(_positive_number(where, "most", most)) if most else None,
        currency=unit[1],
        date=date,
        source=row["source"],
        watts=_positive_number(where, "watts", row["watts"]) if row["watts"] else None,
    )


def _positive_number(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(f"{where}: {name} '{text}' is not a number above 0: write 2.90, for example.")
    return value


@dataclass(frozen=True, kw_only=True)
class TrainingBudget:
    """The size of a training. examples: how many to train on. tokens: per example; 0 if examples are not text. unit:
    what an example is, such as "images"."""

    examples: float
    tokens: int = 0
    unit: str = "examples"
    deadline_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A row of advise.json and advise.csv: a candidate in numbers. Units are in the names; money is in `currency`.

    sort_s, sort_cost: as `Candidate.at`. frontier, best: whether it is in these lists.
    """

    name: str
    target: str
    device: str
    devices: int
    provider: str
    kind: str
    strategy: str
    arm: str
    global_batch: int
    steps: int
    basis: str
    grade: str
    attention: str = ""
    peak_bytes: int | None
    memory_bytes: int | None
    low_s: float | None
    high_s: float | None
    meets_deadline: str
    low_cost: float | None
    high_cost: float | None
    currency: str
    low_joules: float | None
    high_joules: float | None
    most_examples_per_money: float | None
    least_examples_per_money: float | None
    sort_s: float
    sort_cost: float
    price_per_device_hour: float
    price_date: str
    price_is_old: bool
    price_source: str
    watts: float | None
    frontier: bool
    best: bool
    drawn: float = PowerShare().value  # the share of `watts` at which energy is counted, and where it is from
    drawn_source: str = PowerShare().source

    @property
    def offer(self) -> str:
        """The provider and the kind of its price: "RunPod, spot"."""
        return f"{self.provider}, {self.kind}"

    @property
    def way(self) -> str:
        """The strategy and the arm."""
        return " ".join(filter(None, (self.strategy, self.arm)))

    @property
    def estimated(self) -> bool:
        """Whether its numbers are ranges; else they are bounds."""
        return self.grade == ESTIMATED

    @property
    def family(self) -> tuple[str, ...]:
        """What candidates that differ in their devices have in common."""
        return self.device, self.provider, self.kind, self.strategy, self.arm, self.grade


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One forecast at one price, for one job. The forecast fits into memory and has a time."""

    forecast: ForecastRecord
    price: Price
    job: TrainingBudget
    share: PowerShare = PowerShare()

    @property
    def name(self) -> str:
        """The hardware in words: "v5p x 64"."""
        return f"{self.forecast.target.partition(':')[0]} x {self.forecast.devices}"

    @property
    def steps(self) -> int:
        return math.ceil(self.job.examples / self.forecast.global_batch)  # a part of a step costs a whole one

    @property
    def seconds(self) -> Band:
        """The seconds of all steps, without starts, input, evaluation or failures."""
        low, high = present(self.forecast.low_s), self.forecast.high_s
        return self.steps * low, None if high is None else self.steps * high

    @property
    def cost(self) -> Band:
        return self._seconds_times(self.forecast.devices * self.price.per_device_hour / HOUR_S)

    @property
    def joules(self) -> Band | None:
        """The energy at a measured or published share of the devices' maximum power; None: that is not published."""
        if self.price.watts is None:
            return None
        return self._seconds_times(self.forecast.devices * self.share.value * self.price.watts)

    @property
    def examples_per_money(self) -> Band:
        """The examples per unit of money: (at most, at least). For a bound, "at least" is None."""
        low, high = self.cost  # reversed: the lowest cost gives the most examples
        trained = self.steps * self.forecast.global_batch
        return trained / low, None if high is None else trained / high

    @property
    def meets(self) -> str:
        """Whether it ends by the deadline: yes (the whole range does) | perhaps | no; "" without a deadline."""
        if self.job.deadline_s is None:
            return ""
        low, high = self.seconds
        if low > self.job.deadline_s:  # even at best
            return NO
        return YES if high is not None and high <= self.job.deadline_s else PERHAPS

    @property
    def at(self) -> tuple[float, float]:
        """(seconds, cost) for sorting and drawing: the slow end of the range, or the bound."""
        (low_s, high_s), (low, high) = self.seconds, self.cost
        # The slow end, so that a wide band is no advantage.
        return (low_s if high_s is None else high_s), (low if high is None else high)

    def _seconds_times(self, rate: float) -> Band:
        low, high = self.seconds
        return low * rate, None if high is None else high * rate


def candidates(
    forecasts: Iterable[ForecastRecord],
    prices: Sequence[Price],
    job: TrainingBudget,
    shares: Mapping[str, PowerShare] = MappingProxyType({}),
) -> list[Candidate]:
    """Every forecast that fits and has a time, at each of the prices. shares: measured ones, by device."""
    return [
        Candidate(forecast=each, price=price, job=job, share=shares.get(price.device, PowerShare()))
        for each in forecasts
        for price in prices
        if each.low_s is not None and each.fits and each.devices <= (price.most or each.devices)
    ]


def ranked(options: Iterable[Candidate]) -> list[Candidate]:
    """The candidates sorted: within the deadline first, estimates before bounds, then by cost. Ties by names."""

    def rank(each: Candidate) -> tuple[Any, ...]:
        grade = each.forecast.grade != ESTIMATED  # a lower bound proves nothing, so it never comes before an estimate
        return each.meets == NO, grade, each.at[1], each.at[0], each.name, each.price.provider, each.forecast.point

    return sorted(options, key=rank)


def frontier(options: Iterable[Candidate], grade: str) -> list[Candidate]:
    """The Pareto frontier of one grade, fastest first: each candidate costs at least a thousandth less than all faster
    ones."""
    kept: list[Candidate] = []
    for each in sorted(
        (each for each in options if each.forecast.grade == grade), key=lambda each: (*each.at, each.name)
    ):
        if not kept or each.at[1] < (1 - _EQUAL) * kept[-1].at[1]:
            kept.append(each)
    return kept


def best(options: Iterable[Candidate]) -> list[Candidate]:
    """Of each device, kind of price, strategy and arm the cheapest candidate, or one of fewer devices that costs hardly
    more: a thousand devices for a saving of 0.04 % are no advice."""
    families: dict[tuple[str, ...], list[Candidate]] = {}
    for each in options:  # ranked, so the first one is the cheapest
        of = each.forecast
        families.setdefault((each.price.device, each.price.kind, of.strategy, of.arm), []).append(each)
    return [_fewest(family) for family in families.values()]


def _fewest(family: Sequence[Candidate]) -> Candidate:
    """The candidate of the fewest devices among those that cost hardly more than the first."""
    first = family[0]
    near = [
        each
        for each in family
        if (each.meets, each.forecast.grade) == (first.meets, first.forecast.grade)
        and each.at[1] <= (1 + HARDLY) * first.at[1]
    ]
    return min(near, key=lambda each: (each.forecast.devices, each.at[1]))


def lines(options: Sequence[Candidate], today: datetime.date) -> list[Offer]:
    """The rows of the candidates, in their order."""
    on_frontier = {id(each) for grade in GRADES for each in frontier(options, grade)}
    first = {id(each) for each in best(options)}
    return [_line(each, today, frontier=id(each) in on_frontier, best=id(each) in first) for each in options]


def _line(each: Candidate, today: datetime.date, *, frontier: bool, best: bool) -> Offer:
    """The candidate as a row of the tables. today: for the age of its price."""
    of, price = each.forecast, each.price
    (low_s, high_s), (cost, cost_high), (joules, joules_high) = each.seconds, each.cost, each.joules or (None, None)
    most, least = each.examples_per_money
    return Offer(
        name=each.name,
        target=of.target,
        device=price.device,
        devices=of.devices,
        provider=price.provider,
        kind=price.kind,
        strategy=of.strategy,
        arm=of.arm,
        global_batch=of.global_batch,
        steps=each.steps,
        basis=of.basis,
        grade=of.grade,
        attention=of.attention,
        peak_bytes=of.peak_bytes,
        memory_bytes=of.memory_bytes,
        low_s=low_s,
        high_s=high_s,
        meets_deadline=each.meets,
        low_cost=cost,
        high_cost=cost_high,
        currency=price.currency,
        low_joules=joules,
        high_joules=joules_high,
        most_examples_per_money=most,
        least_examples_per_money=least,
        sort_s=each.at[0],
        sort_cost=each.at[1],
        price_per_device_hour=price.per_device_hour,
        price_date=price.date.isoformat(),
        price_is_old=price.old(today),
        price_source=price.source,
        watts=price.watts,
        drawn=each.share.value,
        drawn_source=each.share.source,
        frontier=frontier,
        best=best,
    )


@dataclass(frozen=True, kw_only=True)
class Growth:
    """What more devices of one host bring, for one target, strategy and arm.

    Attributes:
      link: the link within the host, in words; "" for NVLink.
      devices: ascending, from the fewest that fit.
      speed: the throughput over that of the fewest devices with this link.
      by_link: the same with each link that the host may have.
      bound: whether the forecasts are bounds.
    """

    target: str
    strategy: str
    arm: str
    link: str
    devices: tuple[int, ...]
    speed: tuple[float, ...]
    by_link: dict[str, tuple[float, ...]]
    bound: bool

    @property
    def too_many(self) -> int | None:
        """The first number of devices that costs more than it brings: compared with the number before it, the price of
        an example grows by a larger factor than the throughput. None: none does."""
        for (n, slow), (m, fast) in itertools.pairwise(zip(self.devices, self.speed, strict=True)):
            faster = fast / slow
            # The price of an example grows by (m / n) / faster. A doubling pays as long as it brings 1.41 times.
            if (m / n) / faster > faster:
                return m
        return None


def gathers(records: Sequence[ForecastRecord]) -> list[str]:
    """A sentence for each target on which several values of the lever `gather` were forecast: the fastest that fits."""
    groups: dict[tuple[str, ...], dict[str, ForecastRecord]] = {}
    for record in records:
        words = record.arm.split(", ")
        ways = [word for word in words if word.startswith("gather=")]
        if ways and record.scheduled_s and record.peak_bytes:
            rest = ", ".join(word for word in words if word not in ways)
            groups.setdefault((record.target, record.strategy, rest), {})[ways[0]] = record
    lines = []
    for (target, strategy, rest), found in groups.items():
        fitting = {way: record for way, record in found.items() if record.fits}
        if len(found) < 2 or not fitting:
            continue
        best = min(fitting, key=lambda way: fitting[way].scheduled_s or 0.0)
        others = ", ".join(f"{way}: {_way_summary(record)}" for way, record in found.items() if way != best)
        named = ", ".join(filter(None, (target, strategy, rest)))
        lines.append(f"{named}: {best} is the fastest that fits, with {_way_summary(found[best])} ({others}).")
    return lines


def _way_summary(record: ForecastRecord) -> str:
    size = f"{digits((record.peak_bytes or 0) / 1e9)} GB a device"
    return f"{digits(1e3 * (record.scheduled_s or 0.0))} ms a step, {size}" + ("" if record.fits else ", too large")


def growth(forecasts: Iterable[ForecastRecord], host: int) -> list[Growth]:
    """What more devices of a host with `host` GPUs bring, for each strategy and arm with two counts or more."""
    families: dict[tuple[str, str], list[ForecastRecord]] = {}
    for each in sorted(forecasts, key=lambda each: each.devices):
        if each.fits and each.scheduled_s and each.devices <= host:
            families.setdefault((each.strategy, each.arm), []).append(each)
    made = []
    for (strategy, arm), line in families.items():
        if len(line) < 2 or not line[-1].by_link:  # nothing to compare, or a TPU, which has one kind of link
            continue
        base = line[0].global_batch / (line[0].scheduled_s or math.inf)

        def speed(name: str, line: Sequence[ForecastRecord] = line, base: float = base) -> tuple[float, ...]:
            seconds = [each.by_link.get(name) or each.scheduled_s or math.inf for each in line]
            return tuple(each.global_batch / took / base for each, took in zip(line, seconds, strict=True))

        made.append(
            Growth(
                target=line[0].target.partition(":")[0],
                strategy=strategy,
                arm=arm,
                link=line[-1].link,
                devices=tuple(each.devices for each in line),
                speed=speed(""),
                by_link={name: speed(name) for name in line[-1].by_link},
                bound=line[-1].grade != ESTIMATED,
            )
        )
    return made

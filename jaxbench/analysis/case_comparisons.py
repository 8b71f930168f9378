# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares cases over sizes, implementations and parts of a call, and with published results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from jaxbench.analysis.quantities import devices as devices_word
from jaxbench.analysis.quantities import interval, payload, per_second, percent, scaled, seconds, times
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.digits import counted, digits
from jaxbench.records.manifest import Manifest
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import MIN_ROUNDS, UNKNOWN, Estimate, estimate, over_seeds

VIEWS = ("curves", "versus")  # the views that compare implementations over sizes
RISING = 1.1  # above this ratio between the rates of the two largest sizes, the throughput has not levelled off
WHOLE, WAITED, START = "jit+copies", "waited", "start"  # implementations (workloads/kernels/versus.py)
SPLIT_NAMES = ("transfer", "start", "work")
BASE = ("numpy", "cpu", 1)  # (implementation, platform, cores) of the way that the others are compared with
STEPS = "steps"  # a key of the outcome of a training
LOW, HIGH = 0.8, 1.2  # between these shares of the published value, a result is normal
LARGE_BYTES = 2**20  # payloads of at least this size are bandwidth-bound
# What each comparison says, by its verdict.
CROSSINGS = {
    "inconclusive": "{slower} vs {faster} at {largest} elements: inconclusive{ratio}{seen}",
    "overtakes": "{faster} overtakes {slower} between {below} and {from_} elements ({gain})",
    "from a size on": "{faster} is faster than {slower} from {from_} elements on ({gain}); inconclusive below",
    "always": "{slower} is never faster than {faster} up to {largest} elements: {faster} is faster at every common "
    "size from {first} on ({gain})",
    "one size": "{slower} is never faster than {faster} up to {largest} elements: {faster} is faster at the only "
    "common size ({gain})",
}
KNEES = {
    "smallest": "{series}: half of the best throughput ({best}) is reached at the smallest size already, {from_} "
    "elements.",
    "between": "{series}: half of the best throughput ({best}) is reached at about {size} elements, between {below} "
    "and {from_}: latency-bound below, throughput-bound above{rising}.",
}
STILL_RISING = "; it still rises at the largest size, so the true knee is larger"
WAYS = "{job}, {name}: {time} and {steps} steps, over {seeds} seed{several}{missed}{faster}."
MISSED, FASTER = "; {count} of them did not reach it", "; {times} as fast as NumPy on one core"
NO_VERDICT = {  # why no verdict on whether a collective is normal
    "": "No verdict on whether this is normal: {why}.",
    "not measured": "no all_reduce was measured",
    "no gate": "no all_reduce over one whole node passed every gate",
    "no payload": "no payload of {dtype} is in the published range, {low} to {high}",
}
IS_NORMAL = {
    "cannot tell": "Inconclusive whether this is normal",
    "": f"Unknown whether this is normal, without an interval (fewer than {MIN_ROUNDS} rounds)",
    "normal": "This is normal",
    "low": "This is lower than normal",
    "high": "This is higher than normal",
}
PUBLISHED = (
    "{word}: at {payload} all_reduce {dtype} on {devices} has {busbw} of bus bandwidth, {share} of the {published} "
    "published for {series}{large}. {slower} of the {count} published series of all devices are slower there "
    "(percentile {percentile:.0f}). They are single measurements by others ({source})."
)
LARGE = "; from {size} on it is {low:.0f} to {high:.0f} % of the series"


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Which of two series is faster at all sizes from some size on. "Faster" means that the interval excludes 1."""

    op: str
    dtype: str
    # Labels of the series by their speed at large sizes, "jit on gpu". If the largest size is inconclusive, they are in
    # the order of the rows, and `from_` is None.
    slower: str
    faster: str
    below: int | None  # the largest size below `from_` at which `slower` is faster: the crossing is between the two
    from_: int | None  # the smallest measured size from which `faster` is faster at every common size
    sizes: tuple[int, ...]  # the common sizes, ascending
    winners: tuple[str, ...]  # the faster label at each size, or "" if inconclusive
    advantage: Estimate  # time of `slower` over that of `faster` at the largest size

    @property
    def largest(self) -> int:
        return self.sizes[-1]

    @property
    def verdict(self) -> str:
        """A key of CROSSINGS."""
        if self.from_ is None:
            return "inconclusive"
        if self.below is not None:
            return "overtakes"
        if self.from_ > self.sizes[0]:
            return "from a size on"
        return "always" if len(self.sizes) > 1 else "one size"

    @property
    def sentence(self) -> str:
        won = {name: self._won(name) for name in (self.slower, self.faster)}
        clause = CROSSINGS[self.verdict].format(
            slower=self.slower,
            faster=self.faster,
            largest=f"{self.largest:,}",
            first=counted(self.sizes[0], "element"),
            below=f"{self.below or 0:,}",
            from_=f"{self.from_ or 0:,}",
            gain=f"{times(self.advantage)} at {self.largest:,} elements",
            ratio=f" (ratio {times(self.advantage)})" if self.advantage.known else "",
            seen="".join(f"; {name} is faster at {sizes}" for name, sizes in won.items() if sizes),
        )
        return f"{self.op} {self.dtype}: {clause}."

    def _won(self, name: str) -> str:
        """The sizes at which `name` is faster, as text; "" for none."""
        sizes = [f"{size:,}" for size, winner in zip(self.sizes, self.winners, strict=True) if winner == name]
        shown = ", ".join(sizes) if len(sizes) <= 3 else f"{sizes[0]} .. {sizes[-1]}"
        return f"{shown} elements" if sizes else ""


@dataclass(frozen=True, kw_only=True)
class HalfPerformance:
    """The size at which a series reaches half of its best throughput (n_1/2 of Hockney and Jesshope 1981)."""

    op: str
    dtype: str
    series: str
    # Interpolated between sizes, in logarithms of both axes; the smallest size if it already reaches half. The interval
    # covers only the noise of the times: between `below` and `from_` the curve was not measured.
    elements: Estimate
    below: int | None  # the measured sizes on both sides; None: the smallest size already reaches half
    from_: int
    best_per_s: Estimate  # elements per second at `best_elements`
    best_elements: int
    rising: bool  # throughput has not levelled off at the largest size, so the true knee is at a larger size

    @property
    def about(self) -> int:
        """`elements` to two digits, because the curve between two sizes is not known better."""
        value = self.elements.value
        return int(float(f"{value:.2g}")) if value >= 10 else math.ceil(value)

    @property
    def sentence(self) -> str:
        return KNEES["smallest" if self.below is None else "between"].format(
            series=f"{self.op} {self.dtype}, {self.series}",
            best=f"{scaled(self.best_per_s.value, 'elements/s')} at {self.best_elements:,} elements",
            size="" if self.below is None else f"{self.about:,}",
            below=f"{self.below or 0:,}",
            from_=f"{self.from_:,}",
            rising=STILL_RISING if self.rising else "",
        )


def series(rows: list[Row]) -> dict[tuple[str, str], dict[str, list[Row]]]:
    """{(op, dtype): {label: rows by size}} of the rows that may support a headline.

    A label has only the words that distinguish the series of the run: "jit", "jit on gpu", "jit on 1 core".
    """
    usable = [row for row in rows if row.quotable and row.point.elements and row.timing.step_s.known]
    platforms = {row.point.platform for row in usable}
    cores = {row.point.cores for row in usable if row.point.platform == "cpu"}
    families: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in sorted(usable, key=_elements_or_0):
        p = row.point
        label = p.impl + (f" on {p.platform}" if len(platforms) > 1 else "")
        if len(cores) > 1 and p.platform == "cpu":
            label += f" on {p.where}"
        families.setdefault((p.op, p.dtype), {}).setdefault(label, []).append(row)
    return families


def find_crossings(rows: list[Row]) -> list[Crossing]:
    """One crossing for each pair of series of the same operation and dtype that have a size in common."""
    return [
        crossing
        for (op, dtype), family in series(rows).items()
        for names in itertools.combinations(family, 2)
        if (crossing := _crossing(op, dtype, names, family)) is not None
    ]


def _crossing(op: str, dtype: str, names: tuple[str, str], family: dict[str, list[Row]]) -> Crossing | None:
    """From which size on one of two implementations is faster; None if they share no size."""
    one, other = ({_elements_or_0(row): row for row in family[name]} for name in names)
    sizes = sorted(one.keys() & other.keys())  # a ratio needs both in the same rounds
    if not sizes:
        return None
    ratios = {size: paired_ratio.ratio(one[size], other[size]) for size in sizes}
    winners = [_winner(ratios[size], names) for size in sizes]
    last, ratio = winners[-1], ratios[sizes[-1]]  # the largest size decides, because overheads vanish there
    faster = last or names[1]
    slower = names[0] if faster == names[1] else names[1]
    from_, below = None, None
    if last:
        index = len(sizes) - 1
        # Backwards from the largest size: an inconclusive size ends the range, so `from_` claims no more than was
        # shown.
        while index > 0 and winners[index - 1] == last:
            index -= 1
        from_ = sizes[index]
        below = max((s for s, w in zip(sizes[:index], winners, strict=False) if w == slower), default=None)
    advantage = ratio if faster == names[1] else ratio.under(1.0)  # `ratio` is first over second
    return Crossing(
        op=op,
        dtype=dtype,
        slower=slower,
        faster=faster,
        below=below,
        from_=from_,
        sizes=tuple(sizes),
        winners=tuple(winners),
        advantage=advantage,
    )


def _winner(ratio: Estimate, names: tuple[str, str]) -> str:
    """The name with the shorter time, by the interval of the ratio first / second; "" if inconclusive."""
    if ratio.has_interval and ratio.hi < 1:
        return names[0]
    return names[1] if ratio.has_interval and ratio.lo > 1 else ""


def _elements_or_0(row: Row) -> int:
    return row.point.elements or 0


def knees(rows: list[Row]) -> list[HalfPerformance]:
    """One knee for each series of at least three sizes."""
    return [  # two sizes only show which of them is the faster
        _knee(op, dtype, label, by_size)
        for (op, dtype), family in series(rows).items()
        for label, by_size in family.items()
        if len(by_size) >= 3
    ]


def _knee(op: str, dtype: str, label: str, rows: list[Row]) -> HalfPerformance:
    """The size at which an implementation reaches half of its best rate."""
    sizes = np.array([_elements_or_0(row) for row in rows], dtype=np.float64)
    rates = sizes / np.array([row.timing.step_s.value for row in rows])
    draws = sizes / np.stack([row.timing.step_draws for row in rows], axis=1)
    first, value = _half(sizes, rates[None])
    rounds, best, index = min(row.timing.rounds for row in rows), int(rates.argmax()), int(first[0])
    # All sizes of a draw together: they were measured in the same rounds, and a slow round is slow for all of them.
    knee = estimate(float(value[0]), _half(sizes, draws[np.isfinite(draws).all(axis=1)])[1], rounds=rounds)
    return HalfPerformance(
        op=op,
        dtype=dtype,
        series=label,
        elements=knee,
        below=int(sizes[index - 1]) if index else None,
        from_=int(sizes[index]),
        best_per_s=rows[best].timing.step_s.under(float(sizes[best])),
        best_elements=int(sizes[best]),
        rising=best == len(sizes) - 1 and bool(rates[-1] > RISING * rates[-2]),
    )


def _half(sizes: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first size at which each bootstrap sample reaches half of its best rate.

    Args:
      sizes: (sizes,) ascending. rates: (draws, sizes), all > 0.

    Returns:
      (draws,) the index of that size, and (draws,) the size interpolated between its predecessor and it, in logarithms.
    """
    half = rates.max(axis=1) / 2
    # The first size, not the last: beyond the best rate, caches can make a series slower again.
    index = (rates >= half[:, None]).argmax(axis=1)
    draws, before = np.arange(len(rates)), np.maximum(index - 1, 0)
    low, high = np.log(rates[draws, before]), np.log(rates[draws, index])
    with np.errstate(divide="ignore", invalid="ignore"):  # at index 0 the predecessor is the size itself: 0 / 0
        share = np.where(index > 0, (np.log(half) - low) / (high - low), 0.0)
    left, right = np.log(sizes[before]), np.log(sizes[index])
    return index, np.exp(left + share * (right - left))


@dataclass(frozen=True, kw_only=True)
class CallSplit:
    """The time of one job of one size on one platform and core count, with data on the host, in three parts.

    Three calls are timed in the same rounds. "jit+copies" sends the arguments and fetches the result. "waited" runs the
    same program with data on the device. "start" is a nearly empty program with the same arguments. Transfer is the
    first minus the second, start is the third, and work is the second minus the third.
    """

    op: str
    rows: int
    where: str
    largest: bool  # size of the job, which shows throughput; the smallest shows latency
    whole: Estimate  # seconds of a call with copies
    parts: tuple[Estimate, ...]  # seconds of each of SPLIT_NAMES; they add up to `whole`

    @property
    def resolved(self) -> tuple[bool, ...]:
        """For each part, whether its whole interval is above 0."""
        return tuple(part.has_interval and part.lo > 0 for part in self.parts)

    @property
    def sentence(self) -> str:
        words = [_part_clause(*each) for each in zip(SPLIT_NAMES, self.parts, self.resolved, strict=True)]
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        return f"{self.op}, {rows} on {self.where}: {interval(self.whole, seconds)} = {' + '.join(words)}."


def _shape_of_rows(rows: int) -> str:  # as `workloads/kernels/versus.py` names the sizes of calls without `elements`
    return f"{rows} row{'s' * (rows != 1)}"


def _part_clause(name: str, value: Estimate, told: bool) -> str:
    if told:
        return f"{name} {interval(value, seconds)}"
    if not value.has_interval:
        return f"{name} cannot tell (no interval)"
    ends = [f"-{seconds(-end)}" if end < 0 else seconds(end) for end in (value.lo, value.hi)]
    return f"{name} cannot tell ({' .. '.join(ends)})"


def find_splits(rows: Sequence[Row]) -> list[CallSplit]:
    """The splits of the smallest and the largest size of each job. Only rows that may support a headline count."""

    def key(row: Row, shape: object, impl: str) -> tuple[object, ...]:
        return row.point.op, row.point.dtype, row.point.platform, row.point.cores, shape, impl

    good = [row for row in rows if row.quotable and row.timing.step_s.known]
    by_key = {key(row, row.point.shape or row.point.elements, row.point.impl): row for row in good}
    wholes = [row for row in by_key.values() if row.point.impl == WHOLE and row.point.elements]
    found = []
    for row in wholes:
        size = row.point.elements or 0
        sizes = [other.point.elements or 0 for other in wholes if other.point.op == row.point.op]
        waited, start = (by_key.get(key(row, _shape_of_rows(size), impl)) for impl in (WAITED, START))
        if size not in (min(sizes), max(sizes)) or waited is None or start is None:
            continue
        times = paired_ratio.times([row, waited, start])  # over shared rounds, so that drift is in no difference
        at, draws = times.step_s, times.draws
        parts = ((at[0] - at[1], draws[0] - draws[1]), (at[2], draws[2]), (at[1] - at[2], draws[1] - draws[2]))
        split = CallSplit(
            op=row.point.op,
            rows=size,
            where=row.point.where,
            largest=size == max(sizes),
            whole=times.estimate(float(at[0]), draws[0]),
            parts=tuple(times.estimate(float(value), drawn) for value, drawn in parts),
        )
        found.append(split)
    return found


@dataclass(frozen=True, kw_only=True)
class Way:
    """The trainings of one job with one implementation on one platform and core count."""

    job: str
    impl: str
    where: str
    seeds: int  # measured
    reached: int  # how many of them reached the target
    # Geometric means of seconds and steps over seeds. If a seed missed the target, lower limits without an interval.
    time: Estimate
    steps: Estimate
    speedup: Estimate  # time of BASE over `time`, seed by seed; UNKNOWN of BASE itself, and if a seed missed the target

    @property
    def name(self) -> str:
        return f"{self.impl} on {self.where}"

    @property
    def sentence(self) -> str:
        least = "" if self.reached == self.seeds else "at least "
        missed = MISSED.format(count=self.seeds - self.reached) if least else ""
        return WAYS.format(
            job=self.job,
            name=self.name,
            time=f"{least}{interval(self.time, seconds)}",
            steps=interval(self.steps, digits),
            seeds=self.seeds,
            several="s" * (self.seeds != 1),
            missed=missed,
            faster=FASTER.format(times=times(self.speedup)) if self.speedup.known else "",
        )


def find_ways(rows: Sequence[Row]) -> list[Way]:
    """One for each job, implementation, platform and core count with a measured training, in the order of the rows."""
    groups: dict[tuple[str, tuple[object, ...]], list[Row]] = {}
    for row in rows:
        if row.timing.step_s.known and math.isfinite(row.point.outcome(STEPS)):
            way = (row.point.impl, row.point.platform, row.point.cores if row.point.platform == "cpu" else None)
            groups.setdefault((row.point.op, way), []).append(row)
    return [_way(members, groups.get((job, BASE), []) if way != BASE else []) for (job, way), members in groups.items()]


def _way(rows: Sequence[Row], base: Sequence[Row]) -> Way:
    """One implementation of a job over its seeds, and its ratio to the base on the same seeds."""
    point = rows[0].point
    missed = sum(row.point.check_ok is False for row in rows)
    found = over_seeds(row.timing.step_s.value for row in rows)
    steps = over_seeds(row.point.outcome(STEPS) for row in rows)
    bases = {row.point.shape: row for row in base if row.point.check_ok is not False}  # by seed, which the shape names
    pairs = [(bases[row.point.shape], row) for row in rows if row.point.shape in bases]
    whole = pairs and not missed and len(bases) == len(base)  # a mean over the seeds that worked would be too good
    return Way(
        job=point.op,
        impl=point.impl,
        where=point.where,
        seeds=len(rows),
        reached=len(rows) - missed,
        time=found.alone() if missed else found,
        steps=steps.alone() if missed else steps,
        speedup=over_seeds(a.timing.step_s.value / b.timing.step_s.value for a, b in pairs) if whole else UNKNOWN,
    )


@dataclass(frozen=True, kw_only=True)
class PublishedShare:
    """One payload: the measured and the published bus bandwidth, and their ratio."""

    payload_bytes: int
    busbw: Estimate
    published: float
    ratio: Estimate


@dataclass(frozen=True, kw_only=True)
class PublishedVerdict:
    """All-reduce of one dtype in one group of devices, against a published series."""

    dtype: str
    devices: int
    series: str = ""  # the column of the published table; "" if none applies
    shares: tuple[PublishedShare, ...] = ()  # one for each payload within the range of the series
    word: str = ""  # normal | low | high | cannot tell, at the largest common payload
    lowest: float = math.nan  # the ratios of payloads of at least LARGE_BYTES
    highest: float = math.nan
    slower_series: int = 0  # published series that are slower at the largest common payload
    all_series: int = 0
    percentile: float = math.nan  # 100 x slower_series / all_series
    why_none: str = ""

    @property
    def sentence(self) -> str:
        return NO_VERDICT[""].format(why=self.why_none) if self.why_none else _published_sentence(self)


def published_verdicts(view: str, rows: list[Row], *, manifest: Manifest) -> list[PublishedVerdict]:
    """A verdict for each dtype and group of devices with a published series, or one verdict with the reason for none.

    Only rows that passed every gate count. Views other than "collectives" have no verdict.
    """
    if view != "collectives":
        return []
    kind = str(manifest.get("device_kind", ""))
    reduced = [row for row in rows if row.point.op == "all_reduce"]
    if not reduced:
        return [_no_verdict("", 0, NO_VERDICT["not measured"])]
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in reduced:
        # All devices of one node. Groups along an axis of a 2-D mesh would share the links.
        whole_node = row.point.mesh == str(row.point.devices) and row.point.processes == 1
        if row.quotable and row.busbw.known and whole_node:
            groups.setdefault((row.point.dtype, row.point.devices), []).append(row)
    if not groups:
        most = max(row.point.devices for row in reduced)
        if published.allreduce_column(kind, most) is None:  # better rows would not help
            return [_no_verdict("", 0, published.why_no_allreduce(kind, most))]
        return [_no_verdict("", 0, NO_VERDICT["no gate"])]
    known = {key: column for key in groups if (column := published.allreduce_column(kind, key[1])) is not None}
    if not known:
        most = max(devices for _, devices in groups)
        return [_no_verdict("", most, published.why_no_allreduce(kind, most))]
    table = published.allreduce()
    return [_verdict(*key, column, groups[key], table) for key, column in known.items()]


def _no_verdict(dtype: str, devices: int, why: str) -> PublishedVerdict:
    return PublishedVerdict(dtype=dtype, devices=devices, why_none=why)


def _verdict(dtype: str, devices: int, column: str, rows: list[Row], table: pd.DataFrame) -> PublishedVerdict:
    """Compares collectives with a published table, at the payloads within its range."""
    sized = sorted(((row.point.payload_bytes or 0, row.busbw) for row in rows), key=lambda pair: pair[0])
    within = [pair for pair in sized if table.index[0] <= pair[0] <= table.index[-1]]
    values = [float(interpolate(table[column], size)) for size, _ in within]
    shares = tuple(
        PublishedShare(payload_bytes=size, busbw=busbw, published=value, ratio=busbw.over(value))
        for (size, busbw), value in zip(within, values, strict=True)
    )
    if not shares:
        low, high = payload(table.index[0]), payload(table.index[-1])
        return _no_verdict(dtype, devices, NO_VERDICT["no payload"].format(dtype=dtype, low=low, high=high))
    last = shares[-1]
    large = [share.ratio.value for share in shares if share.payload_bytes >= LARGE_BYTES]  # small ones measure latency
    others = [float(interpolate(table[name], last.payload_bytes)) for name in table.columns]
    slower = sum(value < last.busbw.value for value in others)
    return PublishedVerdict(
        dtype=dtype,
        devices=devices,
        series=column,
        shares=shares,
        word=published_word(last.ratio),
        lowest=min(large, default=math.nan),
        highest=max(large, default=math.nan),
        slower_series=slower,
        all_series=len(others),
        percentile=100 * slower / len(others),
    )


def interpolate(series: pd.Series, payload_bytes: float) -> float:
    """The value of the series at a payload inside its range, by linear interpolation of logarithms."""
    x, y = np.log(series.index.to_numpy(dtype=float)), np.log(series.to_numpy(dtype=float))
    return float(np.exp(np.interp(math.log(payload_bytes), x, y)))


def published_word(ratio: Estimate) -> str:
    """normal, low or high if the whole interval is in that range; else, or without an interval, cannot tell."""
    if not ratio.has_interval:
        return "cannot tell"
    if ratio.hi < LOW:
        return "low"
    if ratio.lo > HIGH:
        return "high"
    return "normal" if ratio.lo >= LOW and ratio.hi <= HIGH else "cannot tell"


def _published_sentence(verdict: PublishedVerdict) -> str:
    last = verdict.shares[-1]
    large = ""
    if math.isfinite(verdict.lowest):
        low, high = 100 * verdict.lowest, 100 * verdict.highest
        large = LARGE.format(size=payload(LARGE_BYTES), low=low, high=high)
    return PUBLISHED.format(
        word=IS_NORMAL[verdict.word if last.ratio.has_interval or verdict.word != "cannot tell" else ""],
        payload=payload(last.payload_bytes),
        dtype=verdict.dtype,
        devices=devices_word(verdict.devices),
        busbw=interval(last.busbw, per_second),
        share=percent(last.ratio),
        published=per_second(last.published),
        series=verdict.series,
        large=large,
        slower=verdict.slower_series,
        count=verdict.all_series,
        percentile=verdict.percentile,
        source=published.read("allreduce_busbw").project,
    )

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The headlines of a run of training steps or of cases, or why there is none, and the claims that a run over
device counts makes."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import busy, roofline
from jaxbench.analysis.alpha_beta import AlphaBetaFit, group_of
from jaxbench.analysis.case_comparisons import Crossing
from jaxbench.analysis.gates import load_of
from jaxbench.analysis.quantities import devices, flops, interval, payload, per_second, percent, scaled, seconds, times
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import hardware
from jaxbench.errors import present
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import MIN_ROUNDS, Estimate

# The A/A spread (the same program measured twice) may be this large, or this many half widths of the headline's
# interval, before the headline is refused. The ratio of two equal times is off by about the width of its interval.
NOISE, DOUBT = 0.05, 2.0  # relative; half widths
WIDEST = 0.10  # the largest half width of an efficiency's interval in a headline; a wider one says too little
# The share of a point's CPU time that others may take. With more, the efficiency is that of the remaining CPU time. The
# interval only covers variation between rounds, so it may exclude the truth.
TAKEN = 0.10
HOST = ("numpy", "scipy")  # factorisations are compared with these
OP_BY_OP, FUSED = ("op_by_op",), ("fused", "jit")  # names of implementations
# Why a run has no headline, with the numbers that decided.
WHY_NOT = {
    "too wide": "the efficiency of {point}, {efficiency}, is only known to ±{half:.0f} points, and a headline needs "
    "±{widest:.0f}; {more}x as many rounds would give that (--config.measure.budget_s)",
    "taken": "{who} took {percent:.0f} % of the CPU time of {point} while it was timed, so {efficiency} is the "
    "efficiency of the rest; a headline allows {allowed:.0f} %",
    "noisy": "the machine was too noisy: the A/A spread (same program measured twice) is up to {spread:.0f} %, and the "
    "interval of {strategy}'s efficiency is ±{half:.0f} %",
    "too short": "{right} of {count} points ran and match one device; a smoke run measures no speed: a confidence "
    "interval needs {needed} rounds, and this run has {rounds}.",
    "one count": "only one valid device count ({count}) was measured, and scaling needs two",
    "no base": "no strategy has two valid device counts with a base that passed its checks",
    "refused": "a gate refused {point}, {reason}",
    "nothing": "nothing was measured",
    "all refused": "all {count} measured rows were refused ({gates})",
    "oversubscribed": "every {what} is oversubscribed: with more devices than cores, devices take turns",
    "collectives": "no group of more than one device passed every gate",
    "fusion": "no block was measured both op by op and fused",
    "linalg": "no factorisation was measured both by jit and by NumPy or SciPy at the same size",
    "no rate": "no row with a rate passed every gate",
}
NEXT_BATCH = "; a batch twice as large would {change} {percent:.0f} %"
# How the fastest of several ways was found, once for all of them.
APART = "Some rounds chose the fastest of all ways, and the others measured it."
OPTIMISTIC = "The rounds that chose the fastest of all ways also measured it, so its number is probably optimistic."
BEFORE, AT = ", {alpha} before the first byte (alpha)", ", {took} at {size}"  # the cost of a small payload
A_A = (
    "A/A spread, {strategy}: strong and weak scaling are the same program on {devices}, measured twice. The ratio of "
    "their step times is {ratio}. Differences below {spread:.1f} % are noise here."
)


def headlines(
    rows: list[Row], controls: list[Control] | None = None, machine: Mapping[str, Any] | None = None
) -> list[str]:
    """One sentence per strategy: its efficiency at the largest valid device count, with the base's absolute time.

    Without any headline, a single sentence that starts with "No headline" gives the reason. A run with too few rounds
    for an interval has measured no speed: its sentence says how many points are correct.

    controls: the A/A measurements of the same run. machine: the manifest, for limits of CPU time.

    A strategy has no headline if the machine was busy in most rounds (`analysis/busy.py`), if an efficiency is not
    known to ± WIDEST, if other programs took more than TAKEN of its CPU time, or if its A/A spread exceeds both NOISE
    and DOUBT times the half width of the headline's interval.
    """
    if sentence := too_short(rows):
        return [sentence]
    strategies = dict.fromkeys(r.point.strategy for r in rows)
    noise = {control.strategy: control for control in controls or ()}
    claims = {  # by strategy, at most one row for each scaling
        name: [row for scaling in ("strong", "weak") if (row := _largest(rows, name, scaling)) is not None]
        for name in strategies
    }
    doubts = {
        name: reason
        for name, largest in claims.items()
        if (reason := _busy(largest) or _too_wide(largest) or _taken(largest) or _noisy(noise.get(name), largest))
    }
    sentences = [_sentence(largest) for name, largest in claims.items() if largest and name not in doubts]
    if not doubts and not sentences:
        sentences = _of_one_count(rows)
    # A run without a headline always says why, so that a missing sentence is never taken for a good result.
    return sentences or [f"No headline: {next(iter(doubts.values()), '') or _why_not(rows, machine or {})}."]


def _of_one_count(rows: list[Row]) -> list[str]:
    """One sentence per strategy for a run of one device count, as on a machine with one GPU: its speed. []: it has
    other counts, or a row that a gate refused."""
    if len({row.point.devices for row in rows}) != 1 or any(row.gate == "refused" for row in rows):
        return []
    known = [row for row in rows if row.quotable and row.timing.step_s.has_interval]
    first: dict[str, Row] = {}
    for row in known:  # on one count, strong and weak scaling are the same program: the first one speaks
        first.setdefault(row.point.strategy, row)
    sentences = []
    for strategy, row in first.items():
        rate = scaled(row.timing.examples_per_s.value, "").strip()
        mfu = f", MFU {100 * row.use.mfu:.0f} %" if math.isfinite(row.use.mfu) else ""
        sentences.append(
            f"{strategy} on {devices(row.point.devices)}: {interval(row.timing.step_s, seconds)} per step, "
            f"{rate} {row.point.unit}/s{mfu}{_memory_share(row)}{_next_batch(row)}. "
            "Scaling needs a second device count."
        )
    return sentences


def _memory_share(row: Row) -> str:
    """The share of the memory's rate, by the compiler's count of bytes, as a clause; "" if either is unknown."""
    report, prepared = row.point.compile_report, row.point.prepared
    found = hardware.find(prepared.device_kind) if prepared is not None else None
    moved = report.compiler_bytes_per_step if report is not None else None
    if found is None or not found.memory_bytes_per_s or not moved:
        return ""
    share = moved / row.point.devices / row.timing.step_s.value / found.memory_bytes_per_s
    return f", {100 * share:.0f} % of the memory's rate"


def _next_batch(row: Row) -> str:
    """What twice the batch would gain, as a clause; "" if it was not measured."""
    twice = row.ablations.get("batch=2x")
    if twice is None or not twice.timing.step_s.known or twice.gate == "refused":
        return ""
    gain = 2 * row.timing.step_s.value / twice.timing.step_s.value - 1
    return NEXT_BATCH.format(change="gain" if gain >= 0 else "lose", percent=100 * abs(gain))


def _sentence(largest: list[Row]) -> str:
    """The headline of one strategy."""
    parts = []
    for row in largest:
        base = present(row.base)
        parts.append(
            f"{row.point.scaling} efficiency {percent(row.efficiency)} on {devices(row.point.devices)} "
            f"(base {devices(base.devices)}, {seconds(row.base_step_s)} per step)"
        )
    return f"{largest[0].point.strategy}: {', '.join(parts)}."


def _busy(rows: Iterable[Row]) -> str:
    """What the machine did in most rounds of one of these rows, as a clause; "" if it did nothing."""
    found = (busy.of(row) for row in rows)
    return next((each.sentence for each in found if each is not None and each.mostly), "")


def _too_wide(largest: list[Row]) -> str:
    """The efficiency with an interval that is too wide, as a clause; "" if there is none."""
    for row in largest:
        half = row.efficiency.half_width
        if half > WIDEST:  # the half width falls with the square root of the rounds
            return WHY_NOT["too wide"].format(
                point=row.point_id,
                efficiency=percent(row.efficiency),
                half=100 * half,
                widest=100 * WIDEST,
                more=math.ceil((half / WIDEST) ** 2),
            )
    return ""


def _taken(largest: list[Row]) -> str:
    """The point that lost too much CPU time to others, as a clause; "" if none, if unknown, or on accelerators."""
    for row in (row for row in largest if row.point.platform == "cpu"):
        point_load = load_of(row.point, row.point.rounds)  # of the rounds that count: the efficiency is theirs
        others, steal = (value if math.isfinite(value) else 0.0 for value in (point_load.others, point_load.steal))
        if others + steal > TAKEN:
            return WHY_NOT["taken"].format(
                who="other processes" if others >= steal else "the hypervisor",
                percent=100 * max(others, steal),
                point=row.point_id,
                efficiency=percent(row.efficiency),
                allowed=100 * TAKEN,
            )
    return ""


def _noisy(control: Control | None, largest: list[Row]) -> str:
    """Why the A/A spread is too large for these efficiencies, as a clause; "" if it is not."""
    if control is None or not largest:
        return ""
    half = max(row.efficiency.half_width / row.efficiency.value for row in largest)  # relative, like the spread
    if control.aa_spread <= max(NOISE, DOUBT * half):
        return ""
    spread = 100 * control.aa_spread
    return WHY_NOT["noisy"].format(spread=spread, strategy=control.strategy, half=100 * half)


def _largest(rows: list[Row], strategy: str, scaling: str) -> Row | None:
    """The row with the most devices that has a quotable efficiency over a quotable base."""
    family = [r for r in rows if (r.point.strategy, r.point.scaling) == (strategy, scaling) and r.quotable]
    bases = {r.point_id for r in family}  # a base that is not quotable itself makes no quotable efficiency
    compared = [
        r
        for r in family
        if r.base is not None and r.base is not r.point and r.base.point in bases and r.efficiency.has_interval
    ]
    return max(compared, key=lambda r: r.point.devices, default=None)


def too_short(rows: Sequence[Row]) -> str:
    """The headline of a run with fewer rounds than an interval needs by its config; "" for any other run."""
    asked = max((row.point.rounds_asked for row in rows), default=MIN_ROUNDS)
    if asked >= MIN_ROUNDS or not any(row.timing.step_s.known for row in rows):
        return ""
    # With fewer rounds by its plan it is a smoke run. With fewer by accident it is partial, and `lacking` says so.
    points = [row.point for row in rows if row.point.status != "unsupported"]
    right = sum(point.status == "ok" and point.check_ok is True for point in points)
    return WHY_NOT["too short"].format(right=right, count=len(points), needed=MIN_ROUNDS, rounds=asked)


def lacking(rows: Sequence[Row]) -> str:
    """Why no row may support a claim, apart from the gates: each cause with its points; "" if some row may."""
    if not any(row.timing.step_s.known for row in rows):
        return "nothing was measured"
    if any(row.point.reportable for row in rows):
        return ""
    causes: dict[str, list[str]] = {}
    for row in rows:
        point = row.point
        if point.check_ok is False:
            cause = "did not pass its checks"
        elif point.status == "partial":
            cause = f"{row.timing.rounds} of {point.rounds_asked} rounds"
        elif point.status != "ok":
            cause = point.status
        else:
            cause = "never checked" if point.check_ok is None else "more devices than cores"
        causes.setdefault(cause, []).append(point.point)
    most = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    return "; ".join(
        f"{cause} ({points[0]}{f' and {len(points) - 1} more' if len(points) > 1 else ''})" for cause, points in most
    )


def _why_not(rows: list[Row], machine: Mapping[str, Any]) -> str:
    wrong = any(row.point.check_ok is False for row in rows)
    # A cause outside of the program says more than what it did to the points. Nothing says more than a wrong result.
    if not wrong and (why := busy.fewer_cores(rows, machine) or _busy(row for row in rows if row.point.reportable)):
        return why
    if why := lacking(rows):
        return why
    if refused := [r for r in rows if r.point.reportable and r.gate == "refused"]:
        return WHY_NOT["refused"].format(point=refused[0].point_id, reason=refused[0].gate_reason)
    counts = {r.point.devices for r in rows if r.quotable}
    return WHY_NOT["one count"].format(count=counts.pop()) if len(counts) == 1 else WHY_NOT["no base"]


Groups = dict[tuple[object, ...], list[Row]]


def case_headlines(
    view: str, rows: list[Row], fits: list[AlphaBetaFit], crossings: list[Crossing], *, cache_bytes: int | None = None
) -> list[str]:
    """The headline sentences of one view.

    If a sentence is about the best of several rows, one half of the rounds selects the row and the other half gives the
    number (`paired_ratio.best`). Otherwise selection would bias the number upwards.

    cache_bytes: the processor's last-level cache, which separates memory from caches; None: unknown.
    """
    good = [row for row in rows if row.quotable and row.timing.step_s.known]
    if view == "stream":
        results = _stream(good, cache_bytes)
    elif view == "collectives":
        results = _collectives(good, fits)
    elif view == "curves":
        results = _curves(good, crossings)
    elif view == "fusion":
        results = _ratios(good, OP_BY_OP, FUSED, "fused vs op by op")
    elif view == "linalg":
        results = [text for host in HOST for text in _ratios(good, (host,), ("jit",), f"jit vs {host}")]
    else:
        views = {"matmul": _matmul, "dispatch": _dispatch, "transfer": _transfer, "versus": _versus}
        results = views[view](good) if view in views else []
    return results or [f"No headline: {_why_no_case(view, rows)}."]


def _matmul(rows: list[Row]) -> list[str]:
    """A sentence for each product and format: its best rate and its share of the peak."""
    sentences = []
    for (op, dtype, _, _), group in _groups(rows, "op", "dtype", "platform", "cores").items():
        best = paired_ratio.best(group, lambda row: row.point.flops)
        if best is None:
            continue
        p, share = best.row.point, _share(best)
        of_peak = f", {percent(share)} of {best.row.peak}" if share.known else ""
        rate = interval(best.rate, functools.partial(flops, dtype=p.dtype))
        what = f"{op} {dtype} {_where(best.row)}: {rate} with {p.shape} ({p.impl}{_note(best)})"
        sentences.append(f"{what}{of_peak}.")
    return sentences


def _share(best: paired_ratio.Best) -> Estimate:
    """The reported rate over the peak. It uses the reported half of the rounds, because both are in one sentence."""
    share, rate = best.row.peak_share, best.row.flop_per_s
    if not best.note or not share.known or not rate.known:  # no note: one candidate, measured on all rounds
        return share
    return best.rate.over(rate.value / share.value)


def _stream(rows: list[Row], cache_bytes: int | None) -> list[str]:
    """Triad, or everything if there is no triad, from memory and from the caches."""
    rows = [row for row in rows if row.point.op == "triad"] or rows
    sentences = []
    for (platform, _, dtype), group in _groups(rows, "platform", "cores", "dtype").items():
        cache = cache_bytes if platform == "cpu" else None  # the manifest has the host's cache, not the accelerator's
        parts = []
        for name, words in (("memory", "from memory"), ("cache", "at best from caches")):
            level = [row for row in group if roofline.memory_level(row.point.bytes_moved or 0, cache) == name]
            best = paired_ratio.best(level, lambda row: row.point.bytes_moved)
            if best is not None:
                size = payload(best.row.point.bytes_moved or 0)
                parts.append(f"{interval(best.rate, per_second)} {words}, {best.row.point.op} of {size}{_note(best)}")
        if parts:
            sentences.append(f"{group[0].point.experiment} {dtype} {_where(group[0])}: {'; '.join(parts)}.")
    return sentences


def _dispatch(rows: list[Row]) -> list[str]:
    """A sentence for each platform and core count."""
    return [
        f"Calls {_where(group[0])}: "
        + ", ".join(f"{row.point.op} {row.point.impl} {interval(row.timing.step_s, seconds)}" for row in group)
        + " per call."
        for group in _groups(rows, "platform", "cores").values()
    ]


def _ratios(rows: list[Row], slow: tuple[str, ...], fast: tuple[str, ...], words: str) -> list[str]:
    """Sentences on how many times as fast one implementation is as another, at the largest size that both have."""
    sentences = []
    for (op, dtype, _), group in _groups(rows, "op", "dtype", "cores").items():
        bases = {row.point.elements: row for row in group if row.point.impl in slow}
        for (platform,), others in _groups([r for r in group if r.point.impl in fast], "platform").items():
            pairs = [(bases[row.point.elements], row) for row in others if row.point.elements in bases]
            # NumPy runs on the host only, and is compared with every platform. XLA is compared with itself on one.
            pairs = [(a, b) for a, b in pairs if slow[0] in HOST or a.point.platform == platform]
            pairs = [(a, b) for a, b in pairs if paired_ratio.ratio(a, b).known]
            if pairs:
                base, row = max(pairs, key=lambda pair: pair[1].point.elements or 0)
                size = row.point.shape or f"{row.point.elements:,} elements"
                ratio = times(paired_ratio.ratio(base, row))
                took = f"{seconds(row.timing.step_s.value)} vs {seconds(base.timing.step_s.value)}"
                sentences.append(f"{op} {dtype} {_where(row)}, {words} at {size}: {ratio} as fast ({took}).")
    return sentences


def _transfer(rows: list[Row]) -> list[str]:
    """The lowest bandwidth over all pairs at the largest payload, because a program waits for its slowest link.

    It needs no split of the rounds: selection can only make this number too low.
    """
    sentences = []
    for (op, dtype), group in _groups(rows, "op", "dtype").items():
        size = max(row.point.payload_bytes or 0 for row in group)
        pairs = [row for row in group if row.point.payload_bytes == size]
        worst = min(pairs, key=lambda row: row.algbw.value)
        pair = f"{worst.point.source}->{worst.point.target}"
        comparison = f"at least, over {len(pairs)} pairs; the slowest is {pair}" if len(pairs) > 1 else pair
        sentences.append(f"{op} {dtype}, {payload(size)}: {interval(worst.algbw, per_second)} {comparison}.")
    return sentences


def _collectives(rows: list[Row], fits: list[AlphaBetaFit]) -> list[str]:
    """For each operation on the most devices: the lowest bus bandwidth over its groups at their largest common payload.

    Also the time of small payloads: alpha, or the time of the smallest payload if no line describes the times.
    """
    rows = [row for row in rows if row.busbw.known]
    sentences = []
    for (op, dtype), group in _groups(rows, "op", "dtype").items():
        count = max(row.point.devices for row in group)
        axes = _groups([r for r in group if r.point.devices == count], "mesh", "axis").values()
        common = set.intersection(*({row.point.payload_bytes or 0 for row in axis} for axis in axes))
        if not common:  # bandwidths of different payloads do not compare
            continue
        compared = [row for axis in axes for row in axis if row.point.payload_bytes == max(common)]
        row = min(compared, key=lambda row: row.busbw.value)
        of_groups = f", the slowest of {len(compared)} groups" if len(compared) > 1 else ""
        rate = f"{interval(row.busbw, per_second)} of bus bandwidth at {payload(row.point.payload_bytes or 0)}"
        fit = next((f for f in fits if not f.why_not and group_of(f.point) == group_of(row.point)), None)
        sentences.append(f"{op} {dtype} on {row.point.group}{of_groups}: {rate}{_small_payload(group, row, fit)}.")
    return sentences


def _small_payload(rows: list[Row], shown: Row, fit: AlphaBetaFit | None) -> str:
    """The cost of a small payload in the group of `shown`: alpha, unless the line misses the times."""
    if fit is not None and not fit.poor:
        return BEFORE.format(alpha=interval(fit.alpha_s, seconds))
    group = [row for row in rows if group_of(row.point) == group_of(shown.point)]
    smallest = min(group, key=lambda row: row.point.payload_bytes or 0)
    if smallest is shown:  # its time is in the sentence already, as a bandwidth
        return ""
    size = payload(smallest.point.payload_bytes or 0)
    return AT.format(took=interval(smallest.timing.step_s, seconds), size=size)


def _curves(rows: list[Row], crossings: list[Crossing]) -> list[str]:
    """Sentences on the best rate of each operation, and on where its implementations cross."""
    sentences = []
    for (op, dtype), group in _groups(rows, "op", "dtype").items():
        best = paired_ratio.best(group, lambda row: row.point.elements)
        if best is None:
            continue
        at = f"{best.row.point.elements:,} elements ({best.row.point.impl} {_where(best.row)})"
        rate = interval(best.rate, lambda value: scaled(value, "elements/s"))
        sentences.append(f"{op} {dtype}: {rate} at {at}{_note(best)}.")
        sentences += [c.sentence for c in crossings if (c.op, c.dtype) == (op, dtype) and c.below is not None]
    return sentences


def _versus(rows: list[Row]) -> list[str]:
    """For each job: the implementation with the shortest time for the fewest rows, and the one with the highest rate
    for the most rows. They need not be the same."""
    sentences, chosen = [], []
    for (op,), group in _groups([row for row in rows if row.point.elements], "op").items():
        few, many = (end(row.point.elements or 0 for row in group) for end in (min, max))
        ends = {
            size: best
            for size in (few, many)
            if (best := paired_ratio.best([r for r in group if r.point.elements == size], lambda r: r.point.elements))
        }
        words = []
        if few in ends:
            soonest = interval(ends[few].rate.under(few), seconds)
            words.append(f"shortest time for {few:,} row{'s' * (few != 1)}: {soonest} ({_winner_phrase(ends[few])})")
        if many in ends and many != few:
            most = interval(ends[many].rate, lambda value: scaled(value, "rows/s"))
            words.append(f"highest rate: {most} with {many:,} rows at a time ({_winner_phrase(ends[many])})")
        sentences += [f"{op}: {'; '.join(words)}."] if words else []
        chosen += [best for best in ends.values() if best.note]
    if chosen:
        sentences.append(OPTIMISTIC if any(best.optimistic for best in chosen) else APART)
    return sentences


def _winner_phrase(best: paired_ratio.Best[Row]) -> str:
    return f"{best.row.point.impl} {_where(best.row)}"


def _groups(rows: Iterable[Row], *names: str) -> Groups:
    """Rows by these fields of their points, in order of appearance."""
    groups: Groups = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row.point, name) for name in names), []).append(row)
    return groups


def _where(row: Row) -> str:
    """The cores or the device of a row: "on 2 cores", "on one NVIDIA H100"."""
    p = row.point
    return f"on {p.where}" if p.platform == "cpu" else f"on one {p.prepared.device_kind if p.prepared else p.platform}"


def _note(best: paired_ratio.Best) -> str:
    """How the best row was selected, as a clause that follows a comma."""
    return f", {best.note}" if best.note else ""


def _why_no_case(view: str, rows: list[Row]) -> str:
    measured = [row for row in rows if row.timing.step_s.known]
    if not measured:
        return WHY_NOT["nothing"]
    accepted = [row for row in measured if row.gate != "refused"]
    if not accepted:
        refusals = Counter(gate.name for row in measured for gate in row.gates if gate.passed is False)
        gates = ", ".join(f"'{name}' refused {count}" for name, count in refusals.most_common())
        return WHY_NOT["all refused"].format(count=len(measured), gates=gates or measured[0].gate_reason)
    right = [row for row in accepted if row.point.status == "ok" and row.point.check_ok is True]
    if not right:
        return lacking(accepted)
    if all(row.point.oversubscribed for row in right):
        return WHY_NOT["oversubscribed"].format(what="group" if view == "collectives" else "row")
    return WHY_NOT[view if view in ("collectives", "fusion", "linalg") else "no rate"]


@dataclass(frozen=True, kw_only=True)
class Control:
    """An A/A measurement: the same program measured twice in one run. The ratio's distance from 1 is the A/A spread."""

    strategy: str
    devices: int
    ratio: Estimate  # step_s of the strong point over step_s of the weak point, with its interval

    @property
    def aa_spread(self) -> float:
        """The A/A spread: the larger distance of the interval's ends from 1, at least 0.001."""
        # At least what the sentence below shows as 0.1 %: "differences below 0.0 % are noise" would say nothing.
        return max(0.001, abs(self.ratio.lo - 1), abs(self.ratio.hi - 1))

    @property
    def sentence(self) -> str:
        return A_A.format(
            strategy=self.strategy,
            devices=devices(self.devices),
            ratio=f"{self.ratio.value:.3f} [{self.ratio.lo:.3f}, {self.ratio.hi:.3f}]",
            spread=100 * self.aa_spread,
        )


def controls(rows: list[Row]) -> list[Control]:
    """The A/A measurements: strong and weak points that are the same program, at a strategy's base device count."""
    results = []
    keyed = {(r.point.strategy, r.point.scaling, r.point.devices, r.point.arm): r for r in rows}
    measured = {key: row for key, row in keyed.items() if row.timing.step_s.known}
    for (strategy, scaling, count, arm), strong in measured.items():
        # At the base count both scalings have the same batch, so one program was compiled and measured twice.
        weak = measured.get((strategy, "weak", count, arm))
        if scaling != "strong" or weak is None or strong.base is None or strong.base.devices != count:
            continue
        ratio = paired_ratio.ratio(strong, weak)
        if strong.point.global_batch == weak.point.global_batch and ratio.has_interval:
            results.append(Control(strategy=strategy, devices=count, ratio=ratio))
    return results


def half_widths(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """(half width, point) for each claim of the run.

    The claims are the efficiencies. Without any, as on one device, they are the ratios of each step time to the first
    point's. A single point claims its step time.
    """
    claims = [  # the report may make a claim about these points, so that their intervals should be narrow
        row
        for row in rows
        if row.timing.step_s.known and not (row.point.oversubscribed or row.gate == "refused" or row.point.explains)
    ]
    found = [(row, row.efficiency) for row in claims if row.base is not None and row.base is not row.point]
    if not found and claims:
        first, *others = claims
        ratios = [(row, paired_ratio.ratio(row, first)) for row in others] or [(first, first.timing.step_s)]
        # Relative: these are not shares of an ideal, and a step time in seconds has no scale of its own.
        found = [(row, ratio.times(1 / ratio.value)) for row, ratio in ratios if ratio.known]
    return [(estimate.half_width, row.point_id) for row, estimate in found if estimate.has_interval]

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The headlines of a run of cases, from quotable rows that passed every gate; or why there are none."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable

from jaxbench.analysis import ceilings, paired_ratio
from jaxbench.analysis.alpha_beta import AlphaBetaFit, group_of
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.crossings import Crossing
from jaxbench.analysis.headline import devices as devices_word
from jaxbench.analysis.headline import lacking, percent, seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import flops, interval, payload, per_second, scaled, times

HOST = ("numpy", "scipy")  # factorisations are compared with these
OP_BY_OP, FUSED = ("op_by_op",), ("fused", "jit")  # names of implementations
Groups = dict[tuple[object, ...], list[CaseRow]]


def headlines(
    view: str,
    rows: list[CaseRow],
    fits: list[AlphaBetaFit],
    crossings: list[Crossing],
    *,
    cache_bytes: int | None = None,
) -> list[str]:
    """The headline sentences of one view.

    If a sentence is about the best of several rows, one half of the rounds selects the row and the other half gives the
    number (`paired_ratio.best`). Otherwise selection would bias the number upwards.

    Args:
      cache_bytes: the processor's last-level cache, which separates memory from caches; None: unknown.
    """
    good = [row for row in rows if row.headline and row.timing.step_s.known]
    if view == "stream":
        results = _stream(good, cache_bytes)
    elif view == "collectives":
        results = _collectives(good, fits)
    elif view == "curves":
        results = _curves(good, crossings)
    else:
        views = {"matmul": _matmul, "dispatch": _dispatch, "fusion": _fusion, "linalg": _linalg, "transfer": _transfer,
                 "versus": _versus}  # fmt: skip
        results = views[view](good) if view in views else []
    return results or [f"No headline: {_why_not(view, rows)}."]


def _matmul(rows: list[CaseRow]) -> list[str]:
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
    if not best.note or not share.known or not rate.known:
        return share
    peak = rate.value / share.value
    return Estimate(value=best.rate.value / peak, lo=best.rate.lo / peak, hi=best.rate.hi / peak)


def _stream(rows: list[CaseRow], cache_bytes: int | None) -> list[str]:
    """Triad, or everything if there is no triad, from memory and from the caches."""
    rows = [row for row in rows if row.point.op == "triad"] or rows
    sentences = []
    for (platform, _, dtype), group in _groups(rows, "platform", "cores", "dtype").items():
        cache = cache_bytes if platform == "cpu" else None
        parts = []
        for name, words in (("memory", "from memory"), ("cache", "at best from caches")):
            level = [row for row in group if ceilings.level(row.point.bytes_moved or 0, cache) == name]
            best = paired_ratio.best(level, lambda row: row.point.bytes_moved)
            if best is not None:
                size = payload(best.row.point.bytes_moved or 0)
                parts.append(f"{interval(best.rate, per_second)} {words}, {best.row.point.op} of {size}{_note(best)}")
        if parts:
            sentences.append(f"{group[0].point.experiment} {dtype} {_where(group[0])}: {'; '.join(parts)}.")
    return sentences


def _dispatch(rows: list[CaseRow]) -> list[str]:
    """A sentence for each platform and core count."""
    return [
        f"Calls {_where(group[0])}: "
        + ", ".join(f"{row.point.op} {row.point.impl} {interval(row.timing.step_s, seconds)}" for row in group)
        + " per call."
        for group in _groups(rows, "platform", "cores").values()
    ]


def _fusion(rows: list[CaseRow]) -> list[str]:
    return _ratios(rows, OP_BY_OP, FUSED, "fused vs op by op")


def _linalg(rows: list[CaseRow]) -> list[str]:
    results = [_ratios(rows, (host,), ("jit",), f"jit vs {host}") for host in HOST]
    return [sentence for sentences in results for sentence in sentences]


def _ratios(rows: list[CaseRow], slow: tuple[str, ...], fast: tuple[str, ...], words: str) -> list[str]:
    """Sentences on how many times as fast one implementation is as another, at the largest size that both have."""
    sentences = []
    for (op, dtype, _), group in _groups(rows, "op", "dtype", "cores").items():
        bases = {row.point.elements: row for row in group if row.point.impl in slow}
        for (platform,), others in _groups([r for r in group if r.point.impl in fast], "platform").items():
            pairs = [(bases[row.point.elements], row) for row in others if row.point.elements in bases]
            pairs = [(a, b) for a, b in pairs if slow[0] in HOST or a.point.platform == platform]
            pairs = [(a, b) for a, b in pairs if paired_ratio.ratio(a, b).known]
            if pairs:
                base, row = max(pairs, key=lambda pair: pair[1].point.elements or 0)
                size = row.point.shape or f"{row.point.elements:,} elements"
                ratio = times(paired_ratio.ratio(base, row))
                took = f"{seconds(row.timing.step_s.value)} vs {seconds(base.timing.step_s.value)}"
                sentences.append(f"{op} {dtype} {_where(row)}, {words} at {size}: {ratio} as fast ({took}).")
    return sentences


def _transfer(rows: list[CaseRow]) -> list[str]:
    """The lowest bandwidth over all pairs at the largest payload, because a program waits for its slowest link.

    It needs no split of the rounds: selection can only make this number too low.
    """
    sentences = []
    for (op, dtype), group in _groups(rows, "op", "dtype").items():
        size = max(row.point.payload_bytes or 0 for row in group)
        pairs = [row for row in group if row.point.payload_bytes == size]
        worst = min(pairs, key=lambda row: row.algbw.value)
        pair = f"{worst.point.source}->{worst.point.target}"
        comparison = f"at least, over {len(pairs)} pairs; the slowest is {pair}" if len(pairs) > 1 else f"{pair}"
        sentences.append(f"{op} {dtype}, {payload(size)}: {interval(worst.algbw, per_second)} {comparison}.")
    return sentences


def _collectives(rows: list[CaseRow], fits: list[AlphaBetaFit]) -> list[str]:
    """For each operation on the most devices: the lowest bus bandwidth over its groups at their largest common payload.

    Also the time of small payloads: alpha, or the time of the smallest payload if no line describes the times.
    """
    rows = [row for row in rows if row.busbw.known]
    sentences = []
    for (op, dtype), group in _groups(rows, "op", "dtype").items():
        count = max(row.point.devices for row in group)
        axes = _groups([r for r in group if r.point.devices == count], "mesh", "axis").values()
        common = set.intersection(*({row.point.payload_bytes or 0 for row in axis} for axis in axes))
        if not common:
            continue
        compared = [row for axis in axes for row in axis if row.point.payload_bytes == max(common)]
        row = min(compared, key=lambda row: row.busbw.value)
        p = row.point
        along = f" along {p.axis} of {p.mesh}" if "x" in p.mesh else ""
        along += f" of {p.between}" if p.between else ""
        along += f", the slowest of {len(compared)} groups" if len(compared) > 1 else ""
        rate = f"{interval(row.busbw, per_second)} of bus bandwidth at {payload(p.payload_bytes or 0)}"
        fit = next((f for f in fits if not f.why_not and group_of(f.place) == group_of(p)), None)
        sentences.append(f"{op} {dtype} on {devices_word(count)}{along}: {rate}{_small_payload(group, row, fit)}.")
    return sentences


def _small_payload(rows: list[CaseRow], shown: CaseRow, fit: AlphaBetaFit | None) -> str:
    """The cost of a small payload in the group of `shown`: alpha, unless the line misses the times."""
    if fit is not None and not fit.poor:
        return f", {interval(fit.alpha_s, seconds)} before the first byte (alpha)"
    group = [row for row in rows if group_of(row.point) == group_of(shown.point)]
    smallest = min(group, key=lambda row: row.point.payload_bytes or 0)
    if smallest is shown:
        return ""
    return f", {interval(smallest.timing.step_s, seconds)} at {payload(smallest.point.payload_bytes or 0)}"


def _curves(rows: list[CaseRow], crossings: list[Crossing]) -> list[str]:
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


def _versus(rows: list[CaseRow]) -> list[str]:
    """For each job: the implementation with the shortest time for the fewest rows, and the one with the highest rate
    for the most rows. They need not be the same."""
    sentences = []
    for (op,), group in _groups([row for row in rows if row.point.elements], "op").items():
        few, many = (end(row.point.elements or 0 for row in group) for end in (min, max))
        ends = {
            size: best
            for size in (few, many)
            if (best := paired_ratio.best([row for row in group if row.point.elements == size], _elements)) is not None
        }
        words = []
        if few in ends:
            soonest = interval(ends[few].rate.under(few), seconds)
            words.append(f"shortest time for {few:,} row{'s' * (few != 1)}: {soonest} ({_who(ends[few])})")
        if many in ends and many != few:
            most = interval(ends[many].rate, lambda value: scaled(value, "rows/s"))
            words.append(f"highest rate: {most} with {many:,} rows at a time ({_who(ends[many])})")
        sentences += [f"{op}: {'; '.join(words)}."] if words else []
    return sentences


def _who(best: paired_ratio.Best[CaseRow]) -> str:
    return f"{best.row.point.impl} {_where(best.row)}{_note(best)}"


def _elements(row: CaseRow) -> float | None:
    return row.point.elements


def _groups(rows: Iterable[CaseRow], *names: str) -> Groups:
    """Rows by these fields of their points, in order of appearance."""
    groups: Groups = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row.point, name) for name in names), []).append(row)
    return groups


def _where(row: CaseRow) -> str:
    p = row.point
    if p.platform != "cpu":
        return f"on one {p.record.device_kind if p.record is not None else p.platform}"
    return f"on {p.cores} core{'s' * (p.cores != 1)}"


def _note(best: paired_ratio.Best) -> str:
    return f", {best.note}" if best.note else ""


def _why_not(view: str, rows: list[CaseRow]) -> str:
    measured = [row for row in rows if row.timing.step_s.known]
    if not measured:
        return "nothing was measured"
    accepted = [row for row in measured if row.gate != "refused"]
    if not accepted:
        refusals = Counter(gate.name for row in measured for gate in row.gates if gate.passed is False)
        gates = ", ".join(f"'{name}' refused {count}" for name, count in refusals.most_common())
        return f"all {len(measured)} measured rows were refused ({gates or measured[0].gate_reason})"
    right = [row for row in accepted if row.point.status == "ok" and row.point.check_ok is True]
    if not right:
        return lacking(accepted)
    if all(row.point.oversubscribed for row in right):
        what = "group" if view == "collectives" else "row"
        return f"every {what} is oversubscribed: with more devices than cores, devices take turns"
    return _missing(view)


def _missing(view: str) -> str:
    reasons: dict[str, str] = {
        "collectives": "no group of more than one device passed every gate",
        "fusion": "no block was measured both op by op and fused",
        "linalg": "no factorisation was measured both by jit and by NumPy or SciPy at the same size",
    }
    return reasons.get(view, "no row with a rate passed every gate")

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences of a report: how the run was measured, then its rows with their faults, notes, bases and utilisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxbench.analysis import busy, gates, step_work
from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.headline import Control, half_widths
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import devices, scaled, seconds
from jaxbench.analysis.run_rows import Row, state
from jaxbench.catalog import jax_settings
from jaxbench.digits import counted, digits
from jaxbench.levers import every_set
from jaxbench.records.manifest import Auto, LookEntry, Manifest
from jaxbench.report.drawing.notes import display
from jaxbench.statistics.looks import HALF_WIDTH
from jaxbench.statistics.timing import MOST_TAKEN

SLACK = 1.25  # the page's intervals may be wider by this factor: it may refuse a row, or have a calibrated spread
GOAL = f"{100 * HALF_WIDTH:.0f} points"

# How the run was measured and how it ended.
ROUNDS = {
    "changed": "{point} became {slower} during the run: the last third of its rounds took {ratio:.2f} [{lo:.2f}, "
    "{hi:.2f}] times as long as the first, which chance does not explain.{others} Its time is a mean of both.",
    "others changed": " {count} of the other {all} points changed as well.",
    "idle power": "Idle power, before anything ran: {drawn}.",
    "all failed": "No rounds: every point failed.",
    "interrupted": "Not finished: it was interrupted, and the same command continues it.",
    "by hand": "Stopped by hand and not by its own rule: {reason}. Its confidence intervals are too narrow.",
    "other rounds": "its last look was after {seen} rounds, but it has {rounds}",
    "wide": f"it claims that every interval is within ± {GOAL}, but one is ± {{half:.1f}} points",
    "known": "{point} is known to ± {half:.1f} points",
    "unknown": "no confidence interval is known",
    "precise": f"Stopped after {{count}}, once every confidence interval was within ± {GOAL}. At the end {{widest}}.",
    "budget": "its budget of {budget_s:g} s for rounds is spent",
    "processes": "it has reached its limit of processes",
    "reached": "Stopped after {count}, because {why}. At the end {widest}.",
    "not reached": f"Stopped after {{count}}, because {{why}}: {{widest}}, not to ± {GOAL}.",
    "more": "A larger {setting} allows more rounds.",
    "left out": "{free} of {all} rounds were free of disturbance. The others do not count, because another program "
    "took more than {most:.0f} % of the CPUs' time or a core was slower than at its best.",
}
LARGER = {"budget": "--config.measure.budget_s", "processes": "--config.measure.processes"}  # settings for more rounds
LEAST_CAUSE = 0.005  # of the CPUs' time: a smaller share that others took explains no wide interval


def load_warnings(manifest: Manifest, points: Sequence[MeasuredPoint]) -> list[str]:
    """Warnings about contention with other programs during the run; [] without any."""
    disturbed = [each for point in points if (each := busy.of_point(point)) is not None]
    sentences = []
    if disturbed:
        # One sentence stands for all: it has numbers, which would differ from point to point.
        most = max(disturbed, key=lambda each: each.rounds)
        others = [each.point for each in disturbed if each is not most]
        names = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        also = f"; likewise {names}" if others else ""
        sentences.append(f"{most.sentence[:1].upper()}{most.sentence[1:]}{also}.")
    if shared := manifest.get("shared_with"):
        sentences.append(f"The machine was shared on purpose (--share_machine) with {shared}.")
    return sentences


def changes(rows: Sequence[Row]) -> list[str]:
    """A sentence if points became slower or faster during the run; [] if chance explains what they did."""
    compared = [(row.point_id, row.thirds) for row in rows if row.thirds is not None]
    found = [(name, each.ratio) for name, each in compared if each.differ(len(compared))]
    if not found:
        return []
    found.sort(key=lambda one: -abs(math.log(one[1].value)))
    name, ratio = found[0]
    others = ROUNDS["others changed"].format(count=len(found) - 1, all=len(compared) - 1) if len(found) > 1 else ""
    slower = "slower" if ratio.value > 1 else "faster"
    facts = {"point": name, "slower": slower, "ratio": ratio.value, "lo": ratio.lo, "hi": ratio.hi, "others": others}
    return [ROUNDS["changed"].format(**facts)]


def machine_description(manifest: Manifest, points: Sequence[MeasuredPoint]) -> list[str]:
    """Sentences on the machine's identity, its load, and its JAX settings."""
    facts = manifest.get("identity") or {}
    # Processors of one name may differ in these.
    known = {name: facts.get(name) for name in ("family", "model", "stepping", "kernel")}
    parts = [str(manifest.get("cpu_model") or "unknown processor")]
    parts += [f"{name} {value}" for name, value in known.items() if value not in (None, "")]
    if cores := manifest.get("cores"):
        parts.append(f"{cores} usable core{'s' if cores != 1 else ''}")
    product = facts.get("product_s")
    if product is not None:
        parts.append(f"the reference product takes {digits(1e3 * product)} ms on a core")
    elif facts:  # an older manifest has no identity at all, and never tried
        parts.append("the reference product was not measured, because the machine was busy")
    others = taken([gates.load_of(point) for point in points])
    # Workers may have other variables than their parent: those of the child that measured count.
    environments = [manifest.get("environment") or {}]
    environments += [worker.get("environment") or {} for worker in manifest.get("workers", {}).values()]
    load_of_others = [f"{others[:1].upper()}{others[1:]}."] if others else []
    # A run that only compiled knows nothing of the machine that it is for.
    known_machine = facts or manifest.get("cpu_model") or cores
    return [
        *([f"{', '.join(parts)}."] if known_machine else []),
        *load_of_others,
        *idle_power(manifest),
        *jax_settings.sentences(environments),
        *allocators(manifest),
    ]


def idle_power(manifest: Manifest) -> list[str]:
    """What the GPUs drew before anything ran, apart from the energy of a step."""
    found: dict[str, list[float]] = {}
    for worker in manifest.get("workers", {}).values():
        for name, watts in worker.get("idle_w", {}).items():
            found.setdefault(name, []).append(watts)
    drawn = [f"{name} {float(np.median(watts)):.0f} W" for name, watts in sorted(found.items())]
    return [ROUNDS["idle power"].format(drawn=", ".join(drawn))] if drawn else []


def allocators(manifest: Manifest) -> list[str]:
    """Sentences on the allocators of the processes that measured; none if all had glibc with one heap."""
    said: dict[str, None] = {}
    for worker in manifest.get("workers", {}).values():
        environment = worker.get("environment") or {}
        # A page may be published, so it shows no path of this machine.
        preloaded = [path.rpartition("/")[2] for path in environment.get("LD_PRELOAD", "").replace(":", " ").split()]
        if preloaded:
            said[f"Processes that measured preloaded {', '.join(preloaded)}: memory may come from there."] = None
        if (heaps := environment.get("MALLOC_ARENA_MAX", "1")) != "1":
            said[f"Processes that measured had up to {heaps} glibc heaps (MALLOC_ARENA_MAX), by default one."] = None
    return list(said)


def taken(states: Sequence[gates.Load]) -> str:
    """The share of CPU time that other programs and the hypervisor took, as a clause (medians over points); "" if
    unknown."""
    words = {"others": "other processes took", "steal": "the hypervisor took"}
    values = {name: [v for state in states if math.isfinite(v := getattr(state, name))] for name in words}
    clauses = [f"{word} {100 * float(np.median(values[name])):.1f} %" for name, word in words.items() if values[name]]
    of_several = " (median over points)" if len(states) > 1 else ""
    unknown = "" if values["steal"] else "; the hypervisor's share is not reported"
    return f"{' and '.join(clauses)} of its CPUs' time{of_several}{unknown}" if clauses else ""


def of_rounds(
    manifest: Manifest, points: Sequence[MeasuredPoint], controls: Sequence[Control], rows: Sequence[Row]
) -> list[str]:
    """What ended the run, how wide the widest confidence interval is and, if it is wide, why; [] for a fixed number of
    rounds."""
    auto = manifest["plan"].get("auto")
    if auto is None:
        return []
    if not auto["ended"]:
        if points and all(point.failure is not None for point in points):
            return [ROUNDS["all failed"]]
        return [ROUNDS["interrupted"]]
    last = auto["looks"][-1]
    if reason := _not_ended(auto, last, manifest["plan"]["rounds"], rows):
        return [ROUNDS["by hand"].format(reason=reason)]
    sets = manifest["plan"].get("sets")  # in older plans, processes ran in sequence
    shared = f"{sets} groups of processes" if sets else f"{last['rounds'] // auto['rounds_each']} processes"
    count = f"{last['rounds']} rounds in {shared}"
    # While sets of processes follow each other, as on accelerators, a look has no interval, but the page has.
    half, point = last["half_width"], last["point"]
    if half is None:
        half, point = max(half_widths(rows), default=(None, ""))
    widest = ROUNDS["known"].format(point=point, half=100 * half) if half is not None else ROUNDS["unknown"]
    left_out, facts = _left_out(points), {"count": count, "widest": widest}
    if auto["ended"] == "precise":
        # A closing round of each set follows the look that ended the run, and may widen an interval.
        return [" ".join([ROUNDS["precise"].format(**facts), *left_out])]
    facts["why"] = ROUNDS[auto["ended"]].format(budget_s=auto["budget_s"])
    if half is not None and half <= HALF_WIDTH:
        return [" ".join([ROUNDS["reached"].format(**facts), *left_out])]
    wide = [each for each in points if each.point == point] or points  # the load of the widest interval's point
    ended = " ".join([ROUNDS["not reached"].format(**facts), *left_out, *_reasons(wide, controls)])
    return [ended, ROUNDS["more"].format(setting=LARGER[auto["ended"]])]


def _not_ended(auto: Auto, last: LookEntry, rounds: int, rows: Sequence[Row]) -> str:
    """How the records contradict the recorded end of the run, as a clause; "" if they do not."""
    # A run that was stopped by hand at a lucky moment has intervals that are too narrow (optional stopping).
    if last["rounds"] != rounds or last["ended"] != auto["ended"]:
        return ROUNDS["other rounds"].format(seen=last["rounds"], rounds=rounds)
    widest = max((width for width, _ in half_widths(rows)), default=0.0)
    if auto["ended"] != "precise" or widest <= SLACK * HALF_WIDTH:
        return ""
    return ROUNDS["wide"].format(half=100 * widest)


def _left_out(points: Sequence[MeasuredPoint]) -> list[str]:
    """A sentence on the rounds that do not count; [] if all do."""
    most = max(points, key=lambda point: len(point.left_out), default=None)
    if most is None or not most.left_out:
        return []
    free, every = len(most.rounds), len(most.every_round)
    return [ROUNDS["left out"].format(free=free, all=every, most=100 * MOST_TAKEN)]


def _reasons(points: Sequence[MeasuredPoint], controls: Sequence[Control]) -> list[str]:
    """A sentence on why the intervals are wide, as far as the run shows it; [] if it does not."""
    floor = max((control.aa_spread for control in controls), default=0.0)
    same = f"the A/A spread (same program measured twice) is up to {100 * floor:.1f} %" if floor else ""
    states = [gates.load_of(point, point.rounds) for point in points]
    shares = [share for state in states for share in (state.others, state.steal) if math.isfinite(share)]
    others = taken(states) if shares and max(shares) >= LEAST_CAUSE else ""  # less is no cause
    reasons = " and ".join(filter(None, (others, same)))
    return [f"Why so wide: {reasons}."] if reasons else []


def shortfalls(rows: Sequence[Row], config: Mapping[str, Any]) -> list[str]:
    """The reasons why these rows are incomplete or wrong, without duplicates; [] if they are complete and correct.

    A strategy that does not support the model is a shortfall if it was requested by name, or if no other ran.
    """
    found = [*impossible(rows), *grouped(rows, _shortfall)]  # impossible first: it makes the whole run suspect
    sentences = [f"{names(points)} {'is' if len(points) == 1 else 'are'} {what}." for what, points in found]
    return sentences if excused(rows, config) else sentences + unsupported(rows)


def _shortfall(row: Row) -> list[str]:
    """[what is wrong with the point, and why]; [] if nothing is."""
    point = row.point
    word = state(point.status, point.check_ok)  # without its gate: a refusal may be noise, and is no shortfall
    if word in ("ok", "unsupported"):
        return []
    what = "recorded as failed" if word == "failed" else point.status if point.status != "ok" else word
    return [f"{what}: {point.reason}" if point.reason else what]


def impossible(rows: Iterable[Row]) -> list[tuple[str, list[str]]]:
    """(sentence with the first reason, points) for each gate that found an impossible result."""
    found: dict[str, tuple[str, list[str]]] = {}
    for row in rows:
        for gate in gates.impossible(row.gates):
            found.setdefault(gate.name, (gate.reason, []))[1].append(row.point_id)
    return [
        (f"impossible by the gate '{name}': {reason}" + (" at the first point" if len(points) > 1 else ""), points)
        for name, (reason, points) in found.items()
    ]


def grouped(rows: Iterable[Row], say: Callable[[Row], Iterable[str]]) -> list[tuple[str, list[str]]]:
    """(sentence without its full stop, points) for each distinct sentence."""
    points: dict[str, list[str]] = {}
    for row in rows:
        for sentence in say(row):
            points.setdefault(sentence.rstrip("."), []).append(row.point_id)
    return list(points.items())


def named(found: Iterable[tuple[str, list[str]]]) -> list[str]:
    """The sentences of `grouped`, each after the names of its points."""
    return [f"{names(points)}: {sentence}." for sentence, points in found]


def notes(rows: Sequence[Row]) -> list[str]:
    """Sharding annotations of the model that are ignored; then each distinct note, after the names of its points."""
    # The model's annotations are the same at every point, so their sentence needs no names.
    ignored = dict.fromkeys(row.point.record.annotations for row in rows if row.point.record is not None)
    return [*filter(None, ignored), *named(grouped(rows, lambda row: row.notes))]


def work(rows: Sequence[Row]) -> list[str]:
    """What the compiled steps do, where a reader would take it for more, or for something else."""
    return named(grouped(rows, lambda row: step_work.sentences(row.point.work, row.point.levers)))


def refusals(rows: Sequence[Row]) -> list[str]:
    """Sentences on the rows that a gate refused, by gate. Wrong and impossible results are shortfalls instead."""
    refused = [row for row in rows if row.gate == "refused" and row.point.check_ok is not False]
    refused = [row for row in refused if not gates.impossible(row.gates)]
    refused.sort(key=lambda row: [gate.name for gate in row.gates if gate.passed is False])  # alike ones together

    def not_passed(row: Row) -> list[str]:
        return ["; ".join(f'"{gate.name}": {gate.reason}' for gate in row.gates if gate.passed is False)]

    return [f"{', '.join(points)} did not pass {reason}." for reason, points in grouped(refused, not_passed)]


def excused(rows: Sequence[Row], config: Mapping[str, Any]) -> list[str]:
    """The sentences of `unsupported` if they are no shortfall, else []. That is so if all strategies were requested and
    at least one supports the model, or if all sets of compiler options were requested and each strategy supports one.
    """
    missing = unsupported(rows)  # only of training steps: a case has no strategy
    if not missing or all(row.point.status == "unsupported" for row in rows):
        return []
    some_left = all(
        any(row.point.status != "unsupported" for row in rows if row.point.strategy == strategy)
        for strategy in {row.point.strategy for row in rows}
    )
    return missing if config.get("strategy") == "all" or (every_set(config) and some_left) else []


def unsupported(rows: Sequence[Row]) -> list[str]:
    """A sentence for each strategy that does not support the model, at all or at the points named."""
    by_strategy: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.point.status == "unsupported":
            by_strategy.setdefault(row.point.strategy, {}).setdefault(row.point.reason, []).append(row.point_id)
    sentences = []
    for strategy, reasons in by_strategy.items():
        if all(row.point.status == "unsupported" for row in rows if row.point.strategy == strategy):
            sentences.append(f"{strategy}: {next(iter(reasons))}")  # the other reasons differ only in sizes
        else:
            sentences += [f"{names(points)}: {reason}" for reason, points in reasons.items()]
    return sentences


def base_lines(rows: Sequence[Row]) -> list[str]:
    """The base of each strategy and scaling, with its absolute time."""
    return [
        f"{row.point.strategy} {row.point.scaling}: {_devices_text(row)}, {timed(row)}"
        for row in rows
        if row.base is not None and row.point is row.base
    ]


def timed(row: Row) -> str:
    """The absolute time of a base, and the number of its samples."""
    samples = f"{counted(row.timing.samples, 'block')} in {counted(row.timing.rounds, 'round')}"
    return f"{seconds(row.timing.step_s.value)} per step of {row.point.global_batch}, {samples}."


def utilisation(rows: Sequence[Row]) -> list[str]:
    """The MFU of each strategy at its smallest and largest device counts, or each reason why there is none.

    Shares of a large product's rate in the same rounds come first. Without them and without a catalogued peak, shares
    of the measured peak in the machine profile are used.
    """
    alone = [row for row in rows if not row.point.oversubscribed]
    of_product = []
    for who, ends in _families([row for row in alone if row.use.product_share.known]):
        of_product.append(f"{who}: {'; '.join(f'on {_devices_text(row)} {row.use.product_note}' for row in ends)}.")
    known = [row for row in alone if math.isfinite(row.use.mfu)]
    if known:
        mfu = [f"{who}: {', '.join(map(_mfu_clause, ends))}; {ends[0].use.note}." for who, ends in _families(known)]
        return [*of_product, *mfu]
    if of_product:  # measured in the same rounds, so better than a profile of another day
        return of_product
    shares = [row for row in alone if math.isfinite(row.use.measured_peak_share)]
    sentences = [f"{who}: {', '.join(map(_measured_share, ends))}." for who, ends in _families(shares)]
    reasons = dict.fromkeys(row.use.note for row in rows)
    return sentences + [f"{reason[:1].upper()}{reason[1:]}." for reason in reasons if reason]


def _families(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """(name, [first row, last row]) of each strategy, scaling and peak."""
    families: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        note = row.use.note if math.isfinite(row.use.mfu) else ""
        families.setdefault((row.point.strategy, row.point.scaling, note), []).append(row)
    # A step of len - 1 takes both ends, and a single member once.
    return [(f"{s} {scaling}", members[:: max(1, len(members) - 1)]) for (s, scaling, _), members in families.items()]


def _devices_text(row: Row) -> str:
    return devices(row.point.devices)


def _measured_share(row: Row) -> str:
    share = f"{100 * row.use.measured_peak_share:.3g} % of this machine's measured matmul peak"
    return f"{share} on {_devices_text(row)} ({row.use.flop_per_s / 1e12:.3g} TFLOP/s)"


def _mfu_clause(row: Row) -> str:
    return f"MFU {100 * row.use.mfu:.3g} % on {_devices_text(row)} ({row.use.flop_per_s / 1e12:.3g} TFLOP/s)"


def names(points: list[str]) -> str:
    """Up to four names, or the first three and a count."""
    return ", ".join(points) if len(points) <= 4 else f"{', '.join(points[:3])} and {len(points) - 3} more"


def token_sentences(rows: Sequence[Row]) -> list[str]:
    """Real and all tokens per second for each strategy, scaling and arm, on its smallest and largest device counts."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if math.isfinite(row.real_share * row.tokens_per_s) and not row.point.oversubscribed:
            name = ", ".join(filter(None, (f"{row.point.strategy} {row.point.scaling}", row.point.arm)))
            families.setdefault(name, []).append(row)
    ends = {name: family[:: max(1, len(family) - 1)] for name, family in families.items()}
    return [f"{name}: {'; '.join(map(_token_rates, rows))}." for name, rows in ends.items()]


def _token_rates(row: Row) -> str:
    rates = (row.real_share * row.tokens_per_s, row.tokens_per_s)
    real, total = (scaled(value, "").replace(" ", "") for value in rates)  # "12.3k", with one unit for both
    return f"{real} real of {total} tokens/s ({100 * row.real_share:.3g} %) on {_devices_text(row)}"


def baselines(groups: Sequence[ArmGroup]) -> list[str]:
    """A sentence on the baseline of each group, with its absolute time."""
    sentences = []
    for group in groups:
        base = group.arms[0]
        where = f"{group.strategy} {group.scaling}, {devices(group.devices)}"
        label = display(base.point.arm) if base.label.isdigit() else base.label  # "batch: 1", which "1" does not say
        if not base.timing.step_s.known:
            why = f" ({base.point.reason})" if base.point.reason else ""
            sentences.append(f"{where}: {label}, the baseline, has no times{why}, so nothing is compared.")
            continue
        sentences.append(f"{where}: {label}, {timed(base)}")
    return sentences


def compiler_sets(manifest: Manifest) -> list[str]:
    """The options of each named set of compiler options in the run, with its source."""
    sets = manifest["plan"].get("compiler_sets", {})
    return [f"{name}: {options} (source: {source})." for name, (options, source) in sets.items()]

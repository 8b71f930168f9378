# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences on how a run was measured: its rounds, the machine's load and its settings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jaxbench.analysis import load
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.analysis.scaling import Control, half_widths
from jaxbench.catalog import jax_settings
from jaxbench.digits import digits
from jaxbench.records.manifest import Auto, LookEntry, Manifest
from jaxbench.statistics.contended import MOST_TAKEN
from jaxbench.statistics.looks import HALF_WIDTH

MOSTLY = 0.5  # a point is named if more than this share of its rounds was contended


def warnings(manifest: Manifest, points: Sequence[MeasuredPoint]) -> list[str]:
    """Warnings about contention with other programs during the run; [] without any."""
    disturbed = [point for point in points if load.of(point).contended > MOSTLY]
    sentences = []
    if disturbed:
        names = ", ".join(point.point for point in disturbed[:4])
        names += f" and {len(disturbed) - 4} more" if len(disturbed) > 4 else ""
        reason = next(filter(None, (load.contended(disturbed[0], each) for each in disturbed[0].every_round)))
        sentences.append(f"Other programs used the machine in most rounds of {names}: in one of them, {reason}.")
    if shared := manifest.get("shared_with"):
        sentences.append(f"The machine was shared on purpose (--share_machine) with {shared}.")
    return sentences


def description(manifest: Manifest, points: Sequence[MeasuredPoint]) -> list[str]:
    """Sentences on the machine's identity, its load, and its JAX settings."""
    facts = manifest.get("identity") or {}
    known = {name: facts.get(name) for name in ("family", "model", "stepping", "kernel")}
    parts = [str(manifest.get("cpu_model") or "unknown processor")]
    parts += [f"{name} {value}" for name, value in known.items() if value not in (None, "")]
    if cores := manifest.get("cores"):
        parts.append(f"{cores} usable core{'s' if cores != 1 else ''}")
    product = facts.get("product_s")
    if product is not None:
        parts.append(f"the reference product takes {digits(1e3 * product)} ms on a core")
    elif facts:
        parts.append("the reference product was not measured, because the machine was busy")
    others = taken([load.of(point) for point in points])
    environments = [manifest.get("environment") or {}]
    environments += [each.get("environment") or {} for each in manifest.get("workers", {}).values()]
    load_of_others = [f"{others[:1].upper()}{others[1:]}."] if others else []
    return [f"{', '.join(parts)}.", *load_of_others, *jax_settings.sentences(environments)]


def taken(states: Sequence[load.Load]) -> str:
    """The share of CPU time that other programs and the hypervisor took, as a clause (medians over points); "" if
    unknown."""
    words = {"others": "other processes took", "steal": "the hypervisor took"}
    values = {name: [v for state in states if math.isfinite(v := getattr(state, name))] for name in words}
    clauses = [f"{word} {100 * float(np.median(values[name])):.1f} %" for name, word in words.items() if values[name]]
    of_several = " (median over points)" if len(states) > 1 else ""
    unknown = "" if values["steal"] else "; the hypervisor's share is not reported"
    return f"{' and '.join(clauses)} of its CPUs' time{of_several}{unknown}" if clauses else ""


SLACK = 1.25  # the page's intervals may be wider by this factor: it may refuse a row, or have a calibrated spread
GOAL = f"{100 * HALF_WIDTH:.0f} points"


def of_rounds(
    manifest: Manifest,
    points: Sequence[MeasuredPoint],
    controls: Sequence[Control] = (),
    rows: Sequence[Row] = (),
) -> list[str]:
    """What ended the run, how wide the widest confidence interval is and, if it is wide, why; [] for a fixed number of
    rounds."""
    about = manifest["plan"].get("auto")
    if about is None:
        return []
    if not about["ended"]:
        return ["Not finished: it was interrupted, and the same command continues it."]
    last = about["looks"][-1]
    if reason := _not_ended(about, last, manifest["plan"]["rounds"], rows):
        return [f"Stopped by hand and not by its own rule: {reason}. Its confidence intervals are too narrow."]
    sets = manifest["plan"].get("sets")  # in older plans, processes ran in sequence
    shared = f"{sets} sets of processes" if sets else f"{last['rounds'] // about['rounds_each']} processes"
    count = f"{last['rounds']} rounds in {shared}"
    widest = f"{last['point']} is known to ± {100 * last['half_width']:.1f} points"
    if about["ended"] == "precise":
        # A closing round of each set follows the look that ended the run, and may widen an interval.
        ended = f"Stopped after {count}, once every confidence interval was within ± {GOAL}. At the end {widest}."
        return [" ".join([ended, *_left_out(points)])]
    means, more = {
        "budget": (f"its budget of {about['budget_s']:g} s for rounds is spent", "--config.measure.budget_s"),
        "processes": ("it has reached its limit of processes", "--config.measure.processes"),
    }[about["ended"]]
    wide = [point for point in points if point.point == last["point"]] or points
    ended = f"Stopped after {count}, because {means}: {widest}, not to ± {GOAL}."
    return [" ".join([ended, *_left_out(points), *_reasons(wide, controls)]), f"A larger {more} allows more rounds."]


def _not_ended(about: Auto, last: LookEntry, rounds: int, rows: Sequence[Row]) -> str:
    """How the records contradict the recorded end of the run, as a clause; "" if they do not."""
    if last["rounds"] != rounds or last["ended"] != about["ended"]:
        return f"its last look was after {last['rounds']} rounds, but it has {rounds}"
    widest = max((width for width, _ in half_widths(rows)), default=0.0)
    if about["ended"] != "precise" or widest <= SLACK * HALF_WIDTH:
        return ""
    return f"it claims that every interval is within ± {GOAL}, but one is ± {100 * widest:.1f} points"


def _left_out(points: Sequence[MeasuredPoint]) -> list[str]:
    """A sentence on the rounds that do not count; [] if all do."""
    most = max(points, key=lambda point: len(point.left_out), default=None)
    if most is None or not most.left_out:
        return []
    return [
        f"{len(most.left_out)} of {len(most.every_round)} rounds do not count, because other programs took more than "
        f"{100 * MOST_TAKEN:.0f} % of the CPUs' time in them."
    ]


def _reasons(points: Sequence[MeasuredPoint], controls: Sequence[Control]) -> list[str]:
    """A sentence on why the intervals are wide, as far as the run shows it; [] if it does not."""
    floor = max((control.aa_spread for control in controls), default=0.0)
    same = f"the A/A spread (same program measured twice) is up to {100 * floor:.1f} %" if floor else ""
    others = taken([load.of(point, point.rounds) for point in points])
    reasons = " and ".join(filter(None, (others, same)))
    return [f"Why so wide: {reasons}."] if reasons else []

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences on why a run with measure.rounds=auto stopped: docs/metrics, Rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxbench.analysis import load
from jaxbench.analysis.point_records import Measured
from jaxbench.analysis.scaling import Control, Row, half_widths
from jaxbench.report import machine_state
from jaxbench.statistics.looks import HALF_WIDTH

SLACK = 1.25  # the page's intervals may be wider by this factor: it may refuse a row, or have a calibrated spread
GOAL = f"{100 * HALF_WIDTH:.0f} points"


def sentences(
    manifest: Mapping[str, Any],
    points: Sequence[Measured[Any]],
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
        return [f"Stopped after {count}, because every confidence interval is within ± {GOAL}: the widest, {widest}."]
    means, more = {
        "budget": (f"its budget of {about['budget_s']:g} s for rounds is spent", "--config.measure.budget_s"),
        "processes": ("it has reached its limit of processes", "--config.measure.processes"),
    }[about["ended"]]
    wide = [point for point in points if point.point == last["point"]] or points
    ended = f"Stopped after {count}, because {means}: {widest}, not to ± {GOAL}."
    return [" ".join([ended, *_reasons(wide, controls)]), f"A larger {more} allows more rounds."]


def _not_ended(about: Mapping[str, Any], last: Mapping[str, Any], rounds: int, rows: Sequence[Row]) -> str:
    """How the records contradict the recorded end of the run, as a clause; "" if they do not."""
    if last["rounds"] != rounds or last["ended"] != about["ended"]:
        return f"its last look was after {last['rounds']} rounds, but it has {rounds}"
    widest = max((width for width, _ in half_widths(rows)), default=0.0)
    if about["ended"] != "precise" or widest <= SLACK * HALF_WIDTH:
        return ""
    return f"it claims that every interval is within ± {GOAL}, but one is ± {100 * widest:.1f} points"


def _reasons(points: Sequence[Measured[Any]], controls: Sequence[Control]) -> list[str]:
    """A sentence on why the intervals are wide, as far as the run shows it; [] if it does not."""
    floor = max((control.aa_spread for control in controls), default=0.0)
    same = f"the A/A spread (same program measured twice) is up to {100 * floor:.1f} %" if floor else ""
    taken = machine_state.taken([load.of(point) for point in points])
    reasons = " and ".join(filter(None, (taken, same)))
    return [f"Why so wide: {reasons}."] if reasons else []

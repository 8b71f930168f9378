# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why a run with measure.rounds=auto has as many rounds as it has: docs/metrics, Rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxbench.analysis import load
from jaxbench.analysis.point_records import Measured
from jaxbench.analysis.scaling import Control, Row, half_widths
from jaxbench.report import machine_state
from jaxbench.statistics.looks import HALF_WIDTH

SLACK = 1.25  # a page may refuse a row, or know a spread, that the look did not
GOAL = f"{100 * HALF_WIDTH:.0f} points"


def sentences(
    manifest: Mapping[str, Any],
    points: Sequence[Measured[Any]],
    controls: Sequence[Control] = (),
    rows: Sequence[Row] = (),
) -> list[str]:
    """What ended the run, how wide the widest interval is and, unless it is narrow, why; [] for a fixed number of
    rounds."""
    about = manifest["plan"].get("auto")
    if about is None:
        return []
    if not about["ended"]:
        return ["Not ended: it was interrupted, and the same command continues it."]
    last = about["looks"][-1]
    if reason := _not_ended(about, last, manifest["plan"]["rounds"], rows):
        return [f"Not ended by its own rule, but by hand: {reason}. Its intervals promise too much."]
    sets = manifest["plan"].get("sets")  # in older plans, processes followed each other
    shared = f"{sets} sets of processes" if sets else f"{last['rounds'] // about['rounds_each']} processes"
    count = f"{last['rounds']} rounds in {shared}"
    widest = f"{last['point']} is known to ± {100 * last['half_width']:.1f} points"
    if about["ended"] == "precise":
        return [f"Ended after {count}, because every interval is as narrow as ± {GOAL}: the widest, {widest}."]
    means, more = {
        "budget": (f"its {about['budget_s']:g} s for rounds are spent", "--config.measure.budget_s"),
        "processes": ("it may have no more processes", "--config.measure.processes"),
    }[about["ended"]]
    wide = [point for point in points if point.point == last["point"]] or points
    ended = f"Ended after {count}, because {means}: {widest}, not to ± {GOAL}."
    return [" ".join([ended, *_reasons(wide, controls)]), f"A larger {more} allows more rounds."]


def _not_ended(about: Mapping[str, Any], last: Mapping[str, Any], rounds: int, rows: Sequence[Row]) -> str:
    """Why the records are not those of a run that ended as it says, as a clause; "" if they may be."""
    if last["rounds"] != rounds or last["ended"] != about["ended"]:
        return f"its last look was after {last['rounds']} rounds, and it has {rounds}"
    widest = max((width for width, _ in half_widths(rows)), default=0.0)
    if about["ended"] != "precise" or widest <= SLACK * HALF_WIDTH:
        return ""
    return f"it says that every interval is as narrow as ± {GOAL}, and one is ± {100 * widest:.1f} points"


def _reasons(points: Sequence[Measured[Any]], controls: Sequence[Control]) -> list[str]:
    """What makes the intervals wide, as far as the run shows it."""
    floor = max((control.floor for control in controls), default=0.0)
    same = f"one program that was measured twice differs by up to {100 * floor:.1f} %" if floor else ""
    taken = machine_state.taken([load.of(point) for point in points])
    reasons = " and ".join(filter(None, (taken, same)))
    return [f"Why so wide: {reasons}."] if reasons else []

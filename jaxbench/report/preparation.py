# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The preparation ledger on the page of a run."""

from __future__ import annotations

from jaxbench.digits import digits
from jaxbench.records.manifest import Preparation, PreparedPoint
from jaxbench.records.preparation import SECONDS, programs_of, sentence
from jaxbench.report.drawing.notes import spoken
from jaxbench.report.table import NUMBER, TEXT, Table, plain

MOST = 200  # lines of the ledger on a page; manifest.json has all
PROGRAMS = "A point has at most {most} programs in one group of processes ({point}), and the model {model}."
_HEADINGS = {
    "point": TEXT,
    "group": NUMBER,
    "cache": TEXT,
    "compiled": NUMBER,
    "loaded": NUMBER,
    **{name.removesuffix("_s").replace("_", " "): NUMBER for name in SECONDS},
}


def sentences(preparation: Preparation) -> list[str]:
    """What preparing has cost, and how many programs a point has."""
    if not (said := sentence(preparation)):
        return []
    points = preparation.get("points", [])
    most = programs_of(points)
    if not most:
        return [said]
    point = max(most, key=lambda name: most[name])
    model = max((each["programs"] for each in points if not each["point"]), default=0)
    return [said, PROGRAMS.format(most=most[point], point=point, model=model)]


def ledger(preparation: Preparation) -> Table | None:
    """The ledger of points and sets; None if nothing was prepared."""
    points = preparation.get("points", [])
    if not points:
        return None
    more = f" {len(points) - MOST} more lines are in manifest.json." if len(points) > MOST else ""
    note = f"Seconds of the newest start. '?': the compiler does not tell tuning from compiling.{more}"
    return plain(_HEADINGS, [_point_cells(each) for each in points[:MOST]], note=note)


def _point_cells(each: PreparedPoint) -> tuple[str, ...]:
    times = {name: value for name, value in each.items() if name in SECONDS}
    shown = ["?" if times[name] is None else digits(float(str(times[name]))) if times[name] else "" for name in SECONDS]
    name = spoken(each["point"]) or "the processes and the model"
    return name, str(each["set"] + 1), each["cache"], str(each["compiled"]), str(each["loaded"]), *shown

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cost of a training against its time: a line per kind of device, a mark per number of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbench.report.drawing import marks
from jaxbench.report.drawing.kit import Figure, Sheet, entitle, log_axis, plain

VIEWS = ()  # `jaxbench advise` draws it
CAPTION = (
    "Forecast cost of a training against its forecast time, on logarithmic axes; one mark per number of devices. A "
    "filled mark is the slow end of an estimated range, and a thin line leads to the fast end. Hollow marks with "
    "dashed lines are bounds: a real run is slower and costs more. Named marks are on the frontier of their grade: no "
    "cheaper choice is as fast."
)


def clock(lines: Sequence[dict[str, Any]]) -> tuple[str, float]:
    """(name of the time unit, its seconds): hours if all trainings end within two days, else days."""
    return ("days", 86400.0) if max((line["sort_s"] for line in lines), default=0.0) > 2 * 86400 else ("hours", 3600.0)


def draw(lines: Sequence[dict[str, Any]], job: dict[str, Any], *, title: str) -> Figure | None:
    """Draws one panel. lines: the candidates of advise.json. None without candidates."""
    if not lines:
        return None
    families: dict[str, list[dict[str, Any]]] = {}
    both = len({line["grade"] for line in lines}) > 1
    for line in sorted(lines, key=lambda line: line["devices"]):
        who = f"{line['target'].partition(':')[0]}, {line['provider']}, {line['strategy']}"
        grade = ", at best" if both and line["grade"] != "estimated" else ""
        families.setdefault(" ".join(filter(None, (who, line["arm"]))) + grade, []).append(line)
    unit, scale = clock(lines)
    sheet = Sheet(1, 1, heights=[3.4])
    axes = sheet.panels[0, 0]
    for place, family in enumerate(families.values()):
        colour, marker = marks.series_style(place)
        bound = family[0]["grade"] != "estimated"
        at = [(line["sort_s"] / scale, line["sort_cost"]) for line in family]
        axes.plot(
            *zip(*at, strict=True), color=colour, marker=marker, linewidth=0.8, linestyle="--" if bound else "-",
            markersize=4, markerfacecolor="white" if bound else colour, zorder=3,
        )  # fmt: skip
        for line in () if bound else family:
            ends = (line["low_s"] / scale, line["high_s"] / scale), (line["low_cost"], line["high_cost"])
            axes.plot(*ends, color=colour, linewidth=0.6, zorder=2)
    for line in lines:
        if line["frontier"]:
            marks.write(axes, line["sort_s"] / scale, line["sort_cost"], line["name"], above=True, size=5.5)
    if job["deadline_s"] is not None:
        axes.axvline(job["deadline_s"] / scale, color=marks.GREY, linewidth=0.7, linestyle=(0, (1, 1.2)), zorder=1)
        place_of: Any = dict(xycoords=("data", "axes fraction"), xytext=(-2, 0), ha="right")
        marks.write(axes, job["deadline_s"] / scale, 0.03, "deadline", size=6.3, **place_of)
    for axis in ("x", "y"):
        log_axis(axes, axis, show=plain)
    entitle(axes, x=unit, y=f"cost, {lines[0]['currency']}")
    handles = [
        marks.handle(place, name, between="-" if family[0]["grade"] == "estimated" else "--")
        for place, (name, family) in enumerate(families.items())
    ]
    for handle, family in zip(handles, families.values(), strict=True):
        if family[0]["grade"] != "estimated":
            handle.set_markerfacecolor("white")
    return sheet.finish(title, handles, _notes(lines))


def _notes(lines: Sequence[dict[str, Any]]) -> list[str]:
    sentences = []
    if any(line["grade"] == "estimated" for line in lines):
        sentences.append("filled: the slow end of an estimated range; the thin line leads to its fast end")
    if any(line["grade"] != "estimated" for line in lines):
        sentences.append("hollow, dashed: at best, a bound; do not compare it with an estimate")
    if any(line["price_is_old"] for line in lines):
        old = sorted({line["target"].partition(":")[0] for line in lines if line["price_is_old"]})
        sentences.append(f"prices of {', '.join(old)} are more than a year old")
    return sentences

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Throughput over processes or hosts: bars of ideal and measured throughput, with the efficiency above them.

The same kind of figure as for Horovod (Sergeev and Del Balso 2018, arXiv:1802.05799) and MegaScale (Jiang et al.,
NSDI 2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Patch

from jaxbench.analysis import points
from jaxbench.analysis.quantities import devices as devices_word
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.kit import GREY, Axes, Figure, Mark, Sheet, entitle, short, si, zero_axis
from jaxbench.report.findings import Findings, unit

VIEWS = ("training",)
ORDER = 2
MOST = 3  # most strategies, one row of panels each
IDEAL: Any = dict(facecolor="#ededed", edgecolor=GREY, linewidth=0.6)  # pale, because it was not measured
WIDE = 0.38  # width of a bar; pairs of bars are 1 apart
CAPTION = (
    "Examples (or tokens) per second over the number of processes or hosts, next to the ideal: the base's throughput "
    "times the growth in devices. The number above a pair is the efficiency: measured divided by ideal."
)


def draw(run: Findings) -> Figure | None:
    """Draws a panel per strategy and scaling. None unless a strategy was timed on several numbers of processes."""
    timed = [row for row in run.rows if isinstance(row, Row) and row.timing.step_s.known and not row.point.explains]
    groups = {name: rows for name, rows in families.families(timed).items() if len(_counts(rows)) > 1}
    if not groups:
        return None
    shown = dict(list(groups.items())[:MOST])
    every = [row for rows in shown.values() for row in rows]
    scalings = list(dict.fromkeys(row.point.scaling for row in every))
    hosts = {row.point.point: points.hosts_of(row.point, run.manifest.get("workers", {})) for row in every}
    hosts = hosts if max(hosts.values()) > 1 else {}
    sheet = Sheet(len(shown), len(scalings), heights=2.2)
    for line, (name, rows) in zip(sheet.panels, shown.items(), strict=True):
        for axes, scaling in zip(line, scalings, strict=True):
            _pairs(axes, [row for row in rows if row.point.scaling == scaling], hosts)
            entitle(axes, f"{short(name, 30)}, {scaling} scaling", y=_unit(rows) if axes is line[0] else "")
    handles = [Patch(label="ideal", **IDEAL), marks.bar_handle(0, "measured")]
    remarks = [*families.remarks(every, every), *notes.rest(len(shown), len(groups), "strategies")]
    over = "hosts" if hosts else "processes"
    return sheet.finish(f"{run.experiment}: throughput over {over}", handles, remarks)


def _counts(rows: Sequence[Row]) -> set[int]:
    return {row.point.processes for row in rows}


def _unit(rows: Sequence[Row]) -> str:
    return "tokens/s" if _of_tokens(rows) else f"{short(unit(rows))}/s"


def _of_tokens(rows: Sequence[Row]) -> bool:
    return all(math.isfinite(row.point.fact("tokens")) for row in rows)


def _pairs(axes: Axes, rows: Sequence[Row], hosts: Mapping[str, int]) -> None:
    """Draws the pairs of bars of one strategy and scaling. hosts: the host count by point; {} for a run on one host."""
    tokens, top = _of_tokens(rows), 0.0
    for at, row in enumerate(rows):
        rate = row.timing.examples_per_s.times(row.point.fact("tokens") if tokens else 1)
        mark = Mark(at=at + WIDE / 2, value=rate, state=marks.state(row))
        best = rate.value / row.speedup.value * row.relative_devices if row.speedup.known else 0.0
        axes.bar([at - WIDE / 2], [best], width=WIDE, **IDEAL)
        marks.vbars(axes, [mark], thick=WIDE)
        marks.write(axes, at, max(best, mark.end), _percent(row), above=True)
        top = max(top, best, mark.end)
    axes.grid(False, axis="x")
    axes.set_xlim(-0.6, max(len(rows), 2) - 0.4)
    axes.set_xticks(range(len(rows)), [_name(row, hosts.get(row.point.point)) for row in rows])
    axes.tick_params(axis="x", length=0)
    zero_axis(axes, "y", top, show=si)


def _percent(row: Row) -> str:
    value = row.efficiency
    return f"{100 * value.value:.0f} %" if value.known and marks.state(row) in ("solid", "hollow") else ""


def _name(row: Row, hosts: int | None) -> str:
    """Such as "2 hosts" or "4 processes", with the device count below if it differs. hosts: None for a one-host run."""
    count, what = (row.point.processes, "process") if hosts is None else (hosts, "host")
    name = f"{count} {what}{('es' if hosts is None else 's') * (count > 1)}"
    return name if count == row.point.devices else f"{name}\n{devices_word(row.point.devices)}"

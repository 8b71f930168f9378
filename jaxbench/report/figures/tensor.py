# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: weak scaling, strong scaling, and bytes received per step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import devices_axis, efficiency_axis, entitle, log_axis, plain, whole_zero
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Sheet, exact
from jaxbench.report.findings import Findings

VIEWS = ("training/tensor", "levers/tensor")
CAPTION = (
    "Weak: FLOP/s per device for a model that grows with the devices, relative to the smallest device count. Strong: "
    "speed-up of one model split over more devices; dashed: linear. MB received: the size of the collective results of "
    "a compiled step on one device. Grey, dashed, with markers: Megatron-LM on V100s."
)
WEAK, STRONG = "megatron2019_weak_scaling", "megatron2019_strong_scaling"
_WEAK_COLUMNS = (("mp", "D", "Megatron: model"), ("mp_dp", "v", "Megatron: model + data"))
_STRONG_SHAPE, _STRONG_NAME = "P", "Megatron: strong"
_STYLES = {"strong": "-", "weak": ":"}


def draw(run: Findings) -> Figure | None:
    """Draws weak and strong scaling, if timed, and bytes received. None when nothing was compiled."""
    sent = [row for row in families.compiled(run.rows) if math.isfinite(families.received_bytes(row))]
    if not sent:
        return None
    groups = families.families(sent)
    timed = {scaling: [row for row in _of(sent, scaling) if row.speedup.known] for scaling in ("weak", "strong")}
    shown = [scaling for scaling in ("weak", "strong") if timed[scaling]]
    sheet = Sheet(1, len(shown) + 1)
    panels = dict(zip([*shown, "sent"], sheet.panels[0], strict=True))
    handles = [*families.handles(groups), *([marks.guide_handle("linear")] if shown else [])]
    if "weak" in shown:
        handles += _weak(panels["weak"], groups, timed["weak"])
    if "strong" in shown:
        handles += _strong(panels["strong"], groups, timed["strong"])
    _sent(panels["sent"], groups)
    remarks = _notes([*timed["weak"], *timed["strong"]], sent)
    return sheet.finish(f"{run.experiment}: tensor parallelism", handles, remarks)


def _of(rows: Sequence[Row], scaling: str) -> list[Row]:
    return [row for row in rows if row.point.scaling == scaling]


def base(rows: Sequence[Row]) -> int:
    """The smallest device count that serves as the base of a speed-up of these rows."""
    return min((row.base.devices for row in rows if row.base is not None), default=1)


def _weak(axes: Axes, groups: dict[str, list[Row]], timed: Sequence[Row]) -> list[Line2D]:
    """Draws the measured and both published series. Returns the legend entries of the published ones."""
    marks.unity(axes, at=100, along="y")
    weak = {name: _of(rows, "weak") for name, rows in groups.items()}
    families.lines(axes, weak, lambda row: row.efficiency.times(100), between=_STYLES["weak"])
    frame, counts = published.read(WEAK).frame, set(families.counts(timed))
    for column, shape, _ in _WEAK_COLUMNS:
        marks.published(axes, frame[f"{column}_gpus"], frame[f"{column}_scaling_pct"], shape=shape)
        counts |= {int(n) for n in frame[f"{column}_gpus"]}
    efficiency_axis(axes)
    entitle(axes, "weak: % of linear scaling" + (f" from {devices(base(timed))}" if base(timed) != 1 else ""))
    devices_axis(axes, sorted(counts))
    axes.xaxis.set_ticks([4**power for power in range(5)])  # the axis reaches 512: ticks at all powers of 2 do not fit
    return [marks.published_handle(shape, name) for _, shape, name in _WEAK_COLUMNS]


def _strong(axes: Axes, groups: dict[str, list[Row]], timed: Sequence[Row]) -> list[Line2D]:
    """Draws the measured series and y = x; the published series only if measured ones are also over one device."""
    smallest, counts, handles = base(timed), set(families.counts(timed)), []
    families.lines(axes, {name: _of(rows, "strong") for name, rows in groups.items()}, lambda row: row.speedup)
    if smallest == 1:
        frame = published.read(STRONG).frame
        marks.published(axes, frame["gpus"], frame["speedup"], shape=_STRONG_SHAPE)
        counts |= {int(n) for n in frame["gpus"]}
        handles.append(marks.published_handle(_STRONG_SHAPE, _STRONG_NAME))
    marks.guide(axes, sorted(counts), [count / smallest for count in sorted(counts)])
    log_axis(axes, "y", base=2, show=plain)
    entitle(axes, f"strong: speed-up over {devices(smallest)}")
    devices_axis(axes, sorted(counts))
    return handles


def _sent(axes: Axes, groups: dict[str, list[Row]]) -> None:
    """Draws megabytes received per device, from 0: one device receives nothing, which a log axis cannot show."""
    for place, rows in enumerate(groups.values()):
        for scaling, between in _STYLES.items():
            families.line(axes, _of(rows, scaling), megabytes, place=place, exact=True, between=between)
    whole_zero(axes)
    entitle(axes, "MB received per device and step")
    devices_axis(axes, families.counts(row for rows in groups.values() for row in rows))


def megabytes(row: Row) -> Estimate:
    return exact(families.received_bytes(row) / 1e6)


def _notes(timed: Sequence[Row], sent: Sequence[Row]) -> list[str]:
    both = {row.point.scaling for row in sent} == set(_STYLES)
    received = f"MB received: results of all collectives of a step; {notes.EXACT}"
    sentences = [*families.remarks(timed, sent), received + ("; solid: strong, dotted: weak" if both else "")]
    if timed:
        sentences.append(notes.cited(f"{published.read(WEAK).project}, Tables 1 and 8, Figure 5: V100s"))
    over = base(_of(timed, "strong"))
    if over != 1:
        sentences.append(f"published speed-ups are not drawn: they are over 1 device, these over {devices(over)}")
    return sentences

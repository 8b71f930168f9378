# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss across the examples of the global batch: what a device does, gathers and holds as devices are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, entitle, log_axis, seconds_tick, si
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import exact
from jaxbench.report.findings import Findings
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("training/contrastive", "levers/contrastive")
CAPTION = (
    "Weak scaling: every device has the same number of examples. The panels show the FLOP of one device's matrix "
    "products, what its all-gathers bring to it, its scratch memory, and the time per step. Dashed: a loss that is a "
    "mean over examples, such as cnn's under data parallelism, would stay as it is on the fewest devices."
)
FLAT = "a mean over examples, as of cnn: flat"
Families = Mapping[str, Sequence[Row]]


def draw(run: Findings | LeverFindings) -> Figure | None:
    """Four panels. None when no weak point was prepared."""
    rows = [row for row in families.compiled(run.rows) if row.point.scaling == "weak"]
    if not rows:
        return None
    found = families.families(rows)
    sheet = Sheet(2, 2)
    work, sent, scratch, time = sheet.panels.flat
    _growing(work, found, products, "FLOP of products, device and step", show=si)
    _growing(sent, found, gathered, "MB gathered, device and step")
    _growing(
        scratch,
        found,
        lambda row: exact(families.passport(row, "temp_bytes")),
        "scratch memory per device",
        show=bytes_tick,
    )
    _growing(time, found, lambda row: row.timing.step_s, "time per step", show=seconds_tick, measured=True)
    handles = [*families.handles(found), marks.guide_handle(FLAT)]
    title = f"{run.experiment}: each example against the whole global batch, weak scaling"
    return sheet.finish(title, handles, _notes(rows))


def products(row: Row) -> Estimate:
    """FLOPs of one device, recomputation included: the compiled program's products, or where they were not found, the
    workload's formula."""
    assert row.point.record is not None
    passport = row.point.record.passport
    return exact((passport.product_flops_per_step or passport.flops_per_step) / row.point.devices)


def gathered(row: Row) -> Estimate:
    """MB in the results of all-gathers on one device; a gather among one moves nothing."""
    return exact(families.received(row).get("all-gather", 0.0) / 1e6 if row.point.devices > 1 else 0.0)


def _growing(
    axes: Axes, found: Families, value: Callable[[Row], Estimate], title: str, *,
    show: Callable[[float], str] | None = None, measured: bool = False,
) -> None:  # fmt: skip
    """A line for each family, and where each would stay. show: of a logarithmic axis; None: from 0. measured: by a
    clock, so that only honest points have a flat line."""
    counts = families.counts(row for rows in found.values() for row in rows)
    for place, rows in enumerate(found.values()):
        families.line(axes, rows, value, place=place, exact=not measured)
        known = [row for row in rows if row.believed and value(row).known]
        if known and not (measured and known[0].point.oversubscribed):
            marks.guide(axes, counts, [value(known[0]).value] * len(counts))
    if show is not None:
        log_axis(axes, "y", show=show, most=5)
    else:
        top = axes.dataLim.y1 if axes.dataLim.y1 > 0 else 1.0
        axes.set_ylim(-0.04 * top, 1.12 * top)  # a point at 0 is seen whole
    devices_axis(axes, counts)
    entitle(axes, title)


def _notes(rows: Sequence[Row]) -> list[str]:
    said = "the gradients of what is gathered come back as well: as a reduce-scatter, or, if XLA chooses, an all-reduce"
    exactly = f"FLOP and {notes.EXACT}; series that gather the same coincide"
    return [exactly, said, *families.remarks(rows, rows)]

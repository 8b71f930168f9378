# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss over all pairs of examples in the global batch: work, traffic and memory per device as devices are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, entitle, log_axis, seconds_tick, si, whole_zero
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Sheet, exact, short
from jaxbench.report.findings import Findings

VIEWS = ("training/contrastive", "levers/contrastive")
CAPTION = (
    "Weak scaling: every device has the same number of examples. The panels show, for one device, the FLOP of its "
    "matrix products, the bytes that it all-gathers, its scratch memory, and the time per step. Dashed: the value on "
    "the fewest devices, which a loss that is a mean over examples (as in cnn) would keep."
)
FLAT = "a mean over examples: flat"
Families = Mapping[str, Sequence[Row]]
_STYLES: Any = ("-", marks.DASHED, ":", "-.")  # a line style per arm, if there are several strategies


def draw(run: Findings) -> Figure | None:
    """Draws four panels. None when no weak-scaling point was compiled."""
    rows = [row for row in families.compiled(run.rows) if row.point.scaling == "weak"]
    if not rows:
        return None
    groups = families.families(rows)
    sheet = Sheet(2, 2)
    work, sent, scratch, time = sheet.panels.flat
    _growing(work, groups, products, "matmul FLOP per device and step", show=si)
    _growing(sent, groups, gathered, "MB gathered per device and step")
    temporary = lambda row: exact(families.passport(row, "temp_bytes"))  # noqa: E731
    _growing(scratch, groups, temporary, "scratch memory per device", show=bytes_tick)
    _growing(time, groups, lambda row: row.timing.step_s, "time per step", show=seconds_tick, measured=True)
    title = f"{run.experiment}: each example against the whole global batch, weak scaling"
    return sheet.finish(title, [*_handles(groups), marks.guide_handle(FLAT)], _notes(rows))


def _styles(groups: Families) -> list[tuple[int, Any]]:
    """(style index, line style) of each family: by strategy and arm, or by arm alone for one strategy."""
    points = [rows[0].point for rows in groups.values()]
    strategies, arms = (list(dict.fromkeys(getattr(p, name) for p in points)) for name in ("strategy", "arm"))
    if len(strategies) == 1:
        return [(place, "-") for place in range(len(points))]
    return [(strategies.index(p.strategy), _STYLES[arms.index(p.arm) % len(_STYLES)]) for p in points]


def _handles(groups: Families) -> list[Line2D]:
    """Legend entries: one per strategy and one per arm, not one per combination."""
    points, styles = [rows[0].point for rows in groups.values()], _styles(groups)
    if len({p.strategy for p in points}) == 1:
        return families.handles(groups)
    strategies = {p.strategy: place for p, (place, _) in zip(points, styles, strict=True)}
    arms = {p.arm: style for p, (_, style) in zip(points, styles, strict=True)}
    entries = [marks.handle(place, short(name, 28)) for name, place in strategies.items()]
    lines = [marks.style_handle(short(arm, 28), linestyle=style) for arm, style in arms.items()]
    return [*entries, *(lines if len(lines) > 1 else [])]


def products(row: Row) -> Estimate:
    """FLOP of one device, recomputation included: counted in the compiled program, else by the workload's formula."""
    assert row.point.record is not None
    passport = row.point.record.passport
    return exact((passport.product_flops_per_step or passport.flops_per_step) / row.point.devices)


def gathered(row: Row) -> Estimate:
    """MB in the results of all-gathers on one device; 0 on a single device, where a gather moves nothing."""
    return exact(families.received(row).get("all-gather", 0.0) / 1e6 if row.point.devices > 1 else 0.0)


def _growing(
    axes: Axes, groups: Families, value: Callable[[Row], Estimate], title: str, *,
    show: Callable[[float], str] | None = None, measured: bool = False,
) -> None:  # fmt: skip
    """Draws a line per family and its flat reference.

    Args:
      show: writes a tick of a logarithmic axis; None: the axis is linear and starts at 0.
      measured: the values are times, so oversubscribed points have no reference.
    """
    counts = families.counts(row for rows in groups.values() for row in rows)
    for number, (rows, (place, style)) in enumerate(zip(groups.values(), _styles(groups), strict=True)):
        factor = marks.dodge(number, len(groups))
        made = marks.of(rows, lambda row, by=factor: by * row.point.devices, value, exact=not measured)  # type: ignore[misc]
        marks.line(axes, made, place=place, between=style)
        known = [row for row in rows if row.believed and value(row).known]
        if known and not (measured and known[0].point.oversubscribed):
            marks.guide(axes, counts, [value(known[0]).value] * len(counts))
    if show is not None:
        log_axis(axes, "y", show=show, max_ticks=5)
    else:
        whole_zero(axes)
    devices_axis(axes, counts)
    entitle(axes, title)


def _notes(rows: Sequence[Row]) -> list[str]:
    gradients = "gathering also returns gradients: by a reduce-scatter or, if XLA chooses, an all-reduce"
    return [f"FLOP and {notes.EXACT}", gradients, *families.remarks(rows, rows)]

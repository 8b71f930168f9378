# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: bytes of model state per parameter on one device, over the degree of data parallelism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import devices_axis, entitle, log_axis, plain, round_ticks
from jaxbench.report.drawing.families import fact
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Sheet, exact, short
from jaxbench.report.findings import Findings

VIEWS = ("training/zero", "levers/zero")
CAPTION = (
    "Bytes of model state (parameters, gradients, optimizer state) per parameter on one device, over the data-parallel "
    "degree. Right axis: the same in GB for a model of 7.5 billion parameters. Measured bytes are the exact sizes of "
    "the arrays on the first device."
)
TABLE, BILLIONS = "zero_table1", 7.5  # the published table, and its model's size in billions of parameters
DEGREES = tuple(2**power for power in range(11))  # the range of the published table


@dataclass(frozen=True, kw_only=True)
class ZeroStage:
    """A ZeRO stage: of 16 bytes per parameter, a device of N keeps `whole + shared / N`.

    Attributes:
      column: the stage's column in the published table; "" if it has none.
    """

    name: str
    whole: float
    shared: float
    column: str

    def per_parameter(self, devices: float) -> float:
        return self.whole + self.shared / devices

    @property
    def formula(self) -> str:
        parts = (f"{self.whole:g}" if self.whole else "", f"{self.shared:g}/N" if self.shared else "")
        return " + ".join(filter(None, parts))


DP = ZeroStage(name="DP", whole=16, shared=0, column="")
OS = ZeroStage(name="P_os", whole=4, shared=12, column="pos_7.5B")
GRADIENTS = ZeroStage(name="P_os+g", whole=2, shared=14, column="posg_7.5B")
PARAMETERS = ZeroStage(name="P_os+g+p", whole=0, shared=16, column="posgp_7.5B")
STAGES = (DP, OS, GRADIENTS, PARAMETERS)
_OF = {"zero1": OS, "zero2": GRADIENTS, "fsdp": PARAMETERS}
# Strategies that split the model, not only its data, so ZeRO's formulas do not apply. `parallel.axes` has the same
# information, but importing it would start jax, which a report must not need.
_SPLIT_MODELS = ("tensor", "context", "pipeline", "expert", "hybrid")


def stage(strategy: str) -> ZeroStage | None:
    """The ZeRO stage of a data-parallel strategy; None for any other strategy."""
    return None if strategy in _SPLIT_MODELS else _OF.get(strategy, DP)


def per_parameter(row: Row) -> float:
    """Bytes of state and gradients on one device divided by the model's parameters; NaN if not measured."""
    if row.point.record is None or not row.point.record.passport.parameters:
        return math.nan
    return (fact(row, "state_bytes") + fact(row, "held_gradient_bytes")) / row.point.record.passport.parameters


def mixed(row: Row) -> bool:
    """Whether the row uses mixed precision, so that a parameter takes the formulas' 16 bytes."""
    return row.point.levers.get("precision") == "mixed"


def draw(run: Findings) -> Figure | None:
    """Draws one panel. None when no gradients were measured."""
    rows = [row for row in families.compiled(run.rows) if math.isfinite(per_parameter(row))]
    if not rows:
        return None
    sheet = Sheet(heights=2.7)
    axes = sheet.only()
    groups = families.families(_once(rows))
    families.lines(axes, groups, lambda row: exact(per_parameter(row)), exact=True)
    overlay = all(mixed(row) for row in rows)
    if overlay:
        _published(axes)
    _axes(axes, sorted({*families.counts(rows), *(DEGREES if overlay else ())}))
    title = f"{run.experiment}: model state per device over data-parallel degree (ZeRO)"
    return sheet.finish(title, _handles(groups, overlay=overlay), footnotes(rows, overlay=overlay))


def _once(rows: Sequence[Row]) -> list[Row]:
    """One row of each strategy, arm and device count: strong and weak scaling hold the same state."""
    last = {(row.point.strategy, row.point.arm, row.point.devices): row for row in reversed(rows)}
    return [row for row in rows if row is last[row.point.strategy, row.point.arm, row.point.devices]]


def _published(axes: Axes) -> None:
    """Draws the formulas as dashed lines, and the table's numbers divided by the model's size."""
    frame = published.read(TABLE).frame
    fine = np.geomspace(DEGREES[0], DEGREES[-1], 101)
    for place, each in enumerate(STAGES):
        marks.guide(axes, fine, [each.per_parameter(n) for n in fine])
        if each.column:
            marks.published(
                axes, frame["dp"], frame[each.column] / BILLIONS, shape=marks.series_style(place)[1], joined=False
            )


def _axes(axes: Axes, counts: Sequence[int]) -> None:
    log_axis(axes, "y", show=plain, max_ticks=8)
    devices_axis(axes, counts, label="data-parallel degree N, devices")
    axes.xaxis.set_ticks(counts)
    entitle(axes, "bytes per parameter and device")
    right = axes.secondary_yaxis("right", functions=(_gigabytes, _bytes))
    low, high = axes.get_ylim()
    right.set_yscale("log")
    right.yaxis.set_major_locator(FixedLocator(round_ticks(low * BILLIONS, high * BILLIONS)))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    right.set_ylabel(f"GB for {BILLIONS:g} billion parameters")
    right.spines["right"].set_visible(True)


def _gigabytes(per_parameter: Any) -> Any:
    return np.asarray(per_parameter) * BILLIONS


def _bytes(gigabytes: Any) -> Any:
    return np.asarray(gigabytes) / BILLIONS


def _handles(groups: dict[str, list[Row]], *, overlay: bool) -> list[Line2D]:
    """Legend entries of measured series and published lines; in pairs if both have every stage."""
    ours = []
    for place, (name, members) in enumerate(groups.items()):
        zero_stage = stage(members[0].point.strategy)
        ours.append(marks.handle(place, short(f"{zero_stage.name}: {name}" if zero_stage else name, 24)))
    if not overlay:
        return ours
    theirs = [
        marks.guide_handle(
            f"{each.name}: {each.formula}", **marks.HOLLOW, marker=marks.series_style(place)[1] if each.column else ""
        )
        for place, each in enumerate(STAGES)
    ]
    pairs = [entry for pair in zip(ours, theirs, strict=False) for entry in pair]
    return pairs if len(ours) == len(theirs) else [*ours, *theirs]


def worst(rows: Sequence[Row]) -> float:
    """The largest relative error of a measured value against its formula."""
    errors = [0.0]
    for row in rows:
        zero_stage = stage(row.point.strategy)
        if zero_stage is not None and row.believed:
            errors.append(abs(per_parameter(row) / zero_stage.per_parameter(row.point.devices) - 1))
    return max(errors)


def footnotes(rows: Sequence[Row], *, overlay: bool) -> list[str]:
    remarks = [f"measured: {notes.EXACT}; on one device nothing is sharded, so all series start at the same point"]
    if overlay:
        source = f"{published.read(TABLE).project}, Table 1: {BILLIONS:g} billion parameters, mixed-precision Adam"
        error = f"measured values are within {100 * worst(rows):.1g} % of the formulas (N does not divide every array)"
        remarks += [notes.cited(source), error]
    else:
        remarks.append("published lines are not drawn: they assume mixed precision, 16 bytes per parameter")
    return remarks + ([notes.WRONG] if any(not row.believed for row in rows) else [])

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a roofline: one spot for each kernel, training step, or number of an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import devices
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.drawing.series import naming

MOST_LABELS = 8  # up to this many series, device counts are separate; more would make the legend as large as the panel


@dataclass(frozen=True, kw_only=True)
class Spot(Mark):
    """One measured program under the roof.

    Attributes:
      at: its arithmetic intensity: analytic FLOP of a call over the bytes that it must move.
      value: FLOP/s of one accelerator, or of all CPU cores.
      label: the name of its series in the legend; for an earlier run, its experiment.
      kind: "kernel" | "training" | "earlier".
    """

    label: str
    platform: str
    kind: str = "kernel"


def of_cases(rows: Sequence[CaseRow]) -> list[Spot]:
    """The spots of kernels with both FLOPs and bytes. A series is an operation."""
    able = [r for r in rows if r.point.flops and r.point.bytes_moved and r.flop_per_s.known]
    names = naming(able, ("op", "impl", "dtype", "platform", "cores"), always="op")
    if len(set(names.values())) > 14:  # more than a legend can hold and a reader can distinguish
        names = naming(able, ("op",))
    return [
        Spot(
            at=(row.point.flops or 0) / (row.point.bytes_moved or 1), value=row.flop_per_s, state=marks.state(row),
            label=names[row.point.point], platform=row.point.platform, n=marks.n_of(row),
        )
        for row in able
    ]  # fmt: skip


def of_training(rows: Sequence[Row]) -> list[Spot]:
    """The spots of training steps with bytes counted by the compiler. A series is a strategy or, if there are few, a
    strategy and device count. On an accelerator, FLOP/s are per device.
    """
    spots = []
    of_count = len({(row.point.strategy, row.point.devices) for row in rows}) <= MOST_LABELS
    for row in rows:
        record, use = row.point.record, row.use
        moved = record.passport.compiler_bytes_per_step if record is not None else None
        if not moved or not use.flop_per_s > 0 or not row.timing.step_s.known:
            continue
        share = 1 if row.point.platform == "cpu" else row.point.devices
        spots.append(
            Spot(
                at=use.flops_per_step / moved, value=row.timing.step_s.under(use.flops_per_step / share),
                state=marks.state(row), label=", ".join([row.point.strategy, *[devices(row.point.devices)] * of_count]),
                platform=row.point.platform, kind="training", n=marks.n_of(row),
            )
        )  # fmt: skip
    return spots

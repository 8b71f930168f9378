# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a run over device counts claims: the widths of its intervals, and its A/A measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxbench.analysis.run_rows import Row
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import Estimate


@dataclass(frozen=True, kw_only=True)
class Control:
    """An A/A measurement: the same program measured twice in one run. The ratio's distance from 1 is the A/A spread."""

    strategy: str
    devices: int
    ratio: Estimate  # step_s of the strong point over step_s of the weak point, with its interval

    @property
    def aa_spread(self) -> float:
        """The A/A spread: the larger distance of the interval's ends from 1, at least 0.001."""
        return max(0.001, abs(self.ratio.lo - 1), abs(self.ratio.hi - 1))

    @property
    def sentence(self) -> str:
        ratio = self.ratio
        devices = f"{self.devices} device{'s' if self.devices > 1 else ''}"
        return (
            f"A/A spread, {self.strategy}: strong and weak scaling are the same program on {devices}, measured twice. "
            f"The ratio of their step times is {ratio.value:.3f} [{ratio.lo:.3f}, {ratio.hi:.3f}]. Differences below "
            f"{100 * self.aa_spread:.1f} % are noise here."
        )


def controls(rows: list[Row]) -> list[Control]:
    """The A/A measurements: strong and weak points that are the same program, at a strategy's base device count."""
    results = []
    measured = {
        (r.point.strategy, r.point.scaling, r.point.devices, r.point.arm): r for r in rows if r.timing.step_s.known
    }
    for (strategy, scaling, devices, arm), strong in measured.items():
        weak = measured.get((strategy, "weak", devices, arm))
        if scaling != "strong" or weak is None or strong.base is None or strong.base.devices != devices:
            continue
        ratio = paired_ratio.ratio(strong, weak)
        if strong.point.global_batch == weak.point.global_batch and ratio.has_interval:
            results.append(Control(strategy=strategy, devices=devices, ratio=ratio))
    return results


def half_widths(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """(half width, point) for each claim of the run.

    The claims are the efficiencies. Without any, as on one device, they are the ratios of each step time to the first
    point's. A single point claims its step time.
    """
    claims = [  # the report may make a claim about these points, so that their intervals should be narrow
        row
        for row in rows
        if row.timing.step_s.known and not (row.point.oversubscribed or row.gate == "refused" or row.point.explains)
    ]
    found = [(row, row.efficiency) for row in claims if row.base is not None and row.base is not row.point]
    if not found and claims:
        first, *others = claims
        ratios = [(row, paired_ratio.ratio(row, first)) for row in others] or [(first, first.timing.step_s)]
        found = [(row, ratio.times(1 / ratio.value)) for row, ratio in ratios if ratio.known]
    return [(estimate.half_width, row.point.point) for row, estimate in found if estimate.has_interval]

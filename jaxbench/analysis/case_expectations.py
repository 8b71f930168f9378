# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What runs of kernels, transfers and collectives should show on any machine, and what they actually show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbench.analysis import ceilings, limits, quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.expectations import CANNOT_TELL, NO, YES, Item, complete, item

UNIT = "cases"
_RUNS = "Every kernel, transfer and collective that fits runs to the end."
_RIGHT = "Every result is correct."
_GATES = "No number is impossible: the clocks agree, and nothing is faster than the hardware's peaks allow."
_PEAK = "No matrix product is faster than the vendor's stated peak."


def of_cases(rows: Sequence[CaseRow]) -> list[Item]:
    """Whether all rows were measured, are correct, and passed every gate."""
    checked = [row for row in rows if row.point.check_ok is not None]
    wrong = [f"{row.point.point}: {row.point.reason}" for row in checked if row.point.check_ok is False]
    gated = [row for row in rows if row.gate and row.point.check_ok is not False]
    refused = [f"{row.point.point}: {row.gate_reason}" for row in gated if row.gate == "refused"]
    return [
        complete(_RUNS, [row.point for row in rows], unit=UNIT),
        item(_RIGHT, len(checked), wrong, unit=UNIT),
        item(_GATES, len(gated), refused, unit=UNIT),
    ]


def of_peak(rows: Sequence[CaseRow], manifest: dict[str, Any]) -> Item:
    """The fastest product of each dtype against the catalogued peak, including products that a gate refused.

    rows: the rows of the experiment `matmul`. manifest: the manifest of its run.
    """
    platform, kind = str(manifest.get("platform", "")), str(manifest.get("device_kind", ""))
    timed = [row for row in rows if row.flop_per_s.known and row.point.platform == platform]
    shown, wrong, known = [], [], 0
    for dtype in dict.fromkeys(row.point.dtype for row in timed):
        best = max((row for row in timed if row.point.dtype == dtype), key=lambda row: row.flop_per_s.value)
        peak = ceilings.catalogued(platform, kind, dtype)
        rate = quantities.flops(best.flop_per_s.value, dtype)
        if not peak.flop.source:
            shown.append(f"{dtype} {rate}")
            continue
        known += 1
        share = 100 * best.flop_per_s.value / peak.flop.rate
        shown.append(f"{dtype} {rate}, {share:.0f} % of {quantities.flops(peak.flop.rate, dtype)}")
        lower = best.flop_per_s.lo if best.flop_per_s.has_interval else best.flop_per_s.value
        if lower > limits.SLACK["catalogue"] * peak.flop.rate:
            wrong.append(f"{best.point.point}: {shown[-1]}")
    agrees = NO if wrong else YES if known else CANNOT_TELL
    why = tuple(wrong) if known else (f"the catalogue has no peak for '{kind}'.",)
    found = "; ".join(shown) or "nothing was measured"
    return Item(expected=_PEAK, found=found, agrees=agrees, judged=known, right=known - len(wrong), why=why)

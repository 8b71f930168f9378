# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""``summary.csv``: one row a point. A cell is empty when its value is unknown; it is never 0 or inf instead."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row

# Fixed: other people's scripts read them. New columns go to the end.
COLUMNS = (
    "experiment", "strategy", "scaling", "devices", "processes", "platform", "oversubscribed", "global_batch",
    "step_s", "step_s_lo", "step_s_hi", "samples", "throughput", "throughput_unit",
    "speedup", "speedup_lo", "speedup_hi", "efficiency", "efficiency_lo", "efficiency_hi",
    "compile_s", "peak_bytes", "check_ok", "status",
    "step_s_p95", "step_s_cv", "throughput_lo", "throughput_hi",
    "clock_ratio", "clock_ratio_lo", "clock_ratio_hi", "clock_note",
    "base_devices", "base_step_s", "flops_per_step", "flop_per_s", "mfu", "mfu_note",
    "gradient_bytes", "rounds", "device_kind", "notes", "reason",
)  # fmt: skip


def table(rows: list[Row]) -> pd.DataFrame:
    """Returns one row a point, in the order given, with exactly `COLUMNS`; None where a value is unknown."""
    return pd.DataFrame([_cells(row) for row in rows], columns=list(COLUMNS), dtype=object)


def to_csv(frame: pd.DataFrame) -> str:
    """Numbers with nine digits, booleans as true and false, text quoted where it must be."""
    return frame.map(_text).to_csv(index=False, lineterminator="\n")


def _cells(row: Row) -> dict[str, Any]:
    point, timing, record = row.point, row.timing, row.point.record
    passport = record.passport if record is not None else None
    cells = {
        **{name: getattr(point, name) for name in COLUMNS[:8]},
        **_estimate("step_s", timing.step_s),
        "samples": timing.samples or None,
        **_estimate("throughput", timing.examples_per_s),
        "throughput_unit": f"{record.unit}/s" if record is not None else None,
        **_estimate("speedup", row.speedup),
        **_estimate("efficiency", row.efficiency),
        "compile_s": passport.compile_s if passport is not None else None,
        "peak_bytes": passport.peak_bytes or None if passport is not None else None,
        "check_ok": point.check_ok,
        "status": point.status,
        "step_s_p95": timing.step_s_p95,
        "step_s_cv": timing.step_s_cv,
        **_estimate("clock_ratio", timing.clock_ratio),
        "clock_note": timing.clock_note,
        "base_devices": row.base.devices if row.base is not None else None,
        "base_step_s": row.base_step_s,
        "flops_per_step": row.use.flops_per_step,
        "flop_per_s": row.use.flop_per_s,
        "mfu": row.use.mfu,
        "mfu_note": row.use.note,
        "gradient_bytes": gradient_bytes(row),
        "rounds": timing.rounds or None,
        "device_kind": record.device_kind if record is not None else None,
        "notes": "; ".join(row.notes),
        "reason": point.reason,
    }
    return {name: None if _empty(value) else value for name, value in cells.items()}


def gradient_bytes(row: Row) -> int | None:
    """Bytes all-reduced per step and device by the compiled program, less its scalars (loss and metrics)."""
    if row.point.record is None:
        return None
    reduced = [c for c in row.point.record.passport.collectives if c.kind == "all-reduce"]
    return sum(c.bytes - c.scalar_bytes for c in reduced)


def _estimate(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_lo": estimate.lo, f"{name}_hi": estimate.hi}


def _empty(value: Any) -> bool:
    return value == "" or (isinstance(value, float) and not math.isfinite(value))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)

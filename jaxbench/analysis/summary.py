# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""``summary.csv``: one row a point. A cell is empty when its value is unknown; it is never 0 or inf instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from jaxbench.analysis import tokens
from jaxbench.analysis.alpha_beta import Fit
from jaxbench.analysis.arms import Arm
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.levers import LEVERS

OUTCOMES = ("final_loss", "final_accuracy", "steps", "skipped_steps", "waited_share")
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
    "op", "dtype", "impl", "shape", "elements", "payload_bytes", "mesh", "axis", "source", "target", "cores",
    "flops", "bytes_moved", "bytes_per_s", "bytes_per_s_lo", "bytes_per_s_hi",
    "algbw", "algbw_lo", "algbw_hi", "busbw", "busbw_lo", "busbw_hi", "wrong", "loop_s",
    "alpha_s", "beta_bytes_per_s", "peak_share", "gate", "gate_reason",
    "arm", *(name for name in LEVERS if name != "mesh"),  # which is a column of collectives' too
    "baseline", "ratio", "ratio_lo", "ratio_hi", "arm_speedup", "arm_speedup_lo", "arm_speedup_hi",
    "verdict", "temp_bytes", "compiler_flops_per_step", *OUTCOMES, "tokens_per_s", "real_tokens_per_s", "real_share",
)  # fmt: skip
_PLACED = (
    "op", "dtype", "impl", "shape", "elements", "payload_bytes", "mesh", "axis", "source", "target", "cores", "flops",
    "bytes_moved",
)  # fmt: skip
_GROUP = ("op", "dtype", "devices", "mesh", "axis", "source", "target")  # what a fit has in common with its rows


def table(rows: Sequence[Row | CaseRow], fits: Sequence[Fit] = (), arms: Sequence[Arm] = ()) -> pd.DataFrame:
    """Returns one row a point, in the order given, with exactly `COLUMNS`; None where a value is unknown.

    fits: alpha and beta of collectives and transfers, shown with each row of their group. arms: of a sweep of levers,
    how rows compare with their baselines.
    """
    lines = {tuple(getattr(fit, name) for name in _GROUP): fit for fit in fits if not fit.why_not}
    compared = {arm.point.point: _arm(arm) for arm in arms}
    cells = [_cells(row, lines, compared.get(row.point.point, {})) for row in rows]
    return pd.DataFrame(cells, columns=list(COLUMNS), dtype=object)


def to_csv(frame: pd.DataFrame) -> str:
    """Numbers with nine digits, booleans as true and false, text quoted where it must be."""
    return frame.map(_text).to_csv(index=False, lineterminator="\n")


def _cells(row: Row | CaseRow, lines: dict[tuple[Any, ...], Fit], compared: dict[str, Any]) -> dict[str, Any]:
    own = _case(row, lines) if isinstance(row, CaseRow) else _training(row)
    cells = {**_clocks(row), **own, **compared}
    return {name: None if _empty(cells.get(name)) else cells[name] for name in COLUMNS}


def _clocks(row: Row | CaseRow) -> dict[str, Any]:
    """What every kind of point has."""
    point, timing, record = row.point, row.timing, row.point.record
    named = ("experiment", "devices", "processes", "platform", "oversubscribed", "check_ok", "status", "reason")
    return {
        **{name: getattr(point, name) for name in named},
        **_estimate("step_s", timing.step_s),
        "samples": timing.samples or None,
        **_estimate("throughput", timing.examples_per_s),
        "step_s_p95": timing.step_s_p95,
        "step_s_cv": timing.step_s_cv,
        **_estimate("clock_ratio", timing.clock_ratio),
        "clock_note": timing.clock_note,
        "rounds": timing.rounds or None,
        "device_kind": record.device_kind if record is not None else None,
        "notes": "; ".join(row.notes),
    }


def _training(row: Row) -> dict[str, Any]:
    point, record, use = row.point, row.point.record, row.use
    passport = record.passport if record is not None else None
    return {
        **{name: getattr(point, name) for name in ("strategy", "scaling", "global_batch")},
        "throughput_unit": f"{record.unit}/s" if record is not None else None,
        **_estimate("speedup", row.speedup),
        **_estimate("efficiency", row.efficiency),
        "compile_s": passport.compile_s if passport is not None else None,
        "peak_bytes": passport.peak_bytes or None if passport is not None else None,
        "base_devices": row.base.devices if row.base is not None else None,
        "base_step_s": row.base_step_s,
        "flops_per_step": use.flops_per_step,
        "flop_per_s": use.flop_per_s,
        "mfu": use.mfu,
        "mfu_note": use.note,
        "gradient_bytes": gradient_bytes(row),
        "flops": use.flops_per_step,
        "bytes_moved": passport.compiler_bytes_per_step if passport is not None else None,
        "peak_share": use.mfu if math.isfinite(use.mfu) else use.measured_peak_share,
        "arm": point.arm,
        **{name: point.levers.get(name) for name in LEVERS},
        "temp_bytes": passport.temp_bytes if passport is not None else None,
        "compiler_flops_per_step": passport.compiler_flops_per_step if passport is not None else None,
        **{name: record.outcome.get(name) if record is not None else None for name in OUTCOMES},
        "tokens_per_s": tokens.per_second(row),
        "real_tokens_per_s": tokens.real_per_second(row),
        "real_share": tokens.real_share(row),
    }


def _arm(arm: Arm) -> dict[str, Any]:
    """How an arm compares with its baseline."""
    return {
        "baseline": arm.baseline.point.point,
        **_estimate("ratio", arm.ratio),
        **_estimate("arm_speedup", arm.speedup),
        "verdict": arm.verdict,
    }


def _case(row: CaseRow, lines: dict[tuple[Any, ...], Fit]) -> dict[str, Any]:
    point, record = row.point, row.point.record
    fit = lines.get(tuple(getattr(point, name) for name in _GROUP)) if point.payload_bytes else None
    return {
        **{name: getattr(point, name) for name in _PLACED},
        "throughput_unit": "calls/s" if row.timing.samples else None,
        "compile_s": record.compile_s if record is not None else None,
        "flop_per_s": row.flop_per_s.value,
        "mfu_note": row.peak_note,
        **_estimate("bytes_per_s", row.bytes_per_s),
        **_estimate("algbw", row.algbw),
        **_estimate("busbw", row.busbw),
        "wrong": record.wrong if record is not None else None,
        "loop_s": row.loop_s.value,
        "alpha_s": fit.alpha_s.value if fit is not None else None,
        "beta_bytes_per_s": fit.beta_bytes_per_s.value if fit is not None else None,
        "peak_share": row.peak_share.value,
        "gate": row.gate,
        "gate_reason": row.gate_reason,
    }


def gradient_bytes(row: Row) -> int | None:
    """Bytes all-reduced per step and device by the compiled program, less its scalars (loss and metrics)."""
    if row.point.record is None:
        return None
    reduced = [c for c in row.point.record.passport.collectives if c.kind == "all-reduce"]
    return sum(c.bytes - c.scalar_bytes for c in reduced)


def _estimate(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_lo": estimate.lo, f"{name}_hi": estimate.hi}


def _empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and not math.isfinite(value))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)

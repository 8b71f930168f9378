# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The results in a card. They are derived from its records when it is made, and again whenever it is read."""

from __future__ import annotations

import math
from typing import Any

from jaxbench.analysis import case_rows, scaling, spread, summary
from jaxbench.analysis.cases import CasePoint
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.report import columns
from jaxbench.report.table import records
from jaxbench.verdicts.comparable import FinishedRun

# Columns of summary.csv, with the same meaning.
COMMON = (
    "devices", "platform", "device_kind", "oversubscribed", "status", "check_ok", "reason", "notes", "rounds",
    "samples", "step_s", "step_s_lo", "step_s_hi", "step_s_p95", "step_s_cv",
    "throughput", "throughput_lo", "throughput_hi", "throughput_unit", "compile_s", "peak_bytes", "flop_per_s",
)  # fmt: skip
TRAINING = (
    "strategy", "scaling", "arm", "global_batch", "speedup", "speedup_lo", "speedup_hi",
    "efficiency", "efficiency_lo", "efficiency_hi", "base_devices", "mfu", "gradient_bytes",
)  # fmt: skip
CASES = (
    "op", "dtype", "impl", "shape", "elements", "payload_bytes", "mesh", "axis", "source", "target", "cores",
    "bytes_per_s", "bytes_per_s_lo", "bytes_per_s_hi", "algbw", "busbw", "busbw_lo", "busbw_hi", "peak_share", "wrong",
    "gate", "gate_reason",
)  # fmt: skip
CLAIMS = ("step_s", "efficiency", "busbw", "bytes_per_s", "flop_per_s")  # the numbers that must follow from the records
WORDS = ("status", "devices", "global_batch")
# The relative difference allowed between a card's number and the number derived from its records. A later version may
# compute it differently: a step time was once the median of all blocks, and is now the mean over processes of their
# medians. Pages show the derived number, so an edit within this tolerance has no effect.
SLACK = 0.1


def measures(run: FinishedRun) -> str:
    """The kind of run: "training" or "cases"."""
    return "cases" if run.points and isinstance(run.points[0], CasePoint) else "training"


def name(run: FinishedRun) -> dict[str, Any]:
    """The experiment, the kind of device, and the largest number of devices."""
    measured = [point for point in run.points if point.rounds]
    kinds = [point.record.device_kind for point in measured if point.record is not None]
    return {
        "experiment": measured[0].experiment,
        "device_kind": str(run.manifest.get("device_kind") or next(iter(kinds), "unknown")),
        "devices": max(point.devices for point in measured),
    }


def points(run: FinishedRun, machine: dict[str, Any] | None) -> list[dict[str, Any]]:
    """One entry per point, including failed and missing points. Unknown numbers are None.

    machine: the peaks and links of its machine (`machine_card.read`), or None.
    """
    training = [point for point in (*run.points, *run.explaining) if isinstance(point, MeasuredPoint)]
    cases = [point for point in run.points if isinstance(point, CasePoint)]
    known = spread.read(run.path)
    rows: list[Any] = (
        scaling.analyse(training, config=run.config, machine=machine, spread=known)
        if training
        else case_rows.analyse(cases, manifest=run.manifest, machine=machine, spread=known)
    )
    fields = (*(TRAINING if training else CASES), *COMMON)
    return [
        {"point": row.point.point, **{field: _plain(record[field]) for field in fields}}
        for row, record in zip(rows, records(columns.FILE, summary.entries(rows)), strict=True)
    ]


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: NumPy scalars become Python numbers."""
    return value.item() if hasattr(value, "item") else value


def contradiction(content: dict[str, Any], run: FinishedRun, found: list[dict[str, Any]]) -> str:
    """How a card contradicts its own records, as a clause; "" if it does not.

    content: the card's content. run: its records, read. found: `points` of that run.
    """
    if content["measures"] != measures(run):
        return f"it says that it measures {content['measures']}, and its records are of {measures(run)}"
    for field, value in name(run).items():
        if field != "device_kind" and content["name"].get(field) != value:
            return f"its name has {field} {content['name'].get(field)!r}, and its records {value!r}"
    names, others = ([point["point"] for point in points] for points in (content["points"], found))
    if sorted(names) != sorted(others):
        odd = next(iter({*names} ^ {*others}), names[0] if names else "no point")
        return f"its table and its records do not have the same points, such as {odd}"
    stated = {point["point"]: point for point in content["points"]}
    for point in found:
        for field in (*WORDS, *CLAIMS):
            if (
                field == "efficiency" and point.get(field, 0) is None
            ):  # earlier versions gave one without an interval, too
                continue
            if field in point and not _agree(stated[point["point"]].get(field), point[field]):
                says, is_ = stated[point["point"]].get(field), point[field]
                return f"its table has {field} {says!r} at {point['point']}, and its records {is_!r}"
    return ""


def _agree(stated: Any, found: Any) -> bool:
    if isinstance(stated, float) and isinstance(found, int | float):
        return math.isclose(stated, found, rel_tol=SLACK)
    return bool(stated == found)

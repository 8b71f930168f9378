# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether two records measured the same model, and how the models differ."""

from __future__ import annotations

import math

from jaxbench.core.schema import CaseRecord, PointRecord

# Facts about what a step or a case computes. Times are comparable only if all of them are equal.
STEP_FACTS = ("parameters", "flops", "global_batch", "gradient_bytes")
CASE_FACTS = ("op", "dtype", "shape", "elements", "payload_bytes", "flops", "bytes_moved")
EXACT = 1e-9  # relative: FLOPs are floating-point numbers
Differences = dict[str, tuple[object, object]]


def _model_facts(record: PointRecord | CaseRecord) -> dict[str, object]:
    if isinstance(record, CaseRecord):
        return {name: getattr(record, name) for name in CASE_FACTS}
    report = record.compile_report
    values = (report.parameters, report.flops_per_step, record.global_batch, report.expected_gradient_bytes)
    return dict(zip(STEP_FACTS, values, strict=True))


def model_differences(a: PointRecord | CaseRecord, b: PointRecord | CaseRecord) -> Differences:
    """{fact: (value of a, value of b)} of the facts that differ; {} for the same model."""
    left, right = _model_facts(a), _model_facts(b)
    if left.keys() != right.keys():  # a step and a case
        return {"kind": (a.kind, b.kind)}

    def same(x: object, y: object) -> bool:
        if isinstance(x, int | float) and isinstance(y, int | float):
            return math.isclose(x, y, rel_tol=EXACT)
        return x == y  # None: unknown in both or a difference

    return {name: (left[name], right[name]) for name in left if not same(left[name], right[name])}


def model_sentence(found: Differences, then: str, now: str) -> str:
    """Both values of each difference, such as "parameters: 3,466 in A, 85,002 in B". then, now: "in A", "in B"."""
    return "; ".join(f"{name}: {_value_text(a)} {then}, {_value_text(b)} {now}" for name, (a, b) in found.items())


def _value_text(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

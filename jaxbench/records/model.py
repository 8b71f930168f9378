# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether two records are of the same model. Name, file and config may be equal although the model changed."""

from __future__ import annotations

import math
from typing import Any

from jaxbench.records.schema import CaseRecord, PointRecord

# Facts about what a step or a case computes. Times are comparable only if all of them are equal.
STEP_FACTS = ("parameters", "flops", "global_batch", "gradient_bytes")
CASE_FACTS = ("op", "dtype", "shape", "elements", "payload_bytes", "flops", "bytes_moved")
EXACT = 1e-9  # relative: FLOPs are floating-point numbers


def facts(record: PointRecord | CaseRecord) -> dict[str, Any]:
    """The facts of a step: parameters, FLOPs, global batch and gradient bytes. The facts of a case: size, FLOPs and
    bytes."""
    if isinstance(record, CaseRecord):
        return {name: getattr(record, name) for name in CASE_FACTS}
    passport = record.passport
    values = (passport.parameters, passport.flops_per_step, record.global_batch, passport.expected_gradient_bytes)
    return dict(zip(STEP_FACTS, values, strict=True))


def differences(a: PointRecord | CaseRecord, b: PointRecord | CaseRecord) -> dict[str, tuple[Any, Any]]:
    """{fact: (value of a, value of b)} of the facts that differ; {} for the same model."""
    left, right = facts(a), facts(b)
    if left.keys() != right.keys():
        return {"kind": (a.kind, b.kind)}
    return {name: (left[name], right[name]) for name in left if not _equal(left[name], right[name])}


def sentence(found: dict[str, tuple[Any, Any]], then: str, now: str) -> str:
    """Both values of each difference, such as "parameters: 3,466 in A, 85,002 in B". then, now: "in A", "in B"."""
    return "; ".join(f"{name}: {_shown(a)} {then}, {_shown(b)} {now}" for name, (a, b) in found.items())


def _equal(a: Any, b: Any) -> bool:
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return math.isclose(a, b, rel_tol=EXACT) if numbers else bool(a == b)


def _shown(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

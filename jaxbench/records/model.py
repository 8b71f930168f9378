# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether two passports are of one model: a name, a file and a config can stay while the model changes."""

from __future__ import annotations

import math
from typing import Any

from jaxbench.records.schema import CaseRecord, PointRecord

# What a step or a case computes. Times of two that differ in one of these are no two times of one thing.
STEP_FACTS = ("parameters", "flops", "global_batch", "gradient_bytes")
CASE_FACTS = ("op", "dtype", "shape", "elements", "payload_bytes", "flops", "bytes_moved")
EXACT = 1e-9  # relative: FLOPs are floating-point numbers


def facts(record: PointRecord | CaseRecord) -> dict[str, Any]:
    """The facts of a passport: parameters, FLOPs and examples of a global step, bytes of its gradients; of a case its
    size, FLOPs and bytes."""
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
    """ "parameters: 3,466 then, 85,002 now; ..." in the given words."""
    return "; ".join(f"{name}: {_shown(a)} {then}, {_shown(b)} {now}" for name, (a, b) in found.items())


def _equal(a: Any, b: Any) -> bool:
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return math.isclose(a, b, rel_tol=EXACT) if numbers else bool(a == b)


def _shown(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks of ablation programs: a program without communication must do all the work of the step, and a program that
only communicates must send what the step sends."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.records.schema import Collective, CompileReport, Verdict

# XLA merges reductions of equal gradients (such as those of biases that are added) in the step only. It may also drop
# products that the ablated program no longer needs.
TOLERANCE = 0.02


def judge_silent(part: CompileReport) -> Verdict:
    """The verdict "collectives" of a program that must send nothing."""
    sent = sum(each.count for each in part.collectives)
    reason = "the program has no collective" if not sent else f"the program has {sent} collectives, NOT none"
    return Verdict(name="collectives", ok=not sent, reason=reason, value=sent, limit=0)


def judge_schedule(part: CompileReport, step: CompileReport, axis: str) -> Verdict:
    """Whether a program sends one number in place of each message that the step sends over `axis`, and nothing else."""
    own = "collective-permute", axis
    others = sorted({each.kind for each in part.collectives if (each.kind, each.axis) != own})
    numbers = _numbers(part.collectives).get(own, 0)
    messages = sum(each.count for each in step.collectives if (each.kind, each.axis) == own)
    reason = f"{numbers} numbers are sent over '{axis}', and {messages} messages in the step"
    reason += f"; and {', '.join(others)}, which must NOT be" if others else ""
    reason += ": NOT one for each" if numbers != messages else ""
    return Verdict(
        name="collectives", ok=numbers == messages and not others, reason=reason, value=numbers, limit=messages
    )


def judge_work(part: CompileReport, step: CompileReport, *, share: float = 1.0) -> Verdict | None:
    """Whether a program without collectives has the matrix products of the step, or `share` of them.

    None if the FLOPs of either are unknown.
    """
    mine, whole = part.product_flops_per_step, step.product_flops_per_step
    if mine is None or not whole:
        return None
    return _relative("work", mine, share * whole, "FLOPs of matrix products")


def judge_communication(part: CompileReport, step: CompileReport) -> Verdict:
    """Whether a program sends as many numbers as the step, by kind of collective and mesh axis."""
    mine, whole = _numbers(part.collectives), _numbers(step.collectives)
    if mine.keys() != whole.keys():
        kinds = ", ".join(sorted(f"{kind} over '{axis}'" for kind, axis in mine.keys() ^ whole.keys()))
        reason = f"only one of the program and the step has {kinds}"
        return Verdict(name="collectives", ok=False, reason=reason)
    verdicts = [_relative("collectives", mine[key], whole[key], f"numbers of {key[0]}") for key in whole]
    worst = max(verdicts, key=lambda verdict: verdict.value or 0.0, default=None)
    return worst or Verdict(name="collectives", ok=True, reason="neither the program nor the step has a collective")


def _numbers(collectives: Sequence[Collective]) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for each in collectives:
        key = each.kind, each.axis
        total[key] = total.get(key, 0) + each.elements + each.scalars
    return total


def _relative(name: str, mine: float, whole: float, what: str) -> Verdict:
    distance = abs(mine - whole) / whole if whole else float(mine != 0)
    ok = distance <= TOLERANCE
    reason = f"{mine:,.0f} {what}, {whole:,.0f} in the step" + ("" if ok else ": NOT the same work")
    return Verdict(name=name, ok=ok, reason=reason, value=distance, limit=TOLERANCE)

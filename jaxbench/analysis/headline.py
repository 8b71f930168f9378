# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The headline of a run, or why there is none."""

from __future__ import annotations

from jaxbench.analysis.quantities import devices, percent, seconds
from jaxbench.analysis.scaling import Row


def headlines(rows: list[Row]) -> list[str]:
    """One sentence per strategy: its efficiency at the largest honest device count, with the base's absolute time.

    If no point allows one, a single sentence that starts with "No headline" says why.
    """
    strategies = dict.fromkeys(r.point.strategy for r in rows)
    sentences = [
        sentence for name in strategies if (sentence := _sentence([r for r in rows if r.point.strategy == name]))
    ]
    return sentences or [f"No headline: {_why_not(rows)}."]


def _sentence(rows: list[Row]) -> str:
    """The sentence about one strategy; "" when it has no honest point beyond its base."""
    largest = [row for scaling in ("strong", "weak") if (row := _largest(rows, scaling)) is not None]
    if not largest:
        return ""
    parts = []
    for row in largest:
        base = row.base
        assert base is not None
        parts.append(
            f"{row.point.scaling} efficiency {percent(row.efficiency)} on {devices(row.point.devices)} "
            f"(base {devices(base.devices)}, {seconds(row.base_step_s)} per step)"
        )
    return f"{largest[0].point.strategy}: {', '.join(parts)}."


def _largest(rows: list[Row], scaling: str) -> Row | None:
    family = (r for r in rows if r.point.scaling == scaling and r.point.honest)
    compared = [r for r in family if r.base is not None and r.base.honest and r.base is not r.point]
    return max(compared, key=lambda r: r.point.devices, default=None)


def _why_not(rows: list[Row]) -> str:
    if not any(r.timing.step_s.known for r in rows):
        return "nothing was measured"
    if not any(r.point.status == "ok" and r.point.check_ok for r in rows):
        return "every point lacks rounds or did not pass its checks"
    honest = {r.point.devices for r in rows if r.point.honest}
    if not honest:
        return "every point that passed is oversubscribed (more devices than cores)"
    if len(honest) == 1:
        return f"only one honest device count ({honest.pop()}) was measured, and scaling needs two"
    return "no strategy has two honest device counts with a base that passed its checks"

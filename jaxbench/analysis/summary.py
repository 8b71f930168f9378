# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lines of a table of points: a row of any kind of run, with the comparisons and fits that belong to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis import lever_results, stragglers
from jaxbench.analysis.alpha_beta import AlphaBetaFit, group_of
from jaxbench.analysis.arms import ArmResult
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.lever_results import Latency, SharingResult
from jaxbench.analysis.points import CasePoint, MeasuredPoint
from jaxbench.analysis.quantities import devices, scaled
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.stragglers import Stragglers
from jaxbench.core.schema import CaseRecord, CompileReport, PointRecord
from jaxbench.features.ablations.waterfall import Waterfall
from jaxbench.statistics.timing import Timing


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One line of a table of points.

    Attributes:
      arm: its comparison with the baseline, in a lever sweep.
      fit: alpha and beta of its collective or transfer.
      latency: of its single calls, for inference.
      waterfall: why its efficiency is not 100 %.
      stragglers: which process is slow, for a step of several processes.
      sharing: for several trainings at once.
    """

    row: Row | CaseRow
    arm: ArmResult | None = None
    fit: AlphaBetaFit | None = None
    latency: Latency | None = None
    waterfall: Waterfall | None = None
    stragglers: Stragglers | None = None
    sharing: SharingResult | None = None

    @property
    def point(self) -> MeasuredPoint | CasePoint:
        return self.row.point

    @property
    def timing(self) -> Timing:
        return self.row.timing

    @property
    def record(self) -> PointRecord | CaseRecord | None:
        return self.row.point.record

    @property
    def passport(self) -> CompileReport | None:
        """The compile report of a training step; None for a case."""
        return getattr(self.record, "passport", None)

    @property
    def state(self) -> str:
        """One word for its status, checks and gates, as in `state`."""
        unsaid = isinstance(self.row, Row) and self.row.gate == "passed"  # a step that passed is shown as "ok"
        return state(self.point.status, self.point.check_ok, "" if unsaid else self.row.gate)


def entries(
    rows: Sequence[Row | CaseRow],
    *,
    fits: Sequence[AlphaBetaFit] = (),
    arms: Sequence[ArmResult] = (),
    latencies: Sequence[Latency] = (),
    waterfalls: Sequence[Waterfall] = (),
) -> list[Entry]:
    """One entry per row, in the given order."""
    lines = {group_of(fit.place): fit for fit in fits if not fit.why_not}
    compared = {arm.point.point: arm for arm in arms}
    calls = {latency.arm.point.point: latency for latency in latencies}
    explained = {waterfall.point.point: waterfall for waterfall in waterfalls}
    return [
        Entry(
            row=row, arm=compared.get(row.point.point), latency=calls.get(row.point.point),
            fit=lines.get(group_of(row.point)) if isinstance(row, CaseRow) and row.point.payload_bytes else None,
            waterfall=explained.get(row.point.point), stragglers=stragglers.of(row) if isinstance(row, Row) else None,
            sharing=lever_results.sharing_of(row) if isinstance(row, Row) else None,
        )
        for row in rows
    ]  # fmt: skip


def state(status: str, check_ok: bool | None, gate: str = "") -> str:
    """failed, missing, unsupported, wrong (a check failed), refused (by a gate), unchecked, partial, ok or passed."""
    if status in ("failed", "missing", "unsupported"):
        return status
    if check_ok is False:
        return "wrong"
    if gate == "refused":
        return gate
    if check_ok is None:
        return "unchecked"
    return gate if status == "ok" and gate else status


def gradient_bytes(row: Row) -> int | None:
    """The bytes that a device all-reduces in a compiled step, without scalars (loss and metrics); None: unknown."""
    if row.point.record is None:
        return None
    reduced = [c for c in row.point.record.passport.collectives if c.kind == "all-reduce"]
    return sum(c.bytes - c.scalar_bytes for c in reduced)


def real_share(row: Row) -> float:
    """The share of a step's tokens that its loss counts; NaN if the loss does not weight tokens."""
    return row.point.fact("real_share")


def tokens_per_second(row: Row) -> float:
    """All tokens per second, including padding; NaN if examples are not sequences, or without times."""
    return row.timing.examples_per_s.value * row.point.fact("tokens")


def real_tokens_per_second(row: Row) -> float:
    return tokens_per_second(row) * real_share(row)


def token_sentences(rows: list[Row]) -> list[str]:
    """Real and all tokens per second for each strategy, scaling and arm, on its smallest and largest device counts."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if math.isfinite(real_tokens_per_second(row)) and not row.point.oversubscribed:
            name = ", ".join(filter(None, (f"{row.point.strategy} {row.point.scaling}", row.point.arm)))
            families.setdefault(name, []).append(row)
    lines = []
    for name, family in families.items():
        ends = family[:: max(1, len(family) - 1)]
        lines.append(f"{name}: {'; '.join(map(_sentence, ends))}.")
    return lines


def _sentence(row: Row) -> str:
    real, total = (
        scaled(value, "").replace(" ", "") for value in (real_tokens_per_second(row), tokens_per_second(row))
    )
    return f"{real} real of {total} tokens/s ({100 * real_share(row):.3g} %) on {devices(row.point.devices)}"

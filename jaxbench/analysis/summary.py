# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lines of a table of points: a row of any kind of run, with the comparisons and fits that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis import sharing, stragglers
from jaxbench.analysis.alpha_beta import AlphaBetaFit, group_of
from jaxbench.analysis.arms import ArmResult
from jaxbench.analysis.batches import Latency
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.cases import CasePoint
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.sharing import SharingResult
from jaxbench.analysis.stragglers import Stragglers
from jaxbench.analysis.timing import Timing
from jaxbench.analysis.waterfall import Waterfall
from jaxbench.records.schema import CaseRecord, CompileReport, PointRecord


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
            row=row, arm=compared.get(row.point.point), fit=_fit(row, lines), latency=calls.get(row.point.point),
            waterfall=explained.get(row.point.point), stragglers=stragglers.of(row) if isinstance(row, Row) else None,
            sharing=sharing.of(row) if isinstance(row, Row) else None,
        )
        for row in rows
    ]  # fmt: skip


def _fit(row: Row | CaseRow, lines: dict[tuple[object, ...], AlphaBetaFit]) -> AlphaBetaFit | None:
    if isinstance(row, Row) or not row.point.payload_bytes:
        return None
    return lines.get(group_of(row.point))


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

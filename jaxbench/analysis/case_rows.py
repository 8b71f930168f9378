# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From cases to rows: rates, bus bandwidth, share of the peak, and the outcome of every gate."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from jaxbench.analysis import gates, roofline
from jaxbench.analysis.gates import Gate, GatedRow
from jaxbench.analysis.points import CasePoint
from jaxbench.analysis.quantities import payload
from jaxbench.analysis.roofline import Rates
from jaxbench.records.manifest import MachineProfile, Manifest
from jaxbench.statistics import timing
from jaxbench.statistics.bootstrap import UNKNOWN, BootstrapSamples, Estimate, estimate
from jaxbench.statistics.timing import Timing
from jaxbench.statistics.variance import ASSUMED, RunVariance


@dataclass(frozen=True, kw_only=True)
class CaseRow(GatedRow, Rates):
    """One case on given devices, with its numbers.

    Attributes:
      timing: `timing.step_s` is seconds per call, `timing.examples_per_s` calls per second.
      loop_s: seconds per iteration of the jitted loop, from its second clock; UNKNOWN without a loop.
      flop_per_s and the other rates: from step_s, never from the loop.
      peak_share: the rate over its ceiling; UNKNOWN without a ceiling. peak: the name of the ceiling, or "".
      peak_note: a sentence about the ceiling, or why there is none.
    """

    point: CasePoint
    loop_s: Estimate = UNKNOWN
    peak_share: Estimate = UNKNOWN
    peak: str = ""
    peak_note: str = ""

    @property
    def launch_bound(self) -> bool:
        """Whether the launch of the call takes a large part of its time, so the rate does not describe the work."""
        return any(gate.launch_bound for gate in self.gates)


def analyse(
    points: list[CasePoint], *, manifest: Manifest, machine: MachineProfile | None, spread: RunVariance = ASSUMED
) -> list[CaseRow]:
    """Computes every number of every case.

    manifest: the run's; only ``platform``, ``device_kind``, ``cache_bytes`` and ``started`` are read. machine: the
    profile of the same machine (`machine_profile.read`), or None. spread: run-to-run variance (`variance.read`).
    """
    draws = timing.draws_of(points, spread)
    return _refuse_groups([_row(point, draws, manifest, machine) for point in points])


def _refuse_groups(rows: list[CaseRow]) -> list[CaseRow]:
    """Refuses all sizes of a collective if one of them exceeds its link.

    A clock that does not wait exceeds the link only at large payloads. The small payloads would pass, and the largest
    of them would be in the headline, the fit and the verdict, although it is just as wrong.
    """

    def group(row: CaseRow) -> tuple[object, ...]:
        return (row.point.family, row.point.op, row.point.dtype, row.point.mesh, row.point.axis)

    collectives = [row for row in rows if row.point.family == "collective"]
    above = [r for r in collectives if any(g.name == gates.BELOW_PEAK and g.passed is False for g in r.gates)]
    result = []
    for row in rows:
        exceeding = [other for other in above if group(other) == group(row)]
        if exceeding and row.gates and not any(row is other for other in exceeding):
            sizes = ", ".join(payload(other.point.payload_bytes or 0) for other in exceeding)
            doubt = Gate(name=gates.BELOW_PEAK, passed=False, reason=f"the same collective exceeds its link at {sizes}")
            row = row.gated(tuple(doubt if gate.name == gates.BELOW_PEAK else gate for gate in row.gates))
        result.append(row)
    return result


def _row(point: CasePoint, draws: BootstrapSamples, manifest: Manifest, machine: MachineProfile | None) -> CaseRow:
    measured = timing.measure(point, draws, examples=1)
    if not measured.step_s.known:
        return CaseRow(point=point, timing=measured, notes=_notes(point, measured))
    loop = timing.measure_loop(point, measured)
    per_second = rates(point, measured)
    call_s, inside = measured.step_s.value, measured.inside
    share = roofline.share_of_peak(roofline.demands(point, per_second, call_s, manifest=manifest, machine=machine))
    demands = roofline.demands(point, rates(point, inside), call_s, manifest=manifest, machine=machine)
    if machine is not None and manifest.get("started") and manifest["started"] in machine.get("made_of", ()):
        # A peak made from this run does not bound this run: about half of its noise lies above the median.
        if share.source == "measured":
            share = dataclasses.replace(share, peak=f"{share.peak}, made from this run")
        demands = roofline.demands(point, rates(point, inside), call_s, manifest=manifest, machine=roofline.OWN)
    row = CaseRow(
        point=point, timing=measured, loop_s=loop.iteration_s, **vars(per_second), peak_share=share.part,
        peak=share.peak, peak_note=share.note, notes=_notes(point, measured),
    )  # fmt: skip
    return row.gated(gates.judge(point, inside, loop, demands))


def rates(point: CasePoint, measured: Timing) -> Rates:
    """The rates of a case, from its seconds per call."""
    algbw = _per_second(point.payload_bytes, measured)
    factor = bus_factor(point.op, point.devices) if point.family == "collective" else None
    return Rates(
        flop_per_s=_per_second(point.flops, measured),
        bytes_per_s=_per_second(point.bytes_moved, measured),
        algbw=algbw,
        busbw=UNKNOWN if factor is None else _per_second((point.payload_bytes or 0) * factor, measured),
    )


def bus_factor(op: str, devices: int) -> float | None:
    """busbw / algbw as nccl-tests defines it: how many times S must cross each device's link.

    None on one device, and for an op without a definition.
    """
    if devices < 2:
        return None
    part = (devices - 1) / devices
    factors = {"all_reduce": 2 * part, "ppermute": 1.0, "broadcast": 1.0}
    return {**factors, **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), part)}.get(op)


def _per_second(amount: float | None, measured: Timing) -> Estimate:
    """`amount` per call as a rate; UNKNOWN if the case does no such work."""
    if not amount:
        return UNKNOWN
    return estimate(amount / measured.step_s.value, amount / measured.step_draws, rounds=measured.rounds)


def _notes(point: CasePoint, measured: Timing) -> tuple[str, ...]:
    note = "more devices than cores: the measured times do not describe the machine's links"
    sentences = [*([note] if point.oversubscribed else []), *([point.repetition] if point.repetition else [])]
    return (*sentences, *timing.no_interval(measured), *timing.unsettled(point))

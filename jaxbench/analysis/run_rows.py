# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From points to rows: every number of a step or a case, its gates, and its speed-up relative to a stated base."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from jaxbench.analysis import energy, gates, roofline, step_work
from jaxbench.analysis.energy import PowerUse
from jaxbench.analysis.gates import Gate
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import payload
from jaxbench.analysis.roofline import Rates, Utilisation
from jaxbench.levers import SIXTEEN_BITS
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.manifest import Manifest
from jaxbench.statistics import paired_ratio, thirds
from jaxbench.statistics.bootstrap import (
    ASSUMED,
    MIN_ROUNDS,
    UNKNOWN,
    BootstrapSamples,
    Estimate,
    RunVariance,
    estimate,
)
from jaxbench.statistics.thirds import Thirds
from jaxbench.statistics.timing import (
    Timing,
    measure,
    measure_loop,
    no_interval,
    resampling_of,
    round_medians,
    unsettled,
)

# Caveats of a row, as clauses.
NOTES = {
    "shared": "{shared} of its {rounds} rounds are shared with its base {base}",
    "only these": "{shared}: its speed-up uses only these",
    "no interval": "speed-up without interval, and in no fit: {shared}, so drift does not cancel",
    "threads": "some of this loss is XLA's shared CPU thread pool, not the strategy",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One point with its numbers: a line of ``summary.csv``. What does not apply to it is unknown or empty."""

    point: MeasuredPoint
    timing: Timing  # of a case: `step_s` is seconds per call, and `examples_per_s` calls per second
    gates: tuple[Gate, ...] = ()
    gate: str = ""  # passed | refused | "" if nothing was measured
    gate_reason: str = ""  # why it was refused, or the most useful remark
    notes: tuple[str, ...] = ()  # caveats, as clauses
    thirds: Thirds | None = None  # the last third of its rounds against the first; None: too few, or oversubscribed

    # Of a step. Its base has speed-up 1: the smallest measured device count of the same strategy, scaling and arm. None
    # if that point is oversubscribed or a gate refused it.
    base: MeasuredPoint | None = None
    base_step_s: float = math.nan
    work: float = math.nan  # of a step over the base's: global batches, or FLOPs if the model grows
    speedup: Estimate = UNKNOWN  # examples/s over the base's. UNKNOWN if either has fewer than MIN_ROUNDS rounds
    efficiency: Estimate = UNKNOWN  # speedup / (devices / base devices)
    paired: bool = True  # shares MIN_ROUNDS rounds with its base, so that drift cancels; else no interval, and no fit
    speedup_draws: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))  # (draws,), for the fits
    use: Utilisation = Utilisation()
    energy: PowerUse = PowerUse()
    energy_efficiency: Estimate = UNKNOWN  # joules of the base for the same work over those of this point
    # Its ablations by name: alone, local, communication, peak; of a base also "batch=2x". They are in no table, figure,
    # fit or headline of points.
    ablations: Mapping[str, Row] = dataclasses.field(default_factory=dict)
    # By name what follows from several rows: the losses of a waterfall, or the numbers of generation.
    derived: Mapping[str, Estimate] = dataclasses.field(default_factory=dict)

    # Of an arm of a lever sweep (`arms.analyse`). The baseline is the first arm of its (strategy, scaling, devices).
    label: str = ""  # in tables and figures: the value of the swept lever, or the full name of the arm
    against: Row | None = None  # the baseline, measured or not; None: it is the baseline itself
    ratio: Estimate = UNKNOWN  # step time over the baseline's, from the rounds that both share
    gain: Estimate = UNKNOWN  # examples/s over the baseline's, same rounds: 1 / ratio if the batches are equal
    memory_ratio: float = math.nan  # `peak_bytes` over the baseline's
    # baseline | faster | slower (the whole interval of `gain` is on that side of 1) | cannot tell | "" (not measured,
    # or it runs another part of the step, so the work differs)
    verdict: str = ""
    why: str = ""  # the reason for "cannot tell", as a clause
    p50: Estimate = UNKNOWN  # percentiles of the seconds of its single calls, for inference
    p99: Estimate = UNKNOWN
    why_no_p99: str = ""

    # Of a case. Rates come from `step_s`, never from the loop, which pays for no calls.
    loop_s: Estimate = UNKNOWN  # seconds per iteration of the jitted loop: the second clock
    flop_per_s: Estimate = UNKNOWN
    bytes_per_s: Estimate = UNKNOWN
    algbw: Estimate = UNKNOWN
    busbw: Estimate = UNKNOWN
    peak_share: Estimate = UNKNOWN  # the rate over its ceiling
    peak: str = ""  # the name of that ceiling
    peak_note: str = ""  # a sentence about the ceiling, or why there is none
    alpha_s: Estimate = UNKNOWN  # of the line through all sizes of its collective or transfer
    beta_bytes_per_s: Estimate = UNKNOWN

    @property
    def point_id(self) -> str:
        return self.point.point

    @property
    def wrong(self) -> bool:
        """Whether a check failed."""
        return self.point.check_ok is False

    @property
    def usable(self) -> bool:
        """Whether it was measured and no check failed."""
        return self.timing.step_s.known and not self.wrong

    @property
    def quotable(self) -> bool:
        """Whether it may support a headline, a fit or a card."""
        return self.point.reportable and self.gate == "passed"

    @property
    def state(self) -> str:
        """One word for its status, checks and gates, as in `state`. A step that passed its gates is "ok"."""
        unsaid = not self.point.of_case and self.gate == "passed"
        return state(self.point.status, self.point.check_ok, "" if unsaid else self.gate)

    @property
    def baseline(self) -> Row:
        """The arm that it is compared with; that of the first arm is itself."""
        return self.against or self

    @property
    def relative_devices(self) -> float:
        """The number of devices in units of the base's."""
        return self.point.devices / self.base.devices if self.base is not None else math.nan

    @property
    def launch_bound(self) -> bool:
        """Whether the launch of the call takes a large part of its time, so the rate does not describe the work."""
        return any(gate.launch_bound for gate in self.gates)

    @property
    def gradient_bytes(self) -> int | None:
        """The bytes that a device all-reduces in a step, without scalars (loss and metrics); None: unknown."""
        if self.point.compile_report is None:
            return None
        reduced = [c for c in self.point.compile_report.collectives if c.kind == "all-reduce"]
        return sum(c.bytes - c.scalar_bytes for c in reduced)

    @property
    def real_share(self) -> float:
        """The share of a step's tokens that its loss counts; NaN if the loss does not weight tokens."""
        return self.point.fact("real_share")

    @property
    def tokens_per_s(self) -> float:
        """All tokens per second, including padding; NaN if examples are not sequences, or without times."""
        return self.timing.examples_per_s.value * self.point.fact("tokens")

    def gated(self, gates_: tuple[Gate, ...]) -> Self:
        """With the outcome of these gates."""
        gate, reason = gates.verdict(gates_)
        return dataclasses.replace(self, gates=gates_, gate=gate, gate_reason=reason)


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


def analyse(
    points: Sequence[MeasuredPoint],
    *,
    config: Mapping[str, Any] | None = None,
    manifest: Manifest | None = None,
    machine: MachineProfile | None = None,
    spread: RunVariance = ASSUMED,
) -> list[Row]:
    """Computes every number of every point of a run.

    config: the run's; of steps, only ``weak`` is read, and ``model.dtype`` in runs older than the lever `precision`.
    manifest: the run's; of cases, only ``platform``, ``device_kind``, ``cache_bytes`` and ``started`` are read.
    machine: the profile of the same machine (`machine_profile.read`), or None. spread: run-to-run variance
    (`bootstrap.read_spread`).
    """
    # One for all points, so that common variation cancels in their ratios.
    resampling = resampling_of(points, spread)
    if any(point.of_case for point in points):
        return _with_thirds(_refuse_groups([_case(point, resampling, manifest or {}, machine) for point in points]))
    config = config or {}
    timed = [_timed(point, resampling) for point in points]
    measured_ablations = [  # only the clocks are judged, because an ablation is not a whole step
        row.gated((gates.blocks(row.point, row.timing.clock_ratio),)) if row.timing.step_s.known else row
        for row in timed
        if row.point.explains
    ]
    # A large product in the same rounds is a better peak than one from another day: the machine was in the same state.
    products: dict[str, dict[int, Row]] = {}
    for row in measured_ablations:
        if row.point.part == "peak" and not fault(row):
            products.setdefault(dtype_of(row.point, config), {})[row.point.devices] = row
    rows = [
        _alone(row, config, machine, products.get(dtype_of(row.point, config), {}))
        for row in timed
        if not row.point.explains
    ]
    # An ablation's id is the id of its point, a slash and its own name.
    parts: dict[str, dict[str, Row]] = {}
    for row in measured_ablations:
        parts.setdefault(row.point.explains, {})[row.point_id.removeprefix(f"{row.point.explains}/")] = row
    rows = [dataclasses.replace(row, ablations=parts.get(row.point_id, {})) for row in rows]
    model_grows = config.get("weak") == "model"
    return _with_thirds(
        [_finish(row, _base(row.point, rows), model_grows=model_grows and row.point.scaling == "weak") for row in rows]
    )


def _timed(point: MeasuredPoint, resampling: BootstrapSamples) -> Row:
    """The row of a step with its times and energy, before it has a base."""
    timing = measure(point, resampling, examples=point.examples)
    return Row(point=point, timing=timing, energy=energy.of_point(point, timing))


def _with_thirds(rows: list[Row]) -> list[Row]:
    """The rows, each compared with itself at the start of the run."""
    found = []
    for row in rows:
        point = row.point
        if point.rounds and not point.oversubscribed:
            process = row.timing.resampling.process_of(point.units)
            compared = thirds.compare(process, np.log(round_medians(point.rounds)))
            row = dataclasses.replace(row, thirds=compared)
        found.append(row)
    return found


def fault(row: Row) -> str:
    """Why the time of an ablation cannot be used, as a clause; "" if it can."""
    if row.point.check_ok is False or not row.timing.step_s.known:
        return row.point.reason or "it was not measured"
    return row.gate_reason if row.gate == "refused" else ""


def _alone(row: Row, config: Mapping[str, Any], machine: MachineProfile | None, products: Mapping[int, Row]) -> Row:
    """A row without its base. products: large matrix products of the same rounds, by their number of devices."""
    # Its base is found afterwards, among rows with gates: a refused row must not become one.
    point, timing = row.point, row.timing
    if not timing.step_s.known:
        return row
    use = roofline.utilisation(point, timing.step_s.value, dtype=dtype_of(point, config), machine=machine)
    if product := products.get(point.devices):
        best = max(_best_flop_per_s(each) for each in products.values())
        use = _with_product(use, row, product, best)
    return dataclasses.replace(row, use=use).gated(gates.step_gates(point, timing.inside, use))


def _best_flop_per_s(product: Row) -> float:
    """The highest rate of a block of this product, per device; 0: its FLOPs are unknown."""
    compiled = product.point.compile_report
    work = compiled.flops_per_step if compiled is not None else 0.0
    fastest_s = min(min(each.block_s) / each.steps for each in product.point.rounds)
    return work / fastest_s / product.point.devices


def _with_product(use: Utilisation, row: Row, product: Row, best: float) -> Utilisation:
    """Adds the share of the rate of a large matrix product on the same number of devices, over the rounds that both
    share. best: the highest rate of a product in the run, in FLOP/s per device.

    Without a catalogued peak, that product is the measured peak. It replaces the machine profile's peak, because it was
    measured at the same time.
    """
    compiled, step_s = product.point.compile_report, product.timing.inside.step_s  # inside: for a gate
    work = compiled.flops_per_step if compiled is not None else 0.0
    if not work > 0:
        return use
    use = dataclasses.replace(use, product_flop_per_s=work / step_s.value / product.point.devices)
    if not use.flops_per_step > 0:
        return use
    share = paired_ratio.ratio(product, row).times(use.flops_per_step / work)  # times are inverse to rates
    disturbed = next(filter(None, (gates.why_contended(product.point, each) for each in product.point.rounds)), "")
    use = dataclasses.replace(
        use,
        product_share=share,
        best_share=use.flop_per_s / row.point.devices / best,
        best_flop_per_s=best,
        product_disturbed=disturbed,
    )
    if math.isfinite(use.mfu):
        return use
    # The product is a measurement, too: its own uncertainty must not refuse a step that is nearly as fast.
    slack = roofline.SLACK["measured"] * (step_s.value / step_s.lo if step_s.has_interval else 1.0)
    return dataclasses.replace(
        use, measured_peak_share=share.value, measured_note=use.product_note, measured_slack=slack
    )


def dtype_of(point: MeasuredPoint, config: Mapping[str, Any]) -> str:
    """The dtype of most of the point's matrix products, as counted; of older records, from its lever or the config; ""
    if neither has one.

    Of the levers, only the 16-bit formats differ from float32: TF32 is a way to multiply float32 arrays.
    """
    if counted := step_work.formats(point.work):
        return next(iter(counted))
    precision = point.levers.get("precision", "")
    model = config.get("model")
    named = str(model.get("dtype") or "") if isinstance(model, dict) else ""
    if precision in SIXTEEN_BITS:
        return SIXTEEN_BITS[precision]
    return named or ("float32" if precision else "")


def _base(point: MeasuredPoint, rows: list[Row]) -> Row | None:
    """The measured row with the fewest devices of the point's strategy, scaling and arm."""
    family = [
        row
        for row in rows
        if (row.point.strategy, row.point.scaling, row.point.arm) == (point.strategy, point.scaling, point.arm)
        and row.timing.step_s.known
        and row.point.status not in ("failed", "unsupported")
    ]
    # The next larger count does not take its place: it would get an efficiency of 100 % by definition.
    least = min(family, key=lambda row: row.point.devices, default=None)
    return None if least is None or least.point.oversubscribed or least.gate == "refused" else least


def _finish(row: Row, base: Row | None, *, model_grows: bool) -> Row:
    """A row with its base. model_grows: the model grows with the devices, so the work is FLOPs instead of examples."""
    if not row.timing.step_s.known:
        return dataclasses.replace(row, base=base.point if base else None, notes=_notes(row, base))
    if base is None or row.point.devices < base.point.devices:  # the smaller count failed after some rounds
        return dataclasses.replace(row, notes=_notes(row, None))
    # Weak scaling does more work on more devices, so the ratio of times alone is no speed-up.
    work = row.point.global_batch / base.point.global_batch
    if model_grows and row.point.record is not None and base.point.record is not None:
        work = row.point.record.compile_report.flops_per_step / base.point.record.compile_report.flops_per_step
    relative = row.point.devices / base.point.devices
    if row.point is base.point:  # the ratio to itself has no noise: every draw is 1
        speedup, draws = Estimate(value=1.0, lo=1.0, hi=1.0), np.ones_like(row.timing.step_draws)
    else:
        both = paired_ratio.times([base, row])
        speedup, draws = both.ratio().times(work), work * (both.draws[0] / both.draws[1])
    # A speed-up without an interval would look as certain as one with it.
    if not (row.timing.step_s.has_interval and base.timing.step_s.has_interval):
        speedup = UNKNOWN
    finished = dataclasses.replace(
        row,
        energy_efficiency=energy.efficiency(base.energy, row.energy, work),
        base=base.point,
        base_step_s=base.timing.step_s.value,
        work=work,
        speedup=speedup,
        efficiency=speedup.times(1 / relative),
        speedup_draws=draws,
        paired=len(set(row.point.units) & set(base.point.units)) >= MIN_ROUNDS,
    )
    if row.point is not base.point:  # all gates again, because `gated` replaces the outcome
        finished = finished.gated((*row.gates, gates.not_above_ideal(finished.efficiency)))
    return dataclasses.replace(finished, notes=_notes(finished, base))


def _notes(row: Row, base: Row | None) -> tuple[str, ...]:
    """The caveats of a step's row, as clauses."""
    point, notes = row.point, []
    if point.oversubscribed:
        notes.append("more devices than cores, so the measured times do not describe scaling")
    notes.extend(no_interval(row.timing))
    if row.timing.step_s.known and base is None:
        notes.append("no speed-up: no base, as its smallest device count was refused by a gate or is oversubscribed")
    elif base is not None and base.point is not point and base.point.check_ok is not True:
        notes.append(f"its base, {base.point_id}, did not pass its checks")
    if base is not None and not point.oversubscribed and row.timing.step_s.known:
        notes.extend(_pairing(row, base))
    if not point.oversubscribed:
        # A refused row has its reason already.
        if row.gate != "refused" and row.efficiency.lo > 1:
            notes.append("efficiency above 1 beyond its interval: look for a slow base (caches, memory, small batch)")
        elif row.gate != "refused" and not row.efficiency.has_interval and row.efficiency.value > 1:
            notes.append("efficiency above 1, without an interval to judge it")
        notes.extend(_shared_threads(row))
    notes.extend(step_work.sentences(point.work, point.levers))
    for check in point.record.checks if point.record else ():
        if check.ok and check.excess_bytes:  # not an error
            total = sum(c.bytes for c in point.record.compile_report.collectives) if point.record else 0
            beyond = f"{check.excess_bytes:,} of {total:,} bytes of collectives are beyond the expected bytes"
            notes.append(f"excess: {beyond}")
    notes.extend([point.repetition, *([] if point.oversubscribed else unsettled(point)), row.timing.clock_note])
    return tuple(filter(None, notes))


def _pairing(row: Row, base: Row) -> list[str]:
    """A caveat if the row and its base share only some of their rounds."""
    shared = len(set(row.point.units) & set(base.point.units))
    if shared == row.timing.rounds:  # also of the base itself
        return []
    measured = NOTES["shared"].format(shared=shared, rounds=row.timing.rounds, base=base.point_id)
    if row.paired:
        return [NOTES["only these"].format(shared=measured)]
    return [NOTES["no interval"].format(shared=measured)] if row.speedup.known else []


def _shared_threads(row: Row) -> list[str]:
    """A note that devices of one CPU process share XLA's thread pool (docs/metrics, Threads). Not needed if a waterfall
    shows it as contention."""
    point, local = row.point, row.ablations.get("local")
    if local is not None and not fault(local):
        return []
    # Several fake devices of one process share the pool, a device with a process of its own does not.
    if point.platform != "cpu" or point.devices <= point.processes or not row.efficiency.hi < 1:
        return []
    return [NOTES["threads"]]


def _refuse_groups(rows: list[Row]) -> list[Row]:
    """Refuses all sizes of a collective if one of them exceeds its link.

    A clock that does not wait exceeds the link only at large payloads. The small payloads would pass, and the largest
    of them would be in the headline, the fit and the verdict, although it is just as wrong.
    """

    def group(row: Row) -> tuple[object, ...]:
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


def _case(
    point: MeasuredPoint, resampling: BootstrapSamples, manifest: Manifest, machine: MachineProfile | None
) -> Row:
    """The row of a case: rates, its share of the peak, and its gates."""
    measured = measure(point, resampling, examples=point.examples)
    if not measured.step_s.known:  # no rates, and nothing for a gate to judge
        return Row(point=point, timing=measured, notes=_case_notes(point, measured))
    loop = measure_loop(point, measured)
    per_second = rates(point, measured)
    call_s, inside = measured.step_s.value, measured.inside
    share = roofline.share_of_peak(roofline.demands(point, per_second, call_s, manifest=manifest, machine=machine))
    # The gates use the interval of these processes alone: another process would make no impossible rate possible.
    demands = roofline.demands(point, rates(point, inside), call_s, manifest=manifest, machine=machine)
    if machine is not None and manifest.get("started") and manifest["started"] in machine.get("made_of", ()):
        # A peak made from this run does not bound this run: about half of its noise lies above the median.
        if share.source == "measured":
            share = dataclasses.replace(share, peak=f"{share.peak}, made from this run")
        demands = roofline.demands(point, rates(point, inside), call_s, manifest=manifest, machine=roofline.OF_THE_RUN)
    row = Row(
        point=point,
        timing=measured,
        energy=energy.of_point(point, measured),
        loop_s=loop.iteration_s,
        **vars(per_second),
        peak_share=share.share,
        peak=share.peak,
        peak_note=share.note,
        notes=_case_notes(point, measured),
    )
    return row.gated(gates.point_gates(point, inside, loop, demands))


def rates(point: MeasuredPoint, measured: Timing) -> Rates:
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
    # A ring all-reduce is a reduce-scatter and an all-gather, and each moves all shards but the device's own.
    part = (devices - 1) / devices
    factors = {"all_reduce": 2 * part, "ppermute": 1.0, "broadcast": 1.0}
    return {**factors, **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), part)}.get(op)


def _per_second(amount: float | None, measured: Timing) -> Estimate:
    """`amount` per call as a rate; UNKNOWN if the case does no such work."""
    if not amount:
        return UNKNOWN
    return estimate(amount / measured.step_s.value, amount / measured.step_draws, rounds=measured.rounds)


def _case_notes(point: MeasuredPoint, measured: Timing) -> tuple[str, ...]:
    note = "more devices than cores, so the measured times do not describe the machine's links" * point.oversubscribed
    return (*filter(None, (note, point.repetition)), *no_interval(measured), *unsettled(point))

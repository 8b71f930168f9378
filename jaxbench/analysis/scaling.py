# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes rows from points: speed-up and efficiency relative to a stated base."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbench.analysis import gates, roofline
from jaxbench.analysis.gates import GatedRow
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.roofline import Utilisation
from jaxbench.levers import SIXTEEN_BITS
from jaxbench.records.manifest import MachineProfile
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import MIN_ROUNDS, UNKNOWN, Estimate
from jaxbench.statistics.timing import draws_of, measure, no_interval, unsettled
from jaxbench.statistics.variance import ASSUMED, RunVariance


@dataclass(frozen=True, kw_only=True)
class Row(GatedRow):
    """One training point with its numbers.

    Attributes:
      base: the point with speed-up 1: the smallest measured device count of the same strategy, scaling and arm; None if
        that point is oversubscribed or a gate refused it.
      work: the work of a step over the base's: global batches, or FLOPs if the model grows.
      speedup: examples per second over the base's, both from median step times. UNKNOWN if either has fewer than
        MIN_ROUNDS rounds.
      efficiency: speedup / (devices / base devices).
      paired: whether it shares at least MIN_ROUNDS rounds with its base, so that drift cancels. Otherwise the speed-up
        has no interval, and no fit uses the point.
      speedup_draws: (draws,) the speed-up of each bootstrap sample, for the fits.
      ablations: the rows of its ablations, by name: alone, local, communication, peak; for a base also "batch=2x".
        No table, figure, fit or headline of points has them.
    """

    point: MeasuredPoint
    base: MeasuredPoint | None = None
    base_step_s: float = float("nan")
    work: float = float("nan")
    speedup: Estimate = UNKNOWN
    efficiency: Estimate = UNKNOWN
    paired: bool = True
    speedup_draws: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))
    use: Utilisation = Utilisation()
    ablations: Mapping[str, Row] = dataclasses.field(default_factory=dict)

    @property
    def relative_devices(self) -> float:
        """The number of devices in units of the base's."""
        return self.point.devices / self.base.devices if self.base is not None else float("nan")


@dataclass(frozen=True, kw_only=True)
class Control:
    """An A/A measurement: the same program measured twice in one run. The ratio's distance from 1 is the A/A spread."""

    strategy: str
    devices: int
    ratio: Estimate  # step_s of the strong point over step_s of the weak point, with its interval

    @property
    def aa_spread(self) -> float:
        """The A/A spread: the larger distance of the interval's ends from 1, at least 0.001."""
        return max(0.001, abs(self.ratio.lo - 1), abs(self.ratio.hi - 1))

    @property
    def sentence(self) -> str:
        ratio = self.ratio
        devices = f"{self.devices} device{'s' if self.devices > 1 else ''}"
        return (
            f"A/A spread, {self.strategy}: strong and weak scaling are the same program on {devices}, measured twice. "
            f"The ratio of their step times is {ratio.value:.3f} [{ratio.lo:.3f}, {ratio.hi:.3f}]. Differences below "
            f"{100 * self.aa_spread:.1f} % are noise here."
        )


def analyse(
    points: list[MeasuredPoint],
    *,
    config: dict[str, Any],
    machine: MachineProfile | None = None,
    spread: RunVariance = ASSUMED,
) -> list[Row]:
    """Computes every number of every point.

    config: the run's; only ``weak`` is read, and ``model.dtype`` in runs older than the lever `precision`.
    machine: the machine profile (`machine_profile.read`), or None. spread: between processes (`variance.read`).
    """
    draws = draws_of(points, spread)
    timed = [Row(point=point, timing=measure(point, draws, examples=point.examples)) for point in points]
    measured_ablations = [  # only the clocks are judged, because an ablation is not a whole step
        row.gated((gates.blocks(row.point, row.timing.clock_ratio),)) if row.timing.step_s.known else row
        for row in timed
        if row.point.explains
    ]
    products = {
        (row.point.devices, dtype_of(row.point, config)): row
        for row in measured_ablations
        if row.point.part == "peak" and not fault(row)
    }
    rows = [
        _alone(row, config, machine, products.get((row.point.devices, dtype_of(row.point, config))))
        for row in timed
        if not row.point.explains
    ]
    parts: dict[str, dict[str, Row]] = {}
    for row in measured_ablations:
        parts.setdefault(row.point.explains, {})[row.point.point.removeprefix(f"{row.point.explains}/")] = row
    rows = [dataclasses.replace(row, ablations=parts.get(row.point.point, {})) for row in rows]
    model_grows = config.get("weak") == "model"
    return [
        _finish(row, _base(row.point, rows), model_grows=model_grows and row.point.scaling == "weak") for row in rows
    ]


def fault(row: Row) -> str:
    """Why the time of an ablation cannot be used, as a clause; "" if it can."""
    if row.point.check_ok is False or not row.timing.step_s.known:
        return row.point.reason or "it was not measured"
    return row.gate_reason if row.gate == "refused" else ""


def _alone(row: Row, config: dict[str, Any], machine: MachineProfile | None, product: Row | None) -> Row:
    """A row without its base. product: a large matrix product on the same number of devices in the same rounds, or
    None."""
    point, timing = row.point, row.timing
    if not timing.step_s.known:
        return row
    use = roofline.utilisation(point, timing.step_s.value, dtype=dtype_of(point, config), machine=machine)
    if product is not None:
        use = roofline.with_product(use, row, product)
    return dataclasses.replace(row, use=use).gated(gates.judge_step(point, timing.inside, use))


def dtype_of(point: MeasuredPoint, config: dict[str, Any]) -> str:
    """The dtype of the point's matrix products, from its lever or the config; "" if neither has one.

    Of the levers, only the 16-bit formats differ from float32: TF32 is a way to multiply float32 arrays.
    """
    precision = point.levers.get("precision", "")
    model = config.get("model")
    named = str(model.get("dtype") or "") if isinstance(model, dict) else ""
    if precision in SIXTEEN_BITS:
        return SIXTEEN_BITS[precision]
    return named or ("float32" if precision else "")


def controls(rows: list[Row]) -> list[Control]:
    """The A/A measurements: strong and weak points that are the same program, at a strategy's base device count."""
    results = []
    measured = {
        (r.point.strategy, r.point.scaling, r.point.devices, r.point.arm): r for r in rows if r.timing.step_s.known
    }
    for (strategy, scaling, devices, arm), strong in measured.items():
        weak = measured.get((strategy, "weak", devices, arm))
        if scaling != "strong" or weak is None or strong.base is None or strong.base.devices != devices:
            continue
        ratio = paired_ratio.ratio(strong, weak)
        if strong.point.global_batch == weak.point.global_batch and ratio.has_interval:
            results.append(Control(strategy=strategy, devices=devices, ratio=ratio))
    return results


def _base(point: MeasuredPoint, rows: list[Row]) -> Row | None:
    family = [
        row
        for row in rows
        if (row.point.strategy, row.point.scaling, row.point.arm) == (point.strategy, point.scaling, point.arm)
        and row.timing.step_s.known
        and row.point.status not in ("failed", "unsupported")
    ]
    least = min(family, key=lambda row: row.point.devices, default=None)
    return None if least is None or least.point.oversubscribed or least.gate == "refused" else least


def _finish(row: Row, base: Row | None, *, model_grows: bool) -> Row:
    """A row with its base. model_grows: the model grows with the devices, so the work is FLOPs instead of examples."""
    if not row.timing.step_s.known:
        return dataclasses.replace(row, base=base.point if base else None, notes=_notes(row, base))
    if base is None or row.point.devices < base.point.devices:  # the smaller count failed after some rounds
        return dataclasses.replace(row, notes=_notes(row, None))
    work = row.point.global_batch / base.point.global_batch
    if model_grows and row.point.record is not None and base.point.record is not None:
        work = row.point.record.passport.flops_per_step / base.point.record.passport.flops_per_step
    relative = row.point.devices / base.point.devices
    if row.point is base.point:
        speedup, draws = Estimate(value=1.0, lo=1.0, hi=1.0), np.ones_like(row.timing.step_draws)
    else:
        both = paired_ratio.times([base, row])
        speedup, draws = both.ratio().times(work), work * (both.draws[0] / both.draws[1])
    if not (row.timing.step_s.has_interval and base.timing.step_s.has_interval):
        speedup = UNKNOWN
    finished = dataclasses.replace(
        row, base=base.point, base_step_s=base.timing.step_s.value, work=work, speedup=speedup,
        efficiency=speedup.times(1 / relative), speedup_draws=draws,
        paired=len(set(row.point.units) & set(base.point.units)) >= MIN_ROUNDS,
    )  # fmt: skip
    if row.point is not base.point:
        finished = finished.gated((*row.gates, gates.not_above_ideal(finished.efficiency)))
    return dataclasses.replace(finished, notes=_notes(finished, base))


def _notes(row: Row, base: Row | None) -> tuple[str, ...]:
    point, notes = row.point, []
    if point.oversubscribed:
        notes.append("more devices than cores: the measured times do not describe scaling")
    notes.extend(no_interval(row.timing))
    if row.timing.step_s.known and base is None:
        notes.append("no speed-up: no base, as its smallest device count was refused by a gate or is oversubscribed")
    elif base is not None and base.point is not point and base.point.check_ok is not True:
        notes.append(f"its base, {base.point.point}, did not pass its checks")
    if base is not None and not point.oversubscribed and row.timing.step_s.known:
        notes.extend(_pairing(row, base))
    if not point.oversubscribed:
        if row.gate != "refused" and row.efficiency.lo > 1:
            notes.append("efficiency above 1 beyond its interval: look for a slow base (caches, memory, small batch)")
        elif row.gate != "refused" and not row.efficiency.has_interval and row.efficiency.value > 1:
            notes.append("efficiency above 1, without an interval to judge it")
        notes.extend(_shared_threads(row))
    for check in point.record.checks if point.record else ():
        if check.ok and check.excess_bytes:  # not an error
            total = sum(each.bytes for each in point.record.passport.collectives) if point.record else 0
            beyond = f"{check.excess_bytes:,} of {total:,} bytes of collectives are beyond the expected bytes"
            notes.append(f"excess: {beyond}")
    notes.extend([point.repetition] if point.repetition else [])
    notes.extend([] if point.oversubscribed else unsettled(point))
    if row.timing.clock_note:
        notes.append(row.timing.clock_note)
    return tuple(notes)


def _pairing(row: Row, base: Row) -> list[str]:
    shared = len(set(row.point.units) & set(base.point.units))
    if shared == row.timing.rounds:
        return []
    measured = f"{shared} of its {row.timing.rounds} rounds are shared with its base {base.point.point}"
    if row.paired:
        return [f"{measured}: its speed-up uses only these"]
    note = f"speed-up without interval, and in no fit: {measured}, so drift does not cancel"
    return [note] if row.speedup.known else []


def _shared_threads(row: Row) -> list[str]:
    """A note that devices of one CPU process share XLA's thread pool (docs/metrics, Threads). Not needed if a waterfall
    shows it as contention."""
    point, local = row.point, row.ablations.get("local")
    if local is not None and not fault(local):
        return []
    if point.platform != "cpu" or point.devices <= point.processes or not row.efficiency.hi < 1:
        return []
    return ["some of this loss is XLA's shared CPU thread pool, not the strategy"]


def half_widths(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """(half width, point) for each claim of the run.

    The claims are the efficiencies. Without any, as on one device, they are the ratios of each step time to the first
    point's. A single point claims its step time.
    """
    claims = [  # the report may make a claim about these points, so that their intervals should be narrow
        row
        for row in rows
        if row.timing.step_s.known and not (row.point.oversubscribed or row.gate == "refused" or row.point.explains)
    ]
    found = [(row, row.efficiency) for row in claims if row.base is not None and row.base is not row.point]
    if not found and claims:
        first, *others = claims
        ratios = [(row, paired_ratio.ratio(row, first)) for row in others] or [(first, first.timing.step_s)]
        found = [(row, ratio.times(1 / ratio.value)) for row, ratio in ratios if ratio.known]
    return [(estimate.half_width, row.point.point) for row, estimate in found if estimate.has_interval]

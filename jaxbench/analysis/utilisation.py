# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Model FLOP/s and model FLOP utilization (MFU), the share of the devices' peak, if that is known."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import ceilings, paired_ratio, quantities
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.limits import SLACK
from jaxbench.analysis.paired_ratio import Timed
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.catalog import hardware


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """The utilisation of a point's devices. Unknown numbers are NaN.

    Attributes:
      flop_per_s: model FLOP/s of all devices.
      mfu: a fraction of their peak.
      note: the peak, or why there is no mfu.
      measured_peak_share: without a catalogued peak, a fraction of this machine's measured matmul peak.
      measured_note: the same in words; "" if unknown.
      product_share: a fraction of the rate of a large matrix product on the same number of devices in the same rounds.
      product_flop_per_s: the rate of that product, per device.
    """

    flops_per_step: float = math.nan
    flop_per_s: float = math.nan
    mfu: float = math.nan
    note: str = ""
    measured_peak_share: float = math.nan
    measured_note: str = ""
    peak: str = ""  # the catalogued peak in words
    measured_slack: float = math.nan  # a share up to this is plausible
    product_share: Estimate = UNKNOWN
    product_flop_per_s: float = math.nan

    def mfu_unmasked(self, point: MeasuredPoint) -> float:
        """MFU including the FLOPs of masked attention, which `mfu` leaves out; NaN if there are none."""
        return self.mfu * (1 + point.fact("masked_flops") * point.global_batch / self.flops_per_step)

    @property
    def product_note(self) -> str:
        """`product_share` in words: "38 % [37, 39] of a large product's rate here (54 GFLOP/s per ...)", or ""."""
        if not self.product_share.known:
            return ""
        rate = quantities.flops(self.product_flop_per_s)
        return (
            f"{quantities.percent(self.product_share)} of a large product's rate here ({rate} per device, in the same "
            "rounds)"
        )

    @property
    def full_note(self) -> str:
        return "; ".join(filter(None, (self.note, self.measured_note)))


def utilisation(
    point: MeasuredPoint, step_s: float, *, dtype: str, machine: dict[str, Any] | None = None
) -> Utilisation:
    """MFU = analytic FLOPs per step / (step_s x devices x peak of one device at `dtype`). Unknown if `dtype` is "".

    machine: the profile of the same machine (`machine_card.read`), or None.
    """
    use = _catalogued(point, step_s, dtype=dtype)
    if not dtype or math.isfinite(use.mfu) or not math.isfinite(use.flop_per_s):
        return use
    return _measured(point, use, dtype=dtype, machine=machine)


def beside_product(use: Utilisation, row: Timed, product: Timed) -> Utilisation:
    """Adds the share of the rate of a large matrix product on the same number of devices, over the rounds that both
    share.

    Without a catalogued peak, that product is the measured peak. It replaces the machine profile's peak, because it was
    measured at the same time.
    """
    record, step_s = product.point.record, product.timing.inside.step_s
    work = record.passport.flops_per_step if record is not None else 0.0
    if not work > 0:
        return use
    use = dataclasses.replace(use, product_flop_per_s=work / step_s.value / product.point.devices)
    if not use.flops_per_step > 0:
        return use
    share = paired_ratio.ratio(product, row).times(use.flops_per_step / work)
    use = dataclasses.replace(use, product_share=share)
    if math.isfinite(use.mfu):
        return use
    slack = SLACK["measured"] * (step_s.value / step_s.lo if step_s.has_interval else 1.0)
    return dataclasses.replace(
        use, measured_peak_share=share.value, measured_note=use.product_note, measured_slack=slack
    )


def _measured(point: MeasuredPoint, use: Utilisation, *, dtype: str, machine: dict[str, Any] | None) -> Utilisation:
    """Adds the share of the measured peak. A CPU device counts as one core, up to the number of cores."""
    ceiling = ceilings.measured(machine, point.platform, 1, dtype).flop
    peak = ceiling.rate
    if machine is None or not math.isfinite(peak):
        return use
    workers, unit = point.devices, "device"
    if point.platform == "cpu":
        workers, unit = min(point.devices, int(machine["machine"].get("cores") or point.devices)), "core"
    share = use.flop_per_s / (workers * peak)
    note = f"{100 * share:.3g} % of this machine's measured matmul peak, {quantities.flops(peak)} per {unit}"
    slack = SLACK["measured"] * ceiling.room
    return dataclasses.replace(use, measured_peak_share=share, measured_note=note, measured_slack=slack)


def _catalogued(point: MeasuredPoint, step_s: float, *, dtype: str) -> Utilisation:
    record = point.record
    if record is None:
        return Utilisation(note="no MFU: the point has no compile report")
    flops = record.passport.flops_per_step
    if not flops > 0:
        return Utilisation(note="no MFU: the experiment states no FLOPs per step")
    flop_per_s = point.trainings * flops / step_s
    unknown = Utilisation(flops_per_step=flops, flop_per_s=flop_per_s)
    if not dtype:
        return dataclasses.replace(unknown, note="no MFU: the config has no model.dtype, so its peak is unknown")
    peak = hardware.find(record.device_kind)
    if peak is None:
        return dataclasses.replace(unknown, note=f"no MFU: {hardware.why_not(record.device_kind)}")
    rate = peak.rate(dtype)
    if rate is None:
        return dataclasses.replace(unknown, note=f"no MFU: the catalogue has no {dtype} peak for {peak.name}")
    text = f"peak {rate.flop_per_s / 1e12:g} TFLOP/s per device ({peak.name}, {rate.column})"
    note = text
    if not rate.verified:
        note += ", which the catalogue marks as unverified"
    if not math.isfinite(flop_per_s):
        return dataclasses.replace(unknown, note=note)
    mfu = flop_per_s / (point.devices * rate.flop_per_s)
    if mfu > 1:
        note += "; a value above 1 is impossible: the FLOP count, the clock or the peak is wrong"
    return Utilisation(flops_per_step=flops, flop_per_s=flop_per_s, mfu=mfu, note=note, peak=text)

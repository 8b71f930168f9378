# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The limits of a device (roofline), the work of a case or of a training step, and the share that it reaches."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass

from jaxbench.analysis import quantities
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.catalog import hardware
from jaxbench.errors import present
from jaxbench.records.machine_profile import MachineProfile, Peak
from jaxbench.records.manifest import Manifest
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

# The rule of STREAM (McCalpin): each array is at least four times as large as the last-level cache.
CACHES = 4  # a working set larger than this many last-level caches is in memory
UNKNOWN_CACHE_BYTES = 2**30  # the same limit when the size of the cache is unknown

# A rate above this many times its ceiling is refused. Vendors round their peaks, and chips run above their nominal
# clock. A measured peak is itself a measurement from another time. "The cache" is several caches: the machine profile
# has the bandwidth of the cache that streaming reached, so it bounds only the order of magnitude.
SLACK = {"catalogue": 1.05, "measured": 1.10, "cache": 2.0}
RIDGE = 1.0  # FLOPs per byte: if only one ceiling is known, a kernel below this counts as memory-bound
OF_THE_RUN: MachineProfile = {"peaks": []}  # stands for a machine profile that was made from the run itself
FLOP, BYTES, LINK = "FLOP/s", "B/s", "B/s over the link"
# What a limit is, or why it is unknown or has no share.
WORDS = {
    "no work": "none of its work has a peak",
    "a copy": "a copy is bound by its link before its memory",
    "cached": "its arrays fit in a cache, and caches have no single bandwidth",
    "unknown cache": "its arrays fit in a cache of unknown bandwidth",
    "matmul": "{rate}, this machine's best {dtype} matmul {where} (machine.json)",
    "cache": "{rate}, this machine's best from a cache {where} (machine.json)",
    "memory": "{rate}, this machine's best from memory {where} (machine.json)",
    "no format": "the catalogue has no {dtype} peak for {name}",
    "both": "{catalogue}, and {profile}",
    "CPU": "CPU devices have no link of their own: they share the machine's memory",
    "no link": "the catalogue has no link for {name}",
    "another link": "the only catalogued link of {name} is the one {which}",
    "inside": "{devices} JAX devices are one {name}, and the link inside it is not catalogued",
    "one way": "{rate} one way ({name}: {note}){doubt}",
    "reduces": "{factor:.3g} x {link}, with reduction in the network",
    "of the run": "the machine profile was made from this run",
    "no profile": "this machine has no profile ('jaxbench machine' makes one)",
    "not in the profile": "the machine profile has no {what}",
    "unverified": ", which the catalogue marks as unverified",
    "no report": "no MFU: the point has no compile report",
    "no FLOPs": "no MFU: the experiment states no FLOPs per step",
    "no dtype": "no MFU: the config has no model.dtype, so its peak is unknown",
    "no MFU": "no MFU: {why}",
    "peak": "peak {tera:g} TFLOP/s per device ({name}, {column})",
    "above 1": "; a value above 1 is impossible: the FLOP count, the clock or the peak is wrong",
    "measured": "{percent:.3g} % of this machine's measured matmul peak, {rate} per {unit}",
    "product": "{share} of a large product's rate here ({rate} per device, in the same rounds)",
    "disturbed": ", which was disturbed: of its best block, {rate} per device, it is {percent:.0f} %",
}


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """One limit of a device."""

    rate: float = math.nan  # per second
    source: str = ""  # catalogue (the vendor's peak) | measured (the best rate in the machine profile) | "" (unknown)
    room: float = 1.0  # upper end of a measured rate's interval over the rate: a value within does not exceed it


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """The limits of one device, or of the cores that a CPU process may use."""

    flop: Ceiling = Ceiling()  # FLOP/s of matrix products in one dtype
    memory: Ceiling = Ceiling()  # bytes/s of streaming
    cache: Ceiling = Ceiling()  # the same from the last-level cache or a nearer one
    # bytes/s from one device to the others, in one direction. Only from the catalogue, because the best measured
    # collective does not limit another one
    link: Ceiling = Ceiling()


def ceilings_of(*, profile: MachineProfile | None, platform: str, device_kind: str, cores: int, dtype: str) -> Ceilings:
    """Each ceiling from the catalogue if it is there, otherwise from the machine profile.

    Args:
      profile: the machine profile (`machine_profile.read`), or None.
      platform, device_kind, cores: where the case runs. Only CPU peaks depend on the number of cores.
      dtype: the dtype of the peak `flop`. Bandwidths are the same for every dtype.
    """
    catalogue = vars(catalogued_ceilings(platform, device_kind, dtype))
    known = {name: ceiling for name, ceiling in catalogue.items() if ceiling.source}
    # A catalogued peak wins: exceeding it is impossible, while a measured one is only the best of its day.
    return dataclasses.replace(measured_ceilings(profile, platform, cores, dtype), **known)


def catalogued_ceilings(platform: str, device_kind: str, dtype: str) -> Ceilings:
    """The catalogue's ceilings. It has no cache bandwidths. For a CPU all are unknown, because its device kind is not a
    model name."""
    peak = hardware.find(device_kind)
    if peak is None or peak.kind != platform:
        return Ceilings()
    rate = peak.rate(dtype)
    rates = {
        "flop": rate.flop_per_s if rate is not None else None,
        "memory": peak.memory_bytes_per_s,
        "link": peak.link.unidirectional_bytes_per_s if peak.link is not None else None,
    }
    return Ceilings(**{name: Ceiling(rate=value, source="catalogue") for name, value in rates.items() if value})


def measured_ceilings(profile: MachineProfile | None, platform: str, cores: int, dtype: str) -> Ceilings:
    """The ceilings in the machine profile.

    A CPU peak must have been measured on the same number of cores. If fewer cores were faster (a busy machine, a size
    that does not split well), their rate counts, because more cores can do at least as much.
    """
    if profile is None:
        return Ceilings()
    on_cpu = platform == "cpu"
    peaks = [p for p in profile["peaks"] if p["platform"] == platform and not (on_cpu and (p["cores"] or 0) > cores)]
    rates = [p for p in peaks if p["quantity"] == "bytes_per_s"]
    groups = {
        "flop": [p for p in peaks if p["quantity"] == "flop_per_s" and p["dtype"] == dtype],
        **{level: [p for p in rates if p["level"] == level] for level in ("memory", "cache")},
    }
    known = {}
    for name, group in groups.items():
        best = max(group, key=lambda peak: float(peak["value"]), default=Peak(value=0))
        rate = float(best["value"])
        # Fewer cores alone make no ceiling: how much more all of them can do is not known.
        if rate > 0 and any(not on_cpu or p["cores"] == cores for p in group):
            room = max(1.0, float(best.get("hi") or rate) / rate) * profile.get("faster", 1.0)
            known[name] = Ceiling(rate=rate, source="measured", room=room)
    return Ceilings(**known)


def memory_level(working_set_bytes: float, cache_bytes: int | None) -> str:
    """Where a working set of this size is: "memory" or "cache". cache_bytes: the last-level cache; None: unknown."""
    limit = CACHES * cache_bytes if cache_bytes else UNKNOWN_CACHE_BYTES  # unknown on every accelerator
    return "memory" if working_set_bytes > limit else "cache"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The maximum rate of one kind of work."""

    rate: float = math.nan  # per second
    source: str = ""  # as in `Ceiling`
    text: str = ""  # the limit in words, or why it is unknown
    slack: float = math.nan  # a value up to this many times `rate` is plausible
    no_share: str = ""  # why a share of this limit is meaningless

    @property
    def known(self) -> bool:
        return math.isfinite(self.rate)

    @property
    def counts(self) -> bool:
        """Whether a share of it is meaningful."""
        return self.known and not self.no_share


@dataclass(frozen=True, kw_only=True)
class Demand:
    """One kind of work of a case."""

    unit: str  # FLOP, BYTES or LINK
    amount: float  # the work of one call
    rate: Estimate  # the work per second
    limit: Limit  # its ceiling
    dtype: str = ""  # of the case; integer operations are shown as OP/s

    @property
    def least_s(self) -> float:
        """The seconds of one call at the ceiling; NaN if that is unknown."""
        return self.amount / self.limit.rate

    def shown(self, rate: float) -> str:
        return quantities.scaled(rate, quantities.operations(self.dtype) if self.unit == FLOP else self.unit)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Rates of one case, from its seconds per call; UNKNOWN for work that it does not do."""

    flop_per_s: Estimate = UNKNOWN
    bytes_per_s: Estimate = UNKNOWN
    algbw: Estimate = UNKNOWN
    busbw: Estimate = UNKNOWN


def demands(
    point: MeasuredPoint, rates: Rates, step_s: float, *, manifest: Manifest, machine: MachineProfile | None
) -> tuple[Demand, ...]:
    """The kinds of work of a case, each with its ceiling. machine: the machine profile, or None."""
    kind = str(manifest.get("device_kind", "")) if manifest.get("platform") == point.platform else point.platform
    kind = point.case.device_kind if point.case is not None else kind
    known = ceilings_of(
        profile=machine, platform=point.platform, device_kind=kind, cores=point.cores or 0, dtype=point.dtype
    )
    result = []
    if rates.flop_per_s.known and point.flops:
        limit = _flop_limit(point, kind, known.flop, machine)
        result.append(Demand(unit=FLOP, amount=point.flops, rate=rates.flop_per_s, limit=limit, dtype=point.dtype))
    if rates.bytes_per_s.known and point.bytes_moved:
        limit = _bytes_limit(point, kind, known, machine, cache_bytes=manifest.get("cache_bytes"))
        result.append(Demand(unit=BYTES, amount=point.bytes_moved, rate=rates.bytes_per_s, limit=limit))
    # Bus bandwidth, because a collective of n devices sends more over each link than its payload.
    link_rate = rates.busbw if point.family == "collective" else rates.algbw
    if link_rate.known:
        amount = link_rate.value * step_s
        result.append(Demand(unit=LINK, amount=amount, rate=link_rate, limit=_link_limit(point, kind)))
    return tuple(result)


@dataclass(frozen=True, kw_only=True)
class PeakShare:
    """The share of its peak that a case reaches."""

    share: Estimate = UNKNOWN
    peak: str = ""  # in words; "" without a peak
    why_not: str = ""  # the reason for none
    source: str = ""  # as in `Ceiling`

    @property
    def note(self) -> str:
        """The peak, or why there is none."""
        return f"percent of {self.peak}" if self.peak else f"no percentage of peak: {self.why_not}"


def share_of_peak(demands: tuple[Demand, ...]) -> PeakShare:
    """The share of the binding ceiling that a case reaches. The ceiling binds at which a call would take longest."""
    # A case that may be bound by an unknown ceiling has no share: its share of the known one would look like waste.
    shared = [d for d in demands if d.limit.counts and _may_bind(d, demands)]
    if not shared:
        limits = [d.limit for d in demands if _may_bind(d, demands)]
        reasons = [limit.text for limit in limits if not limit.no_share] or [limit.no_share for limit in limits]
        return PeakShare(why_not="; ".join(reasons) or WORDS["no work"])
    binding = max(shared, key=lambda d: d.least_s)
    source = binding.limit.source
    peak = f"{'catalogued' if source == 'catalogue' else source} peak: {binding.limit.text}"
    return PeakShare(share=binding.rate.over(binding.limit.rate), peak=peak, source=source)


def _may_bind(demand: Demand, demands: tuple[Demand, ...]) -> bool:
    """Whether this demand may bind. It may not if the other demand is likelier to bind and has an unknown ceiling."""
    other = next((d for d in demands if {d.unit, demand.unit} == {FLOP, BYTES}), None)
    if other is None or other.limit.counts:
        return True
    flops, moved = (demand, other) if demand.unit == FLOP else (other, demand)
    return (flops.amount >= RIDGE * moved.amount) == (demand.unit == FLOP)


def _flop_limit(point: MeasuredPoint, kind: str, ceiling: Ceiling, machine: MachineProfile | None) -> Limit:
    peak = hardware.find(kind)
    row = peak.rate(point.dtype) if peak is not None else None
    text = quantities.flops(ceiling.rate, point.dtype)
    if ceiling.source == "catalogue":  # the ceiling came from this row of it
        name, row = present(peak).name, present(row)
        return _limit(ceiling, f"{text} ({name}, {row.column}){_unverified_note(row.verified)}")
    if ceiling.source == "measured":
        best = WORDS["matmul"].format(rate=text, dtype=point.dtype, where=_up_to(point))
        return _limit(ceiling, best)
    missing = _not_catalogued(point.dtype, kind)
    profile = _no_card(machine, f"{point.dtype} matmul {_where(point)}")
    return Limit(text=WORDS["both"].format(catalogue=missing, profile=profile))


def _not_catalogued(dtype: str, kind: str) -> str:
    """Why the catalogue has no peak of this format for this kind of device."""
    peak = hardware.find(kind)
    return WORDS["no format"].format(dtype=dtype, name=peak.name) if peak else hardware.why_not(kind)


def _limit(ceiling: Ceiling, text: str, *, slack: float | None = None, no_share: str = "") -> Limit:
    """The limit that a ceiling sets, with the slack of its source."""
    room = (slack or SLACK[ceiling.source]) * ceiling.room
    return Limit(rate=ceiling.rate, source=ceiling.source, text=text, slack=room, no_share=no_share)


def _bytes_limit(
    point: MeasuredPoint, kind: str, known: Ceilings, machine: MachineProfile | None, *, cache_bytes: int | None
) -> Limit:
    """The bandwidth limit of a case: of memory, or of a cache that holds its arrays. Transfers also use memory."""
    copies = point.family == "transfer"  # it reads one array and writes another, so it touches all that it holds
    touched = float(point.resident_bytes or math.inf) if copies else _touched(point)
    no_share = WORDS["a copy"] if copies else ""
    if memory_level(touched, cache_bytes if point.platform == "cpu" else None) == "cache":
        no_share = no_share or WORDS["cached"]
        if not known.cache.source:
            return Limit(text=WORDS["unknown cache"], no_share=no_share)
        text = WORDS["cache"].format(rate=quantities.per_second(known.cache.rate), where=_up_to(point))
        return _limit(known.cache, text, slack=SLACK["cache"], no_share=no_share)
    text = quantities.per_second(known.memory.rate)
    if known.memory.source == "catalogue":
        peak = present(hardware.find(kind))
        text += f" ({peak.name}, mem_bw_gbps){_unverified_note(peak.memory_verified)}"
        return _limit(known.memory, text, no_share=no_share)
    if known.memory.source == "measured":
        return _limit(known.memory, WORDS["memory"].format(rate=text, where=_up_to(point)), no_share=no_share)
    profile = _no_card(machine, f"streaming from memory {_where(point)}")
    return Limit(text=WORDS["both"].format(catalogue=hardware.why_not(kind), profile=profile), no_share=no_share)


def _touched(point: MeasuredPoint) -> float:
    """The bytes that a call reads or writes before it returns to the same ones.

    A call that moves more bytes than it holds passes over its arrays several times. Each pass may be in place, so
    between two passes it may touch no more than one array. A cache may hold that array although it cannot hold all.
    """
    moved, held = float(point.bytes_moved or 0), float(point.resident_bytes or math.inf)
    bits = re.search(r"\d+", point.dtype)  # of the dtype's name: "bfloat16"; bool has none, and takes a byte
    return moved if moved <= held else (point.elements or 0) * int(bits[0] if bits else 8) / 8


def _link_limit(point: MeasuredPoint, kind: str) -> Limit:
    """The catalogue's link in one direction, if this case uses it."""
    if point.platform == "cpu":
        return Limit(text=WORDS["CPU"])
    peak = hardware.find(kind)
    link = peak.link if peak is not None else None
    to_host = "host" in (point.source, point.target)
    if peak is None:
        return Limit(text=hardware.why_not(kind))
    if link is None:
        return Limit(text=WORDS["no link"].format(name=peak.name))
    if to_host != link.is_pcie:  # PCIe leads to the host, and NVLink or the like to other devices
        which = "to other devices" if to_host else "to the host (PCIe)"
        return Limit(text=WORDS["another link"].format(name=peak.name, which=which))
    if link.devices > 1:
        return Limit(text=WORDS["inside"].format(devices=link.devices, name=peak.name))
    rate, n = link.unidirectional_bytes_per_s, point.devices
    shown, doubt = quantities.per_second(rate), _unverified_note(link.verified)
    text = WORDS["one way"].format(rate=shown, name=peak.name, note=link.note, doubt=doubt)
    if point.op == "all_reduce" and link.reduces_in_network:
        # If the switch reduces, a device sends its S bytes once and receives the sum once. So algbw may reach the
        # link's rate. busbw counts the 2(n-1)/n S bytes that a ring must send, so it may reach 2(n-1)/n times that.
        # Published 8xH200 results reach 473 GB/s of bus bandwidth at 4 GiB and 482 at 16 GiB over 450 GB/s one way.
        factor = 2 * (n - 1) / n
        rate, text = factor * rate, WORDS["reduces"].format(factor=factor, link=text)
    return Limit(rate=rate, source="catalogue", text=text, slack=SLACK["catalogue"])


def _where(point: MeasuredPoint) -> str:
    """The cores or the device that a ceiling holds for."""
    return f"on {point.where}" if point.platform == "cpu" else "on this device"


def _up_to(point: MeasuredPoint) -> str:
    """Where a peak was measured. Fewer cores may have reached more (`measured_ceilings`)."""
    return _where(point).replace("on ", "on up to ") if point.platform == "cpu" and point.cores != 1 else _where(point)


def _no_card(machine: MachineProfile | None, what: str) -> str:
    if machine is OF_THE_RUN:
        return WORDS["of the run"]
    return WORDS["no profile"] if machine is None else WORDS["not in the profile"].format(what=what)


def _unverified_note(verified: bool) -> str:
    return "" if verified else WORDS["unverified"]


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """The utilisation of a point's devices. Unknown numbers are NaN."""

    flops_per_step: float = math.nan  # analytic, of one training
    flop_per_s: float = math.nan  # model FLOP/s of all devices and trainings
    mfu: float = math.nan  # a fraction of the devices' catalogued peak
    note: str = ""  # that peak, or why there is no mfu
    measured_peak_share: float = math.nan  # without a catalogued peak: of this machine's measured matmul peak
    measured_note: str = ""  # the same in words
    peak: str = ""  # the catalogued peak in words
    measured_slack: float = math.nan  # a share up to this is plausible
    product_share: Estimate = UNKNOWN  # of a large product's rate, on as many devices in the same rounds
    product_flop_per_s: float = math.nan  # the rate of that product, per device
    best_flop_per_s: float = math.nan  # per device, in any block of such a product: its rate if nothing disturbs it
    best_share: float = math.nan  # the step's rate over that
    product_disturbed: str = ""  # why the product was contended in one of its rounds, as a clause

    def mfu_unmasked(self, point: MeasuredPoint) -> float:
        """MFU including the FLOPs of masked attention, which `mfu` leaves out; NaN if there are none."""
        return self.mfu * (1 + point.fact("masked_flops") * point.global_batch / self.flops_per_step)

    @property
    def product_note(self) -> str:
        """`product_share` in words: "38 % [37, 39] of a large product's rate here (54 GFLOP/s per ...)", or ""."""
        if not self.product_share.known:
            return ""
        share, rate = quantities.percent(self.product_share), quantities.flops(self.product_flop_per_s)
        note = WORDS["product"].format(share=share, rate=rate)
        if self.product_share.value > SLACK["measured"] >= self.best_share:
            best = quantities.flops(self.best_flop_per_s)
            note += WORDS["disturbed"].format(rate=best, percent=100 * self.best_share)
        return note

    @property
    def full_note(self) -> str:
        return "; ".join(filter(None, (self.note, self.measured_note)))


def utilisation(
    point: MeasuredPoint, step_s: float, *, dtype: str, machine: MachineProfile | None = None
) -> Utilisation:
    """MFU = analytic FLOPs per step / (step_s x devices x peak of one device at `dtype`). Unknown if `dtype` is "".

    Without a catalogued peak: the share of the measured peak. A CPU device counts as one core, up to the number of
    cores. machine: the profile of the same machine (`machine_profile.read`), or None.
    """
    record = point.record
    if record is None:
        return Utilisation(note=WORDS["no report"])
    flops = record.compile_report.flops_per_step
    if not flops > 0:
        return Utilisation(note=WORDS["no FLOPs"])
    use = Utilisation(flops_per_step=flops, flop_per_s=point.trainings * flops / step_s)
    if not dtype:
        return dataclasses.replace(use, note=WORDS["no dtype"])
    peak = hardware.find(record.device_kind)
    rate = peak.rate(dtype) if peak is not None else None
    if peak is not None and rate is not None:
        text = WORDS["peak"].format(tera=rate.flop_per_s / 1e12, name=peak.name, column=rate.column)
        mfu, note = use.flop_per_s / (point.devices * rate.flop_per_s), f"{text}{_unverified_note(rate.verified)}"
        if mfu > 1:  # the gate refuses it only beyond the slack of a catalogued peak
            note += WORDS["above 1"]
        return dataclasses.replace(use, mfu=mfu, note=note, peak=text)
    use = dataclasses.replace(use, note=WORDS["no MFU"].format(why=_not_catalogued(dtype, record.device_kind)))
    ceiling = measured_ceilings(machine, point.platform, 1, dtype).flop  # of one core: a CPU device has one
    if machine is None or not math.isfinite(ceiling.rate):
        return use
    workers, unit = point.devices, "device"
    if point.platform == "cpu":
        # More CPU devices than cores compute no faster, so only as many as there are cores count.
        workers, unit = min(point.devices, int(machine["machine"].get("cores") or point.devices)), "core"
    share = use.flop_per_s / (workers * ceiling.rate)
    note = WORDS["measured"].format(percent=100 * share, rate=quantities.flops(ceiling.rate), unit=unit)
    slack = SLACK["measured"] * ceiling.room
    return dataclasses.replace(use, measured_peak_share=share, measured_note=note, measured_slack=slack)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts from a compiled point: the compiler's exact numbers, and a range or a lower bound of the step's time.

Other device counts and depths are extrapolated from two compiled points. The work and memory of a device are a + b / n,
a replicated part plus a part divided among n devices. The arrays that all devices sum or gather are taken from the
compiled program. Every number of a model of equal blocks is a + b x blocks. Neither is exact, and a record names its
sources.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxbench.analysis.compiled import CompiledRow
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import hardware
from jaxbench.catalog.targets import Target, parse
from jaxbench.core.schema import Collective
from jaxbench.digits import digits
from jaxbench.errors import UserError, present
from jaxbench.features.forecast import bands, schedule, work
from jaxbench.features.forecast.forecasts import AT_BEST, COMPILED, ESTIMATED, MEASURED, RECKONED, ForecastRecord
from jaxbench.features.forecast.network import Hosts, Network, PciePath, alternatives, assumed, slowest
from jaxbench.features.forecast.schedule import Event, Times
from jaxbench.features.forecast.work import Chip, Cost
from jaxbench.levers import LARGE, PRECISION, REMAT, STAGE_INPUTS, recomputes_products

_SHORT = ", shorter than in any published run. The gaps between kernels are not counted, so this is a lower bound"
_ATTENTION = {
    "flash": "Attention is a flash kernel, which writes no scores to memory.",
    "plain": "Attention is plain: it writes its scores to memory, which flash attention does not.",
    "ring": "Attention is a ring over the devices of a sequence, of flash kernels or else of blocks.",
    "ulysses": "Attention exchanges the positions of a sequence for heads among its devices.",
}
# Makes a TPU's compiler schedule to save memory. Otherwise it uses more memory if it expects some to spare.
SAVES_MEMORY = "--config.lever.compiler=async_all_gather+xla_tpu_scheduler_percent_shared_memory_limit=50"
SLOW = "no answer within"  # in the reason if a compiler exceeded its time limit (processes/client.py)
_RECOMPUTES = (
    "A pipeline of a model of a billion parameters or more recomputes each stage from its input, because no other "
    "recomputation was asked for."
)
_HOW = {
    "cycles": "the compiler's cycles",
    "roofline": "the roofline of products",
    "memory": "bytes at the memory's rate",
    "kernel": "the FLOPs of attention kernels",
    "unknown": "the bytes of kernels without an estimate",
}
_SUMS = ("jit_auto", "jit_explicit", "pmap", "shard_map")  # strategies that all-reduce the whole gradient once
# Strategies that send gradients and parameters among all devices. The compiler chooses the collectives.
_WHOLE = (*_SUMS, "zero1", "zero2", "fsdp")
UPDATE_BYTES = 28  # that Adam reads and writes for a parameter: 4 numbers in, 3 out, of 4 bytes each
WORTH_SAYING = 0.02  # a band that is wider by less gets no sentence
_SAME = 0.02  # the messages at two counts are of the same arrays if their sizes differ by less than this, relative


@dataclass(frozen=True)
class CompiledForecast:
    """A compiled point: its forecast and its schedule."""

    forecast: ForecastRecord
    events: tuple[Event, ...]


def exact(row: CompiledRow, experiment: str, target: Target) -> ForecastRecord:
    """The forecast with the compiler's numbers and no times."""
    point, record, reason = row.point, row.record, ""
    if record is None:
        saves = target.platform == "tpu" and row.status == "too large"
        reason = row.why + (f" Try {SAVES_MEMORY}, which makes the compiler save memory." if saves else "")
    status = "ok" if record is not None else row.status
    forecast = ForecastRecord(
        point=row.name,
        target=target.text,
        experiment=experiment,
        device_kind=target.device_kind,
        strategy=point["strategy"],
        scaling=point["scaling"],
        arm=point["arm"],
        devices=point["devices"],
        global_batch=point["global_batch"],
        basis=COMPILED,
        status="slow" if SLOW in row.reason else status,
        reason=reason,
        peak_bytes=row.needed_bytes,
        memory_bytes=row.memory_bytes,
        family=family(target.platform, point.get("levers", {})),
    )
    if record is None:
        return forecast
    # It compiles and has a time, so it is shown; but a step that sends something else is another step.
    notes = (f"Its communication is not as expected: {row.why}.",) if row.right is False else ()
    levers = point.get("levers", {})
    if record.passes and record.parameters >= LARGE and levers.get(REMAT.name, REMAT.default) == REMAT.default:
        levers = {**levers, REMAT.name: STAGE_INPUTS}
        notes = (*notes, _RECOMPUTES)
    return dataclasses.replace(
        forecast,
        family=family(target.platform, levers),
        collectives=record.collectives,
        parameters=record.parameters,
        flops=record.flops,
        attention=record.attention,
        passes=record.passes,
        notes=notes,
    )


def family(platform: str, levers: Mapping[str, str]) -> str:
    """The family of a program of this suite: tpu, xla_remat (a GPU's that recomputes products) or xla."""
    if platform == "tpu":  # published runs on TPUs are too few to be divided further
        return "tpu"
    return "xla_remat" if recomputes_products(REMAT.of(levers)) else "xla"


def program(text: str, mesh: Mapping[str, int], target: Target, *, compiled_for: str = "") -> tuple[Event, ...]:
    """The schedule of a compiled text on a target; () if the catalogue does not have the rates of its chip.

    compiled_for: the target that the text was compiled for. If it is another TPU, the cycles of a product are scaled
    with the peaks of the two chips, as if both used the same share of their units.
    """
    on = work.chip(target.device_kind)
    if on is not None and on.clock_hz and compiled_for.partition(":")[0] not in ("", target.name):
        # Cycles are of the other chip's units: a chip with twice the peak needs half of them at the same clock.
        other = present(work.chip(parse(compiled_for).device_kind))
        clock_hz = present(other.clock_hz)  # the catalogue has the clock of every TPU
        on = dataclasses.replace(on, clock_hz=clock_hz * on.peak_flop_per_s / other.peak_flop_per_s)
    return () if on is None else schedule.read(text, mesh, on)


def timed(forecast: ForecastRecord, events: tuple[Event, ...], target: Target, network: Network) -> ForecastRecord:
    """The forecast with times from a schedule and a network."""
    on = work.chip(target.device_kind)
    if on is None or not events:
        why = f"No time: the catalogue does not have all rates of {target.device_kind}."
        return dataclasses.replace(forecast, notes=(*forecast.notes, why))
    by: dict[str, float] = {}
    kernels, copied, large_s, sent_s, slow_s, slow = 0, 0, 0.0, 0.0, 0.0, slowest(network)
    for event, count in schedule.every(events):
        if isinstance(event, Cost):
            by[event.how] = by.get(event.how, 0.0) + event.seconds * count
            kernels, large_s = kernels + count, large_s + event.large_s * count
        elif isinstance(event, schedule.Copy):
            copied += event.bytes * count
        else:
            sent_s += count * network.seconds(event.collective, event.stride)
            slow_s += count * slow.seconds(event.collective, event.stride)
    kinds = [_ATTENTION[kind] for kind in forecast.attention.split("+") if kind]
    notes = (*forecast.notes, *kinds, *_notes(events, by))
    if target.described.startswith("derived"):
        notes = (*notes, f"The compiler's description of {target.name} is {target.described}.")
    if copied and on.host_bytes_per_s is None:
        notes = (*notes, "The catalogue has no rate of copies to the host: their time does not count.")
    if slow_s > sent_s:  # only then does something assumed matter to this step
        notes = (*notes, *assumed(network))
    times = schedule.times(events, network.seconds, on.overlap)
    made = dataclasses.replace(
        forecast,
        seconds_by=dict(sorted(by.items())),
        large_s=large_s,
        kernels=kernels,
        host_bytes=copied,
        bubble_s=schedule.bubble_s(events, forecast.passes),
        notes=notes,
        link=str(network.inside) if isinstance(network, Hosts) and isinstance(network.inside, PciePath) else "",
        by_link={
            name: schedule.times(events, each.seconds, on.overlap).scheduled_s  # the same program over another link
            for name, each in (alternatives(network, target) if forecast.wire_bytes else {}).items()
        },
        slowest_s=times.bare_s + slow_s - sent_s if slow_s > sent_s else 0.0,
    )
    return banded(made, times, on)


def banded(forecast: ForecastRecord, times: Times, on: Chip) -> ForecastRecord:
    """The forecast with the band of its step time, from published runs of its family of programs.

    If its kernels are shorter than in those runs, it only has a lower bound. The gaps between kernels are not counted,
    and with short kernels they may be most of the step.
    """
    best = times.work_s < hardware.forecast_band(forecast.family).kernel_s * forecast.kernels
    # Each extrapolated time has a line of its own, and such lines may cross.
    scheduled_s = min(max(times.scheduled_s, times.hidden_s), times.bare_s)
    # On a TPU published runs are tuned to hide communication.
    middle_s = times.hidden_s if forecast.family == "tpu" else scheduled_s
    # Extrapolation starts from records that have a band already: their sentence names another length of kernels.
    notes = tuple(note for note in forecast.notes if _SHORT not in note and bands.WIDER not in note)
    band = bands.of(forecast, times, middle_s)
    if not best and band.wider > WORTH_SAYING:
        notes = (*notes, bands.sentence(band))
    if best:
        of = " for this program with plain attention, not for the model" if "plain" in forecast.attention else ""
        notes = (*notes, f"{digits(1e6 * times.work_s / forecast.kernels)} µs per kernel{_SHORT}{of}.")
    return dataclasses.replace(
        forecast,
        notes=notes,
        grade=AT_BEST if best else ESTIMATED,
        # A bound may not be above the work itself, even if the runs of the family were slower than forecast.
        low_s=min(band.low, 1.0) * times.hidden_s if best else band.low * middle_s,
        scheduled_s=scheduled_s,
        host_s=times.host_s,
        high_s=None if best else max(band.high * middle_s, forecast.slowest_s),
        work_s=times.work_s,
        communication_s=times.communication_s,
        runs=hardware.forecast_band(forecast.family).runs,
        peak_flop_per_s=on.peak_flop_per_s,
    )


def _notes(events: tuple[Event, ...], by: Mapping[str, float]) -> list[str]:
    """What a reader should know about the work that was added up, as sentences. by: seconds by basis."""
    total = sum(by.values()) or 1.0
    parts = [f"{_HOW[how]} ({100 * seconds / total:.0f} %)" for how, seconds in sorted(by.items()) if seconds]
    notes = [f"Work from {', '.join(parts)}."] if parts else []
    costs = [event for event, _ in schedule.every(events) if isinstance(event, Cost)]
    names = {how: {cost.name for cost in costs if cost.how == how} for how in ("unknown", "kernel")}
    some = "Some of the" if names["unknown"] & names["kernel"] else "The"  # one name may stand for different kernels
    for how, what in (("kernel", "count by their own FLOPs"), ("unknown", "have no estimate: only their bytes count")):
        notes += [f"{some} kernels {', '.join(sorted(names[how]))} {what}."] if names[how] else []
    if loops := schedule.unknown_loops(events):
        notes.append(f"{loops} loops of unknown length count once.")
    return notes


def shared(few: tuple[int, float], many: tuple[int, float], count: int) -> float:
    """a + b / count through two (devices, value), with b >= 0, because a device never does more if there are more."""
    (n, at_n), (m, at_m) = few, many
    part = max(0.0, (at_n - at_m) / (1 / n - 1 / m))
    # Without a divided part the larger value holds: for memory, the smaller one could promise a fit.
    return max(at_n, at_m) if part == 0.0 else at_m + part * (1 / count - 1 / m)


def at_count(
    few: CompiledForecast, many: CompiledForecast, count: int, target: Target, network: Network
) -> ForecastRecord:
    """The forecast for `count` devices from two compiled counts. target: the target with `count` devices. Raises
    UserError if no formula gives the messages for other device counts."""
    n, m = few.forecast.devices, many.forecast.devices
    # If messages follow from the device count, those of the larger program must become those of the smaller one.
    there = schedule.regrouped(many.events, m, n)
    notes: tuple[str, ...] = ()
    sent, implied = _bytes_sent(few.events), _bytes_sent(there)
    if n > 1 and abs(implied - sent) > _SAME * max(sent, 1):
        differ = f"on {n} devices a device sends {sent:,} bytes, but {m} devices imply {implied:,}"
        # Others send activations, so a difference means that the formula is wrong and not that the compiler chose.
        if many.forecast.strategy not in _WHOLE:
            raise UserError(
                f"{many.forecast.strategy} cannot be extrapolated in the number of devices here: {differ}: compile "
                "each count instead, without --counts."
            )
        notes = (f"The compiler chose other messages for fewer devices: {differ}.",)
    work_s = shared((n, schedule.work_s(few.events)), (m, schedule.work_s(many.events)), count)
    peaks = few.forecast.peak_bytes, many.forecast.peak_bytes
    base = dataclasses.replace(
        many.forecast,
        notes=notes,
        sources=(*many.forecast.sources, f"{n} devices", f"{m} devices"),
        peak_bytes=None if None in peaks else round(shared((n, peaks[0]), (m, peaks[1]), count)),  # type: ignore[arg-type]
    )
    return _at_count(CompiledForecast(base, many.events), count, target, network, work_s)


def from_one_count(compiled: CompiledForecast, count: int, target: Target, network: Network) -> ForecastRecord:
    """The forecast for `count` devices from one compiled count of a strategy that shards its state, in weak scaling.

    Only the update of the state depends on the number of devices: each device has its part of it. Memory is unknown.
    """
    m, on = compiled.forecast.devices, work.chip(target.device_kind)
    update_s = UPDATE_BYTES * compiled.forecast.parameters / on.memory_bytes_per_s if on is not None else 0.0
    work_s = schedule.work_s(compiled.events) + update_s * (1 / count - 1 / m)
    base = dataclasses.replace(
        compiled.forecast,
        peak_bytes=None,
        sources=(*compiled.forecast.sources, f"{m} devices"),
        notes=(f"Work on other counts than {m} differs by the update of the state, {UPDATE_BYTES} bytes a parameter.",),
    )
    return _at_count(CompiledForecast(base, compiled.events), count, target, network, work_s)


def _at_count(
    compiled: CompiledForecast, count: int, target: Target, network: Network, work_s: float
) -> ForecastRecord:
    """The forecast for `count` devices, with all that does not follow from the number of devices as compiled."""
    kept, was = compiled.forecast, schedule.work_s(compiled.events)
    m, weak = kept.devices, kept.scaling == "weak"
    events = _slower(schedule.regrouped(compiled.events, m, count), work_s / was if was else 1.0)
    base = dataclasses.replace(
        kept,
        point="/".join(filter(None, (kept.strategy, kept.scaling, str(count), kept.arm))),
        target=target.text,
        devices=count,
        basis=RECKONED,
        global_batch=kept.global_batch * count // m if weak else kept.global_batch,
        flops=(kept.flops or 0) * (count / m if weak else 1) or None,
        # Smaller groups are of axes that keep their size, such as tensor.
        collectives=tuple(schedule.among(each, count) if each.group == m else each for each in kept.collectives),
    )
    return timed(base, events, target, network)


def at_depth(shallow: ForecastRecord, deep: ForecastRecord, depths: tuple[int, int], blocks: int) -> ForecastRecord:
    """The forecast for a model of `blocks` equal blocks, from two compiled depths."""
    share = (blocks - depths[0]) / (depths[1] - depths[0])

    def line(low: float | None, high: float | None) -> float:
        return (low or 0.0) + share * ((high or 0.0) - (low or 0.0))

    made = dataclasses.replace(
        deep,
        basis=RECKONED,
        sources=(*deep.sources, *(f"{depth} blocks" for depth in depths)),
        peak_bytes=None if deep.peak_bytes is None else round(line(shallow.peak_bytes, deep.peak_bytes)),
        parameters=round(line(shallow.parameters, deep.parameters)),
        flops=line(shallow.flops, deep.flops),
        kernels=line(shallow.kernels, deep.kernels),
        large_s=line(shallow.large_s, deep.large_s),
        bubble_s=line(shallow.bubble_s, deep.bubble_s),
        host_bytes=round(line(shallow.host_bytes, deep.host_bytes)),
        collectives=tuple(_collective_at_depth(shallow.collectives, each, share) for each in deep.collectives),
        seconds_by={how: line(shallow.seconds_by.get(how, 0.0), deep.seconds_by[how]) for how in deep.seconds_by},
        by_link={name: line(shallow.by_link.get(name, 0.0), deep.by_link[name]) for name in deep.by_link},
        slowest_s=line(shallow.slowest_s, deep.slowest_s),
    )
    on = work.chip(deep.device_kind)
    if shallow.work_s is None or deep.work_s is None or on is None:
        return made
    # The band is made anew: the average kernel of a deep model is another than that of a shallow one.
    names = ("work_s", "communication_s", "scheduled_s", "host_s")
    times = Times(**{name: line(getattr(shallow, name), getattr(deep, name)) for name in names})
    return banded(made, times, on)


def _collective_at_depth(shallow: Sequence[Collective], deep: Collective, share: float) -> Collective:
    same = [each for each in shallow if (each.kind, each.axis, each.group) == (deep.kind, deep.axis, deep.group)]
    low = same[0] if same else dataclasses.replace(deep, count=0, bytes=0, elements=0, wire_bytes=0)  # of blocks alone
    values = {name: (getattr(low, name), getattr(deep, name)) for name in ("count", "bytes", "elements", "wire_bytes")}
    return dataclasses.replace(deep, **{name: round(a + share * (b - a)) for name, (a, b) in values.items()})


def _bytes_sent(events: tuple[Event, ...]) -> int:
    return sum(e.collective.wire_bytes * times for e, times in schedule.every(events) if isinstance(e, schedule.Send))


def _slower(events: tuple[Event, ...], factor: float) -> tuple[Event, ...]:
    """The events with all local work longer by a factor."""
    made: list[Event] = []
    for event in events:
        if isinstance(event, Cost | schedule.Copy):
            scaled = {"seconds": factor * event.seconds, "bytes": round(factor * event.bytes)}
            scaled |= {"large_s": factor * event.large_s} if isinstance(event, Cost) else {}
            made.append(dataclasses.replace(event, **scaled))  # type: ignore[arg-type]
        elif isinstance(event, schedule.Loop):
            made.append(dataclasses.replace(event, events=_slower(event.events, factor)))
        else:
            made.append(event)
    return tuple(made)


def from_measured(rows: Sequence[Row], count: int, target: str, network: Network) -> ForecastRecord:
    """A forecast from a measured run: the step on `count` devices with one strategy and scaling.

    The local work is the measured step of one device. The messages follow from the collectives of a compiled step, or
    from the gradient's bytes if the run has none. The range is from all communication hidden to none hidden, over the
    interval of the measured step. The upper end uses the slowest link that the network may be.

    rows: the measured points. target: the link's name. Raises UserError if no point has a time, or if the messages are
    unknown.
    """
    known = [row for row in rows if row.timing.step_s.known and not row.wrong and row.point.record is not None]
    if not known:
        raise UserError("--from: no measured point of this strategy in the run passed its checks: rerun it.")
    base = min(known, key=lambda row: row.point.devices)
    if base.point.devices != 1:  # a step on several devices contains messages over this machine's links
        raise UserError(
            f"--from: the run's smallest point has {base.point.devices} devices, but the local work needs one device: "
            "measure --config.mesh.devices=1, too."
        )
    record, point = present(base.point.record), base.point
    step = base.timing.step_s
    share = 1.0 if point.scaling == "weak" else 1.0 / count  # of the batch that one device was measured with
    collectives, notes = _messages(known, count)
    sent_s, slowly_s = (_sent_s(collectives, each) for each in (network, slowest(network)))
    notes += assumed(network) if slowly_s > sent_s else ()
    low, high = (step.lo, step.hi) if step.has_interval else (step.value, step.value)
    if not step.has_interval:
        few = f"{base.timing.rounds} rounds, too few for a confidence interval"
        notes.append(f"{point.point} was measured in {few}, so the band does not include its variation.")
    if share < 1:
        notes.append("Local work is taken in proportion to the per-device batch; small batches are slower than that.")
    batch = point.global_batch * (count if point.scaling == "weak" else 1)
    return ForecastRecord(
        point="/".join(filter(None, (point.strategy, point.scaling, str(count), point.arm))),
        target=target,
        experiment=record.experiment,
        device_kind=record.device_kind,
        strategy=point.strategy,
        scaling=point.scaling,
        arm=point.arm,
        devices=count,
        global_batch=batch,
        basis=MEASURED,
        status="ok",
        sources=(point.point,),
        collectives=collectives,
        parameters=record.compile_report.parameters,
        grade=ESTIMATED,
        flops=record.compile_report.flops_per_step * (count if point.scaling == "weak" else 1),
        low_s=max(share * low, sent_s),
        scheduled_s=share * step.value + sent_s,
        high_s=share * high + slowly_s,
        work_s=share * step.value,
        communication_s=sent_s,
        seconds_by={"measured": share * step.value},
        notes=tuple(notes),
    )


def _sent_s(collectives: Sequence[Collective], network: Network) -> float:
    """The seconds of all messages in sequence. A collective is `count` messages of equal size."""
    return sum(
        each.count * network.seconds(dataclasses.replace(each, count=1, wire_bytes=each.wire_bytes // each.count), 1)
        for each in collectives
    )


def _messages(rows: Sequence[Row], count: int) -> tuple[tuple[Collective, ...], list[str]]:
    """(the collectives of a step on `count` devices, notes on their origin)."""
    if count == 1:
        return (), []
    record = present(max(rows, key=lambda row: row.point.devices).point.record)
    if found := tuple(schedule.among(each, count) for each in record.compile_report.collectives if each.bytes):
        return found, [f"Messages of the step compiled for {record.devices} devices."]
    if record.strategy not in _SUMS:  # what others send does not follow from the parameters alone
        raise UserError(f"--from: {record.strategy} was measured on one device only: measure it on two, or compile it.")
    # Gradients have the format of the parameters: other 16-bit precisions keep float32 parameters.
    size = (2 if PRECISION.of(record.levers) == "mixed" else 4) * record.compile_report.parameters
    one = Collective(kind="all-reduce", count=1, bytes=size, elements=record.compile_report.parameters, group=1)
    return (schedule.among(one, count),), ["Messages: the gradient's bytes in one all-reduce."]

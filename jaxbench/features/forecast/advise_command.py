# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench advise`: which accelerators to use for a training of known size, from forecasts and prices.

One GPU's program is evaluated with the rates of all GPUs, and one TPU's with those of all TPUs, because compiling for
each takes most of an hour. Devices that cannot be estimated are listed with the reason.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.catalog import hardware, targets
from jaxbench.catalog.targets import Target
from jaxbench.core.store import write_json
from jaxbench.digits import digits
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.forecast import advice, forecast_command, network, power
from jaxbench.features.forecast.advice import Candidate, Price, TrainingBudget
from jaxbench.features.forecast.forecast_command import Programs
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.features.forecast.power import PowerShare
from jaxbench.levers import ACCUMULATE, GATHER
from jaxbench.machine import start
from jaxbench.records.documents import plain, sealed

FILE = "advise.json"
_COMPILED_FOR = {"gpu": "h100:8", "tpu": "v5e:2x4"}  # by platform: the target to compile for; 8 devices, as _BASE needs
_DEPTHS = (1, 2)  # a deep model is compiled with these numbers of blocks, and its depth is extrapolated
_COUNTS = tuple(2**power for power in range(11))  # 1 to 1024
_SECONDS = {"h": advice.HOUR_S, "d": advice.DAY_S, "w": 7 * advice.DAY_S}


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """The parsed flags. tokens, examples: exactly one is given. names: targets without a size; (): all of them. shares:
    of the rated power, as they were measured, by device."""

    tokens: float | None
    examples: float | None
    deadline_s: float | None
    prices: tuple[Price, ...]
    names: tuple[str, ...]
    counts: tuple[int, ...]
    today: datetime.date
    shares: dict[str, PowerShare] = field(default_factory=dict)


def request(texts: dict[str, str | None], *, today: datetime.date) -> AdviceRequest:
    """The request from the flags' texts by name. Raises UserError for a wrong flag, before anything is compiled."""
    if bool(texts["tokens"]) == bool(texts["examples"]):
        raise UserError("jaxbench advise needs the size of the training: either --tokens=1e12 or --examples=1.2e8.")
    known = list(dict.fromkeys(name.partition(":")[0] for name in targets.names()))
    names = tuple(word.strip().partition(":")[0] for word in (texts["targets"] or "").split(",") if word.strip())
    for name in names:
        if name not in known:
            raise UserError(f"--targets={name} is unknown: {did_you_mean(name, known)}")
    prices = tuple(advice.read_prices(Path(texts["prices"]) if texts["prices"] else None))
    rated = {price.device: price.watts for price in prices if price.watts is not None}
    run = texts.get("run")
    return AdviceRequest(
        tokens=_positive("tokens", texts["tokens"], "1e12"),
        examples=_positive("examples", texts["examples"], "1.2e8"),
        deadline_s=_duration(texts["deadline"]),
        prices=prices,
        names=names,
        counts=forecast_command.numbers("counts", texts["counts"], "8,64 or 8..256") or _COUNTS,
        today=today,
        shares=power.measured(Path(run), rated) if run else {},
    )


def advise(experiment: str, config: ConfigDict, asked: AdviceRequest, workdir: Path, console: Console) -> bool:
    """Writes advise.json into the work folder: compiles a few programs and extrapolates from them.

    Returns whether anything fits. Raises UserError if no compiler is installed.
    """
    from jaxbench.measure.arm import inspected  # imported here, because only this needs jax

    start.only_cpu_here()
    workload = inspected(config.copy_and_resolve_references(), experiment)
    if asked.tokens and not workload.tokens:
        raise UserError(f"--tokens: an example of {config.experiment} has no tokens: give --examples=1.2e8.")
    job = TrainingBudget(
        examples=asked.examples or (asked.tokens or 0.0) / workload.tokens,
        tokens=workload.tokens or 0,
        unit=workload.unit,
        deadline_s=asked.deadline_s,
    )
    config = _with_gathers(config)
    deep = config.get("model", {}).get("layers") is not None and (workload.blocks or 0) > max(_DEPTHS)
    found: list[Candidate] = []
    missing: list[str] = []
    records: list[ForecastRecord] = []
    grown: list[advice.Growth] = []
    programs: dict[str, Programs | UserError] = {}
    for target, offers in _offers(asked):
        if target.platform not in programs:
            programs[target.platform] = _programs(experiment, config, target, workdir, console, _DEPTHS if deep else ())
        mine = programs[target.platform]
        counts = tuple(count for count in asked.counts if target.chip <= count <= network.largest(target))
        try:
            if isinstance(mine, UserError):
                raise mine
            if not counts:
                wanted, most = ",".join(map(str, asked.counts)), network.largest(target)
                raise UserError(f"--counts={wanted} is not possible there: use {target.chip} to {most:.0f}.")
            made = mine.on(target, counts)
        except UserError as error:  # one target without a network or a compiler must not cost the answer for the others
            missing.append(f"{target.name}: {error}")
            continue
        records += made
        found += advice.candidates(made, offers, job, asked.shares)
        grown += advice.growth(made, target.domain)
        missing += _unusable(target, made)
    if not records:
        raise UserError(
            missing[0] if missing else "no device of the price file can be compiled for: add NVIDIA H100 SXM."
        )
    missing += _without_target(asked)  # a reader must know what was not considered
    missing += [need] if (need := forecast_command.smallest_need(records)) else []
    document = {
        "schema": 1,
        "experiment": str(config.experiment),
        "job": dataclasses.asdict(job),
        "today": asked.today.isoformat(),
        "assumed": _assumed(config, job),
        "missing": missing,
        "candidates": advice.lines(advice.ranked(found), asked.today),
        "gathers": advice.gathers(records),
        "growth": [{**dataclasses.asdict(each), "too_many": each.too_many} for each in grown],
    }
    write_json(workdir / FILE, sealed(plain(document)))
    return bool(found)


def _with_gathers(config: ConfigDict) -> ConfigDict:
    """The config with every value of the lever `gather` if there are micro-batches under `fsdp` and none was chosen."""
    config = config.copy_and_resolve_references()
    if "lever" not in config:  # another step's config
        return config
    many = any(ACCUMULATE.read(word) > 1 for word in ACCUMULATE.words(str(config.lever.accumulate)))
    sharded = "fsdp" in str(config.strategy) or (
        "fsdp=" in str(config.lever.mesh) and "stage=" not in config.lever.mesh
    )
    if many and sharded and config.lever.gather == GATHER.default:
        with config.unlocked():
            config.lever.gather = ",".join(GATHER.values)
    return config


def _offers(asked: AdviceRequest) -> list[tuple[Target, list[Price]]]:
    """The targets that have a price, each with its prices."""
    made = []
    for target in map(targets.parse, targets.names()):
        offers = [_of_a_device(price, target) for price in asked.prices if price.device == _row(target)]
        if offers and (not asked.names or target.name in asked.names):
            made.append((target, offers))
    return made


def _of_a_device(price: Price, target: Target) -> Price:
    """The price and power of one device, from those of a chip: clouds rent chips, and one of TPU7x is two devices."""
    watts = None if price.watts is None else price.watts / target.chip
    return dataclasses.replace(price, per_device_hour=price.per_device_hour / target.chip, watts=watts)


def _row(target: Target) -> str:
    """The row of hardware.csv of a target: prices name devices as that file does."""
    peak = hardware.find(target.device_kind)
    return peak.name if peak is not None else ""


def _without_target(asked: AdviceRequest) -> list[str]:
    known = {_row(target) for target in map(targets.parse, targets.names())}
    if asked.names:  # then only these were asked for
        return []
    other = dict.fromkeys(price.device for price in asked.prices if price.device not in known)
    return [f"{device}: no compiler can target it without the device." for device in other]


def _programs(
    experiment: str, config: ConfigDict, target: Target, workdir: Path, console: Console, depths: tuple[int, ...]
) -> Programs | UserError:
    """The programs for the platform of a target, or why there are none."""
    compiled_for = targets.parse(_COMPILED_FOR[target.platform])
    # The TPU compiler needs minutes for a deep model, so one count must do where its formula holds.
    base = (4,) if depths and target.platform == "tpu" and config.strategy == "fsdp" else ()
    about = forecast_command.ForecastRequest(targets=(compiled_for,), counts=_COUNTS, depths=depths, base=base)
    try:
        start.require_target(compiled_for)
        config = config.copy_and_resolve_references()
        return forecast_command.compile_programs(experiment, config, about, compiled_for, workdir, console)
    except UserError as error:
        return error


def _unusable(target: Target, made: Sequence[ForecastRecord]) -> list[str]:
    """One sentence for each reason why points of a target are not candidates."""
    reasons: dict[str, list[ForecastRecord]] = {}  # a target has up to eleven counts, which often fail alike
    for each in made:
        if each.status not in ("ok", "too large"):
            reasons.setdefault(f"{each.status}: {each.reason.rstrip('.')}", []).append(each)
        elif each.fits is False:
            reasons.setdefault("does not fit", []).append(each)
        elif each.low_s is None or each.fits is None:
            reasons.setdefault("its time or its memory is unknown", []).append(each)
    lines = []
    for reason, points in reasons.items():
        names = ", ".join(sorted({point.strategy for point in points}))
        counts = ", ".join(map(str, sorted({point.devices for point in points})))
        lines.append(f"{target.name}, {names} on {counts} devices: {reason}{_least_memory(points)}.")
    return lines


def _least_memory(points: Sequence[ForecastRecord]) -> str:
    known = [point.peak_bytes for point in points if point.peak_bytes and point.fits is False]
    if not known:
        return ""
    return f" (at least {digits(min(known) / 1e9)} GB of {digits((points[0].memory_bytes or 0) / 1e9)} GB)"


def _assumed(config: ConfigDict, job: TrainingBudget) -> list[str]:
    """What the advice assumes, as sentences."""
    batch = config.accelerator_batch or config.batch
    tokens = f" ({batch * job.tokens:,} tokens)" if job.tokens else ""
    lines = [
        f"Weak scaling: a per-device batch of {batch}{tokens}, so the global batch grows with the devices. Whether a "
        "larger batch needs more examples is unknown.",
        "The time is of the steps alone, without input, evaluation, checkpoints or failures.",
        f"All GPUs are compiled as {_COMPILED_FOR['gpu']} and all TPUs as {_COMPILED_FOR['tpu']}, with the rates and "
        "the memory of each.",
    ]
    return [*lines, f"Strategy {config.strategy}, recomputation {config.lever.remat}."] if "lever" in config else lines


def _positive(flag: str, text: str | None, example: str) -> float | None:
    """The number of a flag; None without text. Raises UserError below 1."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value < math.inf:
        raise UserError(f"--{flag}={text} is not a number of 1 or more: use {example}, for example.")
    return value


def _duration(text: str | None) -> float | None:
    """A duration in seconds: "14d" -> 1209600.0."""
    if not text:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    if found is None or float(found[1]) <= 0:
        raise UserError(f"--deadline={text} is not a time with its unit: use 36h, 14d or 2w.")
    return float(found[1]) * _SECONDS[found[2]]

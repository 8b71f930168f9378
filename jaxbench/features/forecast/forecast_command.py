# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench forecast`: compiles an experiment for absent hardware and estimates the time of a step.

Each target has its own run folder below the work folder, with compiled points and their program texts. The same command
reuses these, so another link needs no compilation.
"""

from __future__ import annotations

import copy
import dataclasses
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.analysis import compiled, machine_profile, points, run_rows
from jaxbench.analysis.compiled import CompiledRow
from jaxbench.catalog import targets
from jaxbench.catalog.targets import Target
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.errors import UserError, present
from jaxbench.features.forecast import estimate, forecasts, network
from jaxbench.features.forecast import memory as forecast_memory
from jaxbench.features.forecast.estimate import CompiledForecast
from jaxbench.features.forecast.forecasts import RECKONED, ForecastRecord
from jaxbench.features.forecast.network import AlphaBetaLink, Hosts, MeasuredLinks, Network, PciePath
from jaxbench.machine import start
from jaxbench.statistics import bootstrap

_BASE = (4, 8)  # the device counts to compile and extrapolate from: small slices compile faster


@dataclass(frozen=True, kw_only=True)
class ForecastRequest:
    """The parsed flags.

    Attributes:
      targets: the hardware to compile for.
      counts: device counts to extrapolate from two compiled counts; (): compile each target with its own count.
      depths: two numbers of blocks to compile instead of the model's.
      base: the device counts to compile; (): two. One is enough for a strategy that shards its state.
      source: a measured run to start from.
      links: links between hosts, and paths over PCIe within one, with their texts.
      machine_profile: a file with measured links.
      memory: whether to ask for the memory of the whole model if `depths` are compiled, which may take minutes.
    """

    targets: tuple[Target, ...] = ()
    counts: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    base: tuple[int, ...] = ()
    source: Path | None = None
    links: tuple[tuple[str, AlphaBetaLink | PciePath], ...] = ()
    machine_profile: Path | None = None
    memory: bool = True

    def network(self, target: Target) -> Network:
        if self.machine_profile is not None:
            return _measured_links(self.machine_profile)
        between = next((link for _, link in self.links if isinstance(link, AlphaBetaLink)), None)
        path = next((link for _, link in self.links if isinstance(link, PciePath)), None)
        return network.of(target, between=between, path=path)


def request(texts: dict[str, str | None]) -> ForecastRequest:
    """The request from the flags' texts by name. Raises UserError for a wrong flag, before anything is compiled."""
    links = tuple((text.strip(), network.parse(text)) for text in (texts["link"] or "").split(",") if text.strip())
    names = [text.strip() for text in (texts["targets"] or "").split(",") if text.strip()]
    asked = ForecastRequest(
        targets=tuple(targets.parse(name) for name in names),
        counts=numbers("counts", texts["counts"], "1,2,4,8"),
        depths=numbers("depths", texts["depths"], "2,4"),
        source=Path(texts["from"]) if texts["from"] else None,
        links=links,
        machine_profile=Path(texts["card"]) if texts["card"] else None,
    )
    if asked.source is None and not names:
        raise UserError("jaxbench forecast needs --targets=v5e:16x16,h100:8, or --from=DIR of a measured run.")
    if asked.source is not None and (names or not (links or asked.machine_profile) or not asked.counts):
        raise UserError(
            "--from=DIR takes --counts=2, and --link=1gbit or --card=machine.json, and no --targets: it starts from a "
            "measured step."
        )
    if asked.depths and len(asked.depths) != 2:
        raise UserError(f"--depths={texts['depths']} is not two numbers of blocks: use 2,4, for example.")
    # A measured step may be moved to several links; a target has one between hosts and one within.
    if asked.source is None and len({type(link) for _, link in links}) < len(links):
        raise UserError(f"--link={texts['link']} names several links: with --targets give one, and one path over PCIe.")
    for target in asked.targets:  # compiling takes minutes, so all that can be refused is refused before
        start.require_target(target)
        asked.network(target)
        if asked.counts and target.devices < 2:
            raise UserError(f"--counts needs a target of two devices or more: not {target.text}.")
    return asked


def forecast(
    experiment: str, config: ConfigDict, asked: ForecastRequest, workdir: Path, console: Console
) -> list[ForecastRecord]:
    """Makes all forecasts and writes `forecast.jsonl`. Raises UserError. An interrupt loses no finished compilation."""
    if asked.source is not None:
        records = _from_run(experiment, config, asked)
        workdir.mkdir(parents=True, exist_ok=True)
    else:
        records = []
        for target in asked.targets:
            programs = compile_programs(experiment, config, asked, target, workdir, console)
            records += programs.on(target, asked.counts)
    forecasts.write(workdir, records)
    return records


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Programs compiled for one target. Any target of its platform can be evaluated with them.

    Attributes:
      folders: one for each depth that was asked for, else one.
      blocks: of the whole model; 0 without depths.
      memory: the memory of the whole model by family and device count, and sentences on what is unknown; empty if it
        was not asked for.
    """

    experiment: str
    asked: ForecastRequest
    folders: tuple[Path, ...]
    blocks: int
    memory: tuple[forecast_memory.Needs, Sequence[str]] = dataclasses.field(default_factory=lambda: ({}, ()))

    def on(self, target: Target, counts: tuple[int, ...]) -> list[ForecastRecord]:
        """The forecasts on a target, for these device counts or, without any, for those compiled. Raises UserError."""
        asked = dataclasses.replace(self.asked, counts=counts)
        made = []
        for folder in self.folders:
            read = [_read(row, folder, self.experiment, target, asked) for row in compiled.rows(RunFolder(folder))]
            made.append(_counts(read, asked, target))
        if not asked.depths:
            return made[0]
        deep = {record.point: record for record in made[1]}
        low, high = asked.depths
        reckoned = []
        for shallow in made[0]:
            other = deep.get(shallow.point)
            if other is None or shallow.status != "ok" or other.status != "ok":  # no line: the record says why
                reckoned.append(other or shallow)
            else:
                reckoned.append(estimate.at_depth(shallow, other, (low, high), self.blocks))
        remembered = forecast_memory.replaced if target.platform == "tpu" else forecast_memory.on_a_gpu
        return [remembered(each, *self.memory) if each.status == "ok" else each for each in reckoned]


def compile_programs(
    experiment: str, config: ConfigDict, asked: ForecastRequest, target: Target, workdir: Path, console: Console
) -> Programs:
    """Compiles what the work folder lacks for one target. Raises UserError."""
    folders = tuple(
        _compile(experiment, config, asked, target, depth, workdir, console) for depth in asked.depths or (0,)
    )
    blocks = _blocks(config, experiment) if asked.depths else 0
    made = Programs(experiment=config.experiment, asked=asked, folders=folders, blocks=blocks)
    tpu = target.platform == "tpu"
    # For further counts, a GPU's memory is only that of the line through two depths, where that is certain.
    if not asked.depths or not asked.memory or (asked.counts and not tpu):
        return made
    if not tpu and all(forecast_memory.certain(each) for each in made.on(target, ()) if each.status == "ok"):
        return made
    wide = target.part(forecast_memory.COUNTS[-1]) if asked.counts else target
    placed = _placed(config, asked, wide, forecast_memory.COUNTS)
    memory = forecast_memory.needs(experiment, placed, wide, workdir / f"{_folder_name(wide)}-memory", console, blocks)
    return dataclasses.replace(made, memory=memory)


def _folder_name(target: Target) -> str:
    return target.text.replace(":", "-")


def _placed(config: ConfigDict, asked: ForecastRequest, target: Target, base: tuple[int, ...]) -> ConfigDict:
    """A copy of the config with the device counts to compile: `base` if other counts are extrapolated from them."""
    config = copy.deepcopy(config)
    counts = base if asked.counts else (target.devices,)
    with config.unlocked():
        if asked.counts or config.mesh.devices == "auto":  # "auto" would count the devices of this machine
            config.mesh.devices = ",".join(map(str, counts))
    return config


def _compile(
    experiment: str,
    config: ConfigDict,
    asked: ForecastRequest,
    target: Target,
    depth: int,
    workdir: Path,
    console: Console,
) -> Path:
    """Compiles the points of one target and depth that its folder lacks. Returns the folder."""
    from jaxbench.sweep import compile_only  # imported here, because only this needs jax

    config = _placed(config, asked, target, asked.base or _base_counts(target))
    if depth:
        if "model" not in config or "layers" not in config.model:
            raise UserError("--depths: this model has no config.model.layers; gpt has.")
        with config.unlocked():
            config.model.layers = depth
    folder = workdir / (_folder_name(target) + (f"-{depth}-blocks" if depth else ""))
    compile_only.run(experiment, config, target.text, folder, console, keep=True)
    return folder


def _read(row: CompiledRow, folder: Path, experiment: str, target: Target, asked: ForecastRequest) -> CompiledForecast:
    """The forecast of a compiled program, with the events of its text."""
    from jaxbench.sweep import compile_only

    part = target.part(int(row.point["devices"]))
    exact = estimate.exact(row, experiment, part)
    if row.target.partition(":")[0] != target.name:  # `advise` evaluates one program on all GPUs: not exact there
        exact = dataclasses.replace(
            exact, basis=RECKONED, memory_bytes=part.memory_bytes, sources=(f"the text compiled for {row.target}",)
        )
    if row.record is None:
        return CompiledForecast(exact, ())
    text = gzip.decompress(compile_only.text_file(folder, row.name).read_bytes()).decode()
    events = estimate.program(text, row.record.mesh, part, compiled_for=row.target)
    return CompiledForecast(estimate.timed(exact, events, part, asked.network(part)), events)


def _counts(found: Sequence[CompiledForecast], asked: ForecastRequest, target: Target) -> list[ForecastRecord]:
    """The compiled points or, if counts are requested, the points extrapolated from them."""
    if not asked.counts:
        return [each.forecast for each in found]
    families: dict[tuple[str, str, str], list[CompiledForecast]] = {}
    for each in found:
        point = each.forecast
        families.setdefault((point.strategy, point.scaling, point.arm), []).append(each)
    records = []
    for family in families.values():
        ready = [each for each in family if each.events]
        if len(ready) < (len(asked.base) or 2):  # a compilation failed: its record has the reason
            records += [each.forecast for each in family]
            continue
        few, *rest = sorted(ready, key=lambda each: each.forecast.devices)[:2]
        done = {each.forecast.devices: each.forecast for each in ready}
        for count in asked.counts:
            part = target.part(count)
            extrapolated = (
                estimate.at_count(few, rest[0], count, part, asked.network(part))
                if rest
                else estimate.from_one_count(few, count, part, asked.network(part))
            )
            records.append(done.get(count) or extrapolated)  # what was compiled is exact
    return records


def _base_counts(target: Target) -> tuple[int, int]:
    most = max(2, target.devices // target.slices)  # a formula in the devices needs messages of one slice
    return _BASE if most >= _BASE[1] else (most // 2, most)


def _from_run(experiment: str, config: ConfigDict, asked: ForecastRequest) -> list[ForecastRecord]:
    run = RunFolder(present(asked.source))
    if (name := run.config().get("experiment")) != config.experiment:
        raise UserError(f"--from={asked.source} is a run of {name}, not of {experiment}: give its experiment.")
    rows = run_rows.analyse(points.load(run), config=run.config(), spread=bootstrap.read_spread(run.path))
    families = dict.fromkeys((row.point.strategy, row.point.scaling, row.point.arm) for row in rows)
    # Between hosts: one device on each, as over a slow network at home. Within one: all devices on the same host.
    networks: list[tuple[str, Network]] = [
        (text, Hosts(host=1, inside={}, between=link))
        if isinstance(link, AlphaBetaLink)
        else (text, Hosts(host=max(asked.counts), inside=link, between=None))
        for text, link in asked.links
    ]
    if asked.machine_profile is not None:
        networks.append((str(asked.machine_profile), _measured_links(asked.machine_profile)))
    records = []
    for key in families:
        mine = [row for row in rows if (row.point.strategy, row.point.scaling, row.point.arm) == key]
        for text, between in networks:
            records += [estimate.from_measured(mine, count, text, between) for count in asked.counts]
    return records


def _measured_links(path: Path) -> MeasuredLinks:
    profile = machine_profile.read(path)
    if profile is None:
        raise UserError(f"there is no machine profile '{path}': 'jaxbench machine' writes one, machine.json.")
    return MeasuredLinks(profile=profile)


def _blocks(config: ConfigDict, experiment: str) -> int:
    """The number of equal blocks of the model. Raises UserError for a model that does not state it."""
    from jaxbench.measure.arm import inspected

    start.only_cpu_here()
    blocks = inspected(copy.deepcopy(config), experiment).blocks
    if not blocks:
        raise UserError(f"--depths: {config.experiment} does not state how many equal blocks it has; gpt does.")
    return int(blocks)


def numbers(flag: str, text: str | None, example: str) -> tuple[int, ...]:
    """Whole numbers: "1,2,4", or "1..8" -> (1, 2, 4, 8); () without a text. Raises UserError."""
    if text and text.count("..") == 1:
        first, last = text.split("..")
        if first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last):
            return tuple(int(first) * 2**power for power in range((int(last) // int(first)).bit_length()))
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"--{flag}={text} is not a list of numbers: use {example}, for example.")
    return tuple(sorted({int(word) for word in words}))


def smallest_need(records: Sequence[ForecastRecord]) -> str:
    """If no point fits, a sentence with the least memory that any point needs; "" if a point fits."""
    if any(record.fits is not False for record in records) or not records:  # None: perhaps it fits
        return ""
    known = [record for record in records if record.peak_bytes]
    if not known:
        return "No target has enough memory, and no compiler reported the need: use more devices or a smaller batch."
    least = min(known, key=lambda record: record.peak_bytes or 0)
    return (
        f"No target has enough memory. The smallest need is {digits((least.peak_bytes or 0) / 1e9)} GB per device "
        f"({least.point} on {least.target}, which has {digits((least.memory_bytes or 0) / 1e9)} GB)."
    )

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench forecast` and `jaxbench advise` of generation: the time, memory and cost of tokens on absent hardware.

Nothing is compiled: the times follow from shapes, peaks and links (`cost_model`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import levers
from jaxbench.analysis.quantities import scaled, seconds
from jaxbench.catalog import hardware, targets
from jaxbench.catalog.targets import Target
from jaxbench.core.store import write_atomic, write_json
from jaxbench.errors import UserError, present
from jaxbench.features.decode import cost_model
from jaxbench.features.decode.cost_model import Model, TokenForecast
from jaxbench.levers import BATCH
from jaxbench.records.documents import plain, sealed
from jaxbench.records.reading import csv_table
from jaxbench.report import page, table
from jaxbench.report.page import Page
from jaxbench.workloads import generation
from jaxbench.workloads.generation import GenerationWorkload

FORECAST, ADVICE = "forecast.json", "advise.json"
HOUR_S, MILLION = 3600.0, 1e6
BATCHES = tuple(2**power for power in range(11))  # that advice tries
COUNTS = (1, 2, 4, 8)
SHOWN = 20  # lines of a table of advice
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def model_of(workload: GenerationWorkload) -> Model:
    """What the time of a token depends on. "auto" is bfloat16, as on accelerators."""
    shape = workload.shape
    heads = shape.kv_heads or shape.heads
    weights, cache = (form if form != "auto" else "bfloat16" for form in (workload.weights, workload.cache))
    inner = shape.heads * shape.head
    block = shape.width * (2 * inner + 2 * heads * shape.head)
    block += (3 if shape.gated else 2) * shape.width * shape.between
    scale = 4.0 / shape.head if cache == "int8" else 0.0
    return Model(
        products=float(shape.layers * block + shape.width * shape.vocab),
        stored=float(workload.parameters),
        layers=shape.layers,
        width=shape.width,
        kv_heads=heads,
        place_bytes=2.0 * shape.layers * heads * shape.head * (cost_model.BYTES[cache] + scale),
        weights=weights,
    )


def forecast(config: ConfigDict, targets_text: str | None, workdir: Path, console: Console) -> bool:
    """Writes forecast.json and a page. Returns whether anything fits. Raises UserError."""
    names = [text.strip() for text in (targets_text or "").split(",") if text.strip()]
    if not names:
        raise UserError("jaxbench forecast needs --targets=h100:8,v5e:2x4, for example.")
    made: list[tuple[str, TokenForecast]] = []
    for name in names:
        target = targets.parse(name)
        for arm in levers.arms(config.lever):
            workload = generation.workload(config, arm.levers)
            batch = BATCH.of(arm.levers) or config.batch
            for count in target.counts:
                model = model_of(workload)
                if model.kv_heads % count == 0 or count == 1:
                    made.append((arm.name, _on(target, count, workload, model, batch)))
    lines = [_line(arm, each) for arm, each in made]
    write_json(_ensured_folder(workdir) / FORECAST, sealed(plain({"schema": 1, "forecasts": lines})))
    best = max((each for _, each in made if each.fits), key=lambda each: each.tokens_per_s, default=None)
    said = [_headline(best)] if best is not None else ["Nothing fits: use more devices, a smaller batch or int8."]
    _show(f"{config.experiment}: forecast of a token's time", said, lines, _assumed(config), workdir, console)
    return best is not None


def _on(target: Target, count: int, workload: GenerationWorkload, model: Model, batch: int) -> TokenForecast:
    """The forecast of a token's time on `count` devices of a target. Raises UserError."""
    peak = hardware.find(target.device_kind)
    if peak is None:
        raise UserError(f"--targets={target.text}: {hardware.why_not(target.device_kind)}: use h100:8, for example.")
    link = "ici" if target.platform == "tpu" else "nvlink" if target.path == "nvlink" else "pcie"
    lengths = workload.lengths
    made = cost_model.forecast(model, peak, count, batch, lengths.context, prompt=lengths.input, link=link)
    # The catalogue's memory may be in another unit than the target's, which the compiler uses.
    memory = (1 - cost_model.RESERVED) * target.memory_bytes
    return dataclasses.replace(made, device=target.name, memory_bytes=memory)


def _ensured_folder(workdir: Path) -> Path:
    workdir.mkdir(parents=True, exist_ok=True)
    return workdir


def _line(arm: str, each: TokenForecast) -> dict[str, object]:
    """A forecast as a line of the table and of the CSV file."""
    return {
        "device": each.device,
        "devices": each.devices,
        "arm": arm,
        "batch": each.batch,
        "context": each.context,
        "fits": each.fits,
        "needed_bytes": round(each.needed_bytes),
        "memory_bytes": round(each.memory_bytes),
        "bound_s": each.bound_s,
        "tpot_s": each.tpot_s,
        "tpot_low_s": each.low_s,
        "tpot_high_s": each.high_s,
        "ttft_s": each.ttft_s,
        "tokens_per_s": each.tokens_per_s,
        "weights_s": each.weights_s,
        "cache_s": each.cache_s,
        "messages_s": each.messages_s,
        "starts_s": each.starts_s,
    }


def _headline(each: TokenForecast) -> str:
    """Time, throughput, bound and memory of one forecast."""
    return (
        f"{each.device} x {each.devices}, {each.batch} requests: a token in {seconds(each.low_s)} to "
        f"{seconds(each.high_s)}, {each.tokens_per_s:,.0f} tokens/s, bound {seconds(each.bound_s)}; "
        f"{scaled(each.needed_bytes, 'B')} of {scaled(each.memory_bytes, 'B')} on a device."
    )


def _assumed(config: ConfigDict) -> list[str]:
    """What all forecasts of the page assume."""
    lengths = generation.workload(config).lengths
    return [
        f"Tensor parallelism in one host, a static batch, {lengths.input} tokens of input and {lengths.output} of "
        f"output in a cache of {lengths.context} places.",
        "The band has nine in ten of the published times that the constants are fitted to (docs/metrics). No program "
        "is faster than the bound.",
    ]


def _show(
    title: str,
    headlines: Sequence[str],
    lines: Sequence[Mapping[str, object]],
    notes: Sequence[str],
    workdir: Path,
    console: Console,
) -> None:
    """Writes report.html and prints the table."""
    names = dict.fromkeys(_columns(lines), table.TEXT)
    made = Page(
        name=title,
        heading=title,
        headlines=headlines,
        pictures=(),
        table=table.plain(names, [tuple(_columns([line]).values()) for line in lines]),
        sections=page.sections({"Notes": notes}),
        definition="forecasts-of-generation",
        made_from="catalogue and config",
    )
    write_atomic(workdir / "report.html", page.render(made))
    page.show(made, console)


def _columns(lines: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """The cells of the first line by heading."""
    if not lines:
        return {}
    line = lines[0]

    def number(name: str) -> float:
        return float(str(line[name]))

    cells = {
        "devices": f"{line['device']} x {line['devices']}",
        "batch": str(line["batch"]),
        "TPOT": f"{seconds(number('tpot_low_s'))} to {seconds(number('tpot_high_s'))}",
        "bound": seconds(number("bound_s")),
        "TTFT": seconds(number("ttft_s")),
        "tokens/s": f"{number('tokens_per_s'):,.0f}",
        "memory": f"{number('needed_bytes') / 1e9:.3g} GB of {number('memory_bytes') / 1e9:.3g}",
        "fits": "yes" if line["fits"] else "no",
    }
    if "cost_per_million_tokens" in line:
        cells |= {"USD per 1M tokens": f"{number('cost_per_million_tokens'):.3g}", "provider": str(line["provider"])}
    return cells


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a user of a service asks for; None: no limit."""

    tpot_s: float | None
    ttft_s: float | None


def duration(flag: str, text: str | None) -> float | None:
    """ "50ms" -> 0.05. Raises UserError."""
    if not text:
        return None
    found = _TIME.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise UserError(f"--{flag}={text} is not a time with its unit: use 50ms or 1s, for example.")
    return float(found[1]) * _UNITS[found[2]]


def advise(config: ConfigDict, texts: Mapping[str, str | None], workdir: Path, console: Console) -> bool:
    """Writes advise.json and a page: machines, layout and batch within the budget, by cost. Raises UserError.

    Returns whether anything fits the budget.
    """
    budget = Budget(tpot_s=duration("tpot", texts.get("tpot")), ttft_s=duration("ttft", texts.get("ttft")))
    wanted = [word.strip().partition(":")[0] for word in (texts.get("targets") or "").split(",") if word.strip()]
    known = list(dict.fromkeys(name.partition(":")[0] for name in targets.names()))
    if unknown := [name for name in wanted if name not in known]:
        raise UserError(f"--targets={unknown[0]} is unknown: choose one of: {', '.join(known)}.")
    if texts.get("context"):
        _set_context(config, str(texts["context"]))
    prices = _prices(texts.get("prices"))
    workload = generation.workload(config)
    model = model_of(workload)
    found: list[dict[str, object]] = []
    too_slow = too_large = 0
    for name in wanted or known:
        for each in _candidates(_target_of(name), workload, model):
            if not each.fits:
                too_large += 1
            elif not _within(each, budget):
                too_slow += 1
            else:
                found += list(_priced(each, prices))
    found.sort(key=lambda line: float(str(line["cost_per_million_tokens"])))
    best: dict[tuple[object, ...], dict[str, object]] = {}
    for line in found:  # the cheapest batch of each machine, price and number of devices
        best.setdefault((line["device"], line["devices"], line["provider"]), line)
    lines = list(best.values())
    document = {"schema": 1, "budget": dataclasses.asdict(budget), "candidates": lines}
    write_json(_ensured_folder(workdir) / ADVICE, sealed(plain(document)))
    missed = f"{too_large} settings do not fit into memory, {too_slow} are slower than asked."
    headline = [_advice(lines[0], model)] if lines else [f"Nothing meets the budget: {missed}"]
    notes = [*_assumed(config), missed, "A TPOT counts with the slow end of its band. Replicas share out requests."]
    _show(f"{config.experiment}: which accelerators", headline, lines[:SHOWN], notes, workdir, console)
    return bool(lines)


def _set_context(config: ConfigDict, text: str) -> None:
    if not text.isdecimal() or int(text) < 4:
        raise UserError(f"--context={text} is not a number of tokens: use 8192, for example.")
    with config.unlocked():
        config.context = int(text)


def _target_of(device: str) -> Target:
    """The example of a device's target, such as "h100:8" of "h100". Callers choose the number of devices."""
    return targets.parse(next(text for text in targets.names() if text.partition(":")[0] == device))


def _candidates(target: Target, workload: GenerationWorkload, model: Model) -> Iterator[TokenForecast]:
    """The forecasts for every number of devices and batch that a target takes."""
    peak = hardware.find(target.device_kind)
    if peak is None:
        return
    for count in COUNTS:
        if model.kv_heads % count or count < target.chip or (target.platform == "gpu" and count > target.domain):
            continue
        for batch in BATCHES:
            try:
                yield _on(target.part(count), count, workload, model, batch)
            except UserError:  # without a rate or a slice of this size
                return


def _within(each: TokenForecast, budget: Budget) -> bool:
    """Whether a forecast keeps the latencies that were asked for."""
    slow = budget.tpot_s is not None and each.high_s > budget.tpot_s
    return not slow and not (budget.ttft_s is not None and each.ttft_s > budget.ttft_s)


def _prices(path: str | None) -> list[dict[str, str]]:
    """Lines of a file of prices, by default the catalogue's on demand. Raises UserError for a file without prices."""
    if path:
        text = Path(path).read_bytes() if Path(path).is_file() else b""
    else:
        text = resources.files("jaxbench.catalog").joinpath("prices.csv").read_bytes()
    columns = ("device", "provider", "price")
    lines = [
        row for _, row in csv_table(path or "prices.csv", text, columns, "a file of prices has device,provider,price.")
    ]
    if not lines:
        raise UserError(f"--prices={path} has no prices: write a line for each device.")
    return [row for row in lines if row.get("kind") in (None, "", "on demand", "own")]


def _priced(each: TokenForecast, prices: Sequence[Mapping[str, str]]) -> Iterator[dict[str, object]]:
    """A line of advice for each price of the device."""
    target = _target_of(each.device)
    row = present(hardware.find(target.device_kind)).name
    for price in prices:
        if price["device"] == row:
            per_hour = float(price["price"]) / target.chip * each.devices
            cost = per_hour / HOUR_S * each.tpot_s / each.batch * MILLION
            yield {**_line("", each), "cost_per_million_tokens": cost, "provider": price["provider"]}


def _advice(line: Mapping[str, object], model: Model) -> str:
    """One line of advice as a sentence."""
    cells = _columns([line])
    return (
        f"{cells['devices']} ({line['provider']}), split by tensor, {line['batch']} requests: {cells['TPOT']} a token, "
        f"TTFT {cells['TTFT']}, {cells['USD per 1M tokens']} USD per million tokens, {cells['memory']} of memory, "
        f"of it {scaled(float(str(line['batch'])) * float(str(line['context'])) * model.place_bytes, 'B')} of cache."
    )

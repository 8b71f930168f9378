# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation in numbers: time to the first token and per token, bandwidth, cost, and the parts of a token's time.

All times are per token of each request. The parts of a token's time come from programs that leave out more and more of
a step, measured in the same rounds:

    step = starting + scan,   scan = local + messages + unexplained,   local = products + smaller + cache
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.quantities import devices, interval, scaled, seconds
from jaxbench.analysis.run_rows import Row, fault
from jaxbench.catalog import hardware, rows
from jaxbench.digits import digits
from jaxbench.levers import BATCH, CONTEXT, PART
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

SCAN, PREFILL, TRIAD = "scan", "prefill", "triad"
LOCAL, WEIGHTS, PRODUCTS, MESSAGES, TINY = "local", "weights", "products", "messages", "tiny"
# The parts of a token's time, in the order of figures.
READ_WEIGHTS, READ_CACHE, SMALLER = "weights", "cache", "smaller products"
LATENCY, BYTES = "message latency", "message bytes"
STARTING, UNEXPLAINED = "starting", "unexplained"
PARTS = (READ_WEIGHTS, READ_CACHE, SMALLER, LATENCY, BYTES, STARTING, UNEXPLAINED)
MILLION, HOUR_S = 1e6, 3600.0
NO_HEADLINE = "No headline: no point was measured and passed its checks and gates."
COMPARED = {  # why several devices are slower or faster than one
    "shared out": "{who} are {faster} with the requests shared out: each still reads all {size} of the weights, which "
    "take {percent:.0f} % of a token's time.",
    "because": "{who} are slower than one because {sent}, and {gain}.",
    "other": "{who} are slower than one, mostly because {part} takes {by} longer. Messages are not the main reason: "
    "{sent}, and {gain}.",
    "faster": "{who} are {ratio:.2f} times as fast as one: {sent}, and {gain}.",
    "sent": "each of the 2 x {layers} all-reduces of {message} takes {each}",
    "saves only": "the weights that each saves only {saved}",
    "saves": "the weights that each saves {saved}",
    "saves nothing": "splitting the weights saves nothing",
}
KERNELS = {
    "pallas": "the decode kernel of jax.experimental.pallas.ops",
    "paged": "the paged attention of jax.experimental.pallas.ops.tpu",
    "": "jax.nn.dot_product_attention with the lengths of the keys ({name})",
}
IN_WORDS = {
    READ_WEIGHTS: "reading the weights",
    READ_CACHE: "attention to the cache",
    SMALLER: "work between the products",
    LATENCY: "the latency of messages",
    BYTES: "the payload of messages",
    STARTING: "starting a step",
    UNEXPLAINED: "a part that no program isolates",
}
LEAST_FIT = 3  # batches or contexts of a law
CACHED = 1.05  # the share of the triad above which a rate is not that of memory
# On steps that read faster than the triad of the same rounds, by whether their bytes fit in the processor's cache.
FASTER = {
    True: "{points}: weights and cache fit in the processor's cache, and are read faster than the triad reads memory.",
    False: "{points}: weights and cache are read faster than the triad of the same rounds, which also writes.",
}
_NOTHING = Estimate(value=0.0)
_WORDS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven", 8: "Eight"}


@dataclass(frozen=True, kw_only=True)
class TokenTime:
    """What the time of a token of one row divides into. parts: seconds by name of `PARTS`; they add up to `token_s`."""

    row: Row
    token_s: Estimate
    parts: Mapping[str, Estimate]

    @property
    def name(self) -> str:
        point = self.row.point
        return f"{point.strategy}, {devices(point.devices)}"


@dataclass(frozen=True, kw_only=True)
class Law:
    """A least-squares fit: seconds of a token = fixed_s + batch x request_s + batch x context x place_s.

    place_s: 0 if the run has one context. residuals: of each row, relative to its time.
    """

    strategy: str
    devices: int
    fixed_s: float
    request_s: float
    place_s: float
    residuals: tuple[float, ...]

    @property
    def sentence(self) -> str:
        parts = [f"{seconds(self.fixed_s)} and {seconds(self.request_s)} for each request of the batch"]
        parts += [f"and {seconds(self.place_s)} for each place of its cache"] * bool(self.place_s)
        worst = 100 * max(map(abs, self.residuals))
        where = f"{self.strategy}, {devices(self.devices)}"
        fit = f"fit of {len(self.residuals)} points, residuals up to {worst:.0f} %"
        return f"{where}: a token takes {' '.join(parts)} ({fit})."


def generates(row: Row) -> bool:
    """Whether the row is a step of generation."""
    return "weights" in row.point.levers


def analyse(rows_: Sequence[Row], price_per_hour: float | None) -> tuple[list[Row], list[TokenTime]]:
    """The rows with their numbers of generation in `derived`, and what the time of a token divides into.

    price_per_hour: of the machine; None: the catalogue's price of its devices, if it has one.
    """
    rows_ = _with_twins(rows_)
    prompts = {
        _prompt_key(each): each for row in rows_ for each in row.ablations.values() if each.point.part == PREFILL
    }
    triads = {each.point.devices: each for row in rows_ for each in row.ablations.values() if each.point.part == TRIAD}
    made = []
    for row in rows_:
        numbers = dict(_numbers(row, prompts.get(_prompt_key(row)), triads.get(row.point.devices), price_per_hour))
        made.append(dataclasses.replace(row, derived=numbers))
    times = [each for row in made if (each := _token_time(row)) is not None]
    numbered: dict[str, dict[str, Estimate]] = {}  # by row and column of summary.csv, such as "token_read_weights_s"
    for each in times:
        columns = {f"token_{name.replace(' ', '_')}_s": part for name, part in each.parts.items()}
        numbered[each.row.point_id] = columns
    made = [dataclasses.replace(r, derived={**r.derived, **numbered.get(r.point_id, {})}) for r in made]
    return made, times


def of_own_steps(rows_: Sequence[Row], price_per_hour: float | None) -> list[Row]:
    """The rows with the numbers of generation, where the step that somebody else wrote makes a token of each example.

    It has no TTFT: its prompt is another program.
    """
    return [
        dataclasses.replace(row, derived={**row.derived, **dict(_numbers(row, None, None, price_per_hour))})
        if makes_tokens(row)
        else row
        for row in rows_
    ]


def makes_tokens(row: Row) -> bool:
    """Whether an example of the step is one token of one request. A training counts tokens of its examples instead."""
    return row.point.unit == "tokens" and not generates(row)


def own_sentences(rows_: Sequence[Row]) -> list[str]:
    """The time per token of each step that somebody else wrote, if it generates."""
    return [
        f"{row.point_id}, {row.point.global_batch} requests: {interval(row.derived['tpot_s'], seconds)} per token "
        f"(TPOT), {digits(row.derived['tokens_per_s_device'].value)} tokens/s per device, "
        f"{digits(row.derived['tokens_per_s_user'].value)} per user."
        for row in rows_
        if makes_tokens(row) and "tpot_s" in row.derived
    ]


def _with_twins(rows_: Sequence[Row]) -> list[Row]:
    """On one device all strategies are one program: the parts of one of them explain the others, too."""
    twins = {
        (row.point.arm, name): part for row in rows_ if row.point.devices == 1 for name, part in row.ablations.items()
    }
    made = []
    for row in rows_:
        if row.point.devices == 1:
            shared = {name: part for (arm, name), part in twins.items() if arm == row.point.arm}
            row = dataclasses.replace(row, ablations={**shared, **row.ablations})
        made.append(row)
    return made


def _prompt_key(row: Row) -> tuple[object, ...]:
    """What the time of a prompt depends on: all but the batch."""
    levers = {name: value for name, value in row.point.levers.items() if name not in (BATCH.name, PART.name)}
    strategy = row.point.strategy if row.point.devices > 1 else ""
    return strategy, row.point.devices, tuple(sorted(levers.items()))


def _numbers(
    row: Row, prompt: Row | None, triad: Row | None, price_per_hour: float | None
) -> Iterator[tuple[str, Estimate]]:
    """(name of a column, value) of each number that is known."""
    step, point = row.timing.step_s, row.point
    if prompt is not None and prompt.timing.step_s.known and not fault(prompt):
        yield "ttft_s", prompt.timing.step_s
    if not step.known:
        return
    yield "tpot_s", step
    scan = row.ablations.get(SCAN)
    if scan is not None and scan.timing.step_s.known and not fault(scan):
        yield "tpot_scan_s", scan.timing.step_s.over(scan.point.fact("tokens_per_call"))
    yield "tokens_per_s_device", step.under(point.global_batch / point.devices)
    yield "tokens_per_s_user", step.under(1.0)
    read = point.fact("weight_bytes") + point.fact("cache_bytes")
    if math.isfinite(read):
        yield "decode_bytes_per_s", step.under(read)
        if triad is not None and triad.timing.step_s.known and not fault(triad):
            share = paired_ratio.ratio(triad, row).times(read / triad.point.fact("triad_bytes"))
            yield "triad_share", share if share.known else UNKNOWN
    if (price := price_of(point.devices, price_per_hour, row)) is not None:
        yield "cost_per_million_tokens", step.times(price * MILLION / HOUR_S / point.global_batch)
    joules = point.outcome("joules_per_step")
    if math.isfinite(joules):
        yield "joules_per_token", Estimate(value=joules / point.global_batch)


def price_of(count: int, price_per_hour: float | None, row: Row) -> float | None:
    """USD per hour: of the machine, or the lowest price on demand of its devices in the catalogue; None: unknown."""
    if price_per_hour:
        return price_per_hour
    kind = row.point.prepared.device_kind if row.point.prepared is not None else ""
    peak = hardware.find(kind)
    if peak is None or row.point.platform == "cpu":
        return None
    found = [float(r["price"]) for r in rows("prices.csv") if r["device"] == peak.name and r["kind"] == "on demand"]
    return count * min(found) if found else None


def _token_time(row: Row) -> TokenTime | None:
    """None if a part was not measured."""
    tensor = row.point.fact("tensor") > 1
    names = [SCAN, *([LOCAL] if tensor else []), WEIGHTS, PRODUCTS, *([MESSAGES, TINY] if tensor else [])]
    parts = [row.ablations.get(name) for name in names]
    known = [each for each in parts if each is not None and each.timing.step_s.known and not fault(each)]
    if len(known) < len(names) or not row.timing.step_s.known:
        return None
    shared = paired_ratio.times([row, *known])
    calls = np.array([1.0, *(each.point.fact("tokens_per_call") for each in known)])
    of = {name: i for i, name in enumerate(["step", *names])}

    def time(name: str) -> tuple[float, np.ndarray]:
        if name not in of:  # one device has no messages, so its scan is local
            return time(SCAN) if name == LOCAL else (0.0, np.zeros(shared.draws.shape[1]))
        return float(shared.step_s[of[name]] / calls[of[name]]), shared.draws[of[name]] / calls[of[name]]

    def difference(*signed: tuple[int, str]) -> Estimate:
        found = [(sign, *time(name)) for sign, name in signed]
        value = sum(sign * each for sign, each, _ in found)
        draws = np.sum([sign * each for sign, _, each in found], axis=0)
        return shared.estimate(value, draws)

    divided = {
        READ_WEIGHTS: difference((1, PRODUCTS)),
        READ_CACHE: difference((1, LOCAL), (-1, WEIGHTS)),
        SMALLER: difference((1, WEIGHTS), (-1, PRODUCTS)),
        LATENCY: difference((1, TINY)),
        BYTES: difference((1, MESSAGES), (-1, TINY)),
        STARTING: difference((1, "step"), (-1, SCAN)),
        UNEXPLAINED: difference((1, SCAN), (-1, LOCAL), (-1, MESSAGES)),
    }
    if not tensor:
        divided = {name: part for name, part in divided.items() if name not in (LATENCY, BYTES, UNEXPLAINED)}
    return TokenTime(row=row, token_s=difference((1, "step")), parts=divided)


def headlines(rows_: Sequence[Row], times: Sequence[TokenTime]) -> list[str]:
    """The time per token of each strategy on its most devices; then why several devices are slower, or faster."""
    found = []
    for strategy in dict.fromkeys(row.point.strategy for row in rows_):
        known = [row for row in rows_ if row.point.strategy == strategy and row.quotable]
        if known:
            found.append(_of_strategy(strategy, known))
    return [*found, *comparisons(times)] or [NO_HEADLINE]


def _of_strategy(strategy: str, known: Sequence[Row]) -> str:
    most = max(row.point.devices for row in known)
    row = max((r for r in known if r.point.devices == most), key=lambda r: r.point.global_batch)
    tpot, first = row.timing.step_s, row.derived.get("ttft_s")
    text = (
        f"{strategy} on {devices(most)}, {row.point.global_batch} requests: {interval(tpot, seconds)} per token (TPOT)"
    )
    rate = row.derived["tokens_per_s_device"]
    text += f", {digits(rate.value)} tokens/s per device, {digits(1 / tpot.value)} per user"
    if first is not None:
        text += f"; the first token after {interval(first, seconds)} (TTFT)"
    if row.base is not None and row.base is not row.point and row.efficiency.known:
        text += f"; efficiency {interval(row.efficiency, lambda share: f'{100 * share:.0f} %')}"
    return f"{text}."


def comparisons(times: Sequence[TokenTime]) -> list[str]:
    """Why several devices are slower or faster than one, a sentence for each strategy on its most devices."""
    found = []
    for strategy in dict.fromkeys(each.row.point.strategy for each in times):
        family = sorted((each for each in times if each.row.point.strategy == strategy), key=_device_count)
        many = family[-1]
        ones = [each for each in family if _device_count(each) == 1 and each.row.point.arm == many.row.point.arm]
        if ones and _device_count(many) > 1:
            found.append(_sentence(ones[0], many))
    return found


def _device_count(each: TokenTime) -> int:
    return each.row.point.devices


def _sentence(one: TokenTime, many: TokenTime) -> str:
    """Why several devices generate a token faster or slower than one."""
    point, count = many.row.point, _device_count(many)
    who = f"{_WORDS.get(count, count)} devices"
    faster = paired_ratio.ratio(one.row, many.row)
    ratio = faster.value if faster.known else one.token_s.value / many.token_s.value
    slower = ratio < 1
    if point.fact("tensor") <= 1:
        read = point.fact("weight_bytes")
        share = many.parts[READ_WEIGHTS].value / many.token_s.value
        return COMPARED["shared out"].format(
            who=who,
            faster="slower than one" if slower else f"{ratio:.2f} times as fast as one",
            size=scaled(read, "B"),
            percent=100 * share,
        )
    layers, message = int(point.fact("layers")), scaled(point.fact("message_bytes"), "B")
    sums = 2 * layers
    each = (many.parts[LATENCY].value + many.parts[BYTES].value) / (sums + 1)
    saved = (one.parts[READ_WEIGHTS].value - many.parts[READ_WEIGHTS].value) / sums
    sent = COMPARED["sent"].format(layers=layers, message=message, each=seconds(each))
    if not slower:
        gain = COMPARED["saves"].format(saved=seconds(max(saved, 0.0)))
        return COMPARED["faster"].format(who=who, ratio=ratio, sent=sent, gain=gain)
    gain = COMPARED["saves only" if saved > 0 else "saves nothing"].format(saved=seconds(max(saved, 0.0)))
    grown = {name: part.value - one.parts.get(name, _NOTHING).value for name, part in many.parts.items()}
    most = max(grown, key=lambda name: grown[name])
    # Where devices disturb each other, messages may not be the reason.
    kind = "because" if grown[LATENCY] + grown[BYTES] >= grown[most] else "other"
    return COMPARED[kind].format(who=who, sent=sent, gain=gain, part=IN_WORDS[most], by=seconds(grown[most]))


def sentences(rows_: Sequence[Row], times: Sequence[TokenTime], cache_bytes: int | None) -> list[str]:
    """What was run, and the law of time in batch and context. cache_bytes: the processor's; None: unknown."""
    known = [row for row in rows_ if row.point.record is not None]
    if not known:
        return []
    first = known[0].point
    kernels = dict.fromkeys(row.point.compile_report.attention for row in known if row.point.compile_report is not None)
    formats = dict.fromkeys(
        f"{r.point.levers.get('weights')} weights, {r.point.levers.get('cache')} cache" for r in known
    )
    described = [
        "A static batch: all requests have the same length, and there is no scheduler.",
        f"TTFT is the time of one prompt of {first.fact('input'):.0f} tokens. TPOT is the time of each of the next "
        f"{first.fact('output'):.0f} tokens with a cache of {first.fact('context'):.0f} places, where the host starts "
        "every step. In a scan, one program generates several tokens.",
        f"Attention: {', '.join(_kernel_phrase(name) for name in kernels)}. Formats: {'; '.join(formats)}.",
    ]
    return [*described, *_above_triad(known, cache_bytes), *(law.sentence for law in laws(rows_))]


def _kernel_phrase(name: str) -> str:
    return KERNELS.get(name, KERNELS[""]).format(name=name)


def _above_triad(known: Sequence[Row], cache_bytes: int | None) -> list[str]:
    """On rows that surely read faster than a triad reads memory; [] if there are none. The table has all rates."""
    found: dict[bool, list[str]] = {}
    for row in known:
        share = row.derived.get("triad_share")
        if share is None or not share.known or not (share.has_interval and share.lo > CACHED):
            continue
        point = row.point
        used = point.devices * (point.fact("weight_bytes") + point.fact("cache_bytes"))
        fits = point.platform == "cpu" and cache_bytes is not None and used <= cache_bytes
        found.setdefault(fits, []).append(row.point_id)
    return [FASTER[fits].format(points=", ".join(points)) for fits, points in sorted(found.items())]


def laws(rows_: Sequence[Row]) -> list[Law]:
    """The fit of each strategy and device count with LEAST_FIT batches or contexts."""
    families: dict[tuple[str, int], list[Row]] = {}
    for row in rows_:
        if row.quotable and not row.point.oversubscribed:
            families.setdefault((row.point.strategy, row.point.devices), []).append(row)
    return [law for key, family in families.items() if (law := _law(*key, family)) is not None]


def _law(strategy: str, count: int, family: Sequence[Row]) -> Law | None:
    """The fit of step time over batch and context; None with too few rows or several formats."""
    others = {
        tuple(v for n, v in sorted(r.point.levers.items()) if n not in (BATCH.name, CONTEXT.name)) for r in family
    }
    if len(family) < LEAST_FIT or len(others) > 1:  # other formats have laws of their own
        return None
    batch = np.array([float(row.point.global_batch) for row in family])
    places = batch * np.array([row.point.fact("context") for row in family])
    several = len({row.point.fact("context") for row in family}) > 1 and len(family) > LEAST_FIT
    columns = [np.ones_like(batch), batch, *([places] if several else [])]
    took = np.array([row.timing.step_s.value for row in family])
    # Relative errors: a step of 1 request counts as much as a step of 64.
    matrix = np.stack(columns, 1)
    found, *_ = np.linalg.lstsq(matrix / took[:, None], np.ones_like(took), rcond=None)
    residuals = tuple(float(each) for each in matrix @ found / took - 1)
    place = float(found[2]) if several else 0.0
    return Law(
        strategy=strategy,
        devices=count,
        fixed_s=float(found[0]),
        request_s=float(found[1]),
        place_s=place,
        residuals=residuals,
    )

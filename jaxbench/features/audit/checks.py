# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Judges the rows of a table. A row is inconsistent only if no values that its digits allow agree.

A convention (the FLOP formula, the peak) is searched for, and contradicts a row only if all conventions do.
Formulas: 6 FLOPs per parameter and token (arXiv:2001.08361); for attention 12 x layers x heads x head width x sequence,
or half of it under a causal mask (arXiv:2204.02311, appendix B); a third more if the forward pass is recomputed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxbench.catalog import hardware, rows, targets
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.audit.table import Column, Range, Row, exact, number, readings, rules

_NOMINAL = Range(0.9, 1, 1.3)  # Gemma 2B has 2.51 billion parameters, Llama 2 7B has 6.74
_BLACKWELL = re.compile(r"B[23]00|RTX 50")  # has 4-bit rates, which the catalogue does not have
_KINDS = {"bf16": "bfloat16", "fp16": "float16", "fp8": "8 bits", "tf32": "TF32", "fp32": "float32"}
_ALIASES = {"v5litepod": "v5e", "v5lite": "v5e", "ironwood": "tpu7x", "v7x": "tpu7x", "sxm2": "sxm", "sxm4": "sxm"}
_SHAPE = ("layers", "width", "heads", "kv_heads", "head_width", "hidden", "vocab", "gated")
_PARTS = {"sxm", "pcie", "nvl", "80gb", "40gb"}  # words that tell parts of one name apart
CONSISTENT, INCONSISTENT, CANNOT_TELL = "consistent", "inconsistent", "cannot tell"
TIME, FORMULA, PEAK, LIMIT, ROWS = KINDS = ("time and batch", "FLOP formula", "peak", "limit", "other rows")
_COUNT = re.compile(r"^\d+\s*[x×]\s*(?=[a-z])|:[\dx]+$|(?<=v\d[ep])-\d+$")  # "8xH100", "h100:8", "v6e-256"
# Rows with the same of these do the same work for a token.
_SIZES = ("params", "active_params", "seq", "layers", "width", "hidden", "heads", "vocab")


@dataclass(frozen=True)
class Model:
    """What is known of a row's model. counts: parameters that compute for a token (in a mixture of experts the active
    ones) by the way to count them. attention: FLOPs per token and position of attention over the whole sequence; 0:
    unknown. nominal: the parameters are from a name. frozen: only adapters are trained. known, sizes: the published
    model that it is, and its shape; empty: none."""

    name: str
    counts: dict[str, Range]
    attention: float = 0.0
    nominal: bool = False
    frozen: bool = False
    known: str = ""
    sizes: dict[str, int] = field(default_factory=dict)

    def formulas(self, seq: float) -> dict[str, Range]:
        """FLOPs per token by the name of the formula, the usual ones first. seq: 0 if it is unknown."""
        made, full = {}, self.attention * seq
        for words, part in {"": 0.0, " + causal attention": full / 2, " + attention": full}.items():
            # Where attention is unknown, only the formulas without it: the others would repeat them.
            for factor, how in ((6, ""), (8, ", recomputed")) if part or not words else ():
                for name, n in self.counts.items():
                    # A sixth of attention for each of the six FLOPs, so that recomputation repeats attention, too.
                    made[f"{factor}{name}{words}{how}"] = n.plus(part / 6, part / 6) * factor
        return made | {f"2/3 of {name}, weights frozen": work * (2 / 3) for name, work in made.items() if self.frozen}

    def most(self, seq: float) -> float:
        """FLOPs per token that no formula exceeds, if attention is unknown but the sequence is not; 0: unknown.

        Attention over the whole sequence adds a share of seq / (6 x width). A model with 16 times as wide as it is deep
        has the width (16 N / 12)^(1/3), and published ones are wider.
        """
        known = max((n.high for n in self.counts.values()), default=0.0) if seq else 0.0
        return known and known * (6 + seq / (16 * known / 12) ** (1 / 3)) * 4 / 3

    def conventions(self, seq: float) -> Range | None:
        """From the cheapest formula (in blocks, with frozen weights) to the dearest; None: unknown."""
        work = self.formulas(seq).values() if self.sizes and seq else ()
        return Range(min(w.low for w in work) * 2 / 3, 0, max(w.high for w in work)) if work else None


def model(row: Row) -> Model:
    """The model of a row, from its name, its parameters and its shape."""
    values, name = row.values, row.texts.get("model", "")
    text = re.sub(r"[\s_-]+", "-", name.lower())
    found: dict[str, str] = next((each for each in rows("models.csv") if re.search(each["pattern"], text)), {})
    frozen = bool(
        re.search(r"(?<![a-z])q?lora(?![a-z])", " ".join((*row.texts.values(), *row.others.values())).lower())
    )
    if found.get("layers"):
        sizes = {size: int(found[size]) for size in _SHAPE}
        layers, width, heads, kv_heads, head_width, hidden, vocab, gated = sizes.values()
        # Attention has four matrices, where keys and values may have fewer heads; the layer after it has two or three.
        block = 2 * width * head_width * (heads + kv_heads) + (2 + gated) * width * hidden
        if "layers" in values:  # a shortened model
            sizes["layers"] = int(values["layers"].value)
        weights, params = sizes["layers"] * block, float(found["params"]) + (sizes["layers"] - layers) * block
        by = {"N": weights + vocab * width, "N with the input embedding": params, "N in blocks": weights}
        counts, attention = {how: exact(float(n)) for how, n in by.items()}, 12.0 * sizes["layers"] * heads * head_width
        return Model(name, counts, attention, frozen=frozen, known=found["name"], sizes=sizes)
    experts = re.search(r"-?a(\d+(?:\.\d+)?b)\b", text)  # "Qwen3-30B-A3B": 3 of 30 billion are active
    printed, nominal = values.get("active_params" if experts or found else "params"), row.nominal
    if printed is None or nominal:
        size = re.search(r"(?<![\w.])(\d+(?:\.\d+)?[bmt])(?![a-z])", text)
        told = number(found["active"] if found else experts[1] if experts else size[1] if size else "")
        value = printed.value if printed is not None else told.value if told is not None else 0.0
        printed, nominal = _NOMINAL * value if value else None, True
    counts, attention = {"N": printed} if printed is not None else {}, 0.0
    if "layers" in values and "width" in values and not found:
        attention = 12.0 * values["layers"].value * values["width"].value
        embedding = values["vocab"].value * values["width"].value if "vocab" in values else 0.0
        if printed is not None and 0 < embedding < printed.low:
            counts["N without an embedding"] = printed.plus(-embedding, -embedding)
    return Model(name, counts, attention, nominal, frozen)


class Peak(NamedTuple):
    """A peak of a device as its digits allow. column: of hardware.csv. plain: of a whole chip, without sparsity.
    sourced: a source confirms it."""

    words: str
    column: str
    flop_s: Range
    plain: bool
    sourced: bool


@functools.cache
def peaks(device: str) -> tuple[Peak, ...]:
    """Every peak of the devices that a text may mean."""
    found, shared = [], {row["name"] for row in rows("device_kinds.csv") if row["devices_per_row"] == "2"}
    for row, (name, words) in itertools.product(devices(device), _KINDS.items()):
        column = f"{name}_tflops"
        if (printed := number(row[column])) is not None:
            half, sourced = 10.0**printed.place / 2, column not in row["unverified_fields"].split(";")
            ways = {"": 1.0} | ({" of half a chip": 0.5} if row["name"] in shared else {})
            # NVIDIA's parts with TF32 units, from Ampere on, are also advertised with twice the rate, for 2:4 sparsity.
            ways |= {" with sparsity": 2.0} if row["tf32_tflops"] and name != "fp32" and "NVIDIA" in row["name"] else {}
            for how, factor in ways.items():
                tell = f"{printed.value * factor:g} TFLOP/s, {words}{how} ({row['name']})"
                rate = exact(printed.value).plus(-half, half) * (1e12 * factor)
                found.append(Peak(tell, column, rate, not how, sourced))
    return tuple(found)


def devices(text: str) -> list[dict[str, str]]:
    """The rows of the hardware catalogue that a text such as "DGX-H100", "8x A100 80GB" or "v5p-64" may mean, the
    fastest first: "H100" is SXM, NVL or PCIe."""
    text = re.sub(r"^\s*\d+\s*[x×]\s*|(?<=\d)\s+(?=gb\b)", "", text.lower())
    words = {_ALIASES.get(word, word) for word in re.findall(r"[a-z0-9]+", text)}
    named = [
        ({_ALIASES.get(w, w) for w in re.findall(r"[a-z0-9]+", r["name"].lower())}, r) for r in rows("hardware.csv")
    ]
    # A name has letters and digits, or four digits ("RTX 4090"). Other numbers are counts.
    keys = {word for own, _ in named for word in own if re.fullmatch(r"\d{4}|[a-z]+\d+[a-z]*|trillium", word)}
    key = words & (keys - {"hbm3", "hbm3e", "gk210"})  # memories and a die, which several parts share
    found = [(own, row) for own, row in named if key and key <= own]
    for word in words & _PARTS:
        found = [(own, row) for own, row in found if word in own] or found
    return sorted((row for _, row in found), key=lambda row: -float(row["bf16_tflops"] or 0))


def columns(precision: str) -> set[str]:
    """The columns of hardware.csv for a text such as "FP8-CS" or "bf16 mixed"."""
    return {row["name"] for pattern, row in rules("precision").items() if re.search(pattern, precision.lower())}


def limit(device: str, precision: str) -> Range | None:
    """The rate that no program exceeds: the largest dense peak of the precision, or of any; None: unknown."""
    known = [peak for peak in peaks(device) if peak.plain and peak.sourced]
    # The catalogue has no rates of 4 bits and of integers, so they have no limit here.
    if re.search(r"fp4|int8", precision.lower()) or (not precision and any(_BLACKWELL.search(p.words) for p in known)):
        return None
    wanted = columns(precision)
    # GeForce parts sum 16-bit products twice as fast in 16 bits. The catalogue has their other rate.
    rates = [p.flop_s * (2 if "RTX" in p.words else 1) for p in known if not precision or p.column in wanted]
    return max(rates, key=lambda rate: rate.high, default=None)


@dataclass(frozen=True)
class Check:
    """Two numbers that must agree. names: what they are. If kind is LIMIT, the first may be smaller than the second."""

    kind: str
    names: tuple[str, str]
    left: Range
    right: Range

    @property
    def ok(self) -> bool:
        return not self.right.below(self.left) and (self.kind == LIMIT or not self.left.below(self.right))

    @property
    def miss(self) -> float:
        """By how much the first number exceeds the second, relative."""
        return self.left.value / self.right.value - 1

    @property
    def strain(self) -> float:
        """The difference over what the digits allow: up to 1, the two agree."""
        low, high = sorted((self.left, self.right), key=lambda span: span.value)
        room, apart = (high.value - high.low) + (low.high - low.value), high.value - low.value
        return apart / room if room > 1e-9 * high.value else (math.inf if apart > 1e-9 * high.value else 0.0)

    @property
    def sentence(self) -> str:
        left, right = (f"{v:,.0f}" if 1e5 <= v < 1e12 else f"{v:.6g}" for v in (self.left.value, self.right.value))
        verb = "exceeds" if self.kind == LIMIT else "differs from"
        by, allowed = digits(abs(100 * self.miss)), digits(100 * abs(self.miss) / self.strain) if self.strain else "0"
        return f"{self.names[0]} ({left}) {verb} {self.names[1]} ({right}) by {by} %; their digits allow {allowed} %"


@dataclass
class Audited:
    """A row with its checks. formula, peak: what gives its numbers, or comes closest. efficiency: its throughput per
    device over that of the row `base`. doubt: a sentence, if nothing known explains its numbers."""

    row: Row
    model: Model
    checks: list[Check] = field(default_factory=list)
    formula: str = ""
    doubt: str = ""
    peak: str = ""
    efficiency: Range | None = None
    base: int = 0

    @property
    def verdict(self) -> str:
        if self.failures or self.row.faults:
            return INCONSISTENT
        if self.doubt:  # numbers that agree with each other do not make up for one that nothing explains
            return CANNOT_TELL
        # To be below a limit proves nothing.
        return CONSISTENT if any(check.kind != LIMIT for check in self.checks) else CANNOT_TELL

    @property
    def contradictions(self) -> list[str]:
        """A clause for each number that is impossible, and for each two that disagree, the largest difference first."""
        return [*self.row.faults, *(check.sentence for check in self.failures)]

    @property
    def failures(self) -> list[Check]:
        return sorted((check for check in self.checks if not check.ok), key=lambda check: -abs(check.miss))

    def text(self, name: str) -> str:
        return self.row.texts.get(name, "")

    def get(self, *products: str, scale: float = 1.0) -> Range | None:
        """The first product of known quantities, such as "batch seq"; None: none is."""
        for names in map(str.split, products):
            if names and all(name in self.row.values for name in names):
                return math.prod((self.row.values[name] for name in names), start=exact(scale))
        return None

    def compare(self, kind: str, names: tuple[str, str], left: Range | None, right: Range | None) -> None:
        if left is not None and right is not None:
            self.checks.append(Check(kind, names, left, right))


def audit(columns: Sequence[Column]) -> tuple[list[Audited], dict[str, str]]:
    """(the rows of a table with their checks; the meanings of its ambiguous columns), in the reading with which most
    rows agree; of equally good ones, in the likeliest."""
    tried: list[tuple[float, list[Audited], dict[str, str]]] = []
    for read, words in readings(columns):
        audited = [Audited(row, model(row)) for row in read]
        for each in audited:
            _time_and_batch(each)
            _flops(each)
        _between(audited)
        verdicts = [each.verdict for each in audited]
        # Of readings that explain equally many rows, the one with fewer contradictions.
        score = verdicts.count(CONSISTENT) - 1.01 * verdicts.count(INCONSISTENT)
        tried.append((score, audited, words))
    best, audited, words = max(tried, key=lambda reading: reading[0])
    as_good = [other for score, _, other in tried if score == best]
    undecided = {header for header in words if any(other[header] != words[header] for other in as_good)}
    return audited, {
        header: f"{how} (no row decides it)" if header in undecided else how for header, how in words.items()
    }


def _time_and_batch(made: Audited) -> None:
    """Compares throughput, step time and batch, and adds what follows from them."""
    values, text, get = made.row.values, made.text("device").lower(), made.get

    def known(name: str, span: Range | None) -> None:
        if span is not None and span.value > 0:
            values.setdefault(name, span)  # what the table prints counts before what follows from other columns

    if found := re.match(r"(\d+)\s*[x×]\s*[a-z]", text) or re.fullmatch(r"[a-z]\w*:(\d+(?:x\d+)*)", text):
        known("devices", exact(math.prod(map(float, found[1].split("x")))))
    elif found := re.search(r"\b(v\d\w*)-(\d+)$", text):  # up to v5p the name counts TensorCores, two of a chip
        chips = float(found[2]) / (2 if found[1] in ("v2", "v3", "v4", "v5p") else 1)
        known("devices", exact(chips) * values.get("slices", exact(1)))
    known("devices", get("nodes per_node"))
    known("step_s", exact(1.0) / values["steps_s"] if "steps_s" in values else None)
    known("runs_s", exact(1.0) / values["training_s"] if "training_s" in values and "steps" not in values else None)
    for line in (line for line in rows("table_identities.csv") if line["scope"] in ("row", "limit")):
        scale, names = float(line["scale"]), (line["left_words"], line["right_words"])
        kind = LIMIT if line["scope"] == "limit" else TIME
        made.compare(kind, names, get(line["left"], scale=scale), get(line["right"], scale=scale))
    known("accumulate", exact(1.0))
    known("count", get("devices", "nodes"))
    parts, seq = get("device_batch devices accumulate"), get("seq")
    whole = get("batch") or (get("step_tokens", scale=1 / seq.value) if seq else None)
    if whole is not None and parts is not None:
        ratio = max(whole / parts, parts / whole, key=lambda ratio: ratio.value)
        # A multiple is no contradiction: micro-batches are accumulated, or devices share an example.
        if not ratio.meets(exact(max(2, round(ratio.value)))):
            made.compare(TIME, ("batch of a device x devices", "batch"), parts, whole)
    known("step_tokens", get("batch seq", "device_batch devices accumulate seq"))
    step, devices = get("step_s"), get("devices")
    for name in ("tokens_s", "samples_s", "flop_s"):
        known(name, get(f"device_{name}", scale=devices.value) if devices else None)
        known(name, values["step_tokens"] / step if name == "tokens_s" and step and "step_tokens" in values else None)
        known(f"device_{name}", get(name, scale=1 / devices.value) if devices else None)


def _flops(made: Audited) -> None:
    """Which formula gives the FLOP/s and which peak the MFU, and whether they are beyond a limit."""
    get, device, precision = made.get, made.text("device"), made.text("precision")
    rate, tokens, mfu, seq = get("device_flop_s"), get("device_tokens_s"), get("mfu"), get("seq")
    if rate is None and (total := get("total_flop")) and (spent := get("training_s devices")):
        rate = total / spent
    formulas, within = made.model.formulas(seq.value if seq else 0.0), made.model.conventions(seq.value if seq else 0.0)
    most, needed, what = limit(device, precision), rate, "TFLOP/s of a device"
    if needed is None and tokens is not None and within is not None:
        needed, what = tokens * within.low, "TFLOP/s for its tokens/s by the cheapest formula"
    made.compare(LIMIT, (what, "the dense peak"), needed and needed * 1e-12, most and most * 1e-12)
    for name in ("mfu", "hfu"):
        made.compare(LIMIT, (f"{name.upper()} in %", "the peak"), get(name, scale=100), exact(100))
    made.compare(LIMIT, ("MFU in %", "HFU in %"), get("mfu", scale=100), get("hfu", scale=100))
    most_work = made.model.most(seq.value if seq else 0.0)
    if rate is not None and tokens is not None:
        what = "TFLOP/s over tokens/s"
        made.formula = _search(made, FORMULA, what, rate / tokens, formulas, within)
        _explain(made, FORMULA, what, rate / tokens, formulas, most_work)
    wanted = columns(precision) or {"bf16_tflops"}
    # The likeliest first, because the first that fits is named.
    order = sorted(peaks(device), key=lambda peak: (not (peak.plain and peak.column in wanted), not peak.plain))
    known = {peak.words: peak.flop_s for peak in order}
    if (printed := get("peak")) is not None:
        known = {f"{printed.value / 1e12:g} TFLOP/s (the table)": printed}
    spread = Range(min(p.low for p in known.values()), 0, max(p.high for p in known.values())) if known else None
    if mfu is not None and rate is not None:
        made.peak = _search(made, PEAK, "TFLOP/s over MFU", rate / mfu, known, spread)
    elif mfu is not None and tokens is not None and spread is not None:
        made.peak, peak = next(iter(known.items()))
        if within is not None:
            within = Range(within.low * peak.low / spread.high, 0, within.high * peak.high / spread.low)
        what = "MFU x the peak over tokens/s"
        made.formula = _search(made, PEAK, what, mfu * peak / tokens, formulas, within)
        # Over the lowest peak that the row may mean, its work is smallest.
        lowest = min((p.flop_s.low for p in order if not precision or p.column in wanted), default=peak.low)
        most_work *= peak.high / (peak.low if printed is not None else lowest)
        _explain(made, PEAK, what, mfu * peak / tokens, formulas, most_work)


def _search(made: Audited, kind: str, what: str, value: Range, options: dict[str, Range], within: Range | None) -> str:
    """Which of the options give the value. Outside of `within`, the row is inconsistent."""
    of_token = "tokens/s" in what
    scale, unit = (1e-9, "GFLOP a token") if of_token else (1e-12, "TFLOP/s")
    by_name = " (parameters by name)" if of_token and made.model.nominal else ""
    fits = [name for name, span in options.items() if span.meets(value)]
    if fits:
        if not by_name:
            made.compare(kind, (f"{what}, {unit}", fits[0]), value * scale, options[fits[0]] * scale)
        return " or ".join(fits[:2]) + by_name
    if within is not None and not within.meets(value):
        end = within.low if value.high < within.low else within.high
        made.compare(kind, (f"{what}, {unit}", "any convention"), value * scale, exact(end * scale))
    shown = f"{digits(value.value * scale)} {unit}"
    if not options:
        return shown
    name = _nearest(value, options)
    off = 100 * (value.value / options[name].value - 1)
    return f"none: {shown}; nearest {name}{by_name} ({'-' if off < 0 else '+'}{digits(abs(off))} %)"


def _nearest(value: Range, options: dict[str, Range]) -> str:
    """The name of the option that is nearest to `value`."""
    # By ratio: half of the value is as far from it as twice the value.
    return min(options, key=lambda name: abs(math.log(options[name].value / value.value)))


def _explain(made: Audited, kind: str, what: str, value: Range, formulas: dict[str, Range], most: float) -> None:
    """Doubts a row if no formula comes within a factor of two of its FLOPs per token, and refuses it if they are above
    twice `most`, what is possible at all.

    Too few FLOPs are never refused: a mixture of experts computes with a part of its parameters.
    """
    if not formulas:
        return
    name = _nearest(value, formulas)
    nearest = formulas[name]
    factor = max(value.value / nearest.value, nearest.value / value.value)
    if factor <= 2:
        return
    if most and value.low > 2 * most:
        made.compare(kind, (f"{what}, GFLOP a token", "any formula"), value * 1e-9, exact(most * 1e-9))
        return
    few = value.value < nearest.value
    needed = [name for name, has in (("precision", made.text("precision")), ("seq_len", made.get("seq"))) if not has]
    unknown = (
        "the active parameters of a mixture of experts" if few else "attention" if not made.model.attention else ""
    )
    missing = " and ".join([*needed, *([unknown] if unknown else [])])
    made.doubt = (
        f"{what} is {digits(value.value * 1e-9)} GFLOP a token, and the nearest formula, {name}, gives "
        f"{digits(nearest.value * 1e-9)}: a factor of {digits(factor)}"
        + (f", which only {missing} could explain" if missing else "")
    )


Group = list[tuple[Audited, Range, Range]]


def _between(audited: Sequence[Audited]) -> None:
    """What must be the same in rows of one model, and how throughput scales over them."""
    # Without the length of a sequence, rows of one model may do different work for a token.
    same_work = all("seq" in each.row.values for each in audited)
    for line in rows("table_identities.csv"):
        of_base, scale = line["scope"] == "base", float(line["scale"])
        if line["scope"] in ("row", "limit") or (line["right"] == "device_tokens_s" and not (of_base or same_work)):
            continue
        for group in _groups(audited, line["left"], line["right"], of_machine=line["scope"] != "model"):
            # A speed-up may be over another program. Over the fewest devices it is 1 there, and exactly.
            base, printed, _ = group[0]
            if len(group) < 2 or (of_base and not printed.meets(exact(1.0))):
                continue
            group = [(e, exact(1.0) if of_base and e is base else high, low) for e, high, low in group]
            ratios = [high / low for _, high, low in group]
            agree = [sum(map(ratio.meets, ratios)) for ratio in ratios]
            most = agree.index(max(agree))  # each row is compared with the one with which most agree
            for at, (each, high, low) in enumerate(group):
                others = [place for place in range(len(group)) if place != at]
                other = most if at != most else max(others, key=lambda place: ratios[place].meets(ratios[most]))
                told = f"that of row {group[other][0].row.number} at the same {line['right_words']}"
                each.compare(ROWS, (line["left_words"], told), high * scale, ratios[other] * low * scale)
    for rate in ("tokens_s", "samples_s", "flop_s", "runs_s"):
        for group in _groups(audited, rate, "count"):
            first, slow, few = group[0]
            for each, speed, count in group:
                if count.value > few.value and each.efficiency is None:
                    each.efficiency, each.base = speed / slow * (few / count), first.row.number


def _groups(audited: Sequence[Audited], left: str, right: str, *, of_machine: bool = True) -> list[Group]:
    """Rows that must agree, each with two products of quantities. They are of one model (with `of_machine`, on one
    machine), with equal sizes and equal cells that were not understood. The fewest devices come first."""
    groups: dict[tuple[object, ...], Group] = defaultdict(list)
    for each in sorted(audited, key=lambda each: each.row.values.get("count", exact(0)).value):
        machine = _COUNT.sub("", each.text("device").lower()), each.text("precision")
        sizes = (each.row.values.get(name, exact(0)).value for name in _SIZES)
        key = each.text("model"), *(machine * of_machine), *sizes, each.model.frozen, *sorted(each.row.others.items())
        if (top := each.get(left)) and (bottom := each.get(right)):
            groups[key].append((each, top, bottom))
    return list(groups.values())


def forecasts(audited: Sequence[Audited]) -> list[str]:
    """The commands that forecast the steps of published shapes on targets: a forecast needs a compiler."""
    commands: dict[tuple[str, str], str] = {}
    for each, target in itertools.product(audited, map(targets.parse, targets.names())):
        seq, count, peak = each.get("seq"), each.get("devices"), hardware.find(target.device_kind)
        named, sizes = {row["name"] for row in devices(each.text("device"))}, each.model.sizes
        if sizes and seq and count and peak and peak.name in named:
            settings = {**sizes, "rms": sizes["gated"], "context": int(seq.value), "attention": "flash"}
            words = " ".join(f"--config.model.{name}={setting}" for name, setting in settings.items())
            batch = each.get("device_batch") or each.get("batch", scale=1 / count.value) or exact(1)
            with contextlib.suppress(UserError):  # no slice has this number of chips
                command = (  # two depths are enough, because all blocks are alike
                    f"jaxbench forecast gpt --targets={target.part(int(count.value)).text} --depths=1,2 {words} "
                    "--config.strategy=fsdp --config.lever.remat=block "
                    f"--config.accelerator_batch={max(1, round(batch.value))}"
                )
                commands.setdefault((each.model.known, target.name), f"Row {each.row.number}: '{command}'.")
    return list(commands.values())

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Judges the rows of a table. A row is inconsistent only if no values that its digits allow agree.

A convention (the FLOP formula, the peak) is searched for, and contradicts a row only if all conventions do.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxbench.catalog import hardware, rows, targets
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.audit import work
from jaxbench.features.audit.table import Column, Range, Row, exact, readings

CONSISTENT, INCONSISTENT, CANNOT_TELL = "consistent", "inconsistent", "cannot tell"
TIME, FORMULA, PEAK, LIMIT, ROWS = KINDS = ("time and batch", "FLOP formula", "peak", "limit", "other rows")
_COUNT = re.compile(r"^\d+\s*[x×]\s*(?=[a-z])|:[\dx]+$|(?<=v\d[ep])-\d+$")  # "8xH100", "h100:8", "v6e-256"
# Rows with the same of these do the same work for a token.
_SIZES = ("params", "active_params", "seq", "layers", "width", "hidden", "heads", "vocab")


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
    device over that of the row `base`."""

    row: Row
    model: work.Model
    checks: list[Check] = field(default_factory=list)
    formula: str = ""
    peak: str = ""
    efficiency: Range | None = None
    base: int = 0

    @property
    def verdict(self) -> str:
        if self.failures:
            return INCONSISTENT
        # To be below a limit proves nothing.
        return CONSISTENT if any(check.kind != LIMIT for check in self.checks) else CANNOT_TELL

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
    """(the rows of a table with their checks; what columns mean that leave it open: the reading with which most rows
    agree, or the likeliest)."""
    tried: list[tuple[float, list[Audited], dict[str, str]]] = []
    for read, words in readings(columns):
        audited = [Audited(row, work.model(row)) for row in read]
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
            values.setdefault(name, span)

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
    most, needed, what = work.limit(device, precision), rate, "TFLOP/s of a device"
    if needed is None and tokens is not None and within is not None:
        needed, what = tokens * within.low, "TFLOP/s for its tokens/s by the cheapest formula"
    made.compare(LIMIT, (what, "the dense peak"), needed and needed * 1e-12, most and most * 1e-12)
    for name in ("mfu", "hfu"):
        made.compare(LIMIT, (f"{name.upper()} in %", "the peak"), get(name, scale=100), exact(100))
    made.compare(LIMIT, ("MFU in %", "HFU in %"), get("mfu", scale=100), get("hfu", scale=100))
    if rate is not None and tokens is not None:
        made.formula = _search(made, FORMULA, "TFLOP/s over tokens/s", rate / tokens, formulas, within)
    wanted = work.columns(precision) or {"bf16_tflops"}
    order = sorted(work.peaks(device), key=lambda peak: (not (peak.plain and peak.column in wanted), not peak.plain))
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
        made.formula = _search(made, PEAK, "MFU x the peak over tokens/s", mfu * peak / tokens, formulas, within)


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
    name = min(options, key=lambda name: abs(math.log(options[name].value / value.value)))
    off = 100 * (value.value / options[name].value - 1)
    return f"none: {shown}; nearest {name}{by_name} ({'-' if off < 0 else '+'}{digits(abs(off))} %)"


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
    """(row, two products of quantities) of rows of one model, and of one machine, with equal sizes and cells that were
    not understood, those with the fewest devices first."""
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
        named, sizes = {row["name"] for row in work.devices(each.text("device"))}, each.model.sizes
        if sizes and seq and count and peak and peak.name in named:
            settings = {**sizes, "rms": sizes["gated"], "context": int(seq.value), "attention": "flash"}
            words = " ".join(f"--config.model.{name}={setting}" for name, setting in settings.items())
            batch = each.get("device_batch") or each.get("batch", scale=1 / count.value) or exact(1)
            with contextlib.suppress(UserError):  # no slice has this number of chips
                command = (
                    f"jaxbench forecast gpt --targets={target.part(int(count.value)).text} --depths=1,2 {words} "
                    "--config.strategy=fsdp --config.lever.remat=block "
                    f"--config.accelerator_batch={max(1, round(batch.value))}"
                )
                commands.setdefault((each.model.known, target.name), f"Row {each.row.number}: '{command}'.")
    return list(commands.values())

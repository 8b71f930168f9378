# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Judges the rows of a table. A row is inconsistent only if no values that its digits allow agree.

A convention (the FLOP formula, the peak) is searched for, and contradicts a row only if all conventions do.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxbench.audit import work
from jaxbench.audit.table import Column, Range, Row, exact, readings
from jaxbench.catalog import hardware, targets
from jaxbench.digits import digits
from jaxbench.errors import UserError

CONSISTENT, INCONSISTENT, CANNOT_TELL = "consistent", "inconsistent", "cannot tell"
TIME, FORMULA, PEAK, LIMIT, ROWS = KINDS = ("time and batch", "FLOP formula", "peak", "limit", "other rows")
_EQUAL = (  # products of quantities
    ("step_tokens", "batch seq"), ("tokens_s", "device_tokens_s devices"), ("samples_s", "device_samples_s devices"),
    ("flop_s", "device_flop_s devices"), ("tokens_s step_s", "step_tokens"), ("tokens_s step_s", "batch seq"),
    ("device_tokens_s devices step_s", "step_tokens"), ("device_tokens_s devices step_s", "batch seq"),
    ("samples_s step_s", "batch"), ("device_samples_s devices step_s", "batch"), ("samples_s seq", "tokens_s"),
    ("device_samples_s seq", "device_tokens_s"), ("steps step_s", "training_s"),
)  # fmt: skip
_WORDS = {
    "_s": "/s",
    "step/s": "step time",
    "training/s": "training time",
    "seq": "sequence",
    "step_tokens": "tokens of a step",
}
# Rows with the same of these do the same work for a token.
_SIZES = ("params", "active_params", "seq", "layers", "width", "hidden", "heads", "vocab")
Key = tuple[object, ...]


@dataclass(frozen=True)
class Check:
    """Two numbers that must agree. names: what they are. The first of a limit must only not exceed the second."""

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
        (a, b), verb = self.names, "exceeds" if self.kind == LIMIT else "differs from"
        allowed = digits(100 * abs(self.miss) / self.strain) if self.strain else "0"
        return (
            f"{a} ({self.left.value:,.6g}) {verb} {b} ({self.right.value:,.6g}) by {digits(abs(100 * self.miss))} %; "
            f"their digits allow {allowed} %"
        )


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
        """The first product whose quantities are all known, such as "batch seq"; None: none is."""
        for names in map(str.split, products):
            if names and all(name in self.row.values for name in names):
                return math.prod((self.row.values[name] for name in names), start=exact(scale))
        return None

    def compare(self, kind: str, names: tuple[str, str], left: Range | None, right: Range | None) -> None:
        if left is not None and right is not None:
            self.checks.append(Check(kind, names, left, right))


def audit(columns: Sequence[Column]) -> tuple[list[Audited], dict[str, str]]:
    """(the rows of a table with their checks; how columns were read that leave it open, which most rows decide)."""
    read = []
    for rows, words in readings(columns):
        audited = [Audited(row, work.model(row)) for row in rows]
        for each in audited:
            _time_and_batch(each)
            _flops(each)
        _between(audited)
        wrong, checks = sum(bool(a.failures) for a in audited), sum(len(a.checks) for a in audited)
        read.append(((wrong, -checks, len(read)), audited, words))
    return min(read, key=lambda entry: entry[0])[1:]


def _time_and_batch(made: Audited) -> None:
    """Compares throughput, step time and batch, and adds what follows from them."""
    values, text, get = made.row.values, made.text("device").lower(), made.get
    if found := re.match(r"(\d+)\s*[x×]\s*\w", text) or re.fullmatch(r"[a-z]\w*:(\d+(?:x\d+)*)", text):
        values.setdefault("devices", exact(math.prod(map(float, found[1].split("x")))))
    elif found := re.search(r"\b(v\d\w*)-(\d+)$", text):  # up to v5p the name counts TensorCores, two of a chip
        chips = float(found[2]) / (2 if found[1] in ("v2", "v3", "v4", "v5p") else 1)
        values.setdefault("devices", exact(chips) * values.get("slices", exact(1)))
    if "steps_s" in values:
        values.setdefault("step_s", exact(1.0) / values["steps_s"])

    def known(name: str, span: Range | None) -> None:
        if span is not None:
            values.setdefault(name, span)

    known("devices", get("nodes per_node"))
    for left, right in _EQUAL:
        made.compare(TIME, (_words(left), _words(right)), get(left), get(right))
    known("accumulate", exact(1.0))
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


def _words(product: str) -> str:
    return " x ".join(
        f"{_label(name.removeprefix('device_'))}{' of a device' if name.startswith('device_') else ''}"
        for name in product.split()
    )


def _label(name: str) -> str:
    return {
        "step_s": "step time",
        "training_s": "training time",
        "seq": "sequence",
        "step_tokens": "tokens of a step",
    }.get(name, name.replace("_s", "/s").replace("flop", "FLOP"))


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
    known = {peak.words: peak.flop_s for peak in work.peaks(device)}
    if (printed := get("peak")) is not None:
        known = {f"{printed.value / 1e12:g} TFLOP/s (the table)": printed}
    if mfu is None or not (known or rate):
        return
    spread = Range(min(p.low for p in known.values()), 0, max(p.high for p in known.values())) if known else None
    if rate is not None:
        made.peak = _search(made, PEAK, "TFLOP/s over MFU", rate / mfu, known, spread)
    elif tokens is not None and spread is not None:
        wanted = work.columns(precision) or {"bf16_tflops"}
        usual = [p.words for p in work.peaks(device) if p.plain and p.column in wanted and p.words in known]
        made.peak = (usual or list(known))[0]
        peak = known[made.peak]
        if within is not None:
            within = Range(within.low * peak.low / spread.high, 0, within.high * peak.high / spread.low)
        made.formula = _search(made, PEAK, "MFU x the peak over tokens/s", mfu * peak / tokens, formulas, within)


def _search(
    made: Audited, kind: str, what: str, value: Range, options: Mapping[str, Range], within: Range | None
) -> str:
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
    return f"none: {shown}; nearest {name}{by_name} ({100 * (value.value / options[name].value - 1):+.2g} %)"


def _between(rows: Sequence[Audited]) -> None:
    """What must be the same in rows of one model, and how throughput scales over them."""
    # Without the length of a sequence, rows of one model may do different work for a token.
    tokens = "device_tokens_s" if all("seq" in each.row.values for each in rows) else ""
    for names, words, scale, texts in (
        (("device_flop_s", tokens), ("TFLOP/s", "tokens/s"), 1e-12, ("model",)),
        (("device_flop_s", "mfu"), ("TFLOP/s", "MFU"), 1e-12, ("model", "device", "precision")),
        (("mfu", tokens), ("MFU in %", "tokens/s"), 100, ("model", "device", "precision")),
    ):
        for group in _groups((each for each in rows if all(map(each.get, names))), texts):
            ratios = [each.row.values[names[0]] / each.row.values[names[1]] for each in group]
            agree = [sum(map(ratio.meets, ratios)) for ratio in ratios]
            for at, each in enumerate(group) if len(group) > 1 else ():
                # With which most rows agree; that one is compared with a row that agrees, if there is one.
                other = max(
                    range(len(group)),
                    key=lambda n: (n != at, ratios[n].meets(ratios[at]) and at == agree.index(max(agree)), agree[n]),
                )
                right = each.get(names[1], scale=scale)
                told = f"that of row {group[other].row.number} at the same {words[1]}"
                made = (words[0], told), each.get(names[0], scale=scale), right and ratios[other] * right
                each.compare(ROWS, *made)
    for group in _groups((each for each in rows if each.get("devices", "nodes")), ("model", "device", "precision")):
        _scaling(group)


def _groups(rows: Iterable[Audited], texts: Sequence[str]) -> list[list[Audited]]:
    """Rows with equal texts, sizes and cells that were not understood."""
    groups: dict[Key, list[Audited]] = defaultdict(list)
    for each in rows:
        sizes = tuple(each.row.values.get(name, exact(0)).value for name in _SIZES)
        groups[*map(each.text, texts), *sizes, *sorted(each.row.others.items())].append(each)
    return list(groups.values())


def _scaling(group: Sequence[Audited]) -> None:
    """Efficiency over the row with the fewest devices. A printed speed-up or efficiency is compared with it if that row
    is its base, which prints 1."""
    counts = {id(each): count.value for each in group if (count := each.get("devices", "nodes"))}
    known = []
    for each in group:
        time = each.get("training_s") if "steps" not in each.row.values else None
        if rate := each.get("tokens_s", "samples_s", "flop_s") or (exact(1.0) / time if time else None):
            known.append((counts[id(each)], rate, each))
    fewest = min((count for count, _, _ in known), default=1.0)
    bases = [(rate, each) for count, rate, each in known if count == fewest]
    for count, rate, each in known:
        slow, first = bases[0]
        if count > fewest:
            each.efficiency, each.base = rate / slow * (fewest / count), first.row.number
            for name, span in (("speedup", rate / slow), ("efficiency", each.efficiency)):
                if len(bases) == 1 and (own := first.get(name)) and own.meets(exact(1.0)):
                    each.compare(ROWS, (f"printed {name}", f"that over row {each.base}"), each.get(name), span)
    # A speed-up is over one device or over the fewest: over what makes more printed efficiencies agree.
    both = [(each, each.get("speedup"), each.get("efficiency")) for each in group if each.get("speedup efficiency")]
    made = [
        [
            Check(ROWS, ("speed-up over devices", "printed efficiency"), s * (few / counts[id(each)]), e)
            for each, s, e in both
        ]
        for few in (1.0, fewest)
    ]
    best = max(made, key=lambda checks: sum(check.ok for check in checks))
    for (each, _, _), check in zip(both, best, strict=True):
        each.checks += [check] if any(other.ok for other in best) else []


def forecasts(rows: Sequence[Audited]) -> list[str]:
    """The commands that forecast the steps of published shapes on targets: a forecast needs a compiler."""
    commands: dict[tuple[str, str], str] = {}
    for each in rows:
        sizes, seq, count = each.model.sizes, each.get("seq"), each.get("devices")
        named = {row["name"] for row in work.devices(each.text("device"))}
        for target in map(targets.parse, targets.names() if sizes and seq and count else ()):
            peak, key = hardware.find(target.device_kind), (each.model.name, target.name)
            if seq and count and peak is not None and peak.name in named and key not in commands:
                settings = {**sizes, "rms": sizes["gated"], "context": int(seq.value)}
                words = " ".join(f"--config.model.{name}={size}" for name, size in settings.items())
                batch = each.get("device_batch") or each.get("batch", scale=1 / count.value) or exact(1)
                with contextlib.suppress(UserError):  # no slice has this number of chips
                    commands[key] = (
                        f"Row {each.row.number}: 'jaxbench forecast gpt --targets={target.part(int(count.value)).text} "
                        f"--depths=1,2 {words} --config.model.attention=flash --config.strategy=fsdp "
                        f"--config.lever.remat=block --config.accelerator_batch={max(1, round(batch.value))}'."
                    )
    return list(commands.values())

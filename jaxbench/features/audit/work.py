# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The FLOPs of a token by every formula in use, and the peaks of a device, from names and shapes.

Formulas: 6 FLOPs per parameter and token (arXiv:2001.08361); for attention 12 x layers x heads x head width x sequence,
or half of it under a causal mask (arXiv:2204.02311, appendix B); a third more if the forward pass is recomputed.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxbench.catalog import rows
from jaxbench.features.audit.table import Range, Row, exact, number, rules

_NOMINAL = Range(0.9, 1, 1.3)  # Gemma 2B has 2.51 billion parameters, Llama 2 7B has 6.74
_BLACKWELL = re.compile(r"B[23]00|RTX 50")  # has 4-bit rates, which the catalogue does not have
_KINDS = {"bf16": "bfloat16", "fp16": "float16", "fp8": "8 bits", "tf32": "TF32", "fp32": "float32"}
_ALIASES = {"v5litepod": "v5e", "v5lite": "v5e", "ironwood": "tpu7x", "v7x": "tpu7x", "sxm2": "sxm", "sxm4": "sxm"}
_SHAPE = ("layers", "width", "heads", "kv_heads", "head_width", "hidden", "vocab", "gated")
_PARTS = {"sxm", "pcie", "nvl", "80gb", "40gb"}  # words that tell parts of one name apart


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
            for factor, how in ((6, ""), (8, ", recomputed")) if part or not words else ():
                for name, n in self.counts.items():
                    made[f"{factor}{name}{words}{how}"] = n.plus(part / 6, part / 6) * factor
        return made | {f"2/3 of {name}, weights frozen": work * (2 / 3) for name, work in made.items() if self.frozen}

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
        block = 2 * width * head_width * (heads + kv_heads) + (2 + gated) * width * hidden
        if "layers" in values:  # a shortened model
            sizes["layers"] = int(values["layers"].value)
        weights, params = sizes["layers"] * block, float(found["params"]) + (sizes["layers"] - layers) * block
        by = {"N": weights + vocab * width, "N with the input embedding": params, "N in blocks": weights}
        counts, attention = {how: exact(float(n)) for how, n in by.items()}, 12.0 * sizes["layers"] * heads * head_width
        return Model(name, counts, attention, frozen=frozen, known=found["name"], sizes=sizes)
    experts = re.search(r"-?a(\d+(?:\.\d+)?b)\b", text)
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
    key = words & (keys - {"hbm3", "hbm3e", "gk210"})
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
    if re.search(r"fp4|int8", precision.lower()) or (not precision and any(_BLACKWELL.search(p.words) for p in known)):
        return None
    wanted = columns(precision)
    # GeForce parts sum 16-bit products twice as fast in 16 bits. The catalogue has their other rate.
    rates = [p.flop_s * (2 if "RTX" in p.words else 1) for p in known if not precision or p.column in wanted]
    return max(rates, key=lambda rate: rate.high, default=None)

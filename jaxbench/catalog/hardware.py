# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Peaks of known devices, per JAX device.

``hardware.csv`` has one row per chip, board or die, in the units of its column names, with its sources and with the
fields that no source confirmed. ``device_kinds.csv`` says which row a ``jax.Device.device_kind`` means and how many
JAX devices share that row (a TPU v3 chip is two). A kind that is not listed is unknown: nothing is matched by
likeness, because a wrong peak is worse than none.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from importlib import resources

# Which column bounds a float32 matrix product at XLA's default precision: TF32 units where a GPU has them, bfloat16
# passes on a TPU (documentation of jax.lax.Precision.DEFAULT).
_COLUMNS = {
    ("float32", "gpu"): ("tf32_tflops", "fp32_tflops"),
    ("float32", "tpu"): ("bf16_tflops",),
    ("float32", "cpu"): ("fp32_tflops",),
    ("bfloat16", "gpu"): ("bf16_tflops",),
    ("bfloat16", "tpu"): ("bf16_tflops",),
    ("bfloat16", "cpu"): ("bf16_tflops",),
    ("float16", "gpu"): ("fp16_tflops",),
}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A peak rate of one JAX device. `column` is the catalogue column it was read from."""

    flop_per_s: float
    column: str
    verified: bool


@dataclass(frozen=True, kw_only=True)
class Peak:
    """One catalogue row, as seen by one JAX device.

    Attributes:
      name: the catalogue row.
      kind: gpu | tpu | cpu.
      unverified_fields: the row's columns that no source confirmed.
      tflops: (column, peak of one JAX device in 1e12 FLOP/s); already divided by how many devices share the row.
    """

    name: str
    kind: str
    unverified_fields: frozenset[str]
    tflops: tuple[tuple[str, float], ...]

    def rate(self, dtype: str) -> Rate | None:
        """The peak at which matrix products of `dtype` ("float32", "bfloat16", ...) run by default; None: unknown."""
        known = dict(self.tflops)
        if dtype == "float32" and self.name.startswith("AMD") and "tf32_tflops" in known:
            return None  # no source says whether XLA uses the TF32 units of this part by default
        for column in _COLUMNS.get((dtype, self.kind), ()):
            if column in known:
                verified = column not in self.unverified_fields
                return Rate(flop_per_s=known[column] * 1e12, column=column, verified=verified)
        return None


def find(device_kind: str) -> Peak | None:
    """The peak of what ``jax.Device.device_kind`` prints, or None: `why_not` then has the reason."""
    entry = _kinds().get(_normal(device_kind))
    if entry is None or not entry["name"]:
        return None
    return _peak(_rows()[entry["name"]], share=int(entry["devices_per_row"]))


def why_not(device_kind: str) -> str:
    """Why `find` returned None, as the end of a sentence."""
    if re.search(r"\bMIG\b", device_kind):
        return f"'{device_kind}' is a slice of a GPU, and the catalogue has whole ones"
    entry = _kinds().get(_normal(device_kind))
    if entry is not None and entry["reason"]:
        return entry["reason"]
    return f"the device kind '{device_kind}' is not in the hardware catalogue"


def _normal(device_kind: str) -> str:
    """Older drivers print "A100-SXM4-40GB" and "GeForce GTX 1080" without their maker."""
    text = " ".join(device_kind.split()).casefold()
    return text.removeprefix("nvidia ")


def _peak(row: dict[str, str], *, share: int) -> Peak:
    return Peak(
        name=row["name"],
        kind=row["kind"],
        unverified_fields=frozenset(filter(None, row["unverified_fields"].split(";"))),
        tflops=tuple((c, float(value) / share) for c, value in row.items() if c.endswith("_tflops") and value),
    )


def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("jaxbench.catalog").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@functools.cache
def _rows() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in _read("hardware.csv")}


@functools.cache
def _kinds() -> dict[str, dict[str, str]]:
    return {_normal(row["device_kind"]): row for row in _read("device_kinds.csv")}

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Peaks of known devices, per JAX device; their links, and the shares of their peaks that programs have reached.

``hardware.csv`` has one row per chip, board or die, in the units of its column names, with its sources and the fields
that no source confirmed. ``device_kinds.csv`` maps each ``jax.Device.device_kind`` to a row and to the number of JAX
devices that share it (a TPU v3 chip is two). An unlisted kind is unknown: there is no fuzzy matching, because a wrong
peak is worse than none.

For forecasts, ``links.csv`` has alpha and bytes per second of one device on one link, ``pcie.csv`` the rates of PCIe,
``ceilings.csv`` clocks and the shares of the peaks that large products, attention and memory have reached, and
``forecast_errors.csv`` the bands of forecasts by family of programs.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

from jaxbench.catalog import rows

# The column that bounds a matrix product at XLA's default precision. For float32 this is TF32 on GPUs that have it, and
# bfloat16 passes on TPUs (documentation of jax.lax.Precision.DEFAULT).
_COLUMNS = {
    ("float32", "gpu"): ("tf32_tflops", "fp32_tflops"),
    ("float32", "tpu"): ("bf16_tflops",),
    ("float32", "cpu"): ("fp32_tflops",),
    ("bfloat16", "gpu"): ("bf16_tflops",),
    ("bfloat16", "tpu"): ("bf16_tflops",),
    ("bfloat16", "cpu"): ("bf16_tflops",),
    ("float16", "gpu"): ("fp16_tflops",),
    ("float8_e4m3fn", "gpu"): ("fp8_tflops",),
    ("float8_e5m2", "gpu"): ("fp8_tflops",),
}
# From this NVLink generation on, the switch between GPUs can reduce the data that passes through it.
_NVLINK_THAT_REDUCES = 4


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A peak rate of one JAX device. `column` is the catalogue column it was read from."""

    flop_per_s: float
    column: str
    verified: bool


@dataclass(frozen=True, kw_only=True)
class Link:
    """The interconnect of one catalogue row, all its lanes together.

    Attributes:
      catalogued_bytes_per_s: the catalogue's number, in the direction that `direction` names.
      direction: "bidirectional" if that number is the sum of both ways, "unidirectional" if it is one way.
      is_pcie: the link leads to the host, and to other devices only through it.
      reduces_in_network: the switch can reduce, so a device sends its part once instead of twice.
      devices: the number of JAX devices that share it. The link between two devices of one chip is not catalogued.
      note: the catalogue's description.
    """

    catalogued_bytes_per_s: float
    direction: str
    is_pcie: bool
    reduces_in_network: bool
    devices: int
    note: str
    verified: bool

    @property
    def unidirectional_bytes_per_s(self) -> float:
        """One way."""
        return self.catalogued_bytes_per_s / (2 if self.direction == "bidirectional" else 1)


@dataclass(frozen=True, kw_only=True)
class Peak:
    """One catalogue row, as seen by one JAX device.

    Attributes:
      name: the catalogue row.
      kind: gpu | tpu | cpu.
      unverified_fields: the row's columns that no source confirmed.
      tflops: (column, peak of one JAX device in 1e12 FLOP/s); already divided by the number of devices in the row.
      memory_bytes_per_s: of one JAX device's memory; None: unknown.
      memory_bytes: of one JAX device; None: unknown.
      link: to other devices or to the host; None: unknown.
    """

    name: str
    kind: str
    unverified_fields: frozenset[str]
    tflops: tuple[tuple[str, float], ...]
    memory_bytes_per_s: float | None = None
    memory_bytes: int | None = None
    link: Link | None = None

    @property
    def memory_verified(self) -> bool:
        return "mem_bw_gbps" not in self.unverified_fields

    def rate(self, dtype: str) -> Rate | None:
        """The peak at which matrix products of `dtype` ("float32", "bfloat16", ...) run by default; None: unknown."""
        known = dict(self.tflops)
        if dtype == "float32" and self.kind == "gpu" and self._matrix_units_unknown(known):
            return None
        if dtype == "float16" and known.get("fp16_tflops", math.inf) < known.get("fp32_tflops", 0.0):
            return None  # libraries then multiply in float32, and no source has this rate of the part
        for column in _COLUMNS.get((dtype, self.kind), ()):
            if column in known:
                verified = column not in self.unverified_fields
                return Rate(flop_per_s=known[column] * 1e12, column=column, verified=verified)
        return None

    def _matrix_units_unknown(self, known: dict[str, float]) -> bool:
        """Whether float32 products may run on units that the row has no rate for. Then `fp32_tflops` is no bound.

        NVIDIA parts with bfloat16 units also have TF32 units, which XLA uses by default. For AMD parts with matrix
        units, no source says which of them XLA uses, nor their rate in float32.
        """
        if self.name.startswith("AMD"):
            return "bf16_tflops" in known
        return "bf16_tflops" in known and "tf32_tflops" not in known


def find(device_kind: str) -> Peak | None:
    """The peak of a ``jax.Device.device_kind``; None if it is unknown, for the reason that `why_not` gives."""
    entry = _rows_by_kind().get(_normal(device_kind))
    if entry is None or not entry["name"]:  # listed without a row: known to be ambiguous, with its reason
        return None
    return _peak(_rows_by_name()[entry["name"]], share=int(entry["devices_per_row"]))


def names() -> tuple[str, ...]:
    """All rows of the catalogue."""
    return tuple(_rows_by_name())


def why_not(device_kind: str) -> str:
    """The reason why `find` returned None, as a clause."""
    if re.search(r"\bMIG\b", device_kind):
        return f"'{device_kind}' is a MIG slice of a GPU, and the catalogue has only whole GPUs"
    entry = _rows_by_kind().get(_normal(device_kind))
    if entry is not None and entry["reason"]:
        return entry["reason"]
    return f"the device kind '{device_kind}' is not in the hardware catalogue"


def _normal(device_kind: str) -> str:
    """The device kind without the maker's name: older drivers print "A100-SXM4-40GB" and "GeForce GTX 1080"."""
    text = " ".join(device_kind.split()).casefold()
    return text.removeprefix("nvidia ")


def _peak(row: dict[str, str], *, share: int) -> Peak:
    """The peaks of one row of the catalogue. share: the devices that share them."""
    memory = row["mem_bw_gbps"]
    return Peak(
        name=row["name"],
        kind=row["kind"],
        unverified_fields=_unverified(row),
        tflops=tuple((c, float(value) / share) for c, value in row.items() if c.endswith("_tflops") and value),
        memory_bytes_per_s=float(memory) * 1e9 / share if memory else None,
        memory_bytes=round(float(row["mem_gib"]) * 2**30 / share) if row["mem_gib"] else None,
        link=_link(row, share=share),
    )


def _unverified(row: dict[str, str]) -> frozenset[str]:
    """The fields of a row that no second source confirms."""
    return frozenset(filter(None, row["unverified_fields"].split(";")))


def _link(row: dict[str, str], *, share: int) -> Link | None:
    """The row's link; None if the catalogue does not state its direction: the number may be twice too large."""
    value, note = row["interconnect_GBps_per_device"], row["interconnect_note"]
    direction = re.search(r"\b(bidirectional|unidirectional)\b", note)
    if not value or direction is None:
        return None
    nvlink = re.match(r"NVLink (\d+)", note)
    return Link(
        catalogued_bytes_per_s=float(value) * 1e9,
        direction=direction[1],
        is_pcie=note.startswith("PCIe"),
        reduces_in_network=nvlink is not None and int(nvlink[1]) >= _NVLINK_THAT_REDUCES,
        devices=share,
        note=note,
        verified=_unverified(row).isdisjoint({"interconnect_GBps_per_device", "interconnect_note"}),
    )


@functools.cache
def _rows_by_name() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in rows("hardware.csv")}


@functools.cache
def _rows_by_kind() -> dict[str, dict[str, str]]:
    return {_normal(row["device_kind"]): row for row in rows("device_kinds.csv")}


@dataclass(frozen=True, kw_only=True)
class KnownLink:
    """A link of one device.

    alpha_s: seconds per message; for "ici", per hop. bytes_per_s: the rate at which one device sends; for "ici", one
    direction of one link. ring: a side of a TPU slice is a ring if its length is a multiple of this number of chips.
    pod: the chips of the largest slice. ring and pod are 0 without a torus. grade: measured | published | derived |
    assumed.
    """

    alpha_s: float
    bytes_per_s: float
    ring: int
    pod: int
    grade: str
    source: str


@dataclass(frozen=True)
class ForecastBand:
    """What published runs of a family of programs took, over their forecasts.

    low, high: the ends of the band in which nine in ten further runs are expected. runs: how many runs it is from.
    kernel_s: the shortest mean kernel of all published runs on a GPU; 0: a TPU. A program with shorter kernels has a
    bound instead of a band. rest: the mean share of their forecasts that is not large products.
    """

    family: str
    low: float
    high: float
    runs: int
    kernel_s: float
    rest: float
    source: str


@dataclass(frozen=True)
class PartRange:
    """How long a part of a step took in published measurements of single kernels and messages, over what a forecast
    counts for it."""

    fastest: float
    slowest: float
    source: str


def link(device: str, name: str, kind: str = "") -> KnownLink | None:
    """The link of a row of hardware.csv; None: unknown. kind: a collective, which may have a row of its own."""
    found = [row for row in rows("links.csv") if (row["device"], row["link"]) == (device, name)]
    for wanted in (kind, ""):  # a row for this kind counts before the row for all kinds
        for row in found:
            if row["kinds"] == wanted:
                return KnownLink(
                    alpha_s=float(row["alpha_s"]),
                    bytes_per_s=float(row["bytes_per_s"] or 0),
                    ring=int(row["ring"] or 0),
                    pod=int(row["pod"] or 0),
                    grade=row["grade"],
                    source=row["source"],
                )
    return None


@functools.cache
def pcie(quantity: str) -> float:
    """A number of pcie.csv: bytes per second of a lane, shares of it that collectives reach, and limits of a host."""
    return next(float(row["value"]) for row in rows("pcie.csv") if row["quantity"] == quantity)


def ceiling(device: str, quantity: str) -> float | None:
    """clock_hz of a TPU; product_share, attention_share, memory_share of a GPU; None: unknown."""
    values = [row["value"] for row in rows("ceilings.csv") if (row["device"], row["quantity"]) == (device, quantity)]
    return float(values[0]) if values else None


def forecast_band(family: str) -> ForecastBand:
    """The band of a family: tpu, xla_remat, xla (both XLA on GPUs), torch_compiled or torch_eager."""
    # Exactly one: a family without a band, or with two, is a mistake in the file.
    (row,) = (row for row in rows("forecast_errors.csv") if row["family"] == family)
    low, high, kernel_s, rest = (float(row[name]) for name in ("low", "high", "kernel_s", "rest"))
    return ForecastBand(family, low, high, int(row["runs"]), kernel_s, rest, row["source"])


def part_range(platform: str, part: str) -> PartRange:
    """The range of a part of a step that is no large product. platform: gpu | tpu. part: memory | attention |
    messages."""
    (row,) = (row for row in rows("slow_parts.csv") if (row["platform"], row["part"]) == (platform, part))
    return PartRange(float(row["fastest"]), float(row["slowest"]), row["source"])

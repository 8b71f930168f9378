# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a forecast knows of hardware beyond its peaks: links, ceilings and the method's own errors, each with a source.

``links.csv``: alpha and bytes per second of one device on one link. ``ceilings.csv``: clocks, and the shares of the
peaks that large products, attention and memory have reached. ``forecast_errors.csv``: how wrong forecasts of a family
of hardware were.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, kw_only=True)
class KnownLink:
    """alpha_s: of one message; of "ici", of one hop. bytes_per_s: that one device sends; of "ici", one way of one link.

    ring: a side of a TPU slice of a multiple of so many chips is a ring; pod: chips of the largest slice; 0 without
    a torus. grade: measured | published | derived | assumed.
    """

    alpha_s: float
    bytes_per_s: float
    ring: int
    pod: int
    grade: str
    source: str


@dataclass(frozen=True)
class MethodError:
    """error: relative, as a share of the forecast. ends: both (of a band from everything hidden to nothing hidden) |
    slow (of a band that begins where everything is hidden: no published run was faster). kernel_s: the shortest mean
    kernel of the published runs; a program with shorter ones has a bound instead of a band."""

    error: float
    ends: str
    kernel_s: float
    source: str


def find(device: str, link: str, kind: str = "") -> KnownLink | None:
    """The link of a row of hardware.csv, for a kind of collective if it has a row of its own; None: unknown."""
    rows = [row for row in _read("links.csv") if (row["device"], row["link"]) == (device, link)]
    for wanted in (kind, ""):
        for row in rows:
            if row["kinds"] == wanted:
                return KnownLink(
                    alpha_s=float(row["alpha_s"]), bytes_per_s=float(row["bytes_per_s"] or 0),
                    ring=int(row["ring"] or 0), pod=int(row["pod"] or 0), grade=row["grade"], source=row["source"],
                )  # fmt: skip
    return None


def ceiling(device: str, quantity: str) -> float | None:
    """clock_hz of a TPU; product_share, attention_share, memory_share of a GPU; None: unknown."""
    values = [row["value"] for row in _read("ceilings.csv") if (row["device"], row["quantity"]) == (device, quantity)]
    return float(values[0]) if values else None


def error(family: str) -> MethodError:
    """Of "tpu" or "gpu"."""
    (row,) = (row for row in _read("forecast_errors.csv") if row["family"] == family)
    return MethodError(float(row["error"]), row["ends"], float(row["kernel_s"]), row["source"])


@functools.cache
def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("jaxbench.catalog").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))

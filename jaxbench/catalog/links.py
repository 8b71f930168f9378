# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Hardware facts for forecasts, in addition to peaks: links, reached shares of peaks, forecast errors; with sources.

``links.csv``: alpha and bytes per second of one device on one link. ``ceilings.csv``: clocks, and the shares of the
peaks that large products, attention and memory have reached. ``forecast_errors.csv``: the errors of forecasts for a
family of hardware.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib import resources


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
class MethodError:
    """The error of forecasts for a family of hardware.

    error: relative, as a share of the forecast. ends: the ends of the band to which it applies: both, for a band from
    all communication hidden to none hidden; slow, for a band that begins where all is hidden, because no published run
    was faster. kernel_s: the shortest mean kernel of the published runs. A program with shorter kernels has a bound
    instead of a band.
    """

    error: float
    ends: str
    kernel_s: float
    source: str


def find(device: str, link: str, kind: str = "") -> KnownLink | None:
    """The link of a row of hardware.csv; None: unknown. kind: a collective, which may have a row of its own."""
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
    """The errors of forecasts for "tpu" or "gpu"."""
    (row,) = (row for row in _read("forecast_errors.csv") if row["family"] == family)
    return MethodError(float(row["error"]), row["ends"], float(row["kernel_s"]), row["source"])


@functools.cache
def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("jaxbench.catalog").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))

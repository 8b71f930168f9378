# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a device is compared with, in the order of trust: a card, the forecast, the fleet. Without jax.

A card is the accept.json of an earlier test on devices of this kind: the same probes, so its rates are exact
references. The profile of a machine (machine.json) and published series are of other programs on such devices. The
forecast is from peaks and from the shares of them that programs have reached. These three are bands: they can fail a
device, and pass it only as "plausible".
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from jaxbench.analysis import machine_profile
from jaxbench.catalog import hardware, published
from jaxbench.errors import UserError, present
from jaxbench.features.accept import outcome
from jaxbench.features.accept.outcome import Acceptance
from jaxbench.features.accept.probes import PROBES
from jaxbench.records.documents import decode
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.reading import read_json

CARD, FORECAST, FLEET = "card", "forecast", "fleet"
KINDS = (CARD, FORECAST, FLEET)
# The lower ends of bands, as a share of the number that they are made from. A profile has the best of many shapes, and
# a published series another program on other hosts: 0.8 is what "is this normal?" of reports calls low.
OF_A_PROFILE = 0.8
OF_PUBLISHED = 0.8
PRODUCTS = {"product_bf16": "bfloat16", "product_f32": "float32", "together": "float32"}
TRANSFERS = {"copy_in": "h2d", "copy_out": "d2h"}


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A rate to compare with. band: it is the lower end of a wide band. source: a clause."""

    rate: float
    source: str
    band: bool


@dataclass(frozen=True)
class Asked:
    """--against as typed: its kind, "" for all in the order of trust, and the file of a card."""

    kind: str = ""
    file: Path | None = None


def asked(text: str) -> Asked:
    """The value of --against: card:FILE, forecast, fleet or "". Raises UserError."""
    kind, colon, file = text.partition(":")
    if not text:
        return Asked()
    if kind not in KINDS or (kind == CARD) != bool(file) or (colon and kind != CARD):
        raise UserError(f"--against={text} is no reference: use card:FILE, forecast or fleet.")
    return Asked(kind, Path(file).expanduser() if file else None)


class References:
    """The references of one test. Each is by (probe, kind of device, devices of the group)."""

    def __init__(self, asked: Asked):
        """Raises UserError for a card that cannot be read."""
        self.asked = asked
        self._card: Acceptance | None = None
        self._profile: MachineProfile | None = None
        if asked.file is not None:
            self._read(asked.file)

    @property
    def fleet(self) -> bool:
        """Whether units may be compared with the fleet."""
        return self.asked.kind != FORECAST

    @property
    def sentences(self) -> tuple[str, ...]:
        """The references in the order of trust."""
        card = f"card {self.asked.file}" if self.asked.file else ""
        forecast = "forecast and published series" if self.asked.kind in ("", FORECAST, CARD) else ""
        return tuple(filter(None, (card, forecast, "the other devices of this test" if self.fleet else "")))

    def of(self, probe: str, kind: str, count: int) -> Reference | None:
        """The most trusted reference of a probe except the fleet; None without one.

        kind: of the devices. count: of the devices that take part, in a probe of several.
        """
        if self._card is not None and (rate := _median_rate(self._card, probe, kind)) is not None:
            return Reference(rate=rate, source=f"card {self.asked.file}", band=False)
        if self._profile is not None and (rate := _of_profile(self._profile, probe, kind, count)) is not None:
            source = f"profile {self.asked.file}, {100 * OF_A_PROFILE:.0f} % of its peak or more"
            return Reference(rate=OF_A_PROFILE * rate, source=source, band=True)
        if self.asked.kind == FLEET:
            return None
        return forecast(probe, kind, count)

    def refuse(self, kinds: Sequence[str]) -> None:
        """Raises UserError for a card of another kind of device."""
        if self._card is not None:
            known = {kind for host in self._card.hosts for kind in host.kinds}
            if other := sorted({*kinds} - known):
                raise UserError(
                    f"--against=card:{self.asked.file} is of {', '.join(sorted(known)) or 'no device'}, and this "
                    f"machine has {', '.join(other)}: name a card of this kind of device, or use --against=fleet."
                )
        if self._profile is not None and (kind := self._profile["machine"].get("device_kind", "")) not in kinds:
            raise UserError(
                f"--against=card:{self.asked.file} is of {kind or 'no device'}, and this machine has "
                f"{', '.join(sorted({*kinds}))}: name a card of this kind of device, or use --against=fleet."
            )

    def _read(self, file: Path) -> None:
        """Reads the file of --against=card:FILE, a machine profile or an earlier acceptance."""
        if not file.exists():
            raise UserError(
                f"--against=card:{file} names no file: use the accept.json of an earlier test, for example."
            )
        fields = read_json(file, partial(decode, dict[str, object]), "name another file.")
        if "peaks" in fields:
            self._profile = machine_profile.read(file)
        elif "cells" in fields:
            self._card = outcome.read(file)
        else:
            raise UserError(f"--against=card:{file} is neither an accept.json nor a machine.json: name one of these.")


def _median_rate(card: Acceptance, probe: str, kind: str) -> float | None:
    """The median rate of the units of a card that passed or were not judged."""
    kinds = {host.name: {*host.kinds} for host in card.hosts}
    rates = [
        cell.rate
        for cell in card.cells
        if cell.probe == probe and cell.rate and (cell.host == outcome.FLEET or kind in kinds.get(cell.host, ()))
    ]
    return statistics.median(rates) if rates else None


def _of_profile(profile: MachineProfile, probe: str, kind: str, count: int) -> float | None:
    """The rate of a probe in a machine's profile."""
    if probe in PRODUCTS:
        flop = [p for p in profile["peaks"] if (p["quantity"], p["dtype"]) == ("flop_per_s", PRODUCTS[probe])]
        own = [p["value"] for p in flop if p["platform"] != "cpu" or p["cores"] == 1]
        return max(own, default=None)
    if probe == "triad":
        memory = [p for p in profile["peaks"] if (p["quantity"], p["level"]) == ("bytes_per_s", "memory")]
        return max((p["value"] for p in memory if p["platform"] != "cpu" or p["cores"] == 1), default=None)
    if probe in TRANSFERS:
        # By the ends and not by the name of the operation: one of them is the host.
        inward = probe == "copy_in"
        ends = [
            copy for copy in profile["transfers"] if (copy["source"] == "host") == inward != (copy["target"] == "host")
        ]
        return max((copy["value"] for copy in ends), default=None)
    if probe in ("allreduce_256", "hosts_allreduce_256"):
        across = probe.startswith("hosts")
        buses = [
            present(link["bus_bytes_per_s"])
            for link in profile["links"]
            if link["op"] == "all_reduce" and link["devices"] == count and link.get("bus_bytes_per_s")
            if ((link.get("group_hosts") or 1) > 1) == across
        ]
        return max(buses, default=None)
    return None


def forecast(probe: str, kind: str, count: int) -> Reference | None:
    """The lower end of what a device of this kind should reach, from the catalogue; None if it does not know.

    Products: the share of the peak that large products reach. Triad: the share of the memory's rate that kernels reach.
    Both over the band of forecasts of XLA's programs. All-reduce: the published series of such a node, if there is one.
    """
    peak = hardware.find(kind)
    if peak is None:
        return None
    slowest = (
        hardware.forecast_band("xla" if peak.kind == "gpu" else "tpu").high if peak.kind in ("gpu", "tpu") else 1.0
    )
    if probe in PRODUCTS:
        rate, share = peak.rate(PRODUCTS[probe]), hardware.ceiling(peak.name, "product_share")
        return _forecast(rate.flop_per_s * share / slowest, "products") if rate and share else None
    if probe == "triad":
        memory, share = peak.memory_bytes_per_s, hardware.ceiling(peak.name, "memory_share")
        return _forecast(memory * share / slowest, "memory") if memory and share else None
    if probe in ("allreduce_1", "allreduce_256") and (column := published.allreduce_column(kind, count)):
        series = published.allreduce()[column]
        size = 2**20 * int(PROBES[probe].name.rpartition("_")[2])
        rate_ = float(np.exp(np.interp(np.log(size), np.log(series.index), np.log(series))))
        return Reference(rate=OF_PUBLISHED * rate_, source=f"published series {column}, 80 % or more", band=True)
    return None


def _forecast(rate: float, what: str) -> Reference:
    """A reference from a forecast: the lower end of its band."""
    return Reference(rate=rate, source=f"forecast: the lower end of the band for {what}", band=True)

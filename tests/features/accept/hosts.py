# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Hosts with fabricated rounds: a healthy fleet with noise, to which a test gives one fault."""

from __future__ import annotations

import numpy as np

from jaxbench.features.accept.verdicts import Measured

RATES = {"product_f32": 1e12, "triad": 1e10, "gpt": 50.0, "allreduce_256": 5e9}


def fleet(count: int, *, devices: int = 2, rounds: int = 24, noise: float = 0.01, seed: int = 0) -> list[Measured]:
    """Hosts "h0", "h1", ... with as many devices each. noise: standard deviation of a round, relative."""
    random = np.random.default_rng(seed)
    hosts = []
    for number in range(count):
        host = Measured(name=f"h{number}", kinds=("chip",) * devices, processor="p", software={"jaxlib": "1"})
        for probe in RATES:
            units = ("all",) if probe.startswith("allreduce") else tuple(map(str, range(devices)))
            host.units[probe], host.amounts[probe] = units, RATES[probe]
            host.seconds[probe] = {r: tuple(np.exp(noise * random.standard_normal(len(units)))) for r in range(rounds)}
        hosts.append(host)
    return hosts


def slow(host: Measured, probe: str, unit: int, share: float) -> None:
    """Makes one unit as fast as this share of itself."""
    for number, seconds in host.seconds[probe].items():
        host.seconds[probe][number] = tuple(s / share if at == unit else s for at, s in enumerate(seconds))

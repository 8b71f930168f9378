# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The keys of `machine.json`, the profile of a machine: its peaks, launch costs, links and transfers.

As in `records.manifest`, these are types of dictionaries: every key may be absent.
"""

from __future__ import annotations

from typing import TypedDict

from jaxbench.records.documents import AtLeastOne, Count, Finite, NonNegative
from jaxbench.records.manifest import Machine


class Rate(TypedDict, total=False):
    """A number of the profile with its interval, and the point of the run that measured it."""

    value: NonNegative
    lo: Finite | None
    hi: Finite | None
    rounds: Count
    point: str
    run: str
    op: str


class Peak(Rate, total=False):
    """The highest rate of a kernel."""

    quantity: str  # flop_per_s | bytes_per_s
    dtype: str
    platform: str
    cores: Count | None  # of a CPU
    level: str  # memory | cache, for a rate in bytes
    impl: str
    shape: str
    elements: Count | None
    again: Finite | None  # the rate on the rounds that did not select this row
    note: str  # which rounds selected and which measured


class LaunchCost(Rate, total=False):
    """Seconds of a call of a program that does nothing."""

    impl: str
    platform: str
    cores: Count | None


class CopyRate(Rate, total=False):
    """Bytes per second of a copy, at its largest payload."""

    source: str
    target: str
    payload_bytes: Count


class LinkFit(TypedDict, total=False):
    """Latency (alpha) and bandwidth (beta) of a collective over `devices` devices."""

    op: str
    dtype: str
    devices: AtLeastOne
    mesh: str
    axis: str
    oversubscribed: bool
    group_processes: AtLeastOne | None
    group_hosts: AtLeastOne | None
    alpha_s: NonNegative
    alpha_s_lo: Finite | None
    alpha_s_hi: Finite | None
    beta_bytes_per_s: NonNegative
    beta_bytes_per_s_lo: Finite | None
    beta_bytes_per_s_hi: Finite | None
    bus_bytes_per_s: Finite | None  # beta as bus bandwidth; None on one device
    misfit: float  # the largest relative error of the line; absent in older profiles
    run: str


class MachineProfile(TypedDict, total=False):
    """The keys of `machine.json`."""

    schema: int
    made: str
    made_of: list[str]  # when the runs that it was made from were started
    machine: Machine
    faster: (
        float  # in memory only: by how much the machine was faster in a run than for this profile, if more than noise
    )
    peaks: list[Peak]
    launch: list[LaunchCost]
    links: list[LinkFit]
    transfers: list[CopyRate]
    sha256: str

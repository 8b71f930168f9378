# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The keys of `manifest.json`, so that a type checker finds a misspelled one.

These are types of dictionaries, not classes that decode: a manifest is kept as it was read, with keys of older
versions. So every key may be absent, and `get` is right where older manifests lack one.
"""

from __future__ import annotations

from typing import Any, TypedDict

from jaxbench.records.documents import JsonObject


class Git(TypedDict, total=False):
    """The checkout that the package runs from; {} for an installed wheel. ref: of another commit, as in `ab`."""

    commit: str
    dirty: bool
    ref: str


class Machine(TypedDict, total=False):
    """A machine, as `machine.manifest.probe` describes it.

    hosts: of the processes of a launch. free_cores: the cores that nothing else uses, first. cpu_quota: the number of
    cores that a container may use. identity: see `records.identity`.
    """

    platform: str
    device_kind: str
    devices: int
    processes: int
    device_kinds: list[str]
    platform_version: str
    cores: int
    cpu_quota: float | None
    affinity: bool
    cpu_model: str
    identity: dict[str, Any]
    memory_bytes: int | None
    device_memory_bytes: int | None
    cache_bytes: int | None
    os: str
    python: str
    versions: dict[str, str]
    source_sha256: str
    git: Git
    environment: dict[str, str]
    free_cores: list[int]
    hosts: list[str]


class LookEntry(TypedDict):
    """A look at the intervals after `rounds` rounds. point, half_width: the widest interval, and half of its width."""

    rounds: int
    ended: str
    point: str
    half_width: float
    spent_s: float


class Auto(TypedDict, total=False):
    """The rounds of a run with measure.rounds=auto. ended: why they ended; "": they have not.

    rounds_each: of each process, in older plans, where processes ran in sequence.
    """

    budget_s: float
    ended: str
    looks: list[LookEntry]
    rounds_each: int


class PlannedPoint(TypedDict, total=False):
    """The fields that all points have; those of a step or a case are as in its record."""

    point: str
    rounds: int
    devices: int
    processes: int
    oversubscribed: bool


class Plan(TypedDict, total=False):
    """What a run is asked to measure."""

    measures: str
    view: str
    experiment: str
    platform: str
    processes: int
    rounds: int
    blocks: int
    sets: int
    auto: Auto
    swept: list[str]
    compiler_sets: dict[str, tuple[str, str]]
    left_out: list[str]
    devices: list[int]
    models: dict[str, JsonObject]
    points: list[PlannedPoint]


class Session(TypedDict, total=False):
    """One start of a run."""

    started: str
    command: list[str]
    git: Git
    shared_with: str | list[str]


class Surroundings(TypedDict, total=False):
    """Of a worker: the CPUs that it may use, its variables, and its processes and hosts if there are several."""

    cpus: list[int] | None
    environment: dict[str, str]
    processes: int
    hosts: list[str]


class Manifest(Machine, total=False):
    """workers: the CPUs and variables of each process, by its name in records. target: of a run that only compiles."""

    started: str
    command: list[str]
    shared_with: str | list[str]
    experiment_file: str
    experiment_sha256: str | dict[str, str]
    config_sha256: str
    plan: Plan
    sessions: list[Session]
    workers: dict[str, Surroundings]
    target: str
    waiting: list[str]  # sentences about the jobs of a launch that have not ended
    apart: list[str]  # sentences about the machines of its jobs that differ


class Rate(TypedDict, total=False):
    """A number of the profile with its interval, and the point of the run that measured it."""

    value: float
    lo: float | None
    hi: float | None
    rounds: int
    point: str
    run: str
    op: str


class Peak(Rate, total=False):
    """The highest rate of a kernel, in FLOP/s or bytes/s (`quantity`), on `cores` cores of a CPU.

    level: of memory, for a rate in bytes. again: the rate on the rounds that did not select this row.
    """

    quantity: str
    dtype: str
    platform: str
    cores: int | None
    level: str
    impl: str
    shape: str
    elements: int | None
    again: float
    note: str


class LaunchCost(Rate, total=False):
    """Seconds of a call of a program that does nothing."""

    impl: str
    platform: str
    cores: int | None


class CopyRate(Rate, total=False):
    """Bytes per second of a copy, at its largest payload."""

    source: str
    target: str
    payload_bytes: int


class LinkFit(TypedDict, total=False):
    """Latency (alpha) and bandwidth (beta) of a collective over `devices` devices.

    bus_bytes_per_s: beta as bus bandwidth. misfit: the largest relative error of the line; absent in older profiles.
    """

    op: str
    dtype: str
    devices: int
    mesh: str
    axis: str
    oversubscribed: bool
    group_processes: int | None
    group_hosts: int | None
    alpha_s: float
    alpha_s_lo: float | None
    alpha_s_hi: float | None
    beta_bytes_per_s: float
    beta_bytes_per_s_lo: float | None
    beta_bytes_per_s_hi: float | None
    bus_bytes_per_s: float | None
    misfit: float
    run: str


class MachineProfile(TypedDict, total=False):
    """The keys of `machine.json`. made_of: when the runs that it was made from were started."""

    schema: int
    made: str
    made_of: list[str]
    machine: Machine
    peaks: list[Peak]
    launch: list[LaunchCost]
    links: list[LinkFit]
    transfers: list[CopyRate]
    sha256: str

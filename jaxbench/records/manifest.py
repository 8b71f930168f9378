# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The keys of `manifest.json`, so that a type checker finds a misspelled one.

These are types of dictionaries, not classes that decode: a manifest is kept as it was read, with keys of older
versions. So every key may be absent, and `get` is right where older manifests lack one.

Then come the files that `sweep.studies` leaves in a run folder, and that reports read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from jaxbench.records.documents import AtLeastOne, Count, Finite, JsonObject, NonNegative, Positive


class Git(TypedDict, total=False):
    """The checkout that the package runs from; {} for an installed wheel."""

    commit: str
    dirty: bool  # files differ from the commit, so it does not say what was measured
    ref: str  # of another commit, as in `ab`


class Machine(TypedDict, total=False):
    """A machine, as `machine.manifest.probe` describes it."""

    platform: str
    device_kind: str
    devices: AtLeastOne
    processes: AtLeastOne
    device_kinds: list[str]
    platform_version: str
    cores: Count  # 0: of absent hardware
    cpu_quota: Positive | None  # the number of cores that a container may use
    allowed_cpus: AtLeastOne  # logical CPUs that the parent process may use
    cpus: AtLeastOne  # logical CPUs of the machine
    affinity: bool
    cpu_model: str
    identity: dict[str, Any]  # see `records.identity`
    memory_bytes: Count | None
    device_memory_bytes: Count | None
    cache_bytes: Count | None  # of the processor's last-level cache
    os: str
    python: str
    versions: dict[str, str]
    source_sha256: str
    git: Git
    environment: dict[str, str]  # variables that change speed
    free_cores: list[int]  # the least loaded ones first
    hosts: list[str]  # of the processes of a launch


class LookEntry(TypedDict):
    """A look at the intervals after `rounds` rounds."""

    rounds: Count
    ended: str  # why the run ended at this look; "": it went on
    point: str  # the one with the widest interval
    half_width: float | None  # of that interval
    spent_s: NonNegative  # on rounds, compiling excluded


class Auto(TypedDict, total=False):
    """The rounds of a run with measure.rounds=auto."""

    budget_s: Positive
    ended: str  # why they ended; "": they have not
    looks: list[LookEntry]
    rounds_each: Count  # of each process, in older plans, where processes ran in sequence


class PlannedPoint(TypedDict, total=False):
    """The fields that all points have; those of a step or a case are as in its record."""

    point: str
    rounds: Count
    devices: AtLeastOne
    processes: AtLeastOne
    oversubscribed: bool


class Plan(TypedDict, total=False):
    """What a run is asked to measure."""

    measures: str  # cases | levers | compiled | absent: steps over device counts
    view: str  # of cases
    experiment: str
    platform: str
    processes: AtLeastOne  # that own the devices of a point; the most of any point
    rounds: Count
    blocks: AtLeastOne
    sets: AtLeastOne  # of worker processes; absent in older plans
    auto: Auto
    swept: list[str]  # levers with several values
    compiler_sets: dict[str, tuple[str, str]]  # (options, source) by name
    left_out: list[str]  # sentences
    devices: list[AtLeastOne]
    models: dict[str, JsonObject]
    points: list[PlannedPoint]


class Session(TypedDict, total=False):
    """One start of a run."""

    started: str
    command: list[str]
    git: Git
    shared_with: str | list[str]
    identity: JsonObject  # of the machine as it was then, with its speed; absent in older runs


class Surroundings(TypedDict, total=False):
    """Of a worker."""

    cpus: list[int] | None  # that it may use
    environment: dict[str, str]
    processes: AtLeastOne  # of a world; absent for one
    hosts: list[str]  # of each process, if there are several


class Manifest(Machine, total=False):
    """What was measured, with what, and where."""

    started: str
    command: list[str]
    shared_with: str | list[str]
    experiment_file: str
    experiment_sha256: str | dict[str, str]
    config_sha256: str
    plan: Plan
    sessions: list[Session]
    workers: dict[str, Surroundings]  # by their names in records
    target: str  # of a run that only compiles
    waiting: list[str]  # sentences about the jobs of a launch that have not ended
    apart: list[str]  # sentences about the machines of its jobs that differ


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


SEARCH, LONGEST, REMAT_LAW = "search.json", "longest.json", "remat_law.json"


@dataclass(frozen=True, kw_only=True)
class CompiledBatch:
    """One batch that was compiled."""

    batch: AtLeastOne
    peak_bytes: float  # predicted for one device
    refused: str = ""  # the compiler's message if it does not fit


@dataclass(frozen=True, kw_only=True)
class TriedBatch:
    """One batch that was run."""

    batch: AtLeastOne
    ok: bool
    reason: str = ""
    peak_bytes: float | None = None  # the predicted memory; None: unknown
    measured_bytes: float | None = None  # in use while it ran; None: unknown


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search for the largest batch, in search.json."""

    schema: Literal[1] = 1
    point: str = ""  # what was compiled, with other batches
    levers: dict[str, str] = field(default_factory=dict)
    limit_bytes: Positive  # the memory of a device
    limit_source: str
    step: AtLeastOne = 1  # batches are multiples of it
    tried: tuple[CompiledBatch, ...]  # by batch, ascending
    predicted: Count  # the largest batch that should fit by the prediction
    proven: tuple[TriedBatch, ...]  # the batches that were run
    largest: Count  # the largest batch that ran; 0 if none did
    error: float | None = None  # predicted / measured memory - 1 for the largest batch that ran; None: not measured


@dataclass(frozen=True, kw_only=True)
class LongestOn:
    """The longest sequence on one device count."""

    devices: AtLeastOne
    longest: Count
    tried: tuple[tuple[int, float], ...]  # (length, peak bytes of a device), ascending


@dataclass(frozen=True, kw_only=True)
class Longest:
    """The longest sequence that fits a device, by device count, in longest.json."""

    schema: Literal[1] = 1
    limit_bytes: Count
    limit_source: str
    rows: tuple[LongestOn, ...]


@dataclass(frozen=True, kw_only=True)
class Depth:
    """The scratch memory of a step with this number of blocks."""

    remat: str
    blocks: AtLeastOne
    temp_bytes: float | None  # None: it does not fit, or nothing is known


@dataclass(frozen=True, kw_only=True)
class Depths:
    """Memory over the number of blocks, in remat_law.json."""

    schema: Literal[1] = 1
    rows: tuple[Depth, ...]

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The keys of `manifest.json`, so that a type checker finds a misspelled one.

These are types of dictionaries, not classes that decode: a manifest is kept as it was read, with keys of older
versions. So every key may be absent, and `get` is right where older manifests lack one.
"""

from __future__ import annotations

from typing import Any, TypedDict

from jaxbench.records.documents import AtLeastOne, Count, JsonObject, NonNegative, Positive


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
    """The fields that are read here. The others are as in the record of the step or the case."""

    point: str
    rounds: Count
    devices: AtLeastOne
    processes: AtLeastOne
    oversubscribed: bool
    strategy: str  # this and the following: of a step
    scaling: str
    global_batch: Count
    arm: str
    explains: str


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
    idle_w: dict[str, NonNegative]  # the power of each GPU before anything ran; absent where it is not known
    processes: AtLeastOne  # of a world; absent for one
    hosts: list[str]  # of each process, if there are several


class ReleaseEntry(TypedDict, total=False):
    """The environment of an arm of `ab` that is a release."""

    asked: str  # its pins: "jax==0.10.0 flax==0.12.6"
    environment: str  # its name in the cache
    packages: dict[str, str]  # the version of each package


class PreparedPoint(TypedDict, total=False):
    """One point in one set of processes. import_s and backend_s stand at the first point of each process."""

    point: str
    set: Count
    cache: str  # hit: all programs were loaded; miss: all were compiled; mixed; "": there were none
    compiled: Count
    loaded: Count
    programs: Count  # compiled and loaded
    names: list[str]  # of the compiled programs; absent in older runs
    import_s: NonNegative
    backend_s: NonNegative
    trace_s: NonNegative
    lower_s: NonNegative
    tune_s: NonNegative | None  # None: the compiler does not tell tuning from compiling
    compile_s: NonNegative
    load_s: NonNegative
    first_run_s: NonNegative


class Preparation(TypedDict, total=False):
    """`preparation` in `manifest.json`: of the newest start of the run."""

    started: str
    compiled: Count  # programs, in all processes
    loaded: Count
    total_s: NonNegative  # wall time from the settings to the last timed step
    preparation_s: NonNegative  # the part of it in which nothing was measured
    again_s: NonNegative  # the expected wall time of the same command now; equal to total_s if nothing was compiled
    kept: bool  # whether compiled programs outlive the run
    note: str  # why they do not; "": they do
    points: list[PreparedPoint]


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
    preparation: Preparation  # of the newest start; absent in older runs
    workers: dict[str, Surroundings]  # by their names in records
    examples: dict[str, Count]  # of a training: in the splits "train" and "test"; absent in older ones
    target: str  # of a run that only compiles
    waiting: list[str]  # sentences about the jobs of a launch that have not ended
    apart: list[str]  # sentences about the machines of its jobs that differ
    release: ReleaseEntry

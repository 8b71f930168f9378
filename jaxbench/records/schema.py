# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kinds of line in ``records.jsonl``. Units live in the names: ``_s`` seconds, ``_bytes`` bytes.

A *point* is one thing that was asked for: a training step as (strategy, scaling, devices), or a *case*: a kernel, a
transfer or a collective of one size in one place. A run is a sweep over points, measured in rounds that visit every
point once in random order. The life of a point in the file is

    point | case (compiled, weighed, checked)  ->  round 0 .. round R-1  ->  profile     or at any time  ->  failure

A later line about the same point wins: a `point` line written by a resumed run replaces the earlier passport, and a
`round` after a `failure` means that the point has recovered. A failed verdict of an earlier passport stays, as long as
rounds of its session are in use.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1

# The kinds of collective, as XLA names its instructions.
COLLECTIVES = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"),
)


@dataclass(frozen=True, kw_only=True)
class Collective:
    """One kind of collective over one mesh axis in the compiled step, as one device executes it."""

    kind: str  # all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, ...
    count: int  # operands reduced or moved (XLA may combine several into one instruction)
    bytes: int  # sum of the result sizes of all of them
    elements: int = 0  # how many numbers those bytes are, rank-0 values left out
    scalar_bytes: int = 0  # the part of `bytes` that is rank-0 values (the loss and other metrics)
    axis: str = ""  # the mesh axis, "data"; several "data+fsdp"; "" in older records, and where the text does not tell
    group: int = 0  # devices of one group; 0: not known
    scalars: int = 0  # how many rank-0 values
    wire_bytes: int = 0  # what one device sends: docs/METRICS.md
    packed: int = 0  # of `elements`, those that hold two numbers of 16 bits each, filling included


@dataclass(frozen=True, kw_only=True)
class Passport:
    """What the compiler did for a point, each phase on its own clock. None: this strategy cannot tell it apart."""

    trace_s: float | None
    lower_s: float
    compile_s: float
    first_run_s: float
    parameters: int
    flops_per_step: float  # analytic, the whole global batch, forward and backward
    compiler_flops_per_step: float | None  # XLA's own count x devices: a cross-check only
    collectives: tuple[Collective, ...]
    expected_gradient_bytes: int  # closed form of data parallelism: 4 bytes x parameters in float32, 0 on one device
    argument_bytes: int  # the memory_analysis of the compiled step, per device
    output_bytes: int
    temp_bytes: int | None  # None: the step is not compiled as a whole
    alias_bytes: int
    peak_bytes: int | None  # per device: argument + output + temp - alias
    compiler_bytes_per_step: float | None = None  # XLA's own count of bytes read and written x devices
    product_flops_per_step: float | None = None  # products and convolutions in the compiled text x devices
    metrics: int = 1  # scalars that the step returns, the loss among them
    compiler_peak_bytes: int | None = None  # the compiler's own figure of its peak, per device; None: it gives none


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One yes-or-no finding about a point, with the sentence that explains it."""

    name: str  # parameters | collectives | retrace | ...
    ok: bool
    reason: str
    value: float | None = None
    limit: float | None = None
    unchecked: bool = False  # nothing could be found out, so `ok` is False, but nothing is wrong either
    excess_bytes: int | None = 0  # of "collectives": sent by a device beyond the closed form; None: not known


@dataclass(frozen=True, kw_only=True)
class PointRecord:
    point: str  # the id: "strategy/scaling/devices", and "/arm" if there is one
    experiment: str
    strategy: str
    scaling: str  # strong | weak
    devices: int
    processes: int
    platform: str  # cpu | gpu | tpu
    device_kind: str
    oversubscribed: bool
    global_batch: int
    unit: str  # what one example is: "images"
    passport: Passport
    checks: tuple[Verdict, ...]
    worker: str  # names the process that measured it
    arm: str = ""  # what tells it from the run's other settings of levers: "precision=bfloat16"
    levers: dict[str, str] = dataclasses.field(default_factory=dict)  # every lever, also those at their defaults
    outcome: dict[str, float] = dataclasses.field(default_factory=dict)  # what a short training came to
    # what a step shows besides its time: state_bytes and held_gradient_bytes of a device, busy_share, dropped,
    # real_share, tokens of an example
    facts: dict[str, float] = dataclasses.field(default_factory=dict)
    loss: str = ""  # what kind of mean the loss is, as measure/loss_kind.py names it; "" in older records
    kind: str = "point"
    schema: int = SCHEMA_VERSION
    time: str = ""


@dataclass(frozen=True, kw_only=True)
class CompiledRecord:
    """A point that was compiled for hardware that is not here. Nothing was run: it has no time and no result."""

    point: str
    experiment: str
    devices: int
    platform: str  # of the target: gpu | tpu
    device_kind: str
    mesh: dict[str, int]  # devices by axis
    compile_s: float  # tracing, lowering and compiling
    collectives: tuple[Collective, ...]
    checks: tuple[Verdict, ...]  # "collectives" of a step, "implementation" of a case
    peak_bytes: int | None  # per device: argument + output + temp - alias
    compiler_peak_bytes: int | None  # per device, the compiler's own figure
    temp_bytes: int | None
    flops: float | None  # of a step on all devices, or of a call
    product_flops: float | None  # in the compiled text, all devices
    strategy: str = ""  # of a training step; "" and 0 of a case
    scaling: str = ""
    global_batch: int = 0
    parameters: int = 0
    arm: str = ""
    kind: str = "compiled"
    schema: int = SCHEMA_VERSION
    time: str = ""


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """A kernel, a transfer or a collective in one place. What does not apply is None or ""."""

    point: str  # the id
    experiment: str
    family: str  # kernel | transfer | collective
    op: str
    dtype: str
    impl: str  # jit | numpy | python | ...: who does it
    shape: str  # for people: "2048x2048x2048"
    elements: int | None  # the size axis of a kernel
    payload_bytes: int | None  # S of a collective or a transfer
    flops: float | None  # analytic, one call
    bytes_moved: float | None  # analytic, one call: what must be read and written
    devices: int  # participants: 1 for a kernel, n of the group for a collective
    mesh: str  # the mesh a collective runs on: "8", "2x4"
    axis: str  # the mesh axis whose groups take part: "x"
    source: str  # of a transfer: "host", "cpu:0"
    target: str
    platform: str
    device_kind: str
    cores: int  # CPU cores the process may use
    processes: int
    oversubscribed: bool
    resident_bytes: int  # what the case holds at once, all devices together
    zeros: float  # share of the input values that are zero
    wrong: int | None  # result values that are not right; None: the answer is not known
    launch_s: float | None  # what a call of an empty program costs in this process
    compile_s: float | None
    compiler_flops: float | None  # XLA's counts of one call: a cross-check only
    compiler_bytes: float | None
    temp_bytes: int | None  # scratch of the compiled call, per device
    checks: tuple[Verdict, ...]
    worker: str
    collectives: tuple[str, ...] = ()  # kinds that the compiled step of a collective holds; () in older records
    kind: str = "case"
    schema: int = SCHEMA_VERSION
    time: str = ""


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """Raw samples: each number is the wall time of one block of dependent steps that ended in one fence."""

    point: str
    round: int
    steps: int  # K: steps per block
    block_s: tuple[float, ...]  # blocks of K steps
    double_block_s: tuple[float, ...]  # blocks of 2 K steps: the second clock is the slope between the two
    warmup_block_s: tuple[float, ...]
    settled: bool  # two successive warm-up blocks agreed before timing began
    compilations: int  # programs compiled inside the timed region; must be 0
    worker: str
    loop_steps: int = 0  # iterations of a jitted loop whose body is the step; 0: the point has no such loop
    loop_s: tuple[float, ...] = ()  # seconds of the loop of `loop_steps` iterations, started and fenced once
    double_loop_s: tuple[float, ...] = ()  # the same of 2 x loop_steps
    kind: str = "round"
    schema: int = SCHEMA_VERSION
    time: str = ""


@dataclass(frozen=True, kw_only=True)
class FailureRecord:
    point: str
    experiment: str
    devices: int
    stage: str  # start | model | build | compile | check | measure | train | profile
    reason: str  # one sentence
    detail: str = ""  # the stack trace, for the report's fold-out
    strategy: str = ""  # of a training step; "" and 0 of a case
    scaling: str = ""
    global_batch: int = 0
    arm: str = ""
    unsupported: bool = False  # the strategy cannot take this model: nothing has gone wrong
    kind: str = "failure"
    schema: int = SCHEMA_VERSION
    time: str = ""


@dataclass(frozen=True, kw_only=True)
class ProfileRecord:
    """What the time of some steps under a profiler went to. It is no sample: tracing costs time of its own."""

    point: str
    steps: int
    wall_s: float  # of all those steps and one fence
    kinds: dict[str, float]  # seconds by kind of operation, mean over devices; with "idle" they add up to wall_s
    top: tuple[
        tuple[str, str, float], ...
    ]  # the longest operations: (name, kind, seconds of all steps, mean over devices)
    trace: str  # the file for Perfetto, below the run's folder
    worker: str
    kind: str = "profile"
    schema: int = SCHEMA_VERSION
    time: str = ""


Record = PointRecord | CompiledRecord | CaseRecord | RoundRecord | FailureRecord | ProfileRecord


def to_json(record: Record) -> dict[str, Any]:
    """Returns the record as a JSON-able dictionary."""
    return dataclasses.asdict(record)


def from_json(line: dict[str, Any]) -> Record:
    """Rebuilds a record. Raises KeyError, TypeError or ValueError when a field is missing, unknown or impossible."""
    kind = line["kind"]
    if kind == "point":
        passport = dict(line["passport"])
        passport["collectives"] = tuple(Collective(**c) for c in passport["collectives"])
        checks = tuple(Verdict(**v) for v in line["checks"])
        return PointRecord(**{**line, "passport": Passport(**passport), "checks": checks})
    if kind == "compiled":
        found = tuple(Collective(**c) for c in line["collectives"])
        return CompiledRecord(**{**line, "collectives": found, "checks": tuple(Verdict(**v) for v in line["checks"])})
    if kind == "case":
        checks, held = tuple(Verdict(**v) for v in line["checks"]), tuple(line.get("collectives", ()))
        return CaseRecord(**{**line, "checks": checks, "collectives": held})
    if kind == "round":
        names = ("block_s", "double_block_s", "warmup_block_s", "loop_s", "double_loop_s")
        arrays = {k: tuple(line.get(k, ())) for k in names}
        for name, values in arrays.items():
            if not all(0 < v < math.inf for v in values):
                raise ValueError(f"{name} holds a time that is not positive")
        if not arrays["block_s"]:
            raise ValueError("block_s is empty: a round has at least one block")
        if not (isinstance(line["steps"], int) and line["steps"] >= 1 and isinstance(line["round"], int)):
            raise ValueError("steps and round must be whole numbers")
        return RoundRecord(**{**line, **arrays})
    if kind == "failure":
        return FailureRecord(**line)
    if kind == "profile":
        top = tuple((str(name), str(sort), float(seconds)) for name, sort, seconds in line["top"])
        times = (line["wall_s"], *line["kinds"].values(), *(seconds for _, _, seconds in top))
        if not all(0 <= seconds < math.inf for seconds in times) or not line["wall_s"] > 0 or not line["steps"] >= 1:
            raise ValueError("a profile has at least one step, and times that are not negative")
        return ProfileRecord(**{**line, "top": top})
    raise KeyError(f"unknown record kind '{kind}'")

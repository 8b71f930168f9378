# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kinds of line in ``records.jsonl``. Units live in the names: ``_s`` seconds, ``_bytes`` bytes.

A *point* is one measured program: a training step as (strategy, scaling, devices), or a *case*: a kernel, a transfer or
a collective of one size in one place. A run is a sweep over points, measured in rounds that visit every point once in
random order. The lines of a point are

    point | case (compiled, weighed, checked)  ->  round 0 .. round R-1  ->  profile     or at any time  ->  failure

A `point` line of a resumed run replaces the earlier passport, and a `round` after a `failure` means that the point has
recovered. A failed verdict of an earlier passport remains while rounds of its session are in use. Of two rounds with
one number the first counts: only a round that is missing is measured again, so a second one was added to the file.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from dataclasses import dataclass
from typing import Any

from jaxbench.records.place import CasePlace, StepPlace

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
    axis: str = ""  # the mesh axis, "data"; several "data+fsdp"; "" in older records, or if unknown
    group: int = 0  # devices of one group; 0: unknown
    scalars: int = 0  # how many rank-0 values
    wire_bytes: int = 0  # sent by one device: docs/metrics
    packed: int = 0  # of `elements`, those that contain two 16-bit numbers each, padding included


@dataclass(frozen=True, kw_only=True)
class Passport:
    """What the compiler did for a point. None in a time: the strategy cannot separate that phase."""

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
    product_flops_per_step: float | None = None  # dots and convolutions in the compiled text x devices
    metrics: int = 1  # scalars that the step returns, the loss among them
    compiler_peak_bytes: int | None = None  # the compiler's own peak memory, per device; None: unknown


AT_LEAST = ("products",)  # verdicts whose value must reach the limit; the value of all others must not exceed it


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one check of a point, with the sentence that explains it.

    `ok` also depends on things that are not recorded, but no verdict is ok with a value on the wrong side of its limit.
    """

    name: str  # parameters | collectives | retrace | ...
    ok: bool
    reason: str
    value: float | None = None
    limit: float | None = None
    unchecked: bool = False  # the check could not be made: `ok` is False, but nothing is known to be wrong
    excess_bytes: int | None = 0  # of "collectives": sent by a device beyond the closed form; None: unknown


@dataclass(frozen=True, kw_only=True)
class Line:
    """Common to all lines; `kind` names the class."""

    point: str  # the id
    schema: int = SCHEMA_VERSION
    time: str = ""


@dataclass(frozen=True, kw_only=True)
class Prepared(Line):
    """Common to the passports of steps and cases, written when a point is ready to be measured."""

    experiment: str
    processes: int
    device_kind: str
    checks: tuple[Verdict, ...]
    worker: str  # names the process that measured it


@dataclass(frozen=True, kw_only=True)
class PointRecord(StepPlace, Prepared):
    unit: str  # what one example is: "images"
    passport: Passport
    outcome: dict[str, float] = dataclasses.field(default_factory=dict)  # results of a short training
    # numbers of a step other than its time: state_bytes and held_gradient_bytes of a device, busy_share, dropped,
    # real_share, tokens of an example
    facts: dict[str, float] = dataclasses.field(default_factory=dict)
    loss: str = ""  # the kind of mean of the loss, as named in measure/loss_kind.py; "" in older records
    annotations: str = ""  # what is ignored of the sharding that the model names for its own arrays, as a sentence
    program_sha256: str = ""  # of the text of the compiled program; "" in older records
    checked_by: str = ""  # the worker that made passport, checks, outcome and facts of the same program; "": this one
    kind: str = "point"


@dataclass(frozen=True, kw_only=True)
class CaseRecord(CasePlace, Prepared):
    zeros: float  # share of the input values that are zero
    wrong: int | None  # incorrect result values; None: the correct result is unknown
    launch_s: float | None  # cost of a call of an empty program in this process
    compile_s: float | None
    compiler_flops: float | None  # XLA's count of one call, or that of the products in its text: a cross-check only
    compiler_bytes: float | None
    temp_bytes: int | None  # scratch of the compiled call, per device
    collectives: tuple[str, ...] = ()  # kinds in the compiled program of a collective; () in older records
    calls_library: bool | None = None  # the compiled program has a custom call; None in older records
    group_processes: int = 1  # of a collective: the processes that own the devices of one group
    group_hosts: int = 1  # the hosts of those processes
    outcome: dict[str, float] = dataclasses.field(default_factory=dict)  # of a training: steps, final_accuracy
    kind: str = "case"


@dataclass(frozen=True, kw_only=True)
class Unmeasured(Line):
    """A line about a point without a passport. strategy to arm are of a training step; "" and 0 for a case."""

    experiment: str
    devices: int
    strategy: str = ""
    scaling: str = ""
    global_batch: int = 0
    arm: str = ""


@dataclass(frozen=True, kw_only=True)
class CompiledRecord(Unmeasured):
    """A point that was compiled for hardware that is not here: it has no times and no result."""

    platform: str  # of the target: gpu | tpu
    device_kind: str
    mesh: dict[str, int]  # devices by axis
    compile_s: float  # tracing, lowering and compiling
    collectives: tuple[Collective, ...]
    checks: tuple[Verdict, ...]  # "collectives" of a step, "implementation" of a case
    peak_bytes: int | None  # per device: argument + output + temp - alias
    compiler_peak_bytes: int | None  # per device, as stated by the compiler
    temp_bytes: int | None
    flops: float | None  # of a step on all devices, or of a call
    product_flops: float | None  # in the compiled text, all devices
    parameters: int = 0
    kind: str = "compiled"


@dataclass(frozen=True, kw_only=True)
class RoundRecord(Line):
    """Raw samples: each number is the wall time of one block of dependent steps that ends in one fence."""

    round: int
    steps: int  # K: steps per block
    block_s: tuple[float, ...]  # blocks of K steps
    double_block_s: tuple[float, ...]  # blocks of 2 K steps: the second clock is the slope; () in most rounds
    warmup_block_s: tuple[float, ...]
    settled: bool  # two successive warm-up blocks agreed before timing began, or the process had measured the point
    compilations: int  # programs compiled inside the timed region; must be 0
    worker: str
    loop_steps: int = 0  # iterations of a jitted loop whose body is the step; 0: the point has no such loop
    loop_s: tuple[float, ...] = ()  # seconds of the loop of `loop_steps` iterations, started and fenced once
    double_loop_s: tuple[float, ...] = ()  # the same for 2 x loop_steps iterations
    # The load during each block, in the order in which they were timed: a block of K, one of 2 K steps, and again.
    # () in older records, and where the system does not say. docs/metrics defines them.
    cpu_s: tuple[float, ...] = ()  # processor time of the measuring process
    switches: tuple[int, ...] = ()  # its involuntary context switches
    others_s: tuple[float, ...] = ()  # processor time of others on the CPUs that it may use
    steal_s: tuple[float, ...] = ()  # time that the hypervisor took from those CPUs
    cpus: int = 0  # how many CPUs it may use; 0: unknown
    # Seconds of a fixed product on each of the point's cores, just before each timed block, in the same order. () in
    # older records, and for what runs on accelerators
    probe_s: tuple[float, ...] = ()
    checks: tuple[Verdict, ...] = ()  # of the state that the round left: all of the first and the last, else the failed
    loss_after: float | None = None  # of that state on the timed batch, where all was checked
    # block_s as each process of the point timed it, process x block; block_s has the slowest. The processes run it
    # together or, with lever.trainings, each trains for itself at the same time. (): one process
    process_block_s: tuple[tuple[float, ...], ...] = ()
    counted: int = 0  # updates that the state counted in all of these blocks; 0 in older records, and if it counts none
    warmup_steps: int = 0  # steps per warm-up block; 0 in older records: K
    kind: str = "round"

    @property
    def steps_made(self) -> int:
        """The steps of all blocks, the warm-up included."""
        timed = len(self.block_s) + 2 * len(self.double_block_s)
        return self.steps * timed + (self.warmup_steps or self.steps) * len(self.warmup_block_s)


@dataclass(frozen=True, kw_only=True)
class FailureRecord(Unmeasured):
    stage: str  # start | model | build | compile | check | measure | train | profile
    reason: str  # one sentence
    detail: str = ""  # the stack trace, for the report's fold-out
    unsupported: bool = False  # the strategy cannot take this model, which is not an error
    kind: str = "failure"


@dataclass(frozen=True, kw_only=True)
class ProfileRecord(Line):
    """The time of some steps under a profiler, by kind of operation. It is not a sample, because tracing takes time."""

    steps: int
    wall_s: float  # of all those steps and one fence
    kinds: dict[str, float]  # seconds by kind of operation, mean over devices; with "idle" they add up to wall_s
    top: tuple[
        tuple[str, str, float], ...
    ]  # the longest operations: (name, kind, seconds of all steps, mean over devices)
    trace: str  # the file for Perfetto, below the run's folder
    worker: str
    kind: str = "profile"


Record = PointRecord | CompiledRecord | CaseRecord | RoundRecord | FailureRecord | ProfileRecord
_KINDS: dict[str, type[Record]] = {
    "point": PointRecord, "compiled": CompiledRecord, "case": CaseRecord, "round": RoundRecord,
    "failure": FailureRecord, "profile": ProfileRecord,
}  # fmt: skip
_LOADS = ("cpu_s", "switches", "others_s", "steal_s")
_TIMES = ("block_s", "double_block_s", "warmup_block_s", "loop_s", "double_loop_s")


def to_json(record: Record) -> dict[str, Any]:
    """Returns the record as a JSON-able dictionary."""
    return dataclasses.asdict(record)


def from_json(line: dict[str, Any]) -> Record:
    """Rebuilds a record. Raises KeyError, TypeError or ValueError when a field is missing, unknown or impossible."""
    kind, fields = line["kind"], dict(line)
    if line.get("time"):
        datetime.datetime.fromisoformat(line["time"])
    if kind not in _KINDS:
        raise KeyError(f"unknown record kind '{kind}'")
    if kind in ("point", "compiled", "case", "round"):
        verdicts = line.get("checks", ()) if kind == "round" else line["checks"]
        fields["checks"] = tuple(_verdict(verdict) for verdict in verdicts)
    if kind == "point":
        fields["passport"] = Passport(**{**line["passport"], "collectives": _collectives(line["passport"])})
    elif kind == "compiled":
        fields["collectives"] = _collectives(line)
    elif kind == "case":
        fields["collectives"] = tuple(line.get("collectives", ()))
    elif kind == "round":
        fields |= {**_times(line), **_loads(line), "process_block_s": _of_processes(line)}
    elif kind == "profile":
        fields["top"] = _longest(line)
    return _KINDS[kind](**fields)


def _verdict(line: dict[str, Any]) -> Verdict:
    """A verdict as its value and limit have it. Numbers of 4 bytes that are named as excess may be above the limit."""
    verdict = Verdict(**line)
    if not verdict.ok or verdict.value is None or verdict.limit is None:
        return verdict
    least = verdict.name in AT_LEAST
    most = verdict.limit + (verdict.excess_bytes or 0) / 4
    if verdict.value >= verdict.limit if least else verdict.value <= most:
        return verdict
    side = "below" if least else "above"
    reason = f"edited or damaged: value {verdict.value:g} is {side} its limit {verdict.limit:g}"
    return dataclasses.replace(verdict, ok=False, reason=reason)


def _collectives(line: dict[str, Any]) -> tuple[Collective, ...]:
    return tuple(Collective(**each) for each in line["collectives"])


def _times(line: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    """The samples of a round."""
    arrays = {name: tuple(line.get(name, ())) for name in _TIMES}
    for name, values in arrays.items():
        if not all(0 < value < math.inf for value in values):
            raise ValueError(f"{name} has a time that is not positive")
    if not arrays["block_s"]:
        raise ValueError("block_s is empty: a round has at least one block")
    if not (isinstance(line["steps"], int) and line["steps"] >= 1 and isinstance(line["round"], int)):
        raise ValueError("steps and round must be whole numbers")
    return arrays


def _of_processes(line: dict[str, Any]) -> tuple[tuple[float, ...], ...]:
    """The blocks of a round as each process timed them."""
    times = tuple(tuple(each) for each in line.get("process_block_s", ()))
    if times and [max(block) for block in zip(*times, strict=True)] != [*line["block_s"]]:
        raise ValueError("block_s is not the slowest of process_block_s")
    if not all(0 < value < math.inf for each in times for value in each):
        raise ValueError("process_block_s has a time that is not positive")
    return times


def _loads(line: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    """The load of each timed block of a round. Others' time is a difference of clocks with ticks: it may be below 0."""
    loads = {name: tuple(line.get(name, ())) for name in (*_LOADS, "probe_s")}
    for name, values in loads.items():
        if len(values) not in (0, len(line["block_s"]) + len(line["double_block_s"])):
            raise ValueError(f"{name} has {len(values)} values, not one for each timed block")
        if not all(math.isfinite(value) and (value >= 0 or name == "others_s") for value in values):
            raise ValueError(f"{name} has a value that cannot be")
    return loads


def _longest(line: dict[str, Any]) -> tuple[tuple[str, str, float], ...]:
    """The longest operations of a profile."""
    top = tuple((str(name), str(sort), float(seconds)) for name, sort, seconds in line["top"])
    times = (line["wall_s"], *line["kinds"].values(), *(seconds for _, _, seconds in top))
    if not all(0 <= seconds < math.inf for seconds in times) or not line["wall_s"] > 0 or not line["steps"] >= 1:
        raise ValueError("a profile has at least one step, and times that are not negative")
    return top

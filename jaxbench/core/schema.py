# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kinds of line in ``records.jsonl``. Names end in the unit: ``_s`` seconds, ``_bytes`` bytes.

A *point* is one measured program: a training step as (strategy, scaling, devices), or a *case*: a kernel, a transfer or
a collective of one size on given devices. A run is a sweep over points, measured in rounds that visit every point once
in random order. The lines of a point are, in this order:

    point or case          it is compiled and checked, and its memory is known
    round 0 .. round R-1   its raw times
    profile                if one was asked for
    failure                at any time, if something failed

A run for absent hardware has `compiled` lines only.

A `point` line of a resumed run replaces the earlier compile report. A `round` after a `failure` means that the point
has recovered. A failed check of an earlier compile report still counts while rounds of its session are in use. If two
rounds have the same number, the first counts: jaxbench reruns only missing rounds, so the second one was added to the
file by hand.
"""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from typing import Any, Literal, get_args

from jaxbench.records.documents import AtLeastOne, Count, Finite, NonNegative, Positive, decode
from jaxbench.records.power import DevicePower

SCHEMA_VERSION: Literal[1] = 1
OWN = "own"  # the strategy of a step that somebody else wrote, with a mesh and shardings of its own

OLDER_NAMES = {"passport": "compile_report"}  # of fields, in run folders and cards of earlier versions

# The kinds of collective, as XLA names its instructions.
COLLECTIVES = tuple("all-reduce all-gather reduce-scatter all-to-all collective-permute collective-broadcast".split())


@dataclass(frozen=True, kw_only=True)
class Collective:
    """All collectives of one kind over one mesh axis in the compiled step, as one device executes them."""

    kind: str  # of COLLECTIVES
    count: Count  # operands reduced or moved; XLA may combine several into one instruction
    bytes: Count  # total size of their results
    elements: Count = 0  # how many numbers those bytes hold, without rank-0 values
    scalar_bytes: Count = 0  # the part of `bytes` that is rank-0 values (the loss and other metrics)
    axis: str = ""  # the mesh axis, "data"; for several axes "data+fsdp"; "" in older records, or if unknown
    group: Count = 0  # devices per group; 0: unknown
    scalars: Count = 0  # the number of rank-0 values
    wire_bytes: Count = 0  # bytes that one device sends, as defined in docs/metrics
    packed: Count = 0  # how many of `elements` hold two 16-bit numbers each, padding included


@dataclass(frozen=True, kw_only=True)
class CompileReport:
    """Times, memory, FLOPs and collectives of a compiled point. trace_s is None if tracing cannot be timed alone."""

    trace_s: NonNegative | None
    lower_s: NonNegative
    compile_s: NonNegative
    first_run_s: NonNegative
    parameters: Count
    flops_per_step: Finite  # analytic, the whole global batch, forward and backward
    compiler_flops_per_step: NonNegative | None  # XLA's own count x devices, used only as a cross-check
    collectives: tuple[Collective, ...]
    expected_gradient_bytes: Count | None  # with data parallelism: those of the parameters; None: a user's own step
    argument_bytes: Count  # the memory_analysis of the compiled step, per device
    output_bytes: Count
    temp_bytes: Count | None  # None: the step is not compiled as a whole
    alias_bytes: Count
    peak_bytes: Count | None  # per device: argument + output + temp - alias
    compiler_bytes_per_step: NonNegative | None = None  # XLA's own count of bytes read and written x devices
    product_flops_per_step: NonNegative | None = None  # dots and convolutions in the compiled text x devices
    metrics: Count = 1  # the scalars that the step returns, including the loss
    compiler_peak_bytes: Count | None = None  # the compiler's own peak memory, per device; None: unknown
    compile_recorded: bool = False  # the program was loaded, and compile_s is what its first compilation took
    attention: str = ""  # kinds of `hlo.operations.ATTENTIONS` in the compiled text: "flash"; "" if none is known


@dataclass(frozen=True, kw_only=True)
class StepWork:
    """What the compiled step does, as counted in its text and in a few steps before it is timed.

    Rows, headlines and `try` show these numbers, so that a reader need not believe what the model or the config states.
    None and () mean that a number is unknown.
    """

    # FLOPs of products and convolutions in one step, all devices, by the dtype of their operands: {"bfloat16": 1.2e9}.
    # Formats are those of the program as it was written, because a compiler may compute 16 bits in 32.
    product_flops: dict[str, float] = dataclasses.field(default_factory=dict)
    all_products_counted: bool = False  # the text has no loop of unknown length and no opaque kernel
    # A part of them that a compiler may write as element-wise operations and sums, so that the text may lack it.
    vector_flops: float = 0.0
    # FLOPs of the products of the model on one device, without recomputation and without the optimizer; None: unknown
    model_flops: float | None = None
    recomputes: bool = False  # the step computes activations again in its backward pass
    reads_batch: bool | None = None  # whether the new state or the metrics depend on the batch
    idle_fields: tuple[str, ...] = ()  # paths of batch arrays that change neither the new state nor the loss
    parameter_arrays: int = 0
    still_arrays: tuple[str, ...] = ()  # paths of parameter arrays that no step changed, in the order of the state
    still_share: float | None = None  # the share of parameters in `still_arrays`
    moved_share: float | None = None  # the share of parameters that changed, number by number
    frozen_arrays: int = 0  # parameter arrays that the lever `freeze` holds on purpose, in addition
    frozen_share: float = 0.0  # their share of all parameters
    steps: int = 0  # steps that were looked at one by one
    changing_steps: int | None = None  # of these, the steps that changed a parameter
    first_change: int = 0  # the number of the first of them, from 1
    last_change: int = 0  # the number of the last
    examples: int = 0  # examples of one batch that were looked at one by one
    examples_with_gradient: int | None = None  # of these, at most as many contribute to the gradient


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one check of a point, with a sentence that explains it.

    `ok` also depends on facts that are not recorded, but it is never True with a value on the wrong side of the limit.
    """

    name: str  # parameters | collectives | retrace | ...
    ok: bool
    reason: str
    value: float | None = None
    limit: float | None = None
    unchecked: bool = False  # the check could not run: `ok` is False, but nothing is known to be wrong
    excess_bytes: int | None = 0  # in "collectives": sent by a device beyond the expected bytes; None: unknown


# What identifies a point: the fields that a record shares with `core.point.Point`. A field that does not apply is None
# or "".


@dataclass(frozen=True, kw_only=True)
class PointFields:
    """Common to training steps and cases."""

    point: str  # the id: of a step "strategy/scaling/devices", and "/arm" if there is one
    devices: AtLeastOne  # participants: 1 for a kernel, the group size n for a collective
    platform: str  # cpu | gpu | tpu
    oversubscribed: bool  # more devices than cores


@dataclass(frozen=True, kw_only=True)
class StepFields(PointFields):
    """A training step with one strategy, scaling, device count and setting of the levers."""

    strategy: str
    scaling: str  # strong | weak
    global_batch: Count
    arm: str = ""  # the swept levers, if the run sweeps any: "precision=bfloat16"
    # every lever, including defaults; {} in old records
    levers: dict[str, str] = dataclasses.field(default_factory=dict)
    explains: str = ""  # of an ablation: the point that it explains, which runs more of the same step; "": not one


@dataclass(frozen=True, kw_only=True)
class CaseFields(PointFields):
    """A kernel, a transfer or a collective of one size on given devices."""

    family: str  # kernel | transfer | collective
    op: str
    dtype: str
    impl: str  # the implementation: jit | numpy | python | ...
    cores: Count | None  # CPU cores the process may use
    resident_bytes: Count | None  # peak memory of the case's arrays, all devices together
    shape: str = ""  # shown to users: "2048x2048x2048"
    elements: int | None = None  # the size axis of a kernel
    payload_bytes: Count | None = None  # S of a collective or a transfer
    flops: Finite | None = None  # analytic, one call
    bytes_moved: Finite | None = None  # analytic, one call: bytes that must be read and written
    mesh: str = ""  # the mesh a collective runs on: "8", "2x4"
    axis: str = ""  # the mesh axis along which the groups of a collective lie: "x"
    source: str = ""  # where a transfer starts: "host", "cpu:0"
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Common to all lines; `kind` names the class."""

    point: str  # the id
    schema: Literal[1] = SCHEMA_VERSION
    time: str = ""

    def validate(self) -> None:
        """Raises ValueError if fields contradict each other."""
        if self.time:
            datetime.datetime.fromisoformat(self.time)


@dataclass(frozen=True, kw_only=True)
class Prepared(Line):
    """Common to the `point` and `case` lines, which are written when a point is ready to be measured."""

    experiment: str
    processes: AtLeastOne
    device_kind: str
    checks: tuple[Verdict, ...]
    worker: str  # the name of the process that measured it


@dataclass(frozen=True, kw_only=True)
class PointRecord(StepFields, Prepared):
    unit: str  # what one example is: "images"
    compile_report: CompileReport
    outcome: dict[str, float] = dataclasses.field(default_factory=dict)  # results of a short training
    # numbers of a step other than its time: state_bytes and held_gradient_bytes per device, busy_share, dropped,
    # real_share, tokens per example
    facts: dict[str, float] = dataclasses.field(default_factory=dict)  # see measure/step_facts.py
    work: StepWork | None = None  # None in older records
    loss: str = ""  # the kind of mean of the loss, as named in measure/loss_kind.py; "" in older records
    annotations: str = ""  # a sentence: which sharding annotations in the model are ignored
    program_sha256: str = ""  # a hash of the compiled program's text; "" in older records
    checked_by: str = ""  # the worker that made compile report, checks, outcome and facts of this program; "": `worker`
    kind: Literal["point"] = "point"


@dataclass(frozen=True, kw_only=True)
class CaseRecord(CaseFields, Prepared):
    zeros: NonNegative  # share of the input values that are zero
    wrong: Count | None  # incorrect result values; None: the correct result is unknown
    launch_s: NonNegative | None  # cost of a call of an empty program in this process
    compile_s: NonNegative | None
    # One call: XLA's count, or the products in the compiled text; only a cross-check
    compiler_flops: NonNegative | None
    compiler_bytes: NonNegative | None
    temp_bytes: Count | None  # scratch of the compiled call, per device
    collectives: tuple[str, ...] = ()  # kinds in the compiled program of a collective; () in older records
    calls_library: bool | None = None  # the compiled program has a custom call; None in older records
    compile_recorded: bool = False  # as in `CompileReport`
    group_processes: AtLeastOne = 1  # of a collective: the processes that own the devices of one group
    group_hosts: AtLeastOne = 1  # the hosts of those processes
    outcome: dict[str, float] = dataclasses.field(default_factory=dict)  # of a training: steps, final_accuracy
    work: StepWork | None = None  # the products of a kernel; None: it is not compiled as a whole, or an older record
    kind: Literal["case"] = "case"


@dataclass(frozen=True, kw_only=True)
class Unmeasured(Line):
    """A line about a point without a compile report. For a case, strategy to arm are "" and 0."""

    experiment: str
    devices: Count
    strategy: str = ""
    scaling: str = ""
    global_batch: Count = 0
    arm: str = ""


@dataclass(frozen=True, kw_only=True)
class CompiledRecord(Unmeasured):
    """A point that was compiled for absent hardware, so it has no step times and no result."""

    platform: str  # of the target: gpu | tpu
    device_kind: str
    mesh: dict[str, AtLeastOne]  # devices by axis
    compile_s: NonNegative  # tracing, lowering and compiling
    collectives: tuple[Collective, ...]
    checks: tuple[Verdict, ...]  # "collectives" for a step, "implementation" for a case
    peak_bytes: Count | None  # per device: argument + output + temp - alias
    compiler_peak_bytes: Count | None  # per device, as stated by the compiler
    temp_bytes: Count | None
    flops: Finite | None  # of a step on all devices, or of one call
    product_flops: NonNegative | None  # in the compiled text, all devices
    parameters: Count = 0
    attention: str = ""  # as in `CompileReport`
    passes: Count = 0  # as in `Program`
    kind: Literal["compiled"] = "compiled"


@dataclass(frozen=True, kw_only=True)
class RoundRecord(Line):
    """The raw samples of one round. A time is the wall time of one block of dependent steps that ends in one fence."""

    round: Count
    steps: AtLeastOne  # K: steps per block
    block_s: tuple[Positive, ...]  # blocks of K steps
    double_block_s: tuple[Positive, ...]  # blocks of 2 K steps: their slope is the second clock; () in most rounds
    warmup_block_s: tuple[Positive, ...]
    settled: bool  # two successive warm-up blocks agreed before timing began, or the process had measured the point
    compilations: Count  # programs compiled inside the timed region; must be 0
    worker: str
    loop_steps: Count = 0  # iterations of a jitted loop around the step; 0: the point has no such loop
    loop_s: tuple[Positive, ...] = ()  # seconds of that loop with `loop_steps` iterations, started and fenced once
    double_loop_s: tuple[Positive, ...] = ()  # the same for 2 x loop_steps iterations
    # The load during each timed block, in the order of timing: K steps, 2 K steps, and so on. () in older
    # records, and where the system does not report it. docs/metrics defines these values.
    cpu_s: tuple[NonNegative, ...] = ()  # processor time of the measuring process
    switches: tuple[Count, ...] = ()  # its involuntary context switches
    others_s: tuple[Finite, ...] = ()  # of other processes on the CPUs that it may use; clocks with ticks: may be < 0
    steal_s: tuple[NonNegative, ...] = ()  # time that the hypervisor took from those CPUs
    cpus: Count = 0  # how many CPUs it may use; 0: unknown
    # The tightest CPU quota of the process, in cores, and the seconds in which it stopped the process, as the kernel
    # counts them; 0 and (): no quota, or not reported
    quota: NonNegative = 0.0
    throttled_s: tuple[NonNegative, ...] = ()
    # Seconds of a fixed product on each of the point's cores, right before each timed block, in the same order. () in
    # older records, and on accelerators
    probe_s: tuple[NonNegative, ...] = ()
    # The load of each timed block, further counts: () in older records. `cpu_s` is user and system time.
    system_s: tuple[NonNegative, ...] = ()
    waits: tuple[Count, ...] = ()  # voluntary context switches
    faults: tuple[Count, ...] = ()  # page faults without a disk
    threads: tuple[Count, ...] = ()  # of the measuring process at the end of the block, those that wait included
    # The speed of each core of the point, alone: processor seconds of a fixed product in the first cache, and of a
    # fixed copy beyond the second, block x core, the faster of the readings before and after a block. () in older
    # records, and on accelerators
    cores: tuple[Count, ...] = ()  # their numbers
    core_product_s: tuple[tuple[NonNegative, ...], ...] = ()
    core_copy_s: tuple[tuple[NonNegative, ...], ...] = ()
    # The same of accelerators: their names, and wall seconds of a small product on each alone, block x device. () in
    # older records, and on CPUs
    accelerators: tuple[str, ...] = ()
    accelerator_product_s: tuple[tuple[NonNegative, ...], ...] = ()
    # What each device did during each timed block, in the order of timing, block x device. () in older records, and
    # where nothing can be read
    power: tuple[tuple[DevicePower, ...], ...] = ()
    # Checks of the state after the round: all of them in the first and the last round, otherwise only failed ones
    checks: tuple[Verdict, ...] = ()
    loss_after: Finite | None = None  # the loss of that state on the timed batch; None if not all was checked
    # block_s as each process of the point timed it, process x block; block_s has the slowest. The processes run one
    # step together or, with lever.trainings, train separately at the same time. (): one process
    process_block_s: tuple[tuple[Positive, ...], ...] = ()
    # Updates counted by the state over all blocks; 0 in older records, and if the state has no count
    counted: Count = 0
    warmup_steps: Count = 0  # steps per warm-up block; 0 in older records: K
    kind: Literal["round"] = "round"

    def validate(self) -> None:
        super().validate()
        if not self.block_s:
            raise ValueError("block_s is empty: a round has at least one block")
        times = self.process_block_s
        if times and tuple(max(block) for block in zip(*times, strict=True)) != self.block_s:
            raise ValueError("block_s is not the slowest of process_block_s")
        load = "cpu_s switches system_s waits faults threads others_s steal_s throttled_s"
        for name in f"{load} probe_s core_product_s core_copy_s accelerator_product_s power".split():
            if (count := len(getattr(self, name))) not in (0, len(self.block_s) + len(self.double_block_s)):
                raise ValueError(f"{name} has {count} values, not one for each timed block")

        if any(len(block) != len(self.cores) for block in (*self.core_product_s, *self.core_copy_s)):
            raise ValueError(f"core_product_s and core_copy_s have not one number for each of {len(self.cores)} cores")
        if any(len(block) != len(self.accelerators) for block in self.accelerator_product_s):
            raise ValueError(f"accelerator_product_s has not one number for each of {len(self.accelerators)} devices")

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
    kind: Literal["failure"] = "failure"


@dataclass(frozen=True, kw_only=True)
class ProfileRecord(Line):
    """The time of a few profiled steps by op category. It is not a sample, because tracing takes time itself."""

    steps: AtLeastOne
    wall_s: Positive  # the wall time of all those steps and one fence
    kinds: dict[str, NonNegative]  # seconds by op category, mean over devices; with "idle" they add up to wall_s
    # The longest operations: (name, category, seconds of all steps, mean over devices)
    top: tuple[tuple[str, str, NonNegative], ...]
    trace: str  # the trace file for Perfetto, relative to the run folder
    worker: str
    kind: Literal["profile"] = "profile"


Record = PointRecord | CompiledRecord | CaseRecord | RoundRecord | FailureRecord | ProfileRecord


def to_json(record: Record) -> dict[str, Any]:
    """The record as a dictionary that JSON can hold."""
    return dataclasses.asdict(record)


def from_json(line: dict[str, Any]) -> Record:
    """Rebuilds a record. Raises KeyError, TypeError or ValueError when a field is missing, unknown or impossible."""
    kinds: dict[str, type[Record]] = {each.kind: each for each in get_args(Record)}
    if line["kind"] not in kinds:
        raise ValueError(f"unknown record kind '{line['kind']}'")
    return decode(kinds[line["kind"]], {OLDER_NAMES.get(name, name): value for name, value in line.items()})

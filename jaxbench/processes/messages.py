# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The messages between a parent and its worker processes, which are JSON lines on pipes.

The first line to a worker is its `Setup`. Then follow requests, and each has one answer. `Request[Paced]` is a request
that a `Paced` answers, so mypy knows both sides. A worker may instead answer `Failed` or `Idle`.

Each line names its class in "do". Fields with their default value are not sent. So a worker of an older commit, as in
`jaxbench ab`, understands every request that does not use a newer field.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast, dataclass_transform

from jaxbench.core.schema import Record, StepWork, Verdict
from jaxbench.machine.position import Position
from jaxbench.records.documents import JsonObject, decode
from jaxbench.records.manifest import Machine

Fields = JsonObject

# By default glibc takes large blocks from the system and returns them in every call, page by page. XLA's CPU client
# allocates a program's scratch at each execution. So without these variables a gpt step took a quarter longer, and a
# collective up to four times as long, which says nothing about the machine.
KEEP_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Message:
    """Makes its subclasses frozen dataclasses with keyword arguments."""

    do: ClassVar[str]  # its name: that of `PrepareAgain` is "prepare_again"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)
        cls.do = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


Message_ = TypeVar("Message_", bound=Message)
Answer = TypeVar("Answer", bound=Message)


class TrainSetup(Message):
    """The part of a setup for a process that trains: see `features.training.worker`."""

    workdir: str
    command: tuple[str, ...]
    begun_ns: int  # the start of the command
    beat_s: float = 1.0
    width: int = 80  # of the console on which the text of process 0 appears
    terminal: bool = False  # whether that console is one


class Setup(Message):
    """What a worker process is and which devices it starts."""

    platform: str  # cpu, gpu or tpu
    devices: int  # of all processes of the group together
    module: str = "jaxbench.worker"  # that the process runs
    worker: str = ""  # its name in records
    experiment: str = ""  # a name or an absolute path
    config: Fields = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)  # variables to add
    cores: int | None = None  # that the device of a kernel may use; None: one for each device
    order: tuple[int, ...] = ()  # the cores to take first: those that are least loaded
    processes: int = 1  # of the group
    trainings: int = 1  # at the same time, each on all devices
    own_cores: bool = False  # each of the trainings has CPU cores of its own
    world: Position | None = None  # in the process group
    co_runners: Position | None = None  # among concurrent trainings
    source: dict[str, str] | None = None  # the copy of this package to run, as in `source.of`; None: the parent's
    python: str = ""  # the Python that runs it, which is not sent; "": the parent's
    target: str = ""  # absent hardware to compile for
    machine: Machine = field(default_factory=Machine)  # the manifest, for processes that train
    cache: str = ""  # the folder for compiled programs
    train: TrainSetup | None = None


# Answers


class Ready(Message):
    """The process has its devices."""

    cpus: tuple[int, ...] | None  # that it may use; None: the system does not say
    environment: dict[str, str]  # variables that change its speed
    processes: int = 1  # of its group
    idle_w: dict[str, float] = field(default_factory=dict)  # the power of each GPU before anything runs


class Failed(Message):
    """The request failed in `stage`."""

    stage: str
    reason: str  # on one line
    detail: str = ""  # the end of the traceback
    unsupported: bool = False  # the strategy cannot take the model
    refused: bool = False  # by a UserError
    follows: bool = False  # the loss of another process may explain it


class Idle(Message):
    """The process owns no device of the point."""


class Recorded(Message):
    """A record to append."""

    record: Record
    steps: int = 0  # the block length of a point that was prepared; 0: not found yet


class Same(Message):
    same: bool  # the process has compiled the program that another process has checked


class Paced(Message):
    steps: int  # the block length


class Compiled(Message):
    """Numbers of a compiled point. Bytes are per device."""

    compile_s: float
    peak_bytes: int | None
    flops: float
    temp_bytes: int | None = None
    whole_bytes: int = 0  # of one device that computes the reference, with the activations of the whole batch
    loop: bool = False  # the point is also timed in a loop on the device


class Ran(Message):
    """One step ran within the limit. Bytes are per device."""

    peak_bytes: int | None  # that the compiler expected
    measured_bytes: int | None  # as the device counts them; None: it does not


class Explained(Message):
    """A user's own step, as `jaxbench try` shows it: texts by name, and the checks of a point."""

    name: str
    examples: int
    facts: tuple[tuple[str, str], ...]
    cells: dict[str, str]
    checks: tuple[Verdict, ...]
    flops: float  # that are stated of a step
    work: StepWork


class Description(Message):
    """A model, as `jaxbench try` shows it."""

    name: str
    unit: str
    batch: int  # examples of the points that are tried, all devices together
    parameters: int
    arrays: int
    largest: tuple[tuple[str, str], ...]  # (path, shape) of the largest parameters
    flops_per_example: float
    loss: str
    uses_key: bool  # the loss uses random numbers
    state_numbers: int
    training: str  # a sentence
    notes: tuple[str, ...]
    strategies: tuple[str, ...]


class Tried(Message):
    """The verdicts on a point, and the bytes that one device sends and holds."""

    checks: tuple[Verdict, ...]
    sent_bytes: int
    state_bytes: int
    peak_bytes: int | None
    flops: float = 0.0  # that are stated of a step
    beyond: float = 0.0  # FLOPs of an example that the formula leaves out on purpose
    work: StepWork | None = None  # None: it was not watched


# Requests. `point` is the id of a point, or the fields of a point that the process does not know yet.


class Request(Message, Generic[Answer]):
    """A request that an `Answer` answers."""


class Prepare(Request[Recorded]):
    """Compiles and checks a point."""

    point: Fields
    loss: str = ""  # its kind, if another process has found it, which takes a second
    paced: bool = True  # finds the block length, too
    # Here and below: what another process has made for the point of a user's own step; see `own_step.proof.OwnProof`.
    reference: Fields = field(default_factory=dict)


class PrepareAgain(Request[Same]):
    """Prepares a point that another process has checked."""

    point: Fields
    program_sha256: str  # of the checked program: a check holds only for the same one
    steps: int  # the block length
    reference: Fields = field(default_factory=dict)


class Pace(Request[Paced]):
    """Finds the block length of a prepared point."""

    point: str


class Round(Request[Recorded]):
    """Visits a prepared point."""

    point: str
    round: int
    double: bool = True  # with the second clock
    steps: int | None = None  # the block length; None: as it was found
    last: bool = False  # checks the state that the visit leaves


class Compile(Request[Compiled]):
    point: Fields
    reference: Fields = field(default_factory=dict)


class CompileFor(Request[Recorded]):
    """Compiles a point for the target."""

    point: Fields
    text: str = ""  # the file for the compiled text; "": none
    options: Fields = field(default_factory=dict)  # of the compiler


class RunWithin(Request[Ran]):
    """Runs one step in at most `limit_bytes`."""

    point: Fields
    limit_bytes: int


class Profile(Request[Recorded]):
    """Traces a prepared point into a folder."""

    point: str
    folder: str


class Describe(Request[Description]):
    """Describes the model."""


class Try(Request[Tried]):
    """Checks a point without timing it."""

    point: Fields
    loss: str = ""  # as in `Prepare`
    watch: bool = False  # also which parameters its steps change


class Refer(Request[Same]):
    """Writes the reference of a user's own step into a file, for the processes of other device counts."""

    point: Fields
    file: str
    runs: bool = True  # with the results of the first steps; if not, only the step itself, and nothing is run


class Explain(Request[Explained]):
    """Describes and checks a user's own step."""

    point: Fields
    reference: Fields = field(default_factory=dict)


REQUESTS: tuple[type[Request], ...] = (
    Prepare,
    PrepareAgain,
    Pace,
    Round,
    Compile,
    CompileFor,
    RunWithin,
    Profile,
    Describe,
    Try,
    Refer,
    Explain,
)


class LaunchMessage(Message):
    """A message between process 0 and a follower."""


class Beat(LaunchMessage):
    """A sign of life."""


class Join(LaunchMessage):
    process: int


class Joined(LaunchMessage):
    """All processes are there."""


class Devices(Message):
    kind: str
    count: int


class HostFacts(LaunchMessage):
    """The facts of a process of the launch. Those in `launch.SAME` must be equal in all processes."""

    host: str
    order: tuple[int, ...]  # the free cores of its host
    cpu_quota: float | None  # of its container
    device: int | None  # the only accelerator that it takes
    devices: Devices
    versions: dict[str, str]
    source: str
    experiment: str
    config: Fields


class Unfit(LaunchMessage):
    """The process cannot measure."""

    error: str  # a sentence
    host: str


class OfChild(LaunchMessage):
    """About one worker."""

    child: int  # its number in the launch


class Start(OfChild):
    setup: Setup


class Send(OfChild):
    line: Fields  # a request to the worker


class LetGo(OfChild):
    """Closes the stdin of the worker, so that it ends."""


class Kill(OfChild):
    """Kills the worker."""


class Exit(LaunchMessage):
    """The follower ends with this exit code."""

    code: int


class Answered(OfChild):
    answer: Fields  # a line of the worker


class Ended(OfChild):
    """The worker has ended."""

    code: int  # as from `Child.end`
    how: str
    log: str  # the end of its log: the file is on the other host


LAUNCH_MESSAGES: tuple[type[LaunchMessage], ...] = (
    Beat,
    Join,
    Joined,
    HostFacts,
    Unfit,
    Start,
    Send,
    LetGo,
    Kill,
    Exit,
    Answered,
    Ended,
)


def line_of(message: Message) -> Fields:
    """The message as a JSON object."""
    return {"do": message.do, **_not_default(message)}


def _not_default(part: Message | Position) -> Fields:
    """The fields that do not have their default value. Records are whole, because their kind is a default."""
    whole, sent = dataclasses.asdict(cast(Any, part)), {}  # mypy does not know that every Message is a dataclass
    for each in dataclasses.fields(cast(Any, part)):
        value, factory = getattr(part, each.name), each.default_factory
        if value != (each.default if factory is dataclasses.MISSING else factory()):
            sent[each.name] = _not_default(value) if isinstance(value, Message | Position) else whole[each.name]
    return sent


def message_of(line: Mapping[str, object], kinds: Iterable[type[Message_]]) -> Message_:
    """The message of a line. Raises ValueError if it is of none of these kinds, or its fields differ."""
    named = {kind.do: kind for kind in kinds}
    if (name := line.get("do")) not in named:
        raise ValueError(f"'{name}' is no message: use {', '.join(named)}")
    return decode(named[name], {key: value for key, value in line.items() if key != "do"})


def answer_of(line: Fields, kind: type[Answer]) -> Answer | Failed | Idle:
    """The answer of a worker: a `kind`, or one of those that it may always give."""
    kinds: tuple[type[Answer | Failed | Idle], ...] = (kind, Failed, Idle)
    return message_of(line, kinds)


def answer_kind(request: type[Request[Answer]]) -> type[Answer]:
    """The class of the answers to a kind of request."""
    (kind,) = typing.get_args(vars(request)["__orig_bases__"][0])
    return typing.cast(type[Answer], kind)

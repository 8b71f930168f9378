# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker: one process, or a process group that runs the same requests together."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from jaxbench.core.schema import CaseRecord, PointRecord, Record, RoundRecord, Verdict
from jaxbench.errors import of_kind
from jaxbench.machine import source
from jaxbench.processes import messages, supervisor
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.launch import Followers
from jaxbench.processes.messages import Answer, Failed, Fields, Idle, Pace, Ready, Recorded, Request, Round, Setup
from jaxbench.processes.supervisor import Cause, Fault, Lost, Supervisor
from jaxbench.records.documents import decode
from jaxbench.records.power import DevicePower
from jaxbench.records.preparation import Spent, together

Kind = TypeVar("Kind")
Spend = Callable[[str, Spent], None]

START_LIMIT_S = 300.0  # to import JAX and start its devices, on a busy machine and in a group that waits for its last
ANSWER_LIMIT_S = 1800.0  # to compile and check a large model, too: only a worker that hangs takes longer
# A round of a prepared point compiles nothing. It is overdue after this time, and after LONGER times the longest answer
# about its point so far, which has several steps in it, too.
ROUND_LIMIT_S, LONGER = 60.0, 20.0
STOPPED_LIMIT_S = 60.0  # how long a process may be stopped, as by SIGSTOP, whatever it was asked
# After one process of a group has failed, the others get this time: they may fail, too, or block in a collective.
PATIENCE_S = {Cause.ERROR: 20.0, Cause.ABORTED: 20.0, Cause.FOLLOWS: 20.0}


class WorkerError(Exception):
    """The worker failed, died or hung.

    `stage`, `detail` and `unsupported` (the strategy cannot take the model) go into the failure record. refused: the
    message refuses the request; it is not an exception of a model or a library.
    """

    def __init__(
        self,
        reason: str,
        *,
        stage: str = "measure",
        detail: str = "",
        alive: bool = True,
        unsupported: bool = False,
        refused: bool = False,
    ):
        super().__init__(reason)
        self.stage, self.detail, self.alive = stage, detail, alive
        self.unsupported, self.refused = unsupported, refused


class Worker(Supervisor):
    """Child processes with devices of their own. Their stderr goes to `log` and, from the second on, to "log.1", ...

    All get the same requests. If one child fails, dies or hangs, all are killed; the rest would block in a collective.

    setup: the first line on stdin. With several processes they form a process group; see `supervisor.setups_here`.
    followers: the other processes of a launch; each starts one process of the group. None: all are started here. forks:
    see `Child`. spend: told what its start and each request took, with the point ("": none).
    """

    def __init__(
        self,
        setup: Setup,
        log: Path,
        followers: Followers | None = None,
        forks: ForkServers | None = None,
        spend: Spend = lambda point, spent: None,
    ):
        self.log = log
        self._setup, self._followers, self._spend = setup, followers, spend
        self._longest: dict[str, float] = {}  # seconds of an answer about each point
        self._ready: Ready | WorkerError | None = None  # None: not heard yet
        self._cpus: list[tuple[str, tuple[int, ...]]] = []  # of each process: its host, and the CPUs that it may use
        hosts = dict(enumerate(followers.hosts)) if followers else None
        super().__init__(supervisor.start(setup, log, followers, forks), hosts)
        self._ahead: list[Request] = []  # sent, and not yet answered
        self._sent_s: list[float] = []  # when, with that of a request that is not sent ahead

    @property
    def name(self) -> str:
        """The name of the worker in its records."""
        return self._setup.worker

    @property
    def pids(self) -> list[int]:
        """The ids of its processes, in order."""
        return [child.pid for child in self.children.values()]

    @property
    def surroundings(self) -> dict[str, object]:
        """Its CPUs and variables, once it has started; on several hosts, those of each process."""
        if not isinstance(started := self._ready, Ready):
            return {}
        facts: dict[str, object] = {"cpus": started.cpus, "environment": started.environment}
        if started.idle_w:
            facts["idle_w"] = started.idle_w
        if started.processes > 1:
            facts["processes"] = started.processes
        hosts = self._followers.hosts[: started.processes] if self._followers else []
        return {**facts, "hosts": hosts} if len(set(hosts)) > 1 else facts

    def wait_ready(self) -> None:
        """Waits until the worker has its devices. If it fails to get them, the first `ask` raises the error.

        Raises UserError if the worker runs another copy of this package.
        """
        if self._ready is None:
            try:
                self._ready = self._receive(Ready, "start", START_LIMIT_S, "start", "")
            except WorkerError as error:  # `ask` raises it: only its caller can say which point failed
                self._ready = error

    def send_ahead(self, request: Request) -> None:
        """Lets the worker begin a request before `ask` makes it. Requests to one worker are asked in this order."""
        self._send_timed(request)
        self._ahead.append(request)

    def limit_s(self, request: Request) -> float:
        """The seconds after which the answer to a request is overdue."""
        if not isinstance(request, Round | Pace) or request.point not in self._longest:
            return ANSWER_LIMIT_S
        measure = cast(Mapping[str, float], self._setup.config.get("measure") or {})
        # Warm-up, blocks of K and of 2 K steps.
        asked_s = (12 + 3 * measure.get("blocks", 1)) * measure.get("block_s", 0.0)
        return max(4 * asked_s, min(ANSWER_LIMIT_S, max(ROUND_LIMIT_S, LONGER * self._longest[request.point])))

    def ask(self, request: Request[Answer], limit_s: float | None = None) -> Answer:
        """Sends a request, unless it was sent ahead, and waits for its answer. limit_s: how long; None: as `limit_s`.

        Raises WorkerError, and ValueError for an answer that this version does not know, as from another commit.
        """
        self.wait_ready()
        if isinstance(self._ready, WorkerError):
            raise self._ready
        if self._ahead:  # this request is already on its way
            if (first := self._ahead.pop(0)) != request:
                raise RuntimeError(f"{self.name} was sent {first} ahead, and is asked for {request}")
        else:
            self._send_timed(request)
        stage = "measure" if request.do == "round" else "compile"
        limit = self.limit_s(request) if limit_s is None else limit_s
        sent_s = self._sent_s.pop(0)  # it may be answered long before it is asked for
        name = point_of(request)
        answer = self._receive(messages.answer_kind(type(request)), stage, limit, asked(request), name)
        self._longest[name] = max(self._longest.get(name, 0.0), time.monotonic() - sent_s)
        return answer

    def _send_timed(self, message: Request) -> None:
        self._sent_s.append(time.monotonic())
        self.send(message)

    def _receive(self, kind: type[Answer], stage: str, limit_s: float, what: str, point: str) -> Answer:
        """The merged answer of all processes. Raises WorkerError for the process that failed, died or hangs.

        what: that it was asked, for a message. point: that it is about.
        """
        answers: dict[int, object] = {}
        spent: dict[str, list[Spent]] = {"spent": [], "spent_on_model": []}

        def take(number: int, line: Fields) -> Fault | bool:
            # Only the first answer names the copy of the package, also when it says that the start failed. Without
            # a name, the copy is that of process 0, whatever its folder is on the other host.
            if isinstance(copy := line.pop("source", None), dict):
                source.require_same(copy, self._setup.source)
            for name, those in spent.items():
                if isinstance(of_child := line.pop(name, None), dict):  # an older commit does not send it
                    those.append(decode(Spent, of_child))
            answer = messages.answer_of(line, kind)
            if isinstance(answer, Failed):
                return Fault.of(number, answer)
            answers[number] = answer
            return True

        begun_s = running_s = self.waited_s  # running_s: when no process was found stopped

        def late(waiting: Sequence[int]) -> Fault | None:
            nonlocal running_s
            if not any(self.children[number].stopped for number in waiting):
                running_s = self.waited_s
            waited_s = self.waited_s - begun_s
            if waited_s < limit_s and self.waited_s - running_s < STOPPED_LIMIT_S:
                return None
            some = f" from {self.called(waiting[0])}" if len(waiting) < len(self.children) else ""
            clause = f"worker '{self.name}', which was asked to {what}, was ended"
            return Fault(process=waiting[0], reason=f"no answer within {waited_s:.0f} s{some}: {clause}")

        try:
            self.watch(take, late, PATIENCE_S, look_s=min(supervisor.LOOK_S, limit_s))
        except Lost as lost:
            raise error_of(lost, stage) from None
        finally:
            for name, those in spent.items():
                if those:
                    self._spend(point if name == "spent" else "", together(those))
        results = [answers[number] for number in self.children]
        if self._followers and stage == "start":
            cpus = [each.cpus or () if isinstance(each, Ready) else () for each in results]
            self._cpus = list(zip(self._followers.hosts[: len(results)], cpus, strict=True))
        return cast(Answer, merged(results, self._cpus))


def error_of(lost: Lost, stage: str) -> WorkerError:
    """The error of a request that a process could not answer. The processes live on only if all failed and so agree."""
    fault, said = lost.fault, lost.fault.said
    if said is None:
        return WorkerError(f"{lost}{lost.stopped}", stage=stage, detail=fault.detail, alive=False)
    more = f" ({', '.join(lost.silent)} gave no answer)" if lost.silent else ""
    reason = said.reason if lost.all_said else f"{lost}{lost.stopped}{more}"
    return WorkerError(
        reason,
        stage=said.stage,
        detail=said.detail,
        alive=lost.all_said,
        unsupported=said.unsupported,
        refused=said.refused,
    )


def point_of(request: Request) -> str:
    """The id of the point that a request is about; "" if it is about none."""
    point = getattr(request, "point", "")
    return point if isinstance(point, str) else str(point.get("point", ""))


def asked(request: Request) -> str:
    """What a worker is asked to do, for a message: "measure round 3 of shard_map/strong/2"."""
    words = {"prepare": "compile and check", "prepare_again": "load", "pace": "find the block length of"}
    does = f"measure round {request.round} of" if isinstance(request, Round) else words.get(request.do, request.do)
    return f"{does.replace('_', ' ')} {point_of(request)}".strip()


def merged(answers: Sequence[object], cpus: Sequence[Hashable] = ()) -> object:
    """The answer of a process group to one request. answers: of its processes, in order.

    cpus: for each process, its host and the CPUs that it may use; processes with equal entries share their CPUs. ():
    all processes share them.
    """
    cpus = [cpu for cpu, answer in zip(cpus, answers, strict=True) if not isinstance(answer, Idle)] if cpus else ()
    answers = [answer for answer in answers if not isinstance(answer, Idle)]
    first = answers[0]
    if len(answers) == 1:
        return first
    if isinstance(first, messages.Same):
        return messages.Same(same=all(isinstance(each, messages.Same) and each.same for each in answers))
    if isinstance(first, Ready):
        return dataclasses.replace(first, processes=len(answers))
    if isinstance(first, Recorded):
        records = [each.record for each in answers if isinstance(each, Recorded)]
        return dataclasses.replace(first, record=_record(records, cpus))
    return first


def _record(records: Sequence[Record], cpus: Sequence[Hashable]) -> Record:
    """The leader's record, with the contributions of the other processes."""
    record = records[0]
    if isinstance(record, PointRecord):
        return dataclasses.replace(record, checks=_checks([each.checks for each in _alike(PointRecord, records)]))
    if isinstance(record, CaseRecord):
        cases = _alike(CaseRecord, records)
        # Each process counts the wrong values on its own devices.
        wrong = None if record.wrong is None else sum(each.wrong or 0 for each in cases)
        return dataclasses.replace(record, checks=_checks([each.checks for each in cases]), wrong=wrong)
    return _round(_alike(RoundRecord, records), cpus) if isinstance(record, RoundRecord) else record


def _round(rounds: Sequence[RoundRecord], cpus: Sequence[Hashable]) -> RoundRecord:
    """The time of a block of all processes is that of the slowest."""
    # Each process reads the load of all CPUs that it may use. So readings of processes that share CPUs are averaged,
    # and only those of different CPUs are added.
    sharing: defaultdict[Hashable, list[RoundRecord]] = defaultdict(list)
    for record, cpu in zip(rounds, cpus or [None] * len(rounds), strict=True):
        sharing[cpu].append(record)
    groups = list(sharing.values())
    merged_round = dataclasses.replace(
        rounds[0],
        checks=_checks([each.checks for each in rounds]),
        process_block_s=tuple(each.block_s for each in rounds),
        compilations=max(each.compilations for each in rounds),
        cpus=sum(those[0].cpus for those in groups),
        steal_s=_combine_blocks(sum, [_by_block(statistics.mean, those, "steal_s") for those in groups]),
        others_s=_combine_blocks(sum, [_others_s(those) for those in groups]),
        throttled_s=_by_block(max, rounds, "throttled_s"),  # one quota stops all of them together
        switches=tuple(map(int, _by_block(sum, rounds, "switches"))),
        cpu_s=_by_block(sum, rounds, "cpu_s"),
        waits=tuple(map(int, _by_block(sum, rounds, "waits"))),
        faults=tuple(map(int, _by_block(sum, rounds, "faults"))),
        threads=tuple(map(int, _by_block(sum, rounds, "threads"))),
        system_s=_by_block(sum, rounds, "system_s"),
        **_device_speeds(rounds),
        power=_power(rounds, cpus),
        block_s=_by_block(max, rounds, "block_s"),
        double_block_s=_by_block(max, rounds, "double_block_s"),
        warmup_block_s=_by_block(max, rounds, "warmup_block_s"),
        loop_s=_by_block(max, rounds, "loop_s"),
        double_loop_s=_by_block(max, rounds, "double_loop_s"),
        probe_s=_by_block(max, rounds, "probe_s"),
    )
    merged_round.validate()  # `replace` does not, and the blocks come from other processes
    return merged_round


def _device_speeds(rounds: Sequence[RoundRecord]) -> dict[str, Any]:
    """The speeds of the cores or accelerators of all processes, one process after the other; {} if one has none."""
    # Processes that share cores read them one after the other too, so each of their readings stands for itself.
    found: dict[str, Any] = {}
    speeds = {"cores": ("core_product_s", "core_copy_s"), "accelerators": ("accelerator_product_s",)}
    for devices, names in speeds.items():
        if all(getattr(each, devices) for each in rounds):
            of_each = {name: [getattr(each, name) for each in rounds] for name in names}
            found[devices] = tuple(device for each in rounds for device in getattr(each, devices))
            found |= {name: tuple(sum(block, ()) for block in zip(*of_each[name], strict=True)) for name in names}
    return found


def _power(rounds: Sequence[RoundRecord], places: Sequence[Hashable]) -> tuple[tuple[DevicePower, ...], ...]:
    """The devices of all processes in each block; () if a process has none. places: its host is the first part of each.

    Processes of one host read the same processor packages, so each device counts once.
    """
    if not all(each.power for each in rounds):
        return ()
    hosts = [place[0] if isinstance(place, tuple) else "" for place in places or [""] * len(rounds)]
    merged_blocks = []
    for block in zip(*(each.power for each in rounds), strict=True):
        found = {(host, device.device): device for host, one in zip(hosts, block, strict=True) for device in one}
        merged_blocks.append(tuple(found.values()))
    return tuple(merged_blocks)


def _alike(kind: type[Kind], records: Sequence[object]) -> list[Kind]:
    """The records, which must all be of one kind: all processes of a group answer the same request."""
    return [of_kind(kind, record) for record in records]


def _by_block(together: Callable[[Sequence[float]], float], rounds: Sequence[RoundRecord], name: str) -> tuple:
    """One number for each block, over all processes; () if a process has none."""
    return _combine_blocks(together, [getattr(each, name) for each in rounds])


def _combine_blocks(together: Callable[[Sequence[float]], float], of_each: Sequence[Sequence[float]]) -> tuple:
    return tuple(together(block) for block in zip(*of_each, strict=True)) if all(of_each) else ()


def _others_s(rounds: Sequence[RoundRecord]) -> list[float]:
    """The CPU time of other programs on the shared CPUs: the mean reading of the processes minus their own time."""
    others, own = (_by_block(statistics.mean, rounds, name) for name in ("others_s", "cpu_s"))
    return [busy - (len(rounds) - 1) * one for busy, one in zip(others, own, strict=True)] if others and own else []


def _checks(of_each: Sequence[Sequence[Verdict]]) -> tuple[Verdict, ...]:
    """The leader's verdicts, replaced by those of another process that found a fault: each sees only its own shards."""
    verdicts = {verdict.name: verdict for verdict in of_each[0]}
    for process, checks in enumerate(of_each):
        for verdict in checks:
            known = verdicts.get(verdict.name)
            if not verdict.ok and (known is None or known.ok):
                verdicts[verdict.name] = dataclasses.replace(verdict, reason=f"process {process}: {verdict.reason}")
    return tuple(verdicts.values())

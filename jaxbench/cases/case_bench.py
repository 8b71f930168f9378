# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One case in one process: compile, check the answer, then measure rounds. The counterpart of `bench.Bench`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import socket
from dataclasses import dataclass

import jax
from ml_collections import ConfigDict

from jaxbench import discovery
from jaxbench.cases import runnable
from jaxbench.cases.placement import bytes_per_device, mesh_devices
from jaxbench.cases.runnable import Facts, Runnable
from jaxbench.core.clock import Loops, Timer
from jaxbench.core.point import Point
from jaxbench.core.schema import CaseFields, CaseRecord, CompiledRecord, RoundRecord, Verdict
from jaxbench.errors import UserError, did_you_mean, present
from jaxbench.hlo import collective_counts, operations
from jaxbench.hlo.module import parse
from jaxbench.machine import cores, power
from jaxbench.machine.mesh import arranged, groups
from jaxbench.measure import check
from jaxbench.measure.compile_report import peak_bytes
from jaxbench.parallel import collectives, multihost
from jaxbench.parallel.collectives import Chain
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Compiled, Fields
from jaxbench.processes.server import stage
from jaxbench.workloads.cases import (
    COLLECTIVES,
    TRANSFERS,
    VIEWS,
    Case,
    CaseSet,
    CollectiveWorkload,
    KernelWorkload,
    TransferWorkload,
)

MAX_STEPS = 2**14  # of a block: 1,024 calls of a microsecond, the limit of training steps, would end after 1 ms
CHECKED_STEPS = 2  # the second step runs on the result of the first


@dataclass(frozen=True)
class PreparedCase:
    """A case that is ready to be measured. timer: for its processes. steps: in one block. loop_steps: in one loop."""

    placement: Point
    ready: Runnable
    timer: Timer
    steps: int
    loop_steps: int


class CaseBench:
    """Measures cases of one experiment on the devices of this process."""

    def __init__(self, config: Fields, experiment: str, devices: list[jax.Device], worker: str):
        self.config = ConfigDict(config)
        with stage("model"):
            self.cases = {case.key: case for case in build_cases(self.config, experiment).cases}
        self.devices = devices
        self.worker = worker
        meter = power.of_this_process(devices[0].platform, len(devices))
        self.timer = Timer(blocks=self.config.measure.blocks, max_steps=MAX_STEPS, power=meter)
        self.cores = cores.available_cores()
        self.prepared: dict[str, PreparedCase] = {}
        self._visited: set[str] = set()  # cases that this process has measured
        self.hosts = ProcessGroup.of(devices).all_gather(socket.gethostname())  # of each process, by number

    def members(self, placement: Point) -> ProcessGroup:
        """The process group that measures a case."""
        if placement.family != "collective":
            return ProcessGroup()
        return ProcessGroup.of(self.devices[: mesh_devices(placement)])

    def compile(self, placement: Point) -> Runnable:
        """Raises StageError."""
        case = self.cases[placement.key]
        with stage("compile"):
            if isinstance(case, KernelWorkload):
                return runnable.compile_kernel(case, self.devices[0])
            if isinstance(case, TransferWorkload):
                return runnable.copies(case, placement.source, placement.target, self.devices)
            return runnable.compile_chain(self._build_chain(case, placement), self.devices[0])

    def compile_only(self, placed: Fields) -> Compiled:
        """The numbers that a dry run shows for a case. Calls would run, so they are skipped. Raises StageError."""
        placement = Point.from_json(placed)
        calls = makes_calls(self.cases[placement.key])
        with double_precision(placement.dtype):
            facts = Facts() if calls else self.compile(placement).facts
        return Compiled(
            compile_s=facts.compile_s or 0.0,
            peak_bytes=bytes_per_device(placement),
            flops=placement.flops or 0.0,
            loop=not calls,
        )

    def compile_for(self, placed: Fields) -> CompiledRecord:
        """Compiles a case for a target, and checks that a collective is the requested one. Raises StageError."""
        placement = Point.from_json(placed)
        case = self.cases[placement.key]
        with double_precision(placement.dtype), stage("compile"):
            if isinstance(case, TransferWorkload) or makes_calls(case):
                raise UserError("a case that consists of calls is not compiled as a whole: leave out --target.")
            chain = self._build_chain(case, placement)
            step, compile_s = runnable.compile_for(chain)
        mesh = {} if chain.mesh is None else dict(chain.mesh.shape)
        memory, module = present(step.memory_analysis()), parse(step.as_text() or "")
        checks: tuple[Verdict, ...] = (check.judge_host_calls(operations.host_calls(module)),)
        if isinstance(case, CollectiveWorkload):  # XLA may replace a collective by another one, or remove it
            kinds = collective_counts.kinds(module)
            ok, held = kinds == (placement.impl,), " and ".join(kinds) or "no collective"
            reason = f"the compiled step holds {held}" + ("" if ok else f", NOT {placement.impl}")
            checks = Verdict(name="implementation", ok=ok, reason=reason), *checks
        return CompiledRecord(
            point=placement.point,
            experiment=self.config.experiment,
            devices=placement.devices,
            platform=self.devices[0].platform,
            device_kind=self.devices[0].device_kind,
            mesh=mesh,
            checks=checks,
            flops=placement.flops,
            product_flops=operations.count(module),
            compile_s=compile_s,
            collectives=collective_counts.count(module, mesh or None),
            peak_bytes=peak_bytes(memory),
            compiler_peak_bytes=getattr(memory, "peak_memory_in_bytes", None) or None,
            temp_bytes=int(memory.temp_size_in_bytes),
        )

    def _build_chain(self, case: KernelWorkload | CollectiveWorkload, placement: Point) -> Chain:
        if isinstance(case, KernelWorkload):
            return runnable.kernel_chain(case, self.devices[0])
        return collectives.build(case, self.devices, _mesh_shape(placement.mesh), placement.axis)

    def prepare(self, placed: Fields) -> CaseRecord:
        """Compiles, checks the result, finds the block length. Raises StageError."""
        placement = Point.from_json(placed)
        with double_precision(placement.dtype):
            return self._prepare(placement)

    def _prepare(self, placement: Point) -> CaseRecord:
        """Compiles and checks a case, and chooses its block lengths."""
        ready = self.compile(placement)
        seed, members = self.config.seed, self.members(placement)
        with stage("check"), ready.context():
            members.barrier()  # some collectives wait for half a minute only, and one process may compile for longer
            state, batch = ready.draw(seed)
            for _ in range(CHECKED_STEPS):
                state, _ = ready.step(state, batch)
            # Now, because the timed steps take over the memory of the state.
            wrong = None if ready.wrong is None else ready.wrong(state, seed)
            zeros = ready.zeros(seed)
            outcome = ready.outcome(state)
        with stage("measure"), ready.context():
            least_s = self.config.measure.block_s
            joined = dataclasses.replace(self.timer, barrier=members.barrier, broadcast=members.broadcast)
            timer = dataclasses.replace(joined, fence=ready.fence)
            steps, state = timer.steps_per_block(ready.step, state, batch, least_s)
            loop_steps = 0
            if ready.loop is not None and ready.to_device is not None:
                # A loop is one compiled program, so the plain fence is enough whatever the case's own fence is.
                loop_steps, _ = joined.steps_per_loop(ready.loop, state, batch, least_s, ready.to_device)
            del state, batch  # frees them: each round draws its own
        with stage("measure"):  # the empty program runs on one device, whatever mesh the case has
            launch_s = self.launch_s if ready.loop is not None else None
        self.prepared[placement.point] = PreparedCase(placement, ready, timer, steps, loop_steps)
        facts, device, owners = ready.facts, self.devices[0], self._owners(placement)
        placed = {field.name: getattr(placement, field.name) for field in dataclasses.fields(CaseFields)}
        return CaseRecord(
            **{**placed, "platform": device.platform},
            experiment=self.config.experiment,
            device_kind=device.device_kind,
            processes=len(members.processes),
            zeros=zeros,
            wrong=wrong,
            launch_s=launch_s,
            compile_s=facts.compile_s,
            compile_recorded=facts.compile_recorded,
            compiler_flops=facts.flops,
            compiler_bytes=facts.bytes,
            temp_bytes=facts.temp_bytes,
            checks=verdicts(ready, wrong),
            worker=self.worker,
            collectives=facts.collectives,
            calls_library=facts.calls_library,
            group_processes=len(owners),
            group_hosts=len({self.hosts[process] for process in owners}),
            outcome=outcome,
            work=facts.work,
        )

    @functools.cached_property
    def launch_s(self) -> float:
        """Seconds for a call of an empty program in this process, measured once."""
        return runnable.launch_s(multihost.first_here(self.devices), self.timer)

    def round(self, point: str, number: int, *, double: bool = True) -> RoundRecord:
        """Measures one round of a prepared case on fresh arrays. double: with the second clock. Raises StageError."""
        repeated = point in self._visited  # then half a block is enough to warm up
        self._visited.add(point)
        known = self.prepared[point]
        ready = known.ready
        with stage("measure"), ready.context(), double_precision(known.placement.dtype):
            state, batch = ready.draw(self.config.seed)
            # The drawn arrays must be on the devices before the clock starts.
            ready.fence((state, batch) if ready.loop is not None else state)
            measured, state = known.timer.round_and_state(
                ready.step, state, batch, known.steps, guard=ready.guard, repeated=repeated, double=double
            )
            loops = Loops(0, (), ())
            if ready.loop is not None and ready.to_device is not None:
                timer = dataclasses.replace(known.timer, fence=self.timer.fence)
                loops, _ = timer.loops(ready.loop, state, batch, known.loop_steps, ready.to_device)
        return RoundRecord(
            point=point,
            round=number,
            steps=known.steps,
            worker=self.worker,
            loop_steps=loops.steps,
            loop_s=loops.single_s,
            double_loop_s=loops.double_s,
            **dataclasses.asdict(measured),
        )

    def _owners(self, placement: Point) -> set[int]:
        """The processes that own the devices of one group of a collective: the group with the most processes."""
        if placement.family != "collective":
            return {0}
        shape = _mesh_shape(placement.mesh)
        devices = [device.process_index for device in arranged(self.devices[: mesh_devices(placement)], shape).flat]
        return max(({devices[at] for at in group} for group in groups(shape, placement.axis)), key=len)


def _mesh_shape(mesh: str) -> tuple[int, ...]:
    return tuple(int(side) for side in mesh.split("x"))


def double_precision(dtype: str) -> contextlib.AbstractContextManager[object]:
    """JAX turns float64 into float32 by default."""
    return jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()


def makes_calls(case: Case) -> bool:
    """Whether a case consists of calls, such as copies, so that there is no program to compile."""
    return isinstance(case, TransferWorkload) or (isinstance(case, KernelWorkload) and case.prepare is not None)


def verdicts(ready: Runnable, wrong: int | None) -> tuple[Verdict, ...]:
    """Whether the result of the measured program is correct and, if it is compiled, whether it runs without the host.

    The time of copies, and of kernels that consist of calls, includes the host's time.
    """
    if wrong is None:
        why = ready.why_unchecked or "the right result is not known"
        result = Verdict(name="result", ok=bool(ready.why_unchecked), reason=f"not compared: {why}")
    else:
        reason = f"{wrong:,} of {ready.values:,} values are wrong after {CHECKED_STEPS} steps"
        result = Verdict(name="result", ok=wrong == 0, reason=reason, value=float(wrong), limit=0.0)
    calls = ready.facts.host_calls
    return result, *(() if calls is None else (check.judge_host_calls(calls),))


def build_cases(config: ConfigDict, experiment: str) -> CaseSet:
    """Loads the experiment and builds its cases. Raises UserError if it fails or a case cannot be measured."""
    cases = discovery.build(experiment, config)
    if not isinstance(cases, CaseSet):
        raise UserError(
            f"build(config) of '{experiment}' returned {type(cases).__name__}: with config.measures=\"cases\" it must "
            "return a CaseSet."
        )
    if cases.view not in VIEWS:
        raise UserError(f"'{experiment}' has the view '{cases.view}': {did_you_mean(str(cases.view), VIEWS)}")
    if not isinstance(cases.cases, tuple):
        raise UserError(f"the cases of '{experiment}' are a {type(cases.cases).__name__}: they must be a tuple.")
    if not cases.cases:
        raise UserError(f"no implementation of '{experiment}' supports these settings: change --config.ops or dtypes.")
    seen: set[str] = set()
    for case in cases.cases:
        why = unsound(case) or ("it occurs twice: two sizes may be rounded to the same." if case.key in seen else "")
        if why:
            raise UserError(f"'{experiment}' has the case {getattr(case, 'key', repr(case))}, but {why}")
        seen.add(case.key)
    return cases


def unsound(case: object) -> str:
    """The fault of a case, as the end of a sentence; "" if it has none."""
    if isinstance(case, KernelWorkload):
        if (case.function is None) == (case.prepare is None):
            return "a kernel must have either a function or a prepare."
        empty = not case.arguments or 0 in case.arguments[0].shape
        return "its first argument must have at least one element." if empty else ""
    if not isinstance(case, TransferWorkload | CollectiveWorkload):
        return f"{type(case).__name__} is not a KernelWorkload, TransferWorkload or CollectiveWorkload."
    legal = TRANSFERS if isinstance(case, TransferWorkload) else COLLECTIVES
    if case.op not in legal:
        return f"its op is unknown: {did_you_mean(str(case.op), legal)}"
    return "" if case.payload_bytes >= 1 else "its payload must be at least 1 byte."

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point in one process: build, compile, check, then measure rounds. Owns no process, file or pipe.

A worker process calls `Bench.prepare` and then `Bench.round` for each visit, or only `Compiler.compile_for` on absent
hardware. A feature that measures other programs overrides the public methods, as `features.ablations.bench` does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gzip
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from jaxbench import discovery, levers
from jaxbench.config import counts
from jaxbench.core import expected_communication
from jaxbench.core.clock import Probe, Timer, run_ahead
from jaxbench.core.plan import Point
from jaxbench.core.program import Program, TrainState, jit_once
from jaxbench.core.schema import CompiledRecord, CompileReport, PointRecord, RoundRecord, StepWork, Verdict
from jaxbench.core.workload import Batch, Dataset, PyTree, TrainWorkload
from jaxbench.levers import EXECUTION, INPUT, PART
from jaxbench.machine import cores
from jaxbench.machine.core_speed import probe_of
from jaxbench.machine.device_speed import DeviceProbe
from jaxbench.machine.mesh import on_host
from jaxbench.measure import first_step, memory, step_facts, step_work
from jaxbench.measure.arm import Arms, build_program, compiler_options, require_options
from jaxbench.measure.check import counted_steps, judge_steps, judge_timed_state
from jaxbench.measure.compile_report import CompiledStep, StatedWork, compile_step, op_by_op, require_one_program
from jaxbench.measure.proof import Proof, require_examples, require_micro_batchable
from jaxbench.parallel import multihost
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Compiled, Fields, Message, Request
from jaxbench.processes.server import stage
from jaxbench.records.documents import decode
from jaxbench.workloads import inspection
from jaxbench.workloads.adapters import flax_models
from jaxbench.workloads.data import input as feeds
from jaxbench.workloads.data import own

OVERSUBSCRIBED_WARMUP = 2  # blocks
MAX_VISITS = 32  # then a point starts from a fresh state, so that no model is driven far beyond its training
FREE_STEPS = 4  # while states are kept, this many times the memory of the largest step stays free
LATENCIES = 200  # samples of a latency over all rounds: two of them lie above the 99th percentile


class Compiler:
    """Builds and compiles points of one experiment, for the devices of this process or for absent hardware."""

    def __init__(self, config: Fields, experiment: str, devices: list[jax.Device], *, keep: bool = False):
        """keep: keep the one-device references of all points, where memory allows, and not only of the newest."""
        self.config = ConfigDict(config)
        self.devices = devices
        self.device = multihost.first_here(devices)
        self.members = ProcessGroup.of(devices)
        self.key = jax.random.PRNGKey(self.config.seed)
        with stage("model"):  # before any point, so that a model that cannot be built is reported once
            self.load(experiment, keep=keep)
            # Likewise for options. `compiler=all` names no set here: those of its points are required when they build.
            for arm in levers.arms(self.config.lever):
                require_options(arm.levers, devices[0])
        self._inits: dict[tuple[Any, ...], Any] = {}
        self.reports: dict[str, CompileReport] = {}  # by point
        self._stated: dict[tuple[Any, ...], StatedWork] = {}  # by workload, batch, devices and part
        self._compile_s: dict[str, float] = {}  # by digest of a program that this process compiled

    def load(self, experiment: str, *, keep: bool) -> None:
        """Builds the experiment's model, and the judge of its points."""
        self.arms = Arms(self.config, experiment, self.devices[0])
        # Also the workload of points without levers, so that what was compiled for one serves the other.
        self.plain = self.arms.workload({})
        inspection.inspect(self.plain, batch=self.config.batch)
        # `create_state` folds in 0 and 1.
        draw = self.plain.synthetic
        self._draw = jit_once(lambda key, examples: draw(jax.random.fold_in(key, 2), examples), static_argnums=1)
        own_experiment = experiment in discovery.experiments()  # of the suite, not a user's file
        self.proof = Proof(
            self.arms, self.plain, self.devices, self.key, own=own_experiment, keep=keep, batch=self.config.batch
        )

    def _grown(self, point: Point) -> int:
        """The device count for which the model is enlarged: that of the point if weak scaling grows the model."""
        return point.devices if point.scaling == "weak" and self.config.weak == "model" else 1

    def is_whole_step(self, point: Point) -> bool:
        """Whether the program of a point is a whole step."""
        return not point.explains

    def build(self, workload: TrainWorkload, point: Point) -> Program:
        """A new Program with a step that was never traced, and with the compiled `init` of an earlier equal Program."""
        program = build_program(workload, point.strategy, self.devices[: point.devices], point.levers)
        layout = tuple(point.levers.get(name) for name in ("mesh", "schedule"))
        all_that_changes_init = point.strategy, point.devices, id(workload), layout
        # Reusing the jitted function saves its compilation for each further arm. `Arms` keeps all workloads, so no id
        # is given twice.
        return dataclasses.replace(program, init=self._inits.setdefault(all_that_changes_init, program.init))

    def compile(
        self, point: Point, extra: Mapping[str, object] | None = None, *, accepted: bool = False
    ) -> tuple[TrainWorkload, Program, CompiledStep]:
        """Builds and compiles a point; runs nothing. Raises StageError.

        extra: further compiler options. accepted: another process has already checked the loss and its parts.
        """
        workload, program = self.workload_and_program(point, accepted=accepted)
        with stage("compile"):
            options = {**compiler_options(point.levers, program), **(extra or {})}
            program, compiled = self.executable(workload, program, point, options, accepted=accepted)
            if compiled.loaded:  # from the cache, so its time is not a compile time; an equal program took this time
                compile_s = self._compile_s.get(compiled.sha256, compiled.report.compile_s)
                report = dataclasses.replace(compiled.report, compile_s=compile_s)
                compiled = dataclasses.replace(compiled, report=report)
            self._compile_s[compiled.sha256] = compiled.report.compile_s
            require_one_program(program.members, compiled)
            compiled = dataclasses.replace(compiled, report=self.report_of(point, compiled.report))
            self.reports[point.point] = compiled.report
            return workload, program, compiled

    def workload_and_program(self, point: Point, *, accepted: bool) -> tuple[PyTree, Program]:
        """(the workload, the program that is not yet compiled) of a point. Raises StageError."""
        if not accepted:
            with stage("model"):
                kind = self.proof.loss_kind
        with stage("build"):
            require_options(point.levers, self.devices[0])
            workload = self.arms.workload(point.levers, self._grown(point))
            program = self.build(workload, point)
            if not accepted and self.is_whole_step(point):
                require_micro_batchable(workload, program, kind)
                require_examples(workload, program, point.global_batch)
            return workload, program

    def executable(
        self, workload: PyTree, program: Program, point: Point, options: dict[str, object], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        """(the program that runs, its executable). A user's own step may be laid out anew when it is compiled.

        accepted: as in `compile`.
        """
        stated = self._stated_work(workload, point, accepted=accepted)
        how: dict[str, Any] = {"options": options, "asked": point.devices, "stated": stated}
        return program, compile_step(workload, program, point.global_batch, **how)

    def _stated_work(self, workload: TrainWorkload, point: Point, *, accepted: bool) -> StatedWork:
        """What the workload states of a point. Strategies share it, because counting takes up to seconds."""
        part = PART.default if point.explains else PART.of(point.levers)
        key = id(workload), point.global_batch, point.devices, part, accepted
        if key not in self._stated:
            about = workload, point.global_batch, point.devices, part
            self._stated[key] = StatedWork.of(*about, count=not accepted)
        return self._stated[key]

    def report_of(self, point: Point, report: CompileReport) -> CompileReport:
        """The compile report of a point, given the one with the FLOPs of a whole step of the global batch."""
        return report

    def compile_only(self, fields: Fields) -> Compiled:
        """The numbers that a dry run shows for a point. fields: `Point.to_json`. Raises StageError."""
        _, program, compiled = self.compile(decode(Point, fields))
        report = compiled.report
        return Compiled(
            compile_s=(report.trace_s or 0) + report.lower_s + report.compile_s,
            peak_bytes=report.peak_bytes,
            temp_bytes=report.temp_bytes,
            flops=report.flops_per_step,
            whole_bytes=(report.peak_bytes or 0) + (program.parts - 1) * (report.temp_bytes or 0),
        )

    def compile_for(self, fields: Fields, text_file: str = "", options: Fields | None = None) -> CompiledRecord:
        """Compiles a point for absent hardware, and checks its collectives. Raises StageError.

        text_file: where to write the compiled text, gzipped; "": nowhere. options: further compiler options.
        """
        point = decode(Point, fields)
        workload, program, compiled = self.compile(point, options)
        if text_file:
            Path(text_file).write_bytes(gzip.compress(compiled.text.encode(), mtime=0))
        report = compiled.report
        return CompiledRecord(
            experiment=self.config.experiment, platform=self.devices[0].platform,
            device_kind=self.devices[0].device_kind, mesh=dict(program.mesh.shape),
            compile_s=(report.trace_s or 0) + report.lower_s + report.compile_s, collectives=report.collectives,
            checks=self.sent_checks(workload, program, report, point), peak_bytes=report.peak_bytes,
            compiler_peak_bytes=report.compiler_peak_bytes, temp_bytes=report.temp_bytes, flops=report.flops_per_step,
            product_flops=report.product_flops_per_step, parameters=report.parameters, attention=report.attention,
            passes=program.passes, point=point.point, strategy=point.strategy, scaling=point.scaling,
            devices=point.devices, global_batch=point.global_batch, arm=point.arm,
        )  # fmt: skip

    def sent_checks(
        self, workload: PyTree, program: Program, report: CompileReport, point: Point
    ) -> tuple[Verdict, ...]:
        """The checks of what the compiled step sends."""
        return (expected_communication.judge(workload, program, report, point.global_batch, devices=point.devices),)


@dataclass(frozen=True)
class PreparedStep:
    """A compiled, checked point. steps: K, the steps of one block."""

    point: Point
    workload: TrainWorkload
    program: Program
    compiled: CompiledStep
    steps: int


@dataclass(frozen=True)
class Held:
    """The state that a point keeps from one visit to the next.

    steps: all steps that made it, in `visits` visits. counted: the steps that it counted itself.
    """

    state: TrainState
    steps: int = 0
    visits: int = 0
    counted: int = 0


class Bench(Compiler):
    """Measures points of one experiment on the devices of this process.

    co_runners: concurrent trainings; their timed blocks start in lockstep with its own.
    """

    co_runners = ProcessGroup()

    def __init__(self, config: Fields, experiment: str, devices: list[jax.Device], worker: str):
        super().__init__(config, experiment, devices, keep=worker == "try")
        self.worker = worker
        self.timer = Timer(blocks=self.config.measure.blocks)
        self.prepared: dict[str, PreparedStep] = {}
        self._facts: dict[int, dict[str, float]] = {}  # by workload, which the arms keep
        self._accepted: set[str] = set()  # points that another process has checked
        self._visited: set[str] = set()  # points that this process has measured
        self._warm: set[str] = set()  # points with a step that has settled
        self._held: dict[str, Held] = {}  # by point
        self._placed: dict[str, Batch] = {}  # the batch on the devices, by point
        self._drawn: dict[int, Batch] = {}  # the batch on a CPU, by batch size
        self._keeps_arrays = True  # the three above, until a step might need their memory
        self._probes: dict[int, Probe] = {}  # by device count
        self._device_probes: dict[int, DeviceProbe] = {}  # of accelerators, likewise
        self._speeds = probe_of(sorted(cores.affinity())) if devices[0].platform == "cpu" else None

    def carry_out(self, request: Request) -> Message | None:
        """The answer to a request that only this kind of bench understands; None for all others."""
        return None

    @functools.cached_property
    def data(self) -> Dataset | None:
        """The real data, read once."""
        return None if self.plain.data is None else own.read(self.plain, seed=self.config.seed)

    def prepare(self, fields: Fields, *, paced: bool = True) -> PointRecord:
        """Compiles, checks against one device, and, if `paced`, finds the block length. Raises StageError.

        fields: `Point.to_json`. If it is not paced, `pace` must follow, unless `round` is told the length.
        """
        point = decode(Point, fields)
        workload, program, compiled = self.compile(point)
        program_sha256 = compiled.sha256
        with stage("check"):
            batch = self.batch(point)
            first_run_s, facts, outputs = self._first_run(program, compiled, batch)
            facts |= self.facts_of(workload)
            report = dataclasses.replace(compiled.report, first_run_s=first_run_s)
            checks = self.verdicts(point, workload, program, compiled, batch, outputs)
            work = self.work_of(point, program, compiled, batch)
            checks += step_work.judge(work)
            if EXECUTION.of(point.levers) == "eager":  # the compiled program was checked; the Python function is timed
                call, report = program.step.__wrapped__, op_by_op(report)
                compiled = CompiledStep(call, report)
        self.prepared[point.point] = PreparedStep(point, workload, program, compiled, 1)
        outcome = self.pace(point.point) if paced else {}
        with stage("train"):
            outcome |= self.outcome(workload, program, point)
        return PointRecord(
            experiment=self.config.experiment, processes=len(program.members.processes),
            platform=self.devices[0].platform, device_kind=self.devices[0].device_kind, passport=report, checks=checks,
            worker=self.worker, outcome=outcome, facts=facts, program_sha256=program_sha256, work=work,
            **self.about_model(), **point.to_json(),
        )  # fmt: skip

    def pace(self, point: str) -> dict[str, float]:
        """Finds the block length of a prepared point. Raises StageError.

        Returns {"waited_share": the share of a block in which a fed step waits for its input}; {} for other steps.
        """
        ready = self.prepared[point]
        with stage("measure"), self.running(ready) as (call, state, supply):
            least_s = self.config.measure.block_s
            steps, state = self.timer_of(ready).steps_per_block(call, state, supply, least_s)
            self.prepared[point] = dataclasses.replace(ready, steps=steps)
            if not hasattr(supply, "waited_s"):  # not a feed, or that of a user's own step
                return {}
            waited_before = supply.waited_s
            seconds, _ = self.timer_of(ready).block(call, state, supply, steps)
            return {"waited_share": (supply.waited_s - waited_before) / seconds}

    def prepare_again(self, fields: Fields, program_sha256: str, steps: int) -> bool:
        """`prepare` for a point that another process has checked, for blocks of `steps` steps. Raises StageError.

        Returns whether it is the program that was checked; only then the point is prepared.
        """
        point = decode(Point, fields)
        workload, program, compiled = self.compile(point, accepted=True)
        if compiled.sha256 != program_sha256:
            return False
        if EXECUTION.of(point.levers) == "eager":
            compiled = CompiledStep(program.step.__wrapped__, compiled.report)
        self.prepared[point.point] = PreparedStep(point, workload, program, compiled, steps)
        self._accepted.add(point.point)  # the process that has the references compares the timed state, too
        if not self.fed(point):
            ready = self.prepared[point.point]
            with stage("measure"), self.running(ready) as (call, state, batch):
                # Another process has seen the step settle. Only the memory is cold here. The first block touches it
                # while other sets load their programs, so no round waits for it.
                _, state = self.timer_of(ready).block(call, state, batch, steps)
            self._warm.add(point.point)
            self._held[point.point] = Held(state, steps, counted=counted_steps(state))
        return True

    def facts_of(self, workload: TrainWorkload) -> dict[str, float]:
        """`PointRecord.facts`, as far as they belong to the workload."""
        if id(workload) not in self._facts:
            self._facts[id(workload)] = step_facts.of_workload(workload)
        return self._facts[id(workload)]

    def verdicts(
        self, point: Point, workload: TrainWorkload, program: Program, compiled: CompiledStep, batch: Batch, out: PyTree
    ) -> tuple[Verdict, ...]:
        """The checks of a compiled point before it is timed. out: the outputs of its first step."""
        checks = self.proof.verdicts(point, self._grown(point), program, compiled, batch)
        return first_step.explained(checks, out, workload, key=self.key, batch=batch, device=self.device)

    def work_of(self, point: Point, program: Program, compiled: CompiledStep, batch: Batch) -> StepWork:
        """What the compiled step does. Parts of a step that update nothing have counts only."""
        work = compiled.work
        if point.explains or PART.of(point.levers) not in ("step", "local"):
            return work
        if self.plain.sent:  # a sum over rows has its solution after a few steps, or fills a table over many
            return work
        if PART.of(point.levers) == "step":  # the loss was computed with other values of each field
            idle = (*work.idle_fields, *(name for name in self.proof.unread if name not in work.idle_fields))
            kind = self.proof.loss_kind
            with_gradient = kind.single - kind.without if kind.single else None
            work = dataclasses.replace(
                work, idle_fields=idle, examples=kind.single, examples_with_gradient=with_gradient
            )
        placed = program.put(batch)
        return step_work.watch(program, compiled.call, self.key, lambda step: placed, work)

    def round(
        self, point: str, number: int, steps: int | None = None, *, double: bool = True, last: bool = False
    ) -> RoundRecord:
        """Visits a prepared point once. Raises StageError.

        The first visit of this process warms up until the step has settled. A later visit continues from the kept
        state. steps: K, the steps of a block; None: as `prepare` found. double: with the second clock. last: it is the
        point's last visit here, so check the state, as after the first.
        """
        ready = self.prepared[point]
        steps, fed = steps or ready.steps, self.fed(ready.point)
        repeated, check = point in self._warm and not fed, last or point not in self._visited
        self._visited.add(point)
        self._warm.add(point)
        guard = "allow" if EXECUTION.of(ready.point.levers) == "eager" or fed else "disallow"
        held = self._held.pop(point, None)
        steps_before, visits, counted_before = (held.steps, held.visits, held.counted) if held else (0, 0, 0)
        with stage("measure"):
            with self.running(ready, held) as (call, state, supply):
                del held  # the step overwrites its state
                measured, state = self.timer_of(ready).round_and_state(
                    call, state, supply, steps, guard=guard, repeated=repeated, double=double
                )
            del supply
            record = RoundRecord(point=point, round=number, steps=steps, worker=self.worker, **vars(measured))
            counted, steps_made = counted_steps(state), steps_before + record.steps_made
            checks, loss = self._after_round(ready, state, steps_made, check=check)
            # The check of the state made one more update, which donated it.
            donated = check and point not in self._accepted and not ready.point.explains
            if not (donated or fed or visits == MAX_VISITS):
                self._held[point] = Held(state, steps_made, visits + 1, counted)
            self._keep_memory_free()
        return dataclasses.replace(record, checks=checks, loss_after=loss, counted=counted - counted_before)

    def _keep_memory_free(self) -> None:
        """Drops all kept states and batches, now and later, once a step might need their memory."""
        step_bytes = max(ready.compiled.report.peak_bytes or 0 for ready in self.prepared.values())
        devices = len(self.devices) if self.device.platform == "cpu" else 1  # fake devices share the host's memory
        self._keeps_arrays = self._keeps_arrays and memory.room(self.device) >= FREE_STEPS * devices * step_bytes
        if not self._keeps_arrays:
            self._forget()

    def _forget(self) -> None:
        """Drops all kept arrays. The next visits make them again."""
        for kept in (self._held, self._placed, self._drawn):
            kept.clear()

    def _after_round(
        self, ready: PreparedStep, state: TrainState, steps: int, *, check: bool
    ) -> tuple[tuple[Verdict, ...], float | None]:
        """(the verdicts on the state after `steps` steps, its loss). With `check` the state may be donated.

        Without `check`, only whether the state has counted its steps. Passing verdicts are then left out, as for a
        point that another process has checked: each round would repeat them.
        """
        point = ready.point
        verdicts = self.state_verdicts(point, state, steps, parameters=check)
        if not check or point.point in self._accepted:
            return tuple(verdict for verdict in verdicts if not verdict.ok), None
        if point.explains or not ready.program.members.all(all(verdict.ok for verdict in verdicts)):
            return verdicts, None
        if self.device.platform != "cpu":
            self._forget()  # the result of one device needs the memory
        update_verdicts, loss = self.proof.after_round(
            point, self._grown(point), ready.program, ready.compiled.call, self.batch(point), state
        )
        return verdicts + update_verdicts, loss

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        """The verdicts on the state after `steps` timed steps. parameters: also check that they are finite."""
        counted = steps if PART.of(point.levers) in ("step", "local") else 0  # other parts of a step update nothing
        return judge_timed_state(state, counted) if parameters else (judge_steps(state, counted),)

    @contextlib.contextmanager
    def running(self, ready: PreparedStep, held: Held | None = None) -> Iterator[tuple[Any, Any, Any]]:
        """A context with (call, state, supply), ready to be timed: state, metrics = call(state, supply).

        supply: a batch on the devices, or a feed with one for each call. held: None for a fresh state.
        """
        program, point, call = ready.program, ready.point, ready.compiled.call
        if held is None:
            memory.give_back()
        with program.context(), contextlib.ExitStack() as stack:
            state = program.init(self.key) if held is None else held.state
            if not self.fed(point):
                placed = self._placed.get(point.point)
                if placed is None:
                    placed = self._placed[point.point] = program.put(self.batch(point))
                jax.block_until_ready((state, placed))
                yield call, state, placed
                return
            feed = stack.enter_context(contextlib.closing(self.feed(ready)))
            jax.block_until_ready(state)
            yield (lambda state, feed: call(state, feed.next())), state, feed

    def fed(self, point: Point) -> bool:
        """Whether each step takes another batch from the host, instead of the same one on the devices."""
        return INPUT.of(point.levers).kind != "device"

    def feed(self, ready: PreparedStep) -> PyTree:
        """The batches of a fed step: `next()` is the batch of the next step."""
        return feeds.open(
            ready.point.levers["input"], self.plain, batch=ready.point.global_batch, put=ready.program.put,
            seed=self.config.seed, data=self.data,
        )  # fmt: skip

    def timer_of(self, ready: PreparedStep) -> Timer:
        """The timer of a point."""
        group = ready.program.members if self.co_runners.alone else self.co_runners
        local = ready.program.mesh.local_devices
        timer = dataclasses.replace(
            self.timer, barrier=group.barrier, broadcast=group.broadcast, ahead=run_ahead(local)
        )
        if ready.point.oversubscribed:  # its times support no claim, so a short warm-up is enough
            return dataclasses.replace(timer, warmup_blocks=OVERSUBSCRIBED_WARMUP)
        if self.device.platform == "cpu":
            if len(local) not in self._probes:
                self._probes[len(local)] = Probe(local)
            timer = dataclasses.replace(timer, probe=self._probes[len(local)], speeds=self._speeds)
        elif ready.point.devices > 1:  # one device alone has nothing to be compared with
            if len(local) not in self._device_probes:
                self._device_probes[len(local)] = DeviceProbe(local)
            timer = dataclasses.replace(timer, speeds=self._device_probes[len(local)])
        if ready.point.levers.get(PART.name) != "inference":
            return timer
        # A block of one step is a latency. The fewest rounds of a run need enough of them for a percentile.
        rounds, _ = counts(self.config.measure.rounds, self.config.measure.processes, live=False)
        blocks = max(timer.blocks, -(-LATENCIES // rounds))
        return dataclasses.replace(timer, blocks=blocks, max_steps=1)

    def outcome(self, workload: TrainWorkload, program: Program, point: Point) -> dict[str, float]:
        """The results of a short training, such as its accuracy; {} unless the config asks for one."""
        steps = self.config.measure.train_steps
        if not steps or self.data is None or point.explains or PART.of(point.levers) != "step":
            return {}
        return step_facts.train_briefly(
            workload, program, self.data, steps=steps, batch=self.config.train.batch, seed=self.config.seed
        )

    def batch(self, point: Point) -> Batch:
        """The synthetic batch of a point: the same values in every round, strategy and process.

        For accelerators, and for several processes, the host draws it and nothing is kept: inside the context of a mesh
        each device, or each process, would hold all of it.
        """

        def draw() -> Batch:
            return self._draw(self.key, point.global_batch)

        if self.devices[0].platform == "cpu" and self.members.alone:
            if point.global_batch not in self._drawn:
                self._drawn[point.global_batch] = draw()
            return self._drawn[point.global_batch]
        with on_host():
            return jax.device_get(draw())

    def _first_run(self, program: Program, compiled: CompiledStep, batch: Batch) -> tuple[float, dict[str, float], Any]:
        """Runs the step once on a state of its own: (seconds, further facts about the step, its outputs)."""
        with program.context():
            state, placed = program.init(self.key), program.put(batch)
            jax.block_until_ready((state, placed))
            facts = step_facts.memory(program, state, placed, gradients=self.config.measure.gradients)
            program.members.barrier()
            start = time.perf_counter()
            _, outputs = jax.block_until_ready(compiled.call(state, placed))
            return time.perf_counter() - start, facts | step_facts.of_metrics(outputs), outputs

    def about_model(self) -> dict[str, PyTree]:
        """The fields of a record that describe the model."""
        annotations = flax_models.named_axes_sentence(self.plain.init)
        return {"unit": self.plain.unit, "loss": self.proof.loss_kind.described, "annotations": annotations}

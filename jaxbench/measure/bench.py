# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points in one process: compile, check, then measure rounds. Owns no process, file or pipe.

A worker process calls `prepare` and then `round` for each visit of a point. What it compiles and checks is said by the
recipe of the point (`recipe`); arrays live from one visit to the next in `KeptArrays`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import jax
from ml_collections import ConfigDict

from jaxbench.config import counts
from jaxbench.core.clock import Probe, Timer, run_ahead
from jaxbench.core.point import Point
from jaxbench.core.program import TrainState
from jaxbench.core.schema import PointRecord, RoundRecord, Verdict
from jaxbench.core.workload import Batch, random_key
from jaxbench.levers import EXECUTION, PART
from jaxbench.machine import cores, power, preparing
from jaxbench.machine.core_speed import probe_of
from jaxbench.machine.device_speed import DeviceProbe
from jaxbench.machine.power import PowerMeter
from jaxbench.measure import memory, step_facts, step_work
from jaxbench.measure.check import counted_steps
from jaxbench.measure.compile_report import CompiledStep, op_by_op
from jaxbench.measure.compiler import Compiler
from jaxbench.measure.kept_arrays import Held, KeptArrays
from jaxbench.measure.recipe import BuiltStep, PreparedStep, Recipe, Source
from jaxbench.parallel import multihost
from jaxbench.processes.group import ProcessGroup, members_of
from jaxbench.processes.messages import Fields
from jaxbench.processes.server import stage

OVERSUBSCRIBED_WARMUP = 2  # blocks
MAX_VISITS = 32  # then a point starts from a fresh state, so that no model is driven far beyond its training
LATENCIES = 200  # samples of a latency over all rounds: two of them lie above the 99th percentile

Steps = TypeVar("Steps", bound=Recipe)


class Bench(Generic[Steps]):
    """Measures points of one experiment on the devices of this process.

    Attributes:
      steps: the recipe of whole steps. source: of their batches. compiler: knows all recipes.
      prepared: the points that can be measured, by name.
      co_runners: concurrent trainings; their timed blocks start in lockstep with its own.
    """

    def __init__(
        self,
        config: ConfigDict,
        devices: list[jax.Device],
        steps: Steps,
        source: Source,
        compiler: Compiler,
        worker: str,
    ):
        self.config, self.devices, self.steps, self.source, self.compiler = config, devices, steps, source, compiler
        self.device = multihost.first_here(devices)
        self.key = random_key(config.seed)
        self.worker, self.co_runners = worker, ProcessGroup()
        self.timer = Timer(blocks=config.measure.blocks)
        self.prepared: dict[str, PreparedStep] = {}
        self.kept = KeptArrays(self.device, len(devices))
        self._accepted: set[str] = set()  # points that another process has checked
        self._visited: set[str] = set()  # points that this process has measured
        self._warm: set[str] = set()  # points with a step that has settled
        self._probes: dict[int, Probe] = {}  # by device count
        self._device_probes: dict[int, DeviceProbe] = {}  # of accelerators, likewise
        self._power: dict[int, PowerMeter | None] = {}  # likewise
        self._speeds = probe_of(sorted(cores.affinity())) if devices[0].platform == "cpu" else None

    def prepare(self, fields: Fields, *, paced: bool = True) -> PointRecord:
        """Compiles, checks against one device, and, if `paced`, finds the block length. Raises StageError.

        fields: `Point.to_json`. If it is not paced, `pace` must follow, unless `round` is told the length.
        """
        point = Point.from_json(fields)
        recipe, built = self.compiler.recipe(point), self.compiler.compile(point)
        with stage("check"):
            batch = self.source.batch(point)
            first_run_s, facts, outputs = self.first_run(built, batch)
            facts |= self.source.facts(built.workload)
            report = dataclasses.replace(built.compiled.report, first_run_s=first_run_s)
            checks = recipe.verdicts(built, batch, outputs)
            work = recipe.work(built, batch)
            checks += step_work.judge(work)
            if EXECUTION.of(point.levers) == "eager":  # the compiled program was checked; the function is timed
                report = op_by_op(report)
        self.prepared[point.point] = _prepared(built, report=report)
        outcome = self.pace(point.point) if paced else {}
        with stage("train"):
            outcome |= recipe.outcome(built)
        return PointRecord(
            experiment=self.config.experiment,
            processes=len(members_of(built.program.mesh).processes),
            platform=self.devices[0].platform,
            device_kind=self.devices[0].device_kind,
            compile_report=report,
            checks=checks,
            worker=self.worker,
            outcome=outcome,
            facts=facts,
            program_sha256=built.compiled.sha256,
            work=work,
            **vars(self.source.about()),
            **point.to_json(),
        )

    def first_run(self, built: BuiltStep, batch: Batch) -> tuple[float, dict[str, float], Any]:
        """Runs the step once on a state of its own: (seconds, further facts about the step, its outputs)."""
        program = built.program
        with program.context():
            state, placed = program.init(self.key), program.put(batch)
            jax.block_until_ready((state, placed))
            facts = step_facts.memory(program, state, placed, gradients=self.config.measure.gradients)
            members_of(program.mesh).barrier()
            start = time.perf_counter()
            _, outputs = jax.block_until_ready(built.compiled.call(state, placed))
            seconds = time.perf_counter() - start
            preparing.here().first_run(seconds)
            return seconds, facts | step_facts.of_metrics(outputs), outputs

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
        point = Point.from_json(fields)
        built = self.compiler.compile(point, accepted=True)
        if built.compiled.sha256 != program_sha256:
            return False
        self.prepared[point.point] = ready = _prepared(built, steps=steps)
        self._accepted.add(point.point)  # the process that has the references compares the timed state, too
        if not self.source.fed(ready):
            with stage("measure"), self.running(ready) as (call, state, batch):
                # Another process has warmed the step up. Only the memory is cold here. The first block touches it
                # while other sets load their programs, so no round waits for it.
                seconds, state = self.timer_of(ready).block(call, state, batch, steps)
                preparing.here().first_run(seconds)
            self._warm.add(point.point)
            self.kept.states[point.point] = Held(state, steps, counted=counted_steps(state))
            del state, batch
            self._keep_memory_free()
        return True

    def round(
        self, point: str, number: int, steps: int | None = None, *, double: bool = True, last: bool = False
    ) -> RoundRecord:
        """Visits a prepared point once. Raises StageError.

        The first visit of this process warms up until the step has settled. A later visit continues from the kept
        state. steps: K, the steps of a block; None: as `prepare` found. double: with the second clock. last: it is the
        point's last visit here, so check the state, as after the first.
        """
        ready = self.prepared[point]
        steps, fed = steps or ready.steps, self.source.fed(ready)
        repeated, check = point in self._warm and not fed, last or point not in self._visited
        self._visited.add(point)
        self._warm.add(point)
        guard = "allow" if EXECUTION.of(ready.point.levers) == "eager" or fed else "disallow"
        held = self.kept.states.pop(point, None)
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
            checks, loss = self.check_state(ready, state, steps_made, check=check)
            # The check of the state made one more update, which donated it.
            donated = check and point not in self._accepted and not ready.point.explains
            if not (donated or fed or visits == MAX_VISITS):
                self.kept.states[point] = Held(state, steps_made, visits + 1, counted)
            self._keep_memory_free()
        return dataclasses.replace(record, checks=checks, loss_after=loss, counted=counted - counted_before)

    def check_state(
        self, ready: BuiltStep, state: TrainState, steps: int, *, check: bool
    ) -> tuple[tuple[Verdict, ...], float | None]:
        """(the verdicts on the state after `steps` steps, its loss). With `check` the state may be donated.

        Without `check`, only whether the state has counted its steps. Passing verdicts are then left out, as for a
        point that another process has checked: each round would repeat them.
        """
        point, recipe = ready.point, self.compiler.recipe(ready.point)
        verdicts = recipe.state_verdicts(point, state, steps, parameters=check)
        if not check or point.point in self._accepted:
            return tuple(verdict for verdict in verdicts if not verdict.ok), None
        if point.explains or not members_of(ready.program.mesh).all(all(verdict.ok for verdict in verdicts)):
            return verdicts, None
        if self.device.platform != "cpu":
            self._drop_arrays()  # the result of one device needs the memory
        update_verdicts, loss = recipe.after_round(ready, self.source.batch(point), state)
        return verdicts + update_verdicts, loss

    @contextlib.contextmanager
    def running(self, ready: BuiltStep, held: Held | None = None) -> Iterator[tuple[Any, Any, Any]]:
        """A context with (call, state, supply), ready to be timed: state, metrics = call(state, supply).

        supply: a batch on the devices, or a feed with one for each call. held: None for a fresh state.
        """
        program, point, call = ready.program, ready.point, ready.compiled.call
        if held is None:
            memory.give_back()
        with program.context(), contextlib.ExitStack() as stack:
            state = program.init(self.key) if held is None else held.state
            if not self.source.fed(ready):
                batches = self.kept.batches
                if point.point not in batches:
                    batches[point.point] = program.put(self.source.batch(point))
                placed = batches[point.point]
                jax.block_until_ready((state, placed))
                yield call, state, placed
                return
            feed = stack.enter_context(contextlib.closing(self.source.feed(ready)))
            jax.block_until_ready(state)
            yield (lambda state, feed: call(state, feed.next())), state, feed

    def timer_of(self, ready: BuiltStep) -> Timer:
        """The timer of a point."""
        group = members_of(ready.program.mesh) if self.co_runners.alone else self.co_runners
        local = ready.program.mesh.local_devices
        timer = dataclasses.replace(
            self.timer,
            barrier=group.barrier,
            broadcast=group.broadcast,
            ahead=run_ahead(local),
            power=self._meter(len(local)),
        )
        if self.source.fed(ready):
            timer = dataclasses.replace(timer, fence=self.source.fence)
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

    def _meter(self, devices: int) -> PowerMeter | None:
        """Reads the power of this number of devices of this process; None: nothing can be read."""
        if devices not in self._power:
            self._power[devices] = power.of_this_process(self.device.platform, devices)
        return self._power[devices]

    def _keep_memory_free(self) -> None:
        """Drops all kept states and batches, now and later, once a step might need their memory."""
        self.kept.leave_room(max(ready.compiled.report.peak_bytes or 0 for ready in self.prepared.values()))
        if not self.kept.enabled:
            self._drop_arrays()
            memory.give_back()  # another process needs it before this one runs again

    def _drop_arrays(self) -> None:
        self.kept.drop()
        self.source.drop()


def _prepared(built: BuiltStep, *, steps: int = 1, report: Any = None) -> PreparedStep:
    """report: None: that of the compiled step. With execution=eager the Python function is timed."""
    compiled = dataclasses.replace(built.compiled, report=report or built.compiled.report)
    if EXECUTION.of(built.point.levers) == "eager":
        compiled = CompiledStep(built.program.step.__wrapped__, compiled.report)
    return PreparedStep(built.point, built.workload, built.program, compiled, steps)

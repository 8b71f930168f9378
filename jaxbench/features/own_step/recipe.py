# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points of a step that somebody else wrote: their recipe, that of their ablations, and their source of batches."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from ml_collections import ConfigDict

from jaxbench import discovery
from jaxbench.core.point import Point
from jaxbench.core.program import Program, TrainState
from jaxbench.core.schema import CompileReport, StepWork, Verdict
from jaxbench.core.workload import Batch
from jaxbench.errors import Unsupported, UserError, of_kind, present
from jaxbench.features.ablations.recipe import Ablations, peak
from jaxbench.features.own_step import one_device, settle
from jaxbench.features.own_step import program as programs
from jaxbench.features.own_step.communication import communication
from jaxbench.features.own_step.program import OwnProgram
from jaxbench.features.own_step.proof import OwnProof
from jaxbench.hlo.module import parse
from jaxbench.levers import PART
from jaxbench.measure import first_step, step_work
from jaxbench.measure.arm import require_options
from jaxbench.measure.bench import Bench
from jaxbench.measure.check import judge_steps, judge_timed_state
from jaxbench.measure.compile_report import CompiledStep, StatedWork, compile_step
from jaxbench.measure.compiler import Compiler
from jaxbench.measure.model_steps import require_every_option
from jaxbench.measure.recipe import AboutModel, BuiltStep
from jaxbench.processes.messages import Fields
from jaxbench.processes.server import stage
from jaxbench.sweep.ablations import COMMUNICATION, PEAK, devices_of, is_plain
from jaxbench.workloads.own_step import StepWorkload


class OwnSteps:
    """The recipe of whole steps.

    Attributes:
      proof: judges its points.
      texts: the text and the mesh of each compiled step, by point. Ablations are read from them.
    """

    def __init__(self, step: StepWorkload, devices: list[jax.Device]):
        self.step, self.devices, self.proof = step, devices, OwnProof()
        self.texts: dict[str, tuple[str, Mesh]] = {}

    def build(self, point: Point, *, accepted: bool) -> tuple[StatedWork, Program]:
        with stage("build"):
            devices, batch = self.devices[: point.devices], point.global_batch
            require_options(point.levers, devices[0])
            absent = devices[0].platform != jax.default_backend()
            # For absent hardware, fake CPU devices hold what `make` places, and the step is exported from there.
            program = programs.build(self.step, jax.devices()[: len(devices)] if absent else devices, batch)
            flops = self.step.flops_per_example
            work = StatedWork(parameters=programs.parameters(program), flops=None if flops is None else flops * batch)
            return work, one_device.elsewhere(program, devices) if absent else program

    def executable(
        self, workload: StatedWork, program: Program, point: Point, options: dict[str, object], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        how: dict[str, Any] = {"options": options, "asked": point.devices}
        if not isinstance(program, OwnProgram):
            return program, compile_step(workload, program, point.global_batch, **how)
        try:
            with discovery.naming_lines(hint=programs.hint):
                compiled = compile_step(workload, program, point.global_batch, **how)
        except (UserError, ValueError) as error:
            if "compiler_options" in str(error):  # JAX takes them at the outermost jit only, which is the suite's
                raise UserError(
                    f"the step of {program.origin} has a jax.jit with compiler_options inside: leave them out, and "
                    "give them with --config.lever.compiler=OPTION=VALUE."
                ) from error
            if not isinstance(error.__cause__, programs.NEEDS_VALUE) or not program.state_leaves.numbers:
                raise
            # Python decides by a number of the state, such as a flag: it stays a constant of the step.
            devices, batch = [*program.mesh.devices.flat], point.global_batch
            rebuilt = programs.build(self.step, devices, batch, numbers=False)
            return self.executable(workload, rebuilt, point, options, accepted=accepted)
        placed, again = programs.placed_as_compiled(program, compiled.call)
        if again:  # with the layout that the first compilation chose for arrays that init does not place
            compiled = compile_step(workload, placed, point.global_batch, **how)
            placed, again = programs.placed_as_compiled(placed, compiled.call)
        self.texts[point.point] = compiled.hlo, placed.mesh
        return placed, dataclasses.replace(compiled, inputs=present(placed.avals)())

    def report(self, point: Point, report: CompileReport) -> CompileReport:
        return report

    def verdicts(self, built: BuiltStep, batch: Batch, out: Any) -> tuple[Verdict, ...]:
        own = of_kind(OwnProgram, built.program)
        checks = self.proof.verdicts(built.point, self.devices, own, built.compiled)
        loss = out if isinstance(out, dict) or len(out) != 1 else {"loss": out[0]}
        if first_step.finite(loss):
            return checks
        first, *others = checks
        reason = f"the loss is not finite at the first step of {own.origin}"
        return dataclasses.replace(first, ok=False, unchecked=False, reason=reason), *others

    def work(self, built: BuiltStep, batch: Batch) -> StepWork:
        own, call = of_kind(OwnProgram, built.program), built.compiled.call
        unread = jax.random.PRNGKey(0)  # the step makes its own first state
        work = step_work.with_effect(own, call, unread, own.batch_of(0), built.compiled.work)
        return step_work.watch(own, call, unread, own.batch_of, work)

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        return judge_timed_state(state, steps) if parameters else (judge_steps(state, steps),)

    def after_round(self, built: BuiltStep, batch: Batch, state: TrainState) -> tuple[tuple[Verdict, ...], None]:
        return self.proof.after_round(built.point, of_kind(OwnProgram, built.program), built.compiled.call, state)

    def outcome(self, built: BuiltStep) -> dict[str, float]:
        return {}

    def sent_checks(self, built: BuiltStep) -> tuple[Verdict, ...]:
        return ()  # listed, not judged


@dataclasses.dataclass(frozen=True)
class OwnFeed:
    """The batches that a user's function makes, one after the other."""

    batches: Iterator[Batch]

    def next(self) -> Batch:
        return next(self.batches)

    def close(self) -> None:
        pass


class OwnSource:
    """The batches of a user's step, which its program has."""

    def __init__(self, step: StepWorkload):
        self._step = step

    @functools.cached_property
    def fence(self) -> Callable[[object], object]:
        return fence_of(jax.local_devices())

    def batch(self, point: Point) -> Batch:
        return {}

    def drop(self) -> None:
        pass

    def fed(self, built: BuiltStep) -> bool:
        return isinstance(built.program, OwnProgram) and callable(built.program.own.batch)

    def feed(self, built: BuiltStep) -> OwnFeed:
        return OwnFeed(map(of_kind(OwnProgram, built.program).batch_of, itertools.count()))

    def facts(self, workload: StatedWork) -> dict[str, float]:
        units = self._step.units_per_example
        return {"tokens": float(units)} if units > 1 else {}

    def about(self) -> AboutModel:
        return AboutModel(unit=self._step.unit if self._step.units_per_example == 1 else "examples")


OwnBench: TypeAlias = Bench[OwnSteps]


def bench(config: Fields, experiment: str, devices: list[jax.Device], worker: str) -> OwnBench:
    """The bench of a user's step and of its ablations. Raises StageError for a file that has none."""
    made = ConfigDict(config)
    with stage("model"), made.unlocked():
        step = present(settle.load(made, experiment))
        require_every_option(made, devices)
    steps = OwnSteps(step, devices)
    compiler = Compiler(made.experiment, devices, steps)
    compiler.parts = Ablations(compiler, steps, lambda point, accepted: _part(compiler, steps, point))
    return Bench(made, devices, steps, OwnSource(step), compiler, worker)


def _part(compiler: Compiler, steps: OwnSteps, point: Point) -> tuple[StatedWork, Program]:
    """The program of an ablation. Raises Unsupported for a step that cannot be divided."""
    if is_plain(point):
        return steps.build(point, accepted=True)
    with stage("build"):
        require_options(point.levers, steps.devices[0])
        part, none = point.part, StatedWork()
        if part == PEAK:
            return none, peak(point, steps.devices[: devices_of(point)])
        if part == COMMUNICATION:
            if point.explains not in steps.texts:  # a run that goes on may lack the step here
                levers = {**point.levers, PART.name: PART.default}
                whole = dataclasses.replace(point, point=point.explains, explains="", levers=levers)
                compiler.compile(whole, accepted=True)
            text, mesh = steps.texts[point.explains]
            return none, communication(parse(text), mesh)
        share = steps.proof.expected()
        if share is None or share.one is None:
            raise Unsupported(share.why if share else str(steps.proof.reference["why"]))
        return none, one_device.program(share.one, steps.devices[: point.devices])


def fence_of(devices: Sequence[jax.Device]) -> Callable[[object], object]:
    """A fence that waits for all work of these devices: a `batch` may start some that it does not return."""
    mark = jax.jit(lambda x: x + 1)
    marks = [jax.device_put(jnp.zeros(()), device) for device in devices]
    jax.block_until_ready(list(map(mark, marks)))  # compiles now, and not while the clock runs

    def fence(tree: object) -> object:
        # A device does what one thread sends in order. What other threads send is known only by its results.
        jax.block_until_ready([x for x in jax.live_arrays() if not x.is_deleted()])
        jax.block_until_ready(list(map(mark, marks)))
        return jax.block_until_ready(tree)

    return fence

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The recipe of ablations: what they run, and what their checks ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from jaxbench import parallel
from jaxbench.core.point import Point
from jaxbench.core.program import Program, TrainState
from jaxbench.core.schema import CompileReport, StepWork, Verdict
from jaxbench.core.workload import Batch
from jaxbench.features.ablations import programs
from jaxbench.levers import PART, PRECISION
from jaxbench.measure import check, model_steps
from jaxbench.measure.arm import build_program, require_options
from jaxbench.measure.bench import Bench
from jaxbench.measure.compile_report import CompiledStep
from jaxbench.measure.compiler import Compiler
from jaxbench.measure.model_steps import ModelSteps
from jaxbench.measure.recipe import BuiltStep, Recipe
from jaxbench.parallel.stage import AXIS as STAGE
from jaxbench.processes.messages import Fields
from jaxbench.processes.server import stage
from jaxbench.sweep.ablations import ALONE, COMMUNICATION, LOCAL, PEAK, SCHEDULE, devices_of, is_plain
from jaxbench.workloads.levers import PRODUCTS

Build = Callable[[Point, bool], tuple[Any, Program]]  # of an ablation point; the flag: another process accepted it


@dataclasses.dataclass(frozen=True)
class Ablations:
    """The recipe of points that explain a whole step.

    steps: the recipe of whole steps. build_part: the program of an ablation. A model's program can be written without
    its collectives; that of somebody else's step is taken from its compiled text.
    """

    compiler: Compiler
    steps: Recipe
    build_part: Build

    def build(self, point: Point, *, accepted: bool) -> tuple[Any, Program]:
        return self.build_part(point, accepted)

    def executable(
        self, workload: Any, program: Program, point: Point, options: dict[str, object], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        return self.steps.executable(workload, program, point, options, accepted=accepted)

    def report(self, point: Point, report: CompileReport) -> CompileReport:
        """With the FLOPs of the ablation's share of the step."""
        part, count = point.part, devices_of(point)
        share = {ALONE: 1 / count, LOCAL: 1.0, SCHEDULE: 1.0, COMMUNICATION: 0.0}  # of the whole step's FLOPs
        if part == PEAK:
            flops = programs.product_flops(self.compiler.devices[0].platform, count)
        else:
            flops = report.flops_per_step * (1.0 if is_plain(point) else share[part])
        return dataclasses.replace(report, flops_per_step=flops)

    def verdicts(self, built: BuiltStep, batch: Batch, out: Any) -> tuple[Verdict, ...]:
        point, report = built.point, built.compiled.report
        host, part = check.judge_host_calls(built.compiled.host_calls), point.part
        if is_plain(point):  # the base's program with another batch, which was checked
            return (host,)
        if part == COMMUNICATION:
            return host, check.judge_communication(report, self._whole(point))
        # A part that still communicates would be counted as computation.
        silent = check.judge_silent(report)
        if part not in (LOCAL, SCHEDULE):
            return host, silent
        whole = self._whole(point)
        sent = check.judge_schedule(report, whole, STAGE) if part == SCHEDULE else silent
        work = check.judge_work(report, whole)
        return (host, sent) if work is None else (host, sent, work)

    def _whole(self, point: Point) -> CompileReport:
        """Of the step that a point is a part of. A run that goes on may have measured it in an earlier process."""
        reports = self.compiler.reports
        if point.explains not in reports:
            levers = {**point.levers, PART.name: PART.default}
            self.compiler.compile(dataclasses.replace(point, point=point.explains, explains="", levers=levers))
        return reports[point.explains]

    def work(self, built: BuiltStep, batch: Batch) -> StepWork:
        return built.compiled.work

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        """parameters: also check them where they must stay finite.

        A step without its collectives learns nothing, and its parameters may become infinite or NaN, which does not
        reduce its work. Payloads and products must stay finite: NaN is as fast on some devices, but slower on a CPU.
        """
        counted = 0 if point.part in (COMMUNICATION, PEAK) else steps
        if parameters and not counted:
            return check.judge_timed_state(state, 0)
        return (check.judge_steps(state, counted),)

    def after_round(self, built: BuiltStep, batch: Batch, state: TrainState) -> tuple[tuple[Verdict, ...], None]:
        return (), None  # an ablation makes no update that one device could make

    def outcome(self, built: BuiltStep) -> dict[str, float]:
        return {}

    def sent_checks(self, built: BuiltStep) -> tuple[Verdict, ...]:
        return ()  # `verdicts` has them


def bench(config: Fields, experiment: str, devices: list[jax.Device], worker: str) -> Bench[ModelSteps]:
    """The bench of a model's steps and of their ablations. Raises StageError for a model that cannot be built."""
    made = model_steps.bench(config, experiment, devices, worker)
    steps, compiler = made.steps, made.compiler
    compiler.parts = Ablations(compiler, steps, lambda point, accepted: _of_model(steps, point, accepted=accepted))
    return made


def _of_model(steps: ModelSteps, point: Point, *, accepted: bool) -> tuple[Any, Program]:
    """Raises Unsupported for a step that cannot be split into computation and communication."""
    if not accepted:
        steps.require_loss()
    with stage("build"):
        require_options(point.levers, steps.devices[0])
        workload = steps.workload(point)
        part, devices = point.part, steps.devices[: devices_of(point)]
        if part == PEAK:
            return workload, peak(point, devices, workload.dtype or "float32")
        levers = {**point.levers, PART.name: PART.default}
        if is_plain(point):
            program = build_program(workload, point.strategy, steps.devices[: point.devices], levers)
            if not accepted:
                steps.require_parts(workload, program, point)
            return workload, program
        program = build_program(workload, parallel.written_out(point.strategy), devices, levers)
        if part == COMMUNICATION:
            return workload, programs.communication(workload, program, point.global_batch)
        make = {ALONE: programs.alone, LOCAL: programs.local, SCHEDULE: programs.in_order}[part]
        return workload, make(workload, program, point.global_batch)


def peak(point: Point, devices: list[jax.Device], dtype: jax.typing.DTypeLike = "float32") -> Program:
    """A large product on the devices of the step that a point explains."""
    return programs.large_product(devices, dtype, PRODUCTS.get(PRECISION.of(point.levers), ""))

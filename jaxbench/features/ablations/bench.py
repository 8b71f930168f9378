# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A bench that also measures ablation points: what they run, and what their checks ask."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from jaxbench import parallel
from jaxbench.core.program import Program, TrainState
from jaxbench.core.schema import CompileReport, Verdict
from jaxbench.core.workload import Batch, TrainWorkload
from jaxbench.features.ablations import programs
from jaxbench.features.ablations.points import ALONE, COMMUNICATION, LOCAL, PEAK, SCHEDULE, devices_of, is_plain
from jaxbench.levers import PART, PRECISION
from jaxbench.measure import check
from jaxbench.measure.arm import build_program
from jaxbench.measure.bench import Bench
from jaxbench.measure.compile_report import CompiledStep
from jaxbench.measure.point import Point
from jaxbench.parallel.stage import AXIS as STAGE
from jaxbench.workloads.levers import PRODUCTS


class AblationBench(Bench):
    """A `Bench` that measures points of a step and their ablations."""

    def is_whole_step(self, point: Point) -> bool:
        return is_plain(point)

    def build(self, workload: TrainWorkload, point: Point) -> Program:
        """Raises Unsupported for a step that cannot be split into computation and communication."""
        if not point.explains:
            return super().build(workload, point)
        part, devices = point.levers[PART.name], self.devices[: devices_of(point)]
        if part == PEAK:
            return self.peak(point, workload.dtype or "float32")
        levers = {**point.levers, PART.name: PART.default}
        if is_plain(point):
            return build_program(workload, point.strategy, self.devices[: point.devices], levers)
        program = build_program(workload, parallel.written_out(point.strategy), devices, levers)
        if part == COMMUNICATION:
            return programs.communication(workload, program, point.global_batch)
        make = {ALONE: programs.alone, LOCAL: programs.local, SCHEDULE: programs.in_order}[part]
        return make(workload, program, point.global_batch)

    def peak(self, point: Point, dtype: jax.typing.DTypeLike = "float32") -> Program:
        """A large product on the devices of the step that a point explains."""
        products = PRODUCTS.get(PRECISION.of(point.levers), "")
        return programs.large_product(self.devices[: devices_of(point)], dtype, products)

    def report_of(self, point: Point, report: CompileReport) -> CompileReport:
        """With the FLOPs of the ablation's share of the step."""
        if not point.explains:
            return super().report_of(point, report)
        part, count = point.levers[PART.name], devices_of(point)
        share = {ALONE: 1 / count, LOCAL: 1.0, SCHEDULE: 1.0, COMMUNICATION: 0.0}  # of the whole step's FLOPs
        if part == PEAK:
            flops = programs.product_flops(self.devices[0].platform, count)
        else:
            flops = report.flops_per_step * (1.0 if is_plain(point) else share[part])
        return dataclasses.replace(report, flops_per_step=flops)

    def verdicts(
        self, point: Point, workload: TrainWorkload, program: Program, compiled: CompiledStep, batch: Batch, out: Any
    ) -> tuple[Verdict, ...]:
        if not point.explains:
            return super().verdicts(point, workload, program, compiled, batch, out)
        host, part = check.judge_host_calls(compiled.host_calls), point.levers[PART.name]
        if is_plain(point):  # the base's program with another batch, which was checked
            return (host,)
        if part == COMMUNICATION:
            return host, check.judge_communication(compiled.report, self._whole(point))
        # A part that still communicates would be counted as computation.
        silent = check.judge_silent(compiled.report)
        if part not in (LOCAL, SCHEDULE):
            return host, silent
        whole = self._whole(point)
        sent = check.judge_schedule(compiled.report, whole, STAGE) if part == SCHEDULE else silent
        work = check.judge_work(compiled.report, whole)
        return (host, sent) if work is None else (host, sent, work)

    def _whole(self, point: Point) -> CompileReport:
        """Of the step that a point is a part of. A run that goes on may have measured it in an earlier process."""
        if point.explains not in self.reports:
            levers = {**point.levers, PART.name: PART.default}
            self.compile(dataclasses.replace(point, point=point.explains, explains="", levers=levers))
        return self.reports[point.explains]

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        """parameters: also check them where they must stay finite.

        A step without its collectives learns nothing, and its parameters may become infinite or NaN, which does not
        reduce its work. Payloads and products must stay finite: NaN is as fast on some devices, but slower on a CPU.
        """
        if not point.explains:
            return super().state_verdicts(point, state, steps, parameters=parameters)
        counted = 0 if point.levers[PART.name] in (COMMUNICATION, PEAK) else steps
        if parameters and not counted:
            return check.judge_timed_state(state, 0)
        return (check.judge_steps(state, counted),)

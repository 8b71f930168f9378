# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point in one process: build, compile, check, then measure rounds. Owns no process, file or pipe."""

from __future__ import annotations

import dataclasses
import functools
import time
from dataclasses import dataclass
from typing import Any

import jax
from ml_collections import ConfigDict

from jaxbench import discovery, parallel
from jaxbench.errors import UserError
from jaxbench.measure import census, check
from jaxbench.measure.clock import Timer
from jaxbench.measure.passport import CompiledStep, compile_step
from jaxbench.parallel.program import Program, TrainState, jit_once
from jaxbench.records.schema import Passport, PointRecord, RoundRecord, Verdict
from jaxbench.runner.plan import Point
from jaxbench.workloads.base import Batch, TrainWorkload


class StageError(Exception):
    """A point failed; `stage` says where, the cause says why."""

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


@dataclass(frozen=True)
class Prepared:
    """A compiled, checked point. `steps`: K, the steps of one block."""

    point: Point
    program: Program
    compiled: CompiledStep
    steps: int


class Bench:
    """Measures points of one experiment on the devices of this process."""

    def __init__(self, config: dict[str, Any], experiment: str, devices: list[jax.Device], worker: str):
        self.config = ConfigDict(config)
        with stage("model"):
            self.workload = build_workload(self.config, experiment)
        self.devices = devices
        self.worker = worker
        self.key = jax.random.PRNGKey(self.config.seed)
        self.timer = Timer(blocks=self.config.measure.blocks)
        self._draw = jit_once(self.workload.synthetic, static_argnums=1)
        self._inits: dict[tuple[str, int], Any] = {}
        self.prepared: dict[str, Prepared] = {}
        self._reference: tuple[tuple[int, int], check.Reference] | None = None  # of the newest batch and parts

    def _build(self, strategy: str, devices: int) -> Program:
        """A new Program, whose step has never been traced, with the compiled `init` of an earlier one like it."""
        program = parallel.build(strategy, self.workload, self.devices[:devices])
        return dataclasses.replace(program, init=self._inits.setdefault((strategy, devices), program.init))

    @functools.cached_property
    def _initial(self) -> TrainState:
        return check.initial_state(self.workload, self.key, device=self.devices[0])

    def compile(self, point: Point) -> tuple[Program, CompiledStep]:
        """Builds and compiles; runs nothing. Raises StageError."""
        with stage("build"):
            program = self._build(point.strategy, point.devices)
        with stage("compile"):
            return program, compile_step(self.workload, program, point.global_batch)

    def dry(self, placed: dict[str, Any]) -> dict[str, Any]:
        """What a dry run wants to know of a point. Raises StageError."""
        passport = self.compile(Point(**placed))[1].passport
        seconds = (passport.trace_s or 0) + passport.lower_s + passport.compile_s
        return {"compile_s": seconds, "peak_bytes": passport.peak_bytes, "flops": passport.flops_per_step}

    def prepare(self, placed: dict[str, Any]) -> PointRecord:
        """Compiles, checks against one device, and finds the block length. Raises StageError."""
        point = Point(**placed)
        program, compiled = self.compile(point)
        with stage("check"):
            batch = self.batch(point)
            first_run_s = self._first_run(program, compiled, batch)
            passport = dataclasses.replace(compiled.passport, first_run_s=first_run_s)
            checks = (
                *self._check(point, program, compiled, batch),
                census.verify(
                    passport.collectives,
                    passport.expected_gradient_bytes,
                    point.devices,
                    stateful=bool(jax.tree.leaves(self._initial.model_state)),
                ),
            )
        with stage("measure"), jax.set_mesh(program.mesh):
            state, placed = program.init(self.key), program.put(batch)
            steps, _ = self.timer.steps_per_block(compiled.call, state, placed, self.config.measure.block_s)
        self.prepared[point.point] = Prepared(point, program, compiled, steps)
        return self._record(point, passport, checks)

    def round(self, point: str, number: int) -> RoundRecord:
        """Measures one round of a prepared point on a fresh state. Raises StageError."""
        ready = self.prepared[point]
        with stage("measure"), jax.set_mesh(ready.program.mesh):
            state, placed = ready.program.init(self.key), ready.program.put(self.batch(ready.point))
            jax.block_until_ready((state, placed))
            measured = self.timer.round(ready.compiled.call, state, placed, ready.steps)
        return RoundRecord(
            point=point, round=number, steps=ready.steps, worker=self.worker, **dataclasses.asdict(measured)
        )

    def batch(self, point: Point) -> Batch:
        """The synthetic batch of a point: the same values in every round, strategy and process."""
        return self._draw(jax.random.fold_in(self.key, 2), point.global_batch)

    def _first_run(self, program: Program, compiled: CompiledStep, batch: Batch) -> float:
        with jax.set_mesh(program.mesh):
            state, placed = program.init(self.key), program.put(batch)
            jax.block_until_ready((state, placed))
            start = time.perf_counter()
            jax.block_until_ready(compiled.call(state, placed))
            return time.perf_counter() - start

    def _check(self, point: Point, program: Program, compiled: CompiledStep, batch: Batch) -> tuple[Verdict, Verdict]:
        """One device's answer is kept for the next point, which may have the same batch."""
        made = point.global_batch, point.devices
        if self._reference is None or self._reference[0] != made:
            # in as many parts as there are devices, one device holds what it does when there are others
            expected = check.reference(
                self.workload, self._initial, batch, device=self.devices[0], passes=point.devices
            )
            self._reference = made, expected
        actual, expected = check.train(program, compiled.call, self.key, batch), self._reference[1]
        platform = self.devices[0].platform
        return check.judge(actual, expected, self.workload, platform=platform), check.judge_optimizer(actual, expected)

    def _record(self, point: Point, passport: Passport, checks: tuple[Verdict, ...]) -> PointRecord:
        return PointRecord(
            experiment=self.config.experiment,
            processes=jax.process_count(),
            platform=self.devices[0].platform,
            device_kind=self.devices[0].device_kind,
            unit=self.workload.unit,
            passport=passport,
            checks=checks,
            worker=self.worker,
            **point.to_json(),
        )


def build_workload(config: ConfigDict, experiment: str) -> TrainWorkload:
    """Loads the experiment (a name or a path) and builds its workload. Raises UserError if it returns another thing."""
    workload = discovery.load_experiment(experiment).build(config)
    if not isinstance(workload, TrainWorkload):
        raise UserError(f"build(config) of '{experiment}' returned {type(workload).__name__}, not a TrainWorkload.")
    return workload


class stage:
    """Names the stage in which an error happened."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            raise StageError(self.name) from error

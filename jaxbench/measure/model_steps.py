# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points of the suite's models, and of a model that a user brings: their recipe and their source."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
from ml_collections import ConfigDict

from jaxbench import discovery, levers
from jaxbench.core.point import Point
from jaxbench.core.program import Program, TrainState
from jaxbench.core.schema import CompileReport, StepWork, Verdict
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Dataset, TrainWorkload, random_key
from jaxbench.levers import INPUT, PART
from jaxbench.machine import preparing
from jaxbench.measure import expected_communication, first_step, step_facts, step_work
from jaxbench.measure.arm import Arms, build_program, require_options
from jaxbench.measure.bench import Bench
from jaxbench.measure.check import judge_steps, judge_timed_state
from jaxbench.measure.compile_report import CompiledStep, StatedWork, compile_step
from jaxbench.measure.compiler import Compiler
from jaxbench.measure.proof import Proof, require_examples, require_micro_batchable
from jaxbench.measure.recipe import AboutModel, BuiltStep
from jaxbench.measure.reference import with_first_state
from jaxbench.parallel import multihost
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Fields
from jaxbench.processes.server import stage
from jaxbench.workloads import inspection
from jaxbench.workloads.adapters import flax_models
from jaxbench.workloads.data import input as feeds
from jaxbench.workloads.data import own


class ModelSteps:
    """The recipe of whole training steps of one experiment.

    Attributes:
      plain: the workload without levers. proof: judges its points.
    """

    def __init__(self, config: ConfigDict, experiment: str, devices: list[jax.Device], key: jax.Array, *, keep: bool):
        """keep: keep the one-device references of all points, where memory allows, and not only of the newest."""
        self.config, self.devices, self.key = config, devices, key
        self.device = multihost.first_here(devices)
        self.arms = Arms(config, experiment, devices[0])
        # Also the workload of points without levers, so that what was compiled for one serves the other.
        self.plain = self.arms.workload({})
        inspection.inspect(self.plain, batch=config.batch)
        own_experiment = experiment in discovery.experiments()  # of the suite, not a user's file
        self.proof = Proof(self.arms, self.plain, devices, key, own=own_experiment, keep=keep, batch=config.batch)
        self._inits: dict[tuple[object, ...], Callable[[jax.Array], TrainState]] = {}
        self._stated: dict[tuple[object, ...], StatedWork] = {}  # by workload, batch, devices and part

    @functools.cached_property
    def data(self) -> Dataset | None:
        """The real data, read once."""
        return None if self.plain.data is None else own.read(self.plain, seed=self.config.seed)

    def workload(self, point: Point) -> TrainWorkload:
        """Raises UserError for a lever that this model or device does not support."""
        return self.arms.workload(point.levers, self._grown(point))

    def build(self, point: Point, *, accepted: bool) -> tuple[TrainWorkload, Program]:
        if not accepted:
            self.require_loss()
        with stage("build"):
            require_options(point.levers, self.devices[0])
            workload = self.workload(point)
            program = build_program(workload, point.strategy, self.devices[: point.devices], point.levers)
            # The compiled `init` of an earlier equal Program saves its compilation for each further arm, and on one
            # device that of the reference does. `Arms` keeps all workloads, so no id is given twice.
            layout = tuple(point.levers.get(name) for name in ("mesh", "schedule"))
            all_that_changes_init = point.strategy, point.devices, id(workload), layout
            program = with_first_state(program, self.proof.maker(workload))
            program = dataclasses.replace(program, init=self._inits.setdefault(all_that_changes_init, program.init))
            if not accepted:
                self.require_parts(workload, program, point)
            return workload, program

    def require_loss(self) -> None:
        """Raises StageError for a loss that is not a mean over its examples."""
        with stage("model"):
            _ = self.proof.loss_kind
        preparing.here().set_aside()  # it is of the model, not of the point that comes first

    def require_parts(self, workload: TrainWorkload, program: Program, point: Point) -> None:
        """Raises UserError if the examples of a step cannot be divided as the point asks."""
        require_micro_batchable(workload, program, self.proof.loss_kind)
        require_examples(workload, program, point.global_batch)

    def executable(
        self, workload: TrainWorkload, program: Program, point: Point, options: dict[str, object], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        # Strategies share what the workload states, because counting takes up to seconds.
        part = PART.default if point.explains else PART.of(point.levers)
        key = id(workload), point.global_batch, point.devices, part, accepted
        if key not in self._stated:
            about = workload, point.global_batch, point.devices, part
            self._stated[key] = StatedWork.of(*about, count=not accepted)
        how: dict[str, Any] = {"options": options, "asked": point.devices, "stated": self._stated[key]}
        return program, compile_step(workload, program, point.global_batch, **how)

    def report(self, point: Point, report: CompileReport) -> CompileReport:
        return report

    def verdicts(self, built: BuiltStep, batch: Batch, out: ArrayTree) -> tuple[Verdict, ...]:
        point = built.point
        checks = self.proof.verdicts(point, self._grown(point), built.program, built.compiled, batch)
        return first_step.diagnosed(checks, out, built.workload, key=self.key, batch=batch, device=self.device)

    def work(self, built: BuiltStep, batch: Batch) -> StepWork:
        """Parts of a step that update nothing have counts only."""
        work, part = built.compiled.work, PART.of(built.point.levers)
        if part not in ("step", "local"):
            return work
        if self.plain.sent:  # a sum over rows has its solution after a few steps, or fills a table over many
            return work
        if part == "step":  # the loss was computed with other values of each field
            idle = (*work.idle_fields, *(name for name in self.proof.unread if name not in work.idle_fields))
            kind = self.proof.loss_kind
            with_gradient = kind.single - kind.without if kind.single else None
            work = dataclasses.replace(
                work, idle_fields=idle, examples=kind.single, examples_with_gradient=with_gradient
            )
        placed = built.program.put(batch)
        return step_work.watch(built.program, built.compiled.call, self.key, lambda step: placed, work)

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        counted = steps if PART.of(point.levers) in ("step", "local") else 0  # other parts of a step update nothing
        return judge_timed_state(state, counted) if parameters else (judge_steps(state, counted),)

    def after_round(
        self, built: BuiltStep, batch: Batch, state: TrainState
    ) -> tuple[tuple[Verdict, ...], float | None]:
        point = built.point
        return self.proof.after_round(point, self._grown(point), built.program, built.compiled.call, batch, state)

    def outcome(self, built: BuiltStep) -> dict[str, float]:
        steps = self.config.measure.train_steps
        if not steps or self.data is None or PART.of(built.point.levers) != "step":
            return {}
        return step_facts.train_briefly(
            built.workload,
            built.program,
            self.data,
            steps=steps,
            batch=self.config.train.batch,
            seed=self.config.seed,
        )

    def sent_checks(self, built: BuiltStep) -> tuple[Verdict, ...]:
        about = built.workload, built.program, built.compiled.report, built.point.global_batch
        return (expected_communication.judge(*about, devices=built.point.devices),)

    def _grown(self, point: Point) -> int:
        """The device count for which the model is enlarged: that of the point if weak scaling grows the model."""
        return point.devices if point.scaling == "weak" and self.config.weak == "model" else 1


class ModelSource:
    """Synthetic batches of a model, or a feed of its data, and what records say of the model."""

    def __init__(self, steps: ModelSteps):
        self._steps, self._members = steps, ProcessGroup.of(steps.devices)
        self._drawn: dict[int, Batch] = {}  # the batch on a CPU, by batch size
        self._facts: dict[int, dict[str, float]] = {}  # by workload, which the arms keep

    @property
    def fence(self) -> Callable[[object], object]:
        return jax.block_until_ready

    def batch(self, point: Point) -> Batch:
        """On a CPU it is kept. For accelerators, and for several processes, it would take the host's memory."""
        steps, examples = self._steps, point.global_batch
        if not (steps.devices[0].platform == "cpu" and self._members.alone):
            return steps.proof.draw(steps.key, examples)
        if examples not in self._drawn:
            self._drawn[examples] = steps.proof.draw(steps.key, examples)
        return self._drawn[examples]

    def drop(self) -> None:
        self._drawn.clear()

    def fed(self, built: BuiltStep) -> bool:
        return INPUT.of(built.point.levers).kind != "device"

    def feed(self, built: BuiltStep) -> feeds.Feed:
        steps, point = self._steps, built.point
        return feeds.open(
            point.levers["input"],
            steps.plain,
            batch=point.global_batch,
            put=built.program.put,
            seed=steps.config.seed,
            data=steps.data,
        )

    def facts(self, workload: TrainWorkload) -> dict[str, float]:
        if id(workload) not in self._facts:
            self._facts[id(workload)] = step_facts.of_workload(workload)
        return self._facts[id(workload)]

    def about(self) -> AboutModel:
        plain = self._steps.plain
        annotations = flax_models.named_axes_sentence(plain.init)
        return AboutModel(unit=plain.unit, loss=self._steps.proof.loss_kind.described, annotations=annotations)


def bench(config: Fields, experiment: str, devices: list[jax.Device], worker: str) -> Bench[ModelSteps]:
    """The bench of an experiment's whole steps. Raises StageError for a model that cannot be built.

    worker: the name of this process in records; "try" keeps the one-device references of all points.
    """
    made = ConfigDict(config)
    with stage("model"):  # before any point, so that a model that cannot be built is reported once
        steps = ModelSteps(made, experiment, devices, random_key(made.seed), keep=worker == "try")
        require_every_option(made, devices)
    return Bench(made, devices, steps, ModelSource(steps), Compiler(made.experiment, devices, steps), worker)


def require_every_option(config: ConfigDict, devices: list[jax.Device]) -> None:
    """Raises UserError for compiler options that XLA cannot use. `compiler=all` names no set here: those of its points
    are required when they are built."""
    for arm in levers.arms(config.lever):
        require_options(arm.levers, devices[0])

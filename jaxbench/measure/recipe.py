# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a bench is told: how a kind of point is built and checked (`Recipe`), and what it is a point of (`Source`).

The suite's models have one of each (`model_steps`), and so have steps that somebody else wrote
(`features.own_step.recipe`). Ablations have recipes of their own (`features.ablations.recipe`), and the source of the
step that they explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from jaxbench.core.point import Point
from jaxbench.core.program import Program, TrainState
from jaxbench.core.schema import CompileReport, StepWork, Verdict
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch
from jaxbench.measure.compile_report import CompiledStep


@dataclass(frozen=True)
class BuiltStep:
    """A compiled point. workload: a TrainWorkload, or what a user's step states of itself (`StatedWork`)."""

    point: Point
    workload: Any
    program: Program
    compiled: CompiledStep


@dataclass(frozen=True)
class PreparedStep(BuiltStep):
    """A compiled, checked point. steps: K, the steps of one block."""

    steps: int


@dataclass(frozen=True, kw_only=True)
class AboutModel:
    """The fields of `PointRecord` that describe the model."""

    unit: str
    loss: str = ""
    annotations: str = ""


class Recipe(Protocol):
    """How a kind of point is built and checked. accepted: another process has checked the point."""

    def build(self, point: Point, *, accepted: bool) -> tuple[Any, Program]:
        """(the workload, the program that is not yet compiled). Raises UserError or Unsupported, within a `stage`."""

    def executable(
        self, workload: Any, program: Program, point: Point, options: dict[str, object], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        """(the program that runs, its executable). A user's own step may be laid out anew when it is compiled."""

    def report(self, point: Point, report: CompileReport) -> CompileReport:
        """The compile report of a point, given the one with the FLOPs of a whole step of the global batch."""

    def verdicts(self, built: BuiltStep, batch: Batch, out: ArrayTree) -> tuple[Verdict, ...]:
        """The checks of a compiled point before it is timed. out: the outputs of its first step."""

    def work(self, built: BuiltStep, batch: Batch) -> StepWork:
        """What the compiled step does."""

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        """The verdicts on the state after `steps` timed steps. parameters: also check that they are finite."""

    def after_round(
        self, built: BuiltStep, batch: Batch, state: TrainState
    ) -> tuple[tuple[Verdict, ...], float | None]:
        """(the verdicts on one more update of the timed state, the loss before it). Donates the state."""

    def outcome(self, built: BuiltStep) -> dict[str, float]:
        """The results of a short training, such as its accuracy; {} unless the config asks for one."""

    def sent_checks(self, built: BuiltStep) -> tuple[Verdict, ...]:
        """The checks of what the compiled step sends."""


class Feeding(Protocol):
    """The batches of a fed step."""

    def next(self) -> ArrayTree:
        """The batch of the next step."""

    def close(self) -> None: ...


class Source(Protocol):
    """What a process measures points of: where their batches come from, and what records say of them."""

    @property
    def fence(self) -> Callable[[object], object]:
        """Waits for all work of a fed step."""

    def batch(self, point: Point) -> Batch:
        """The batch of a point: the same values in every round, strategy and process."""

    def fed(self, built: BuiltStep) -> bool:
        """Whether each step takes another batch from the host, instead of the same one on the devices."""

    def feed(self, built: BuiltStep) -> Feeding:
        """The batches of a fed step, opened anew."""

    def facts(self, workload: Any) -> dict[str, float]:
        """`PointRecord.facts`, as far as they belong to the workload."""

    def about(self) -> AboutModel:
        """What the records of its points say of the model."""

    def drop(self) -> None:
        """Drops the arrays that it keeps. They are made again when they are needed."""

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a compiled point computes and sends what it must: what every measured row carries beside its time."""

from __future__ import annotations

import functools
from typing import Any

import jax

from jaxbench.levers.part import PART
from jaxbench.measure import check, closed_form, loss_kind, memory, needed, oracle
from jaxbench.measure.loss_kind import LossKind
from jaxbench.measure.passport import CompiledStep
from jaxbench.parallel.program import Program, TrainState
from jaxbench.records.schema import Verdict
from jaxbench.runner import pieces
from jaxbench.runner.arm import Arms
from jaxbench.runner.plan import Point
from jaxbench.workloads.base import Batch, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful

MOST_FLOPS_OF_A_CPU = 1e12  # unoptimised: about a minute


class Proof:
    """Judges the points of one experiment.

    own: it is one of the suite's, which may communicate nothing that it need not. keep: every answer of one device is
    kept, not only the newest: where there is memory for them.
    """

    def __init__(
        self, arms: Arms, plain: TrainWorkload, device: jax.Device, key: jax.Array, *, own: bool, keep: bool = False
    ):
        self.arms, self.plain, self.device, self.key, self.own, self.keep = arms, plain, device, key, own, keep
        self._references: dict[tuple[Any, ...], oracle.Reference] = {}  # by what they are of
        self._starts: dict[int, TrainState] = {}  # by workload

    @functools.cached_property
    def loss_kind(self) -> LossKind:
        """Of the experiment's loss, which no lever changes. Raises UserError for a loss that is no mean.

        Not looked for on devices that are not here, in a model that does not fit one, or for minutes of a CPU: then a
        strategy that is wrong with it is found by its results alone.
        """
        slow = self.device.platform == "cpu" and loss_kind.flops(self.plain) > MOST_FLOPS_OF_A_CPU
        if slow or self.device not in jax.devices():
            return LossKind(name=loss_kind.UNTRIED)
        try:
            kind = loss_kind.find(self.plain, device=self.device)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return LossKind(name=loss_kind.UNTRIED)
        pieces.require_loss(self.plain, kind)
        return kind

    @functools.cached_property
    def draws(self) -> bool:
        """Whether the loss uses its key."""
        return needed.draws(self.plain)

    def start(self, workload: TrainWorkload) -> TrainState:
        """The canonical state (host arrays) before the first update, made once and kept."""
        if id(workload) not in self._starts:
            self._starts[id(workload)] = oracle.initial_state(workload, self.key, device=self.device)
        return self._starts[id(workload)]

    def verdicts(
        self, point: Point, grown: int, program: Program, compiled: CompiledStep, batch: Batch
    ) -> tuple[Verdict, ...]:
        """What is found wrong or right, or could not be found out."""
        workload = self.arms.reference(point.levers, grown, draws=self.draws)
        lies, platform = oracle.Lies.of(program, draws=self.draws), self.device.platform
        part, passport = PART.of(point.levers), compiled.passport
        about: dict[str, Any] = {"key": self.key, "batch": batch}
        if part not in ("step", "local") or (part == "local" and point.devices > 1):
            flops = passport.flops_per_step
            return (check.judge_part(part, program, compiled.call, workload, **about, flops=flops, draws=self.draws),)
        measured = self.arms.workload(point.levers, grown)
        products = check.judge_products(measured, point.levers)
        across = self.loss_kind.name == loss_kind.ACROSS and not self.loss_kind.gathers
        census = functools.partial(
            closed_form.judge, measured, program, passport, point.global_batch, own=self.own, across=across
        )
        try:
            expected = self._expected(workload, batch, point, lies, passport.flops_per_step)
        except oracle.Unfit as error:
            return check.unchecked(str(error)), *products, census()
        memory.give_back()
        actual = check.train(program, compiled.call, self.key, batch)
        where: dict[str, Any] = {"device": self.device, "lies": lies, "platform": platform}
        again = functools.cache(functools.partial(oracle.again, expected, workload, **about, **where))

        def rounding() -> float:
            return oracle.relative_l2(again().params, expected.end.params)

        parameters = check.judge(actual, expected, workload, platform=platform, rounding=rounding)
        optimizer = check.judge_optimizer(actual, expected)

        def proven() -> bool:
            return parameters.ok and optimizer.ok and check.each_proven(actual, expected, again)

        return parameters, optimizer, *products, census(proven=proven)

    def _expected(
        self, workload: TrainWorkload, batch: Batch, point: Point, lies: oracle.Lies, flops: float
    ) -> oracle.Reference:
        """One device's answer, which is kept for the next points, whose may be the same."""
        made: tuple[Any, ...] = (point.global_batch, id(workload), *self._matters(workload, point, lies))
        if made not in self._references:
            if not self.keep:
                self._references.clear()
            memory.give_back()
            self._references[made] = oracle.reference_that_fits(
                workload,
                self.key,
                batch,
                device=self.device,
                lies=lies,
                flops=flops,
                apart=functools.partial(self._in_parts, workload),
                start=self._starts.get(id(workload)),
            )
        return self._references[made]

    def _matters(self, workload: TrainWorkload, point: Point, lies: oracle.Lies) -> tuple[Any, ...]:
        """What of how a batch lies makes another answer: its parts for batch statistics, and all of it for what is
        drawn."""
        if self.draws:
            return lies.identity(self.key, point.global_batch)
        return (lies.parts,) if stateful(self._model_state(workload)) else ()

    def _in_parts(self, workload: TrainWorkload) -> bool:
        """Whether one device may find its answer part by part."""
        whole = stateful(self._model_state(workload)) and not workload.independent
        return self.loss_kind.in_parts and not whole and not self.draws

    def _model_state(self, workload: TrainWorkload) -> Any:
        return jax.eval_shape(workload.init, self.key)[1]

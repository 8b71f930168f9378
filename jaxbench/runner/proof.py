# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks that a compiled point computes and communicates what it must. Every measured row carries the verdicts."""

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

MAX_CPU_FLOPS = 1e12  # unoptimised: about a minute


class Proof:
    """Judges the points of one experiment.

    own: it is one of the suite's, which must not communicate more than necessary. keep: keep the references (results of
    one device) of all points, not only of the newest, where memory allows.
    """

    def __init__(
        self, arms: Arms, plain: TrainWorkload, device: jax.Device, key: jax.Array, *, own: bool, keep: bool = False
    ):
        self.arms, self.plain, self.device, self.key, self.own, self.keep = arms, plain, device, key, own, keep
        self._references: dict[tuple[Any, ...], oracle.Reference] = {}  # by everything that changes the result
        self._starts: dict[int, TrainState] = {}  # by workload

    @functools.cached_property
    def loss_kind(self) -> LossKind:
        """The kind of the experiment's loss, which no lever changes. Raises UserError for a loss that is not a mean.

        Not determined on absent devices, for a model that does not fit one device, or if it takes minutes on a CPU.
        Then only its results show that a strategy is wrong with the loss.
        """
        slow = self.device.platform == "cpu" and loss_kind.flops(self.plain) > MAX_CPU_FLOPS
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

    def take(self, said: str) -> None:
        """Takes the kind of the loss, as its `said`, from another process that has accepted it."""
        self.loss_kind = LossKind.of(said)

    @functools.cached_property
    def draws(self) -> bool:
        """Whether the loss uses its key."""
        return needed.draws(self.plain)

    def start(self, workload: TrainWorkload) -> TrainState:
        """The canonical state (host arrays) before the first update, made once."""
        if id(workload) not in self._starts:
            self._starts[id(workload)] = oracle.initial_state(workload, self.key, device=self.device)
        return self._starts[id(workload)]

    def verdicts(
        self, point: Point, grown: int, program: Program, compiled: CompiledStep, batch: Batch
    ) -> tuple[Verdict, ...]:
        """What is right, wrong or could not be checked."""
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
        about |= {"device": self.device, "lies": lies, "platform": platform}
        again = functools.cache(functools.partial(oracle.again, expected, workload, **about))

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
        """The result of one device, kept for the next points, which may have the same."""
        key: tuple[Any, ...] = (point.global_batch, id(workload), *self._layout(workload, point, lies))
        if key not in self._references:
            if not self.keep:
                self._references.clear()
            memory.give_back()
            self._references[key] = oracle.reference_that_fits(
                workload,
                self.key,
                batch,
                device=self.device,
                lies=lies,
                flops=flops,
                apart=functools.partial(self._in_parts, workload),
                start=self._starts.get(id(workload)),
            )
        return self._references[key]

    def _layout(self, workload: TrainWorkload, point: Point, lies: oracle.Lies) -> tuple[Any, ...]:
        """The part of the batch's layout that changes the result: for batch statistics its parts, for random numbers
        all of it."""
        if self.draws:
            return lies.identity(self.key, point.global_batch)
        return (lies.parts,) if stateful(self._model_state(workload)) else ()

    def _in_parts(self, workload: TrainWorkload) -> bool:
        """Whether one device may compute the reference part by part."""
        whole = stateful(self._model_state(workload)) and not workload.independent
        return self.loss_kind.in_parts and not whole and not self.draws

    def _model_state(self, workload: TrainWorkload) -> Any:
        return jax.eval_shape(workload.init, self.key)[1]

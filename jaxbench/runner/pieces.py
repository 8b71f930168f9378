# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Refuses losses that are not micro-batchable: the mean over parts of the batch is not the loss of the whole batch."""

from __future__ import annotations

import jax

from jaxbench.errors import Unsupported, UserError
from jaxbench.measure.loss_kind import ACROSS, CONSTANT, EXAMPLES, HIDDEN, PARTLY, SUM, LossKind
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import KEY, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful


def require_loss(workload: TrainWorkload, kind: LossKind) -> None:
    """Raises UserError for a loss that is not a mean over its examples: no strategy can compute it correctly."""
    if kind.name == SUM:
        raise UserError(
            f"the loss of '{workload.name}' is a sum over its examples, so its gradient grows with the batch (2.0 "
            "times for twice the examples). Return the mean: jnp.mean(...) instead of jnp.sum(...)."
        )
    if kind.name == CONSTANT:
        raise UserError(
            f"the loss of '{workload.name}' does not depend on the batch: other values of its fields "
            f"({', '.join(workload.example)}) change neither the loss nor its gradient. Compute it from the argument "
            "`batch`."
        )
    if kind.name == PARTLY:
        numbers = ", ".join(str(i + 1) for i in kind.ignored)
        raise UserError(
            f"the loss of '{workload.name}' does not depend on all its examples: of {EXAMPLES} it ignores number "
            f"{numbers}. Return the mean over the leading axis of every field of the batch."
        )


def require(workload: TrainWorkload, program: Program, kind: LossKind) -> None:
    """Raises Unsupported if the mean over parts of the batch differs from the loss of the whole batch."""
    parts = 1 if program.keys is None else program.parts
    count = parts * workload.micro_batches
    if parts > 1 and kind.state:
        raise Unsupported(
            f"the state '{kind.state[0]}' of '{workload.name}' is not a mean over examples (it may be a count, a sum "
            "or a largest value), and each device sees only its part of the batch: compute it from gathered(x), from "
            "jaxbench.workloads, instead of x, or use --config.strategy=jit_auto."
        )
    if count == 1 or kind.name not in (HIDDEN, ACROSS):
        return
    if kind.name == ACROSS and kind.gathers and workload.micro_batches == 1:
        return
    if kind.name == ACROSS and kind.gathers and stateful(jax.eval_shape(workload.init, KEY)[1]):
        return  # batch statistics: the reference on one device also normalises each micro-batch by itself
    pieces = f"{count} micro-batches" if parts == 1 else f"{count} parts"
    if kind.name == HIDDEN:
        raise Unsupported(
            f"the loss of '{workload.name}' divides by the weight of its examples, and the mean of such quotients over "
            f"{pieces} is a different loss: return WeightedMean(total, weight), from jaxbench.workloads, instead of "
            "total / weight."
        )
    if kind.gathers:
        raise Unsupported(
            f"the loss of '{workload.name}' compares all examples of a batch with each other, which {pieces} in "
            "sequence cannot do: use --config.lever.accumulate=1."
        )
    if workload.micro_batches > 1:
        raise Unsupported(
            f"the loss of '{workload.name}' looks across examples, but a micro-batch sees only its own: use "
            "--config.lever.accumulate=1."
        )
    raise Unsupported(
        f"the loss of '{workload.name}' looks across examples, but each device sees only its part of the batch: "
        "compare with gathered(x), from jaxbench.workloads, instead of x, or use --config.strategy=jit_auto."
    )

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a program that gives a loss the batch in pieces may do that with this loss."""

from __future__ import annotations

import jax

from jaxbench.errors import Unsupported, UserError
from jaxbench.measure.loss_kind import ACROSS, EXAMPLES, HIDDEN, PARTLY, SUM, LossKind
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import KEY, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful


def require_loss(workload: TrainWorkload, kind: LossKind) -> None:
    """Raises UserError for a loss that no strategy can be right with, as none is a mean of what it is given."""
    if kind.name == SUM:
        raise UserError(
            f"the loss of '{workload.name}' is a sum over its examples: its gradient grows with the batch, 2.0 times "
            "for twice the examples. Return the mean, jnp.mean(...) in place of jnp.sum(...)."
        )
    if kind.name == PARTLY:
        numbers = ", ".join(str(i + 1) for i in kind.ignored)
        raise UserError(
            f"the loss of '{workload.name}' does not depend on all examples it is given: of {EXAMPLES} it ignores "
            f"number {numbers}. Return the mean over the leading axis of every field of the batch."
        )


def require(workload: TrainWorkload, program: Program, kind: LossKind) -> None:
    """Raises Unsupported where the mean over pieces of the batch is another thing than the loss of the whole."""
    parts = 1 if program.keys is None else program.parts
    apart = parts * workload.micro_batches
    if apart == 1 or kind.name not in (HIDDEN, ACROSS) or (kind.gathers and workload.micro_batches == 1):
        return
    if kind.gathers and stateful(jax.eval_shape(workload.init, KEY)[1]):
        return  # batch statistics: each micro-batch is normalised by its own, and so are those of the one device
    pieces = f"{apart} micro-batches" if parts == 1 else f"{apart} parts"
    if kind.name == HIDDEN:
        raise Unsupported(
            f"the loss of '{workload.name}' divides by a weight of the examples it is given, and the mean of such "
            f"means over {pieces} is another loss: return WeightedMean(total, weight), from jaxbench.workloads, in "
            "place of total / weight."
        )
    if kind.gathers:
        raise Unsupported(
            f"the loss of '{workload.name}' compares all examples of a batch with each other, and {pieces} one after "
            "the other never meet: use --config.lever.accumulate=1."
        )
    if workload.micro_batches > 1:
        raise Unsupported(
            f"the loss of '{workload.name}' looks across examples, and micro-batches hide some from each other: use "
            "--config.lever.accumulate=1."
        )
    raise Unsupported(
        f"the loss of '{workload.name}' looks across examples, and where each device sees its own part of the "
        "batch it is another loss: compare with gathered(x), from jaxbench.workloads, in place of x, or use "
        "--config.strategy=jit_auto."
    )

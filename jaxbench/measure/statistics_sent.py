# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The number of all-reduces of model state, such as batch statistics, that a step may do: whole repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxbench.workloads.base import PyTree, TrainWorkload
from jaxbench.workloads.levers.freeze import not_frozen


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The numbers in a model's state, which a step may sum over devices.

    floats: floating-point numbers, such as batch statistics. others: whole numbers, which a program with explicit
    collectives reduces once. scalars: values of rank 0. repeats: how often the floats are summed at most.
    """

    floats: int = 0
    others: int = 0
    scalars: int = 0
    repeats: int = 1

    @classmethod
    def of(cls, workload: TrainWorkload, model_state: PyTree) -> Statistics:
        """Counts the state of a workload.

        Statistics of each device's own examples are summed once. Statistics of the whole batch are summed in each
        forward and backward pass, again where a pass is repeated, and finally as the state.
        """
        leaves = jax.tree.leaves(not_frozen(model_state))
        floats = sum(leaf.size for leaf in leaves if leaf.ndim and jnp.issubdtype(leaf.dtype, jnp.inexact))
        return cls(
            floats=floats,
            others=sum(leaf.size for leaf in leaves if leaf.ndim) - floats,
            scalars=sum(not leaf.ndim for leaf in leaves),
            repeats=1 if workload.independent else 1 + 3 * workload.micro_batches,
        )

    def sums(self, platform: str) -> Iterator[tuple[int, int]]:
        """(numbers, at most how many of them are scalars) of each possible sum. On a CPU scalars are not counted."""
        for repeats in range(self.repeats + 1):
            scalars = 0 if platform == "cpu" else self.scalars * max(1, repeats)
            for others in {0, self.others}:
                yield repeats * self.floats + others, scalars

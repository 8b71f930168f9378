# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Measures the gradient noise scale of a training, on one device, at the parameters that it has reached.

Source: McCandlish et al. 2018, "An Empirical Model of Large-Batch Training" (arXiv:1812.06162), appendix A.1: the
squared norms of gradients of two batch sizes give unbiased estimates of |G|^2 and of tr(Sigma), the trace of the
covariance of one example's gradient. Their ratio tr(Sigma) / |G|^2 is the simple noise scale, in examples.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError
from jaxbench.training.plan import Plan
from jaxbench.workloads.base import Batch, PyTree, TrainWorkload
from jaxbench.workloads.data.order import words

PARTS = 8  # small batches: equal parts of the drawn examples. The mean of their gradients is that of the large batch
DRAWN = 1  # a third word of entropy: makes this draw differ from the order of batches, which has two


def unbiased(small: float, large: float, *, small_batch: int, large_batch: int) -> tuple[float, float]:
    """(|G|^2, tr(Sigma)) from the squared norms of the gradients of two batches, each a mean over its examples.

    |G|^2 = (B |G_B|^2 - b |G_b|^2) / (B - b); tr(Sigma) = (|G_b|^2 - |G_B|^2) / (1/b - 1/B). Both are unbiased, so a
    single |G|^2 may be negative. Divide averages of the two, never single values.
    """
    signal = (large_batch * large - small_batch * small) / (large_batch - small_batch)
    return signal, (small - large) / (1 / small_batch - 1 / large_batch)


class NoiseMeter:
    """Compiled gradients of parts of the training set."""

    def __init__(
        self,
        workload: TrainWorkload,
        train: dict[str, np.ndarray],
        *,
        plan: Plan,
        params: PyTree,
        model_state: PyTree,
        device: Any,
    ):
        """Compiles the gradients. Raises UserError when the examples do not divide into parts."""
        asked = plan.noise_examples
        if asked % PARTS:
            raise UserError(f"--config.train.noise_examples={asked} must divide into {PARTS} parts: use {8 * PARTS}.")
        self._train, self._plan, self._device, self._part = train, plan, device, asked // PARTS

        def gradient(params: PyTree, model_state: PyTree, batch: Batch, key: jax.Array) -> PyTree:
            return jax.grad(lambda p: workload.mean_loss(p, model_state, batch, key)[0])(params)

        def added(total: PyTree, grads: PyTree) -> tuple[PyTree, jax.Array]:
            """(the sum of gradients so far, the squared norm of the newest gradient)."""
            return jax.tree.map(jnp.add, total, grads), square(grads)

        def square(tree: PyTree) -> jax.Array:
            return sum((jnp.vdot(x, x).astype(jnp.float32) for x in jax.tree.leaves(tree)), jnp.zeros(()))

        arguments = jax.device_put((params, model_state), device)
        batch, key = self._batch(np.zeros(self._part, np.int64)), self._key(0, 0)
        self._gradient = jax.jit(gradient).lower(*arguments, batch, key).compile()
        self._zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), arguments[0])
        self._added = jax.jit(added).lower(self._zero, self._zero).compile()
        self._square = jax.jit(square).lower(self._zero).compile()

    def _batch(self, rows: np.ndarray) -> Batch:
        return jax.device_put({name: array[rows] for name, array in self._train.items()}, self._device)

    def _key(self, step: int, part: int) -> jax.Array:
        return jax.device_put(words(1, self._plan.seed, step, DRAWN, part).view(np.uint32), self._device)

    def __call__(self, params: PyTree, model_state: PyTree, *, step: int) -> dict[str, float]:
        """Estimates as {"gradient_square": |G|^2, "noise_trace": tr(Sigma)}.

        params, model_state: canonical, in host memory. The examples are drawn with replacement, so they are
        independent. The draw depends on the seed and the step.
        """
        count, examples = self._plan.noise_examples, self._plan.examples
        drawn = (words(count, self._plan.seed, step, DRAWN) % np.uint64(examples)).astype(np.int64)
        arguments = jax.device_put((params, model_state), self._device)
        total, squares = self._zero, []
        for number, rows in enumerate(drawn.reshape(PARTS, self._part)):
            grads = self._gradient(*arguments, self._batch(rows), self._key(step, number))
            total, each = self._added(total, grads)
            squares.append(each)
        small = float(np.mean([np.asarray(each) for each in squares]))
        large = float(self._square(total)) / PARTS**2  # the total is a sum of PARTS means
        signal, noise = unbiased(small, large, small_batch=self._part, large_batch=count)
        return {"gradient_square": signal, "noise_trace": noise}

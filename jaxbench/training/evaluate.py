# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Metrics on the whole test set, with exact accuracy: every example counts once, without padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbench.workloads.base import PyTree, TrainWorkload
from jaxbench.workloads.weighted import Means

CHUNK = 1024  # examples per call; few enough that a float32 mean gives the exact count of correct answers


class Evaluator:
    """Compiled evaluation of one test set on one device, with canonical parameters, for every strategy."""

    def __init__(
        self, workload: TrainWorkload, test: dict[str, np.ndarray], *, params: PyTree, model_state: PyTree, device: Any
    ):
        """Compiles."""
        self._device = device
        self._key = jax.device_put(np.zeros(2, np.uint32), device)
        examples = len(next(iter(test.values())))
        cuts = [slice(at, min(at + CHUNK, examples)) for at in range(0, examples, CHUNK)]
        self._sizes = [cut.stop - cut.start for cut in cuts]
        self._chunks = [jax.device_put({k: v[cut] for k, v in test.items()}, device) for cut in cuts]

        def score(params: PyTree, model_state: PyTree, batch: Any, key: jax.Array) -> dict[str, jax.Array]:
            if workload.evaluate is not None:
                return dict(workload.evaluate(params, model_state, batch))
            loss, (_, others) = workload.loss(params, model_state, batch, key)
            return {"loss": loss, **others}

        arguments = jax.device_put((params, model_state), device)
        compiled: dict[int, Callable[..., Any]] = {}  # one for the full chunks, one for the last
        for size, chunk in zip(self._sizes, self._chunks, strict=True):
            if size not in compiled:
                compiled[size] = jax.jit(score).lower(*arguments, chunk, self._key).compile()
        self._compiled = compiled

    def __call__(self, params: PyTree, model_state: PyTree) -> dict[str, float]:
        """Means over the test set. `params`, `model_state`: canonical, in host memory."""
        arguments = jax.device_put((params, model_state), self._device)
        means = Means()
        for size, chunk in zip(self._sizes, self._chunks, strict=True):
            means.add(self._compiled[size](*arguments, chunk, self._key), size)
        return means.means()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A short training on real data, scored on its test split: a faster step must also learn."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbench.errors import UserError
from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program, TrainState, jit_once
from jaxbench.workloads.base import Dataset, PyTree, TrainWorkload
from jaxbench.workloads.data import order
from jaxbench.workloads.weighted import Means

CHUNK = 512  # test examples scored at once


def train_briefly(
    workload: TrainWorkload, program: Program, data: Dataset, *, steps: int, batch: int, seed: int
) -> dict[str, float]:
    """Trains for `steps` steps of `batch` examples from the state that `seed` gives, then scores the whole test split.

    Returns:
      steps; final_loss and, if the workload reports it, final_accuracy: means over the test examples;
      skipped_steps under dynamic loss scaling. Values that are not finite are left out, because JSON cannot store them.

    Raises:
      UserError: the training split has fewer examples than a batch.
    """
    examples = len(next(iter(data.train.values())))
    if examples < batch:
        raise UserError(f"--config.train.batch={batch} exceeds the {examples} training examples: use fewer.")
    metrics: dict[str, Any] = {}
    with jax.set_mesh(program.mesh):
        state, call = program.init(jax.random.PRNGKey(seed)), program.members.after_barrier(program.step)
        for step in range(steps):
            epoch, position = divmod(step, examples // batch)
            if position == 0:
                batches = order(examples, batch, seed=seed, epoch=epoch)
            host: Any = {name: array[batches[position]] for name, array in data.train.items()}
            state, metrics = call(state, program.put(host))
        final = jax.device_get(program.export(state))
    device = multihost.first_here(program.mesh.devices.flat)
    results = {"steps": float(steps), **_score(workload, final, data.test, device=device)}
    if "skipped_steps" in metrics:
        results["skipped_steps"] = float(np.asarray(metrics["skipped_steps"]).flat[0])
    return {name: value for name, value in results.items() if np.isfinite(value)}


def _score(
    workload: TrainWorkload, state: TrainState, test: dict[str, np.ndarray], *, device: jax.Device
) -> dict[str, float]:
    def metrics(params: PyTree, model_state: PyTree, part: Any) -> dict[str, jax.Array]:
        if workload.evaluate is not None:
            return dict(workload.evaluate(params, model_state, part))
        loss, (_, others) = workload.loss(params, model_state, part, jax.random.PRNGKey(0))
        return {"loss": loss, **others}

    scored, count, means = jit_once(metrics), len(next(iter(test.values()))), Means()
    with jax.default_device(device):
        params, model_state = jax.device_put((state.params, state.model_state), device)
        for at in range(0, count, CHUNK):
            part: Any = {name: array[at : at + CHUNK] for name, array in test.items()}
            means.add(scored(params, model_state, part), len(next(iter(part.values()))))
    return {f"final_{name}": mean for name, mean in means.means().items() if name in ("loss", "accuracy")}

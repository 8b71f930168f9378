# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Facts about a step besides its times: its memory on a device, what its metrics say, and how well it learns."""

from __future__ import annotations

import math

import jax
import numpy as np

from jaxbench.core.clock import InFlight, run_ahead
from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.core.weighted import Means
from jaxbench.core.workload import KEY, Batch, Dataset, Metrics, Scalars, TrainWorkload, random_key
from jaxbench.errors import UserError
from jaxbench.parallel import multihost
from jaxbench.parallel.step import jit_once
from jaxbench.processes.group import members_of
from jaxbench.workloads import flops
from jaxbench.workloads.data import order

# Metrics of a step that are facts about its execution: the share of a pipeline's (tick, stage) slots that were busy,
# the share of positions that exceeded the capacity of their expert, and the share of tokens that are not padding.
REPORTED = ("busy_share", "dropped", "real_share")
CHUNK = 512  # test examples scored at once: a whole test split may not fit in a device's memory


def memory(program: Program, state: TrainState, batch: Batch, *, gradients: bool) -> dict[str, float]:
    """Bytes on one device, from its shards. state_bytes: parameters and optimizer state.

    gradients: also measure held_gradient_bytes, the gradients as the strategy holds them between micro-batches. If
    they are laid out differently from the parameters, this compiles and runs a second program.
    """
    facts = {"state_bytes": held((state.params, state.opt_state), program)}
    if gradients:
        grads = state.params if program.gradients is None else program.gradients(state, batch)
        facts["held_gradient_bytes"] = held(grads, program)
    return facts


def of_workload(workload: TrainWorkload) -> dict[str, float]:
    """Facts about one example for throughput in tokens and for FLOP formulas; facts with the value 0 are left out."""
    facts = {
        "tokens": float(workload.tokens),
        "masked_flops": workload.masked_flops_per_example,
        "padding_flops": workload.padding_flops_per_example,
    }
    found = {name: value for name, value in facts.items() if value}
    least = _least_work(workload)
    return found if least == 1 else {**found, "least_work": least}


def _least_work(workload: TrainWorkload) -> float:
    """The share of an update's FLOPs that every update does.

    It is below 1 if conditionals in the model or its optimizer may skip work, depending on the state.
    """

    def update(
        params: ArrayTree, model_state: ArrayTree, opt_state: ArrayTree, batch: Batch, key: jax.Array
    ) -> ArrayTree:
        _, grads = jax.value_and_grad(workload.mean_loss, has_aux=True)(params, model_state, batch, key)
        return workload.optimizer.update(grads, opt_state, params)

    params, model_state = jax.eval_shape(workload.init, KEY)
    opt_state = jax.eval_shape(workload.optimizer.init, params)
    # A few examples: the share does not depend on their number, and it is only traced.
    return flops.least_share(update, params, model_state, opt_state, workload.batch_avals(workload.traceable(2)), KEY)


def held(tree: object, program: Program) -> float:
    """Bytes of all arrays on one device, without rank-0 counters. The device is this process's first in the mesh."""
    first = multihost.first_here(program.mesh.devices.flat)
    leaves = [x for x in jax.tree.leaves(tree) if x.ndim and first in x.sharding.device_set]
    # From the shardings: JAX cannot list the shards of an array that `device_put` has copied to several processes.
    return float(sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in leaves))


def of_metrics(outputs: ArrayTree) -> dict[str, float]:
    """The REPORTED metrics among the outputs of a step, and its `first_loss`.

    {} for a part of a step that does not return metrics.
    """
    if not isinstance(outputs, dict):
        return {}
    loss = loss_of(outputs)
    return {name: float(np.mean(multihost.on_host(outputs[name]))) for name in REPORTED if name in outputs} | (
        {} if loss is None else {"first_loss": loss}
    )


def loss_of(outputs: ArrayTree) -> float | None:
    """The loss among the outputs of a step; None if there is none or it is not finite."""
    if not (isinstance(outputs, dict) and "loss" in outputs):
        return None
    loss = float(np.mean(multihost.on_host(outputs["loss"])))
    return loss if math.isfinite(loss) else None


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
    metrics: Scalars = {}
    with jax.set_mesh(program.mesh):
        state = program.init(random_key(seed))
        call = members_of(program.mesh).after_barrier(program.step)
        in_flight = InFlight(run_ahead(program.mesh.local_devices))
        for step in range(steps):
            epoch, position = divmod(step, examples // batch)
            if position == 0:  # an order of its own for each epoch, as in `jaxbench train`
                batches = order(examples, batch, seed=seed, epoch=epoch)
            host = {name: array[batches[position]] for name, array in data.train.items()}
            state, metrics = call(state, program.put(host))
            in_flight.add(state, metrics)
        final = jax.device_get(program.export(state))  # canonical: scored alike for every strategy
    device = multihost.first_here(program.mesh.devices.flat)
    results = {"steps": float(steps), **_score(workload, final, data.test, device=device)}
    if "skipped_steps" in metrics:
        results["skipped_steps"] = float(np.asarray(metrics["skipped_steps"]).flat[0])
    return {name: value for name, value in results.items() if np.isfinite(value)}


def _score(
    workload: TrainWorkload, state: TrainState, test: dict[str, np.ndarray], *, device: jax.Device
) -> dict[str, float]:
    """The metrics of a state on the test split."""

    def metrics(params: ArrayTree, model_state: ArrayTree, part: Batch) -> Metrics:
        if workload.evaluate is not None:
            return workload.evaluate(params, model_state, part)
        # One fixed key, so that all strategies are scored with the same random numbers.
        loss, (_, others) = workload.loss(params, model_state, part, jax.random.PRNGKey(0))
        return {"loss": loss, **others}

    scored, count, means = jit_once(metrics), len(next(iter(test.values()))), Means()
    with jax.default_device(device):
        params, model_state = jax.device_put((state.params, state.model_state), device)
        for at in range(0, count, CHUNK):
            part = {name: array[at : at + CHUNK] for name, array in test.items()}
            means.add(scored(params, model_state, part), len(next(iter(part.values()))))
    return {f"final_{name}": mean for name, mean in means.means().items() if name in ("loss", "accuracy")}

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The metrics of a training: means over an epoch, the evaluation, the gradient noise scale, and the log of them all.

Source of the gradient noise scale: McCandlish et al. 2018, "An Empirical Model of Large-Batch Training"
(arXiv:1812.06162), appendix A.1: the squared norms of gradients of two batch sizes give unbiased estimates of |G|^2 and
of tr(Sigma), the trace of the covariance of one example's gradient. Their ratio tr(Sigma) / |G|^2 is the simple noise
scale, in examples. It is measured on one device, at the parameters that the training has reached.
"""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.command_form import with_extra
from jaxbench.core.store import write_atomic
from jaxbench.core.trees import ArrayTree
from jaxbench.core.weighted import Means
from jaxbench.core.workload import Batch, HostBatch, Metrics, Scalars, TrainWorkload
from jaxbench.errors import Diverged, UserError
from jaxbench.features.training.folder import writing
from jaxbench.features.training.plan import Plan, Row
from jaxbench.features.training.trainings import METRICS
from jaxbench.parallel import multihost
from jaxbench.workloads.data.input import words

CHUNK = 1024  # examples per call; few enough that a float32 mean gives the exact count of correct answers
PARTS = 8  # small batches: equal parts of the drawn examples. The mean of their gradients is that of the large batch
DRAWN = 1  # a third word of entropy: makes this draw differ from the order of batches, which has two


class EpochMeans:
    """Means of a step's metrics over one epoch, as sums that a checkpoint within an epoch can store.

    The metrics of the newest step stay on the device until the next step is dispatched. So reading them does not stall
    the devices, and at most two steps are in flight.
    """

    def __init__(self, sums: dict[str, float] | None = None, count: int = 0):
        self._sums = dict(sums or {})
        self._count = count
        self._newest: tuple[int, Scalars] | None = None

    def add(self, step: int, metrics: Scalars) -> None:
        """Adds the metrics of a step: scalars, or one equal copy per device."""
        self._settle()  # the previous step, which has had time to finish
        self._newest = step, metrics

    def _settle(self) -> None:
        """Adds the newest step's metrics to the sums. Raises Diverged when its loss is not finite."""
        if self._newest is None:
            return
        step, metrics = self._newest
        self._newest = None
        # Under pmap each device has a copy; the strategies have made them equal.
        values = {name: float(multihost.here(value).flat[0]) for name, value in metrics.items()}
        if not math.isfinite(values["loss"]):
            remedy = "lower --config.optimizer.learning_rate and choose a new --workdir"
            if step == 1:  # before any update
                remedy = "the model or its data are at fault, not the learning rate, and jaxbench try names the line"
            raise Diverged(f"the loss became {values['loss']} at step {step}: {remedy}.", step)
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._count += 1

    def to_json(self) -> dict[str, Any]:
        """The arguments to continue with, ``EpochMeans(**...)``. Waits for the newest step."""
        self._settle()
        return {"sums": dict(self._sums), "count": self._count}

    def means(self) -> dict[str, float]:
        """Waits for the newest step."""
        self._settle()
        return {name: value / self._count for name, value in self._sums.items()}


class MetricLog:
    """metrics.jsonl: one JSON object per evaluation, on the disk before the next step."""

    def __init__(self, folder: Path, rows: list[Row], *, tensorboard: bool):
        """Sets the file to `rows`, those of the checkpoint: removes rows written after it and restores lost rows.

        Raises:
          UserError: `tensorboard` is set and tensorboardX is not installed.
        """
        self.rows = list(rows)
        self._board = _board(folder, first_step=rows[-1]["step"] + 1 if rows else 0) if tensorboard else None
        self._folder = folder
        path = folder / METRICS
        with writing(folder):
            # Rows after the checkpoint come again, as the steps do. Kept, they would be in the file twice.
            write_atomic(path, "".join(_json_line(row) for row in rows))
            self._file = open(path, "a")

    def __enter__(self) -> MetricLog:
        return self

    def __exit__(self, *error: object) -> None:
        with writing(self._folder):
            self._file.close()
        if self._board is not None:
            self._board.close()

    def add(self, row: Row) -> None:
        """Appends one row. Numbers that JSON cannot hold become null."""
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}
        self.rows.append(row)
        with writing(self._folder):
            self._file.write(_json_line(row))
            self._file.flush()
        if self._board is not None:
            for name, value in row.items():
                if name.startswith(("train_", "test_")) and value is not None:
                    self._board.add_scalar(name.replace("_", "/", 1), value, row["step"])
            self._board.flush()


def _json_line(row: Row) -> str:
    return json.dumps(row, allow_nan=False) + "\n"


def _board(folder: Path, *, first_step: int) -> Any:
    """A writer for TensorBoard. Raises UserError if its package is not installed."""
    if find_spec("tensorboardX") is None:
        raise UserError(
            "--config.train.tensorboard=True needs tensorboardX, which is not installed: "
            f"{with_extra('tensorboard')}; or set it to False."
        )
    from tensorboardX import SummaryWriter  # late: an optional extra

    # purge_step hides what a killed start wrote after its newest checkpoint.
    return SummaryWriter(str(folder / "tensorboard"), purge_step=first_step or None)


class Evaluator:
    """Compiled evaluation of one test set on one device, with canonical parameters, for every strategy."""

    def __init__(
        self, workload: TrainWorkload, test: HostBatch, *, params: ArrayTree, model_state: ArrayTree, device: jax.Device
    ):
        """Compiles."""
        self._device = device
        self._key = jax.device_put(np.zeros(2, np.uint32), device)  # the same each time, so that evaluations compare
        examples = len(next(iter(test.values())))
        # The last chunk is shorter instead of padded, so that the means need no mask. It costs a second compilation.
        cuts = [slice(at, min(at + CHUNK, examples)) for at in range(0, examples, CHUNK)]
        self._sizes = [cut.stop - cut.start for cut in cuts]
        self._chunks = [jax.device_put({k: v[cut] for k, v in test.items()}, device) for cut in cuts]

        def score(params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array) -> Metrics:
            if workload.evaluate is not None:
                return workload.evaluate(params, model_state, batch)
            loss, (_, others) = workload.loss(params, model_state, batch, key)
            return {"loss": loss, **others}

        arguments = jax.device_put((params, model_state), device)
        compiled: dict[int, jax.stages.Compiled] = {}  # one for the full chunks, one for the last
        for size, chunk in zip(self._sizes, self._chunks, strict=True):
            if size not in compiled:
                compiled[size] = jax.jit(score).lower(*arguments, chunk, self._key).compile()
        self._compiled = compiled

    def __call__(self, params: ArrayTree, model_state: ArrayTree) -> dict[str, float]:
        """Means over the test set. `params`, `model_state`: canonical, in host memory."""
        arguments = jax.device_put((params, model_state), self._device)
        means = Means()
        for size, chunk in zip(self._sizes, self._chunks, strict=True):
            means.add(self._compiled[size](*arguments, chunk, self._key), size)
        return means.means()


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
        train: HostBatch,
        *,
        plan: Plan,
        params: ArrayTree,
        model_state: ArrayTree,
        device: jax.Device,
    ):
        """Compiles the gradients. Raises UserError when the examples do not divide into parts."""
        asked = plan.noise_examples
        if asked % PARTS:
            raise UserError(f"--config.train.noise_examples={asked} must divide into {PARTS} parts: use {8 * PARTS}.")
        self._train, self._plan, self._device, self._part = train, plan, device, asked // PARTS

        def gradient(params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array) -> ArrayTree:
            return jax.grad(lambda p: workload.mean_loss(p, model_state, batch, key)[0])(params)

        def added(total: ArrayTree, grads: ArrayTree) -> tuple[ArrayTree, jax.Array]:
            """(the sum of gradients so far, the squared norm of the newest gradient)."""
            return jax.tree.map(jnp.add, total, grads), square(grads)

        def square(tree: ArrayTree) -> jax.Array:
            return sum((jnp.vdot(x, x).astype(jnp.float32) for x in jax.tree.leaves(tree)), jnp.zeros(()))

        arguments = jax.device_put((params, model_state), device)
        batch, key = self._batch(np.zeros(self._part, np.int64)), self._key(0, 0)  # for their shapes
        self._gradient = jax.jit(gradient).lower(*arguments, batch, key).compile()
        self._zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), arguments[0])
        self._added = jax.jit(added).lower(self._zero, self._zero).compile()
        self._square = jax.jit(square).lower(self._zero).compile()

    def _batch(self, rows: np.ndarray) -> Batch:
        """The examples of these rows, on the device."""
        return jax.device_put({name: array[rows] for name, array in self._train.items()}, self._device)

    def _key(self, step: int, part: int) -> jax.Array:
        """The random key of a step's part: a function of seed and step alone."""
        return jax.device_put(words(1, self._plan.seed, step, DRAWN, part).view(np.uint32), self._device)

    def __call__(self, params: ArrayTree, model_state: ArrayTree, *, step: int) -> dict[str, float]:
        """Estimates as {"gradient_square": |G|^2, "noise_trace": tr(Sigma)}.

        params, model_state: canonical, in host memory. The examples are drawn with replacement, so they are
        independent. The draw depends on the seed and the step.
        """
        count, examples = self._plan.noise_examples, self._plan.examples
        # From the seed and the step alone, so that a training that was killed measures the same again.
        drawn = (words(count, self._plan.seed, step, DRAWN) % np.uint64(examples)).astype(np.int64)
        arguments = jax.device_put((params, model_state), self._device)
        total, squares = self._zero, []
        # The parts are the small batches, and all of them the large one, so no example is computed twice.
        for number, rows in enumerate(drawn.reshape(PARTS, self._part)):
            grads = self._gradient(*arguments, self._batch(rows), self._key(step, number))
            total, each = self._added(total, grads)
            squares.append(each)
        small = float(np.mean([np.asarray(each) for each in squares]))
        large = float(self._square(total)) / PARTS**2  # the total is a sum of PARTS means
        signal, noise = unbiased(small, large, small_batch=self._part, large_batch=count)
        return {"gradient_square": signal, "noise_trace": noise}

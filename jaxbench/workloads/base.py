# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The Workload doorway: what is measured, as pure functions and facts. It knows nothing of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxbench.workloads import weighted
from jaxbench.workloads.weighted import WeightedMean

PyTree = Any
Batch = dict[str, jax.Array]
Metrics = dict[str, Any]  # of a loss: scalars or WeightedMeans; of a step: scalars
KEY = jax.ShapeDtypeStruct((2,), "uint32")  # the shape and dtype of a random key


@dataclass(frozen=True)
class Field:
    """One array of an example, without the batch axis.

    `classes` makes it an integer label in [0, classes); otherwise values are drawn from a normal distribution.
    `draw`, (key, batch) -> (batch, *shape), is how synthetic values are drawn instead, such as a mask's with the shares
    that the data have.
    """

    shape: tuple[int, ...]
    dtype: Any = jnp.float32
    classes: int | None = None
    draw: Callable[[jax.Array, int], jax.Array] | None = None


class Dataset(Protocol):
    """Real data held in host memory, already split. Arrays have a leading example axis and match the example fields."""

    @property
    def name(self) -> str: ...

    @property
    def train(self) -> dict[str, np.ndarray]: ...

    @property
    def test(self) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True, kw_only=True)
class DeviceShare:
    """What of a step one device has, for what its layers then send. examples: of a micro-batch. sizes: devices by axis.

    sequence: positions between the split products are split too.
    blocks: that it has; None: all. passes: what it does, the loss as part of the backward pass.
    """

    examples: int
    sizes: Mapping[str, int]
    sequence: bool = False
    blocks: int | None = None
    passes: frozenset[str] = frozenset({"forward", "backward"})

    def over(self, axis: str) -> int:
        return self.sizes.get(axis, 1)


CollectiveBounds = dict[
    str, tuple[int, int]
]  # by kind of collective, the least and most numbers in its results on one device


@dataclass(frozen=True, kw_only=True)
class Stages:
    """A stack of identical blocks with a prologue and an epilogue.

    first: (params without blocks, nothing, batch, key) -> x. block: (one block's params, x, batch, key) -> x.
    last: (params without blocks, x, batch, key) -> (loss, metrics), as `TrainWorkload.loss`.
    Of the key that a loss is given, block b of n gets fold_in(key, b), the first function fold_in(key, n), the last
    fold_in(key, n + 1): a loss that draws does the same.
    blocks: the key of `params` whose value is a dictionary of the blocks' parameters by number.
    remat: which activations of the blocks are recomputed, as ``config.lever.remat`` says.
    """

    first: Callable[[PyTree, Any, Batch, jax.Array], Any]
    block: Callable[[PyTree, Any, Batch, jax.Array], Any]
    last: Callable[[PyTree, Any, Batch, jax.Array], tuple[jax.Array | WeightedMean, Metrics]]
    blocks: str = "blocks"
    remat: str = "none"


@dataclass(frozen=True, kw_only=True)
class Partition:
    """How a model can be split over devices, apart from its batch.

    axes: the one table: by pattern of a parameter's path, the logical axis of each of its dimensions ("heads",
      "hidden", "vocab", "experts"), None for one that is never split. What no pattern fits is whole on every device.
    wire: what the layers of a device send in one micro-batch's forward and backward pass, gradients of parameters that
      are whole on every device left out, except those that are summed over `tensor`.
    positions: of a sequence; 0: there are none.
    stages: for a pipeline; None: it has no blocks.
    """

    axes: Mapping[str, tuple[str | None, ...]]
    wire: Callable[[DeviceShare], CollectiveBounds]
    positions: int = 0
    stages: Stages | None = None


@dataclass(frozen=True, kw_only=True)
class TrainWorkload:
    """A model that is trained.

    Attributes:
      name: the experiment's name.
      init: key -> (params, model_state). `model_state` holds what is not trained, such as batch statistics; {} if none.
      loss: (params, model_state, batch, key) -> (scalar, (model_state, metrics)). The scalar is the mean over the
        examples it is given, so that the mean of equal shards' gradients is the gradient of the whole batch; a mean
        over something else than examples, such as real tokens, is a `WeightedMean`. Metrics are scalars that are means
        over the same examples ("accuracy"), or WeightedMeans too.
      optimizer: an optax transformation.
      example: the fields of one example.
      flops_per_example: analytic, forward and backward, two per multiply-add (docs/METRICS.md). None: the products in
        the jaxpr of the gradient of the whole batch are counted.
      flops_per_pair: of each pair of examples of the global batch besides, for a loss that looks across them: a step of
        G examples takes G flops_per_example + G^2 flops_per_pair.
      unit: what one example is called in a throughput ("images").
      tokens: that one example is judged on, filling included, for a throughput in tokens; 0: an example is no sequence.
      data: the real data, or a function that loads them: a Dataset, or any other form that `data.own` reads, such as a
        pair of dicts of arrays; None when there is none to train on.
      evaluate: (params, model_state, batch) -> metrics in inference mode, means over the examples with "accuracy" among
        them. None: the loss's metrics, which a model without state may use.
      tolerance: how far (relative L2) the parameters of two correct programs may differ after the check's updates.
      tolerance_reason: why it is not the default.
      predict: (params, model_state, batch) -> what the model answers, in inference mode; None: it cannot be asked.
      blocks: like blocks in a row that the model recomputes as ``config.lever.remat`` says; 0: it has none.
      micro_batches: the gradient is the mean of this many equal parts' gradients, one after the other.
      loss_scale: optimizer state -> the number that the loss is multiplied by before it is differentiated; the
        optimizer divides it out again. None: 1.
      partition: for strategies that split the model; None: only its batch and its state can be.
      dtype: what the model computes in.
      independent: of a model with state, whether nothing passes between examples on different devices, as where batch
        statistics are of each device's own: its gradient is then the mean of the devices' own too.
    """

    name: str
    init: Callable[[jax.Array], tuple[PyTree, PyTree]]
    loss: Callable[[PyTree, PyTree, Batch, jax.Array], tuple[jax.Array | WeightedMean, tuple[PyTree, Metrics]]]
    optimizer: optax.GradientTransformation
    example: Mapping[str, Field]
    flops_per_example: float | None = None
    flops_per_pair: float = 0.0
    unit: str = "examples"
    tokens: int = 0
    data: Any = None
    evaluate: Callable[[PyTree, PyTree, Batch], Metrics] | None = None
    predict: Callable[[PyTree, PyTree, Batch], PyTree] | None = None
    blocks: int = 0
    micro_batches: int = 1
    loss_scale: Callable[[PyTree], jax.Array] | None = None
    tolerance: float = 1e-5
    tolerance_reason: str = "float32 sums in another order"
    partition: Partition | None = None
    dtype: Any = jnp.dtype(jnp.float32)
    independent: bool = False

    def synthetic(self, key: jax.Array, batch: int) -> Batch:
        """Draws one batch; each field has shape (batch, *field.shape)."""
        out = {}
        for name, field in sorted(self.example.items()):
            key, sub = jax.random.split(key)
            shape = (batch, *field.shape)
            if field.draw is not None:
                out[name] = field.draw(sub, batch)
            elif field.classes is not None:
                out[name] = jax.random.randint(sub, shape, 0, field.classes, field.dtype)
            else:
                out[name] = jax.random.normal(sub, shape, field.dtype)
        return out

    def mean_loss(
        self, params: PyTree, model_state: PyTree, batch: Batch, key: jax.Array
    ) -> tuple[jax.Array, tuple[PyTree, Metrics]]:
        """`loss` as the mean over the examples given, a scalar, and so its metrics."""
        loss, (model_state, metrics) = self.loss(params, model_state, batch, key)
        return weighted.value(loss), (model_state, {name: weighted.value(x) for name, x in metrics.items()})

    def batch_avals(self, batch: int) -> dict[str, jax.ShapeDtypeStruct]:
        return {k: jax.ShapeDtypeStruct((batch, *f.shape), f.dtype) for k, f in self.example.items()}

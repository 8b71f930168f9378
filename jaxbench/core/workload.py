# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The Workload interface: a workload is pure functions and facts, independent of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import DTypeLike

from jaxbench.core import weighted
from jaxbench.core.trees import ArrayTree, PyTree, entries
from jaxbench.core.weighted import WeightedMean

Batch = dict[str, jax.Array]
HostBatch = dict[str, np.ndarray]
Mean = jax.Array | WeightedMean  # a loss or a metric: a scalar, or a total with its weight
Metrics = Mapping[str, Mean]  # of a loss
Scalars = dict[str, jax.Array]  # the metrics of a step
# Of a model. Its own code looks into its parameters and state, so only the model knows their structure.
Loss = Callable[[PyTree, PyTree, Batch, jax.Array], tuple[Mean, tuple[PyTree, Metrics]]]
Evaluate = Callable[[PyTree, PyTree, Batch], Metrics]
Predict = Callable[[PyTree, PyTree, Batch], PyTree]
KEY = jax.ShapeDtypeStruct((2,), "uint32")  # the shape and dtype of a random key, to trace functions without values
Keys = Callable[[jax.Array], jax.Array]  # a random key -> one key for each part of the batch
# By kind of collective ("all-reduce"): the fewest and the most numbers in its results on one device in one step.
CollectiveBounds = dict[str, tuple[int, int]]


def random_key(seed: int) -> jax.Array:
    """`jax.random.PRNGKey(seed)` for a seed of 32 bits, made by the host: no program is compiled for two numbers."""
    return jax.device_put(np.array([0, seed], np.uint32))  # `jnp.asarray` would compile, too


@dataclass(frozen=True)
class Field:
    """One array of an example, without the batch axis.

    With `classes` it is an integer label in [0, classes). Otherwise synthetic values are normally distributed.
    `draw`, (key, batch) -> (batch, *shape), draws synthetic values in another way, such as a mask with the density of
    the real data.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike = jnp.float32
    classes: int | None = None
    draw: Callable[[jax.Array, int], jax.Array] | None = None


@dataclass(frozen=True)
class Dataset:
    """Real data held in host memory, already split: by field, arrays with a leading example axis. name: in reports."""

    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]
    name: str


@dataclass(frozen=True, kw_only=True)
class DeviceShare:
    """One device's share of a step. `Partition.collective_bounds` computes from it what the device's layers send.

    examples: per micro-batch. sizes: number of devices by mesh axis.
    sequence: whether sequence parallelism also splits the activations between tensor-parallel products, by position.
    blocks: the number of blocks on this device; None: all. passes: the passes that it runs; the loss belongs to the
    backward pass. recomputed: whether the strategy lets the backward pass repeat the forward pass of the blocks.
    ulysses: whether attention over `context` exchanges positions for heads.
    """

    examples: int
    sizes: Mapping[str, int]
    sequence: bool = False
    blocks: int | None = None
    passes: frozenset[str] = frozenset({"forward", "backward"})
    recomputed: bool = False
    ulysses: bool = False

    def over(self, axis: str) -> int:
        """The number of devices along a mesh axis; 1 if the mesh does not have it."""
        return self.sizes.get(axis, 1)


@dataclass(frozen=True, kw_only=True)
class Stages:
    """A model as a stack of identical blocks with a prologue and an epilogue, which a pipeline divides into stages.

    first: (params without blocks, None, batch, key) -> x. block: (one block's params, x, batch, key) -> x.
    last: (params without blocks, x, batch, key) -> (loss, metrics), as in `TrainWorkload.loss`.
    From the key of the loss, block b of n gets fold_in(key, b), `first` gets fold_in(key, n) and `last` gets
    fold_in(key, n + 1). A loss that draws random numbers must do the same.
    blocks: the key of `params` that holds the parameters of the blocks, a dictionary by number.
    remat: which activations of the blocks are recomputed, a value of ``config.lever.remat``.
    """

    first: Callable[[PyTree, PyTree, Batch, jax.Array], PyTree]
    block: Callable[[PyTree, PyTree, Batch, jax.Array], PyTree]
    last: Callable[[PyTree, PyTree, Batch, jax.Array], tuple[Mean, Metrics]]
    blocks: str = "blocks"
    remat: str = "none"


@dataclass(frozen=True, kw_only=True)
class Partition:
    """How a model can be split over devices, in addition to splitting its batch.

    axes: by pattern of a parameter's path, the logical axis of each dimension ("heads", "hidden", "vocab", "experts"),
      None for a dimension that is never split. Parameters that match no pattern are replicated.
    collective_bounds: what a device's layers send in the forward and backward pass of one micro-batch. The gradients of
      replicated parameters are left out, because the strategy sends them, except those summed over `tensor`.
    positions: the number of positions of a sequence; 0 for a model without sequences.
    stages: for a pipeline; None for a model without blocks.
    own_examples: patterns of replicated parameters, such as those of convolutions, in layers that take only a part of
      the examples on each device of the axis `tensor`. Their gradients are summed over that axis.
    """

    axes: Mapping[str, tuple[str | None, ...]]
    collective_bounds: Callable[[DeviceShare], CollectiveBounds]
    positions: int = 0
    stages: Stages | None = None
    own_examples: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrainWorkload:
    """A model that is trained.

    An experiment gives the functions and facts from `name` to `tolerance_reason`, and most leave the rest at its
    default. The levers derive other workloads by replacing fields, such as `loss` and `micro_batches`, so that
    strategies need not know them.

    Attributes:
      name: the experiment's name.
      init: key -> (params, model_state). `model_state` holds what is not trained, such as batch statistics; {} if none.
      loss: (params, model_state, batch, key) -> (scalar, (model_state, metrics)). The scalar is the mean over the given
        examples, so the mean of the gradients of equal shards is the gradient of the whole batch. A mean over anything
        other than examples, such as real tokens, is a `WeightedMean`. Metrics ("accuracy") are means over the same
        examples: scalars, or WeightedMeans too.
      optimizer: an optax transformation.
      example: the fields of one example.
      flops_per_example: analytic, forward and backward, two per multiply-add (docs/metrics). None: count the
        matrix products and convolutions in the jaxpr of the gradient of the whole batch.
      flops_per_pair: additional FLOPs of each pair of examples of the global batch, for a loss that compares examples:
        a step of G examples takes G flops_per_example + G^2 flops_per_pair.
      masked_flops_per_example: FLOPs of products with a masked-out result. `flops_per_example` leaves them out, while
        common formulas count them (docs/metrics, FLOPs of attention).
      padding_flops_per_example: FLOPs of products with padding, such as empty places of experts or zeros in a kernel.
        `flops_per_example` leaves them out, and a platform may do without them.
      unit: the name of an example in a throughput ("images").
      tokens: predicted tokens of an example, padding included, for a throughput in tokens; 0: not a sequence.
      data: the real data, or a function that loads it: a Dataset, or another form that `data.own` reads, such as a
        pair of dicts of arrays. None: no data to train on.
      evaluate: (params, model_state, batch) -> metrics in inference mode, means over the examples, "accuracy" included.
        None: the loss's metrics, allowed for a model without state.
      predict: (params, model_state, batch) -> the model's output in inference mode; None: no inference.
      tolerance: the relative L2 distance that the parameters of two correct programs may have after a few updates.
      tolerance_reason: the reason for its value.
      partition: how strategies may split the model; None: only its batch and its state can be split.
      dtype: the number format in which the model computes.
      blocks: number of identical blocks that the lever `remat` recomputes; 0: none.
      named: whether the blocks name their activations, so that `remat` can select them (`levers.ACTIVATIONS`).
      micro_batches: the number of equal parts of the batch. Their gradients are computed one after the other and
        averaged.
      loss_scale: optimizer state -> factor of the loss during differentiation, which the optimizer divides out again.
        None: 1.
      independent: for a model with state, whether examples on different devices are independent, as with per-device
        batch statistics: the gradient is then the mean of the per-device gradients.
      least: the number of examples to trace with where any number would do; more than 1 for a model that cannot take
        one example, such as a normalization over groups of 8 (`inspection.with_least`).
      sent: the key of the only parameters for which devices reduce gradients; "": they reduce all. Algorithms that sum
        over rows, such as k-means, need it: only their sums travel, as gradients (`workloads.sums.adapt`).
    """

    name: str
    init: Callable[[jax.Array], tuple[PyTree, PyTree]]
    loss: Loss
    optimizer: optax.GradientTransformation
    example: Mapping[str, Field]
    flops_per_example: float | None = None
    flops_per_pair: float = 0.0
    masked_flops_per_example: float = 0.0
    padding_flops_per_example: float = 0.0
    unit: str = "examples"
    tokens: int = 0
    data: object = None
    evaluate: Evaluate | None = None
    predict: Predict | None = None
    tolerance: float = 1e-5
    tolerance_reason: str = "float32 sums in another order"
    partition: Partition | None = None
    dtype: DTypeLike = jnp.dtype(jnp.float32)
    blocks: int = 0
    named: bool = False
    micro_batches: int = 1
    loss_scale: Callable[[PyTree], jax.Array] | None = None
    independent: bool = False
    least: int = 1
    sent: str = ""

    def reduced(self, params: ArrayTree) -> ArrayTree:
        """The part of the parameters for which devices reduce gradients."""
        return entries(params)[self.sent] if self.sent else params

    def synthetic(self, key: jax.Array, batch: int) -> Batch:
        """Draws one batch; each field has shape (batch, *field.shape)."""
        drawn = {}
        for name, field in sorted(self.example.items()):  # sorted: the numbers do not depend on the order of the fields
            key, field_key = jax.random.split(key)
            shape = (batch, *field.shape)
            if field.draw is not None:
                drawn[name] = field.draw(field_key, batch)
            elif field.classes is not None:
                drawn[name] = jax.random.randint(field_key, shape, 0, field.classes, field.dtype)
            else:
                drawn[name] = jax.random.normal(field_key, shape, field.dtype)
        return drawn

    def mean_loss(
        self, params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array
    ) -> tuple[jax.Array, tuple[ArrayTree, Scalars]]:
        """`loss` with its value and its metrics as scalars: means over the given examples."""
        loss, (model_state, metrics) = self.loss(params, model_state, batch, key)
        return weighted.value(loss), (model_state, {name: weighted.value(x) for name, x in metrics.items()})

    def traceable(self, examples: int) -> int:
        """`examples`, or `least` for a model that cannot take just any number."""
        return examples if self.least == 1 else self.least

    def batch_avals(self, batch: int) -> dict[str, jax.ShapeDtypeStruct]:
        """The shapes and dtypes of a batch, to trace and compile without data."""
        return {k: jax.ShapeDtypeStruct((batch, *f.shape), f.dtype) for k, f in self.example.items()}

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`Program`, a workload on a mesh, which every strategy returns. `parallel/step.py` has what its step is built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax.sharding import Mesh, Sharding

from jaxbench.core.trees import ArrayTree, PyTree, Tree
from jaxbench.core.workload import Batch, CollectiveBounds, Keys


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """Everything that one training step passes to the next. In its *canonical* form no array has a device axis.

    step: int32 scalar. key: uint32 (2,), the run's random key; step i uses fold_in(key, i).
    """

    step: jax.Array
    params: PyTree
    model_state: PyTree
    opt_state: PyTree
    key: jax.Array


Shardings: TypeAlias = "TrainState | Tree[Sharding]"  # state-shaped, or a tree or prefix of another argument


Call = Callable[[TrainState, Batch], tuple[TrainState, ArrayTree]]  # a compiled step, or a part of one


@dataclass(frozen=True, kw_only=True)
class Program:
    """A workload on a mesh. Data parallelism needs only the fields up to `load`.

    Attributes:
      mesh: trace and call `step` inside `context()`.
      init: key, uint32 (2,) -> state, created in `state_sharding`, never whole on one device first.
      step: jitted (state, batch) -> (state, metrics). The state is donated. Metrics are scalars over the global batch
        (or one equal copy per device).
      state_sharding, batch_sharding: trees (or prefixes) of shardings; None: `avals` has them.
      put: a canonical batch, host or device, (global_batch, ...) -> the layout that `step` takes, on the devices.
      export: state -> canonical TrainState (device or host arrays), the same for every strategy and device count.
      load: canonical TrainState (host or device) -> state in this program's layout. Inverse of `export`.
        Without them, the state is its own canonical form.
      expected: global batch -> the expected communication of the step, without metrics: for each kind of collective,
        bounds on the numbers in its results on one device. None: an all-reduce of every gradient, as in plain data
        parallelism.
      gradients: jitted (state, batch) -> the gradients as the strategy holds them between micro-batches, for their
        memory; None: laid out as the parameters.
      batch_parts: the number of parts that the mesh splits the batch into; None: one for each device.
      disabled_passes: compiler passes that must be off for this step.
      sums: the number of mesh axes that each metric is summed over, one all-reduce after the other.
      passes: how often a stage of a pipeline runs its blocks forward in a step, and as often backward; 0: no pipeline.
      widest: bytes of the widest number that may be sent, unless the compiler widens it (XLA's CPU compiler widens 16
        bits to 32).
      keys: key -> one key for each part of the batch, (parts, 2), in the order of the batch, if the loss sees one part
        at a time; None: the loss sees the whole batch and one key.
      order: batch -> its examples as one device must take them to draw the same random numbers for each. A pipeline's
        micro-batches are contiguous; those of all other programs are strided (`parallel/step.py`).
      enter: () -> the context of init, tracing and calls; None: ``jax.set_mesh(mesh)``.
      avals: () -> (state, batch) as shapes with shardings; None: those of `init`, `put` and the workload.
    """

    mesh: Mesh
    init: Callable[[jax.Array], TrainState]
    step: Any  # of JAX's own type for jitted functions, which type checkers do not see
    state_sharding: Shardings = None
    batch_sharding: Shardings = None
    put: Callable[[Mapping[str, Any]], Batch]
    export: Callable[[TrainState], TrainState] = lambda state: state
    load: Callable[[TrainState], TrainState] = lambda state: state
    expected: Callable[[int], CollectiveBounds] | None = None
    gradients: jax.stages.Wrapped | None = None
    batch_parts: int | None = None
    disabled_passes: tuple[str, ...] = ()
    sums: int = 1
    passes: int = 0
    widest: int = 4
    keys: Keys | None = None
    order: Callable[[Batch], Batch] = lambda batch: batch
    enter: Callable[[], AbstractContextManager[object]] | None = None
    avals: Callable[[], tuple[TrainState, PyTree]] | None = None

    def context(self) -> AbstractContextManager[object]:
        """Open it to trace and call the step."""
        return jax.set_mesh(self.mesh) if self.enter is None else self.enter()

    @property
    def parts(self) -> int:
        """The number of parts of the batch."""
        return self.mesh.size if self.batch_parts is None else self.batch_parts

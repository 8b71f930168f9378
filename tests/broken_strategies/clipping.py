# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Wrong strategies: an optimizer that reduces over parameters, applied to shards or with unnecessary communication."""

import dataclasses
from unittest import mock

import jax

from jaxbench import parallel
from jaxbench.parallel import optimizer

FAULTS = ("per_shard", "stray")


def build(strategy, workload, devices, fault):
    """per_shard: each device uses the norm of its shards instead of the global norm. stray: all shards are gathered."""
    everything = range(len(jax.tree.leaves(jax.eval_shape(workload.init, jax.random.key(0))[0])))
    need = optimizer.OptimizerDependencies(values=fault == "per_shard", whole=frozenset(everything))
    with mock.patch.object(optimizer, "dependencies", return_value=need):
        wrong = parallel.build(strategy, workload, devices)
    return dataclasses.replace(wrong, expected=parallel.build(strategy, workload, devices).expected)

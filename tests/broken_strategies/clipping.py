# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Wrong strategies: an optimizer that reduces over parameters, on shards of them or with more sent than it needs."""

import dataclasses
from unittest import mock

import jax

from jaxbench import parallel
from jaxbench.parallel import optimizer

FAULTS = ("per_shard", "stray")


def build(strategy, workload, devices, fault):
    """per_shard: each device takes the norm of its own shards for that of all. stray: everything is gathered for it."""
    everything = range(len(jax.tree.leaves(jax.eval_shape(workload.init, jax.random.key(0))[0])))
    need = optimizer.OptimizerDependencies(values=fault == "per_shard", whole=frozenset(everything))
    with mock.patch.object(optimizer, "dependencies", return_value=need):
        wrong = parallel.build(strategy, workload, devices)
    return dataclasses.replace(wrong, expected=parallel.build(strategy, workload, devices).expected)

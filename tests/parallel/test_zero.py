# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO holds and moves the bytes of the paper, and its updates agree with one device.

test_strategies checks the parameters and the expected communication of every stage on each model.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from strategy_cases import BATCH, assert_right
from thin import thin
from workload_cases import KEY, experiment_workload, linear_workload, one_device

from jaxbench import parallel
from jaxbench.core.program import TrainState
from jaxbench.measure import step_facts
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel import layout
from jaxbench.parallel.layout import Cut, Mirrored

# Model state in bytes per parameter on one of N devices, of mixed-precision Adam: table 1 of arXiv:1910.02054.
PUBLISHED = {
    "shard_map": lambda n: 16,
    "zero1": lambda n: 4 + 12 / n,
    "zero2": lambda n: 2 + 14 / n,
    "fsdp": lambda n: 16 / n,
}


@pytest.mark.parametrize("devices", thin([4, 1, 2, 8], 1))
@pytest.mark.parametrize("strategy", PUBLISHED)
def test_the_model_state_on_a_device_is_the_published_one(strategy, devices):
    workload = experiment_workload("mlp", **{"lever.precision": "mixed", "optimizer.name": "adam"})
    sizes = [leaf.size for leaf in jax.tree.leaves(jax.eval_shape(workload.init, KEY)[0])]
    filling = sum(layout.padded(size, devices) - size for size in sizes) / devices
    program = parallel.build(strategy, workload, jax.devices()[:devices])
    with jax.set_mesh(program.mesh):
        batch = program.put(workload.synthetic(KEY, 8))
        found = sum(step_facts.memory(program, program.init(KEY), batch, gradients=True).values())
    assert found == pytest.approx(PUBLISHED[strategy](devices) * sum(sizes), abs=16 * filling)
    if all(size % devices == 0 for size in sizes):
        assert found == PUBLISHED[strategy](devices) * sum(sizes)


@pytest.mark.parametrize("strategy", thin(["zero2", "zero1", "fsdp"], 1))
def test_micro_batches_change_the_wire_only(strategy):
    workload = dataclasses.replace(experiment_workload("mlp"), micro_batches=2)
    program = parallel.build(strategy, workload, jax.devices()[:4])
    report = assert_right(
        workload, program, one_device(dataclasses.replace(workload, micro_batches=1), workload.synthetic(KEY, BATCH))
    )
    moved = {c.kind: c.bytes - c.scalar_bytes for c in report.collectives}
    once = 4 * sum(layout.padded(leaf.size, 4) for leaf in jax.tree.leaves(jax.eval_shape(workload.init, KEY)[0]))
    assert moved["reduce-scatter"] == once // 4 * (1 if strategy == "zero1" else 2)


def test_stage_3_gathers_again_what_the_backward_pass_needs():
    workload = experiment_workload("mlp")
    params = jax.eval_shape(workload.init, KEY)[0]
    compiled = compile_step(workload, parallel.build("fsdp", workload, jax.devices()[:8]), BATCH)
    gathered = next(c.bytes for c in compiled.report.collectives if c.kind == "all-gather")
    sizes = {
        jax.tree_util.keystr(path): 4 * layout.padded(math.prod(leaf.shape), 8)
        for path, leaf in jax.tree_util.tree_leaves_with_path(params)
    }
    again = [size for path, size in sizes.items() if "kernel" in path]
    assert gathered == sum(sizes.values()) + sum(again) - max(again)  # the first layer's is the largest


def test_arrays_are_cut_and_joined():
    x = jnp.arange(15.0).reshape(3, 5)
    whole = layout.flattened(x, 4)
    assert whole.shape == (16,) and whole[-1] == 0
    np.testing.assert_array_equal(Cut((3, 5), flat=4).join(np.asarray(whole)), x)
    assert layout.padded(16, 4) == 16 and layout.padded(17, 4) == 20


@pytest.mark.parametrize("params", [{"a": jnp.ones(8), "b": jnp.ones(())}, jnp.ones(8)], ids=["tree", "array"])
def test_moments_are_told_from_counts(params):
    import optax

    state = TrainState(jnp.zeros((), int), params, {}, optax.adam(0.1).init(params), KEY)
    told = Mirrored(state).map(state, lambda tree: "params", lambda leaf: "other", lambda tree: "moments")
    assert (told.opt_state[0].count, told.opt_state[0].mu, told.opt_state[0].nu) == ("other", "moments", "moments")
    assert (told.params, told.step) == ("params", "other")


def test_an_array_of_no_numbers_stays_whole():
    for shape in ((0,), (8, 0), (3, 0), (0, 16)):
        cut = layout.shared_out(Cut(shape), 8)
        assert cut.parts == 1 and not cut.dims and cut.numbers == 0
    # A table may have split it already; its empty parts are not split again.
    assert layout.shared_out(Cut((4, 0), ((0, "tensor"),), (2,)), 8).dims == ((0, "tensor"),)


@pytest.mark.parametrize(
    ("strategy", "optimizer"),
    thin([(a, b) for a in ("zero1", "zero2", "fsdp") for b in ("adam", "lamb", "adafactor")], 2),
)
def test_a_model_may_have_arrays_of_no_numbers(strategy, optimizer):
    linear = linear_workload(getattr(optax, optimizer)(0.1))

    def init(key):
        params, state = linear.init(key)
        return {**params, "none": jnp.zeros(0), "rows": jnp.zeros((8, 0)), "columns": jnp.zeros((0, 16))}, state

    workload = dataclasses.replace(linear, init=init)
    assert_right(workload, parallel.build(strategy, workload, jax.devices()[:2]))

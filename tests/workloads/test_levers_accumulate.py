# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Micro-batches: the gradient of one large batch, communicated once, with the activations of one part in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from thin import KINDS, thin
from workload_cases import KEY, experiment_workload, linear_workload, one_device

from jaxbench import parallel
from jaxbench.measure import check, expected_communication, reference
from jaxbench.measure.compile_report import compile_step
from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx
from jaxbench.workloads.levers import apply
from jaxbench.workloads.models.norm import BatchNorm

BATCH = 32
# By default XLA's CPU compiler drops barriers and schedules for concurrency, not for memory.
FOR_MEMORY = {
    "xla_disable_hlo_passes": "cse_barrier_expander",
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


def accumulated(workload: TrainWorkload, count: int) -> TrainWorkload:
    return apply(workload, {"accumulate": str(count)}, platform="cpu", device_kind="cpu")


def linear_with_means() -> TrainWorkload:
    return linear_workload(optax.sgd(0.1, momentum=0.9))


@pytest.fixture(scope="module", params=["linear", "cnn"])
def case(request):
    small = {"model.width": 2, "model.depth": 1, "model.hidden": 8}
    workload = linear_with_means() if request.param == "linear" else experiment_workload("cnn", **small)
    return workload, 4 if request.param == "linear" else 2, one_device(workload, workload.synthetic(KEY, BATCH))


@pytest.mark.parametrize("devices", thin([2, 1, 8], 1))
@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS[1:2]))
def test_the_update_is_that_of_the_big_batch_and_is_communicated_once(case, strategy, devices):
    workload, count, expected = case
    program = parallel.build(strategy, accumulated(workload, count), jax.devices()[:devices])
    compiled = compile_step(workload, program, BATCH)
    actual = check.train(program, compiled.call, KEY, workload.synthetic(KEY, BATCH))
    assert reference.relative_l2(actual.params, expected.end.params) <= 1e-6
    assert reference.relative_l2(actual.opt_state, expected.end.opt_state) <= 1e-5
    passport = compiled.report
    verdict = expected_communication.judge(accumulated(workload, count), program, passport, BATCH)
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize("strategy", thin(["shard_map", "jit_auto"], 1))
def test_memory_falls(strategy):
    def init(key):
        keys = jax.random.split(key, 4)
        return [0.1 * jax.random.normal(k, (32, 32)) for k in keys], {}

    def loss(params, model_state, batch, key):
        x = batch["x"]
        for w in params:
            x = jnp.tanh(x @ w)
        return jnp.mean(x**2), (model_state, {})

    workload = TrainWorkload(name="tanh", init=init, loss=loss, optimizer=optax.sgd(0.1), example={"x": Field((32,))})
    held = {}
    for count in (1, 8):
        program = parallel.build(strategy, accumulated(workload, count), jax.devices()[:2])
        held[count] = compile_step(workload, program, 8192, options=FOR_MEMORY).report.temp_bytes
    assert held[8] < held[1] / 3, held


def test_each_part_has_a_key_of_its_own_and_the_state_passes_through():
    def loss(params, model_state, batch, key):
        seen = model_state["seen"] * 2 + jnp.sum(batch["x"])  # depends on the order of the parts
        return jnp.mean(params["w"] * jax.random.normal(key)), ({"seen": seen}, {})

    def init(key):
        return {"w": jnp.ones(())}, {"seen": jnp.zeros(()), "kept": jnp.ones(())}

    workload = TrainWorkload(name="keys", init=init, loss=loss, optimizer=optax.sgd(1.0), example={"x": Field(())})
    program = parallel.build("jit_auto", accumulated(workload, 2), jax.devices()[:1])
    batch = {"x": jnp.asarray([1.0, 2.0, 4.0, 8.0])}
    with jax.set_mesh(program.mesh):
        state = program.init(KEY)
        before = jax.device_get(state.key)
        state, _ = program.step(state, program.put(batch))
    draws = [jax.random.normal(jax.random.fold_in(jax.random.fold_in(before, i), 0)) for i in range(2)]
    np.testing.assert_allclose(state.params["w"], 1 - np.mean(draws), rtol=1e-6)
    assert float(state.model_state["seen"]) == 2 * (1 + 4) + (2 + 8)
    assert float(state.model_state["kept"]) == 1


@pytest.mark.parametrize("statistics", thin(["device", "global"], 1))
def test_batch_statistics_are_of_one_part_on_one_device(statistics):
    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.first, self.last = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
            self.norm = BatchNorm(16, statistics=statistics, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.norm(self.first(x))))

    model = from_nnx(Net)
    example = {"image": Field((8,)), "label": Field((), jnp.int32, classes=4)}
    optimizer, loss = optax.sgd(0.1), classification(model)
    whole = TrainWorkload(name="norm", init=model.init, loss=loss, optimizer=optimizer, example=example)
    workload = accumulated(whole, 2)
    batch = workload.synthetic(KEY, BATCH)
    expected = one_device(workload, batch, parts=2)
    for strategy in ("jit_auto", "shard_map"):
        program = parallel.build(strategy, workload, jax.devices()[:2])
        actual = check.train(program, compile_step(workload, program, BATCH).call, KEY, batch)
        assert reference.relative_l2(actual.params, expected.end.params) < 1e-5, strategy

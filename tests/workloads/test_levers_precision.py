# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `precision`: products in the named format, float32 parameters, and overflows that training survives."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from thin import KINDS, thin
from workload_cases import KEY, experiment_workload, linear_workload

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import expected_communication
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel.program import create_state, gradients
from jaxbench.workloads import Field, TrainWorkload, flops
from jaxbench.workloads.levers import apply, precision

AVAL_KEY = jax.ShapeDtypeStruct((2,), "uint32")


def in_precision(workload: TrainWorkload, name: str, platform: str = "cpu", kind: str = "cpu") -> TrainWorkload:
    return apply(workload, {"precision": name}, platform=platform, device_kind=kind)


def gradient(workload: TrainWorkload):
    params, model_state = jax.eval_shape(workload.init, AVAL_KEY)
    function = jax.grad(workload.loss, has_aux=True)
    return function, (params, model_state, workload.batch_avals(4), AVAL_KEY)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("experiment", ["mlp", "cnn"])
def test_16_bit_products_are_in_16_bits_and_the_gradient_is_not(experiment, name):
    workload = in_precision(experiment_workload(experiment), name)
    function, avals = gradient(workload)
    assert flops.dot_flop_shares(function, *avals) == {name: 1.0}
    grads, _ = jax.eval_shape(function, *avals)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(grads)} == {"float32"}
    assert workload.tolerance == 5e-3
    assert name in workload.tolerance_reason


def test_shares_are_of_flops_in_loops_too_and_agree_with_the_count():
    def function(x, y):
        def body(carry, _):
            return carry @ x, None

        return jax.lax.scan(body, x, length=3)[0].sum() + (y @ y).sum()

    avals = jax.ShapeDtypeStruct((4, 4), jnp.float16), jax.ShapeDtypeStruct((4, 4), jnp.float32)
    assert flops.dot_flop_shares(function, *avals) == {"float16": 0.75, "float32": 0.25}
    assert flops.count(function, *avals) == 4 * 2 * 4**3


@pytest.mark.parametrize(("name", "said"), [("float32", "HIGHEST"), ("tf32", "HIGH"), ("default", None)])
def test_products_of_float32_are_done_as_asked_forward_and_backward(name, said):
    workload = in_precision(experiment_workload("mlp"), name, "gpu", "NVIDIA H100 80GB HBM3")
    function, avals = gradient(workload)
    jaxpr = jax.make_jaxpr(function)(*avals)
    products = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "dot_general"]
    assert len(products) == 5
    wanted = said and (jax.lax.Precision[said],) * 2  # HIGH is what JAX calls TF32
    assert {e.params["precision"] for e in products} == {wanted}


def test_inference_is_in_the_same_precision():
    base = linear_workload()
    seen = []

    def predict(params, model_state, batch):
        seen.append(
            (params["w"].dtype.name, model_state["mean"].dtype.name, batch["x"].dtype.name, batch["n"].dtype.name)
        )
        return batch["x"] @ params["w"]

    workload = in_precision(dataclasses.replace(base, predict=predict, evaluate=predict), "bfloat16")
    arguments = {"w": jnp.ones((3, 2))}, {"mean": jnp.ones(3)}, {"x": jnp.ones((4, 3)), "n": jnp.ones(4, jnp.int32)}
    for function in (workload.predict, workload.evaluate):
        assert function(*arguments).dtype == jnp.bfloat16
    assert seen == 2 * [("bfloat16", "float32", "bfloat16", "int32")]


def test_tf32_is_refused_where_there_is_none():
    for platform, kind in (("cpu", "cpu"), ("tpu", "TPU v4"), ("gpu", "Tesla V100-SXM2-16GB")):
        with pytest.raises(UserError, match=r"precision=tf32 .* use float32 or bfloat16"):
            in_precision(linear_workload(), "tf32", platform, kind)


def overflowing() -> TrainWorkload:
    """The gradient is the mean of "x", which a batch can push beyond float16; the model's state sums "x" up."""

    def loss(params, model_state, batch, key):
        x = batch["x"] * params["w"]
        return jnp.mean(x.astype(jnp.float32)), ({"sum": model_state["sum"] + jnp.sum(x.astype(jnp.float32))}, {})

    def init(key):
        return {"w": jnp.ones(())}, {"sum": jnp.zeros(())}

    return TrainWorkload(
        name="overflow", init=init, loss=loss, optimizer=optax.sgd(1e-3, momentum=0.5), example={"x": Field(())}
    )


def test_without_loss_scaling_a_small_gradient_is_zero():
    """A gradient of 1e-9 in float16, with a smallest number of 6e-8; the scaled loss restores it."""

    def loss(params, model_state, batch, key):
        return jnp.mean(1e-9 * (params["w"] * batch["x"]).astype(jnp.float32)), (model_state, {})

    small = dataclasses.replace(overflowing(), init=lambda key: ({"w": jnp.ones(())}, {}), loss=loss)
    changed = {}
    for name in ("float16", "float16_unscaled"):
        workload = in_precision(small, name)
        grads, _, _ = gradients(workload, create_state(workload, KEY), {"x": jnp.ones(8)})
        changed[name] = float(grads["w"])
    assert changed["float16"] > 0 and changed["float16_unscaled"] == 0


@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS))
def test_an_overflow_is_survived(strategy, monkeypatch):
    monkeypatch.setattr(precision, "GROW_AFTER", 2)
    workload = in_precision(overflowing(), "float16")
    program = parallel.build(strategy, workload, jax.devices()[:2])
    good = {"x": np.full(8, 0.25, np.float32)}
    bad = {"x": np.asarray([0.25] * 7 + [1e6], np.float32)}  # infinite in float16, on one device only
    states, metrics = [], []
    with jax.set_mesh(program.mesh):
        state = program.init(KEY)
        for batch in (good, bad, good, good, good):
            state, said = program.step(state, program.put(batch))
            states.append(jax.device_get(program.export(state)))
            metrics.append({name: float(np.asarray(value).flat[0]) for name, value in said.items()})
    first, second, third, fourth, last = states
    assert [s.opt_state.log2_scale for s in states] == [15, 14, 14, 15, 15]
    assert [s.opt_state.skipped_steps for s in states] == [0, 1, 1, 1, 1]
    assert [m["loss_scale"] for m in metrics] == [2.0**15, 2.0**15, 2.0**14, 2.0**14, 2.0**15]
    assert [m["skipped_steps"] for m in metrics] == [0, 0, 1, 1, 1]
    jax.tree.map(np.testing.assert_array_equal, second.params, first.params)
    jax.tree.map(np.testing.assert_array_equal, second.opt_state.inner, first.opt_state.inner)
    jax.tree.map(np.testing.assert_array_equal, second.model_state, first.model_state)
    assert int(last.step) == 5
    assert third.params["w"] < second.params["w"]
    np.testing.assert_allclose(first.params["w"], 1 - 1e-3 * 0.25, rtol=1e-6)  # the scale is divided out
    np.testing.assert_allclose(metrics[0]["loss"], 0.25, rtol=1e-3)


def test_small_gradients_survive_float16_because_they_are_scaled():
    """1e-8 is 0 in float16."""

    def loss(params, model_state, batch, key):
        return jnp.mean((params["w"] * batch["x"]).astype(jnp.float32)) * 1e-8, (model_state, {})

    base = dataclasses.replace(
        overflowing(), loss=loss, init=lambda key: ({"w": jnp.ones(())}, {}), optimizer=optax.sgd(1e8)
    )
    moved = {}
    for name, scale in (("scaled", True), ("unscaled", False)):
        workload = in_precision(base, "float16")
        workload = workload if scale else dataclasses.replace(workload, optimizer=base.optimizer, loss_scale=None)
        program = parallel.build("jit_auto", workload, jax.devices()[:1])
        with jax.set_mesh(program.mesh):
            state, _ = program.step(program.init(KEY), program.put({"x": np.full(8, 0.25, np.float32)}))
        moved[name] = 1 - float(state.params["w"])
    np.testing.assert_allclose(moved["scaled"], 0.25, rtol=1e-2)
    assert moved["unscaled"] == 0


@pytest.mark.full
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bits_train_to_nearly_the_loss_of_float32(name):
    losses = {}
    for each in ("float32", name):
        workload = in_precision(experiment_workload("mlp", **{"model.width": 16}), each)
        program = parallel.build("jit_auto", workload, jax.devices()[:1])
        with jax.set_mesh(program.mesh):
            state, batch = program.init(KEY), program.put(workload.synthetic(KEY, 32))
            first = None
            for _ in range(30):
                state, metrics = program.step(state, batch)
                first = float(metrics["loss"]) if first is None else first
        losses[each] = float(metrics["loss"])
        assert losses[each] < first / 3
    assert abs(losses[name] - losses["float32"]) < 0.02 * first


def test_loss_scaling_adds_scalars_only_to_what_is_communicated():
    workload = in_precision(linear_workload(), "float16")
    program = parallel.build("shard_map", workload, jax.devices()[:2])
    verdict = expected_communication.judge(workload, program, compile_step(workload, program, 8).report, 8)
    assert verdict.ok, verdict.reason

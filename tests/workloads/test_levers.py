# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers of a workload: gradient accumulation, frozen parameters and number formats in the compiled step."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.experimental import pallas
from thin import KINDS, thin
from workload_cases import KEY, experiment_workload, linear_workload, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.levers import REMAT, REMAT_PRESETS, offloads
from jaxbench.measure import check, expected_communication, reference
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel.step import create_state, gradients
from jaxbench.workloads import Field, TrainWorkload, classification, flops, from_nnx, levers
from jaxbench.workloads.jaxprs import equations
from jaxbench.workloads.levers import apply
from jaxbench.workloads.models.image_layers import BatchNorm

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
    report = compiled.report
    verdict = expected_communication.judge(accumulated(workload, count), program, report, BATCH)
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


FROZEN_BATCH, WIDTHS = 64, (128, 256, 512, 64)
LAYERS = [flops.dense(i, o) for i, o in zip(WIDTHS[:-1], WIDTHS[1:], strict=True)]


def frozen(workload: TrainWorkload, pattern: str, **levers: str) -> TrainWorkload:
    return apply(workload, {"freeze": pattern, **levers}, platform="cpu", device_kind="cpu")


def layers_workload(stateful: bool = False, remat: bool = False) -> TrainWorkload:
    """Three products in a row with ReLUs between."""

    def init(key):
        keys = jax.random.split(key, len(LAYERS))
        shapes = zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=True)
        params = [{"w": jax.random.normal(k, (i, o)) / i**0.5, "b": jnp.zeros(o)} for k, i, o in shapes]
        return params, {"steps": jnp.zeros(()), "kept": jnp.ones(())} if stateful else {}

    def loss(params, model_state, batch, key):
        def layer(layer, x):
            return jax.nn.relu(x @ layer["w"] + layer["b"])

        x = batch["x"]
        for each in params:
            x = (jax.checkpoint(layer) if remat else layer)(each, x)
        return jnp.mean((x - batch["y"]) ** 2), ({"steps": model_state["steps"] + 1} if stateful else {}, {})

    return TrainWorkload(
        name="layers",
        init=init,
        loss=loss,
        optimizer=optax.sgd(0.1, momentum=0.9),
        example={"x": Field((WIDTHS[0],)), "y": Field((WIDTHS[-1],))},
        flops_per_example=flops.training(LAYERS),
        predict=lambda params, model_state, batch: batch["x"] @ params[0]["w"],
    )


# pattern: remaining multiples of each layer's forward FLOPs: 1 forward, 1 for its weights, 1 for its input.
LEFT = {
    "none": (2, 3, 3),
    "^0/": (1, 2, 3),  # the second layer's input needs no gradient any more
    "^[01]/": (1, 1, 2),
    "^1/": (2, 2, 3),  # a gradient still passes through the middle layer
}


def remaining_flops(pattern: str) -> float:
    return sum(times * layer for times, layer in zip(LEFT[pattern], LAYERS, strict=True))


def compiled_flops(workload: TrainWorkload) -> float:
    """Of one example, by the compiler."""
    state = jax.eval_shape(lambda key: create_state(workload, key), KEY)
    gradient = jax.jit(jax.grad(workload.loss, has_aux=True))
    lowered = gradient.lower(state.params, state.model_state, workload.batch_avals(FROZEN_BATCH), KEY)
    return lowered.compile().cost_analysis()["flops"] / FROZEN_BATCH


@pytest.mark.parametrize("pattern", LEFT)
def test_the_compiled_gradient_has_the_flops_of_the_formula(pattern):
    workload = frozen(layers_workload(), pattern)
    assert workload.flops_per_example == remaining_flops(pattern)
    # The compiler also counts element-wise work: 10 of 128 to 512 FLOPs of a product.
    assert compiled_flops(workload) == pytest.approx(remaining_flops(pattern), rel=0.02)


@pytest.mark.parametrize("pattern", LEFT)
def test_recomputed_activations_are_not_the_flops_of_training(pattern):
    assert frozen(layers_workload(remat=True), pattern).flops_per_example == remaining_flops(pattern)


def test_without_a_formula_what_is_left_is_counted():
    workload = dataclasses.replace(layers_workload(), flops_per_example=None)
    assert frozen(workload, "^0/").flops_per_example == remaining_flops("^0/")


def test_a_backward_pass_written_by_hand_is_counted_too():
    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    base = layers_workload()

    def loss(params, model_state, batch, key):
        value, aux = base.loss(params, model_state, batch, key)
        return double(value), aux

    workload = dataclasses.replace(base, loss=loss)
    assert frozen(workload, "^0/").flops_per_example == remaining_flops("^0/")


ALL_REDUCE = sorted({*parallel.of_any_model()} - {"zero1", "zero2", "fsdp"})


@pytest.mark.parametrize("strategy", thin(ALL_REDUCE, KINDS[:2]))
def test_frozen_parameters_cost_no_communication_and_no_optimizer_state(strategy):
    workload = frozen(layers_workload(stateful=True), "^[01]/")
    batch = workload.synthetic(KEY, FROZEN_BATCH)
    program = parallel.build(strategy, workload, jax.devices()[:2])
    compiled = compile_step(workload, program, FROZEN_BATCH)
    trained = 4 * (WIDTHS[2] * WIDTHS[3] + WIDTHS[3])
    assert compiled.report.expected_gradient_bytes == trained
    assert 4 * compiled.report.parameters == trained  # from which `forecast --from` makes the messages of one device
    verdict = expected_communication.judge(workload, program, compiled.report, FROZEN_BATCH)
    assert verdict.ok, verdict.reason
    expected = one_device(workload, batch)
    verdict = check.judge(check.train(program, compiled.call, KEY, batch), expected, workload)
    assert verdict.ok, verdict.reason
    with jax.set_mesh(program.mesh):
        before = jax.device_get(program.export(program.init(KEY)))
        after = jax.device_get(program.export(compiled.call(program.init(KEY), program.put(batch))[0]))
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(before.opt_state)) == trained
    jax.tree.map(np.testing.assert_array_equal, after.model_state["frozen"], before.model_state["frozen"])
    assert after.model_state["model"] == {"steps": 1, "kept": 1}  # not returned by the loss


def test_the_loss_and_the_first_update_are_those_of_the_whole_model():
    whole = layers_workload()
    part = frozen(whole, "^1/", accumulate="2")
    batch = whole.synthetic(KEY, FROZEN_BATCH)
    found = {}
    for name, workload in (("whole", whole), ("part", part)):
        program = parallel.build("jit_auto", workload, jax.devices()[:1])
        with jax.set_mesh(program.mesh):
            state, metrics = program.step(program.init(KEY), program.put(batch))
        found[name] = state.params, metrics["loss"], state.model_state
    np.testing.assert_allclose(found["part"][1], found["whole"][1], rtol=1e-6)
    for i in (0, 2):
        np.testing.assert_allclose(found["part"][0][i]["w"], found["whole"][0][i]["w"], rtol=1e-4, atol=1e-6)
    initial, _ = whole.init(jax.random.fold_in(KEY, 0))
    np.testing.assert_allclose(found["part"][2]["frozen"][1]["w"], initial[1]["w"], rtol=1e-5, atol=1e-6)
    assert part.predict(found["part"][0], found["part"][2], batch).shape == (FROZEN_BATCH, WIDTHS[1])


def test_frozen_parameters_are_cast_as_the_others_are():
    workload = frozen(layers_workload(), "^0/", precision="bfloat16")
    params, model_state = jax.eval_shape(workload.init, KEY)
    gradient = jax.grad(workload.loss, has_aux=True)
    shares = flops.dot_flop_shares(gradient, params, model_state, workload.batch_avals(FROZEN_BATCH), KEY)
    assert shares == {"bfloat16": 1.0}
    assert {leaf.dtype.name for leaf in jax.tree.leaves((params, model_state))} == {"float32"}


@pytest.mark.parametrize("stateful", [False, True])
def test_frozen_parameters_are_no_state_of_the_model(stateful):
    for workload in (layers_workload(stateful), frozen(layers_workload(stateful), "^0/")):
        assert levers.stateful(jax.eval_shape(workload.init, KEY)[1]) == stateful


def test_paths_of_a_model_are_unchanged():
    workload = experiment_workload("cnn")
    params, _ = jax.eval_shape(workload.init, KEY)
    assert "convolutions/0/kernel" in levers.paths(params)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("nowhere", r"freeze=nowhere .* no parameter: there are '0/b', '0/w', '1/b' and 3 more"),
        (".", r"every parameter.*: there are '0/b'"),
        ("(", r"freeze=\( is not a regular expression .* use '0/b'"),
    ],
)
def test_patterns_that_freeze_nothing_or_all_are_refused(pattern, message):
    with pytest.raises(UserError, match=message):
        frozen(layers_workload(), pattern)


@pytest.mark.parametrize(
    ("levers", "blocks", "message"),
    [
        ({"remat": "block"}, 0, "remat=block recomputes identical blocks and 'layers' has none: use none"),
        ({"remat": "offload"}, 3, "remat=offload .* use block"),
    ],
)
def test_recomputation_that_cannot_be_is_refused(levers, blocks, message):
    workload = dataclasses.replace(layers_workload(), blocks=blocks)
    with pytest.raises(UserError, match=message):
        apply(workload, levers, platform="cpu", device_kind="cpu")


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


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_the_products_of_a_kernel_are_in_the_format_of_its_operands(name):
    """Flash attention sums in float32. With narrow heads, which it pads, that was a seventh of a step in bfloat16."""

    def kernel(x, y, out):
        out[...] = x[...].astype(jnp.float32) @ y[...].astype(jnp.float32)

    call = pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 8), jnp.float32), interpret=True)
    operand = jax.ShapeDtypeStruct((8, 8), name)
    assert flops.dot_flop_shares(call, operand, operand) == {name: 1.0}


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
    monkeypatch.setattr(levers, "GROW_AFTER", 2)
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


# The lever remat by name: what the blocks of gpt keep, recompute and send to the host.


KEY_named = jax.random.PRNGKey(0)
SMALL = {"model.layers": 1, "model.width": 32, "model.heads": 2, "model.context": 8, "model.vocab": 16}
LLAMA = {"model.gated": 1, "model.kv_heads": 1, "model.rms": 1}


def gradient_named(value: str, **changes):
    workload = experiment_workload("gpt", **SMALL, **changes, **{"lever.remat": value})
    params, state = workload.init(KEY_named)
    batch = workload.synthetic(KEY_named, 2)

    def loss(params):
        return workload.mean_loss(params, state, batch, KEY_named)[0]

    return jax.grad(loss), params


def products(value: str) -> int:
    function, params = gradient_named(value)
    return sum(
        equation.primitive.name == "dot_general" for equation in equations(jax.make_jaxpr(function)(params).jaxpr)
    )


def test_what_is_kept_is_not_computed_again():
    none = products("none")
    # Per block: qkv, scores, weighted values, out, up, down. Nothing needs the last one again.
    again = {value: products(value) - none for value in ("full", "save_qkv_proj", "minimal", "minimal_flash")}
    assert again == {"full": 5, "save_qkv_proj": 4, "minimal": 2, "minimal_flash": 1}
    assert products("names:mlpwi+out_proj=keep+mlpwo=recompute") - none == 3
    assert products("block") == products("full")


@pytest.mark.parametrize("value", thin(["names:decoder_layer_input+mlpwo", *REMAT_PRESETS], 1))
@pytest.mark.parametrize("model", thin([LLAMA, {}, {"model.experts": 2}], 1))
def test_the_gradient_does_not_depend_on_it(value, model):
    if offloads(value):
        pytest.skip("a CPU has no other memory")
    (plain, params), (function, _) = gradient_named("none", **model), gradient_named(value, **model)
    for x, y in zip(*(jax.tree.leaves(jax.jit(each)(params)) for each in (plain, function)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "arrays"), [("qkv_proj_offloaded", 3), ("names:decoder_layer_input=offload+mlpwi=keep", 1)]
)
def test_what_is_offloaded_lies_in_the_memory_of_the_host(monkeypatch, value, arrays):
    monkeypatch.delitem(levers.REQUIREMENTS, "remat")  # as on a device with a memory of its own
    function, params = gradient_named(value)
    text = str(jax.make_jaxpr(function)(params))
    assert text.count("<host>") >= 2 * arrays
    assert "<host>" not in str(jax.make_jaxpr(gradient_named("minimal")[0])(params))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("minimum", r"remat=minimum is unknown: did you mean 'minimal'\?"),
        ("names:queries", r"names 'queries', which no block has: choose one of: attention_output"),
        ("names:mlpwi=disk", r"does not say where 'mlpwi' goes: write mlpwi=keep, =offload or =recompute"),
        ("names:mlpwi+mlpwi", r"does not say where 'mlpwi' goes"),
    ],
)
def test_wrong_values(value, message):
    with pytest.raises(UserError, match=message):
        REMAT.read(value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("vit", "minimal", "remat=minimal selects activations by name and 'vit' names none: use gpt, or none, sqrt"),
        ("gpt", "qkv_proj_offloaded", "moves activations to host memory, where a CPU already has them: use block"),
    ],
)
def test_models_and_devices_without_it(name, value, message):
    workload = experiment_workload(name)
    with pytest.raises(UserError, match=message):
        levers.apply(workload, {"remat": value}, platform="cpu", device_kind="cpu")

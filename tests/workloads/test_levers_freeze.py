# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Freezing: the compiled program has no backward pass, optimizer state or communication for frozen layers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from thin import KINDS, thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import check
from jaxbench.measure.compile_report import compile_step
from jaxbench.measure.expected_communication import judge
from jaxbench.parallel.program import create_state
from jaxbench.workloads import Field, TrainWorkload, flops
from jaxbench.workloads.levers import apply, freeze

BATCH, WIDTHS = 64, (128, 256, 512, 64)
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


def closed_form(pattern: str) -> float:
    return sum(times * layer for times, layer in zip(LEFT[pattern], LAYERS, strict=True))


def compiled_flops(workload: TrainWorkload) -> float:
    """Of one example, by the compiler."""
    state = jax.eval_shape(lambda key: create_state(workload, key), KEY)
    gradient = jax.jit(jax.grad(workload.loss, has_aux=True))
    lowered = gradient.lower(state.params, state.model_state, workload.batch_avals(BATCH), KEY)
    return lowered.compile().cost_analysis()["flops"] / BATCH


@pytest.mark.parametrize("pattern", LEFT)
def test_the_compiled_gradient_has_the_flops_of_the_formula(pattern):
    workload = frozen(layers_workload(), pattern)
    assert workload.flops_per_example == closed_form(pattern)
    # The compiler also counts element-wise work: 10 of 128 to 512 FLOPs of a product.
    assert compiled_flops(workload) == pytest.approx(closed_form(pattern), rel=0.02)


@pytest.mark.parametrize("pattern", LEFT)
def test_recomputed_activations_are_not_the_flops_of_training(pattern):
    assert frozen(layers_workload(remat=True), pattern).flops_per_example == closed_form(pattern)


def test_without_a_formula_what_is_left_is_counted():
    workload = dataclasses.replace(layers_workload(), flops_per_example=None)
    assert frozen(workload, "^0/").flops_per_example == closed_form("^0/")


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
    assert frozen(workload, "^0/").flops_per_example == closed_form("^0/")


ALL_REDUCE = sorted({*parallel.of_any_model()} - {"zero1", "zero2", "fsdp"})


@pytest.mark.parametrize("strategy", thin(ALL_REDUCE, KINDS[:2]))
def test_frozen_parameters_cost_no_communication_and_no_optimizer_state(strategy):
    workload = frozen(layers_workload(stateful=True), "^[01]/")
    batch = workload.synthetic(KEY, BATCH)
    program = parallel.build(strategy, workload, jax.devices()[:2])
    compiled = compile_step(workload, program, BATCH)
    trained = 4 * (WIDTHS[2] * WIDTHS[3] + WIDTHS[3])
    assert compiled.report.expected_gradient_bytes == trained
    verdict = judge(workload, program, compiled.report, BATCH)
    assert verdict.ok, verdict.reason
    reference = one_device(workload, batch)
    verdict = check.judge(check.train(program, compiled.call, KEY, batch), reference, workload)
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
    batch = whole.synthetic(KEY, BATCH)
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
    assert part.predict(found["part"][0], found["part"][2], batch).shape == (BATCH, WIDTHS[1])


def test_frozen_parameters_are_cast_as_the_others_are():
    workload = frozen(layers_workload(), "^0/", precision="bfloat16")
    params, model_state = jax.eval_shape(workload.init, KEY)
    gradient = jax.grad(workload.loss, has_aux=True)
    shares = flops.dot_flop_shares(gradient, params, model_state, workload.batch_avals(BATCH), KEY)
    assert shares == {"bfloat16": 1.0}
    assert {leaf.dtype.name for leaf in jax.tree.leaves((params, model_state))} == {"float32"}


@pytest.mark.parametrize("stateful", [False, True])
def test_frozen_parameters_are_no_state_of_the_model(stateful):
    for workload in (layers_workload(stateful), frozen(layers_workload(stateful), "^0/")):
        assert freeze.stateful(jax.eval_shape(workload.init, KEY)[1]) == stateful


def test_paths_of_a_model_are_unchanged():
    workload = experiment_workload("cnn")
    params, _ = jax.eval_shape(workload.init, KEY)
    assert "convolutions/0/kernel" in freeze.paths(params)


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

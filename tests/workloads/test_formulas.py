# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The FLOPs that experiments state are those of their products, and products are counted as they are written."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax
import pytest
from experiment_cases import lever_experiments
from thin import thin
from workload_cases import TINY, linear_workload

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.core.workload import TrainWorkload
from jaxbench.levers import PART
from jaxbench.measure.arm import Arms
from jaxbench.measure.compile_report import StatedWork
from jaxbench.workloads import flops
from jaxbench.workloads.levers import frozen

BATCH = 8
EXACT = 1e-9


def arms(name: str, *, tiny: bool) -> list[tuple[dict[str, str], TrainWorkload]]:
    """The workloads of an experiment's arms; [] for cases."""
    config = config_lib.compose(name, discovery.load_experiment(name), TINY, tiny=tiny)
    if config.get("measures"):
        return []
    made = Arms(config, name, jax.devices()[0])
    by_identity = {}
    for arm in levers.arms(config.lever):
        workload = made.workload(arm.levers)
        by_identity[id(workload), PART.of(arm.levers)] = arm.levers, workload
    return [*by_identity.values()]


# An experiment that varies a lever of another one's model has nearly the same products.
OWN_MODELS = [name for name in discovery.experiments() if name not in lever_experiments()]


@pytest.mark.parametrize("tiny", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", thin([*discovery.experiments()], keep=[*OWN_MODELS, "inference", "moe"]))
def test_a_formula_counts_the_products_of_its_model(name: str, tiny: bool) -> None:
    """A formula leaves out only what it names: masked attention, empty places of experts, zeros in a kernel."""
    for chosen, workload in arms(name, tiny=tiny):
        if workload.flops_per_example is None:
            continue
        part = PART.of(chosen)
        counted = flops.of_workload(workload, BATCH, part)
        stated = StatedWork.of(workload, BATCH, 1, part).flops
        assert stated is not None and counted.all_counted, chosen
        share = 1.0 if part == "step" else counted.total / flops.of_workload(workload, BATCH).total
        masked, padding = workload.masked_flops_per_example, workload.padding_flops_per_example
        least = stated + BATCH * share * masked  # not all platforms and precisions pad
        most = least + BATCH * share * padding
        assert least * (1 - EXACT) <= counted.total <= most * (1 + EXACT), chosen


def test_inference_is_one_forward_pass():
    """17.5 million FLOPs of a training step were counted for an image; its predictions take 5.65 million products."""
    (_, workload), *_ = arms("inference", tiny=False)
    stated = {part: StatedWork.of(workload, BATCH, 1, part).flops / BATCH for part in ("step", "inference", "forward")}
    assert stated["step"] == workload.flops_per_example == pytest.approx(17.5e6, rel=0.01)
    assert stated["inference"] == stated["forward"] == pytest.approx(stated["step"] / 3, rel=0.1)


def counted(function, *avals) -> flops.Products:
    return flops.of_function(function, *avals)


X, W = jnp.ones((4, 8)), jnp.ones((8, 16))  # 2 x 4 x 8 x 16 = 1,024 FLOPs


def test_a_product_that_no_result_needs_is_not_counted():
    assert counted(lambda x, w: (jnp.sum(x), x @ w)[0], X, W).total == 0
    assert counted(lambda x, w: (jnp.sum(x), x @ w), X, W).total == 1024


def in_scan(x, w, wrapped):
    return jax.lax.scan(lambda c, _: (wrapped(lambda c: jnp.sin(c @ w) @ w.T)(c), None), x, length=3)[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, wrapped: wrapped(lambda x: jnp.sin(x @ w) @ w.T)(x),
        lambda x, w, wrapped: jax.jit(wrapped(lambda x: jnp.sin(jax.nn.relu(x @ w)) @ w.T))(x),
        in_scan,
    ],
    ids=["plain", "in-jit", "in-scan"],
)
def test_recomputation_is_no_work_of_the_model(function):
    def loss(w, x, wrapped=jax.checkpoint):
        return jnp.sum(function(x, w, wrapped) ** 2)

    def stored(w, x):
        return loss(w, x, lambda block: block)

    plain, wanted = flops.without_remat(loss, W, X), counted(jax.value_and_grad(stored), W, X).total
    assert counted(jax.value_and_grad(plain), W, X).total == wanted < counted(jax.value_and_grad(loss), W, X).total
    assert jnp.allclose(jax.grad(plain)(W, X), jax.grad(stored)(W, X))


def test_a_loop_of_unknown_length_and_a_kernel_are_said_to_be_unknown():
    def endless(x, w):
        return jax.lax.while_loop(lambda x: jnp.sum(x) < 1, lambda x: x @ w @ w.T, x)

    found = counted(endless, X, W)
    assert found.endless and not found.opaque and not found.all_counted and found.total == 2048
    known = counted(lambda x, w: jax.lax.fori_loop(0, 5, lambda _, x: x @ w @ w.T, x), X, W)
    assert known.all_counted and known.total == 5 * 2048
    called = counted(lambda x: jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x), X)
    assert called.opaque and not called.all_counted


def test_a_conditional_counts_as_its_most_expensive_branch():
    found = counted(lambda x, w: jax.lax.cond(jnp.sum(x) > 0, lambda: x @ w, lambda: jnp.zeros((4, 16))), X, W)
    assert found.total == 1024


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x, w: x @ w, "float32"),
        (lambda x, w: x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16), "bfloat16"),
        (lambda x, w: jnp.dot(x.astype(jnp.bfloat16), w, preferred_element_type=jnp.float32), "float32"),
        (lambda x, w: jnp.dot(x, w, precision=jax.lax.DotAlgorithmPreset.BF16_BF16_F32), "bfloat16"),
        (lambda x, w: jnp.dot(x, w, precision=jax.lax.DotAlgorithmPreset.F16_F16_F32), "float16"),
        (lambda x, w: jnp.dot(x, w, precision="highest"), "float32"),
        (lambda x, w: x.astype(jnp.int8) @ w.astype(jnp.int8), "int8"),
        (lambda x, w: jax.lax.scan(lambda c, _: (c, c.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)), x, length=2)[1],
         "bfloat16"),
    ],
)  # fmt: skip
def test_the_number_format_of_a_product(function, dtype):
    assert counted(function, X, W).shares == {dtype: 1.0}


def test_rows_that_meet_the_matrix_of_their_group():
    x, w, groups = jnp.ones((6, 3)), jnp.ones((2, 3, 5)), jnp.array([2, 4])

    def loss(x, w):
        return jnp.sum(jax.lax.ragged_dot(x, w, groups) ** 2)

    assert counted(jax.value_and_grad(loss, argnums=(0, 1)), x, w).total == 3 * 2 * 6 * 3 * 5


def test_a_product_with_a_vector_may_be_written_as_a_sum():
    assert counted(lambda x, w: x @ w[:, 0], X, W).vectors == 2 * 4 * 8
    assert counted(lambda x, w: x @ w, X, W).vectors == 0
    assert flops.of_function(lambda x, w: x @ w, X, W, devices=4).vectors == 1024, "one row on each of four devices"


def test_what_an_optimizer_ignores_is_not_stated():
    """As under the lever `freeze`: XLA does not compute a gradient that the optimizer sets to zero."""
    labels = lambda params: {name: "train" if name == "b" else "keep" for name in params}  # noqa: E731
    chosen = optax.multi_transform({"train": optax.sgd(0.1), "keep": optax.set_to_zero()}, labels)
    whole, part = linear_workload(), linear_workload(chosen)
    for formula in (None, 2 * 2 * 3 * 2.0):
        full, less = (dataclasses.replace(each, flops_per_example=formula) for each in (whole, part))
        assert StatedWork.of(full, BATCH, 1).model.total == BATCH * 24
        assert StatedWork.of(less, BATCH, 1).model.total == BATCH * 12
        assert StatedWork.of(less, BATCH, 1).flops == (None if formula is None else BATCH * 12)
        assert frozen(full, "w").flops_per_example == 12

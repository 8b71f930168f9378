# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss across examples: with gathered features every strategy agrees with one device, without them it does not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategy_cases import BATCH, verdicts
from thin import KINDS, thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import check, reference
from jaxbench.measure.compile_report import example_flops
from jaxbench.workloads import TrainWorkload, losses
from jaxbench.workloads.sharding_context import gathered

CHANGES = {"optimizer.name": "sgd", "optimizer.learning_rate": 0.5}


def towers(remat: str = "none", **changes: object) -> TrainWorkload:
    return experiment_workload("contrastive", **CHANGES, **{"lever.remat": remat}, **changes)


@pytest.fixture(scope="module")
def whole() -> reference.Reference:
    return one_device(towers(), towers().synthetic(KEY, BATCH))


@pytest.mark.parametrize("remat", thin(["block", "none"], 1))
@pytest.mark.parametrize("devices", thin([2, 8], 1))
@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS[1:2]))
def test_every_strategy_and_what_it_sends(strategy: str, devices: int, remat: str, whole: reference.Reference) -> None:
    workload = towers(remat)
    program = parallel.build(strategy, workload, jax.devices()[:devices])
    assert not [found.reason for found in verdicts(workload, program, whole)[:2] if not found.ok]


def apart(strategy: str, whole: reference.Reference) -> float:
    """The distance between the results of two devices and of one."""
    workload = towers()
    program = parallel.build(strategy, workload, jax.devices()[:2])
    found = check.train(program, program.step, KEY, workload.synthetic(KEY, BATCH))
    return reference.relative_l2(found.params, whole.end.params)


@pytest.mark.parametrize("strategy", thin(["pmap", "shard_map", "zero1", "fsdp"], 1))
def test_a_mean_of_what_devices_find_in_their_parts_is_another_loss(
    strategy: str, whole: reference.Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "gathered", lambda x: x)
    assert apart(strategy, whole) > 1e-2


@pytest.mark.parametrize("strategy", thin(["pmap", "shard_map", "zero2"], 1))
def test_a_gather_without_its_gradient_is_wrong(
    strategy: str, whole: reference.Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "gathered", lambda x: jax.lax.stop_gradient(gathered(x)))
    assert apart(strategy, whole) > 1e-3


def test_the_loss_is_clips_whole_and_by_blocks() -> None:
    batch = towers().synthetic(KEY, 12)
    params, _ = towers().init(KEY)
    found = [
        w.loss(params, {}, batch, KEY)[0] for w in (towers(), towers("block"), towers("block", **{"model.columns": 5}))
    ]
    x, y, scale = features(params, batch)
    products = scale * x @ y.T
    expected = np.mean([np.log(np.exp(m).sum(1)) - np.diag(m) for m in (products, products.T)])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    evaluated = towers().evaluate(params, {}, batch)
    assert float(evaluated["loss"]) == pytest.approx(expected, rel=1e-5)
    label = np.asarray(batch["label"])
    assert float(evaluated["accuracy"]) == pytest.approx(np.mean(label[products.argmax(1)] == label))


def features(params: dict, batch: dict) -> tuple[np.ndarray, np.ndarray, float]:
    """Of both towers, in double precision."""

    def tower(layers: dict, x: np.ndarray) -> np.ndarray:
        (w0, b0), (w1, b1) = ((np.float64(layers[i]["kernel"]), np.float64(layers[i]["bias"])) for i in (0, 1))
        x = np.maximum(x.reshape(len(x), -1) @ w0 + b0, 0) @ w1 + b1
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    letters = np.float64(params["embedding"])[np.asarray(batch["caption"])]
    scale = float(np.exp(np.float64(params["log_scale"])))
    return tower(params["image"], np.float64(batch["image"])), tower(params["caption"], letters), scale


def test_by_blocks_the_gradient_is_the_same_and_the_matrix_is_never_whole() -> None:
    x, y = (jax.random.normal(key, (size, 8)) for key, size in zip(jax.random.split(KEY), (96, 192), strict=True))
    loss = {c: lambda x, y, c=c: jnp.mean(losses.log_sums(x, y, c)) for c in (0, 24)}
    grads = {c: jax.grad(function, argnums=(0, 1))(x, y) for c, function in loss.items()}
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), grads[0], grads[24])
    held = {c: jax.jit(jax.grad(f, argnums=(0, 1))).lower(x, y).compile().as_text() for c, f in loss.items()}
    assert "f32[96,192]" in held[0] and "f32[96,192]" not in held[24] and "f32[96,24]" in held[24]


def test_a_fixed_temperature_is_no_parameter_and_an_impossible_one_is_named() -> None:
    fixed = towers(**{"model.learned": False}).init(KEY)[0]
    assert "log_scale" in towers().init(KEY)[0] and "log_scale" not in fixed
    with pytest.raises(UserError, match=r"temperature=0.0 must be above 0"):
        towers(**{"model.temperature": 0.0})
    with pytest.raises(UserError, match="remat=sqrt .*use none or block"):
        jax.eval_shape(towers("sqrt").loss, fixed, {}, towers().synthetic(KEY, 2), KEY)


def test_flops_of_a_step_grow_with_the_square_of_the_batch() -> None:
    one, pair = towers().flops_per_example, towers().flops_per_pair
    assert pair == 12 * 16  # two products of 16 numbers, forward and twice backward
    assert [example_flops(towers(), n) * n for n in (1, 10)] == [one + pair, 10 * one + 100 * pair]

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever remat by name: what the blocks of gpt keep, recompute and send to the host."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from thin import thin
from workload_cases import experiment_workload

from jaxbench.errors import UserError
from jaxbench.levers import REMAT, remat
from jaxbench.workloads import levers
from jaxbench.workloads.jaxprs import equations

KEY = jax.random.PRNGKey(0)
SMALL = {"model.layers": 1, "model.width": 32, "model.heads": 2, "model.context": 8, "model.vocab": 16}
LLAMA = {"model.gated": 1, "model.kv_heads": 1, "model.rms": 1}


def gradient(value: str, **changes):
    workload = experiment_workload("gpt", **SMALL, **changes, **{"lever.remat": value})
    params, state = workload.init(KEY)
    batch = workload.synthetic(KEY, 2)

    def loss(params):
        return workload.mean_loss(params, state, batch, KEY)[0]

    return jax.grad(loss), params


def products(value: str) -> int:
    function, params = gradient(value)
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


@pytest.mark.parametrize("value", thin(["names:decoder_layer_input+mlpwo", *remat.PRESETS], 1))
@pytest.mark.parametrize("model", thin([LLAMA, {}, {"model.experts": 2}], 1))
def test_the_gradient_does_not_depend_on_it(value, model):
    if remat.offloads(value):
        pytest.skip("a CPU has no other memory")
    (plain, params), (function, _) = gradient("none", **model), gradient(value, **model)
    for x, y in zip(*(jax.tree.leaves(jax.jit(each)(params)) for each in (plain, function)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "arrays"), [("qkv_proj_offloaded", 3), ("names:decoder_layer_input=offload+mlpwi=keep", 1)]
)
def test_what_is_offloaded_lies_in_the_memory_of_the_host(monkeypatch, value, arrays):
    monkeypatch.delitem(levers.REQUIREMENTS, "remat")  # as on a device with a memory of its own
    function, params = gradient(value)
    text = str(jax.make_jaxpr(function)(params))
    assert text.count("<host>") >= 2 * arrays
    assert "<host>" not in str(jax.make_jaxpr(gradient("minimal")[0])(params))


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

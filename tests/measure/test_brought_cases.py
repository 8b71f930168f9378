# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models after public reports, in tests/brought_cases: the kind of their loss, their state and their keys."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen as nn
from flax import nnx
from parallel.test_weighted import padded
from thin import thin
from workload_cases import KEY, TINY, experiment_workload

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.errors import Unsupported, UserError
from jaxbench.measure import check, expected_communication, loss_kind, reference
from jaxbench.measure.arm import inspected
from jaxbench.measure.loss_kind import ACROSS, CONSTANT, HIDDEN, MEAN, LossKind
from jaxbench.measure.proof import require_loss, require_micro_batchable
from jaxbench.workloads import Field, TrainWorkload, from_linen, from_nnx, gathered
from jaxbench.workloads.adapters import pure

FOLDER = Path(__file__).parent.parent / "brought_cases"


def brought(name: str, **changes: str) -> TrainWorkload:
    return of_file(FOLDER / f"{name}.py", **changes)


def of_file(path: Path, **changes: str) -> TrainWorkload:
    config = config_lib.compose(str(path), discovery.load_experiment(str(path)), TINY)
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return inspected(config, str(path))


def kind(workload: TrainWorkload) -> LossKind:
    return loss_kind.find(workload, device=jax.devices()[0])


def compared(workload: TrainWorkload, strategy: str) -> tuple[reference.TrainedState, reference.Reference]:
    """(the result of a strategy on two devices, the result of one device)."""
    program, batch = parallel.build(strategy, workload, jax.devices()[:2]), workload.synthetic(KEY, 16)
    layout = reference.BatchLayout.of(program, uses_key=expected_communication.uses_key(workload))
    state = reference.initial_state(workload, KEY, device=jax.devices()[0])
    expected = reference.reference(workload, state, batch, device=jax.devices()[0], layout=layout)
    return check.train(program, program.step, KEY, batch), expected


@pytest.mark.parametrize(("name", "label"), [("c10d_dense_bf16", MEAN), ("c10c_conv_bn_bf16", f"{ACROSS}, gathered")])
def test_a_bfloat16_loss_is_judged_at_its_own_rounding(name, label):
    found = kind(brought(name))
    assert found.label == label and not found.state


def test_a_hidden_weighted_mean_is_still_found_in_bfloat16():
    plain = padded("plain")

    def loss(params, model_state, batch, key):
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        value, rest = plain.loss(half, model_state, batch, key)
        return value.astype(jnp.bfloat16), rest

    assert kind(dataclasses.replace(plain, loss=loss)).name == HIDDEN


def test_a_hidden_weighted_mean_after_a_batch_normalization_gets_the_advice_of_the_former():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            return nn.Dense(1)(nn.BatchNorm(use_running_average=not train)(nn.Dense(8)(x)))[:, 0]

    model = from_linen(Net(), jax.ShapeDtypeStruct((1, 5), jnp.float32))

    def loss(params, model_state, batch, key):
        y, model_state = model.apply(params, model_state, batch["x"], key)
        return jnp.sum((y - batch["y"]) ** 2 * batch["w"]) / jnp.sum(batch["w"]), (model_state, {})

    positive = Field((), draw=lambda key, n: jax.random.uniform(key, (n,), minval=0.1))
    workload = TrainWorkload(
        name="weighted", init=model.init, loss=loss, optimizer=optax.sgd(0.1),
        example={"x": Field((5,)), "y": Field(()), "w": positive},
    )  # fmt: skip
    found = kind(workload)
    assert (found.name, found.gathers) == (HIDDEN, True)
    with pytest.raises(Unsupported, match=r"return WeightedMean"):
        require_micro_batchable(workload, parallel.build("shard_map", workload, jax.devices()[:2]), found)


STATES = {
    "r_state_count": ("seen",),
    "c13_vq_ema": ("count", "sum"),
    "c13b_state_not_a_mean": ("largest", "per_class", "seen"),  # and not the number of calls
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_parts_of_the_batch_do_not_make_is_refused_by_its_path(name):
    workload, devices = brought(name), jax.devices()[:2]
    found = kind(workload)
    assert (found.name, found.state) == (MEAN, STATES[name])
    for strategy in ("shard_map", "pmap", "fsdp", "zero1", "zero2"):
        with pytest.raises(Unsupported, match=f"the state '{STATES[name][0]}' .* is not a mean over examples"):
            require_micro_batchable(workload, parallel.build(strategy, workload, devices), found)
    require_micro_batchable(workload, parallel.build("jit_auto", workload, devices), found)
    require_micro_batchable(workload, parallel.build("shard_map", workload, devices[:1]), found)


def test_the_advice_on_a_state_makes_it_right():
    plain = brought("r_state_count")

    def loss(params, model_state, batch, key):
        value, (_, metrics) = plain.loss(params, model_state, batch, key)
        return value, ({"seen": model_state["seen"] + len(gathered(batch["x"]))}, metrics)

    workload = dataclasses.replace(plain, loss=loss)
    assert not kind(workload).state
    (verdict,) = check.judge_state(*compared(workload, "shard_map"), (), limit=1e-5)
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize(("strategy", "right"), thin([("jit_auto", True), ("shard_map", False), ("zero2", False)], 2))
def test_the_state_of_one_device_is_what_is_right(strategy, right):
    actual, expected = compared(brought("r_state_count"), strategy)
    assert reference.relative_l2(actual.params, expected.end.params) < 1e-5
    (verdict,) = check.judge_state(actual, expected, (), limit=1e-5)
    assert verdict.ok == right and "'seen'" in verdict.reason
    assert right or verdict.value == pytest.approx(0.5)  # a half of the examples


def test_a_model_without_state_has_no_verdict_on_it():
    actual, expected = compared(brought("c10d_dense_bf16"), "jit_auto")
    assert check.judge_state(actual, expected, (), limit=1e-5) == ()


@pytest.mark.parametrize(
    ("name", "path"), [("c03b_nnx_param_writes", "w"), ("c03_nnx_weightnorm", "hidden/layer_instance/kernel")]
)
def test_a_model_that_writes_into_its_own_parameters_is_refused(name, path):
    with pytest.raises(UserError, match=f"the model writes into its parameter '{path}' while it is called"):
        brought(name)


@pytest.mark.parametrize("how", ["wrap", "data", "impl", "index"])
def test_both_forms_of_keys_are_accepted_and_no_generator_hides_a_mean(how):
    workload = brought("c51_raw_key", **{"model.how": how})
    assert kind(workload).label == MEAN
    actual, expected = compared(workload, "shard_map")
    assert reference.relative_l2(actual.params, expected.end.params) < 1e-5
    assert reference.relative_l2(actual.params, expected.start) > 1e-3


def linear(loss) -> TrainWorkload:
    """loss: (parameters, batch, key) -> a number."""
    return TrainWorkload(
        name="linear", optimizer=optax.sgd(0.1), init=lambda key: ({"w": jax.random.normal(key, (5,))}, {}),
        loss=lambda params, state, batch, key: (loss(params["w"], batch, key), (state, {})),
        example={"x": Field((5,)), "y": Field((), jnp.int32, classes=3)},
    )  # fmt: skip


def error(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


CAPTURED = jnp.ones((4, 5))
CONSTANTS = {
    "captured": lambda w, b, key: error(w, CAPTURED, 1.0),
    "times zero": lambda w, b, key: error(w, CAPTURED, 1.0) + 0 * error(w, b["x"], b["y"]),
    "noise alone": lambda w, b, key: error(w, jax.random.normal(key, b["x"].shape), 1.0),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_loss_that_ignores_its_batch_is_refused(name):
    workload = linear(CONSTANTS[name])
    found = kind(workload)
    assert found.name == CONSTANT
    with pytest.raises(UserError, match=r"the loss of 'linear' does not depend on the batch.*\(x, y\)"):
        require_loss(workload, found)


def test_only_a_field_without_influence_on_loss_and_gradient_is_noted():
    found = kind(linear(lambda w, b, key: error(w, b["x"], 1.0)))
    assert (found.name, found.unread) == (MEAN, ("y",))
    assert found.label == f"{MEAN}; it does not depend on 'y'" and LossKind.of(found.label).in_parts

    def loss(w, b, key):
        return jnp.mean(b["x"] @ (w - jax.lax.stop_gradient(w))) + error(w, CAPTURED, 1.0)

    assert kind(linear(loss)).unread == ("y",)
    # A graph's nodes on a ring count relatively: shifting all of them by one position gives the same graph.
    assert kind(experiment_workload("gcn")).unread == ()


def test_a_key_for_each_example_hides_no_mean():
    def loss(w, b, key):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(len(b["x"])))
        return error(w, b["x"] + jax.vmap(lambda k: jax.random.normal(k, (5,)))(keys), b["y"])

    assert kind(linear(loss)).name == MEAN


def test_an_error_with_both_forms_of_keys_is_at_the_users_line(tmp_path):
    text = (FOLDER / "c51_raw_key.py").read_text()
    drawn = 'noise = jax.random.normal(key, batch["x"].shape)'
    (tmp_path / "mine.py").write_text(text.replace(drawn, "noise = batch['x'].no_such_thing"))
    with pytest.raises(UserError, match=r"mine.py', line \d+: AttributeError: .*no_such_thing"):
        of_file(tmp_path / "mine.py")


def test_models_get_typed_keys():
    def typed(key):
        assert jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
        return jax.random.key_data(key)

    given = pure.either_form(typed)
    assert jnp.array_equal(given(KEY), KEY) and jnp.array_equal(given(jax.random.key(0)), KEY)


@pytest.mark.parametrize("around", [lambda call: call, nnx.remat, nnx.jit], ids=["plain", "remat", "jit"])
@pytest.mark.parametrize("writes", [False, True])
def test_a_write_is_told_from_parameters_that_a_transformation_returns(around, writes):
    class Layer(nnx.Module):
        def __init__(self, rngs):
            self.linear, self.factor = nnx.Linear(4, 4, rngs=rngs), nnx.data(jnp.full(4, 2.0))

        def __call__(self, x):
            if writes:
                self.linear.bias[...] = 2 * self.linear.bias[...]
            return self.factor * self.linear(x)

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layer, self.dropout = Layer(rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.dropout(around(lambda layer, x: layer(x))(self.layer, x))

    model, x = from_nnx(Net), jnp.ones((3, 4))
    params, model_state = model.init(jax.random.key(0))
    assert model.predict(params, model_state, x).shape == (3, 4)
    if writes:
        with pytest.raises(UserError, match="into its parameter 'layer/linear/bias'"):
            model.apply(params, model_state, x, jax.random.key(1))
    else:
        _, after = model.apply(params, model_state, x, jax.random.key(1))
        assert jnp.array_equal(after["layer"]["factor"], model_state["layer"]["factor"])  # no nnx.Variable

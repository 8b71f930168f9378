# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model written in NNX, Linen, Equinox, Haiku or as plain functions becomes the same pure functions."""

import sys
from functools import partial

import adapter_models
import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapter_models import DROPOUT, EXAMPLE, NORMED, PLAIN, STATELESS
from flax import linen as nn
from flax import nnx
from thin import KINDS, thin
from workload_cases import KEY, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import check
from jaxbench.measure.compile_report import compile_step
from jaxbench.workloads import from_equinox, from_functions, from_haiku, from_linen, from_nnx

X = jnp.ones((3, 6))
workload = adapter_models.workload


@pytest.mark.parametrize("style", PLAIN)
def test_state_is_plain_dictionaries_and_apply_is_pure(style):
    model = PLAIN[style]()
    params, model_state = model.init(KEY)
    assert jax.tree.structure((params, model_state)) == jax.tree.structure(jax.eval_shape(model.init, KEY))
    assert type(params) is type(model_state) is dict
    assert {type(node) for path, _ in jax.tree.leaves_with_path(params) for node in path} == {jax.tree_util.DictKey}
    y, new_state = jax.jit(model.apply)(params, model_state, X, KEY)
    assert y.shape == (3, 4)
    np.testing.assert_array_equal(model.predict(params, model_state, X), y)
    if style not in STATELESS:
        assert jax.tree.leaves(model_state) == [0.0]
        assert jax.tree.leaves(new_state) == [1.0]


@pytest.mark.parametrize("style", PLAIN)
@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS[1:2]))
def test_every_style_under_every_strategy(style, strategy):
    mine = workload(PLAIN[style]())
    program = parallel.build(strategy, mine, jax.devices()[:2])
    compiled = compile_step(mine, program, 8)
    batch = mine.synthetic(KEY, 8)
    expected = one_device(mine, batch)
    verdict = check.judge(check.train(program, compiled.call, KEY, batch), expected, mine)
    assert verdict.ok, verdict.reason
    assert compiled.report.flops_per_step == 2 * 6 * 4 * 2 * 8  # forward and the weights' gradient, 8 examples


def test_synthetic_batches_repeat_and_respect_their_fields():
    mine = workload(PLAIN["functions"]())
    a, b = mine.synthetic(KEY, 64), mine.synthetic(KEY, 64)
    np.testing.assert_array_equal(a["x"], b["x"])
    assert set(np.unique(a["y"])) == {0, 1, 2, 3}
    assert abs(float(a["x"].mean())) < 0.2


@pytest.mark.parametrize("style", NORMED)
def test_training_moves_statistics_that_inference_uses_and_leaves(style):
    mine = NORMED[style]()
    params, before = mine.init(KEY)
    x = jax.random.normal(KEY, (64, 6))
    _, after = mine.apply(params, before, 3 + x, KEY)
    assert jax.tree.structure(after) == jax.tree.structure(before)
    assert not all(jax.tree.leaves(jax.tree.map(np.array_equal, before, after)))
    inferred = mine.predict(params, after, x)
    assert not np.allclose(inferred, mine.apply(params, after, x, KEY)[0], atol=0.1)
    np.testing.assert_allclose(mine.predict(params, after, x[:1]), inferred[:1], rtol=1e-4, atol=1e-5)


def test_two_inputs_are_a_tuple_and_a_dictionary_is_one():
    class Two(nn.Module):
        @nn.compact
        def __call__(self, a, b):
            return nn.Dense(4)(a * b["c"])

    shape = jax.ShapeDtypeStruct((1, 6), jnp.float32)
    model = from_linen(Two(), (shape, {"c": shape}))
    params, _ = model.init(KEY)
    np.testing.assert_array_equal(model.predict(params, {}, (X, {"c": X})), X @ params["Dense_0"]["kernel"])
    model = from_functions(lambda key: {}, lambda params, x: x[0] + x[1])
    np.testing.assert_array_equal(model.predict({}, {}, (X, X)), 2 * X)


SPELLINGS = {
    "train": True,
    "training": True,
    "is_training": True,
    "deterministic": False,
    "use_running_average": False,
    "inference": False,
}


@pytest.mark.parametrize(("name", "polarity"), SPELLINGS.items())
def test_every_spelling_of_the_argument_that_says_training(name, polarity):
    made: dict = {}
    exec(f"def apply(params, x, {name}):\n    return x * (2.0 * ({name} == {polarity}) - 1.0)", made)
    flag = made["apply"]
    exec(f"def call(self, x, {name}={not polarity}):\n    return flag(None, x, {name})", {"flag": flag}, made)
    call = made["call"]
    models = {
        "functions": from_functions(lambda key: {}, flag),
        "linen": from_linen(type("Flag", (nn.Module,), {"__call__": call, "__module__": __name__})(), EXAMPLE),
        "nnx": from_nnx(lambda rngs: type("Flag", (nnx.Module,), {"__call__": call})()),
        "equinox": from_equinox(lambda key: type("Flag", (eqx.Module,), {"__call__": call})()),
        "haiku": from_haiku(partial(flag, None), EXAMPLE),
    }
    for style, model in models.items():
        np.testing.assert_array_equal(model.apply({}, {}, X, KEY)[0], X, err_msg=style)
        np.testing.assert_array_equal(model.predict({}, {}, X), -X, err_msg=style)


def test_a_linen_module_may_say_it_by_a_field():
    class Net(nn.Module):
        train: bool

        @nn.compact
        def __call__(self, x):
            return x if self.train else -x

    model = from_linen(Net(train=False), EXAMPLE)
    np.testing.assert_array_equal(model.apply({}, {}, X)[0], X)
    np.testing.assert_array_equal(model.predict({}, {}, X), -X)


@pytest.mark.filterwarnings("ignore:Using 'Module.sow:DeprecationWarning")
@pytest.mark.parametrize("reduced", [False, True])
def test_sown_values_are_no_state(reduced):
    class Linen(nn.Module):
        @nn.compact
        def __call__(self, x):
            options = {"reduce_fn": lambda a, b: a + b, "init_fn": lambda: 0.0} if reduced else {}
            self.sow("losses", "size", jnp.sum(x), **options)
            self.sow("intermediates", "size", jnp.sum(x))
            return nn.Dense(4)(x)

    class Nnx(nnx.Module):
        def __init__(self, rngs):
            self.layer = nnx.Linear(6, 4, rngs=rngs)

        def __call__(self, x):
            self.sow(nnx.Intermediate, "size", jnp.sum(x))
            return self.layer(x)

    for model in (from_linen(Linen(), EXAMPLE), from_nnx(Nnx)):
        params, model_state = model.init(KEY)
        assert model_state == {} and model.apply(params, model_state, X)[1] == {}


def test_linens_sharding_metadata_is_removed_from_its_parameters():
    kernel = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "model"))
    params, _ = from_linen(nn.Dense(4, kernel_init=kernel), EXAMPLE).init(KEY)
    assert isinstance(params["kernel"], jax.Array)


def test_equinox_arrays_by_path_and_those_of_integers_are_state():
    class Net(eqx.Module):
        layers: list
        order: jax.Array
        name: str = "net"

        def __init__(self, key):
            self.layers = [eqx.nn.Linear(6, 6, key=key), jax.nn.relu, eqx.nn.Linear(6, 4, use_bias=False, key=key)]
            self.order = jnp.arange(6)[::-1]

        def __call__(self, x):
            x = x[self.order]
            for layer in self.layers:
                x = layer(x)
            return x

    model = from_equinox(Net)
    params, model_state = model.init(KEY)
    shapes = jax.tree.map(jnp.shape, params)
    assert shapes == {"layers": {"0": {"weight": (6, 6), "bias": (6,)}, "2": {"weight": (4, 6)}}}
    np.testing.assert_array_equal(model_state["order"], [5, 4, 3, 2, 1, 0])
    x = jax.random.normal(KEY, (3, 6))
    np.testing.assert_allclose(model.predict(params, model_state, x), jax.vmap(Net(KEY))(x), rtol=1e-6)


def test_haiku_takes_what_was_transformed():
    def net(x, is_training):
        return hk.Linear(4)(x) * (1.0 if is_training else -1.0)

    for given in (net, hk.transform(net), hk.transform_with_state(net), hk.without_apply_rng(hk.transform(net))):
        model = from_haiku(given, EXAMPLE)
        params, model_state = model.init(KEY)
        assert set(params) == {"linear"} and model_state == {}
        np.testing.assert_array_equal(
            model.apply(params, {}, X, KEY)[0], -np.asarray(model.predict(params, model_state, X))
        )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: from_functions(dict, lambda params: 0), r"apply takes \(params, x\), .*, and yours takes \(params\)"),
        (lambda: from_equinox(lambda key: eqx.nn.make_with_state(eqx.nn.BatchNorm)(6, "batch", mode="ema")), "State"),
        (lambda: from_equinox(lambda key: key), "yours returned a ShapeDtypeStruct: write from_equinox"),
        (lambda: from_haiku(3, EXAMPLE), "takes a function of the input batch, and was given a int"),
    ],
)
def test_an_object_that_is_not_a_model_is_one_sentence(make, sentence):
    with pytest.raises(UserError, match=sentence):
        make()


@pytest.mark.parametrize(("style", "package"), [("equinox", "equinox"), ("haiku", "dm-haiku")])
def test_a_library_that_is_not_installed_is_one_sentence(monkeypatch, style, package):
    monkeypatch.setitem(sys.modules, style, None)
    with pytest.raises(UserError, match=f"from_{style} needs the package {package}, which is not installed"):
        DROPOUT[style]()

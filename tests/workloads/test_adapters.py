# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model written in NNX, Linen, Equinox, Haiku or as plain functions becomes the same pure functions.

The libraries' own batch normalization uses the whole global batch, for any placement on devices. Random draws of a
model come from the given key, in training, and are not state.
"""

from __future__ import annotations

import sys
from functools import partial

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx
from thin import KINDS, thin
from workload_cases import KEY, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import check, reference
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel.step import jit_once
from jaxbench.workloads import (
    Field,
    TrainWorkload,
    classification,
    evaluation,
    from_equinox,
    from_functions,
    from_haiku,
    from_linen,
    from_nnx,
)
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.levers import TRANSFORMS

EXAMPLE = jax.ShapeDtypeStruct((1, 6), jnp.float32)
RATE = 0.5


def workload(model: PureModel, **changes: object) -> TrainWorkload:
    """Ordinary training of one of these models."""
    settings = {"optimizer": optax.sgd(0.5), "example": {"x": Field((6,)), "y": Field((), jnp.int32, classes=4)}}
    loss = classification(model, inputs="x", labels="y")
    evaluate = evaluation(model, inputs="x", labels="y")
    return TrainWorkload(name="mine", init=model.init, loss=loss, evaluate=evaluate, **{**settings, **changes})


class NnxDropout(nnx.Module):
    def __init__(self, rngs):
        self.hidden, self.logits = nnx.Linear(6, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.dropout, self.second = nnx.Dropout(RATE, rngs=rngs), nnx.Dropout(RATE, rngs=rngs)

    def __call__(self, x):
        return self.logits(self.second(self.dropout(nnx.relu(self.hidden(x)))))


class LinenDropout(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Dropout(RATE, deterministic=not train)(nn.relu(nn.Dense(16)(x)))
        return nn.Dense(4)(x)


class EquinoxDropout(eqx.Module):
    hidden: eqx.nn.Linear
    logits: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.hidden, self.logits = eqx.nn.Linear(6, 16, key=first), eqx.nn.Linear(16, 4, key=second)
        self.dropout = eqx.nn.Dropout(RATE)

    def __call__(self, x, *, key):
        return self.logits(self.dropout(jax.nn.relu(self.hidden(x)), key=key))


def haiku_dropout(x, is_training):
    x = jax.nn.relu(hk.Linear(16)(x))
    return hk.Linear(4)(hk.dropout(hk.next_rng_key(), RATE, x) if is_training else x)


def weights(key):
    first, second = jax.random.split(key)
    return {"up": 0.3 * jax.random.normal(first, (6, 16)), "down": 0.3 * jax.random.normal(second, (16, 4))}


def functions_dropout(params, x, key, train):
    x = jax.nn.relu(x @ params["up"])
    if train:
        x = jnp.where(jax.random.bernoulli(key, RATE, x.shape), x / RATE, 0.0)
    return x @ params["down"]


DROPOUT = {
    "nnx": lambda: from_nnx(NnxDropout),
    "linen": lambda: from_linen(LinenDropout(), EXAMPLE),
    "functions": lambda: from_functions(weights, functions_dropout),
    "equinox": lambda: from_equinox(EquinoxDropout),
    "haiku": lambda: from_haiku(haiku_dropout, EXAMPLE),
}


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(6, 4, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x):
        self.calls[...] += 1.0
        return self.layer(x)


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        calls = self.variable("batch_stats", "calls", lambda: jnp.zeros(()))
        if not self.is_initializing():
            calls.value += 1.0
        return nn.Dense(4)(x)


def haiku_net(x):
    calls = hk.get_state("calls", (), init=jnp.zeros)
    hk.set_state("calls", calls + 1.0)
    return hk.Linear(4)(x)


def counting(params, model_state, x, key):
    del key
    return x @ params["kernel"], {"calls": model_state["calls"] + 1.0}


PLAIN = {
    "nnx": lambda: from_nnx(NnxNet),
    "linen": lambda: from_linen(LinenNet(), EXAMPLE),
    "functions": lambda: from_functions(
        lambda key: ({"kernel": jax.random.normal(key, (6, 4))}, {"calls": jnp.zeros(())}), counting
    ),
    "equinox": lambda: from_equinox(lambda key: eqx.nn.Linear(6, 4, key=key)),
    "haiku": lambda: from_haiku(haiku_net, EXAMPLE),
}
STATELESS = ("equinox",)


class NnxNormed(nnx.Module):
    def __init__(self, rngs):
        self.hidden, self.logits = nnx.Linear(6, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(16, momentum=0.9, rngs=rngs)

    def __call__(self, x):
        return self.logits(nnx.relu(self.norm(self.hidden(x))))


class LinenNormed(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(nn.Dense(16)(x))
        return nn.Dense(4)(nn.relu(x))


def haiku_normed(x, is_training):
    x = hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(hk.Linear(16)(x), is_training)
    return hk.Linear(4)(jax.nn.relu(x))


NORMED = {
    "nnx": lambda: from_nnx(NnxNormed),
    "linen": lambda: from_linen(LinenNormed(), EXAMPLE),
    "haiku": lambda: from_haiku(haiku_normed, EXAMPLE),
}


X = jnp.ones((3, 6))


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


SPELLINGS = {True: ("train", "training", "is_training"), False: ("deterministic", "use_running_average", "inference")}


@pytest.mark.parametrize(("name", "polarity"), [(name, which) for which in SPELLINGS for name in SPELLINGS[which]])
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


def test_linens_sharding_metadata_is_removed_and_a_module_that_looks_for_its_stream_finds_it():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dropout(RATE, deterministic=not self.has_rng("dropout"))(x)

    y, _ = from_linen(Net(), EXAMPLE).apply({}, {}, MANY_X, KEY)
    assert (y == 0).any()
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
        predicted = np.asarray(model.predict(params, model_state, X))
        np.testing.assert_array_equal(model.apply(params, {}, X, KEY)[0], -predicted)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: from_functions(dict, lambda params: 0), r"apply takes \(params, x\), .*, and yours takes \(params\)"),
        (lambda: from_equinox(lambda key: eqx.nn.make_with_state(eqx.nn.BatchNorm)(6, "batch", mode="ema")), "State"),
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


BATCH = 16


class Block(nn.Module):
    """A layer created in `setup`, inside a block that is recomputed."""

    def setup(self):
        self.dense, self.norm = nn.Dense(6), nn.BatchNorm(momentum=0.9)

    def __call__(self, x, train):
        return nn.relu(self.norm(self.dense(x), use_running_average=not train))


class Blocks(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for _ in range(2):
            x = nn.remat(Block, static_argnums=2)()(x, train)
        return nn.Dense(4)(x)


class Repeated(nnx.Module):
    """Three layers in one loop."""

    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=0, out_axes=0)
        def made(rngs):
            return nnx.Sequential(nnx.Linear(6, 6, rngs=rngs), nnx.BatchNorm(6, momentum=0.9, rngs=rngs))

        self.layers, self.logits = made(rngs), nnx.Linear(6, 4, rngs=rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def forward(x, layer):
            return nnx.relu(layer(x))

        return self.logits(forward(x, self.layers))


MODELS = {**NORMED, "remat": lambda: from_linen(Blocks(), EXAMPLE), "scan": lambda: from_nnx(Repeated)}


@pytest.fixture(scope="module", params=thin([*MODELS], 2))
def case(request):
    mine = workload(MODELS[request.param]())
    batch = mine.synthetic(KEY, BATCH)
    batch["x"] = batch["x"] + jnp.linspace(-3, 3, BATCH)[:, None]  # devices have different examples
    state = reference.initial_state(mine, KEY, device=jax.devices()[0])
    _, (moved, _) = jit_once(mine.loss)(state.params, state.model_state, batch, KEY)
    return mine, batch, one_device(mine, batch), moved


PLACES = [("jit_auto", 8), ("fsdp", 2), ("pmap", 2), ("shard_map", 8), ("zero2", 2)]


@pytest.mark.parametrize(("strategy", "devices"), thin(PLACES, 1))
def test_every_strategy_gives_one_devices_parameters_and_statistics(case, strategy, devices):
    mine, batch, expected, moved = case
    program = parallel.build(strategy, mine, jax.devices()[:devices])
    verdict = check.judge(check.train(program, program.step, KEY, batch), expected, mine)
    assert verdict.ok, verdict.reason
    with jax.set_mesh(program.mesh):
        after, _ = program.step(program.init(KEY), program.put(batch))
        found = program.export(after).model_state
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, moved)


@pytest.mark.full
@pytest.mark.parametrize("style", NORMED)
@pytest.mark.parametrize("strategy", ["jit_auto", "shard_map"])
def test_micro_batches_are_normalised_each_over_all_devices(style, strategy):
    mine = TRANSFORMS["accumulate"](workload(NORMED[style]()), 2)
    batch = mine.synthetic(KEY, BATCH)
    program = parallel.build(strategy, mine, jax.devices()[:2])
    verdict = check.judge(check.train(program, program.step, KEY, batch), one_device(mine, batch), mine)
    assert verdict.ok, verdict.reason


def test_the_model_that_was_given_is_left_as_it_was():
    module = nn.BatchNorm(use_running_average=False)
    step_of_four(from_linen(module, EXAMPLE))
    assert module.axis_name is None


def step_of_four(model):
    """One step of four equal examples on two devices."""
    program = parallel.build("shard_map", workload(model), jax.devices()[:2])
    batch = {"x": np.ones((4, 6), np.float32), "y": np.zeros(4, np.int32)}
    with jax.set_mesh(program.mesh):
        jax.block_until_ready(program.step(program.init(KEY), program.put(batch)))


OTHER = jax.random.PRNGKey(1)
MANY_X = jnp.ones((64, 6))


@pytest.mark.parametrize("style", DROPOUT)
def test_training_draws_by_its_key_and_inference_does_not_draw(style):
    model = DROPOUT[style]()
    params, model_state = model.init(KEY)
    y, after = model.apply(params, {}, MANY_X, KEY)
    assert model_state == after == {}
    np.testing.assert_array_equal(model.apply(params, {}, MANY_X, KEY)[0], y)
    assert not np.allclose(model.apply(params, {}, MANY_X, OTHER)[0], y)
    assert len(np.unique(y, axis=0)) > 32  # each example has its own mask
    inferred = model.predict(params, {}, MANY_X)
    np.testing.assert_allclose(inferred, jnp.broadcast_to(inferred[:1], inferred.shape), rtol=1e-6)
    if style in ("nnx", "linen", "functions"):
        with pytest.raises(UserError, match=r"the loss's key, model.apply\(params, model_state, x, key\)"):
            model.apply(params, {}, MANY_X)
    mine = workload(model)
    batch = mine.synthetic(KEY, 8)
    losses = [mine.loss(params, {}, batch, key)[0] for key in (KEY, KEY, OTHER)]
    assert losses[0] == losses[1] != losses[2]
    assert mine.evaluate(params, {}, batch)["loss"] not in losses


TAKES = [(way, style) for way in parallel.of_any_model() for style in DROPOUT]
# Linen's own dropout does not give its mask a sharding, which explicit sharding requires.
QUICK_TAKES = [*TAKES[::16], ("jit_explicit", "linen")]


@pytest.mark.parametrize(("strategy", "style"), thin(TAKES, QUICK_TAKES))
def test_every_strategy_trains_what_draws(strategy, style):
    mine = workload(DROPOUT[style]())
    program = parallel.build(strategy, mine, jax.devices()[:2])
    batch = mine.synthetic(KEY, 8)
    one, other = (check.train(program, program.step, key, batch).params for key in (KEY, OTHER))
    assert reference.relative_l2(one, other) > 1e-3  # not so if anything is not finite


def test_devices_draw_by_keys_of_their_own():
    """The same example twice on each of two devices: four masks."""
    seen = []

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layer, self.dropout = nnx.Linear(6, 4, rngs=rngs), nnx.Dropout(RATE, rngs=rngs)

        def __call__(self, x):
            mask = self.dropout(jnp.ones((len(x), 64)))
            jax.debug.callback(lambda mask: seen.extend(map(bytes, np.asarray(mask))), mask)
            return self.layer(x)

    step_of_four(from_nnx(Net))
    jax.effects_barrier()
    assert len(seen) == len(set(seen)) == 4


class LinenStreams(nn.Module):
    """Returns the numbers that it draws."""

    @nn.compact
    def __call__(self, x):
        kinds = [nn.Dropout(0.5, deterministic=False)(jnp.ones(32))]
        kinds += [jax.random.normal(self.make_rng(name), (32,)) for name in ("noise", "mixup")]
        return jnp.stack(kinds)


class NnxStreams(nnx.Module):
    def __init__(self, rngs):
        self.first, self.second = nnx.Dropout(0.5, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.rngs = rngs

    def __call__(self, x):
        noise = [jax.random.normal(draw(), (32,)) for draw in (self.rngs.noise, self.rngs.mixup)]
        return jnp.stack([self.first(jnp.ones(32)), self.second(jnp.ones(32)), *noise])


class NnxGiven(nnx.Module):
    def __call__(self, x, rngs):
        return jax.random.normal(rngs.noise(), (1, 32))


STREAMS = {
    "linen": lambda: from_linen(LinenStreams(), EXAMPLE),
    "nnx": lambda: from_nnx(lambda rngs: NnxStreams(nnx.Rngs(noise=0, mixup=1, dropout=2))),
    "given": lambda: from_nnx(lambda rngs: NnxGiven()),
}


@pytest.mark.parametrize("style", STREAMS)
def test_each_stream_has_a_key_of_its_own(style):
    model = STREAMS[style]()
    params, model_state = model.init(KEY)
    assert params == model_state == {}
    y, _ = model.apply({}, {}, MANY_X, KEY)
    other, _ = model.apply({}, {}, MANY_X, OTHER)
    assert len(np.unique(y, axis=0)) == len(y) and (y != other).any(axis=1).all()
    np.testing.assert_array_equal(model.apply({}, {}, MANY_X, KEY)[0], y)
    np.testing.assert_array_equal(model.predict({}, {}, MANY_X), model.predict({}, {}, MANY_X))


def test_layers_that_are_mapped_over_draw_apart():
    class Row(nnx.Module):
        def __init__(self, rngs):
            made = nnx.vmap(lambda rngs: nnx.Dropout(0.5, rngs=rngs), in_axes=0, out_axes=0)
            self.layers = nnx.split_rngs(splits=3)(made)(rngs)

        def __call__(self, x):
            return nnx.vmap(lambda layer, x: layer(x), in_axes=(0, None), out_axes=0)(self.layers, jnp.ones(32))

    y, _ = from_nnx(Row).apply({}, {}, MANY_X, KEY)
    assert y.shape == (3, 32) and len(np.unique(y, axis=0)) == 3


@pytest.mark.skipif(jax.__version_info__ >= (0, 12), reason="newer ones list nothing")
def test_no_draw_of_nnx_makes_jax_list_what_led_to_it(monkeypatch):
    """It would take time that grows with the square of the model."""
    from jax._src.interpreters import partial_eval

    def listed(tracer):
        raise AssertionError("all operations before the draw are listed")

    monkeypatch.setattr(partial_eval.DynamicJaxprTracer, "_origin_msg", listed)
    model = from_nnx(lambda rngs: nnx.Linear(2, 3, rngs=rngs))
    assert jax.eval_shape(model.init, KEY)[0]["kernel"].shape == (2, 3)

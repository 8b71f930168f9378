# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The vision models match the published ones: sizes, work, and PyTorch's numbers for the same weights.

The rewritten convolutions agree with the plain one. Batch normalization follows PyTorch's definition, over the examples
that the config chooses.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from thin import KINDS, thin

from benchmarks import references
from benchmarks.references import vision
from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.errors import UserError
from jaxbench.machine.start import run_once_options
from jaxbench.measure import check, loss_kind, reference
from jaxbench.measure.proof import Proof
from jaxbench.parallel.step import gradients, jit_once
from jaxbench.workloads import Field, TrainWorkload, classification, flops, from_nnx, sharding_context
from jaxbench.workloads.losses import evaluation
from jaxbench.workloads.models import image_layers
from jaxbench.workloads.models.blocks import run_blocks
from jaxbench.workloads.models.image_layers import BatchNorm

KEY = jax.random.PRNGKey(0)
NAMES = ("alexnet", "vgg16", "resnet18", "resnet50", "resnet164", "vit")


@functools.cache
def build(name, preset="auto", **changes) -> TrainWorkload:
    """An experiment with changes such as ``**{"model.width": 4}``; preset "smoke" makes it tiny."""
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset(preset))
    config.update_from_flattened_dict(changes)
    return discovery.build(name, config)


@functools.cache
def tiny(name):
    """(workload, parameters, model_state, a batch of 4); drawn by NumPy, which needs no compilation."""
    mine = build(name, "smoke")
    avals, model_state = jax.eval_shape(mine.init, KEY)
    model_state = jax.tree.map(lambda aval: np.ones(aval.shape, aval.dtype), model_state)
    batch = references.images(4, mine.example["image"].shape[0], mine.example["label"].classes)
    return mine, references.weights(avals), model_state, batch


def once(function, *arguments):
    """Its result, compiled without optimisation."""
    return jax.jit(function, compiler_options=run_once_options())(*arguments)


def parameters(workload):
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(jax.eval_shape(workload.init, KEY)[0]))


@pytest.mark.parametrize(
    ("name", "count"),
    [("alexnet", 61_100_840), ("vgg16", 138_357_544), ("resnet18", 11_689_512), ("resnet50", 25_557_032)]
    + [("vit", 22_050_664), pytest.param("resnet164", 1_703_258, marks=pytest.mark.full)],
)
def test_parameters_are_those_of_the_published_model(name, count):
    assert parameters(build(name)) == count


def test_the_parameters_of_resnet_164_by_hand():
    """Stages of width w = 16, 32, 64; n = 18 blocks each; inputs 16, 64, 128 and then four times the width."""
    total = 3 * 3 * 3 * 16  # the stem
    for width, inputs in ((16, 16), (32, 64), (64, 128)):
        inner = (
            3 * 3 * width * width + width * 4 * width + 4 * width
        )  # the 3x3, the last 1x1, and the norms before them
        first = 2 * inputs + inputs * width + inner + inputs * 4 * width  # with the shortcut's 1x1
        total += first + 17 * (2 * 4 * width + 4 * width * width + inner)
    assert total + 2 * 256 + 256 * 10 + 10 == 1_703_258


@pytest.mark.full
def test_residual_branches_start_smaller_by_the_root_of_their_number():
    """By the last norm's scale; without a norm before the sum, by the last kernel; else He's, sqrt(2 / inputs)."""
    two = build("resnet18", **{"model.blocks": "1,1"}).init(KEY)[0]["blocks"]
    for block in two.values():
        assert [norm["scale"][0] for norm in block["norms"].values()] == pytest.approx([1, 1 / math.sqrt(2)])
    six = build("resnet164", **{"model.depth": 20}).init(KEY)[0]["blocks"]
    for block in six.values():
        kernels = [conv["kernel"] for conv in block["convolutions"].values()]
        gains = [jnp.std(kernel) / math.sqrt(2 / math.prod(kernel.shape[:-1])) for kernel in kernels]
        assert gains == pytest.approx([1, 1, 1 / math.sqrt(6)], rel=0.15)


def test_resnet_18_for_small_images():
    """The 3x3 stem instead of the 7x7, and 10 classes instead of 1000."""
    small = build("resnet18", **{"model.stem": "cifar"})
    assert parameters(small) == 11_689_512 - 3 * 64 * (49 - 9) - 990 * 513
    assert small.example["image"].shape == (32, 32, 3) and small.example["label"].classes == 10


@pytest.mark.parametrize(
    ("name", "gmac"),
    [("alexnet", "0.71"), ("vgg16", "15.47"), ("resnet18", "1.81"), ("resnet50", "4.09"), ("vit", "4.6")],
)
def test_the_forward_pass_does_the_known_work(name, gmac):
    forward = (build(name).flops_per_example + first_layer(name)) / 3
    assert f"{forward / 2e9:.{len(gmac.split('.')[1])}f}" == gmac


def first_layer(name):
    """Forward FLOPs of the layer with an input that needs no gradient."""
    outputs, kernel, channels = {
        "alexnet": (55, 11, 64),
        "vgg16": (224, 3, 64),
        "resnet18": (112, 7, 64),
        "resnet50": (112, 7, 64),
        "vit": (14, 16, 384),
    }[name]
    return flops.conv2d(outputs, outputs, kernel=kernel, inputs=3, outputs=channels)


@pytest.mark.parametrize("name", NAMES)
def test_flops_by_formula_are_those_in_the_gradient(name):
    mine, *arguments = tiny(name)

    def gradient(params, model_state, batch):
        return jax.grad(lambda p: mine.loss(p, model_state, batch, KEY)[0])(params)

    assert flops.count(gradient, *arguments) == 4 * mine.flops_per_example


def test_flops_with_the_imagenet_stem():
    mine = build("resnet50", **{"model.size": 64, "model.width": 4, "model.classes": 5, "model.blocks": "2,1"})
    params, model_state = jax.eval_shape(mine.init, KEY)
    count = flops.count(jax.grad(lambda p, s, b: mine.loss(p, s, b, KEY)[0]), params, model_state, mine.batch_avals(2))
    assert count == 2 * mine.flops_per_example


@pytest.mark.parametrize("name", thin([*vision.MODELS], 3))
def test_pytorch_has_the_same_logits_and_gradients(name):
    loss, logits, gradient = references.load(name)
    found_loss, found_logits, found_gradient = vision.answer(name)
    assert found_gradient.keys() == gradient.keys()
    assert reference.relative_l2({"logits": found_logits}, {"logits": logits}) <= 1e-5
    assert reference.relative_l2(found_gradient, gradient) <= 1e-5
    assert found_loss == pytest.approx(loss, rel=1e-5)
    assert all(np.abs(value).max() > 0 for value in gradient.values())


@pytest.mark.parametrize("name", thin(NAMES, ["resnet18", "vit"]))
def test_sixteen_bits_in_sixteen_bits_out(name):
    mine, params, model_state, batch = tiny(name)
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), (params, batch["image"]))
    found = once(mine.predict, half[0], model_state, {**batch, "image": half[1]})
    expected = once(mine.predict, params, model_state, batch)
    assert found.dtype == jnp.bfloat16 and expected.dtype == jnp.float32
    np.testing.assert_allclose(np.float32(found), expected, atol=0.05 * float(np.abs(expected).max()))


@pytest.mark.parametrize("name", thin(["vit", "resnet164"], 1))
@pytest.mark.parametrize("remat", thin(["sqrt", "block"], 1))
def test_recomputed_blocks_give_the_same_gradient_by_more_work(name, remat):
    mine, params, model_state, batch = tiny(name)
    other = build(name, "smoke", **{"lever.remat": remat})
    assert other.blocks == mine.blocks > 1
    answers, work = [], []
    for each in (mine, other):
        gradient = jax.grad(functools.partial(each.loss, key=KEY), has_aux=True)
        answers.append(once(gradient, params, model_state, batch))
        work.append(flops.count(lambda *a, g=gradient: g(*a), params, model_state, batch))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), *answers)
    assert work[0] < work[1] <= 4 / 3 * work[0]


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        (
            "alexnet",
            {"model.size": 100},
            "pooled=6 does not divide the 2 pixels that --config.model.size=100 leaves: us",
        ),
        ("vgg16", {"model.size": 16}, "size=16 is too small"),
        ("resnet18", {"model.stem": "cifr"}, "stem=cifr is unknown: did you mean 'cifar'"),
        ("resnet18", {"model.block": "basics"}, "block=basics is unknown: did you mean 'basic'"),
        ("resnet18", {"model.blocks": "2,x"}, "blocks=2,x is not a list of counts such as 2,2,2,2"),
        ("resnet50", {"model.statistics": "local"}, "no statistics 'local'"),
        ("resnet164", {"model.depth": 163}, "depth=163 is not 9 n . 2: use 164"),
        ("vit", {"model.size": 100}, "size=100 is not a multiple of --config.model.patch=16: use 96"),
        ("vit", {"model.heads": 5}, "heads=5 does not divide --config.model.width=384"),
    ],
)
def test_what_does_not_fit_is_one_sentence(name, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        build(name, **changes)


@pytest.mark.full
def test_only_small_images_have_data(tmp_path):
    assert all(build(name).data is None for name in ("alexnet", "vgg16", "resnet18", "resnet50", "vit"))
    for name in ("resnet18", "resnet164"):
        mine = build(name, **{"model.stem": "cifar", "data.path": str(tmp_path / "absent")})
        with pytest.raises(UserError, match="absent' does not exist"):
            mine.data()


def arrays(side, inputs, outputs, kernel):
    x, w, y = (
        jax.random.normal(jax.random.PRNGKey(i), shape)
        for i, shape in enumerate(
            [(3, side, side, inputs), (kernel, kernel, inputs, outputs), (3, side, side, outputs)]
        )
    )
    return x, w, y


@pytest.mark.parametrize(
    ("side", "inputs", "outputs", "kernel", "case"),
    thin(
        [(8, 1, 6, 5, "columns"), (4, 5, 6, 3, "places"), (12, 1, 3, 3, "columns"), (4, 1, 2, 7, "columns")]
        + [(7, 3, 4, 5, "places")],
        2,
    ),
)
def test_values_and_gradients_are_those_of_the_plainconvolution(side, inputs, outputs, kernel, case):
    x, w, y = arrays(side, inputs, outputs, kernel)
    plain, plain_gradients = jax.vjp(image_layers._plain, x, w)
    mine, gradients = jax.vjp(lambda x, w: image_layers._rewritten(x, w, case), x, w)
    for found, expected in zip((mine, *gradients(y)), (plain, *plain_gradients(y)), strict=True):
        assert jnp.linalg.norm(found - expected) <= 1e-5 * jnp.linalg.norm(expected)


@pytest.mark.parametrize(
    ("side", "inputs", "outputs", "kernel", "strides", "dtype", "taken"),
    [
        (28, 1, 16, 5, 1, jnp.float32, "columns"),
        (28, 1, 16, 5, 2, jnp.float32, None),
        (28, 1, 16, 5, 1, jnp.bfloat16, None),
        (30, 1, 16, 5, 1, jnp.float32, None),  # no whole groups of columns
        (28, 3, 16, 5, 1, jnp.float32, None),
        (7, 256, 256, 3, 1, jnp.float32, "places"),
        (8, 256, 256, 3, 1, jnp.float32, None),
        (7, 256, 128, 3, 1, jnp.float32, None),
    ],
)
def test_rewritten_convolutions(side, inputs, outputs, kernel, strides, dtype, taken, monkeypatch):
    seen = []
    monkeypatch.setattr(image_layers, "_rewritten", lambda x, w, case: seen.append(case) or image_layers._plain(x, w))
    x, w = (jnp.zeros(shape, dtype) for shape in [(1, side, side, inputs), (kernel, kernel, inputs, outputs)])
    edge = (kernel // 2, kernel // 2)
    numbers = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    jax.eval_shape(lambda: image_layers.convolution(x, w, (strides, strides), (edge, edge), **numbers))
    assert seen == ([taken] if taken else [])


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(3, 5, 1), (5, 3, 1), (5, 3, 2)])
def test_a_1x1_is_a_product_with_its_narrower_factor_copied(inputs, outputs, stride):
    x, w, _ = arrays(8, inputs, outputs, 1)
    strides, none = (stride, stride), ((0, 0), (0, 0))

    def mine(x, w):
        return image_layers._product(x, w, strides, none, precision=None)

    def plain(x, w):
        return jax.lax.conv_general_dilated(x, w, strides, none, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    expected, plain_gradients = jax.vjp(plain, x, w)
    found, gradients = jax.vjp(mine, x, w)
    d_y = jax.random.normal(jax.random.PRNGKey(3), expected.shape)
    for one, other in zip((found, *gradients(d_y)), (expected, *plain_gradients(d_y)), strict=True):
        assert jnp.linalg.norm(one - other) <= 1e-5 * jnp.linalg.norm(other)
    products = [eqn.outvars[0].aval.shape for eqn in jax.make_jaxpr(gradients)(d_y).eqns if "dot" in eqn.primitive.name]
    assert (3, 5) in products and (5, 3) not in products


BATCH = 16
STATISTICS = ("device", "global")


def images(mean=0.0, deviation=1.0, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(0).normal(mean, deviation, (BATCH, 3, 3, 2)), dtype)


def by_numpy(x, groups=1):
    """float64, each of `groups` parts by itself: (y, mean over groups of the mean, and of the variance)."""
    parts = np.split(np.float64(x), groups)
    axes = (0, 1, 2)
    y = [(p - p.mean(axes)) / np.sqrt(p.var(axes) + 1e-5) for p in parts]
    return np.concatenate(y), np.mean([p.mean(axes) for p in parts], 0), np.mean([p.var(axes) for p in parts], 0)


@pytest.mark.parametrize(("statistics", "parts", "groups"), [("device", 1, 1), ("device", 4, 4), ("global", 4, 1)])
def test_values_and_running_statistics(statistics, parts, groups):
    norm, x = BatchNorm(2, statistics=statistics), images(3, 2)
    with sharding_context.over(parts=parts):
        y = norm(x)
    expected, mean, variance = by_numpy(x, groups)
    np.testing.assert_allclose(y, expected, atol=1e-5)
    np.testing.assert_allclose(norm.mean[...], 0.1 * mean, rtol=1e-5)
    np.testing.assert_allclose(norm.variance[...], 0.9 + 0.1 * variance, rtol=1e-5)
    norm.eval()
    inferred = norm(x)
    np.testing.assert_allclose(inferred, (x - 0.1 * mean) / np.sqrt(0.9 + 0.1 * variance + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.mean[...], 0.1 * mean, rtol=1e-5)  # inference moves nothing


def test_scale_and_bias_are_applied():
    norm = BatchNorm(2, statistics="device")
    norm.scale[...], norm.bias[...] = jnp.array([2.0, 3.0]), jnp.array([-1.0, 5.0])
    np.testing.assert_allclose(norm(images()), by_numpy(images())[0] * [2, 3] + [-1, 5], atol=1e-5)


def test_a_small_variance_about_a_large_mean_keeps_its_digits():
    """The mean of squares minus the square of the mean, in float32, would give 0 or less here."""
    x = images(3000, 0.1)
    np.testing.assert_allclose(BatchNorm(2, statistics="device")(x), by_numpy(x)[0], atol=5e-3)


def test_bfloat16_in_bfloat16_out_and_statistics_in_float32():
    norm, x = BatchNorm(2, statistics="device"), images(20, 1, jnp.bfloat16)
    y = norm(x)
    assert y.dtype == jnp.bfloat16 and norm.mean[...].dtype == jnp.float32
    np.testing.assert_allclose(np.float64(y), by_numpy(x.astype(jnp.float32))[0], rtol=2**-8, atol=1e-5)
    np.testing.assert_allclose(norm.mean[...], 0.1 * np.float64(x.astype(jnp.float32)).mean((0, 1, 2)), rtol=1e-5)


def test_an_unknown_choice_names_a_near_one():
    with pytest.raises(UserError, match="no statistics 'globl': did you mean 'global'"):
        BatchNorm(2, statistics="globl")


class Net(nnx.Module):
    """Two normalised layers, as a block that can be recomputed."""

    def __init__(self, statistics, remat, rngs):
        self.blocks = nnx.List(Layer(statistics, rngs) for _ in range(2))
        self.logits, self.remat = nnx.Linear(6, 4, rngs=rngs), remat

    def __call__(self, x):
        return self.logits(jnp.mean(run_blocks(self.blocks, x, self.remat), axis=(1, 2)))


class Layer(nnx.Module):
    def __init__(self, statistics, rngs):
        self.conv = nnx.Conv(6, 6, (3, 3), rngs=rngs)
        self.norm = BatchNorm(6, statistics=statistics)

    def __call__(self, x):
        return nnx.relu(self.norm(self.conv(x))) + x


def workload(statistics, remat="none"):
    model = from_nnx(partial(Net, statistics, remat))
    return TrainWorkload(
        name="normed",
        init=model.init,
        loss=classification(model),
        optimizer=optax.sgd(0.1, momentum=0.9),
        example={"image": Field((5, 5, 6)), "label": Field((), jnp.int32, classes=4)},
        evaluate=evaluation(model),
        predict=lambda params, model_state, batch: model.predict(params, model_state, batch["image"]),
    )


def on_one_device(mine, parts):
    start = reference.initial_state(mine, KEY, device=jax.devices()[0])
    return reference.reference(
        mine, start, mine.synthetic(KEY, BATCH), device=jax.devices()[0], layout=reference.BatchLayout(parts)
    )


@pytest.fixture(scope="module", params=STATISTICS)
def case(request):
    mine = workload(request.param)
    return mine, on_one_device(mine, 8)


@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS[1:2]))
def test_every_strategy_gives_one_devices_parameters_and_statistics(case, strategy):
    mine, expected = case
    batch = mine.synthetic(KEY, BATCH)
    program = parallel.build(strategy, mine, jax.devices())
    verdict = check.judge(check.train(program, program.step, KEY, batch), expected, mine)
    assert verdict.ok, verdict.reason
    state = reference.initial_state(mine, KEY, device=jax.devices()[0])
    with sharding_context.over(parts=8):
        _, moved, _ = jit_once(partial(gradients, mine))(state, batch)
    with jax.set_mesh(program.mesh):
        after, _ = program.step(program.init(KEY), program.put(batch))
        found = program.export(after).model_state
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, moved)


@pytest.mark.full
def test_the_two_choices_are_two_functions_and_one_without_other_devices():
    ends = {(s, parts): on_one_device(workload(s), parts).end.params for s in STATISTICS for parts in (1, 8)}
    assert reference.relative_l2(ends["device", 8], ends["global", 8]) > 1e-3
    assert reference.relative_l2(ends["device", 1], ends["global", 1]) == 0
    assert reference.relative_l2(ends["global", 8], ends["global", 1]) == 0


@pytest.mark.parametrize("remat", thin(["sqrt", "block", "dots_saveable"], 1))
def test_recomputation_changes_neither_gradients_nor_statistics(remat):
    """For several strategies in one process: a trace cached for one must not serve another."""
    plain, recomputed = workload("device"), workload("device", remat)
    state = reference.initial_state(plain, KEY, device=jax.devices()[0])
    batch = plain.synthetic(KEY, BATCH)
    for parts in (1, 8):
        with sharding_context.over(parts=parts):
            expected = jit_once(partial(gradients, plain))(state, batch)
            found = jit_once(partial(gradients, recomputed))(state, batch)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected)
    still = jax.tree.map(np.array_equal, found[1], state.model_state)
    assert not any(jax.tree.leaves(still))


def test_inference_uses_what_training_left():
    mine = workload("device")
    state = reference.initial_state(mine, KEY, device=jax.devices()[0])
    batch = mine.synthetic(KEY, BATCH)
    _, moved, _ = jit_once(partial(gradients, mine))(state, batch)
    logits = mine.predict(state.params, moved, batch)
    one = {k: v[:1] for k, v in batch.items()}
    np.testing.assert_allclose(mine.predict(state.params, moved, one), logits[:1], rtol=1e-5, atol=1e-6)
    metrics = mine.evaluate(state.params, moved, batch)
    expected = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-6)
    assert metrics["accuracy"] == np.mean(np.argmax(logits, -1) == batch["label"])
    assert dataclasses.replace(mine, evaluate=None).predict is mine.predict


def test_parts_of_a_batch_with_separate_statistics_give_the_one_device_result():
    """So one accelerator need not hold the activations of a batch for many devices."""
    mine = dataclasses.replace(workload("device"), independent=True)
    start, batch = reference.initial_state(mine, KEY, device=jax.devices()[0]), mine.synthetic(KEY, BATCH)
    whole = on_one_device(mine, 8)
    parts = reference.reference(mine, start, batch, device=jax.devices()[0], layout=reference.BatchLayout(8), apart=8)
    assert parts.updates._compiled.in_avals[0][1]["label"].shape == (BATCH // 8,)
    assert reference.relative_l2(parts.end.params, whole.end.params) < 1e-5


@pytest.mark.parametrize(("kind", "independent"), [("device", True), ("global", False)])
def test_only_statistics_of_their_own_may_be_found_part_by_part(kind, independent):
    mine = dataclasses.replace(workload(kind), independent=independent)
    proof = Proof(None, mine, jax.devices()[:1], KEY, own=True)
    proof.loss_kind = loss_kind.LossKind(name=loss_kind.MEAN)  # it may seem so, because detection uses four examples
    assert proof._in_parts(mine) == independent

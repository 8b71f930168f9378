# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The vision models match the published ones: sizes, work, and PyTorch's numbers for the same weights."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from thin import thin

from benchmarks import references
from benchmarks.references import vision
from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.machine.start import run_once_options
from jaxbench.workloads import TrainWorkload, flops

KEY = jax.random.PRNGKey(0)
NAMES = ("alexnet", "vgg16", "resnet18", "resnet50", "resnet164", "vit")


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
    assert references.relative_l2({"logits": found_logits}, {"logits": logits}) <= 1e-5
    assert references.relative_l2(found_gradient, gradient) <= 1e-5
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

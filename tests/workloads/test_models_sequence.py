# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of sequences, tables and graphs agree with PyTorch, the papers and the formulas."""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from ml_collections import ConfigDict
from thin import thin

from benchmarks import references
from benchmarks.references import sequence
from jaxbench import discovery, levers, parallel
from jaxbench.errors import UserError
from jaxbench.machine.start import run_once_options
from jaxbench.measure.compile_report import compile_step
from jaxbench.workloads import TrainWorkload, flops, from_nnx
from jaxbench.workloads.losses_sequence import score
from jaxbench.workloads.models import gcn, gpt, lstm, per_device, recsys, textcnn

KEY = jax.random.PRNGKey(0)
NAMES = ["gpt", "lstm", "textcnn", "recsys", "gcn"]


def small(name: str, **changes: object) -> ConfigDict:
    """The experiment's own config, made tiny, with changes in ``config.model``."""
    module = discovery.load_experiment(name)
    config = module.tiny(module.get_config())
    config.lever, config.data, config.seed = levers.defaults(), ConfigDict({"path": "", "pad": ""}), 0
    config.model.update(changes)
    return config


def workload(name: str, **changes: object) -> TrainWorkload:
    return discovery.load_experiment(name).build(small(name, **changes))


def gradient(mine: TrainWorkload):
    return lambda params, batch: jax.value_and_grad(mine.loss, has_aux=True)(params, {}, batch, KEY)


def weights(init) -> dict:
    """Parameters drawn by NumPy, because drawing them with JAX would compile for seconds."""
    return jax.tree.map(jnp.asarray, references.weights(jax.eval_shape(init, KEY)[0]))


def once(function):
    """Compiled without optimisation, because the programs are small and run once."""
    return jax.jit(function, compiler_options=run_once_options())


def counted(mine: TrainWorkload) -> float:
    params, _ = jax.eval_shape(mine.init, KEY)
    return flops.count(gradient(mine), params, mine.batch_avals(1))


@pytest.mark.parametrize("name", sequence.MODELS)
def test_logits_loss_and_gradient_are_those_of_pytorch(name: str) -> None:
    loss, logits, grads = references.load(name)
    found = sequence.answer(name)
    assert abs(found[0] / loss - 1) <= 1e-5
    assert references.relative_l2({"": found[1]}, {"": logits}) <= 1e-5
    assert found[2].keys() == grads.keys()
    assert references.relative_l2(found[2], grads) <= 1e-5


@pytest.mark.parametrize("name", [name for name in NAMES if name != "gpt"])
def test_the_formula_counts_the_products_of_the_gradient(name: str) -> None:
    mine = workload(name)
    assert mine.flops_per_example == counted(mine)


def test_attention_counts_half_of_the_products_that_are_computed() -> None:
    mine, model = workload("gpt"), small("gpt").model
    whole = flops.training([0.0, *gpt.layer_flops(model, causal=False)])
    assert counted(mine) == whole
    t, d, layers = 8, 16, 2
    assert whole - mine.flops_per_example == 3 * layers * (2 * 2 * t * t * d) / 2


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("tiny", 842_496),
        ("small", 124_439_808),
        ("medium", 354_823_168),
        ("large", 774_030_080),
        ("xl", 1_557_611_200),
        ("1b", 1_315_723_264),
        ("7b", 6_658_404_352),
    ],
)
def test_parameters_of_the_published_models(preset: str, parameters: int) -> None:
    config = discovery.load_experiment("gpt").get_config().model
    config.preset = preset
    found = gpt.shape(config)
    config.layers = 1  # one block for all: they are equal
    one = jax.eval_shape(from_nnx(partial(gpt.GPT, config)).init, KEY)[0]
    count = sum(leaf.size for leaf in jax.tree.leaves(one))
    block = sum(leaf.size for leaf in jax.tree.leaves(one["blocks"]))
    padding = (found.rows - found.vocab) * found.width  # rows of the embedding, so that it divides over devices
    assert count + (found.layers - 1) * block == parameters + padding


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "smal"}, "--config.model.preset=smal is unknown: did you mean 'small'"),
        ({"heads": 5}, "--config.model.heads=5 does not divide the width 16: use 4"),
        ({"layers": -1}, "--config.model.layers=-1 is negative: use 0 for the preset's 4"),
    ],
)
def test_a_shape_that_cannot_be_is_one_sentence(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        gpt.shape(small("gpt", **changes).model)


def test_a_position_sees_itself_and_what_came_before() -> None:
    config = small("gpt").model
    model = from_nnx(partial(gpt.GPT, config))
    params = weights(model.init)
    tokens = np.arange(8)[None]
    changed = np.array(tokens)
    changed[0, 5] = 99
    run = once(lambda tokens: model.predict(params, {}, tokens))
    a, b = run(tokens), run(changed)
    np.testing.assert_array_equal(a[:, :5], b[:, :5])
    assert (a[:, 5:] != b[:, 5:]).any(axis=-1).all()


def test_predict_answers_what_comes_after_the_first_tokens() -> None:
    mine = workload("gpt")
    params = weights(mine.init)
    batch = mine.synthetic(KEY, 3)
    predict = once(lambda batch: mine.predict(params, {}, batch))
    answer = predict(batch)
    assert answer.shape == (3, 256)
    np.testing.assert_array_equal(predict({"tokens": batch["tokens"].at[:, -1].set(0)}), answer)


def test_the_score_is_the_mean_cross_entropy_and_the_first_of_equal_logits_counts() -> None:
    random = np.random.default_rng(0)
    logits, target = 5 * random.standard_normal((3, 7, 11)).astype(np.float32), random.integers(0, 11, (3, 7))

    @once
    def scored(logits, target):
        loss, metrics = score(logits, {"tokens": jnp.pad(target, ((0, 0), (1, 0)))})
        return loss, metrics["accuracy"]

    loss, accuracy = scored(logits, target)
    picked = np.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
    expected = (np.log(np.exp(logits).sum(axis=-1)) - picked).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert float(accuracy) == np.float32((logits.argmax(-1) == target).mean())
    assert float(scored(np.zeros((1, 4, 3)), np.array([[0, 1, 2, 0]]))[1]) == 0.5
    assert np.isfinite(scored(np.array([[[1e4, -1e4]]]), np.array([[1]]))[0])


@pytest.mark.parametrize("name", thin(NAMES, ["gpt", "gcn"]))
def test_half_precision_gives_a_float32_loss_near_the_full_one(name: str) -> None:
    mine = workload(name)
    params = weights(mine.init)
    batch = mine.synthetic(KEY, 8)

    def short(tree):
        return jax.tree.map(lambda x: x.astype(jnp.bfloat16) if x.dtype == jnp.float32 else x, tree)

    loss = once(lambda params, batch: mine.loss(params, {}, batch, KEY)[0])
    full, half = loss(params, batch), loss(short(params), short(batch))
    assert half.dtype == jnp.float32
    assert abs(float(half / full) - 1) < 0.02
    assert jax.eval_shape(mine.predict, short(params), {}, short(batch)).dtype == jnp.bfloat16


def test_padding_of_a_text_does_not_change_the_lstms_result() -> None:
    model = from_nnx(partial(lstm.Classifier, small("lstm").model))
    params = weights(model.init)
    tokens = np.array([[5, 6, 7, 8]])
    longer = np.pad(tokens, [(0, 0), (0, 3)])
    predict = once(lambda tokens: model.predict(params, {}, tokens))
    np.testing.assert_allclose(predict(tokens), predict(longer), rtol=1e-6)
    assert np.isfinite(predict(0 * tokens)).all()


def test_the_convolutions_of_a_text_by_hand() -> None:
    config = small("textcnn").model
    model = from_nnx(partial(textcnn.Classifier, config))
    params = weights(model.init)
    tokens = np.array([[3, 1, 4, 1, 5, 9]])
    x = np.asarray(params["embedding"])[tokens[0]]
    features = []
    for number, window in enumerate(textcnn.WINDOWS):
        layer = params["convolutions"][number]
        padded = np.pad(x, [((window - 1) // 2, window // 2), (0, 0)])
        answers = [
            np.einsum("wd,wdf->f", padded[at : at + window], layer["kernel"]) + layer["bias"] for at in range(len(x))
        ]
        features.append(np.maximum(answers, 0).max(axis=0))
    expected = np.concatenate(features) @ params["logits"]["kernel"] + params["logits"]["bias"]
    found = once(lambda tokens: model.predict(params, {}, tokens))(tokens)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)


def test_click_through_is_the_logistic_loss_of_one_number() -> None:
    mine = workload("recsys")
    model = from_nnx(partial(recsys.ClickThrough, small("recsys").model))
    params = weights(mine.init)
    batch = mine.synthetic(KEY, 8)

    @once
    def both(params, batch):
        logits = model.predict(params, {}, {name: batch[name] for name in ("dense", "rows")})
        expected = optax.sigmoid_binary_cross_entropy(logits[:, 1], batch["label"]).mean()
        return mine.loss(params, {}, batch, KEY)[0], expected

    np.testing.assert_allclose(*both(params, batch), rtol=1e-6)


def test_the_adjacency_of_a_ring_by_its_definition() -> None:
    places = np.array([[0, 2, 9, 5, 5]])
    joined = np.eye(5)
    for a, b in [(0, 1), (0, 2), (3, 4)]:  # 9 and 0 are neighbours on a ring of 10; 2 and 5 are 3 apart
        joined[a, b] = joined[b, a] = 1
    degree = joined.sum(axis=1)
    expected = joined / np.sqrt(degree[:, None] * degree[None])
    found = once(partial(gcn.normalised_adjacency, ring=10, reach=2))(places)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def reduces_in_a_loop(mine: TrainWorkload) -> bool:
    """Whether an all-reduce of the compiled step is outside the program's main body."""
    program = parallel.build("jit_auto", mine, jax.devices()[:2])
    bodies = re.split(r"\n(?=\S)", compile_step(mine, program, 8).hlo)
    holding = [body for body in bodies if re.search(r" all-reduce(-start)?\(", body)]
    assert holding
    return not all(body.startswith("ENTRY") for body in holding)


def test_the_recurrent_gradient_is_reduced_once_and_not_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not reduces_in_a_loop(workload("lstm"))
    monkeypatch.setattr(lstm, "copies", lambda parameter, like: jnp.stack([parameter] * like.shape[0]))
    monkeypatch.setattr(lstm, "split", lambda x: x[None])
    monkeypatch.setattr(lstm, "_states", lambda *arrays: lstm._forward(*arrays)[0])
    assert reduces_in_a_loop(workload("lstm"))  # the result of plainly differentiating a loop


def test_a_tied_table_gives_one_gradient_on_any_number_of_groups() -> None:
    random = np.random.default_rng(0)
    table, tokens = jnp.array(random.standard_normal((9, 4))), jnp.array(random.integers(0, 9, (6, 5)))

    def loss(table: jax.Array) -> jax.Array:
        tied = per_device.Tied(table, tokens)
        return jnp.sum(jnp.sin(tied.scores(jnp.cos(tied.rows()))))

    whole = once(jax.grad(loss))(table)
    with per_device.sharding_context.over(parts=3):
        np.testing.assert_allclose(once(lambda t: jax.grad(loss)(t))(table), whole, rtol=1e-5, atol=1e-5)


def max_read(layers: int) -> int:
    """The largest number of arrays read by one fused operation of the compiled gradient."""
    mine = workload("gpt", layers=layers)
    params, _ = jax.eval_shape(mine.init, KEY)
    text = jax.jit(gradient(mine)).lower(params, mine.batch_avals(4)).compile().as_text()
    heads = re.findall(r"^%fused_computation\S* \((.*)\) -> ", text, re.MULTILINE)
    return max(head.count("param_") for head in heads)


@pytest.mark.full
def test_the_gradient_of_the_residual_stream_is_not_computed_again_in_every_block(monkeypatch) -> None:
    assert max_read(1) == max_read(3)
    monkeypatch.setattr(gpt, "materialized_gradient", lambda x: x)
    assert max_read(1) < max_read(3)  # if this fails, XLA has improved and `materialized_gradient` can go

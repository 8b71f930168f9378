# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of sequences, tables and graphs agree with PyTorch, the papers and the formulas.

Llama's shapes for gpt: a gated perceptron, shared keys and values, a separate head width. Recomputation changes the
stored values and nothing else.
"""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.extend import core
from jax.sharding import PartitionSpec as P
from ml_collections import ConfigDict
from thin import thin
from workload_cases import KEY, experiment_workload

from benchmarks import references
from benchmarks.references import sequence
from jaxbench import discovery, levers, parallel
from jaxbench.errors import Unsupported, UserError
from jaxbench.machine.start import run_once_options
from jaxbench.measure import expected_communication
from jaxbench.measure.compile_report import compile_step
from jaxbench.workloads import TrainWorkload, flops, from_nnx
from jaxbench.workloads.losses import score
from jaxbench.workloads.models import attention, flash, gpt, lstm, sharded_layers
from jaxbench.workloads.models.blocks import group_size, run_blocks

gcn, recsys, textcnn = (discovery.load_experiment(name) for name in ("gcn", "recsys", "textcnn"))
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
    found = gpt.dimensions(config)
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
        ({"kv_heads": 3, "heads": 4}, "kv_heads=3 does not divide the 4 heads: use 2"),
        ({"gated": 1, "experts": 4}, "experts=4 have biases and no gate"),
    ],
)
def test_a_shape_that_cannot_be_is_one_sentence(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        gpt.dimensions(small("gpt", **changes).model)


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
        tied = sharded_layers.Vocabulary(table, tokens)
        return jnp.sum(jnp.sin(tied.scores(jnp.cos(tied.rows()))))

    whole = once(jax.grad(loss))(table)
    with sharded_layers.sharding_context.over(parts=3):
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


LLAMA = {
    "model.layers": 1, "model.width": 16, "model.heads": 4, "model.kv_heads": 2, "model.head_width": 8,
    "model.hidden": 24, "model.gated": 1, "model.rms": 1, "model.vocab": 32, "model.context": 8,
}  # fmt: skip


def config(**changes: object) -> ConfigDict:
    return ConfigDict({"preset": "tiny", **{name.removeprefix("model."): value for name, value in changes.items()}})


def test_the_flops_and_parameters_of_each_product():
    t, d, heads, kv, hidden, vocab = 8, 16, 4 * 8, 2 * 8, 24, 32
    products = [t * d * (heads + 2 * kv), t * t * heads, t * heads * d, 3 * t * d * hidden, t * d * vocab]
    assert gpt.layer_flops(config(**LLAMA)) == [2 * product for product in products]
    params, _ = experiment_workload("gpt", **LLAMA).init(KEY)
    kernels = [leaf.size for path, leaf in jax.tree.leaves_with_path(params) if "kernel" in jax.tree_util.keystr(path)]
    assert not any("bias" in jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(params))
    assert sum(kernels) == d * (heads + 2 * kv) + heads * d + 3 * d * hidden


def test_heads_that_share_keys_are_as_if_each_had_a_copy():
    shape = gpt.dimensions(config(**LLAMA))
    from flax import nnx

    shared = gpt.Attention(shape, "plain", nnx.Rngs(0))
    own = gpt.Attention(gpt.dimensions(config(**{**LLAMA, "model.kv_heads": 4})), "plain", nnx.Rngs(1))
    kernel = shared.grouped.kernel[...]  # (width, heads of keys, their two queries, keys and values, head width)
    q, k, v = kernel[:, :, :2].reshape(16, 4, 8), *(jnp.repeat(kernel[:, :, at], 2, axis=1) for at in (2, 3))
    own.qkv.kernel.set_value(jnp.stack([q, k, v], axis=1))
    own.out.kernel.set_value(shared.out.kernel[...])
    x = jax.random.normal(KEY, (2, 8, 16))
    np.testing.assert_allclose(shared(x), own(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sequence", thin([True, False], 1))
def test_its_products_split_over_tensor(sequence):
    workload = experiment_workload("gpt", **LLAMA)
    program = parallel.load("hybrid").build(workload, jax.devices()[:2], sizes={"tensor": 2}, sequence=sequence)
    check = expected_communication.judge(workload, program, compile_step(workload, program, 4).report, 4)
    assert check.ok, check


DEPTH, WIDTH, BATCH = 9, 16, 1024
# Otherwise XLA's CPU compiler drops the barriers, and merges recomputed values with the first computation.
KEEP_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
HERE = ("none", "sqrt", "block", "dots_saveable")  # a CPU has no second memory for offloading


class Block(nnx.Module):
    """x + t(W t(x)) with t(x) = tanh(tanh(x)), and a count of the calls, as a stand-in for batch statistics."""

    def __init__(self, rngs: nnx.Rngs):
        self.linear = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x):
        self.calls.set_value(self.calls[...] + 1)
        return x + jnp.tanh(jnp.tanh(self.linear(jnp.tanh(jnp.tanh(x)))))


class Row(nnx.Module):
    def __init__(self, remat: str, depth: int, rngs: nnx.Rngs):
        self.blocks = nnx.List(Block(rngs) for _ in range(depth))
        self.remat = remat

    def __call__(self, x):
        return run_blocks(self.blocks, x, self.remat)


def stack_gradient(remat: str, depth: int = DEPTH):
    """(jitted gradient and state after one call, its arguments)."""
    model = from_nnx(lambda rngs: Row(remat, depth, rngs))

    def loss(params, model_state, x):
        y, model_state = model.apply(params, model_state, x)
        return jnp.mean(y**2), model_state

    arguments = *model.init(jax.random.PRNGKey(0)), jax.random.normal(jax.random.PRNGKey(1), (BATCH, WIDTH))
    return jax.jit(jax.grad(loss, has_aux=True)), arguments


@pytest.fixture(scope="module")
def compiled():
    made = {}
    for remat in HERE:
        function, arguments = stack_gradient(remat)
        made[remat] = function.lower(*arguments).compile(KEEP_BARRIERS), arguments
    return made


@pytest.mark.parametrize("remat", HERE[1:])
def test_gradients_and_state_are_the_same(compiled, remat):
    def called(name):
        function, arguments = compiled[name]
        return function(*arguments)

    (grads, state), (expected, expected_state) = called(remat), called("none")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), grads, expected)
    jax.tree.map(np.testing.assert_array_equal, state, expected_state)
    assert all(leaf == 1 for leaf in jax.tree.leaves(state))  # recomputation does not count twice


def test_memory_falls(compiled):
    held = {name: step.memory_analysis().temp_size_in_bytes for name, (step, _) in compiled.items()}
    assert held["sqrt"] < held["none"] / 2
    assert held["block"] < held["none"] / 1.5
    assert held["dots_saveable"] < held["none"]


def test_recomputed_values_are_really_computed_again(compiled):
    flops = {name: step.cost_analysis()["flops"] for name, (step, _) in compiled.items()}
    product = 2.0 * BATCH * WIDTH**2
    again = {name: (found - flops["none"]) / (DEPTH * product) for name, found in flops.items()}
    assert again["block"] == pytest.approx(1, abs=0.2)  # a second forward pass
    assert again["dots_saveable"] == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (4, 2), (16, 4), (17, 5)])
def test_groups_are_of_about_the_root_of_their_count(count, size):
    assert group_size(count, "sqrt") == size
    assert group_size(count, "block") == 1


def test_a_last_group_may_be_smaller():
    function, arguments = stack_gradient("sqrt", depth=3)
    expected, _ = stack_gradient("none", depth=3)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), function(*arguments), expected(*arguments)
    )


def test_an_unknown_word_names_a_near_one():
    function, arguments = stack_gradient("blok")
    with pytest.raises(UserError, match="did you mean 'block'"):
        function.lower(*arguments)


# Attention by JAX's own kernels, interpreted here, for heads and positions that are no multiple of a block.


KEY_flash = jax.random.PRNGKey(0)


@pytest.fixture
def interpreted(monkeypatch):
    """Runs the kernels in Python, because there is neither a TPU nor a GPU."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash

    triton = flash.triton_kernel()
    monkeypatch.setattr(triton, "mha", partial(triton.mha, interpret=True))
    monkeypatch.setattr(splash, "make_splash_mha", partial(splash.make_splash_mha, interpret=True))


def drawn(positions: int, width: int) -> jax.Array:
    return jax.random.normal(KEY_flash, (3, 1, 2, positions, width))


def gradients(attend, q, k, v):
    """The result of attention and its gradients."""
    out, pulled = jax.vjp(lambda q, k, v: attend(q * q.shape[-1] ** -0.5, k, v), q, k, v)
    return out, *pulled(jnp.cos(out))


@pytest.mark.parametrize("positions", thin([200, 128], 1))
@pytest.mark.parametrize("width", thin([96, 64, 8, 128, 136], 2))
@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_the_kernels_compute_plain_attention(interpreted, platform, width, positions):
    qkv = drawn(positions, width)
    expected = gradients(attention._plain, *qkv)
    found = gradients(attention.flash_kernels(qkv[0].shape)[platform], *qkv)
    for name, x, y in zip(("out", "dq", "dk", "dv"), found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-2, atol=3e-3, err_msg=name)


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_they_are_traced_where_arrays_have_types_of_a_mesh(platform):
    """As in tensor parallelism and in a pipeline, which check which arrays differ between devices."""
    mesh = jax.make_mesh((2,), ("tensor",), axis_types=(jax.sharding.AxisType.Auto,))
    heads = P(None, "tensor")

    def attend(q, k, v):
        return attention.flash_kernels(q.shape)[platform](q, k, v)

    split = jax.shard_map(attend, mesh=mesh, in_specs=heads, out_specs=heads)
    traced = jax.jit(partial(gradients, split)).trace(*drawn(128, 64))
    assert "pallas_call" in str(traced.jaxpr)
    assert [x.shape for x in jax.tree.leaves(traced.out_info)] == [(1, 2, 128, 64)] * 4


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_where_the_compiler_places_arrays_a_device_has_its_own_examples(platform):
    """The partitioner does not look into a kernel: it would gather the batch on every device."""
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    def shapes(jaxpr):
        """Of the first argument of each kernel, also of those inside other equations."""
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "pallas_call":
                yield max((x.aval.shape for x in eqn.invars), key=len)
            for inner in core.jaxprs_in_params(eqn.params) if eqn.primitive.name != "pallas_call" else ():
                yield from shapes(inner)

    def examples(count):
        qkv = [jnp.zeros((count, 2, 128, 64), jnp.bfloat16)] * 3
        with jax.set_mesh(mesh):
            traced = jax.jit(attention.flash_kernels(qkv[0].shape)[platform]).trace(*qkv)
        return {shape[0] for shape in shapes(traced.jaxpr.jaxpr)}

    assert examples(4) == {2} and examples(3) == {3}, "three examples do not divide over two devices"


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
@pytest.mark.parametrize(("kept", "kernels"), [("attention_output", 2), ("query_proj", 3)])
def test_a_kept_result_is_not_computed_again(platform, kept, kernels):
    """A forward and a backward kernel, and with recomputation another forward one."""
    qkv = drawn(128, 64)
    attend = attention.flash_kernels(qkv[0].shape, "attention_output")[platform]
    policy = jax.checkpoint_policies.save_only_these_names(kept)

    def loss(q, k, v):
        return jnp.sum(jnp.sin(jax.checkpoint(attend, policy=policy)(q, k, v)))

    jaxpr = str(jax.make_jaxpr(jax.grad(loss, argnums=(0, 1, 2)))(*qkv))
    assert jaxpr.count("pallas_call[") - (platform == "cuda") == kernels  # a GPU's backward pass has two


def test_auto_is_flash_for_sixteen_bits():
    q = jnp.zeros((1, 1, 8, 64), jnp.bfloat16)
    assert attention.flash_takes(q)
    assert not attention.flash_takes(q.astype(jnp.float32))
    assert not attention.flash_takes(jnp.zeros((1, 1, 8, 512), jnp.bfloat16))


def test_unknown_kernels_and_wide_heads_are_refused():
    with pytest.raises(UserError, match=r"attention=flsh is unknown: did you mean 'flash'"):
        gpt.kernel(ConfigDict({"attention": "flsh"}))
    with pytest.raises(Unsupported, match=r"heads of at most 256 numbers, and this model's have 264: use plain"):
        attention.flash_kernels((1, 4, 8, 264))


def test_every_kernel_is_plain_attention_on_a_cpu():
    q, k, v = drawn(128, 128).astype(jnp.bfloat16)
    auto, plain, flash = (attention.causal(q, k, v, kernel) for kernel in attention.KERNELS)
    np.testing.assert_array_equal(np.float32(plain), np.float32(flash))
    np.testing.assert_array_equal(np.float32(plain), np.float32(auto))

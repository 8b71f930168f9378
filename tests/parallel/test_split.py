# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models split over tensor, context, expert, fsdp and mixtures: parameters of one device, expected communication."""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doorway import jaxbench
from strategy_cases import BATCH, assert_right, stateful, verdicts
from thin import thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import discovery, parallel
from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel import axes, layout, sharded_step
from jaxbench.parallel.step import jit_once, keep_barriers, without
from jaxbench.workloads.models import gpt, sharded_layers

LAYERS = 1  # more layers would only repeat, and each is compiled
SHAPE = {"model.layers": LAYERS, "model.width": 32, "model.heads": 8, "model.context": 32, "model.vocab": 64}


@functools.cache
def case(experts=0, **changes):
    workload = experiment_workload("gpt", **{**SHAPE, "model.experts": experts, **changes})
    batch = workload.synthetic(KEY, BATCH)
    return workload, functools.cache(lambda parts: one_device(workload, batch, parts))


def hybrid(workload, mesh, **how):
    sizes = axes.parse(mesh)
    devices = jax.devices()[: int(np.prod(list(sizes.values())))]
    return parallel.load("hybrid").build(workload, devices, sizes=sizes, **how)


def tried(mesh, *, experts=0, sequence=False, ulysses=False, gather="each", **changes):
    workload, reference = case(experts, **changes)
    program = hybrid(workload, mesh, sequence=sequence, ulysses=ulysses, gather=gather)
    return assert_right(workload, program, reference(program.parts if stateful(workload) else 1))


MESHES = [
    *("tensor=2", "tensor=8", "context=2", "context=8", "fsdp=8"),
    *("data=2,tensor=4", "fsdp=2,tensor=4", "data=2,fsdp=2,tensor=2", "data=2,context=4", "fsdp=2,context=2,tensor=2"),
]


@pytest.mark.parametrize("mesh", thin(MESHES, ["fsdp=2,context=2,tensor=2"]))
def test_same_parameters_and_expected_communication(mesh):
    tried(mesh)


@pytest.mark.full
@pytest.mark.parametrize("mesh", thin(["fsdp=2,tensor=2", "tensor=2", "tensor=8", "data=2,tensor=4"], 1))
def test_with_positions_split_between_the_products(mesh):
    report = tried(mesh, sequence=True)
    assert {"all-gather", "reduce-scatter"} <= {c.kind for c in report.collectives}


@pytest.mark.parametrize("mesh", thin(["context=4", "fsdp=2,context=2,tensor=2", "data=2,context=4"], 1))
def test_with_positions_exchanged_for_heads(mesh):
    report = tried(mesh, ulysses=True)
    kinds = {c.kind for c in report.collectives}
    assert "all-to-all" in kinds and "collective-permute" not in kinds


@pytest.mark.parametrize(
    ("mesh", "ulysses", "kind", "share"),
    [
        ("context=4", False, "collective-permute", 2 / 8),
        # Keys come 7 times forward and 7 times backward. Their gradients return 7 times in one group of all, or 8 + 1
        # times: around a ring of four pairs, and then in the pair.
        ("context=8", False, "collective-permute", 2 / 8 * (14 + 7) / (14 + 9)),
        ("context=2,tensor=2", False, "collective-permute", 2 / 8),
        ("context=2", True, "all-to-all", (8 + 2) / 16),
        ("context=4", True, "all-to-all", (8 + 4) / 16),  # two heads do not divide over four devices
    ],
)
def test_heads_of_keys_that_queries_share_travel_once(mesh, ulysses, kind, share):
    """Two heads of keys for eight of queries, over eight of each."""
    moved = []
    for heads in (2, 8):
        report = tried(mesh, ulysses=ulysses, **{"model.kv_heads": heads})
        moved.append(sum(c.elements for c in report.collectives if c.kind == kind))
    assert moved[0] == round(share * moved[1])


@pytest.mark.parametrize(("gather", "times"), [("each", 8), ("once", 1), ("once_summed", 1)])
def test_the_expected_gathers_are_all_parameters_as_often_as_the_lever_allows(gather, times):
    workload, _ = case(**{"lever.accumulate": "4"})
    numbers = sum(cut.numbers for cut in jax.tree.leaves(layout.cuts(workload, {"fsdp": 4})) if cut.parts > 1)
    bounds = hybrid(workload, "fsdp=4", gather=gather).expected(BATCH)
    assert bounds["all-gather"] == (numbers, times * numbers)


IN_BLOCKS = [
    *(("data=1", "mixed"), ("data=8", "default"), ("fsdp=2", "mixed"), ("fsdp=8", "default"), ("context=4", "mixed")),
    *(("tensor=2", "default"), ("tensor=4", "mixed"), ("fsdp=2,context=2,tensor=2", "default")),
    *(("fsdp=2,stage=2", "default"), ("stage=2,tensor=2", "default")),
]


def in_blocks(monkeypatch, words, **changes):
    """The workload with a loss in blocks of 32 positions of all examples, or one position of each."""
    monkeypatch.setattr(sharded_layers, "WHOLE_BYTES", 0)
    monkeypatch.setattr(sharded_layers, "BLOCK_BYTES", 4 * words * 32)
    return experiment_workload("gpt", **{**SHAPE, "model.vocab": words, "lever.remat": "block", **changes})


@pytest.mark.parametrize(("mesh", "precision"), thin(IN_BLOCKS, [("fsdp=2,context=2,tensor=2", "default")]))
def test_a_loss_in_blocks_has_the_gradients_of_the_whole(mesh, precision, monkeypatch):
    changes = {"model.layers": 2, "lever.precision": precision}
    _, reference = case(**{"model.vocab": 48, **changes})
    expected = reference(1)
    workload = in_blocks(monkeypatch, 48, **changes)
    workload = dataclasses.replace(workload, micro_batches=2 if "stage" in mesh else 1)
    assert_right(workload, hybrid(workload, mesh, sequence=mesh == "tensor=2"), expected)


@pytest.mark.parametrize("strategy", thin(["jit_auto", "jit_explicit", "shard_map", "pmap", "zero2"], 1))
def test_a_loss_in_blocks_under(strategy, monkeypatch):
    _, reference = case(**{"model.vocab": 48})
    expected = reference(1)
    workload = in_blocks(monkeypatch, 48)
    assert_right(workload, parallel.build(strategy, workload, jax.devices()[:4]), expected)


def test_scores_in_blocks_are_never_whole(monkeypatch):
    words, held = 56, BATCH // 2 * SHAPE["model.context"]

    def whole(workload):
        text = compile_step(workload, hybrid(workload, "fsdp=2"), BATCH).hlo
        shapes = [[int(size) for size in found.split(",")] for found in set(re.findall(r"f32\[([\d,]+)\]", text))]
        return any(words in shape and math.prod(shape) >= held * words for shape in shapes)

    assert whole(case(**{"model.vocab": words})[0]) and not whole(in_blocks(monkeypatch, words))


@pytest.mark.parametrize("mesh", thin(["fsdp=4", "data=2,fsdp=2,tensor=2", "fsdp=2,context=2"], 1))
def test_parameters_are_gathered_as_often_as_the_lever_says(mesh):
    elements = {}
    for gather in ("each", "once", "once_summed"):
        report = tried(mesh, gather=gather, **{"lever.accumulate": "4"})
        elements[gather] = {c.kind: c.elements for c in report.collectives}
    gathered = {gather: found["all-gather"] for gather, found in elements.items()}
    assert gathered["each"] > 3 * gathered["once"] and gathered["once"] == gathered["once_summed"]
    scattered = {gather: found["reduce-scatter"] for gather, found in elements.items()}
    assert scattered["once"] == scattered["each"] == 4 * scattered["once_summed"]


@pytest.mark.parametrize(
    ("strategy", "changes", "said"),
    [
        ("tensor", {"gather": "once"}, r"gather=once needs a mesh with the axis fsdp"),
        ("tensor", {"ulysses": True}, r"context_attention=ulysses needs a mesh with the axis context"),
    ],
)
def test_ways_without_their_axis_are_refused(strategy, changes, said):
    with pytest.raises(UserError, match=said):
        parallel.settings(strategy, 2, **changes)


@pytest.mark.parametrize("mesh", thin(["expert=2", "expert=2,tensor=2", "expert=8", "data=2,expert=4"], 2))
def test_experts(mesh):
    report = tried(mesh, experts=8)
    assert "all-to-all" in {c.kind for c in report.collectives}


def test_frozen_parameters_are_not_communicated():
    tried("data=2,fsdp=2", **{"lever.freeze": "attention"})


@pytest.mark.full
def test_tensor_parallelism_has_four_all_reduces_of_activations_a_block():
    bytes_of = {}
    for layers in (1, 2):
        report = tried("tensor=2", **{"model.layers": layers})
        (reduced,) = report.collectives
        bytes_of[layers] = reduced.bytes
    activation = BATCH * SHAPE["model.context"] * SHAPE["model.width"] * 4
    assert bytes_of[2] - bytes_of[1] == 4 * activation


CUT = [(depth, mesh) for mesh in ("tensor=2", "tensor=8", "data=2,tensor=4", "fsdp=4,tensor=2") for depth in (1, 2, 3)]


@pytest.mark.parametrize(("depth", "mesh"), thin(CUT, 1))
def test_a_perceptron_is_split_two_layers_at_a_time(mesh, depth):
    """Of the 2, 3 or 4 layers, the third of 3 has no partner and is whole on every device."""
    workload, reference = perceptron(depth)
    report = assert_right(workload, hybrid(workload, mesh), reference)
    if mesh == "tensor=2":
        sent = BATCH * 4 * {1: 10, 2: 32, 3: 32 + 10 + 32}[depth]  # the outputs of two layers, and their inputs
        assert sum(c.bytes for c in report.collectives) == sent


CONVOLUTIONAL = [
    *(("cnn", mesh) for mesh in ("tensor=2", "data=2,tensor=4", "fsdp=2,tensor=2")),
    *((name, "tensor=2") for name in ("alexnet", "vgg16")),
]


@pytest.mark.parametrize(("name", "mesh"), thin(CONVOLUTIONAL, [("cnn", "data=2,tensor=4")]))
@pytest.mark.parametrize("micro_batches", thin(["1", "2"], 1))
def test_dense_layers_are_split_after_convolutions_of_own_examples(name, mesh, micro_batches):
    """Krizhevsky's mixture. Expected communication: features in both directions, sums of activations, and the gradients
    of the convolutions once per step, for any number of micro-batches."""
    workload = experiment_workload(name, **{"lever.accumulate": micro_batches})
    report = assert_right(workload, hybrid(workload, mesh))
    kinds = {c.kind for c in report.collectives}
    assert kinds == {"all-gather", "all-reduce", "reduce-scatter"}, kinds


def test_examples_that_do_not_divide_over_the_axis_of_dense_layers_are_refused():
    program = parallel.build("tensor", experiment_workload("cnn"), jax.devices()[:4])
    with pytest.raises(UserError, match="the 6 examples of a step do not divide over the 4 devices .*: use 8"):
        jax.eval_shape(program.step, jax.eval_shape(program.init, KEY), experiment_workload("cnn").batch_avals(6))


@functools.cache
def perceptron(depth):
    workload = experiment_workload("mlp", **{"model.depth": depth})
    return workload, one_device(workload, workload.synthetic(KEY, BATCH))


@pytest.mark.full
def test_ring_attention_sends_keys_and_values_n_minus_1_times_each_way_and_their_gradients_back():
    report = tried("context=4")
    (sent,) = [c for c in report.collectives if c.kind == "collective-permute"]
    part = BATCH * SHAPE["model.context"] // 4 * SHAPE["model.width"] * 4
    assert sent.bytes == LAYERS * (3 * 2 + 3 * 2 + 3 * 2) * part
    assert sent.count == LAYERS * (3 * 2 + 3 * 2 + 3 * 2)


@pytest.mark.full
@pytest.mark.parametrize("mesh", ["context=2", "fsdp=2,tensor=2", "data=2,expert=2"])
def test_micro_batches(mesh):
    tried(mesh, experts=4 if "expert" in mesh else 0, **{"lever.accumulate": "2"})


@pytest.mark.full
@pytest.mark.parametrize("mesh", ["tensor=2", "context=2"])
def test_16_bits(mesh):
    sgd = {"lever.precision": "bfloat16", "optimizer.name": "sgd", "optimizer.learning_rate": 1.0}
    tried(mesh, **sgd)


LAID = ["fsdp=2,tensor=2", "fsdp=2,expert=2", "tensor=4", "fsdp=4", "data=2,expert=2"]


@pytest.mark.parametrize("mesh", thin(LAID, 1))
def test_state_lies_as_the_table_says_and_round_trips(mesh):
    workload, _ = case(4 if "expert" in mesh else 0)
    sizes = axes.parse(mesh)
    program = parallel.load("hybrid").build(workload, jax.devices()[:4], sizes=sizes)
    with jax.set_mesh(program.mesh):
        state = program.init(KEY)
        before = jax.device_get(program.export(state))
        again = jax.device_get(program.export(program.load(before)))
    jax.tree.map(np.testing.assert_array_equal, before, again)
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(before.params))
    held = sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(state.params))
    cuts = jax.tree.leaves(layout.cuts(workload, sizes))
    split = sum(np.prod(cut.shape) for cut in cuts if cut.axes)
    assert held == sum(4 * cut.numbers // cut.parts for cut in cuts)
    assert held < whole or not split


@pytest.mark.parametrize(
    ("strategy", "name", "devices", "changes", "said"),
    [
        ("tensor", "gpt", 8, {"model.heads": 4}, r"'heads' is 4, .* 8 devices of the mesh axis tensor"),
        ("tensor", "gpt", 8, {"model.vocab": 60}, r"'vocab' is 60, .* use tensor=6, or a 'vocab' of 64"),
        ("tensor", "lstm", 2, {}, r"'lstm' does not declare what can be split over the axis tensor; gpt does"),
        ("context", "gpt", 8, {"model.context": 24}, r"24 positions cannot be split over 8 devices .*context=32"),
        ("context", "mlp", 2, {}, r"'mlp' has no positions"),
        ("expert", "gpt", 2, {}, r"'gpt' has no experts: use --config.model.experts=8"),
        ("pipeline", "mlp", 2, {}, r"'mlp' is not a stack of blocks"),
        ("pipeline", "gpt", 4, {"model.layers": 6}, r"the 6 blocks of 'gpt' do not divide over 4 stages: .*layers=8"),
        ("context", "gpt", 2, {"model.experts": 4}, r"the experts of 'gpt' take positions by whole sequences"),
        # Both computed something else, or ended in an AttributeError.
        (
            "tensor",
            "gpt",
            2,
            {"lever.freeze": "attention/out"},
            r"keeps 'blocks/0/attention/out/kernel' whole on every",
        ),
        ("pipeline", "gpt", 2, {"lever.freeze": "tokens"}, r"lever.freeze takes parameters out of the blocks"),
    ],
)
def test_an_impossible_split_is_refused_in_a_sentence(strategy, name, devices, changes, said):
    workload = experiment_workload(name, **({**SHAPE, **changes} if name == "gpt" else {}))
    with pytest.raises(UserError, match=said):
        parallel.build(strategy, workload, jax.devices()[:devices])


def test_positions_that_are_not_there_cannot_be_split():
    with pytest.raises(UserError, match="'mlp' has none: use off"):
        parallel.load("hybrid").build(perceptron(1)[0], jax.devices()[:2], sizes={"tensor": 2}, sequence=True)


WIDTH, DEPTH = 32, 4


def layers(policy):
    """(parameters, x, number) -> layers in sequence, each recomputed under `policy`. number: an integer."""

    def layer(w, x, number):
        return x + jnp.tanh(jnp.tanh(x @ w) * number)

    def run(params, x, number):
        for w in params:
            x = jax.checkpoint(layer, policy=policy)(w, x, number)
        return jnp.sum(x**2)

    return run


# arrays: of the size of x that the gradient has at once for each layer: its input and a temporary, and its product.
@pytest.mark.parametrize(("policy", "arrays"), [(None, 2), (jax.checkpoint_policies.dots_saveable, 3)])
def test_the_inner_policy_decides_and_the_gradient_stays(policy, arrays):
    params = list(jax.random.normal(jax.random.PRNGKey(0), (DEPTH, WIDTH, WIDTH)) / WIDTH)
    x, outer, row = jnp.ones((512, WIDTH)), jax.checkpoint_policies.everything_saveable, layers(policy)
    barriers = {"xla_disable_hlo_passes": "cse_barrier_expander"}

    def compiled(function):
        gradient = jax.jit(jax.grad(jax.checkpoint(function, policy=outer), argnums=(0, 1)))
        return gradient.lower(params, x, 2).compile(barriers)

    ignored, kept = compiled(row), compiled(sharded_step.keeping_recomputation(row))
    stored, all_of_it = (one.memory_analysis().temp_size_in_bytes / x.nbytes for one in (kept, ignored))
    assert stored < arrays * DEPTH - 1.9  # 6 and 10 with every jax; newer ones ignore less
    assert stored < all_of_it - 1.9
    for left, right in zip(jax.tree.leaves(ignored(params, x, 2)), jax.tree.leaves(kept(params, x, 2)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5)


def test_the_gradient_of_activations_waits_for_those_of_parameters():
    """A GPU's compiler keeps no barrier, so the largest gradient reads a number of each other one."""
    gradients = {"w": jnp.ones((2, 3)), "x": jnp.arange(12.0).reshape(3, 4), "ids": np.zeros((), jax.dtypes.float0)}
    found = sharded_step.largest_last(gradients)
    np.testing.assert_array_equal(found["x"], gradients["x"])
    text = jax.jit(lambda w, x: sharded_step.largest_last({"w": w, "x": x})).lower(gradients["w"], gradients["x"])
    assert re.search(r"select.*%arg1|select.*tensor<3x4xf32>", text.as_text())
    unknown = sharded_step.largest_last({**gradients, "w": jnp.full((2, 3), jnp.nan)})
    assert np.isnan(unknown["x"]).all()


def test_fsdp_stores_less_of_blocks_that_are_recomputed():
    def temp_bytes(remat: str) -> int:
        changes = {"model.layers": 4, "model.width": 32, "model.context": 32, "lever.remat": remat}
        workload = experiment_workload("gpt", **changes)
        program = parallel.load("fsdp").build(workload, jax.devices()[:2], sizes={"fsdp": 2})
        return compile_step(workload, program, 16, options=without(keep_barriers(program.mesh))).report.temp_bytes

    assert temp_bytes("block") < 0.5 * temp_bytes("none")


# A vocabulary that does not divide over devices gets unused rows, which change nothing.


WORDS, ROWS = 61, 64
SHAPE_vocab = {"model.width": 16, "model.heads": 4, "model.context": 16, "model.vocab": WORDS}


@functools.cache
def workload(rows=ROWS, layers=1):
    return experiment_workload("gpt", **{**SHAPE_vocab, "model.layers": layers, "model.padded_vocab": rows})


@functools.cache
def reference(layers=1):
    mine = workload(layers=layers)
    return one_device(mine, mine.synthetic(KEY, BATCH))


@pytest.mark.full
def test_the_loss_and_the_gradients_are_those_of_the_vocabulary():
    plain, padded = workload(0), workload()
    batch = plain.synthetic(KEY, BATCH)
    jax.tree.map(np.testing.assert_array_equal, batch, padded.synthetic(KEY, BATCH))
    (small, _), (large, _) = plain.init(KEY), padded.init(KEY)
    np.testing.assert_array_equal(large["tokens"], np.pad(small["tokens"], ((0, ROWS - WORDS), (0, 0))))
    large["tokens"] = large["tokens"].at[WORDS:].set(9.0)  # for any values there

    def gradient(mine, params):
        return jit_once(jax.value_and_grad(mine.loss, has_aux=True))(params, {}, batch, KEY)

    ((loss, _), grads), ((same, _), others) = gradient(plain, small), gradient(padded, large)
    np.testing.assert_allclose(same, loss, rtol=1e-6)
    assert not np.any(others["tokens"][WORDS:])
    others["tokens"] = others["tokens"][:WORDS]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), others, grads)
    assert jax.eval_shape(padded.predict, large, {}, batch).shape == (BATCH, WORDS)


SPREAD = [("tensor", 2), ("tensor", 4), ("fsdp", 2), ("jit_explicit", 2), ("pmap", 2)]


@pytest.mark.parametrize(("strategy", "devices"), thin(SPREAD, 1))
def test_strategies_are_right_and_the_padding_stays_zero(strategy, devices):
    program = parallel.build(strategy, workload(), jax.devices()[:devices])
    report = assert_right(workload(), program, reference())
    assert report.parameters == 16 * (ROWS - WORDS) + sum(x.size for x in jax.tree.leaves(workload(0).init(KEY)[0]))
    assert not np.any(reference().end.params["tokens"][WORDS:])


@pytest.mark.full
@pytest.mark.parametrize("mesh", ["data=2,tensor=2", "stage=2,tensor=2"])
def test_meshes_are_right(mesh):
    mine = workload(layers=2)  # one for each stage
    program = parallel.load("hybrid").build(mine, jax.devices()[:4], sizes=axes.parse(mesh))
    found, *_ = verdicts(mine, program, reference(2))
    assert found.ok, found.reason


@pytest.mark.full
def test_a_device_that_holds_only_padding_is_right_too():
    mine = workload(4 * WORDS + 4)  # of four devices two hold no word
    program = parallel.build("tensor", mine, jax.devices()[:4])
    found, *_ = verdicts(mine, program, one_device(mine, mine.synthetic(KEY, BATCH)))
    assert found.ok, found.reason


def test_gpt_2s_vocabulary_is_padded_and_others_are_unchanged():
    def shape(**changes):
        config = discovery.load_experiment("gpt").get_config().model
        config.update(changes)
        return gpt.dimensions(config)

    for preset, found in gpt.PRESETS.items():
        assert shape(preset=preset).rows == (50304 if found.vocab == 50257 else found.vocab)
    assert shape(preset="small", vocab=1000).rows == 1000
    assert shape(preset="tiny", vocab=1000, padded_vocab=1024).rows == 1024
    with pytest.raises(UserError, match="padded_vocab=999 is less than the vocabulary of 1000: use 1024, for example"):
        shape(preset="tiny", vocab=1000, padded_vocab=999)


# Every experiment that splits a model, at its tiny size: points, facts, and its figure from the command line.


@pytest.fixture
def records(tmp_path):
    def typed(name: str, *changes: str) -> list[schema.PointRecord]:
        """The last record of each point, in the order of the plan; each passed its checks, and there is a figure."""
        folder = tmp_path / name
        words = ("run", name, "--preset=smoke", f"--workdir={folder}", *(f"--config.{c}" for c in changes))
        ended = jaxbench(*words)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert list((folder / "figures").glob("*.svg"))
        found = {r.point: r for r in RunFolder(folder).records() if isinstance(r, schema.PointRecord)}
        assert found and all(check.ok for record in found.values() for check in record.checks)
        return list(found.values())

    return typed


@pytest.mark.full
def test_zero_holds_less_with_each_stage(records):
    found = records("zero", "mesh.devices=4")
    assert [record.strategy for record in found] == ["jit_auto", "zero1", "zero2", "fsdp"]
    held = [record.facts["state_bytes"] + record.facts["held_gradient_bytes"] for record in found]
    assert held == sorted(held, reverse=True) and held[-1] < 0.3 * held[0]
    per_parameter = held[0] / found[0].compile_report.parameters
    assert per_parameter == pytest.approx(16)


@pytest.mark.full
def test_without_fusion_fsdp_still_gathers_for_the_backward_pass_again(records):
    found = records("mlp", "strategy=fsdp", "scaling=strong", "mesh.devices=2", "lever.execution=donated,unfused")
    donated, unfused = (
        sum(c.bytes for c in record.compile_report.collectives if c.kind == "all-gather") for record in found
    )
    assert donated == unfused > 0


@pytest.mark.full
def test_tensor_parallel_grows_the_model_with_the_devices(records):
    found = {(r.scaling, r.devices): r for r in records("tensor_parallel", "mesh.devices=1,2")}
    parameters = {key: record.compile_report.parameters for key, record in found.items()}
    assert parameters["strong", 1] == parameters["strong", 2] == parameters["weak", 1] < parameters["weak", 2]
    assert len({record.global_batch for record in found.values()}) == 1
    assert found["strong", 2].facts["state_bytes"] < 0.7 * found["strong", 1].facts["state_bytes"]


@pytest.mark.full
def test_pipeline_is_as_busy_as_theory_says(records):
    found = records("pipeline", "mesh.devices=2", "lever.accumulate=4")
    assert [record.levers["schedule"] for record in found] == ["gpipe", "1f1b"]
    assert [record.facts["busy_share"] for record in found] == pytest.approx([4 / (4 + 2 - 1)] * 2)


@pytest.mark.full
def test_context_parallel_passes_keys_and_values_round(records):
    (record,) = records("context_parallel", "mesh.devices=4", "search=")
    assert "collective-permute" in {each.kind for each in record.compile_report.collectives}


@pytest.mark.full
def test_hybrid_says_what_each_mesh_keeps_busy(records):
    meshes = ("data=2", "stage=2")
    found = {
        r.arm: r for r in records("hybrid", "mesh.devices=2", f"lever.mesh={';'.join(meshes)}", "lever.accumulate=2")
    }
    assert list(found) == [f"mesh={mesh}" for mesh in meshes]
    assert [record.facts.get("busy_share") for record in found.values()] == [None, pytest.approx(2 / 3)]


@pytest.mark.full
def test_moe_says_what_was_dropped(records):
    found = {r.devices: r for r in records("moe", "mesh.devices=1,2", "strategy=expert")}
    assert all(0 <= record.facts["dropped"] < 1 for record in found.values())
    assert "all-to-all" in {each.kind for each in found[2].compile_report.collectives}
    assert found[2].facts["state_bytes"] < found[1].facts["state_bytes"]


@pytest.mark.full
def test_contrastive_gathers_more_with_each_device_and_holds_less_by_blocks(records):
    found = {
        (r.devices, r.levers["remat"]): r.compile_report
        for r in records("contrastive", "mesh.devices=1,2", "strategy=shard_map", "batch=64", "model.columns=8")
    }
    assert all(found[n, "none"].flops_per_step == found[n, "block"].flops_per_step for n in (1, 2))
    assert found[2, "none"].flops_per_step > 2 * found[1, "none"].flops_per_step
    assert found[2, "none"].product_flops_per_step == found[2, "none"].flops_per_step
    gathered = {c.kind: c.bytes for c in found[2, "none"].collectives}
    assert gathered["all-gather"] == 2 * 4 * 128 * 16 and gathered["reduce-scatter"] == gathered["all-gather"] / 2
    assert found[2, "block"].temp_bytes < found[2, "none"].temp_bytes

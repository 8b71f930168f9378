# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipelines: parameters agree with one device; the executed idle share; the memory of inputs; communication."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategy_cases import BATCH, assert_right
from thin import thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.levers import SCHEDULE
from jaxbench.measure import check, expected_communication
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel import axes, schedule
from jaxbench.parallel.schedule import BACKWARD, FORWARD, NOWHERE
from jaxbench.parallel.stage import SplitVjp, Stage
from jaxbench.parallel.strategies import pipeline
from jaxbench.workloads.models.blocks import apply_blocks

# The smallest number of blocks: each block of a stage is compiled once.
SHAPE = {"model.width": 16, "model.heads": 2, "model.context": 16, "model.vocab": 32}


@functools.cache
def case(layers, remat="none"):
    workload = experiment_workload("gpt", **{**SHAPE, "model.layers": layers, "lever.remat": remat})
    return workload, one_device(workload, workload.synthetic(KEY, BATCH))


def built(mesh, schedule="gpipe", micro_batches=4, remat="none", **more):
    sizes = axes.parse(mesh)
    workload, reference = case(max(2, sizes["stage"] * SCHEDULE.read(schedule).chunks), remat)
    workload = dataclasses.replace(workload, micro_batches=micro_batches)
    devices = jax.devices()[: int(np.prod(list(sizes.values())))]
    return workload, parallel.load("hybrid").build(workload, devices, sizes=sizes, schedule=schedule, **more), reference


CASES = [
    *(("data=2,stage=2", "interleaved", 4), ("data=2,stage=2,tensor=2", "1f1b", 4), ("data=2,stage=4", "gpipe", 4)),
    *(("stage=1", "gpipe", 2), ("stage=4", "gpipe", 1), ("stage=8", "gpipe", 16)),
    *(("stage=2", "1f1b", 8), ("stage=8", "1f1b", 4), ("stage=4", "interleaved", 8)),
    *(("stage=2,tensor=2", "interleaved:3", 2), ("fsdp=2,stage=2", "interleaved", 4)),
    ("stage=4,tensor=2", "gpipe", 4),
    *(("fsdp=2,stage=2,tensor=2", "1f1b", 4), ("data=2,fsdp=2,stage=2", "gpipe", 2)),
]


@pytest.mark.parametrize(("mesh", "schedule", "micro_batches"), thin(CASES, [CASES[1], CASES[-1]]))
def test_parameters_of_one_device_expected_communication_and_published_bubble(mesh, schedule, micro_batches):
    assert_as_expected(mesh, schedule, micro_batches)


def test_stages_that_compute_while_idle_add_nothing(monkeypatch):
    """As on a GPU or TPU. In a ring of chunks an idle stage receives gradients of another chunk."""
    monkeypatch.setattr(pipeline, "Stage", lambda *given, **more: Stage(*given, **{**more, "skips_idle": False}))
    assert_as_expected("stage=2", "interleaved", 2)


SPLIT = [
    *(("stage=2,tensor=2", "1f1b", 4, "none"), ("data=2,stage=2,tensor=2", "interleaved", 4, "block")),
    ("fsdp=2,stage=2,tensor=2", "gpipe", 2, "minimal_flash"),
]


@pytest.mark.parametrize(("mesh", "schedule", "micro_batches", "remat"), thin(SPLIT, SPLIT[1:2]))
def test_stages_of_which_each_device_has_some_positions(mesh, schedule, micro_batches, remat):
    assert_as_expected(mesh, schedule, micro_batches, remat, sequence=True)


def assert_as_expected(mesh, schedule, micro_batches, remat="none", **more):
    workload, program, reference = built(mesh, schedule, micro_batches, remat, **more)
    compiled, batch = compile_step(workload, program, BATCH), workload.synthetic(KEY, BATCH)
    actual = check.train(program, compiled.call, KEY, batch)
    assert check.judge(actual, reference, workload).ok, check.judge(actual, reference, workload).reason
    assert check.judge_optimizer(actual, reference).ok
    found = expected_communication.judge(workload, program, compiled.report, BATCH)
    assert found.ok, found.reason
    with jax.set_mesh(program.mesh):
        _, metrics = compiled.call(program.init(KEY), program.put(batch))
    stages = axes.parse(mesh)["stage"]
    bubble = (stages - 1) / (SCHEDULE.read(schedule).chunks * micro_batches + stages - 1)
    assert 1 - metrics["busy_share"] == pytest.approx(bubble)


# Arrays that one block stores per position, in multiples of the width: its input and result; the products for queries,
# keys and values, two heads' scores (16 positions and a width of 16), their values, the projection of these, and the
# perceptron's first product. Without recomputation also intermediates, which depend on how JAX differentiates.
KEPT = {"block": 1 + 1, "dots_saveable": 1 + 1 + 3 + 2 + 1 + 1 + 4}


@pytest.mark.full
@pytest.mark.parametrize("remat", ["none", *KEPT])
def test_1f1b_keeps_k_micro_batches_and_gpipe_all(remat):
    """From the compiled memory: for each additional micro-batch GPipe holds one more and 1F1B none."""

    def scratch(schedule, micro_batches):
        workload, program, _ = built("stage=2", schedule, micro_batches, remat)
        return compile_step(workload, program, 2 * micro_batches).report.temp_bytes  # two examples per micro-batch

    activation = 2 * SHAPE["model.context"] * SHAPE["model.width"] * 4  # bytes, of a micro-batch
    more = {name: (scratch(name, 16) - scratch(name, 8)) / 8 / activation for name in ("gpipe", "1f1b")}
    assert more["1f1b"] < 0.1
    if remat == "none":
        assert more["gpipe"] > 2 * KEPT["dots_saveable"]
    else:
        assert more["gpipe"] == pytest.approx(KEPT[remat], rel=0.02)


@pytest.mark.full
def test_recomputation_changes_no_parameters():
    for remat in KEPT:
        assert_right(*built("stage=2,tensor=2", "1f1b", 4, remat))


def test_activations_in_the_hosts_memory_are_refused():
    workload = case(2)[0]
    stages = dataclasses.replace(workload.partition.stages, remat="offload")
    workload = dataclasses.replace(workload, partition=dataclasses.replace(workload.partition, stages=stages))
    with pytest.raises(UserError, match="remat=dots_saveable, not offload"):
        parallel.build("pipeline", workload, jax.devices()[:2])


def test_loss_scaling_is_refused():
    workload = experiment_workload("gpt", **{**SHAPE, "model.layers": 2, "lever.precision": "float16"})
    with pytest.raises(UserError, match="precision=float16 .* use bfloat16"):
        parallel.build("pipeline", workload, jax.devices()[:2])


@pytest.mark.full
def test_the_state_round_trips_and_each_stage_has_its_blocks():
    workload, program, _ = built("data=2,stage=4", "gpipe", 4)
    with jax.set_mesh(program.mesh):
        state = program.init(KEY)
        before = jax.device_get(program.export(state))
        again = jax.device_get(program.export(program.load(before)))
    jax.tree.map(np.testing.assert_array_equal, before, again)
    plain = jax.device_get(workload.init(jax.random.fold_in(KEY, 0))[0])
    assert jax.tree.structure(before.params) == jax.tree.structure(plain)
    for leaf in jax.tree.leaves(state.params["blocks"]):
        assert leaf.addressable_shards[0].data.shape[0] == 1


KEYS = jax.random.split(jax.random.PRNGKey(0), 4)
PARAMS = {"up": jax.random.normal(KEYS[0], (8, 2, 16)), "down": jax.random.normal(KEYS[1], (32, 8))}
X, DY = jax.random.normal(KEYS[2], (4, 8)), jax.random.normal(KEYS[3], (4, 8))
SHIFT = jnp.arange(8)


def block(params, x, shift=0):
    """A kernel that is reshaped before it multiplies, one that is not, and whole numbers that have no gradient."""
    return x + jnp.tanh((x + shift) @ params["up"].reshape(8, 32)) @ params["down"]


def test_the_gradients_of_the_whole_from_what_was_kept_as_arrays():
    passes = SplitVjp(block, PARAMS, X, SHIFT)
    y, kept = jax.jit(passes.forward)(PARAMS, X, SHIFT)
    actual = jax.jit(passes.backward)(PARAMS, kept, DY, SHIFT)
    expected_y, pulled = jax.vjp(lambda params, x: block(params, x, SHIFT), PARAMS, X)
    np.testing.assert_allclose(y, expected_y, rtol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), actual, pulled(DY))


def test_values_that_follow_from_the_parameters_are_not_kept():
    shapes = [aval.shape for aval in SplitVjp(block, PARAMS, X, SHIFT).kept]
    assert (4, 32) in shapes  # the output of tanh
    assert not {(8, 2, 16), (8, 32), (32, 8), (32, 4)} & set(shapes)
    _, kept = SplitVjp(block, PARAMS, X, SHIFT).forward(PARAMS, X, SHIFT)
    assert [x.shape for x in kept] == shapes


def test_a_recomputed_block_keeps_its_input_alone():
    again = SplitVjp(lambda params, x: apply_blocks(block, [params, params], x, "block"), PARAMS, X)
    assert [aval.shape for aval in again.kept] == [X.shape, X.shape]
    _, kept = again.forward(PARAMS, X)
    expected = jax.vjp(lambda params, x: block(params, block(params, x)), PARAMS, X)[1](DY)
    actual = again.backward(PARAMS, kept, DY)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3), actual, expected)


# Pipeline schedules: every piece of work once, after its inputs, with the published share of idle ticks.


SIZES = [(k, m) for k in (1, 2, 3, 4, 8) for m in (1, 2, 4, 8, 32)]
NAMES = ("gpipe", "1f1b", "interleaved", "interleaved:3")
CASES_schedule = [(name, k, m) for name in NAMES for k, m in SIZES if "inter" not in name or m % k == 0]


def executed(made, stages):
    """By (direction, micro-batch, place in the row of all chunks): the tick in which it runs, from the tables."""
    when = {}
    for direction, passes, start in ((FORWARD, made.forward, 0), (BACKWARD, made.backward, made.start)):
        for t, s in itertools.product(range(len(passes.busy)), range(stages)):
            if passes.busy[t, s]:
                work = direction, int(passes.micro_batch[t, s]), int(passes.chunk[t, s]) * stages + s
                assert work not in when
                when[work] = t + start
    return when


@pytest.mark.parametrize(("name", "stages", "micro_batches"), CASES_schedule)
def test_all_work_is_done_once_and_one_tick_after_what_it_needs(name, stages, micro_batches):
    made, chunks = schedule.make(name, stages, micro_batches), SCHEDULE.read(name).chunks
    when, places = executed(made, stages), range(chunks * stages)
    assert set(when) == set(itertools.product((FORWARD, BACKWARD), range(micro_batches), places))
    for m, place in itertools.product(range(micro_batches), places[1:]):
        assert when[FORWARD, m, place - 1] + 1 == when[FORWARD, m, place]  # a result is held for one tick only
        assert when[BACKWARD, m, place - 1] == when[BACKWARD, m, place] + 1
    late = [when[BACKWARD, m, places[-1]] - when[FORWARD, m, places[-1]] for m in range(micro_batches)]
    assert min(late) > 0 if made.stores_gradients else set(late) == {0}
    assert made.idle == pytest.approx((stages - 1) / (chunks * micro_batches + stages - 1)), "the published idle share"


@pytest.mark.parametrize(("stages", "micro_batches"), SIZES)
def test_1f1b_holds_a_number_of_micro_batches_that_does_not_grow(stages, micro_batches):
    assert schedule.make("1f1b", stages, micro_batches).kept == min(2 * stages - 1, micro_batches)
    assert schedule.make("gpipe", stages, micro_batches).kept == micro_batches
    if micro_batches % stages == 0:
        few = min(micro_batches, 2 * stages)
        assert schedule.make("interleaved", stages, micro_batches).kept <= 2 * few


@pytest.mark.parametrize(("name", "stages", "micro_batches"), CASES_schedule)
def test_a_slot_holds_what_its_reader_expects(name, stages, micro_batches):
    """Executes the tables like the compiled loop, with names instead of arrays: in idle ticks, too."""
    made = schedule.make(name, stages, micro_batches)
    kept = [[None] * (made.kept + 1) for _ in range(stages)]
    for first, end, directions in made.segments():
        for t, s in itertools.product(range(first, end), range(stages)):
            if FORWARD in directions:
                work = made.forward.micro_batch[t, s], made.forward.chunk[t, s]
                kept[s][made.forward.keep[t, s] if made.forward.busy[t, s] else NOWHERE] = work
            if BACKWARD in directions:
                row = t - made.start
                work = made.backward.micro_batch[row, s], made.backward.chunk[row, s]
                assert kept[s][made.backward.keep[row, s]] == work


def test_segments_cover_all_ticks_in_order():
    for name, stages, micro_batches in CASES_schedule:
        made = schedule.make(name, stages, micro_batches)
        rows = made.segments()
        assert [row[0] for row in rows] == [0, *(row[1] for row in rows[:-1])]
        assert rows[-1][1] == made.ticks
        ticks = {name: sum(end - first for first, end, names in rows if name in names) for name in (FORWARD, BACKWARD)}
        assert ticks == {FORWARD: len(made.forward.busy), BACKWARD: len(made.backward.busy)}


@pytest.mark.parametrize("text", ["interleaved:1", "interleaved:x", "gpipe:2", "zigzag"])
def test_schedules_that_do_not_exist_are_refused(text):
    with pytest.raises(UserError, match=f"schedule={text} .* use interleaved:4"):
        SCHEDULE.read(text)


def test_micro_batches_that_cannot_be_grouped_are_refused_with_a_number_that_can():
    with pytest.raises(UserError, match="accumulate=6 .*: use 8"):
        schedule.make("interleaved", 4, 6)

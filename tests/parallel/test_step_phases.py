# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parts of a step: each is the next without one phase."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from workload_cases import KEY, experiment_workload, linear_workload

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.levers import PART
from jaxbench.measure import check, reference
from jaxbench.measure.arm import build_program
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel import step_phases
from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.models import image_layers

BATCH = 16
SMALL = {"model.width": 2, "model.depth": 1, "model.hidden": 8}


@pytest.fixture(scope="module")
def cnn() -> TrainWorkload:
    return experiment_workload("cnn", **SMALL)


def built(workload: TrainWorkload, part: str, devices: int):
    program = step_phases.build_phases(workload, jax.devices()[:devices], part)
    return program, compile_step(workload, program, BATCH)


def once(workload: TrainWorkload, part: str, devices: int):
    """(state before, state after, outputs), on the host."""
    program, compiled = built(workload, part, devices)
    with jax.set_mesh(program.mesh):
        before = jax.device_get(program.init(KEY))
        after, outputs = compiled.call(program.init(KEY), program.put(workload.synthetic(KEY, BATCH)))
        return before, jax.device_get(after), jax.device_get(outputs)


def test_the_whole_step_is_that_of_the_strategy(cnn):
    batch = cnn.synthetic(KEY, BATCH)
    program, compiled = built(cnn, "step", 2)
    strategy = parallel.build("shard_map", cnn, jax.devices()[:2])
    expected = check.train(strategy, compile_step(cnn, strategy, BATCH).call, KEY, batch)
    actual = check.train(program, compiled.call, KEY, batch)
    assert reference.relative_l2(actual.params, expected.params) < 1e-6


@pytest.mark.full
def test_without_the_mean_one_device_does_the_same_and_two_do_not(cnn):
    expected = once(cnn, "step", 1)[1]
    assert reference.relative_l2(once(cnn, "local", 1)[1].params, expected.params) < 1e-6
    assert reference.relative_l2(once(cnn, "local", 2)[1].params, expected.params) > 1e-3


def test_a_part_donates_its_state_unless_the_lever_says_jit(cnn):
    def donated(execution: str) -> bool:
        levers = {"part": "forward", "execution": execution}
        program = build_program(cnn, "shard_map", jax.devices()[:1], levers)
        with jax.set_mesh(program.mesh):
            state, batch = jax.eval_shape(program.init, KEY), cnn.batch_avals(BATCH)
            (state, _), _ = program.step.lower(state, batch).args_info
        return all(one.donated for one in jax.tree.leaves(state))

    assert donated("donated") and not donated("jit")


def test_the_results_of_the_parts_make_up_the_step():
    workload = linear_workload()
    before, after, step = once(workload, "step", 2)
    same, forward = once(workload, "forward", 2)[1:]
    kept, gradient = once(workload, "gradient", 2)[1:]
    jax.tree.map(np.testing.assert_array_equal, (same, kept), (before, before))
    assert forward["loss"].shape == (2,)
    np.testing.assert_allclose(np.mean(forward["loss"]), step["loss"], rtol=1e-6)
    np.testing.assert_allclose(gradient["loss"], forward["loss"], rtol=1e-6)
    assert gradient["gradients"]["w"].shape == (2, 3, 2)
    moved = before.params["w"] - 0.1 * gradient["gradients"]["w"].mean(axis=0)
    np.testing.assert_allclose(after.params["w"], moved, rtol=1e-5)


def test_only_the_whole_step_communicates_and_nothing_is_left_out(cnn, monkeypatch):
    plain = lambda x, kernel, _: image_layers._plain(x, kernel)  # noqa: E731  # less forward work
    monkeypatch.setattr(image_layers, "_rewritten", plain)
    workload = dataclasses.replace(cnn, optimizer=optax.adam(1e-3))
    flops, held = {}, {}
    for part in ("forward", "gradient", "local", "step"):
        report = built(workload, part, 2)[1].report
        flops[part] = report.compiler_flops_per_step
        held[part] = report.output_bytes
        assert bool(report.collectives) == (part == "step"), part
    assert flops["forward"] < 0.5 * flops["gradient"]
    assert flops["gradient"] < flops["local"] <= flops["step"]
    assert held["gradient"] > held["local"]  # the gradients come out


def test_micro_batches_are_in_each_part():
    workload = dataclasses.replace(linear_workload(), micro_batches=2)
    step = once(workload, "step", 2)[2]
    for part in ("forward", "gradient"):
        np.testing.assert_allclose(np.mean(once(workload, part, 2)[2]["loss"]), step["loss"], rtol=1e-6)


@pytest.mark.parametrize("part", PART.values)
def test_the_state_is_donated(part):
    workload = dataclasses.replace(linear_workload(), predict=lambda params, state, batch: batch["x"] @ params["w"])
    program = step_phases.build_phases(workload, jax.devices()[:2], part)
    with jax.set_mesh(program.mesh):
        state = program.init(KEY)
        again, _ = program.step(state, program.put(workload.synthetic(KEY, BATCH)))
        assert state.params["w"].is_deleted()
        program.step(again, program.put(workload.synthetic(KEY, BATCH)))


def test_inference_answers_for_the_whole_batch():
    def predict(params, model_state, batch):
        return {"y": batch["x"] @ params["w"] + params["b"]}

    workload = dataclasses.replace(linear_workload(), predict=predict)
    before, after, outputs = once(workload, "inference", 2)
    jax.tree.map(np.testing.assert_array_equal, before, after)
    expected = predict(before.params, {}, workload.synthetic(KEY, BATCH))
    np.testing.assert_allclose(outputs["y"], expected["y"], rtol=1e-5, atol=1e-6)
    assert not built(workload, "inference", 2)[1].report.collectives
    assert jnp.shape(outputs["y"]) == (BATCH, 2)


def test_a_workload_that_cannot_be_asked_says_so():
    with pytest.raises(UserError, match="part=inference needs a `predict`, which 'linear' does not have: use step"):
        step_phases.build_phases(linear_workload(), jax.devices()[:1], "inference")

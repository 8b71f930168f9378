# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The current steps compiled for GPU and TPU (tests/compiled): right ones pass, wrong ones do not, and loops,
products and asynchronous pairs are parsed correctly."""

from __future__ import annotations

import dataclasses
import functools
from unittest import mock

import compiled_cases as cases
import jax
import pytest
from thin import thin

from jaxbench.catalog import targets
from jaxbench.hlo import collective_counts, operations
from jaxbench.hlo.module import parse
from jaxbench.measure import expected_communication
from jaxbench.measure.compile_report import example_flops
from jaxbench.parallel import optimizer

EVERY = [(case.name, target) for case in cases.CASES for target in case.targets]


@functools.cache
def built(name, platform="cpu"):
    """platform: the platform of the expected communication of an optimizer."""
    with mock.patch.object(optimizer, "platform", return_value=platform):
        return cases.BY_NAME[name].build(jax.devices())


@functools.cache
def verdict(name, target):
    return judged(name, target, cases.text(cases.BY_NAME[name], target))


def judged(name, target, text):
    """(the verdict on a compiled text, its collective counts)."""
    platform = targets.parse(target).platform
    workload, program = built(name, platform)
    found = collective_counts.count(parse(text), program.mesh.shape)
    with jax.set_mesh(program.mesh):
        state = jax.eval_shape(program.init, jax.ShapeDtypeStruct((2,), "uint32"))
        batch = jax.eval_shape(program.put, workload.batch_avals(cases.BATCH))
        metrics = len(jax.tree.leaves(jax.eval_shape(program.step, state, batch)[1]))
    if isinstance(program.expected, functools.partial) and "platform" in program.expected.keywords:
        program = dataclasses.replace(program, expected=functools.partial(program.expected, platform=platform))
    form, step, single = expected_communication.bounds_of(workload, program, metrics, cases.BATCH)
    widest = 2 if "bfloat16" in cases.BY_NAME[name].levers.get("reduction", "") else step.widest
    step = dataclasses.replace(step, platform=platform, widest=widest)
    return expected_communication.verify(collective_counts.flat(found), form, step, rank_0=single), found


@pytest.mark.parametrize(("name", "target"), thin(EVERY))
def test_right_steps_pass_and_wrong_ones_do_not(name, target):
    found, counted = verdict(name, target)
    assert found.ok != cases.BY_NAME[name].broken, found.reason
    assert all(each.axis and each.group > 1 for each in counted), "every group is that of a mesh axis"


@pytest.mark.parametrize("target", cases.TARGETS)
def test_a_ring_takes_its_14_steps(target):
    _, found = verdict("mlp-ring", target)
    sent = {each.kind: each.count for each in found}
    assert sent["collective-permute"] == 14


@pytest.mark.parametrize("name", ["lstm-jit_auto", "lstm-fsdp", "gpt-pipeline"])
@pytest.mark.parametrize("target", cases.TARGETS)
def test_every_loop_has_a_length(name, target):
    module = parse(cases.text(cases.BY_NAME[name], target))
    loops = [line for line in module.instructions.values() if line.opcode == "while"]
    assert loops and all(module.trip_count(loop) for loop in loops)


@pytest.mark.parametrize("name", ["mlp-jit_auto", "cnn-pmap", "lstm-jit_auto", "recsys-jit_auto"])
def test_the_products_of_a_tpu_are_those_of_the_formula(name):
    """Its compiler emits some as windows with mostly padding; a cnn had 2.1 times its FLOPs."""
    workload, program = built(name)
    counted = operations.count(parse(cases.text(cases.BY_NAME[name], "v5e:2x4")))
    assert counted is not None
    formula = example_flops(workload) * cases.BATCH / program.mesh.size
    assert counted == pytest.approx(formula, rel=0.15)

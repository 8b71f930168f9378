# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A strategy that cannot take a model says so and suggests a line; with that line it can."""

from __future__ import annotations

import brought
import jax
import pytest
from workload_cases import linear_workload

from jaxbench import parallel
from jaxbench.errors import Unsupported
from jaxbench.measure.compile_report import compile_step

LOGITS = 'logits = batch["x"] @ params["w"]'
LOOK_UP = 'logits = params["w"][batch["label"] % 3]'
WRITTEN = 'ids = batch["label"] % 3; logits = params["w"].at[ids].get(out_sharding=jax.typeof(ids).sharding)'


def compiled(path, strategy, devices=2):
    workload = brought.build(path)
    return compile_step(workload, parallel.build(strategy, workload, jax.devices()[:devices]), 8)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (LOOK_UP, "write table.at[ids].get(out_sharding=jax.typeof(ids).sharding) there"),
        (
            'logits = batch["x"] @ params["w"]; batch["x"] @ batch["x"].T',
            "give that product the out_sharding of an operand",
        ),
        ('logits = jnp.cumsum(batch["x"], axis=0) @ params["w"]', "no operation runs along the axis of examples"),
        ('logits = jax.lax.map(lambda x: x @ params["w"], batch["x"])', "no operation runs along the axis of examples"),
    ],
)
def test_an_ambiguous_explicit_sharding_is_reported_with_the_line(tmp_path, line, advice):
    path = brought.write(tmp_path, (LOGITS, line))
    with pytest.raises(Unsupported) as caught:
        compiled(path, "jit_explicit")
    sentence = str(caught.value)
    assert sentence.startswith(f"'{path}', line {brought.line_with(path, line)}: with explicit sharding")
    assert advice in sentence and "or use --config.strategy=jit_auto" in sentence


@pytest.mark.parametrize("strategy", parallel.of_any_model())
def test_the_line_that_is_advised_is_right_under_every_strategy(tmp_path, strategy):
    path = brought.write(tmp_path, (LOGITS, WRITTEN))
    workload = brought.build(path)
    jax.eval_shape(workload.loss, *jax.eval_shape(workload.init, jax.random.PRNGKey(0)), workload.batch_avals(8), None)
    assert compiled(path, strategy).report.parameters == 15


@pytest.mark.parametrize("strategy", ["jit_auto", "shard_map"])
def test_other_strategies_take_an_unchanged_look_up(tmp_path, strategy):
    assert compiled(brought.write(tmp_path, (LOGITS, LOOK_UP)), strategy).report.parameters == 15


def test_an_error_of_the_model_under_explicit_sharding_stays_its_own(tmp_path):
    path = brought.write(tmp_path, (LOGITS, 'logits = batch["x"].T @ params["w"]'))
    with pytest.raises(TypeError, match="contracting dimensions"):
        compiled(path, "jit_explicit")


@pytest.mark.parametrize("strategy", ["context", "expert", "pipeline", "tensor"])
def test_a_model_without_a_partition_is_unsupported(strategy):
    with pytest.raises(Unsupported, match="'linear'"):
        parallel.build(strategy, linear_workload(), jax.devices()[:2])

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A vocabulary that does not divide over devices gets unused rows, which change nothing."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from strategy_cases import BATCH, verdicts
from thin import thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import discovery, parallel
from jaxbench.core.program import jit_once
from jaxbench.errors import UserError
from jaxbench.parallel import axes
from jaxbench.workloads.models import gpt

WORDS, ROWS = 61, 64
SHAPE = {"model.width": 16, "model.heads": 4, "model.context": 16, "model.vocab": WORDS}


@functools.cache
def workload(rows=ROWS, layers=1):
    return experiment_workload("gpt", **{**SHAPE, "model.layers": layers, "model.padded_vocab": rows})


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
    found, collectives, report = verdicts(workload(), program, reference())
    assert found.ok, found.reason
    assert collectives.ok, collectives.reason
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

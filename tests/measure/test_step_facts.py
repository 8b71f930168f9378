# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A short training: it learns, reports its result, and is reproducible."""

import dataclasses

import jax
import pytest
from workload_cases import experiment_workload

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure.step_facts import train_briefly


@pytest.fixture(scope="module")
def mlp():
    return experiment_workload("mlp")


def trained(workload, *, steps, batch=50, devices=1):
    program = parallel.build("jit_auto", workload, jax.devices()[:devices])
    return train_briefly(workload, program, workload.data(), steps=steps, batch=batch, seed=0)


def test_more_steps_come_to_more(mlp):
    little, much = trained(mlp, steps=2), trained(mlp, steps=60)
    assert much["final_accuracy"] > 0.7 > little["final_accuracy"] and much["final_loss"] < little["final_loss"]
    assert (little["steps"], much["steps"]) == (2, 60)


def test_it_is_the_same_again_and_on_other_devices(mlp):
    once = trained(mlp, steps=5)
    assert trained(mlp, steps=5) == once
    assert trained(mlp, steps=5, devices=2) == pytest.approx(once, rel=1e-4)


def test_a_loss_that_is_no_number_is_left_out(mlp):
    broken = dataclasses.replace(mlp, loss=lambda *a: (mlp.loss(*a)[0] * float("nan"), mlp.loss(*a)[1]))
    assert "final_loss" not in trained(broken, steps=1)


def test_a_batch_larger_than_the_data_is_one_sentence(mlp):
    with pytest.raises(UserError, match="train.batch=100000 exceeds the"):
        trained(mlp, steps=1, batch=100_000)

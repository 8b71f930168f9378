# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A useless first step is named: values that are not finite, steps that change nothing."""

from __future__ import annotations

import brought
import jax
import jax.numpy as jnp
import pytest

from jaxbench.core.schema import Verdict
from jaxbench.measure import first_step

KEY = jax.random.PRNGKey(0)
LOGITS = 'logits = batch["x"] @ params["w"]'
MEAN = "return jnp.mean(each)"


def said(tmp_path, *changes, batch=None):
    """(the path of the file, the message about its first step)."""
    path = brought.write(tmp_path, *changes)
    workload = brought.build(path)
    batch = workload.synthetic(KEY, 40) if batch is None else batch
    return path, first_step.diagnosis(workload, KEY, batch, device=jax.devices()[1])


def test_nothing_is_said_of_a_step_that_is_right(tmp_path):
    assert said(tmp_path)[1] == []


def test_the_line_that_makes_a_loss_nan_is_named(tmp_path):
    path, (sentence,) = said(tmp_path, (LOGITS, f"{LOGITS}\n        logits = jnp.log(logits - 9.0)"))
    assert sentence.startswith("the loss is not finite at the first step, although")
    assert sentence.endswith(f"in '{path}', line {brought.line_with(path, 'jnp.log')}")


def test_an_infinite_loss_is_named_with_its_metrics(tmp_path):
    infinite = (MEAN, "each = each + jnp.inf\n        " + MEAN)
    _, (sentence,) = said(tmp_path, infinite, ('"accuracy"', '"all": each.sum(), "accuracy"'))
    assert sentence.startswith("the loss is not finite at the first step, nor is the metric 'all'")


def test_the_parts_of_a_loss_that_is_not_finite_are_named(tmp_path):
    _, (sentence,) = said(tmp_path, ("jax.random.normal(key, (3, 5))", "jnp.full((3, 5), jnp.nan)"))
    assert sentence == "the loss is not finite at the first step, because its inputs are not: the parameters 'w'"
    _, (sentence,) = said(tmp_path, ("jnp.zeros(5)", "jnp.full(5, jnp.inf)"))
    assert sentence.endswith(": the model's state 'mean'")
    batch = {"x": jnp.full((40, 3), jnp.nan), "label": jnp.zeros(40, jnp.int32)}
    assert said(tmp_path, batch=batch)[1][0].endswith(": the batch 'x'")


def test_a_gradient_that_is_not_finite_is_named_even_if_the_loss_is(tmp_path):
    changes = LOGITS, f"{LOGITS} + jnp.sqrt(0.0 * params['w']).sum()"
    path, (sentence,) = said(tmp_path, changes)
    assert sentence.startswith("the loss is finite, but the gradient of 'w' is not")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((LOGITS, 'logits = batch["x"] @ jax.lax.stop_gradient(params["w"])'), "every gradient is 0"),
        (("optax.sgd(0.1)", "optax.sgd(0.0)"), "is its learning rate 0?"),
    ],
)
def test_a_step_that_changes_nothing_is_named(tmp_path, change, why):
    _, (sentence,) = said(tmp_path, change)
    assert sentence.startswith("a step changes nothing: ") and why in sentence


def test_a_verdict_that_holds_is_left_alone_and_another_explained(tmp_path):
    workload = brought.build(brought.write(tmp_path, (LOGITS, f"{LOGITS} * 0.0")))
    about = {"key": KEY, "batch": workload.synthetic(KEY, 8), "device": jax.devices()[0]}
    right, collectives = (Verdict(name=name, ok=True, reason="equal") for name in ("parameters", "collectives"))
    outputs = {"loss": jnp.ones(2)}
    assert first_step.diagnosed((right, collectives), outputs, workload, **about) == (right, collectives)
    wrong = Verdict(name="parameters", ok=False, reason="far off")
    found, same = first_step.diagnosed((wrong, collectives), outputs, workload, **about)
    assert found.reason.startswith("far off; a step changes nothing") and not found.ok and same is collectives


@pytest.mark.full
def test_a_loss_that_is_not_finite_is_wrong_whatever_it_agrees_with(tmp_path):
    workload = brought.build(brought.write(tmp_path, (MEAN, "each = each + jnp.inf\n        " + MEAN)))
    about = {"key": KEY, "batch": workload.synthetic(KEY, 8), "device": jax.devices()[0]}
    right = Verdict(name="parameters", ok=True, reason="equal")
    (found,) = first_step.diagnosed((right,), {"loss": jnp.array([jnp.inf, 1.0])}, workload, **about)
    assert not found.ok and found.reason.startswith("the loss is not finite at the first step")

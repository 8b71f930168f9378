# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The correctness verdict: what passes, what fails, and what is inconclusive."""

import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from broken_strategies import communication, naive
from workload_cases import KEY, linear_workload, one_device

from jaxbench.core.schema import Verdict
from jaxbench.machine.start import LARGE, run_once_options
from jaxbench.measure import check, memory, reference, rounding
from jaxbench.parallel.step import jit_initial
from jaxbench.parallel.strategies import pmap
from jaxbench.workloads import levers

START = {"w": np.zeros(4, np.float32)}
ONE_DEVICE = {"w": np.ones(4, np.float32)}


def judge(value, start=START, **options):
    actual = reference.TrainedState({"w": np.full(4, value, np.float32)}, ())
    expected = reference.Reference(start, reference.TrainedState(ONE_DEVICE, ()))
    return check.judge(actual, expected, linear_workload(), **options)


def test_equal_passes_and_updates_hardly_larger_than_the_distance_prove_nothing():
    verdict = judge(1.0)
    assert verdict.ok
    assert verdict.value == 0.0
    assert "within 1e-05" in verdict.reason
    verdict = judge(1.0, start=ONE_DEVICE)
    assert not verdict.ok
    assert "proves nothing" in verdict.reason
    start = {"w": np.full(4, 1 - 5e-5, np.float32)}
    assert judge(1 + 1e-6, start=start).ok
    verdict = judge(1 + 8e-6, start=start)  # within the limit of 1e-5, and more than a tenth of the updates away
    assert not verdict.ok and "proves nothing" in verdict.reason


@pytest.mark.parametrize("value", [1.0001, 0.0, np.nan, np.inf])
def test_different_or_not_finite_fails(value):
    assert not judge(value).ok and "NOT within" in judge(value).reason


def test_a_batch_in_parts_has_the_same_gradient():
    workload = linear_workload()
    device = jax.devices()[0]
    state, batch = reference.initial_state(workload, KEY, device=device), workload.synthetic(KEY, 24)
    whole = reference.reference(workload, state, batch, device=device)
    parts = reference.reference(workload, state, batch, device=device, layout=reference.BatchLayout(8), apart=8)
    assert 0 < reference.relative_l2(parts.end.params, whole.start)
    assert reference.relative_l2(parts.end.params, whole.end.params) < 1e-6


def test_an_accelerator_is_allowed_its_default_precision_and_says_so():
    assert not judge(1.0003).ok
    verdict = judge(1.0003, platform="gpu")
    assert verdict.ok
    assert "TF32" in verdict.reason
    assert not judge(1.003, platform="gpu").ok


def test_beyond_the_limit_one_device_is_asked_how_far_it_is_from_itself():
    distance = 5e-5  # the limit is 1e-5
    excused = judge(1 + distance, rounding=lambda: 2e-5)
    assert excused.ok and excused.limit == pytest.approx(6e-5)
    assert "within 6e-05 (3 times the 2.0e-05 between two one-device references" in excused.reason
    for alone in (1e-5, 1e-6, 0.0, math.nan):
        assert not judge(1 + distance, rounding=lambda alone=alone: alone).ok
    hopeless = judge(1 + distance, rounding=lambda: 0.5)
    assert not hopeless.ok and "proves nothing" in hopeless.reason


@pytest.mark.parametrize("alone", [0.01, 0.03, 0.1, 1.0])
def test_no_rounding_excuses_a_tenth_of_the_updates(alone):
    assert not judge(1.11, rounding=lambda: alone).ok  # the updates moved the parameters by 1
    assert not judge(8.0, rounding=lambda: alone).ok  # a gradient that is eight times too large


def test_within_the_limit_and_for_what_is_no_number_it_is_not_asked():
    def never():
        raise AssertionError

    assert judge(1.0, rounding=never).ok
    assert not judge(math.nan, rounding=never).ok


@pytest.mark.parametrize("passes", [1, 2])
def test_the_rounding_of_a_linear_model_excuses_no_wrong_strategy(passes):
    workload, devices = linear_workload(), jax.devices()[:8]
    batch = workload.synthetic(KEY, 16)
    expected = one_device(workload, batch)
    again = rounding.rerun(expected, workload, KEY, batch, device=devices[0], layout=reference.BatchLayout(passes))
    alone = reference.relative_l2(again.params, expected.end.params)
    assert 0 <= alone < 1e-6
    program = naive.build(workload, devices)
    with jax.set_mesh(program.mesh):
        wrong = check.train(program, program.step, KEY, batch)
    assert not check.judge(wrong, expected, workload, rounding=lambda: alone).ok
    assert not check.each_proven(wrong, expected, [again])


def test_off_the_cpu_one_device_is_asked_with_its_sums_in_another_order():
    """There both answers come from the same optimised programs, so an identical rerun would have distance 0."""
    workload, device = linear_workload(), jax.devices()[0]
    batch = workload.synthetic(KEY, 48)
    state = reference.initial_state(workload, KEY, device=device)
    expected = reference.reference(workload, state, batch, device=device, layout=reference.BatchLayout(2), jit=jax.jit)
    about = {"device": device, "layout": reference.BatchLayout(2)}

    def alone(**platform):
        again = rounding.rerun(expected, workload, KEY, batch, **about, **platform)
        return reference.relative_l2(again.params, expected.end.params)

    assert alone() == 0.0
    assert 0 < alone(platform="gpu") < 1e-6


def test_a_parameter_with_only_rounding_as_gradient_is_judged_by_one_device():
    start, right = {"b": np.zeros(2), "w": np.ones(4)}, {"b": np.full(2, 0.1), "w": np.full(4, 2.0)}
    expected = reference.Reference(start, reference.TrainedState(right, ()))

    def proven(found, again):
        return check.each_proven(reference.TrainedState(found, ()), expected, [reference.TrainedState(again, ())])

    noise = {**right, "b": np.full(2, -0.1)}
    assert proven(right, None) and proven(noise, {**right, "b": np.zeros(2)})
    assert not proven(noise, right) and not proven({**right, "w": np.ones(4)}, {**right, "w": np.full(4, 1.999)})


def test_a_small_parameter_that_is_never_reduced():
    """A norm over all parameters misses it: its update is small, and so is the total difference."""
    plain = linear_workload()

    def loss(params, model_state, batch, key):
        return plain.loss({**params, "b": 1e-4 * params["b"]}, model_state, batch, key)

    workload = dataclasses.replace(plain, loss=loss)
    batch = workload.synthetic(KEY, 16)
    expected = one_device(workload, batch)

    def verdicts(program):
        actual = check.train(program, program.step, KEY, batch)
        whole = check.judge(actual, expected, workload)
        return whole, check.judge_each(whole, actual, expected, ())

    whole, each = verdicts(communication.build(workload, jax.devices()[:2], "dropped"))
    assert whole.ok and not each.ok and each.name == "parameters"
    assert "but 'b' by itself is" in each.reason and "NOT within 0.1: is it never reduced?" in each.reason
    assert each.value > each.limit == check.SHARE
    whole, each = verdicts(pmap.build(workload, jax.devices()[:2]))
    assert whole.ok and each.ok and "each parameter's update is within 0.1 too" in each.reason


def test_a_parameter_with_only_rounding_as_update_is_found_by_perturbed_runs():
    """The keys' bias of an attention has no gradient: Adam makes full-size steps of its rounding."""
    plain = linear_workload(optax.adam(0.1))

    def loss(params, model_state, batch, key):
        shift = params["b"][0]  # added before a softmax, which is invariant to it
        return -jnp.mean(jax.nn.log_softmax(batch["x"] @ params["w"] + shift) * batch["y"]), (model_state, {})

    workload = dataclasses.replace(plain, loss=loss)
    batch, device = workload.synthetic(KEY, 16), jax.devices()[0]
    state = reference.initial_state(workload, KEY, device=device)
    expected = one_device(workload, batch)
    others = list(rounding.perturbed(expected, state, batch))
    moved = [reference.relative_l2(other.params["w"], expected.end.params["w"]) for other in others]
    assert len(others) == rounding.PERTURBED and all(far < 1e-5 for far in moved)
    noise = [abs(other.params["b"] - expected.end.params["b"])[0] for other in others]
    assert max(noise) > 0.01
    bias = expected.end.params["b"] + np.float32([max(noise), 0])
    actual = reference.TrainedState({**expected.end.params, "b": bias}, ())
    assert check.each_proven(actual, expected, others) and not check.each_proven(actual, expected, ())


def test_a_step_in_bfloat16_is_perturbed_so_that_its_products_round_otherwise():
    """It does not see float32's last bit, so the rounding of its keys' bias looked like a missing reduction."""
    plain = linear_workload(optax.adam(0.01))

    def init(key):
        into, out = jax.random.split(key)
        wide, narrow = jax.random.normal(into, (3, 512)), jax.random.normal(out, (512, 8)) / 8
        return {"w": wide, "out": narrow, "b": jnp.zeros(2)}, {}

    def loss(params, model_state, batch, key):
        values = (batch["x"], params["w"], params["out"], params["b"][0])
        x, w, out, shift = (value.astype(jnp.bfloat16) for value in values)
        chosen = jax.nn.log_softmax(jnp.tanh(x @ w) @ out + shift)[:, :2]  # a softmax is invariant to the shift
        return -jnp.mean(chosen * batch["y"]).astype(jnp.float32), (model_state, {})

    workload = dataclasses.replace(plain, init=init, loss=loss)
    batch, state = workload.synthetic(KEY, 16), reference.initial_state(workload, KEY, device=jax.devices()[0])
    expected = one_device(workload, batch)
    by = rounding.rounding(workload, "cpu")
    assert by == float(jnp.finfo(jnp.bfloat16).eps) / 128 and rounding.rounding(plain, "cpu") == 0
    assert rounding.rounding(plain, "tpu") == by > rounding.rounding(plain, "gpu") > 0

    def noise(by):
        others = list(rounding.perturbed(expected, state, batch, by=by))
        # The update, not the changed start: by itself that would be far.
        assert all(reference.relative_l2(each.params["w"], expected.end.params["w"]) < 0.01 for each in others)
        return max(abs(each.params["b"] - expected.end.params["b"])[0] for each in others)

    assert 10 * noise(0.0) < 0.01 < noise(by)


def test_a_batch_that_does_not_fit_is_split_further_than_the_program_splits_it(monkeypatch):
    """A step that recomputes its blocks may train a batch that the plain reference cannot hold."""
    workload, device, batch = linear_workload(), jax.devices()[0], linear_workload().synthetic(KEY, 24)
    whole = one_device(workload, batch)
    tried = []

    def require(compiled, platform):
        tried.append(len(jax.tree.leaves(compiled.in_avals)[-1].shape) and compiled.in_avals[0][1]["x"].shape[0])
        if tried[-1] > 2:
            raise memory.Unfit("the one-device reference needs more than there is")

    monkeypatch.setattr(memory, "require", require)
    about = {"device": device, "flops": 1.0}
    found = reference.reference_that_fits(
        workload, KEY, batch, layout=reference.BatchLayout(), apart=lambda: True, **about
    )
    assert tried == [24, 6, 1] and found.how == reference.IN_PARTS
    assert reference.relative_l2(found.end.params, whole.end.params) < 1e-6
    del tried[:]
    with pytest.raises(memory.Unfit, match="needs more than there is"):
        reference.reference_that_fits(workload, KEY, batch, layout=reference.BatchLayout(), **about)
    assert tried == [24]


def test_initial_values_on_one_gpu_are_drawn_by_jaxs_kernel(monkeypatch):
    """XLA fuses the generator into every parameter, which took three quarters of a minute of a run of GPT-2."""
    drawn = jax.random.normal(KEY, (5,))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for whole in (True, False):
        lowered = []

        def draw(key, lowered=lowered):
            traced = jax.jit(lambda key: jax.random.normal(key, (5,))).trace(key)
            lowered.append(traced.lower(lowering_platforms=("cuda",)).as_text())
            return jax.random.normal(key, (5,))

        assert np.array_equal(jit_initial(draw, whole=whole)(KEY), drawn)
        # As for a compile report: in the newest jax, a jit with compiler options cannot be inside another one.
        assert jax.eval_shape(jit_initial(draw, whole=whole), KEY).shape == drawn.shape
        assert ("threefry2x32" in "".join(re.findall(r"custom_call @\w+", lowered[0]))) is whole
    assert not jax.config.values["jax_threefry_gpu_kernel_lowering"]


def test_a_reference_from_the_host_proves_no_single_parameter():
    expected = reference.Reference(START, reference.TrainedState(ONE_DEVICE, ()), note="on the host")
    actual = reference.TrainedState({"w": np.full(4, 1.5, np.float32)}, ())
    verdict = Verdict(name="parameters", ok=True, reason="near")
    assert check.judge_each(verdict, actual, expected, ()) == verdict
    expected = dataclasses.replace(expected, note="")
    assert not check.judge_each(verdict, actual, expected, ()).ok


IMAGES, LABELS, ZEROS = np.ones((2, 3), np.float32), np.array([0, 1]), np.zeros((2, 3), np.float32)
BATCHES = [
    ({"image": IMAGES, "label": LABELS}, True),
    ({"image": ZEROS, "label": LABELS}, False),
    ({"image": IMAGES, "label": np.zeros(2, int)}, True),  # labels of one class
    ({"tokens": np.zeros((2, 8), int), "weight": np.ones((2, 8), np.float32)[:, :7]}, False),
    ({"tokens": np.ones((2, 8), int), "weight": np.ones((2, 7), np.float32)}, True),
    ({"ids": np.ones((2, 8), int), "dense": ZEROS}, False),
    ({"tokens": np.zeros((2, 8), int)}, False),
]


@pytest.mark.parametrize(("batch", "right"), BATCHES)
def test_inputs_that_are_all_zeros(batch, right):
    verdict = check.judge_inputs(batch)
    assert verdict.ok is right and verdict.ok == (verdict.value <= verdict.limit)
    assert ("every input value of the batch is zero" in verdict.reason) is not right


def test_a_host_in_float32_is_allowed_a_tenth_of_the_updates():
    expected = reference.Reference(START, reference.TrainedState(ONE_DEVICE, ()), note="on the host")

    def far(distance):
        actual = reference.TrainedState({"w": np.full(4, 1 + distance, np.float32)}, ())
        return check.judge(actual, expected, linear_workload(), platform="tpu", rounding=lambda: math.nan)

    assert far(0.05).ok and "on the host" in far(0.05).reason
    assert not far(0.2).ok and not far(math.nan).ok


def test_parts_of_a_batch_under_loss_scaling_have_the_same_gradient():
    """The gradient contains the scale, and the optimizer divides by it: parts must keep the scale until then."""
    workload, device = levers.in_precision(linear_workload(optax.sgd(0.1)), "float16"), jax.devices()[0]
    state, batch = reference.initial_state(workload, KEY, device=device), workload.synthetic(KEY, 16)
    low = state.opt_state._replace(log2_scale=np.int32(6))  # nothing overflows, in parts or whole
    state = dataclasses.replace(state, opt_state=low)
    whole = reference.reference(workload, state, batch, device=device)
    parts = reference.reference(workload, state, batch, device=device, layout=reference.BatchLayout(4), apart=4)
    assert reference.relative_l2(parts.end.params, whole.start) > 0.01
    assert reference.relative_l2(parts.end.params, whole.end.params) < workload.tolerance


def test_a_scaled_loss_overflows_part_by_part_where_a_program_gives_it_parts():
    """The gradient of a part is larger than that of the batch: different skipped steps must not look like a fault."""
    workload, devices = levers.in_precision(linear_workload(optax.sgd(0.1)), "float16"), jax.devices()[:4]
    batch, program = workload.synthetic(KEY, 16), pmap.build(workload, devices)
    layout = reference.BatchLayout.of(program, uses_key=False)
    about = {"device": devices[0], "layout": layout, "flops": 1.0, "apart": lambda: True}
    expected = reference.reference_that_fits(workload, KEY, batch, **about)
    actual = check.train(program, program.step, KEY, batch)
    assert expected.how and reference.relative_l2(actual.params, expected.end.params) < workload.tolerance
    state = reference.initial_state(workload, KEY, device=devices[0])
    whole = reference.reference(workload, state, batch, device=devices[0])
    assert reference.relative_l2(actual.params, whole.end.params) > 0.01


def test_a_large_reference_is_optimised_a_little_and_its_second_program_not_at_all():
    """The same updates by two programs; the second is the reordered rerun of the first."""
    workload, device, key = linear_workload(), jax.devices()[0], jax.random.PRNGKey(3)
    about = {"device": device, "layout": reference.BatchLayout()}
    batch = workload.synthetic(key, 16)
    small, large = (reference.reference_that_fits(workload, key, batch, flops=f, **about) for f in (1e9, LARGE))
    assert small.updates.jit is reference.jit_once and large.updates.jit is not reference.jit_once
    assert reference.relative_l2(large.end.params, small.end.params) < 1e-6
    assert reference.relative_l2(rounding.rerun(large, workload, key, batch, **about).params, small.end.params) == 0
    assert run_once_options(LARGE) != run_once_options(LARGE / 2)


def float16_before_a_normalization(*, mix: bool = False):
    """A bias that a normalization over the batch takes out again. mix: the loss is that of neighbours in pairs."""
    plain = linear_workload(optax.sgd(0.5))

    def init(key):
        return {"w": jax.random.normal(key, (3, 8)), "b": jnp.zeros(8), "out": jnp.ones((8, 2)) / 8}, {}

    def loss(params, model_state, batch, key):
        x, w, b, out = (v.astype(jnp.float16) for v in (batch["x"], params["w"], params["b"], params["out"]))
        h = (x @ w + b).astype(jnp.float32)
        h = jax.nn.relu((h - jnp.mean(h, 0)) / jnp.sqrt(jnp.var(h, 0) + 1e-3)).astype(jnp.float16)
        error = (h @ out).astype(jnp.float32) - batch["y"]
        error = error[::2] * error[1::2] if mix else error
        return jnp.mean(error**2), (model_state, {})

    workload = dataclasses.replace(plain, init=init, loss=loss)
    batch = jax.device_get(workload.synthetic(KEY, 64))
    state = reference.initial_state(workload, KEY, device=jax.devices()[0])
    return state, batch, reference.reference(workload, state, batch, device=jax.devices()[0])


def test_a_gradient_that_is_only_rounding_depends_on_the_order_of_the_examples():
    state, batch, expected = float16_before_a_normalization()
    others = list(rounding.reordered(expected, state, batch, layout=reference.BatchLayout()))
    assert len(others) == rounding.REORDERED
    start, end = expected.start, expected.end.params
    for other in others:  # the bias moves by something else, and all else as before
        assert reference.relative_l2(other.params["w"], end["w"]) < 1e-3
    assert max(np.linalg.norm(other.params["b"] - end["b"]) for other in others) > 0.3 * np.linalg.norm(end["b"]) > 0
    # Another order is no excuse for a parameter with a gradient, which is the same in every order.
    actual = reference.TrainedState({**end, "b": others[0].params["b"]}, ())
    assert check.each_proven(actual, expected, others)
    wrong = reference.TrainedState({**end, "w": (end["w"] + start["w"]) / 2}, ())
    assert check.farthest(wrong, expected, others) == ("w", pytest.approx(0.5, rel=1e-3))


def test_another_order_of_examples_that_belong_together_excuses_nothing():
    state, batch, expected = float16_before_a_normalization(mix=True)
    assert not list(rounding.reordered(expected, state, batch, layout=reference.BatchLayout()))
    drawn = reference.BatchLayout(uses_key=True)
    assert not list(rounding.reordered(expected, state, batch, layout=drawn))

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The unsharded quantities that each optimizer needs, and that it gets them: the parameters agree with one device."""

from __future__ import annotations

import dataclasses
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from broken_strategies import clipping
from optax import contrib
from strategy_cases import BATCH, assert_right, verdicts
from thin import thin
from workload_cases import KEY, experiment_workload, linear_workload, one_device

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel import axes
from jaxbench.parallel.layout import Mirrored, canonical_avals, map_arrays
from jaxbench.parallel.optimizer import dependencies
from jaxbench.parallel.step import create_state, optimizer_update
from jaxbench.workloads import TrainWorkload

SHAPES = {"b": (6,), "w": (4, 6)}
LABELS = {"b": "other", "w": "matrix"}
SGD, ADAM, NORM = optax.sgd(0.1), optax.adam(0.1), optax.clip_by_global_norm(1.0)


def names(module) -> set[str]:
    """The names of a module's functions that make an optimizer, or a part of one."""
    makes = {name: str(getattr(f, "__annotations__", {}).get("return", "")) for name, f in vars(module).items()}
    return {name for name, what in makes.items() if "GradientTransformation" in what and not name.startswith("_")}


def two(matrix, other=ADAM) -> optax.GradientTransformation:
    return optax.multi_transform({"matrix": matrix, "other": other}, LABELS)


def _rated(module, names: str) -> dict:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return {name: getattr(module, name)(0.1) for name in names.split()}


def _plain(module, names: str) -> dict:
    return {name: getattr(module, name)() for name in names.split()}


def _ndim(params):
    return jax.tree.map(lambda x: x.ndim > 1, params)


SCHEDULES = {
    "constant": optax.constant_schedule(0.1),
    "cosine_decay": optax.cosine_decay_schedule(0.1, 10),
    "cosine_onecycle": optax.cosine_onecycle_schedule(10, 0.1),
    "exponential_decay": optax.exponential_decay(0.1, 3, 0.9),
    "join": optax.join_schedules([optax.constant_schedule(0.1), optax.linear_schedule(0.1, 0.0, 10)], [1]),
    "piecewise_interpolate": optax.piecewise_interpolate_schedule("cosine", 0.1, {3: 0.1, 9: 0.2}),
    "piecewise_constant": optax.piecewise_constant_schedule(0.1, {1: 0.1}),
    "polynomial": optax.polynomial_schedule(0.1, 0.01, 2, 10),
    "warmup_cosine": optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10),
}

VALUES = {
    **_rated(
        optax,
        """adabelief adadelta adagrad adam adamax adamaxw adamw adan amsgrad lion optimistic_adam optimistic_adam_v2
        optimistic_gradient_descent radam rmsprop rprop sgd sign_sgd signum yogi scale scale_by_learning_rate
        scale_by_rprop trace ema clip add_decayed_weights""",
    ),
    **_plain(
        optax,
        """identity keep_params_nonnegative scale_by_adadelta scale_by_adam scale_by_adamax scale_by_adan
        scale_by_amsgrad scale_by_belief scale_by_lion scale_by_optimistic_gradient scale_by_radam scale_by_rms
        scale_by_rss scale_by_sign scale_by_stddev scale_by_yogi set_to_zero""",
    ),
    **_rated(contrib, "acprop ademamix adopt madgrad simplified_ademamix scale_by_madgrad"),
    **_plain(
        contrib,
        """cocob schedule_free_adamw schedule_free_sgd scale_by_acprop scale_by_ademamix scale_by_adopt scale_by_cocob
        scale_by_simplified_ademamix""",
    ),
    **{f"scale_by_schedule: {name}": optax.scale_by_schedule(schedule) for name, schedule in SCHEDULES.items()},
    "sgd: momentum": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "rmsprop: centered": optax.rmsprop(0.1, centered=True, momentum=0.9),
    "apply_every": optax.chain(optax.apply_every(2), SGD),
    "chain": optax.chain(optax.clip(0.5), optax.add_decayed_weights(0.1), SGD),
    "named_chain": optax.named_chain(("clip", optax.clip(0.5)), ("adam", ADAM)),
    "conditionally_mask": optax.conditionally_mask(ADAM, lambda step, **_: step < 1),
    "conditionally_transform": optax.conditionally_transform(ADAM, lambda step, **_: step < 1),
    "freeze": optax.chain(ADAM, optax.freeze({"b": True, "w": False})),
    "selective_transform": optax.selective_transform(ADAM, freeze_mask={"b": True, "w": False}),
    "inject_hyperparams": optax.inject_hyperparams(optax.adam)(SCHEDULES["cosine_decay"]),
    "masked": optax.masked(ADAM, {"b": False, "w": True}),
    "masked: by dimensions": optax.adamw(0.1, weight_decay=0.1, mask=_ndim),
    "multi_transform": two(ADAM, optax.sgd(0.1, momentum=0.9)),
    "partition": optax.partition({"matrix": ADAM, "other": SGD}, lambda params: LABELS),
    "MultiSteps": optax.MultiSteps(ADAM, 2).gradient_transformation(),
    "schedule_free": contrib.schedule_free(SGD, 0.1),
    "split_real_and_imaginary": contrib.split_real_and_imaginary(ADAM),
    "stateless": optax.stateless(lambda updates, params: jax.tree.map(jnp.tanh, updates)),
    "stateless_with_tree_map": optax.stateless_with_tree_map(lambda update, param: update * jnp.abs(param)),
    "with_extra_args_support": optax.with_extra_args_support(ADAM),
}
REDUCTIONS = {
    **_rated(optax, "adafactor fromage lamb lars novograd clip_by_block_rms"),
    **_plain(
        optax,
        """normalize_by_update_norm scale_by_distance_over_gradients scale_by_novograd scale_by_param_block_norm
        scale_by_param_block_rms scale_by_trust_ratio zero_nans""",
    ),
    "apply_if_finite": optax.apply_if_finite(ADAM, 3),
    "chain: clip and adam": optax.chain(NORM, ADAM),
    "clip_by_global_norm": NORM,
    "dog": contrib.dog(1.0),
    "dowg": contrib.dowg(1.0),
    "inject_hyperparams: clip": optax.inject_hyperparams(optax.clip_by_global_norm)(SCHEDULES["cosine_decay"]),
    "multi_transform: lamb": two(optax.lamb(0.1)),
    "MultiSteps: finite": optax.MultiSteps(ADAM, 2, should_skip_update_fn=optax.skip_not_finite),
    "normalize": contrib.normalize(),
    "sam": contrib.sam(SGD, optax.chain(contrib.normalize(), SGD)),
    "snapshot": optax.snapshot("norm", optax.tree.norm),
}
WHOLE = {
    "add_noise": optax.add_noise(0.1, 0.5, jax.random.key(0)),
    "adafactor: of factors": optax.adafactor(0.1, min_dim_size_to_factor=2),
    "adaptive_grad_clip": optax.adaptive_grad_clip(0.01),
    "centralize": optax.centralize(),
    "chain: clip and muon": optax.chain(NORM, contrib.muon(0.1)),
    "dadapt_adamw": contrib.dadapt_adamw(estim_lr0=0.1),
    "flatten": optax.flatten(ADAM),
    "galore": contrib.galore(0.1, rank=2),
    "mechanize": contrib.mechanize(ADAM),
    "muon": contrib.muon(0.1),
    "noisy_sgd": optax.noisy_sgd(0.1, key=jax.random.key(0)),
    "prodigy": contrib.prodigy(estim_lr0=0.1),
    "scale_by_galore": contrib.scale_by_galore(rank=2),
    "scale_by_lbfgs": optax.scale_by_lbfgs(),
    "scale_by_sm3": optax.scale_by_sm3(),
    "sm3": optax.sm3(0.1),
}
# Optimizers that no step can call, by the text of the message.
MORE = "needs 'value', 'grad', and 'value_fn'"
REFUSED = {
    "lbfgs": (optax.lbfgs(), MORE),
    "lookahead": (optax.lookahead(optax.sgd(0.1), 2, 0.5), "optax.lookahead, which needs parameters of its own kind"),
    "lookahead: in a chain": (optax.chain(optax.clip(1.0), optax.lookahead(optax.adam(0.1), 5, 0.5)), "its own kind"),
    "of a class": (optax.GradientTransformation(lambda p: p.weights, lambda u, s, p: (u, s)), "no attribute 'weights'"),
    "momo": (contrib.momo(0.1), "needs 'value'"),
    "momo_adam": (contrib.momo_adam(0.1), "needs 'value'"),
    "monitor": (optax.monitor({"norm": optax.tree.norm}), "a state with another structure"),
    "polyak_sgd": (optax.polyak_sgd(), "needs 'value'"),
    "reduce_on_plateau": (contrib.reduce_on_plateau(), "needs 'value'"),
    "scale_by_backtracking_linesearch": (optax.scale_by_backtracking_linesearch(3), MORE),
    "scale_by_polyak": (optax.scale_by_polyak(), "needs 'value'"),
    "scale_by_zoom_linesearch": (optax.scale_by_zoom_linesearch(3), MORE),
    "sophia": (contrib.sophia(0.1), "needs obj_fn"),
}
# For gradients of each example, for matrices alone, for the inside of `monitor`; deprecated.
OTHERS = {
    *("differentially_private_aggregate", "dpsgd", "scale_by_muon", "measure_with_ema"),
    "inject_stateful_hyperparams",
}


TABLES = {"values": VALUES, "reductions": REDUCTIONS, "whole": WHOLE}
TABLE = [(need, name) for need, table in TABLES.items() for name in table]
CHECKED = {
    "clip and adamw": optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(0.1)),
    "decay of matrices": optax.adamw(0.1, weight_decay=0.3, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)),
    "set_to_zero": two(optax.adam(0.1), optax.set_to_zero()),
    **{name: VALUES[name] for name in ("masked", "multi_transform", "MultiSteps")},
    **{name: REDUCTIONS[name] for name in ("lamb", "lars", "apply_if_finite")},
    **{name: WHOLE[name] for name in ("adafactor: of factors", "muon", "noisy_sgd")},
}
# Optimizers that differ only for gradients that are not finite.
OF_NANS = {"apply_if_finite", "MultiSteps: finite", "zero_nans"}


def workload_of(optimizer):
    def init(key):
        keys = jax.random.split(key, len(SHAPES))
        return {name: jax.random.normal(k, shape) for k, (name, shape) in zip(keys, SHAPES.items(), strict=True)}, {}

    return TrainWorkload(name="table", init=init, loss=None, optimizer=optimizer, example={})


def test_every_optimizer_of_optax_is_in_the_table():
    if optax.__version__ != "0.2.8":
        pytest.skip("the table is of another version")
    listed = {name.partition(":")[0] for _, name in TABLE} | {*REFUSED} | OTHERS
    assert names(optax) | names(contrib) <= listed


@pytest.mark.parametrize(
    ("need", "name"),
    thin(TABLE, [one for one in TABLE if one[1] in {"masked", "lamb", "muon", "adafactor: of factors"}]),
)
def test_the_needs_of_an_optimizer_are_found(need, name):
    workload = workload_of(TABLES[need][name])
    assert dependencies(workload, create_state(workload, KEY)).name == need
    assert on_shards_as_on_the_whole(workload, nan=name in OF_NANS) == (need == "values")


def on_shards_as_on_the_whole(workload, *, nan):
    """Whether three updates of half of all arrays equal half of three updates, along any dimension."""
    state, random = create_state(workload, KEY), np.random.default_rng(0)
    mirrored = Mirrored(state)
    gradients = [{name: random.standard_normal(shape) for name, shape in SHAPES.items()} for _ in range(3)]
    for x in (x for grads in gradients for x in grads.values()):
        x[..., len(x.T) // 2 :] *= 100
        x[len(x) // 2 :] *= 100
    gradients[-1]["w"][-1, -1] = np.nan if nan else 1.0
    gradients = jax.tree.map(jnp.float32, gradients)

    def updated(state, gradients):
        for grads in gradients:
            updates, opt_state = optimizer_update(workload, grads, state.opt_state, state.params)
            state = dataclasses.replace(state, params=jax.tree.map(jnp.add, state.params, updates), opt_state=opt_state)
        return host((state.params, state.opt_state))

    def agree(half, params, opt_state):
        def halved(state):
            return mirrored.map(state, half, lambda x: x)

        expected = halved(dataclasses.replace(state, params=params, opt_state=opt_state))
        try:
            found = updated(halved(state), [half(grads) for grads in gradients])
        except (TypeError, ValueError):  # an array that is not split is combined with one that is
            return False
        pairs = zip(jax.tree.leaves(found), jax.tree.leaves((expected.params, expected.opt_state)), strict=True)
        return all(np.allclose(a, b, rtol=1e-5, atol=1e-7, equal_nan=True) for a, b in pairs)

    whole = updated(state, gradients)
    halves = [functools.partial(map_arrays, lambda x, axis=axis: jnp.split(x, 2, axis)[0]) for axis in (0, -1)]
    return all(agree(half, *whole) for half in halves)


def host(tree):
    return jax.tree.map(np.asarray, tree)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("strategy", ["jit_auto", "zero1"])
def test_an_optimizer_that_a_step_cannot_call_is_refused_in_a_sentence(name, strategy):
    optimizer, said = REFUSED[name]
    workload = linear_workload(optimizer)
    with pytest.raises(UserError, match=said):
        compile_step(workload, parallel.build(strategy, workload, jax.devices()[:2]), BATCH)


def test_shapes_that_python_sees_are_no_values_on_shards_that_differ_in_them():
    """Weight decay of matrices only: as long as matrices stay matrices, it is the same on shards."""
    workload = workload_of(VALUES["masked: by dimensions"])
    canonical = canonical_avals(workload)
    for shapes, values in (({"b": (3,), "w": (2, 6)}, True), ({"b": (3,), "w": (12,)}, False)):
        params = {name: jnp.ones(shape) for name, shape in shapes.items()}
        shards = dataclasses.replace(workload, init=lambda _, params=params: (params, {}))
        assert dependencies(workload, canonical, canonical_avals(shards)).values == values


@functools.cache
def small(name):
    """Its dimensions divide by two, and flat over eight devices."""
    workload = linear_workload(CHECKED[name])
    return workload, one_device(workload, workload.synthetic(KEY, BATCH))


EVERYWHERE = {"clip and adamw", "muon"}
SPREAD = [("zero1", 8), ("fsdp", 2)]
REST = [("zero1", 2), ("zero2", 2), ("zero2", 8), ("fsdp", 8)]


SHARDED = [(name, *where) for name in CHECKED for where in SPREAD + (REST if name in EVERYWHERE else [])]


# Each need, and each wrapper; the other cases of these kinds are in `make test-all`.
QUICK = [(name, *SPREAD[0]) for name in ("clip and adamw", "MultiSteps", "noisy_sgd", "adafactor: of factors")]
QUICK += [("decay of matrices", *SPREAD[1]), ("lamb", *SPREAD[1]), ("muon", *REST[1])]


@pytest.mark.parametrize(("name", "strategy", "devices"), thin(SHARDED, QUICK))
def test_parameters_of_one_device_and_expected_communication(name, strategy, devices):
    workload, reference = small(name)
    program = parallel.build(strategy, workload, jax.devices()[:devices])
    assert_right(workload, program, reference)


@pytest.mark.parametrize("strategy", ["jit_auto", "pmap", "zero1", "fsdp"])
def test_random_keys_of_an_optimizer_are_numbers_in_the_canonical_state(strategy):
    workload = linear_workload(CHECKED["noisy_sgd"])
    program, state = parallel.build(strategy, workload, jax.devices()[:2]), host(create_state(workload, KEY))
    with jax.set_mesh(program.mesh):
        again = host(program.export(program.load(state)))
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {"float32", "int32", "uint32"}
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert all(map(np.array_equal, jax.tree.leaves(again), jax.tree.leaves(state)))


def _first_block(params):
    return jax.tree.map_with_path(lambda path, _: "set" if "[0]" in jax.tree_util.keystr(path) else "trained", params)


CLIP = optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1, momentum=0.9))
SET = optax.multi_transform({"trained": optax.sgd(0.1), "set": optax.set_to_zero()}, _first_block)
GPT = {"model.layers": 2, "model.width": 8, "model.heads": 2, "model.context": 8, "model.vocab": 16}


@functools.cache
def model(name, optimizer):
    workload = experiment_workload(name, **(GPT if name == "gpt" else {"model.width": 8}))
    workload = dataclasses.replace(workload, optimizer=optimizer, tolerance=1e-4)
    return workload, one_device(workload, workload.synthetic(KEY, BATCH))


WHOLE = [
    ("data=2,stage=2", "gpt", CLIP, False),
    ("fsdp=2,tensor=2", "mlp", contrib.muon(1e-2), True),
    *((mesh, "gpt", CLIP, "fsdp" in mesh) for mesh in ("tensor=2", "fsdp=2,tensor=2")),
    ("stage=2", "gpt", SET, True),
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("mesh", "name", "optimizer", "gathers"), thin(WHOLE, 1), ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_model_that_is_split(mesh, name, optimizer, gathers):
    workload, reference = model(name, optimizer)
    sizes = axes.parse(mesh)
    workload = dataclasses.replace(workload, micro_batches=2 if "stage" in sizes else 1)
    devices = jax.devices()[: int(np.prod(list(sizes.values())))]
    program = parallel.load("hybrid").build(workload, devices, sizes=sizes)
    report = assert_right(workload, program, reference)
    assert ("all-gather" in {c.kind for c in report.collectives}) == gathers


@pytest.mark.parametrize("strategy", thin(["zero2", "zero1", "fsdp"], 1))
def test_clipping_by_the_norm_of_a_shard_is_caught(strategy):
    workload, reference = small("clip and adamw")
    parameters, _, _ = verdicts(workload, clipping.build(strategy, workload, jax.devices()[:2], "per_shard"), reference)
    assert not parameters.ok and "NOT within" in parameters.reason


@pytest.mark.parametrize("strategy", thin(["fsdp", "zero1"], 1))
def test_gathering_everything_for_a_norm_is_caught(strategy):
    workload, reference = small("clip and adamw")
    wrong = clipping.build(strategy, workload, jax.devices()[:2], "stray")
    parameters, collectives, _ = verdicts(workload, wrong, reference)
    assert parameters.ok and not collectives.ok
    assert "numbers by all-gather" in collectives.reason

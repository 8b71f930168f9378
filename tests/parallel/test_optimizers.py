# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The unsharded quantities that each optimizer needs, and that it gets them: the parameters agree with one device."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimizer_cases as cases
import pytest
from broken_strategies import clipping
from optax import contrib
from strategy_cases import BATCH, verdicts
from thin import thin
from workload_cases import KEY, experiment_workload, linear_workload, one_device

from jaxbench import parallel
from jaxbench.core.program import create_state, optimizer_update
from jaxbench.errors import UserError
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel import axes
from jaxbench.parallel.layout import Mirrored, canonical_avals, map_arrays
from jaxbench.parallel.optimizer import dependencies
from jaxbench.workloads import TrainWorkload

TABLES = {"values": cases.VALUES, "reductions": cases.REDUCTIONS, "whole": cases.WHOLE}
TABLE = [(need, name) for need, table in TABLES.items() for name in table]
CHECKED = {
    "clip and adamw": optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(0.1)),
    "decay of matrices": optax.adamw(0.1, weight_decay=0.3, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)),
    "set_to_zero": cases.two(optax.adam(0.1), optax.set_to_zero()),
    **{name: cases.VALUES[name] for name in ("masked", "multi_transform", "MultiSteps")},
    **{name: cases.REDUCTIONS[name] for name in ("lamb", "lars", "apply_if_finite")},
    **{name: cases.WHOLE[name] for name in ("adafactor: of factors", "muon", "noisy_sgd")},
}
# Optimizers that differ only for gradients that are not finite.
OF_NANS = {"apply_if_finite", "MultiSteps: finite", "zero_nans"}


def workload_of(optimizer):
    def init(key):
        keys = jax.random.split(key, len(cases.SHAPES))
        return {
            name: jax.random.normal(k, shape) for k, (name, shape) in zip(keys, cases.SHAPES.items(), strict=True)
        }, {}

    return TrainWorkload(name="table", init=init, loss=None, optimizer=optimizer, example={})


def test_every_optimizer_of_optax_is_in_the_table():
    if optax.__version__ != "0.2.8":
        pytest.skip("the table is of another version")
    listed = {name.partition(":")[0] for _, name in TABLE} | {*cases.REFUSED} | cases.OTHERS
    assert cases.names(optax) | cases.names(contrib) <= listed


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
    gradients = [{name: random.standard_normal(shape) for name, shape in cases.SHAPES.items()} for _ in range(3)]
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


@pytest.mark.parametrize("name", cases.REFUSED)
@pytest.mark.parametrize("strategy", ["jit_auto", "zero1"])
def test_an_optimizer_that_a_step_cannot_call_is_refused_in_a_sentence(name, strategy):
    optimizer, said = cases.REFUSED[name]
    workload = linear_workload(optimizer)
    with pytest.raises(UserError, match=said):
        compile_step(workload, parallel.build(strategy, workload, jax.devices()[:2]), BATCH)


def test_shapes_that_python_sees_are_no_values_on_shards_that_differ_in_them():
    """Weight decay of matrices only: as long as matrices stay matrices, it is the same on shards."""
    workload = workload_of(cases.VALUES["masked: by dimensions"])
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
    parameters, collectives, _ = verdicts(workload, program, reference)
    assert parameters.ok, parameters.reason
    assert collectives.ok, collectives.reason


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
    parameters, collectives, report = verdicts(workload, program, reference)
    assert parameters.ok, parameters.reason
    assert collectives.ok, collectives.reason
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

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A correct trainer in plain JAX, and one function for each way to get its step wrong."""

import itertools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench import OwnStep, StepWorkload

optimizer = optax.adam(1e-2)
AXIS = "data"


def loss_of(params, batch, key=None):
    hidden = jax.nn.relu(batch["x"] @ params["up"] + params["bias"])
    if key is not None:
        hidden = jnp.where(jax.random.bernoulli(key, 0.5, hidden.shape), hidden * 2, 0)
    return optax.softmax_cross_entropy_with_integer_labels(hidden @ params["down"], batch["y"]).mean()


def updated(state, grads):
    updates, opt_state = optimizer.update(grads, state["opt_state"])
    return {"params": optax.apply_updates(state["params"], updates), "opt_state": opt_state}


@jax.jit
def train_step(state, batch):
    loss, grads = jax.value_and_grad(loss_of)(state["params"], batch)
    return updated(state, grads), {"loss": loss}


def initial():
    up, down = jax.random.split(jax.random.key(0))
    params = {"up": jax.random.normal(up, (16, 32)) / 4, "bias": jnp.zeros(32)}
    params["down"] = jax.random.normal(down, (32, 4)) / 6
    return {"params": params, "opt_state": optimizer.init(params)}


def layouts(devices):
    mesh = Mesh(np.array(devices), (AXIS,))
    return mesh, NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(AXIS))


def data(batch):
    x = np.random.default_rng(0).normal(size=(batch, 16)).astype(np.float32)
    return {"x": x, "y": (np.arange(batch) % 4).astype(np.int32)}


def right(devices, batch):
    _, whole, split = layouts(devices)
    return OwnStep(
        step=train_step,
        init=lambda: jax.device_put(initial(), whole),
        batch=jax.device_put(data(batch), split),
        parameters=lambda state: state["params"],
    )


def whole_batch(devices, batch):
    _, whole, _ = layouts(devices)
    return replace(right(devices, batch), batch=jax.device_put(data(batch), whole))


def mapped(devices, batch, reduce, rate=None):
    """The step in shard_map. reduce: (gradients of a device, steps before) -> of all."""
    mesh, whole, split = layouts(devices)

    def on_device(state, batch):
        params = jax.lax.pcast(state["params"], (AXIS,), to="varying")
        key = None if rate is None else jax.random.fold_in(jax.random.key(1), jax.lax.axis_index(AXIS))
        loss, grads = jax.value_and_grad(loss_of)(params, batch, key)
        return updated(state, reduce(grads, state["opt_state"][0].count)), {"loss": jax.lax.pmean(loss, AXIS)}

    spec = PartitionSpec()
    step = jax.shard_map(
        on_device, mesh=mesh, in_specs=(spec, PartitionSpec(AXIS)), out_specs=(spec, spec), check_vma=False
    )
    return replace(right(devices, batch), step=jax.jit(step))


def mean(grads, count):
    return jax.lax.pmean(grads, AXIS)


def without_bias(grads, count):
    return {**mean(grads, count), "bias": grads["bias"]}


def mean_at_first(grads, count):
    """Only the steps that are compared with one device before anything is timed are right."""
    return jax.tree.map(lambda all, one: jnp.where(count < 3, all, one), mean(grads, count), grads)


def soon_learnt(devices, batch):
    """A step that reaches its minimum exactly, and then moves no parameter."""

    def step(state, batch):
        far = state["params"]["bias"] - batch["y"].mean()
        return {**state, "params": {**state["params"], "bias": state["params"]["bias"] - 0.5 * far}}, {
            "loss": far.max()
        }

    return replace(right(devices, batch), step=step)


def another_batch(devices, batch):
    _, _, split = layouts(devices)
    rows = data(4 * batch)

    def of_step(step):
        at = step % 4 * batch
        return jax.device_put({name: x[at : at + batch] for name, x in rows.items()}, split)

    return replace(right(devices, batch), batch=of_step)


def step_counter(devices, batch):
    """A state with a number that the step counts, a flag, a function and a key, and a step that is not jitted."""
    own = right(devices, batch)

    def init():
        key = jax.device_put(jax.random.key(3), layouts(devices)[1])
        return {**own.init(), "count": 0, "on": True, "act": jax.nn.relu, "key": key}

    def step(state, batch):
        new, metrics = train_step({name: state[name] for name in ("params", "opt_state")}, batch)
        more = {"count": state["count"] + 1, "key": jax.random.split(state["key"])[0]}
        return {**state, **new, **more}, metrics if state["on"] else {}

    return replace(own, step=step, init=init)


def fsdp(devices, batch):
    mesh, whole, split = layouts(devices)
    wide = NamedSharding(mesh, PartitionSpec(None, AXIS))

    def placed(path, x):
        return jax.device_put(x, wide if "up" in jax.tree_util.keystr(path) else whole)

    def step(state, batch):
        new, metrics = train_step(state, batch)
        return jax.lax.with_sharding_constraint(new, jax.tree.map_with_path(lambda p, x: on(p), new)), metrics

    def on(path):
        return wide if "up" in jax.tree_util.keystr(path) else whole

    init = lambda: jax.tree_util.tree_map_with_path(placed, initial())  # noqa: E731
    return replace(right(devices, batch), init=init, step=step)


RIGHT = {
    "jitted": right,
    "shard_map": partial(mapped, reduce=mean),
    "another batch": another_batch,
    "a state with numbers, flags, functions and keys": step_counter,
    "fsdp": fsdp,
}


def numpy_batch(devices, batch):
    return replace(right(devices, batch), batch=data(batch))


def one_device(devices, batch):
    return right(devices[:1], batch)


def other_init(devices, batch):
    own, calls = right(devices, batch), itertools.count()

    def init():
        state = own.init()
        state["params"]["bias"] = state["params"]["bias"] + next(calls)
        return state

    return replace(own, init=init)


def changed(devices, batch, change):
    """A step with this change of its new state."""
    own = right(devices, batch)

    def step(state, batch):
        new, metrics = train_step(state, batch)
        return change(new), metrics

    return replace(own, step=step)


def half(state):
    return {**state, "params": {**state["params"], "up": state["params"]["up"].astype(jnp.bfloat16)}}


def without_optimizer(state):
    return {"params": state["params"]}


def spread_out(devices, batch):
    _, _, split = layouts(devices)

    def spread(state):
        up = jax.lax.with_sharding_constraint(state["params"]["up"], split)
        return {**state, "params": {**state["params"], "up": up}}

    return changed(devices, batch, spread)


def loss_only(devices, batch):
    return replace(right(devices, batch), step=lambda state, batch: train_step(state, batch)[1]["loss"])


def jit_in_each_step(devices, batch):
    return replace(right(devices, batch), step=lambda *given: jax.jit(lambda *args: train_step(*args))(*given))


def python_counter(devices, batch):
    calls = itertools.count(1)

    def step(state, batch):
        new, metrics = train_step(state, batch)
        return new, {**metrics, "scaled": metrics["loss"] * next(calls)}

    return replace(right(devices, batch), step=step)


def inner_options(devices, batch):
    step = jax.jit(train_step.__wrapped__, compiler_options={"xla_backend_optimization_level": 0})
    return replace(right(devices, batch), step=step)


def not_an_own_step(devices, batch):
    return train_step


# By case: (make, the batch, what the sentence says).
REFUSED = {
    "a NumPy batch": (numpy_batch, 8, "has a NumPy array at 'x', which every step would send"),
    "make ignores devices": (one_device, 8, "puts the state and the batch on 1 of 2 devices"),
    "init differs": (other_init, 8, "gives other values at its second call ('params/bias')"),
    "another dtype": (
        partial(changed, change=half),
        8,
        "returns 'params/up' as bfloat16[16,32], and it was",
    ),
    "another structure": (partial(changed, change=without_optimizer), 8, "it returns a state without 'opt_state"),
    "another sharding": (spread_out, 8, "'params/up' goes in as P() and comes out as P('data'"),
    "a loss only": (loss_only, 8, "not (state, metrics): wrap it in a function"),
    "a new jit in each step": (jit_in_each_step, 8, "makes a new jitted function in each call, so each step compiles"),
    "a Python counter": (python_counter, 8, "traces to another program at its second call"),
    "inner compiler options": (inner_options, 8, "has a jax.jit with compiler_options inside"),
    "a batch that does not divide": (right, 7, "Choose a --config.batch that divides over the devices"),
    "no OwnStep": (not_an_own_step, 8, "return an OwnStep"),
}
# By case: (make, the name of the check that fails or is unknown, what it says).
WRONG = {
    "no mean of the gradients": (partial(mapped, reduce=lambda grads, count: grads), "parameters", "NOT within"),
    "a sum of the gradients": (
        partial(mapped, reduce=lambda g, count: jax.lax.psum(g, AXIS)),
        "state",
        "wrong gradient scale",
    ),
    "one gradient is never reduced": (partial(mapped, reduce=without_bias), "parameters", "NOT within"),
    "the whole batch on each device": (whole_batch, "devices", "do NOT share the work"),
    "random numbers of each device": (
        partial(mapped, reduce=mean, rate=0.5),
        "parameters",
        "each device draws random numbers of its own",
    ),
}


def workload(make, batch=8):
    return StepWorkload(name="broken", make=make, batch=batch, unit="rows")

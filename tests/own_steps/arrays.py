# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""States of a train step with averages, counts, codes and masks next to the parameters: kept rightly, and not.

Each device has its part of the batch in `shard_map`, so a sum over the devices is easily forgotten.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench import OwnStep, StepWorkload

AXIS = "data"
ROWS, WIDTH, CLASSES = 16, 8, 4


def rows(batch, seed=0):
    random = np.random.default_rng(seed)
    return {
        "x": random.normal(size=(batch, ROWS)).astype(np.float32),
        "y": random.integers(0, CLASSES, batch).astype(np.int32),
    }


def first():
    up, down = jax.random.split(jax.random.key(0))
    return {
        "up": jax.random.normal(up, (ROWS, WIDTH)) / 4,
        "bias": jnp.zeros(WIDTH),
        "down": jax.random.normal(down, (WIDTH, CLASSES)) / 4,
    }


def loss_of(params, batch, dtype=jnp.float32):
    half = jax.tree.map(lambda x: x.astype(dtype), params)
    hidden = batch["x"].astype(dtype) @ half["up"] + half["bias"]
    mean, var = hidden.mean(0), hidden.var(0)
    logits = (jax.nn.relu(hidden) @ half["down"]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean(), (mean, var)


def normed_loss(params, batch, dtype=jnp.float32):
    """With a batch normalization over all devices, which makes the bias useless."""
    half = jax.tree.map(lambda x: x.astype(dtype), params)
    hidden = batch["x"].astype(dtype) @ half["up"] + half["bias"]
    mean = jax.lax.pmean(hidden.mean(0), AXIS)
    var = jax.lax.pmean(jnp.square(hidden - mean).mean(0), AXIS)
    hidden = (hidden - mean) * jax.lax.rsqrt(var + jnp.asarray(1e-5, dtype))
    logits = (jax.nn.relu(hidden) @ half["down"]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean(), (mean, var)


def mean(grads):
    return jax.lax.pmean(grads, AXIS)


def total(x):
    return jax.lax.psum(x, AXIS)


def kept(
    devices,
    batch,
    *,
    more=None,
    change=None,
    optimizer=None,
    reduce=mean,
    loss=loss_of,
    own=False,
    mine=(),
    by_step=False,
):
    """A step in shard_map.

    more: devices -> further arrays of the state. change: (state, new parameters, batch of a device, (mean, var) of a
    hidden layer there, devices) -> their new values. reduce: of the gradients. own: `parameters` returns the whole
    state. mine: names of further arrays with a leading axis of devices. by_step: another batch in each step.
    """
    mesh, count = Mesh(np.array(devices), (AXIS,)), len(devices)
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(AXIS))
    tx = optimizer or optax.adam(1e-2)
    extra = more(count) if more else {}

    def on_device(state, batch):
        params = jax.lax.pcast(state["params"], (AXIS,), to="varying")
        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params, batch)
        updates, opt = tx.update(reduce(grads), state["opt"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        new = change(state, params, batch, stats, count) if change else {}
        return {**state, "params": params, "opt": opt, **new}, {"loss": jax.lax.pmean(value, AXIS)}

    spec = {name: PartitionSpec(AXIS) if name in mine else PartitionSpec() for name in ("params", "opt", *extra)}
    step = jax.shard_map(
        on_device, mesh=mesh, in_specs=(spec, PartitionSpec(AXIS)), out_specs=(spec, PartitionSpec()), check_vma=False
    )

    def init():
        params = first()
        state = {"params": params, "opt": tx.init(params), **(more(count) if more else {})}
        place = {name: split if name in mine else whole for name in state}
        return {name: jax.device_put(x, place[name]) for name, x in state.items()}

    def batch_of(number):
        return jax.device_put(rows(batch, number), split)

    return OwnStep(
        step=jax.jit(step),
        init=init,
        batch=batch_of if by_step else batch_of(0),
        parameters=(lambda state: state) if own else (lambda state: state["params"]),
    )


def average(decay, several=True):
    """An average of the parameters. several: also on several devices."""

    def more(count):
        return {"ema": first()}

    def change(state, params, batch, stats, count):
        if count > 1 and not several:
            return {}
        return {"ema": jax.tree.map(lambda a, b: decay * a + (1 - decay) * b, state["ema"], params)}

    return {"more": more, "change": change}


def stochastic_average(step):
    """The average of the weights since the start (SWA). step: devices -> by how much a step counts."""

    def change(state, params, batch, stats, count):
        made = state["made"] + step(count)
        swa = jax.tree.map(lambda a, b: a + (b - a) / made, state["swa"], params)
        return {"swa": swa, "made": made}

    return {"more": lambda count: {"swa": first(), "made": jnp.int32(1)}, "change": change}


def counted(reduce):
    def change(state, params, batch, stats, count):
        return {"seen": {"examples": state["seen"]["examples"] + reduce(jnp.int32(len(batch["y"])))}}

    return {"more": lambda count: {"seen": {"examples": jnp.int32(0)}}, "change": change}


def histogram(reduce):
    def change(state, params, batch, stats, count):
        return {"seen": state["seen"] + reduce(jnp.zeros(CLASSES, jnp.uint32).at[batch["y"]].add(1))}

    return {"more": lambda count: {"seen": jnp.zeros(CLASSES, jnp.uint32)}, "change": change}


def mask(reduce):
    """Which examples' classes were met: a truth value for each."""

    def change(state, params, batch, stats, count):
        here = jnp.zeros(CLASSES, jnp.int32).at[batch["y"]].max(1)
        return {"met": state["met"] | (reduce(here) > 0)}

    return {"more": lambda count: {"met": jnp.zeros(CLASSES, bool)}, "change": change}


def statistics(reduce):
    def change(state, params, batch, stats, count):
        return {"stats": jax.tree.map(lambda a, b: 0.9 * a + 0.1 * reduce(b), state["stats"], stats)}

    return {"more": lambda count: {"stats": (jnp.zeros(WIDTH), jnp.ones(WIDTH))}, "change": change}


def loss_average(reduce):
    def change(state, params, batch, stats, count):
        return {"level": 0.9 * state["level"] + 0.1 * reduce(stats[1].mean())}

    return {"more": lambda count: {"level": jnp.float32(0)}, "change": change}


def coded(dtype, several=True):
    """An average of the parameters in few bits."""
    largest = 127 if dtype == jnp.int8 else 200

    def code(x):
        x = x * largest
        return (jnp.round(x) if dtype == jnp.int8 else x).astype(dtype)

    def change(state, params, batch, stats, count):
        if count > 1 and not several:
            return {}
        return {
            "codes": jax.tree.map(lambda a, b: code((a.astype(jnp.float32) / largest + b) / 2), state["codes"], params)
        }

    return {"more": lambda count: {"codes": jax.tree.map(code, first())}, "change": change}


def frozen(count):
    return {"table": jax.random.normal(jax.random.key(7), (512, 64)) * 100}


def each_device(count):
    """Keys, counts and batch statistics of each device, with a leading axis of devices."""
    return {
        "key": jax.random.split(jax.random.key(3), count),
        "raw_rng": jax.random.key_data(jax.random.split(jax.random.key(4), count)),
        "seen": jnp.zeros(count, jnp.int32),
        "stats": jnp.zeros((count, WIDTH)),
    }


def of_each_device(state, params, batch, stats, count):
    return {
        "key": jax.vmap(lambda key: jax.random.split(key)[0])(state["key"]),
        "raw_rng": state["raw_rng"] + 1,
        "seen": state["seen"] + len(batch["y"]),
        "stats": 0.9 * state["stats"] + 0.1 * stats[0],
    }


def by_hand(every):
    """Gradients added up over some steps, in a plain step under jit."""

    def make(devices, batch):
        own = kept(devices, batch)
        mesh = Mesh(np.array(devices), (AXIS,))
        whole = NamedSharding(mesh, PartitionSpec())

        def step(state, batch):
            grads = jax.grad(lambda p: loss_of(p, batch)[0])(state["params"])
            added = jax.tree.map(jnp.add, state["added"], grads)
            now = (state["count"] + 1) % every == 0
            params = jax.tree.map(lambda p, g: jnp.where(now, p - 0.1 * g / every, p), state["params"], added)
            added = jax.tree.map(lambda g: jnp.where(now, 0, g), added)
            return {"params": params, "added": added, "count": state["count"] + 1}, {}

        def init():
            params = first()
            state = {"params": params, "added": jax.tree.map(jnp.zeros_like, params), "count": jnp.int32(0)}
            return jax.device_put(state, whole)

        return replace(own, step=jax.jit(step), init=init)

    return make


def in_half(dtype, optimizer, reduce=mean):
    """With a bias before a batch normalization, which moves by rounding alone. Gradients are reduced in the dtype."""

    def reduced(grads):
        return jax.tree.map(lambda g: g.astype(jnp.float32), reduce(jax.tree.map(lambda g: g.astype(dtype), grads)))

    return partial(kept, loss=partial(normed_loss, dtype=dtype), reduce=reduced, optimizer=optimizer)


def without(name):
    """A mean of the gradients but one, which stays that of each device."""
    return lambda grads: {**mean(grads), name: grads[name]}


def empty(devices, batch):
    """A state with an array of no numbers."""
    return kept(devices, batch, more=lambda count: {"none": jnp.zeros((0, 3)), "no_codes": jnp.zeros(0, jnp.int8)})


def held_everywhere(devices, batch):
    """Batch statistics of each device in arrays that say that they are the same everywhere."""
    return kept(devices, batch, **statistics(lambda x: x))


def same(x):
    return x


SLOW, SGD = optax.MultiSteps(optax.sgd(0.1), 4), optax.sgd(0.1)
# By case: (make, what the sentence of the failed check says).
WRONG = {
    "an average of decay 0.999 never updated": (
        partial(kept, **average(0.999, several=False)),
        "'ema/up' does NOT move",
    ),
    "an average of decay 0.9999 never updated": (partial(kept, **average(0.9999, several=False)), "does NOT move"),
    "an average among the parameters never updated": (
        partial(kept, **average(0.999, several=False), own=True),
        "'ema/",
    ),
    "an average of weights that counts devices": (partial(kept, **stochastic_average(same)), "'made' differs"),
    "a count of a part": (
        partial(kept, **counted(same)),
        "'seen/examples' differs: 12 on 2 devices and 24 on one device",
    ),
    "a histogram of a part": (partial(kept, **histogram(same)), "'seen' differs: in "),
    "a mask of a part": (partial(kept, **mask(same)), "'met' differs"),
    "batch statistics of a part": (held_everywhere, "'stats/"),
    "an average of a part": (partial(kept, **loss_average(same)), "'level'"),
    "codes of 8 bits never updated": (partial(kept, **coded(jnp.int8, several=False)), "'codes/"),
    "numbers of 8 bits never updated": (partial(kept, **coded(jnp.float8_e4m3fn, several=False)), "'codes/"),
    "a sum of gradients next to a large frozen array": (partial(kept, more=frozen, reduce=total), "'opt/0/"),
    "a sum of gradients next to a large frozen parameter": (
        partial(kept, more=frozen, reduce=total, own=True, optimizer=SGD),
        "NOT within",
    ),
    "an array that is never reduced, in bfloat16": (in_half(jnp.bfloat16, SGD, without("down")), "'params/down'"),
    "a useless bias that is never reduced": (
        partial(kept, loss=normed_loss, reduce=without("bias"), optimizer=SGD),
        "'params/bias'",
    ),
    "a useless bias that is never reduced, in bfloat16": (in_half(jnp.bfloat16, SGD, without("bias")), "'params/bias'"),
    "a sum of gradients that counts in one of four steps": (partial(kept, optimizer=SLOW, reduce=total), "NOT within"),
}
# By case: (make, what a check says).
RIGHT = {
    "an average of decay 0.999": (partial(kept, **average(0.999)), "9 other arrays"),
    "an average of decay 0.9999, another batch in each step": (partial(kept, **average(0.9999), by_step=True), ""),
    "an average of weights": (partial(kept, **stochastic_average(lambda count: 1)), ""),
    "a count": (partial(kept, **counted(total)), "2 arrays of whole numbers are equal"),
    "a histogram": (partial(kept, **histogram(total)), "2 arrays of whole numbers are equal"),
    "a mask": (partial(kept, **mask(total)), ""),
    "batch statistics": (partial(kept, loss=normed_loss, **statistics(mean)), ""),
    "codes of 8 bits": (partial(kept, **coded(jnp.int8)), ""),
    "numbers of 8 bits": (partial(kept, **coded(jnp.float8_e4m3fn)), ""),
    "a large frozen array": (partial(kept, more=frozen), "1 did not move"),
    "arrays of each device": (
        partial(kept, more=each_device, change=of_each_device, mine=("key", "raw_rng", "seen", "stats")),
        "'seen' count the part of each device",
    ),
    "one in four steps": (partial(kept, optimizer=SLOW), "after 4 steps"),
    "gradients added up over six steps": (by_hand(6), "after 6 steps"),
    "a bias before a batch normalization in float16, SGD": (in_half(jnp.float16, SGD), ""),
    "a bias before a batch normalization in bfloat16, Adam": (in_half(jnp.bfloat16, optax.adam(1e-2)), ""),
    "a bias before a batch normalization in bfloat16, SGD": (in_half(jnp.bfloat16, SGD), ""),
    "a bias before a batch normalization in float32": (
        partial(kept, loss=normed_loss),
        "'params/bias', moved by rounding",
    ),
    "arrays without numbers": (empty, ""),
}


def workload(make, batch=8):
    return StepWorkload(name="arrays", make=make, batch=batch, unit="rows")

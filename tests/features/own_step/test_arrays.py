# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each array of a user's state is compared by its own movement, and what a run calls is what `try` calls."""

import threading
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from doorway import ROOT, jaxbench
from flax.training.dynamic_scale import DynamicScale
from jax.sharding import NamedSharding, PartitionSpec
from own_steps import arrays, broken
from own_steps.checked import bench_of, checks, point_of
from thin import thin

from jaxbench.errors import UserError
from jaxbench.features.own_step import requests
from jaxbench.features.own_step.program import build
from jaxbench.features.own_step.recipe import fence_of

QUICK_WRONG = [
    "an average of decay 0.999 never updated",
    "a count of a part",
    "batch statistics of a part",
    "a sum of gradients next to a large frozen array",
    "a useless bias that is never reduced, in bfloat16",
]
QUICK_RIGHT = ["codes of 8 bits", "arrays of each device", "one in four steps", "arrays without numbers"]


@pytest.mark.parametrize("case", thin([*arrays.WRONG], QUICK_WRONG))
def test_an_array_that_devices_keep_otherwise_is_named(case, tmp_path, monkeypatch):
    make, says = arrays.WRONG[case]
    found, _ = checks(arrays.workload(make), tmp_path, monkeypatch)
    bad = [check for check in found.values() if not check.ok]
    assert bad and not any(check.unchecked for check in bad), found
    assert any(says in check.reason for check in bad), bad


@pytest.mark.parametrize("case", thin([*arrays.RIGHT], QUICK_RIGHT))
def test_what_devices_may_keep_is_right(case, tmp_path, monkeypatch):
    make, says = arrays.RIGHT[case]
    found, _ = checks(arrays.workload(make), tmp_path, monkeypatch, timed=3)
    assert all(check.ok for check in found.values()), found
    assert any(says in check.reason for check in found.values()), found


def scaled(devices, batch, first):
    """A step in float16 with a loss scale that begins with `first`."""
    own = arrays.kept(devices, batch)
    whole, tx = NamedSharding(broken.layouts(devices)[0], PartitionSpec()), optax.adam(1e-2)

    def init():
        params, scale = arrays.first(), DynamicScale(scale=jnp.float32(first), fin_steps=jnp.int32(0))
        return jax.device_put({"params": params, "opt": tx.init(params), "scale": scale}, whole)

    def step(state, batch):
        def loss(params):
            return arrays.loss_of(params, batch, jnp.float16)[0].astype(jnp.float32)

        scale, finite, value, grads = state["scale"].value_and_grad(loss)(state["params"])
        updates, opt = tx.update(grads, state["opt"])
        new = {"params": optax.apply_updates(state["params"], updates), "opt": opt}
        old = {name: state[name] for name in new}
        return {**jax.tree.map(partial(jnp.where, finite), new, old), "scale": scale}, {"loss": value}

    return replace(own, step=jax.jit(step), init=init)


def test_steps_that_overflow_are_followed_by_more(tmp_path, monkeypatch):
    found, _ = checks(broken.workload(partial(scaled, first=2.0**24)), tmp_path, monkeypatch)
    assert all(check.ok for check in found.values()), found
    assert "16-bit rounding" in found["parameters"].reason or "in another order" in found["parameters"].reason


def test_a_loss_scale_that_only_falls_is_named(tmp_path, monkeypatch):
    found, _ = checks(broken.workload(partial(scaled, first=2.0**100)), tmp_path, monkeypatch)
    assert found["parameters"].unchecked
    assert "no parameter changed in 16 steps, and 'scale/scale' fell from" in found["parameters"].reason


def test_a_batch_that_depends_on_the_devices_at_a_later_step_proves_nothing(tmp_path, monkeypatch):
    def make(devices, batch):
        own = arrays.kept(devices, batch, by_step=True)
        of = own.batch
        return replace(own, batch=lambda step: of(step if step < 2 else step + len(devices)))

    found, _ = checks(arrays.workload(make), tmp_path, monkeypatch)
    assert found["parameters"].unchecked and "the batch of step 2 on 2 devices has other values" in str(found)


def test_an_average_with_another_first_value_is_not_called_wrong(tmp_path, monkeypatch):
    def make(devices, batch):
        own = arrays.kept(devices, batch, **arrays.average(0.999))
        other = lambda state: {**state, "ema": jax.tree.map(lambda x: x + len(devices), state["ema"])}  # noqa: E731
        return replace(own, init=lambda: other(own.init()))

    found, _ = checks(arrays.workload(make), tmp_path, monkeypatch)
    assert found["state"].unchecked and "init gives other values of 'ema/" in found["state"].reason


def made_outside(devices, batch):
    """`jax.device_put` of a state that lies there already makes no copy."""
    own = arrays.kept(devices, batch)
    whole = NamedSharding(broken.layouts(devices)[0], PartitionSpec())
    params = arrays.first()
    state = {"params": params, "opt": optax.adam(1e-2).init(params)}
    return replace(own, init=lambda: jax.device_put(state, whole))


def half_outside(devices, batch):
    """Only the optimizer's state is made outside, and `init` computes with it."""
    own = arrays.kept(devices, batch)
    whole = NamedSharding(broken.layouts(devices)[0], PartitionSpec())
    opt = jax.device_put(optax.adam(1e-2).init(arrays.first()), whole)
    return replace(own, init=lambda: {"params": jax.device_put(arrays.first(), whole), "opt": jax.tree.map(same, opt)})


def same(x):
    return jnp.asarray(x)


@pytest.mark.parametrize("make", [made_outside, half_outside])
@pytest.mark.parametrize("verb", ["run", "try"])
def test_a_first_state_that_a_step_has_donated_gets_a_sentence(make, verb, tmp_path, monkeypatch):
    bench, point = bench_of(arrays.workload(make), 2, monkeypatch), point_of(2, 8).to_json()
    with pytest.raises(Exception) as caught:
        bench.prepare(point) if verb == "run" else requests.explain(bench, point)
    error = caught.value.__cause__
    assert isinstance(error, UserError) and "returns arrays again that a step has donated" in str(error), error


def test_try_says_what_run_says_of_the_timed_state(tmp_path, monkeypatch):
    late = broken.workload(partial(broken.mapped, reduce=broken.mean_at_first))
    file = tmp_path / "reference.npz"
    requests.refer(bench_of(late, 1, monkeypatch), point_of(1, 8).to_json(), str(file))
    bench = bench_of(late, 2, monkeypatch)
    bench.steps.proof.reference = {"file": str(file), "devices": 1}
    found = {check.name: check for check in requests.explain(bench, point_of(2, 8).to_json()).checks}
    assert found["parameters"].ok and not found["timed update"].ok, found


ROWS = {
    "rows": lambda n, b: {"x": (b, 16), "y": (b,)},
    "of devices": lambda n, b: {"x": (n, b // n, 16), "y": (n, b // n)},
    "of micro-batches of devices": lambda n, b: {"x": (2, n, b // n // 2, 16)},
    "time first": lambda n, b: {"x": (16, b, 4), "y": (16, b)},
    "tokens one after the other": lambda n, b: {"tokens": (b * 5,)},
    "with weights of classes": lambda n, b: {"x": (b, 16), "classes": (4,)},
}
OTHER_ROWS = {
    "rows": lambda n, b: {"x": (96, 16), "y": (96,)},
    "twice as many": lambda n, b: {"x": (2 * b, 16), "y": (2 * b,)},
    "of devices": lambda n, b: {"x": (n, 6, 16), "y": (n, 6)},
    "rows times width": lambda n, b: {"x": (2, b // 2), "y": (2,)},
    "the batch of each device": lambda n, b: {"x": (b // n, 16), "y": (b // n,)},
}


def of_shapes(shapes, devices, batch):
    whole = NamedSharding(broken.layouts(devices)[0], PartitionSpec())
    made = {name: np.ones(shape, np.float32) for name, shape in shapes(len(devices), batch).items()}
    return replace(broken.right(devices, batch), batch=jax.device_put(made, whole))


@pytest.mark.parametrize("case", [*ROWS, *(f"not {case}" for case in OTHER_ROWS)])
def test_the_batch_has_as_many_rows_as_were_asked_for(case):
    shapes = OTHER_ROWS[case.removeprefix("not ")] if case.startswith("not ") else ROWS[case]
    workload = replace(broken.workload(partial(of_shapes, shapes)), unit="tokens", units_per_example=5)
    if not case.startswith("not "):
        build(workload, jax.devices()[:2], 8)
        return
    with pytest.raises(UserError, match=r"but 8 examples were asked for"):
        build(workload, jax.devices()[:2], 8)


def test_the_fence_waits_for_what_a_batch_has_started_in_another_thread():
    heavy, started = jax.jit(lambda x: jax.lax.fori_loop(0, 150, lambda _, x: jnp.tanh(x @ x), x)), []
    x = jnp.ones((400, 400))
    heavy(x).block_until_ready()
    fence = fence_of(jax.local_devices()[:1])
    thread = threading.Thread(target=lambda: started.append(heavy(x)))
    thread.start()
    thread.join()
    assert not started[0].is_ready()
    fence(())
    assert started[0].is_ready()


def test_a_step_with_another_batch_each_time_is_timed_with_that_fence(monkeypatch):
    def fence_for(make):
        bench = bench_of(arrays.workload(make), 2, monkeypatch)
        record = bench.prepare(point_of(2, 8).to_json(), paced=False)
        return bench.timer_of(bench.prepared[record.point]).fence

    assert fence_for(arrays.kept) is jax.block_until_ready
    assert fence_for(partial(arrays.kept, by_step=True)) is not jax.block_until_ready


def test_try_refuses_a_make_that_ignores_the_batch(tmp_path):
    """On the command line, where each device count has a process."""
    text = (
        "import arrays\n"
        "from ml_collections import ConfigDict\n"
        "get_config = lambda: ConfigDict({'batch': 16})\n"
        "build = lambda config: arrays.workload(lambda devices, batch: arrays.kept(devices, 8), config.batch)\n"
    )
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "arrays.py").write_bytes((ROOT / "tests/own_steps/arrays.py").read_bytes())
    done = jaxbench("try", "mine.py", cwd=tmp_path)
    assert done.returncode != 0 and "but 16 examples were asked for" in done.stdout, done.stdout + done.stderr

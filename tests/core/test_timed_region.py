# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lies about the timed region, each by a real program on two devices; each was once a measured speed-up."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import jax
import pytest
from broken_strategies import timed
from thin import thin
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.analysis import points
from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.measure import model_steps, step_facts

MODEL = '''"""Least squares."""
import time
import jax
import jax.numpy as jnp
import optax
from ml_collections import ConfigDict
from jaxbench.workloads import Field, TrainWorkload


def get_config():
    return ConfigDict({"lie": "", "batch": 16})


def sleepy(x):
    time.sleep(0.001)
    return x


def build(config):
    def init(key):
        counts = {"count": jnp.zeros(())} if config.lie == "rests" else {}
        return {"w": jax.random.normal(key, (3, 2)), "b": jnp.zeros(2)}, counts

    def loss(params, model_state, batch, key):
        x = batch["x"]
        if config.lie == "missing":
            x = jnp.where(jnp.isnan(x), 0.0, x)
        if config.lie == "sleeps":
            x = jax.pure_callback(sleepy, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")
        if config.lie == "rests":
            whole = lambda x: x @ params["w"]
            product = jax.lax.cond(model_state["count"] % 2 == 0, whole, lambda x: jnp.zeros((len(x), 2)), x)
            state = {"count": model_state["count"] + 1}
            return jnp.mean((product + params["b"] - batch["y"]) ** 2), (state, {})
        return jnp.mean((x @ params["w"] + params["b"] - batch["y"]) ** 2), (model_state, {})

    late = optax.scale_by_schedule(lambda count: jnp.where(count >= 9, jnp.nan, 1.0))
    def drawn(key, batch):
        x = jax.random.normal(key, (batch, 3))
        return jnp.zeros((batch, 3)) if config.lie == "zeros" else jnp.where(x > 1, jnp.nan, x)

    return TrainWorkload(
        name="squares", init=init, loss=loss,
        optimizer=optax.chain(optax.sgd(0.3), late if config.lie == "nan" else optax.identity()),
        example={"x": Field((3,), draw=drawn if config.lie in ("zeros", "missing") else None), "y": Field((2,))},
    )
'''


class Measured:
    """The records of a point measured in some rounds, and its analysis in a report."""

    def __init__(self, record: schema.PointRecord, rounds: list[schema.RoundRecord]):
        self.record, self.rounds = record, rounds
        self.checks = {v.name: v for v in record.checks}
        self.after = {v.name: v for v in rounds[0].checks}
        lines = [schema.from_json(schema.to_json(line)) for line in (record, *rounds)]
        self.ok, self.reason = points.check(points.collect(lines)["p"])

    @property
    def wrong(self) -> set[str]:
        return {v.name for v in (*self.record.checks, *(v for each in self.rounds for v in each.checks)) if not v.ok}


def measure(
    folder: Path, monkeypatch: Any, *, lie: str = "", fault: str = "", part: str = "step", steps: int = 4,
    options: str = "default", more: int = 1
) -> Measured:  # fmt: skip
    """A round, `more` and one more; the first and the last are checked. steps: of a block; the first round has five
    blocks, the others one and a half."""
    path = folder / "squares.py"
    path.write_text(MODEL)
    config = config_lib.compose("squares", discovery.load_experiment(str(path)), TINY)
    with config.unlocked():
        config.lie = lie
    if fault:
        wrong = lambda workload, strategy, devices, levers: timed.build(workload, devices, fault)  # noqa: E731
        monkeypatch.setattr(model_steps, "build_program", wrong)
    mine = model_steps.bench(config_lib.plain(config), str(path), jax.devices()[:2], "session0/w")
    ticks = itertools.count(1)
    mine.timer = dataclasses.replace(mine.timer, clock=lambda: 1e-9 * next(ticks), max_steps=steps, warmup_blocks=2)
    (arm,) = levers.arms(levers.defaults())
    point = Point(
        point="p", strategy="shard_map", scaling="strong", oversubscribed=False, platform="cpu", devices=2,
        global_batch=16, levers={**arm.levers, "part": part, "compiler": options},
    )  # fmt: skip
    record = mine.prepare(point.to_json())
    rounds = [mine.round("p", 0), *(mine.round("p", number, double=False) for number in range(1, more + 1))]
    rounds.append(mine.round("p", more + 1, double=False, last=True))
    return Measured(record, rounds)


def test_the_truth_passes_and_says_what_was_checked(tmp_path, monkeypatch):
    found = measure(tmp_path, monkeypatch)
    assert found.ok is True, found.reason
    assert {*found.checks} == {"parameters", "optimizer", "collectives", "host", "devices", "inputs"}
    assert {*found.after} == {"finite", "steps", "timed update"} and found.rounds[1].checks == ()
    assert [each.counted for each in found.rounds] == [20, 6, 6]
    last = {v.name: v for v in found.rounds[2].checks}
    assert {*last} == {*found.after} and last["steps"].reason == "the state counted 12 updates in 12 steps"
    assert found.after["steps"].reason == "the state counted 20 updates in 20 steps"
    assert "from the state after 20 timed steps: relative L2" in found.after["timed update"].reason
    assert "one device after 1 update is" in found.after["timed update"].reason


def test_a_model_that_has_learnt_its_batch_is_asked_from_its_first_state(tmp_path, monkeypatch):
    found = measure(tmp_path, monkeypatch, steps=64)
    assert found.ok is True, found.reason
    assert "from the first state as step 320, because the timed one hardly moves" in found.after["timed update"].reason


LIES = {
    "parameters that are no numbers after the ninth update": (
        {"lie": "nan"}, "finite", "finite: after the timed steps 2 values of the parameter 'b' are NOT finite"
    ),
    "a step that does nothing after the checked updates": (
        {"fault": "skips"}, "steps", "steps: the state counted 3 updates in 20 steps, NOT one for each"
    ),
    "a part that does nothing after three calls": (
        {"part": "forward", "fault": "forgets"}, "timed part",
        "from the timed state: relative L2 distance of the loss to one device is 1.0e+00, NOT",
    ),
    "a step that calls back to the host": (
        {"lie": "sleeps"}, "host", "it waits for the host: pure_callback of 'sleepy'"
    ),
    "two devices that each do all the work": (
        {"fault": "replicates"}, "devices", "devices: the batch lies in 1 parts on 2 devices, NOT in 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fails_its_check_alone_and_is_said(tmp_path, monkeypatch, name):
    told, check, said = LIES[name]
    found = measure(tmp_path, monkeypatch, **told)
    assert found.wrong == {check} and found.ok is False and said in found.reason
    assert told != {"lie": "nan"} or "in round 0; 1 more checks after rounds failed" in found.reason


FAST = "xla_cpu_enable_fast_math=true+xla_cpu_fast_math_honor_nans=false+xla_backend_optimization_level=3"
if jax.__version_info__ < (0, 11):  # the tests' own flags turn them off
    FAST += "+xla_cpu_use_fusion_emitters=true"


@pytest.mark.parametrize("options", ["default", FAST])
def test_a_compiler_option_that_breaks_the_mathematics(tmp_path, monkeypatch, options):
    """NaN marks missing values, and the option lets the compiler assume that there are none. The reference never
    uses it."""
    found = measure(tmp_path, monkeypatch, lie="missing", options=options)
    if options == "default":
        assert found.ok is True, found.reason
        return
    assert found.ok is False and not found.checks["parameters"].ok
    assert "parameters: the loss is not finite at the first step" in found.reason


@pytest.mark.parametrize("steps", thin([64, 4], 1))
def test_a_step_that_only_counts_after_the_checked_updates(tmp_path, monkeypatch, steps):
    """After many steps one device has learnt the batch, and its updates are as small as those of this step."""
    found = measure(tmp_path, monkeypatch, fault="counts", steps=steps)
    assert found.wrong == {"timed update"} and found.ok is False
    assert "NOT within 1e-05" in found.after["timed update"].reason


def test_a_step_that_does_nothing_from_the_second_visit_on(tmp_path, monkeypatch):
    """The state is kept between visits, so the last visit's work is checked again."""
    found = measure(tmp_path, monkeypatch, fault="tires", more=5)
    assert all(verdict.ok for each in found.rounds[:-1] for verdict in each.checks)
    assert found.ok is False and found.wrong == {"timed update"} and "in round 6" in found.reason


@pytest.mark.parametrize("part", ["forward", "gradient"])
def test_the_truth_of_a_part_is_asked_again_from_its_timed_state(tmp_path, monkeypatch, part):
    found = measure(tmp_path, monkeypatch, part=part)
    assert found.ok is True, found.reason
    assert {*found.after} == {"finite", "steps", "timed part"} and found.rounds[1].checks == ()
    assert "from the timed state: relative L2 distance of the loss to one device" in found.after["timed part"].reason


def test_a_batch_of_zeros(tmp_path, monkeypatch):
    found = measure(tmp_path, monkeypatch, lie="zeros")
    assert not found.checks["inputs"].ok and found.ok is False
    assert "inputs: every input value of the batch is zero: 'x'" in found.reason


@pytest.mark.parametrize(("lie", "share"), [("", None), ("rests", 0.0)])
def test_a_model_that_works_in_every_second_step(tmp_path, lie, share):
    """One device does the same, so the results agree; but the formula counts the work of every step."""
    path = tmp_path / "squares.py"
    path.write_text(MODEL)
    config = config_lib.compose("squares", discovery.load_experiment(str(path)), TINY)
    with config.unlocked():
        config.lie = lie
    facts = step_facts.of_workload(discovery.build(str(path), config))
    assert facts.get("least_work") == share


def test_one_device_that_is_called_two(tmp_path, monkeypatch):
    found = measure(tmp_path, monkeypatch, fault="idle")
    assert found.wrong == {"devices"} and found.ok is False
    assert "devices: the compiled step uses 1 devices, NOT the 2 that were asked for" in found.reason
    assert found.record.compile_report.expected_gradient_bytes == 32
    assert "0 numbers by all-reduce, but 8 are expected" in found.checks["collectives"].reason

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a few steps change, and whether their batch matters, seen in real programs of models and of users' steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from workload_cases import KEY, linear_workload

from jaxbench import OwnStep, StepWorkload
from jaxbench.analysis.step_work import Stated
from jaxbench.core.schema import StepWork
from jaxbench.core.workload import Field, TrainWorkload
from jaxbench.features.own_step import program as programs
from jaxbench.measure import step_work
from jaxbench.measure.compile_report import CompiledStep, StatedWork, compile_step
from jaxbench.measure.reference import MOST_STEPS
from jaxbench.parallel import load
from jaxbench.workloads.levers import frozen

BATCH = 8


def watched(workload: TrainWorkload, strategy: str = "jit_auto", devices: int = 2) -> StepWork:
    program = load(strategy).build(workload, jax.devices()[:devices])
    compiled = compile_step(workload, program, BATCH)
    batch = program.put(workload.synthetic(KEY, BATCH))
    return step_work.watch(program, compiled.call, KEY, lambda step: batch, compiled.work)


def skipping(every: int) -> optax.GradientTransformation:
    """Moves parameters only once in `every` steps, by a counter of its own."""

    def update(updates: Any, count: jax.Array, params: Any = None) -> tuple[Any, jax.Array]:
        taken = count % every == every - 1
        return jax.tree.map(lambda g: jnp.where(taken, -0.1 * g, 0), updates), count + 1

    return optax.GradientTransformation(lambda params: jnp.zeros((), jnp.int32), update)


@pytest.mark.parametrize("strategy", ["jit_auto", "pmap", "zero1"])
def test_a_step_that_trains_changes_every_array_each_time(strategy):
    work = watched(linear_workload(), strategy)
    assert (work.steps, work.changing_steps, work.still_arrays, work.parameter_arrays) == (8, 8, (), 2)
    assert work.moved_share == 1


@pytest.mark.parametrize(
    ("optimizer", "changing", "ends", "steps"),
    [
        (optax.MultiSteps(optax.sgd(0.1), 4).gradient_transformation(), 2, (4, 8), 8),
        (skipping(2), 4, (2, 8), 8),
        (skipping(3), 2, (3, 6), 8),
        (optax.MultiSteps(optax.adam(0.1), 12).gradient_transformation(), 2, (12, 24), 24),
        (optax.sgd(optax.piecewise_constant_schedule(0.1, {3: 0.0})), 3, (1, 3), 8),
        (optax.sgd(optax.linear_schedule(0.0, 0.1, 4)), 7, (2, 8), 8),
        (optax.sgd(0.0), 0, (0, 0), MOST_STEPS),
    ],
    ids=["accumulation", "every-second", "every-third", "over-twelve", "the-first-three", "warm-up", "never"],
)
def test_steps_that_change_no_parameter_are_counted(optimizer, changing, ends, steps):
    work = watched(linear_workload(optimizer))
    assert (work.changing_steps, (work.first_change, work.last_change), work.steps) == (changing, ends, steps)


def test_a_slow_step_is_watched_for_less_time():
    program = load("jit_auto").build(linear_workload(), jax.devices()[:1])
    compiled = compile_step(linear_workload(), program, BATCH)
    batch, ticks = program.put(linear_workload().synthetic(KEY, BATCH)), iter(range(0, 10**6, 100))
    work = step_work.watch(program, compiled.call, KEY, lambda _: batch, compiled.work, clock=lambda: next(ticks))
    assert work.steps == step_work.LEAST


def masked(names: str) -> optax.GradientTransformation:
    labels = lambda params: {name: "train" if name in names else "keep" for name in params}  # noqa: E731
    return optax.multi_transform({"train": optax.sgd(0.1), "keep": optax.set_to_zero()}, labels)


def layers(**parts: Any) -> TrainWorkload:
    """A small perceptron. dtype: of its parameters. shift: of its hidden units; far below 0 they are dead. rate. wide:
    times its widths."""
    dtype, shift, wide = parts.get("dtype", jnp.float32), parts.get("shift", 0.0), parts.get("wide", 1)

    def init(key: jax.Array) -> tuple[Any, Any]:
        first, second = jax.random.split(key)
        w1, w2 = (1 + jax.random.uniform(k, (wide * i, wide * o)) for k, i, o in ((first, 3, 5), (second, 5, 2)))
        return {"w1": w1.astype(dtype), "w2": w2.astype(dtype), "b": jnp.zeros(2 * wide)}, {}

    def loss(params: Any, model_state: Any, batch: Any, key: jax.Array) -> tuple[Any, Any]:
        hidden = jax.nn.relu(batch["x"].astype(dtype) @ params["w1"] + shift)
        error = (hidden @ params["w2"]).astype(jnp.float32) + params["b"] - batch["y"]
        return jnp.mean(error**2), (model_state, {})

    optimizer = optax.sgd(parts.get("rate", 1e-2))
    example = {"x": Field((3 * wide,)), "y": Field((2 * wide,))}
    return TrainWorkload(name="layers", init=init, loss=loss, optimizer=optimizer, example=example)


@pytest.mark.parametrize(
    ("workload", "still"),
    [
        (dataclasses.replace(layers(), optimizer=masked("b")), ("w1", "w2")),
        (layers(dtype=jnp.bfloat16, rate=1e-5), ("w1", "w2")),  # a change of 1e-5 rounds away, next to numbers above 1
        (layers(shift=-1e3), ("w1", "w2")),  # dead units have no gradient, and their outputs are 0
        (dataclasses.replace(layers(), optimizer=masked("bw1w2")), ()),
    ],
    ids=["mask", "rounds-away", "dead", "all"],
)
def test_arrays_that_never_move_are_named(workload, still):
    work = watched(workload, devices=1)
    assert work.still_arrays == still and work.parameter_arrays == 3
    assert work.still_share == pytest.approx(25 / 27 if still else 0)


def test_rows_of_a_table_that_no_example_reads_do_not_move():
    def init(key: jax.Array) -> tuple[Any, Any]:
        return {"table": jax.random.normal(key, (1000, 2))}, {}

    def loss(params: Any, model_state: Any, batch: Any, key: jax.Array) -> tuple[Any, Any]:
        return jnp.mean((params["table"][batch["row"]] - 1) ** 2), (model_state, {})

    example = {"row": Field((), jnp.int32, classes=1000)}
    work = watched(TrainWorkload(name="t", init=init, loss=loss, optimizer=optax.sgd(0.1), example=example))
    assert work.still_arrays == () and 0 < work.moved_share <= BATCH / 1000


def test_what_the_lever_freezes_is_told_apart():
    work = watched(frozen(layers(), "w1"))
    assert (work.frozen_arrays, work.frozen_share, work.still_arrays) == (1, pytest.approx(15 / 27), ())


def own(step: Callable[[Any, Any], Any], batch: Any, devices: int = 2) -> tuple[programs.OwnProgram, CompiledStep]:
    """The program and the executable of a user's step of {"w": (4, 3)}."""

    def make(chosen: list[jax.Device], size: int) -> OwnStep:
        mesh = Mesh(np.array(chosen), ("data",))
        whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
        placed = jax.tree.map(lambda x: jax.device_put(x, split if np.ndim(x) else whole), batch)
        init = lambda: jax.device_put({"w": jnp.arange(12.0).reshape(4, 3), "n": jnp.zeros((), int)}, whole)  # noqa: E731
        return OwnStep(step=jax.jit(step), init=init, batch=placed, parameters=lambda s: {"w": s["w"]})

    program = programs.build(StepWorkload(name="own", make=make, batch=BATCH), jax.devices()[:devices], BATCH)
    return program, compile_step(StatedWork(), program, BATCH)


ROWS = {"x": np.random.default_rng(0).normal(size=(BATCH, 4)).astype(np.float32), "y": np.arange(BATCH) % 3}


def trained(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
    def loss(w: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(x @ w, y).mean()

    value, grad = jax.value_and_grad(loss)(state["w"])
    return {"w": state["w"] - 0.1 * grad, "n": state["n"] + 1}, {"loss": value}


def effect(step: Callable[[Any, Any], Any], batch: Any = ROWS) -> StepWork:
    program, compiled = own(step, batch)
    return step_work.with_effect(program, compiled.call, None, program.batch_of(0), compiled.work)


def test_a_step_that_reads_its_batch():
    work = effect(lambda s, b: trained(s, b["x"], b["y"]))
    assert work.reads_batch and work.idle_fields == ()
    (verdict,) = step_work.judge(work)
    assert verdict.ok and verdict.name == "batch"


@pytest.mark.parametrize(
    "step",
    [
        lambda s, b: trained(s, jnp.asarray(ROWS["x"]), jnp.asarray(ROWS["y"])),
        lambda s, b: trained(s, 0 * b["x"] + ROWS["x"], 0 * b["y"] + ROWS["y"]),
        lambda s, b: trained(s, b["x"] - b["x"], jnp.minimum(b["y"], 0)),
        lambda s, b: ({"w": s["w"] * 0.9, "n": s["n"] + 1 + jnp.sum(b["y"]) * 0}, {"loss": jnp.sum(s["w"])}),
    ],
    ids=["constants", "times-zero", "cancelled", "decay-alone"],
)
def test_a_step_that_does_not_depend_on_its_batch_is_refused(step):
    work = effect(step)
    assert work.reads_batch is False and set(work.idle_fields) == {"x", "y"}
    (verdict,) = step_work.judge(work)
    assert not verdict.ok and verdict.reason.startswith("the step does not depend on its batch")


def test_a_field_without_effect_is_named():
    assert effect(lambda s, b: trained(s, 0 * b["x"] + 1, b["y"])).idle_fields == ("x",)
    weights = {**ROWS, "weight": np.linspace(0.5, 1, BATCH, dtype=np.float32)}
    assert effect(lambda s, b: trained(s, b["x"], b["y"]), weights).idle_fields == ("weight",)


def test_values_that_cannot_be_replaced_are_not_tried():
    """A mask of ones has no other values of its range: what it does stays unknown."""
    work = effect(lambda s, b: trained(s, b["x"] * b["mask"][:, None], b["y"]), {**ROWS, "mask": np.ones(BATCH, int)})
    assert work.reads_batch and work.idle_fields == ()


def test_the_products_of_a_step_are_counted_in_their_format():
    _, compiled = own(lambda s, b: trained(s, b["x"], b["y"]), ROWS)
    assert {*compiled.work.product_flops} == {"float32"} and compiled.work.all_products_counted
    _, compiled = own(_in_bfloat16, ROWS)
    assert {*compiled.work.product_flops} == {"bfloat16"}


def _in_bfloat16(state: Any, batch: Any) -> tuple[Any, Any]:
    def loss(w: Any) -> Any:
        scores = batch["x"].astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)
        return optax.softmax_cross_entropy_with_integer_labels(scores.astype(jnp.float32), batch["y"]).mean()

    value, grad = jax.value_and_grad(loss)(state["w"])
    return {"w": state["w"] - 0.1 * grad, "n": state["n"] + 1}, {"loss": value}


WIDE = 4  # a product with a side of 2 on 2 devices may be a product with a vector
LAYERS_FLOPS = WIDE**2 * 2.0 * (2 * 3 * 5 + 3 * 5 * 2)  # the first layer needs no gradient of its input


def twice(workload: TrainWorkload) -> TrainWorkload:
    """Its loss computes everything twice, which XLA merges."""

    def loss(*given: Any) -> Any:
        (one, about), (other, _) = workload.loss(*given), workload.loss(*given)
        return (one + other) / 2, about

    return dataclasses.replace(workload, loss=loss)


def unused(workload: TrainWorkload) -> TrainWorkload:
    """Its loss has a product that nobody reads."""

    def loss(params: Any, model_state: Any, batch: Any, key: jax.Array) -> Any:
        _ = batch["x"] @ jnp.ones((3 * WIDE, 1000))
        return workload.loss(params, model_state, batch, key)

    return dataclasses.replace(workload, loss=loss)


@pytest.mark.parametrize(
    ("workload", "stated", "found"),
    [
        (layers(wide=WIDE), LAYERS_FLOPS, ""),
        (layers(wide=WIDE), 2 * LAYERS_FLOPS, "the compiled step has 1,920"),
        (layers(wide=WIDE), LAYERS_FLOPS / 2, "the products of the model have 1,920"),
        (layers(wide=WIDE), 1.1 * LAYERS_FLOPS, "the compiled step has 1,920"),
        (twice(layers(wide=WIDE)), 2 * LAYERS_FLOPS, "the compiled step has 1,920"),
        (twice(layers(wide=WIDE)), None, ""),
        (unused(layers(wide=WIDE)), LAYERS_FLOPS + 24000, "the compiled step has 1,920"),
        (unused(layers(wide=WIDE)), None, ""),
        (dataclasses.replace(layers(wide=WIDE), optimizer=masked("b")), LAYERS_FLOPS, ""),
        (dataclasses.replace(layers(wide=WIDE), optimizer=masked("b")), None, ""),
    ],
    ids=["right", "twice", "half", "a-tenth", "merged", "merged-no-formula", "unused", "unused-no-formula", "masked",
         "masked-no-formula"],
)  # fmt: skip
@pytest.mark.parametrize("strategy", ["jit_auto", pytest.param("shard_map", marks=pytest.mark.full)])
def test_a_formula_is_held_to_the_products(workload, stated, found, strategy):
    workload = dataclasses.replace(workload, flops_per_example=stated)
    program = load(strategy).build(workload, jax.devices()[:2])
    compiled = compile_step(workload, program, BATCH)
    said = Stated(compiled.report.flops_per_step, BATCH, 2).contradiction(compiled.work)
    assert said == (f"states {stated:,.0f} FLOPs per example, {found}" if found else "")
    assert {*compiled.work.product_flops} == {"float32"}

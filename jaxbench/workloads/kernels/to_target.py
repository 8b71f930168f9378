# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings to a target accuracy as cases: a call trains from its first parameters to the target, in NumPy or in XLA.

    train_mlp   784-128-10 on scikit-learn's digits, 28x28 pixels, batch 256, to 95 %
    train_cnn   a 5x5 convolution with stride 2 (8 channels) and a dense layer on the same digits, to 95 %
    train_lstm  an LSTM of width 32 on the first 16 bytes of lines of Python's sources, batch 128, to 75 % of 5 kinds

The models are those of `versus`. Every implementation gets the same data, initial parameters and batches from a seed,
so it takes the same steps, except for rounding. The optimizer is SGD with momentum 0.9. The time includes evaluating
the accuracy on EVALUATED test rows after every few steps. It does not include compiling, which happens before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.workloads import data
from jaxbench.workloads.cases import Array, KernelWorkload
from jaxbench.workloads.data import text
from jaxbench.workloads.kernels import by_hand, versus

IMPLS = ("numpy", "jit")
SEEDS = 3  # the number of steps to a target varies with the seed, and Student's interval needs a spread
MOMENTUM = 0.9
STEPS = 2000  # limit for reaching the target
EVALUATED = 350  # test rows, of about 360 of the digits
Parameters = tuple[Any, ...]  # arrays of NumPy or of JAX


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training. numpy, jax: (logits, gradients). data: () -> inputs and labels to train on, and to test on.

    job: of `versus`; its first arguments are the parameters. rows: the number of training rows. every: steps between
    evaluations.
    """

    job: str
    numpy: tuple[Callable[..., np.ndarray], Callable[..., tuple[np.ndarray, ...]]]
    jax: Callable[..., jax.Array]
    data: Callable[[], Sequence[np.ndarray]]
    rows: int
    batch: int
    rate: float
    target: float
    every: int

    @property
    def parameters(self) -> int:
        return versus.JOBS[self.job].parameters


@functools.cache  # three seeds and two implementations read the same
def _digits(*shape: int) -> tuple[np.ndarray, ...]:
    """The same split for all seeds."""
    splits = data.load("", seed=0)
    parts = ((part["image"].reshape(-1, *shape), part["label"]) for part in (splits.train, splits.test))
    return tuple(array for part in parts for array in part)


@functools.cache
def _texts() -> tuple[np.ndarray, ...]:
    """Training and test split of the labelled texts, each as (tokens, labels)."""
    splits = text.load_labelled("", seed=0, length=versus.LENGTH, classes=versus.KINDS)
    return tuple(part[name] for part in (splits.train, splits.test) for name in ("tokens", "label"))


RECIPES = {
    "train_mlp": Recipe(
        job="mlp",
        numpy=(by_hand.mlp_logits, by_hand.mlp),
        jax=versus.mlp_logits,
        data=lambda: _digits(versus.PIXELS),
        rows=1400,
        batch=256,
        rate=0.1,
        target=0.95,
        every=5,
    ),
    "train_cnn": Recipe(
        job="cnn",
        numpy=(by_hand.cnn_logits, by_hand.cnn),
        jax=versus.cnn_logits,
        data=lambda: _digits(versus.SIDE, versus.SIDE),
        rows=1400,
        batch=256,
        rate=0.1,
        target=0.95,
        every=5,
    ),
    "train_lstm": Recipe(
        job="lstm",
        numpy=(by_hand.lstm_logits, by_hand.lstm),
        jax=versus.lstm_logits,
        data=_texts,
        rows=8192,
        batch=128,
        rate=0.5,
        target=0.75,
        every=10,
    ),
}
OPS = tuple(RECIPES)


def cases(op: str, dtype: str, seed: int, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """The implementations of one training. seed: of its initial parameters and its batches."""
    recipe = RECIPES[op]
    prepares = {"numpy": functools.partial(_by_hand, recipe), "jit": functools.partial(_compiled, op)}
    for impl in impls:
        if impl in prepares:
            yield KernelWorkload(
                op=op,
                dtype=dtype,
                impl=impl,
                shape=f"seed {seed}",
                elements=0,
                flops=None,  # the number of steps is a result
                bytes_moved=None,
                arguments=_arguments(recipe, seed),
                prepare=prepares[impl],
                wrong=lambda result, _: int(not recipe.target <= result[0] <= 1),
                outcome=lambda result: {"final_accuracy": float(result[0]), "steps": float(result[1])},
                result_bytes=8,  # the accuracy and the steps, float32
                host=impl == "numpy",
                one_core=impl == "numpy",  # threads of such small products mostly wait for each other
                waits=impl == "jit",
            )


def _arguments(recipe: Recipe, seed: int) -> tuple[Array, ...]:
    """The arguments: initial parameters; training and test inputs and labels; the rows of each batch (STEPS, batch)."""
    *given, inputs, _ = versus.JOBS[recipe.job].arrays(1)  # of one row, for the shapes
    first = [
        Array(array.shape, draw=functools.partial(_first, seed, index, array.scale))
        for index, array in enumerate(given[: recipe.parameters])
    ]
    counts = (recipe.rows, recipe.rows, EVALUATED, EVALUATED)
    shapes = [(count, *(inputs.shape[1:] if not index % 2 else ())) for index, count in enumerate(counts)]
    known = [
        Array(shape, "int32" if index % 2 else inputs.dtype, draw=functools.partial(_part_of_data, recipe, index))
        for index, shape in enumerate(shapes)
    ]
    batches = Array((STEPS, recipe.batch), "int32", draw=functools.partial(_batches, seed, recipe.rows))
    return (*first, *known, batches)


def _first(seed: int, index: int, scale: float, _: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """An initial parameter."""
    # A bias is small, but not zero: arguments of zeros would be refused.
    return (scale if len(shape) > 1 else 0.01) * np.random.default_rng([seed, index]).standard_normal(shape)


def _part_of_data(recipe: Recipe, index: int, _: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return recipe.data()[index][: shape[0]]


def _batches(seed: int, rows: int, _: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """With replacement."""
    return np.random.default_rng([seed, len(shape), rows]).integers(0, rows, shape)


def _by_hand(recipe: Recipe, *arrays: np.ndarray) -> Callable[[], np.ndarray]:
    logits, gradients = recipe.numpy
    first, (x, label, test, answers, batches) = arrays[: recipe.parameters], arrays[recipe.parameters :]
    rate, momentum = np.float32(recipe.rate), np.float32(MOMENTUM)

    def update(parameters: Parameters, speed: Parameters, step: int) -> tuple[Parameters, Parameters]:
        rows = batches[step]
        found = gradients(*parameters, x[rows], label[rows])
        speed = tuple(momentum * v + g for v, g in zip(speed, found, strict=True))
        return tuple(p - rate * v for p, v in zip(parameters, speed, strict=True)), speed

    def accuracy(parameters: Parameters) -> float:
        return float(np.mean(logits(*parameters, test).argmax(1) == answers))

    return lambda: _train(recipe, first, update, accuracy)


@functools.cache
def _programs(op: str) -> tuple[jax.stages.Wrapped, jax.stages.Wrapped]:
    """The update and the accuracy, jitted once in a process, so every round uses the same programs."""
    recipe = RECIPES[op]
    gradients = versus.gradients(recipe.jax, recipe.parameters)

    def update(
        parameters: Parameters,
        speed: Parameters,
        x: jax.Array,
        label: jax.Array,
        batches: jax.Array,
        step: jax.Array,
    ) -> tuple[Parameters, Parameters]:
        rows = batches[step]
        found = gradients(*parameters, x[rows], label[rows])
        speed = jax.tree.map(lambda v, g: MOMENTUM * v + g, speed, found)
        return jax.tree.map(lambda p, v: p - recipe.rate * v, parameters, speed), speed

    def accuracy(parameters: Parameters, test: jax.Array, answers: jax.Array) -> jax.Array:
        return jnp.mean(recipe.jax(*parameters, test).argmax(1) == answers)

    return jax.jit(update), jax.jit(accuracy)


def _compiled(op: str, *arrays: jax.Array) -> Callable[[], np.ndarray]:
    """A training from the first parameters to the target accuracy."""
    recipe = RECIPES[op]
    first, (x, label, test, answers, batches) = arrays[: recipe.parameters], arrays[recipe.parameters :]
    update, accuracy = _programs(op)
    return lambda: _train(
        recipe,
        first,
        lambda parameters, speed, step: update(parameters, speed, x, label, batches, np.int32(step)),
        lambda parameters: float(accuracy(parameters, test, answers)),
    )


def _train(
    recipe: Recipe,
    first: Parameters,
    update: Callable[[Parameters, Parameters, int], tuple[Parameters, Parameters]],
    accuracy: Callable[[Parameters], float],
) -> np.ndarray:
    """(accuracy, steps) at the first evaluation that reached the target, or after STEPS."""
    parameters, speed, found, step = first, tuple(0 * array for array in first), 0.0, 0
    # Evaluated every few steps: in a step each, small models would spend most of their time on it.
    while found < recipe.target and step < STEPS:
        parameters, speed = update(parameters, speed, step)
        step += 1
        if step % recipe.every == 0:
            found = accuracy(parameters)
    return np.array([found, step], np.float32)

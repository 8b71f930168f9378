# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training small enough to run, kill and rerun in a second; also a program that kills itself on request.

``python train_cases.py FOLDER DEVICES WHEN [KEYS]`` trains in a separate process and prints the hash. WHEN it sends
itself SIGKILL: "never", "step:9" before that step of this process, "save:2" as soon as the second unfinished checkpoint
is seen, "after:0.25" seconds after its first step. KEYS, of NOISE: its optimizer has a random key of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import parallel
from jaxbench.core.program import Program
from jaxbench.features.training.folder import Session
from jaxbench.features.training.train import TrainResult, train
from jaxbench.workloads import Field, TrainWorkload

FEATURES, CLASSES, EXAMPLES, BATCH = 12, 4, 136, 16
STEPS_PER_EPOCH = EXAMPLES // BATCH


@dataclasses.dataclass(frozen=True)
class Clusters:
    """Points around `CLASSES` centres: easy, but not learnt in one epoch."""

    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]
    name: str = "clusters"


def clusters(seed: int = 0) -> Clusters:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(CLASSES, FEATURES))

    def draw(count: int) -> dict[str, np.ndarray]:
        label = random.integers(0, CLASSES, count).astype(np.int32)
        x = centres[label] + random.normal(size=(count, FEATURES))
        return {"x": x.astype(np.float32), "label": label}

    return Clusters(draw(EXAMPLES), draw(50))


def toy_workload(data: Callable[[], Any] | None = clusters, hidden: int = 8) -> TrainWorkload:
    """A perceptron with dropout-like noise, so that the random key matters, and Adam, so that its state does."""

    def init(key):
        first, second = jax.random.split(key)
        params = {
            "hidden": {"w": jax.random.uniform(first, (FEATURES, hidden)) - 0.5, "b": jnp.zeros(hidden)},
            "logits": {"w": jax.random.uniform(second, (hidden, CLASSES)) - 0.5},
        }
        return params, {"seen": jnp.zeros((), jnp.int32)}

    def loss(params, model_state, batch, key):
        x = jax.nn.relu(batch["x"] @ params["hidden"]["w"] + params["hidden"]["b"])
        x = x * (1 + 0.01 * jax.random.uniform(key, x.shape[1:]))
        logits = x @ params["logits"]["w"]
        accuracy = jnp.mean(jnp.argmax(logits, -1) == batch["label"])
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        return jnp.mean(losses), ({"seen": model_state["seen"] + 1}, {"accuracy": accuracy})

    def evaluate(params, model_state, batch):
        x = jax.nn.relu(batch["x"] @ params["hidden"]["w"] + params["hidden"]["b"])
        logits = x @ params["logits"]["w"]
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        return {"loss": jnp.mean(losses), "accuracy": jnp.mean(jnp.argmax(logits, -1) == batch["label"])}

    return TrainWorkload(
        name="toy",
        init=init,
        loss=loss,
        optimizer=optax.adam(1e-2),
        example={"x": Field((FEATURES,)), "label": Field((), jnp.int32, classes=CLASSES)},
        flops_per_example=1.0,
        data=data,
        evaluate=evaluate,
    )


def toy_config(**changes: Any) -> ConfigDict:
    """`changes`: fields of `train`; `devices`, `learning_rate` and `elsewhere` for other settings."""
    fields = {"batch": BATCH, "epochs": 4, "target": 1.0, "checkpoint_every": 3, "keep": 3, "tensorboard": False}
    fields["strategy"] = "jit_auto"
    elsewhere = changes.pop("elsewhere", {})
    config = ConfigDict({"experiment": "toy", "seed": 3, "strategy": "jit_auto", "mesh": {"devices": "8"}})
    config.optimizer = ConfigDict({"learning_rate": changes.pop("learning_rate", 0.01)})
    config.mesh.devices = str(changes.pop("devices", 8))
    config.train = ConfigDict({**fields, **changes})
    config.update(elsewhere)
    return config


def toy_session(**changes: Any) -> Session:
    return Session(
        **{
            "command": ["jaxbench", "train", "toy"],
            "devices": 8,
            "strategy": "jit_auto",
            "experiment_file": "toy.py",
            "experiment_sha256": "f" * 64,
            "machine": {"platform": "cpu", "devices": 8, "versions": {"jax": jax.__version__}},
            **changes,
        }
    )


class CompiledOnce:
    """A jitted step, compiled once for all trainings of this process, because compilation dominates a toy's time."""

    def __init__(self, step: Any):
        self._step = step
        self._compiled: Any = None

    def lower(self, *arguments: Any) -> CompiledOnce:
        if self._compiled is None:
            self._compiled = self._step.lower(*arguments).compile()
        return self

    def compile(self, *options: Any) -> Any:
        return self._compiled


def _raw_noise(scale: float) -> optax.GradientTransformation:
    def update(grads: Any, key: jax.Array, params: Any = None) -> tuple[Any, jax.Array]:
        key, *keys = jax.random.split(key, 1 + len(jax.tree.leaves(grads)))
        keys = jax.tree.unflatten(jax.tree.structure(grads), keys)
        return jax.tree.map(lambda g, k: g + scale * jax.random.normal(k, g.shape), grads, keys), key

    return optax.GradientTransformation(lambda params: jax.random.PRNGKey(0), update)


NOISE = {"typed": lambda: optax.add_noise(0.01, 0.55, jax.random.key(0)), "raw": lambda: _raw_noise(0.1)}


def noisy_workload(keys: str) -> TrainWorkload:
    return dataclasses.replace(toy_workload(), optimizer=optax.chain(NOISE[keys](), optax.adam(1e-2)))


@functools.cache
def toy_program(strategy: str, devices: int, keys: str = "") -> Program:
    workload = noisy_workload(keys) if keys else toy_workload()
    program = parallel.build(strategy, workload, jax.devices()[:devices])
    return dataclasses.replace(program, step=CompiledOnce(program.step))


def before_step(program: Program, number: int, act: Callable[[], None]) -> Program:
    """`program` that calls `act` before its `number`-th step of this process, counted from 1."""
    calls = 0

    def put(batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number + 1:  # the first call places the batch for compilation
            act()
        return program.put(batch)

    return dataclasses.replace(program, put=put)


def train_toy(
    folder: Path,
    *,
    devices: int = 8,
    strategy: str = "jit_auto",
    workload: TrainWorkload | None = None,
    wrap: Callable[[Program], Program] = lambda program: program,
    console: Console | None = None,
    session: dict[str, Any] | None = None,
    keys: str = "",
    **changes: Any,
) -> TrainResult:
    return train(
        workload or (noisy_workload(keys) if keys else toy_workload()),
        lambda _: wrap(toy_program(strategy, devices, keys)),
        config=toy_config(devices=devices, **{"strategy": strategy, **changes}),
        folder=folder,
        console=console or Console(file=io.StringIO(), width=200),
        session=toy_session(**{"devices": devices, "strategy": strategy, **(session or {})}),
    )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_a_save(checkpoints: Path, number: int) -> None:
    """Dies when the `number`-th unfinished checkpoint is seen."""
    seen: set[str] = set()
    while len(seen) < number:
        time.sleep(0.0005)
        with contextlib.suppress(FileNotFoundError):
            seen |= {name for name in os.listdir(checkpoints) if name.endswith(".part")}
    die()


def die_after(seconds: float) -> None:
    time.sleep(seconds)
    die()


def _main(folder: str, devices: str, when: str, keys: str = "") -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    kind, _, number = when.partition(":")
    step, act = 1, lambda: None
    if kind == "step":
        step, act = int(number), die
    elif kind == "save":
        watch = threading.Thread(target=die_in_a_save, args=(Path(folder) / "checkpoints", int(number)), daemon=True)
        act = watch.start
    elif kind == "after":
        act = threading.Thread(target=die_after, args=(float(number),), daemon=True).start
    result = train_toy(Path(folder), devices=int(devices), wrap=lambda p: before_step(p, step, act), keys=keys)
    sys.stdout.write(f"params_sha256: {result.params_sha256}\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])

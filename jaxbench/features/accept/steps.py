# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The gpt probe: every device trains its own copy of a small transformer from one seed, all at once and without
messages.

Each block begins with the same parameters and takes the same number of steps. So its last loss has the same bits on
every device and in every block, and a device that computes wrongly once is found, also if it is the only one.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch
from jaxbench.features.accept import bits
from jaxbench.features.accept.device_probes import Devices, Runner, Wrong
from jaxbench.workloads import TrainWorkload

SMALL = {"layers": 2, "width": 64, "heads": 2, "context": 64, "vocab": 256}
LARGE = {"layers": 4, "width": 1024, "heads": 16, "context": 1024, "vocab": 8192}
BATCH = {"cpu": 4}
ON_ACCELERATORS = 8
LEAST_STEPS = 3


def workload(platform: str) -> TrainWorkload:
    """The transformer of this platform: it must compile in seconds and keep a device busy."""
    config = config_lib.compose("gpt", discovery.load_experiment("gpt"), discovery.load_preset("auto"))
    config.model.update(SMALL if platform == "cpu" else LARGE)
    config.model.attention = "plain"
    made: TrainWorkload = discovery.load_experiment("gpt").build(config)
    return made


def one_step(model: TrainWorkload) -> Callable[[ArrayTree, Batch], tuple[ArrayTree, jax.Array]]:
    """(parameters, batch) -> (parameters after a step of gradient descent, loss)."""

    def step(params: ArrayTree, batch: Batch) -> tuple[ArrayTree, jax.Array]:
        def loss(params: ArrayTree) -> jax.Array:
            return model.mean_loss(params, {}, batch, jax.random.key(2))[0]

        value, gradient = jax.value_and_grad(loss)(params)
        return optax.apply_updates(params, jax.tree.map(lambda g: -1e-3 * g, gradient)), value

    return step


class Steps:
    """Blocks of training steps on all devices. `loss` is the last one, as hexadecimal bits."""

    def __init__(self, devices: Devices):
        platform = devices.all[0].platform
        model = workload(platform)
        mesh = Mesh(np.array(devices.all), ("all",))
        each, alike = (NamedSharding(mesh, spec) for spec in (PartitionSpec("all"), PartitionSpec()))
        params, batch = self._begin(model, BATCH.get(platform, ON_ACCELERATORS))
        # One program for all devices compiles once. They share no data, so each has a result of its own.
        step = one_step(model)
        apart = jax.shard_map(
            lambda params, batch: jax.tree.map(lambda x: x[None], step(jax.tree.map(lambda x: x[0], params), batch)),
            mesh=mesh,
            in_specs=(PartitionSpec("all"), PartitionSpec()),
            out_specs=PartitionSpec("all"),
            check_vma=False,
        )
        self._step = jax.jit(apart, out_shardings=each)
        stacked = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x)[None], (len(devices.all), *x.shape)), params)
        self._first = jax.device_put(stacked, each)
        self._batch = jax.device_put(batch, alike)
        self._devices, self._count, self._right = devices, LEAST_STEPS, ""
        self._losses: list[str] = []
        self._block()  # compiles
        self._step_s = max(self._block()) / self._count

    @staticmethod
    def _begin(model: TrainWorkload, examples: int) -> tuple[ArrayTree, Batch]:
        """Initial parameters and a synthetic batch."""
        params, _ = jax.jit(model.init)(jax.random.key(0))
        return params, model.synthetic(jax.random.key(1), examples)

    def last(self, seconds: float) -> None:
        """Sets the length of all further blocks, from their first on: a block of another length has another loss."""
        count = max(LEAST_STEPS, round(seconds / self._step_s))
        if count != self._count:
            self._count, self._right = count, ""

    @property
    def count(self) -> int:
        """Steps of a block."""
        return self._count

    @property
    def loss(self) -> str:
        return self._losses[0] if self._losses else ""

    def runner(self) -> Runner:
        return Runner(
            name="gpt",
            units=tuple(map(str, range(len(self._devices.all)))),
            amount=1.0,
            run=self._run,
            check=self._wrong,
        )

    def _run(self) -> list[float]:
        """The seconds of one step on each device."""
        return [each / self._count for each in self._block()]

    def _block(self) -> list[float]:
        """The seconds that each device takes for all steps of a block."""
        start = time.perf_counter()
        params, losses = self._first, jnp.zeros(())
        for number in range(self._count):
            params, losses = self._step(params, self._batch)
            if number % 8 == 7:
                jax.block_until_ready(losses)  # a host that runs far ahead holds the memory of all these steps
        shards = sorted(losses.addressable_shards, key=lambda shard: self._devices.all.index(shard.device))
        took = [0.0] * len(shards)

        def wait(index: int) -> float:
            shards[index].data.block_until_ready()
            took[index] = time.perf_counter() - start
            return took[index]

        self._devices.together(wait)
        self._losses = [
            (np.asarray(shard.data).view(np.uint32) ^ np.uint32(bits.flipped("gpt", index))).tobytes().hex()
            for index, shard in enumerate(shards)
        ]
        return took

    def _wrong(self) -> Wrong:
        """A clause for each device with another loss than the right one."""
        self._right = self._right or _majority(self._losses)
        after = f"its loss after {self._count} steps is"
        if not self._right:  # two devices that disagree from the start: nothing says which of them is right
            others = ", ".join(map(_number, self._losses))
            return [(index, f"{after} {_number(loss)}, on all {others}") for index, loss in enumerate(self._losses)]
        return [
            (index, f"{after} {_number(loss)}, and {_number(self._right)} is right")
            for index, loss in enumerate(self._losses)
            if loss != self._right
        ]


def _majority(losses: Sequence[str]) -> str:
    """The loss of more than half of the devices; "" without one."""
    usual = max(losses, key=list(losses).count)
    return usual if 2 * list(losses).count(usual) > len(losses) else ""


@functools.cache
def _number(text: str) -> str:
    """The float32 that a hexadecimal text encodes, in decimal."""
    return repr(float(np.frombuffer(bytes.fromhex(text), np.float32)[0]))

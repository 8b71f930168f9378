# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A slow accelerator is found by a product on each device alone, and named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fabricate_losses
import jax
import numpy as np
import pytest
from fabricate_losses import Loss

from jaxbench.analysis import loss_sentences, points, run_rows, waterfall
from jaxbench.core import schema
from jaxbench.core.clock import Timer
from jaxbench.core.store import RunFolder
from jaxbench.machine.device_speed import DeviceProbe, DeviceSpeeds
from jaxbench.processes import client
from jaxbench.statistics import core_speeds

TWO = "shard_map/strong/2"


class Machine:
    """Real devices and products, with a clock that the product moves: by 1 s, and on the slow device by 2 s."""

    def __init__(self, slow: int):
        self.now, self.slow, self.products = 0.0, slow, 0

    def multiply(self, matrix: jax.Array) -> jax.Array:
        (device,) = matrix.devices()
        self.now += 2.0 if device.id == self.slow else 1.0
        self.products += 1
        return matrix @ matrix

    def probe(self, count: int) -> DeviceProbe:
        devices = jax.devices()[:count]
        return DeviceProbe(devices, side=8, clock=lambda: self.now, multiply=self.multiply)


def test_each_device_is_read_alone():
    read = Machine(slow=1).probe(3)()
    assert read.product_s == (1.0, 2.0, 1.0)
    assert read.names == ("cpu 0 (cpu)", "cpu 1 (cpu)", "cpu 2 (cpu)")


def test_the_default_product_runs_on_its_device():
    read = DeviceProbe(jax.devices()[:2], side=8)()
    assert len(read.product_s) == 2 and all(seconds > 0 for seconds in read.product_s)


def measured(machine: Machine) -> schema.RoundRecord:
    """A real round of blocks that the probe surrounds, as a record that was written and read."""
    probe = machine.probe(2)
    inside: list[int] = []

    def step(state: np.ndarray, batch: None) -> tuple[np.ndarray, dict[str, float]]:
        inside.append(machine.products)
        return state, {}

    timer = Timer(speeds=probe, fence=lambda value: value)
    found, _ = timer.round_and_state(step, np.zeros(1), None, 4)
    timed = inside[-12:]  # one block of 4 steps, one of 8
    assert len({*timed[:4]}) == len({*timed[4:]}) == 1, "no product runs within a block"
    record = schema.RoundRecord(point=TWO, round=0, steps=4, worker="session0/w0", **vars(found))
    return schema.from_json(schema.to_json(record))


def test_a_round_has_the_speed_of_each_device_around_its_blocks():
    record = measured(Machine(slow=1))
    assert record.accelerators == ("cpu 0 (cpu)", "cpu 1 (cpu)") and record.cores == ()
    assert record.accelerator_product_s == ((1.0, 2.0), (1.0, 2.0))
    assert core_speeds.slowest([record]) == ("cpu 1 (cpu)", 2.0)
    assert core_speeds.balance([record]) == 0.5


def test_the_point_on_one_device_uses_the_first_accelerator():
    """If that is the slow one, the others do not wait for a device that is slower than the base's."""
    assert core_speeds.balance([measured(Machine(slow=0))]) == 1.0
    assert core_speeds.balance([measured(Machine(slow=7))]) == 1.0


def test_the_devices_of_several_processes_follow_each_other():
    one = measured(Machine(slow=1))
    other = dataclasses.replace(one, accelerators=("cpu 2 (cpu)", "cpu 3 (cpu)"))
    merged = client._device_speeds([one, other])
    assert merged["accelerators"] == (*one.accelerators, *other.accelerators)
    assert merged["accelerator_product_s"] == ((1.0, 2.0, 1.0, 2.0),) * 2
    assert client._device_speeds([one, dataclasses.replace(one, accelerators=(), accelerator_product_s=())]) == {}


def test_impossible_speeds_are_damage():
    line = schema.to_json(measured(Machine(slow=1)))
    with pytest.raises(ValueError, match="accelerator_product_s has not one number for each of 2 devices"):
        schema.from_json({**line, "accelerator_product_s": [[1.0]] * 2})


def test_a_slow_accelerator_is_a_factor_and_is_named(tmp_path: Path) -> None:
    run = RunFolder(fabricate_losses.folder(tmp_path, {2: Loss(machine=0.5)}, noise=0.01))
    speeds = DeviceSpeeds(("gpu 0 (NVIDIA L4)", "gpu 1 (NVIDIA L4)"), (1e-3, 2e-3))
    rows = []
    for row in run_rows.analyse(points.load(run), config=run.config()):
        if row.point_id == TWO:
            rounds = tuple(
                dataclasses.replace(each, accelerators=speeds.names, accelerator_product_s=(speeds.product_s,) * 6)
                for each in row.point.rounds
            )
            row = dataclasses.replace(row, point=dataclasses.replace(row.point, rounds=rounds, platform="gpu"))
        rows.append(row)
    (one,) = waterfall.find(rows)
    assert one.factor("unequal devices").value.value == 0.5  # type: ignore[union-attr]
    (said,) = [text for text in loss_sentences.advice([one]) if "slower" in text]
    assert "gpu 1 (NVIDIA L4) was 2.0 times slower than the fastest of these devices" in said
    assert "contention" not in said and "CPU" not in said

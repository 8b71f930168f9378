# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A worker with too few threads for a program asks for another process, before the program can hang."""

import dataclasses
from types import SimpleNamespace

import pytest
from doorway import environment

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.plan import Point
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Pace, Prepare, Round
from jaxbench.sweep.sweep import Workers


def point(strategy: str, devices: int = 2) -> Point:
    about = {"scaling": "strong", "global_batch": 8, "oversubscribed": False, "platform": "cpu"}
    return Point(point=f"{strategy}/strong/{devices}", strategy=strategy, devices=devices, **about)


@pytest.mark.full
def test_the_program_runs_in_a_second_process(tmp_path, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    for name in ("NPROC", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    config = config_lib.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("smoke"), tiny=True)
    asked = point("shard_map")
    about = {"experiment": "mlp", "config": config.to_dict(), "worker": "test", "concurrent_collectives": 0}
    worker = Worker(dataclasses.replace(asked.worker()[1], **about), tmp_path / "log")
    try:
        answer = worker.ask(Prepare(point=asked.to_json()))
        assert worker.restarts == 1
        assert answer.record.point == asked.point
        round_ = worker.ask(Round(point=asked.point, round=0))
        assert round_.record.kind == "round" and worker.restarts == 1
    finally:
        worker.close()


class Restarting:
    """A worker that requests another process at one point."""

    def __init__(self, at: str):
        self.at, self.restarts = at, 0

    def ask(self, request):
        self.restarts += request.point == self.at
        return request.point

    def close(self):
        pass


def test_the_preparation_of_the_first_process_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(Workers, "_start", lambda self, name, learned: Restarting("pmap/strong/2"))
    points = [point("shard_map"), point("pmap"), point("jit_auto"), point("jit_auto", devices=1)]
    workers = Workers(SimpleNamespace(), points)
    assert workers.ask("shard_map/strong/2", Pace(point="shard_map/strong/2")) == "shard_map/strong/2"
    workers.ready |= {"shard_map/strong/2", "jit_auto/strong/2", "jit_auto/strong/1"}
    workers.ask("pmap/strong/2", Pace(point="pmap/strong/2"))
    assert workers.ready == {"jit_auto/strong/1"}

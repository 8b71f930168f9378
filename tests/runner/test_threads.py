# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A worker with too few threads for a program asks for another process, before the program can hang."""

from types import SimpleNamespace

import pytest
from doorway import environment

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Point
from jaxbench.runner.sweep import Workers


def point(strategy: str, devices: int = 2) -> Point:
    return Point(
        point=f"{strategy}/strong/{devices}",
        strategy=strategy,
        scaling="strong",
        devices=devices,
        global_batch=8,
        oversubscribed=False,
        platform="cpu",
    )


def test_the_program_runs_in_a_second_process(tmp_path, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    for name in ("NPROC", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    config = config_lib.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("smoke"), tiny=True)
    asked = point("shard_map")
    setup = {**asked.worker()[1], "experiment": "mlp", "config": config.to_dict(), "worker": "test", "at_once": 0}
    worker = Worker(setup, tmp_path / "log")
    try:
        answer = worker.ask({"do": "prepare", "point": asked.to_json()})
        assert worker.restarts == 1
        assert answer["record"]["point"] == asked.point
        round_ = worker.ask({"do": "round", "point": asked.point, "round": 0})
        assert round_["record"]["kind"] == "round" and worker.restarts == 1
    finally:
        worker.close()


class Restarting:
    """A worker that wishes for another process, with threads for 7 collectives, at one point."""

    def __init__(self, at: str):
        self.at, self.restarts, self.at_once, self.expected = at, 0, 1, []

    def expect(self, at_once):
        self.expected.append(at_once)

    def ask(self, request):
        if request["point"] == self.at:
            self.restarts, self.at_once = self.restarts + 1, 7
        return {"asked": request["point"]}

    def close(self):
        pass


def test_what_the_first_process_had_prepared_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(Workers, "_start", lambda self, name: Restarting("pmap/strong/2"))
    points = [point("shard_map"), point("pmap"), point("jit_auto"), point("jit_auto", devices=1)]
    workers = Workers(SimpleNamespace(), points)
    assert workers.ask("shard_map/strong/2", {"point": "shard_map/strong/2"}) == {"asked": "shard_map/strong/2"}
    assert workers.lost() == set()
    workers.ask("pmap/strong/2", {"point": "pmap/strong/2"})
    assert workers.lost() == {"shard_map/strong/2", "jit_auto/strong/2"}
    assert workers.lost() == set()


def test_what_one_group_needed_is_expected_of_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(Workers, "_start", lambda self, name: Restarting("pmap/strong/2"))
    points = [point("pmap"), point("pmap", devices=4)]
    workers = Workers(SimpleNamespace(), points)
    for one in points:
        workers.ask(one.point, {"point": one.point})
    assert [worker.expected for worker in workers._workers.values()] == [[1], [7]]


def test_a_worker_begins_anew_with_more_threads_only_before_it_has_prepared_anything(tmp_path):
    setup = {"platform": "cpu", "devices": 2, "at_once": 1, "experiment": "none", "config": {}, "worker": "test"}
    worker = Worker(setup, tmp_path / "log")
    try:
        first = worker._process.pid
        worker.expect(1)
        assert worker._process.pid == first
        worker.expect(3)
        second = worker._process.pid
        assert second != first and (worker.at_once, worker.restarts) == (3, 0)
        with pytest.raises(WorkerError):
            worker.ask({"do": "prepare", "point": {}})
        worker.expect(9)
        assert worker._process.pid == second and worker.at_once == 3
    finally:
        worker.close()

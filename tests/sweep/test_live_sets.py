# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sets of real processes: waiting processes use no CPU, and a later visit is two blocks with little overhead."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from doorway import environment

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.machine import program_cache
from jaxbench.processes.messages import Prepare, Round
from jaxbench.sweep import plan
from jaxbench.sweep.job import SweepJob
from jaxbench.sweep.workers import Workers


def processor_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say what a process used")
def test_a_set_that_waits_uses_no_processor_and_a_later_visit_is_short(tmp_path, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    config = config_lib.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("smoke"))
    with config.unlocked():
        config.strategy, config.scaling, config.mesh.devices = "jit_auto", "strong", "2"
    settings = config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
    machine = {"platform": "cpu", "device_kind": "cpu", "devices": 1, "device_kinds": ["cpu"], "cores": 2}
    (point,) = plan.make(settings, machine)
    job = SweepJob(
        run=SimpleNamespace(path=tmp_path), points=[point], config=config_lib.plain(config), experiment="mlp",
        session=0,
    )  # fmt: skip
    with Workers(job, [point], programs=program_cache.variables(tmp_path / "compiled")) as workers:
        steps = workers.ask(point.point, Prepare(point=point.to_json())).steps
        first = workers.ask(point.point, Round(point=point.point, round=0, steps=steps)).record
        assert first.double_block_s and first.checks
        blocks = len(first.warmup_block_s) + len(first.block_s) + 2 * len(first.double_block_s)
        assert first.counted == steps * blocks
        for number in (1, 2):
            visit = Round(point=point.point, round=number, steps=steps, double=False)
            later = workers.ask(point.point, visit).record
            assert [len(blocks) for blocks in (later.warmup_block_s, later.block_s, later.double_block_s)] == [1, 1, 0]
            assert later.counted == steps + later.warmup_steps and later.warmup_steps == -(-steps // 2)
            assert later.checks == () and len(later.probe_s) == 1
        pids = [pid for worker in workers._workers.values() for pid in worker.pids]
        before = sum(map(processor_s, pids))
        time.sleep(0.5)
        assert sum(map(processor_s, pids)) - before <= 0.1  # a spinning thread would have used 0.5 s

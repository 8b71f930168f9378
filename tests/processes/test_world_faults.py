# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A process group with a process that is killed, is stopped, or fails: real processes, short limits."""

import os
import re
import signal
import socket
import time
from types import SimpleNamespace

import pytest
from doorway import environment
from thin import thin

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.point import Point
from jaxbench.errors import UserError
from jaxbench.machine import start
from jaxbench.machine.position import Position
from jaxbench.processes import client, supervisor
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.messages import Compile, Prepare, Round, Setup
from jaxbench.sweep.job import SweepJob
from jaxbench.sweep.workers import Workers

# A linear model; a file written by the test makes its loss fail, or differ, only in process 1.
MODEL = """
import os
import jax, jax.numpy as jnp, optax
from jaxbench.workloads import Field, TrainWorkload

def build(config):
    def init(key):
        return {"w": jax.random.normal(key, (3,))}, {}

    def loss(params, model_state, batch, key):
        if jax.process_index() == 1 and len(batch["x"]) == 8 and os.path.exists(__file__ + ".fails"):
            raise MemoryError("no room here")
        if jax.process_index() == 1 and len(batch["x"]) == 8 and os.path.exists(__file__ + ".differs"):
            batch = {"x": jnp.sin(batch["x"])}
        return jnp.mean((batch["x"] @ params["w"]) ** 2), (model_state, {})

    return TrainWorkload(name="line", init=init, loss=loss, optimizer=optax.sgd(0.1), example={"x": Field((3,))})
"""


def point(scaling: str) -> Point:
    return Point(
        point=f"jit_auto/{scaling}/2", strategy="jit_auto", scaling=scaling, devices=2, global_batch=8,
        oversubscribed=False, platform="cpu", processes=2,
    )  # fmt: skip


STRONG, WEAK = point("strong"), point("weak")


@pytest.fixture
def workers(tmp_path, monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setattr(client, "PATIENCE_S", dict.fromkeys(client.PATIENCE_S, 2.0))
    (tmp_path / "line.py").write_text(MODEL)
    config = config_lib.compose(
        "line", discovery.load_experiment(str(tmp_path / "line.py")), discovery.load_preset("smoke")
    )
    with config.unlocked():
        config.measure.block_s = 0.001
    job = SweepJob(
        run=SimpleNamespace(path=tmp_path), points=(), config=config.to_dict(), experiment=str(tmp_path / "line.py"),
        session=0,
    )  # fmt: skip
    lost = []
    with Workers(job, [STRONG, WEAK], lose=lost.append) as workers:
        workers.lost = lost  # for the tests
        yield workers


def the_world(workers: Workers) -> Worker:
    (one,) = workers._workers.values()
    return one


def gone(pids: list[int], within_s: float = 10) -> bool:
    deadline = time.monotonic() + within_s
    while alive := [pid for pid in pids if os.path.exists(f"/proc/{pid}")]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return not alive


def measure(workers: Workers, number: int) -> None:
    """Prepares a point and measures one round, like a sweep."""
    assert workers.ask(WEAK.point, Prepare(point=WEAK.to_json())).record.processes == 2
    record = workers.ask(WEAK.point, Round(point=WEAK.point, round=number)).record
    assert len(record.process_block_s) == 2


@pytest.mark.parametrize("rank", thin([1, 0], 1))
def test_a_process_that_dies_fails_its_point_by_name_and_the_world_is_made_anew(workers, rank):
    measure(workers, 0)
    pids = the_world(workers).pids
    os.kill(pids[rank], signal.SIGKILL)
    with pytest.raises(WorkerError, match=f"process {rank} of 2 was killed by SIGKILL") as failed:
        workers.ask(WEAK.point, Round(point=WEAK.point, round=1))
    assert not failed.value.alive and gone(pids)
    assert workers.lost == [STRONG.point, WEAK.point]
    measure(workers, 1)


@pytest.mark.full
def test_a_process_that_is_stopped_is_found_by_the_deadline(workers, monkeypatch):
    monkeypatch.setattr(Worker.ask, "__defaults__", (3.0,))
    the_world(workers).wait_ready()
    pids = the_world(workers).pids
    os.kill(pids[1], signal.SIGSTOP)
    with pytest.raises(WorkerError, match=r"no answer within 3 s: .* \(process 1 of 2 does not run: it was stopped"):
        workers.ask(WEAK.point, Compile(point=WEAK.to_json()))
    assert gone(pids)


@pytest.mark.parametrize("limit", thin(["ROUND_LIMIT_S", "STOPPED_LIMIT_S"], 1))
def test_a_stopped_process_is_noticed_by_its_round_and_both_are_named(workers, monkeypatch, limit):
    """A round takes milliseconds, and 30 minutes passed before anybody was told."""
    monkeypatch.setattr(client, limit, 1.5)
    monkeypatch.setattr(supervisor, "LOOK_S", 0.2)
    monkeypatch.setattr(client, "LONGER", 0.01)
    measure(workers, 0)
    pids = the_world(workers).pids
    os.kill(pids[1], signal.SIGSTOP)
    with pytest.raises(WorkerError) as failed:
        workers.ask(WEAK.point, Round(point=WEAK.point, round=1))
    assert re.fullmatch(
        rf"no answer within \d+ s(?: from process . of 2)?: worker 'session0/.*', which was asked to "
        rf"measure round 1 of {WEAK.point}, was ended \(process 1 of 2 does not run: it was stopped, as by SIGSTOP\)",
        str(failed.value),
    )  # fmt: skip
    assert not failed.value.alive and gone(pids)


def test_a_round_is_overdue_by_what_was_asked_and_what_it_took_before():
    worker = Worker.__new__(Worker)  # no process: only its limits
    worker._setup = Setup(platform="cpu", devices=1, config={"measure": {"blocks": 1, "block_s": 0.05}})
    worker._longest = {"quick": 0.2, "slow": 40.0, "slower": 500.0}

    def limit(point):
        return worker.limit_s(Round(point=point, round=3))

    assert (limit("quick"), limit("slow"), limit("slower"), limit("new")) == (60, 800, 1800, 1800)
    assert worker.limit_s(Compile(point={"point": "quick"})) == 1800  # compiling may take long
    worker._setup = Setup(platform="cpu", devices=1, config={"measure": {"blocks": 100, "block_s": 10.0}})
    assert limit("quick") > 3 * 100 * 10


def test_a_parent_that_was_stopped_does_not_count_the_time(workers, monkeypatch):
    """Ctrl-Z stops the whole group: after `fg` a worker that answers a little later is not overdue."""
    monkeypatch.setattr(client, "ROUND_LIMIT_S", 5.0)
    measure(workers, 0)
    real, ready = supervisor.time.monotonic, supervisor.ready
    away = [0.0]

    def looked(children, limit_s):
        heard = ready(children, 0.0 if not away[0] else limit_s)
        away[0] = away[0] or 3600.0  # an hour passes in the first look
        return heard

    monkeypatch.setattr(supervisor, "ready", looked)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: real() + away[0]))
    assert workers.ask(WEAK.point, Round(point=WEAK.point, round=1)).record.round == 1


@pytest.mark.full
def test_a_process_that_fails_alone_ends_the_others_which_wait_for_it(workers, tmp_path):
    (tmp_path / "line.py.fails").touch()
    the_world(workers).wait_ready()
    pids = the_world(workers).pids
    with pytest.raises(WorkerError, match="process 1 of 2 failed: .*MemoryError: no room here") as failed:
        workers.ask(STRONG.point, Prepare(point=STRONG.to_json()))
    assert not failed.value.alive and gone(pids)


@pytest.mark.full
def test_a_common_refusal_is_one_sentence_and_the_group_continues(workers, tmp_path):
    pids = the_world(workers).pids
    wrong = {**STRONG.to_json(), "strategy": "tensor"}
    with pytest.raises(WorkerError, match="^'line' does not declare what can be split") as refused:
        workers.ask(STRONG.point, Compile(point=wrong))
    assert refused.value.unsupported and refused.value.alive
    (tmp_path / "line.py.differs").touch()
    with pytest.raises(WorkerError, match="^process 1 compiled another program of this step than process 0") as refused:
        workers.ask(STRONG.point, Prepare(point=STRONG.to_json()))
    assert refused.value.stage == "compile" and refused.value.alive
    assert the_world(workers).pids == pids


def test_a_port_that_is_taken_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"the port {address[10:]} of 127.0.0.1, .*, is taken \(Address already"):
            start.join(Position(address=address, processes=2, process=0))

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sweep as real processes: killed, interrupted, resumed, and with points that fail."""

import dataclasses
import json
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import fabricate
import pytest
from doorway import QUICK_MLP, command, environment, jaxbench
from rich.console import Console
from thin import thin

from jaxbench.core.point import Point
from jaxbench.core.store import MANIFEST, RunFolder, write_json
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Pace, Paced, PrepareAgain, Recorded, Same
from jaxbench.sweep import ongoing, preparation, sweep
from jaxbench.sweep.job import SweepJob
from jaxbench.sweep.progress import SweepProgress
from jaxbench.sweep.states import NEXT, Event, State, States

# Two points in one worker process.
SLOW = (*QUICK_MLP, "--config.strategy=jit_auto,shard_map", "--config.mesh.devices=1")
SLOW += ("--config.measure.rounds=10", "--config.measure.block_s=0.02")


def lines(run: Path) -> list[dict]:
    path = run / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []


@contextmanager
def running(run: Path, *how: str):
    """A sweep that has measured at least five rounds; always killed at the end."""
    words = command("run", "mlp", f"--workdir={run}", *SLOW, *how)
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with process:
        try:
            deadline = time.monotonic() + 200
            while sum(line["kind"] == "round" for line in lines(run)) < 5:
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


ENDS = [(signal.SIGKILL, -9, 1), (signal.SIGINT, 130, 2), (signal.SIGTERM, 130, 2)]


@pytest.mark.parametrize(("how", "code", "sets"), thin(ENDS, 1))
def test_killed_and_continued(tmp_path, how, code, sets):
    run, processes = tmp_path / "run", f"--config.measure.processes={sets}"
    with running(run, processes) as process:
        process.send_signal(how)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == code
    if how != signal.SIGKILL:
        assert "Stopped." in output
    kept = lines(run)
    again = jaxbench("run", "mlp", f"--workdir={run}", *SLOW, processes)
    assert again.returncode == 0, again.stdout + again.stderr
    now = lines(run)
    assert now[: len(kept)] == kept
    rounds = [(line["point"], line["round"]) for line in now if line["kind"] == "round"]
    assert sorted(rounds) == sorted({(p, r) for p in ("jit_auto/strong/1", "shard_map/strong/1") for r in range(10)})
    assert len(RunFolder(run).manifest()["sessions"]) == 1


BROKEN = """
import os
import jax, jax.numpy as jnp, optax
from jaxbench.workloads import Field, TrainWorkload

def build(config):
    def init(key):
        return {"w": jax.random.normal(key, (3,))}, {}

    def loss(params, model_state, batch, key):
        if batch["x"].shape[0] == 32:
            HOW
        return jnp.mean((batch["x"] @ params["w"]) ** 2), (model_state, {})

    return TrainWorkload(name="broken", init=init, loss=loss, optimizer=optax.sgd(0.1), example={"x": Field((3,))})
"""


FAILS = [("os.kill(os.getpid(), 9)", "killed by SIGKILL"), ("raise MemoryError('no room')", "MemoryError: no room")]


@pytest.mark.full
@pytest.mark.parametrize(("how", "reason"), thin(FAILS, 1))
def test_a_failing_point_is_recorded_and_the_rest_goes_on(tmp_path, how, reason):
    path = tmp_path / "broken.py"
    path.write_text(BROKEN.replace("HOW", how))
    run = tmp_path / "run"
    done = jaxbench("run", str(path), f"--workdir={run}", *QUICK_MLP, "--config.scaling=strong,weak")
    assert done.returncode == 1, done.stdout + done.stderr
    records = lines(run)
    failed = {line["point"]: line["reason"] for line in records if line["kind"] == "failure"}
    assert list(failed) == ["jit_auto/weak/2"]
    assert reason in failed["jit_auto/weak/2"]
    measured = {line["point"] for line in records if line["kind"] == "round"}
    assert measured == {"jit_auto/strong/1", "jit_auto/weak/1", "jit_auto/strong/2"}


def test_a_model_that_cannot_be_built_ends_the_run_with_its_sentence(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def build(config):\n    return 3\n")
    done = jaxbench("run", str(path), f"--workdir={tmp_path / 'run'}", *QUICK_MLP)
    assert done.returncode == 2
    assert "returned int, not a TrainWorkload" in done.stderr
    assert "Traceback" not in done.stderr


class Refusing:
    """Workers that refuse every point, the last one for a different reason."""

    number, closed = 0, False
    surroundings, bytes = {}, 0.0

    def __init__(self, *args, **how):
        pass

    close = send_ahead = kill = __init__

    def name(self, point):
        return "session0/cpu1"

    def ask(self, point, request):
        raise WorkerError("no memory." if point == "p8" else "no such lever.", stage="build")


def job_of(folder, names, rounds):
    """A sweep of these points of one device, without any lever but its input."""
    about = {"strategy": "jit_auto", "scaling": "strong", "devices": 1, "global_batch": 8, "oversubscribed": False}
    points = [Point(point=name, **about, levers={"input": "device"}) for name in names]
    config = {
        "measure": {"rounds": rounds, "processes": 1, "blocks": 1, "block_s": 0.05},
        "seed": 0,
        "experiment": "mlp",
    }
    run = RunFolder.begin(folder, config)
    write_json(run.path / MANIFEST, {})
    return SweepJob(run=run, points=points, config=config, experiment="mlp", session=0)


def test_a_reason_that_many_points_failed_for_is_said_once(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(ongoing.logging, "warning", lambda text, *words: said.append(text % words))
    job = job_of(tmp_path / "run", [f"p{n}" for n in range(9)], rounds=2)
    monkeypatch.setattr(ongoing, "Workers", Refusing)
    sweep.run(job, Console(quiet=True))
    assert said == ["p0 and 7 more points failed: no such lever.", "p8 failed: no memory."]
    job.run.close()
    assert len(lines(tmp_path / "run")) == 9


class Dying(Refusing):
    """Workers with one process for both points, which p1 kills."""

    def __init__(self, *args, lose, **how):
        self.lose, self.asked, self.loaded = lose, [], set()

    def close(self):
        pass

    def ask(self, point, request):
        self.asked.append((request.do, point))
        if isinstance(request, PrepareAgain):
            self.loaded.add(point)
            return Same(same=True)
        if isinstance(request, Pace):
            assert point in self.loaded
            return Paced(steps=7)
        if point == "p1":
            for each in ("p0", "p1"):
                self.lose(each)
            raise WorkerError("killed by SIGSEGV.", alive=False)
        record = fabricate.point_record(strategy="jit_auto")
        return Recorded(record=dataclasses.replace(record, point=point), steps=1)


def test_a_point_that_is_lost_with_its_process_is_loaded_again_before_it_is_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(ongoing, "Workers", Dying)
    job = job_of(tmp_path / "run", ["p0", "p1"], rounds=20)
    with SweepProgress(Console(quiet=True), []) as progress:
        with ongoing.OngoingSweep(job, progress, job.points, {}, []) as found:
            found.begin([0], ["p0", "p1"])
            preparation.prepare(found, ["p0", "p1"])
            (workers,) = found.sets
            assert found.states.of(0, "p0") is State.LOADED and found.states.failed == {"p1"}
    job.run.close()
    assert found.steps == {"p0": 7}
    assert workers.asked[2:] == [("prepare_again", "p0"), ("pace", "p0")]


def test_a_point_moves_through_its_states_and_nothing_leads_back_from_a_failure():
    states = States()
    for number in (0, 1):
        states.begin(number, ["p", "q"])
    states.happened(Event.PREPARE, 0, "p")
    states.share("p")
    assert [states.of(number, "p") for number in (0, 1)] == [State.LOADED, State.CHECKED]
    states.happened(Event.MEASURE, 0, "p")
    states.happened(Event.LOSE, 0, "p")
    assert states.of(0, "p") is State.CHECKED and not states.ready(0, "p")
    states.end(1)
    states.begin(1, ["p"])  # a set of a later wave
    assert states.of(1, "p") is State.CHECKED
    with pytest.raises(KeyError):
        states.happened(Event.MEASURE, 0, "q")  # nobody has prepared it
    states.happened(Event.FAIL, 0, "p")
    states.happened(Event.PREPARE, 0, "p")
    assert {states.of(number, "p") for number in (0, 1)} == {State.FAILED}
    assert {after for (state, _), after in NEXT.items() if state is State.FAILED} == {State.FAILED}

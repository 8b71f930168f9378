# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train` in several processes: one is killed, stopped or fails at a given step; and their agreement."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from doorway import command, environment

from jaxbench.errors import UserError
from jaxbench.features.training import folder, trainings
from jaxbench.features.training.checkpoint import saved_steps
from jaxbench.features.training.loop import Agreed, Stop
from jaxbench.features.training.run import Faults, Watch
from jaxbench.features.training.worker import Beat
from jaxbench.machine import start
from jaxbench.parallel import multihost

# A linear classifier. Before its n-th batch, process p executes the file "<this file>.p", once: "kill 9".
MODEL = """
import os, signal, time
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np, optax
from jaxbench.workloads import Field, TrainWorkload
from jaxbench.core.workload import Dataset

class Watched(np.ndarray):
    batches = 0
    def __getitem__(self, index):
        if isinstance(index, np.ndarray):
            Watched.batches += 1
            order = Path(f"{__file__}.{jax.process_index()}")
            what, _, batch = order.read_text().partition(" ") if order.exists() else ("", "", "0")
            if what and Watched.batches == int(batch):
                order.unlink()
                if what == "raise":
                    raise ValueError("this row is bad")
                if what == "sleep":
                    time.sleep(60)
                os.kill(os.getpid(), signal.SIGKILL if what == "kill" else signal.SIGSTOP)
        return np.asarray(super().__getitem__(index))

def data():
    random = np.random.default_rng(0)
    label = random.integers(0, 4, 192).astype(np.int32)
    x = (random.normal(size=(4, 12))[label] + random.normal(size=(192, 12))).astype(np.float32)
    return Dataset({"x": x[:128].view(Watched), "label": label[:128]}, {"x": x[128:], "label": label[128:]}, "points")

def build(config):
    def init(key):
        return {"w": jax.random.normal(key, (12, 4)), "b": jnp.zeros(4)}, {}

    def loss(params, model_state, batch, key):
        logits = batch["x"] @ params["w"] + params["b"]
        accuracy = jnp.mean(jnp.argmax(logits, -1) == batch["label"])
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        return jnp.mean(losses), (model_state, {"accuracy": accuracy})

    example = {"x": Field((12,)), "label": Field((), jnp.int32, classes=4)}
    about = dict(example=example, optimizer=optax.adam(1e-2), flops_per_example=1.0, data=data)
    return TrainWorkload(name="points", init=init, loss=loss, **about)
"""
SETTINGS = (
    "--config.mesh.platform=cpu",
    "--config.train.batch=16",
    "--config.train.epochs=3",
    "--config.train.target=1.0",
    "--config.train.checkpoint_every=3",
)
STEPS = 24


class Points:
    """The experiment in a folder, and its trainings."""

    def __init__(self, folder: Path):
        self.folder, self.file, self.run = folder, folder / "points.py", folder / "run"
        self.file.write_text(MODEL)

    def order(self, process: int, what: str) -> None:
        """what: "kill 9": before its 9th batch; the first batch only shows the shapes."""
        Path(f"{self.file}.{process}").write_text(what)

    def start(self, *words: str) -> subprocess.Popen[str]:
        whole = command("train", str(self.file), f"--workdir={self.run}", *SETTINGS, *words)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(whole, env=environment(), cwd=self.folder, **pipes)

    def train(self, processes: int, *words: str) -> tuple[int, str, str]:
        several = (f"--config.mesh.processes={processes}", f"--config.mesh.devices={processes}")
        return ended(self.start(*several, *words))

    @property
    def losses(self) -> list[float]:
        rows = [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().splitlines()]
        assert [row["step"] for row in rows] == [8, 16, 24]
        return [row["train_loss"] for row in rows]

    @property
    def steps(self) -> list[int]:
        return saved_steps(self.run / "checkpoints")


def ended(process: subprocess.Popen[str], limit_s: float = 170) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=limit_s)
    finally:
        process.kill()
    return process.returncode, out, err


def ranks() -> list[int]:
    """The processes started by tests of this module that still exist."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            own = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if MINE in own and b"jaxbench.features.training.worker" in words:
            found.append(int(path.name))
    return found


MINE = f"JAXBENCH_LOCK_DIR={os.environ.get('JAXBENCH_LOCK_DIR')}".encode()


def gone(within_s: float = 15) -> bool:
    deadline = time.monotonic() + within_s
    while ranks() and time.monotonic() < deadline:
        time.sleep(0.1)
    return not ranks()


@pytest.fixture
def points(tmp_path):
    return Points(tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process's training, which the others must equal."""
    points = Points(tmp_path_factory.mktemp("alone"))
    code, out, err = points.train(1)
    assert code == 1, out + err
    return points


@pytest.mark.full
def test_elastic_goes_on_without_a_process_that_is_killed(points, alone):
    """Two processes train like one; one is killed, and the other ends the training with the same losses."""
    points.order(1, "kill 15")
    code, out, err = points.train(2, "--elastic")
    assert code == 1, out + err
    assert re.search(
        r"process 1 of 2 \(on .*\) was killed by SIGKILL .*: continuing with 1 process from the checkpoint at", out
    )
    assert points.losses == pytest.approx(alone.losses, rel=1e-5)
    manifest = json.loads((points.run / "manifest.json").read_text())
    assert [session["processes"] for session in manifest["sessions"]] == [2, 1]
    first, second = trainings.read_ledger(points.run)
    assert first.from_step == 0 and 0 < second.from_step < first.step and second.finished
    assert trainings.totals([first, second])["again"] > 0 and gone()


@pytest.mark.full
def test_another_number_of_processes_continues_to_the_same_losses(points, alone):
    """Four processes train; one is killed, and then two, one and eight continue in turn."""
    on = {4: "kill 8", 2: "kill 6", 1: "kill 6", 8: ""}
    for processes, what in on.items():
        assert points.steps or processes == 4
        if what:
            points.order(0, what)
        code, out, err = points.train(processes)
        if processes == 1:  # it has no parent to report it
            assert code == -signal.SIGKILL, out + err
        elif what:
            killed = rf"jaxbench: process 0 of {processes} \(on .*\) was killed by SIGKILL .*: the same command .*\n"
            assert code == 2 and re.fullmatch(killed, err), out + err
        if processes < 4:
            assert "It was trained on " in out
    assert code == 1 and points.losses == pytest.approx(alone.losses, rel=1e-5)


@pytest.mark.full
def test_the_same_number_ends_with_the_same_bits_whatever_is_killed(points, tmp_path):
    """First one process, then the whole job; the same command ends as if nothing had happened."""
    (tmp_path / "whole").mkdir()
    _, expected, err = Points(tmp_path / "whole").train(2)
    points.order(1, "kill 9")
    code, out, err = points.train(2)
    assert code == 2 and gone(), out + err
    assert re.fullmatch(r"jaxbench: process 1 of 2 \(on .*\) was killed by SIGKILL .* at step [36]\.\n", err)
    whole_job = points.start("--config.mesh.processes=2", "--config.mesh.devices=2")
    while points.steps[0] < 9:
        time.sleep(0.02)
    whole_job.kill()
    assert gone()
    ended(whole_job)
    code, out, err = points.train(2)
    digest = re.compile("^params_sha256: [0-9a-f]{64}$", re.MULTILINE)
    assert code == 1 and digest.findall(out) == digest.findall(expected) != [], out + err


@pytest.mark.full
def test_a_signal_ends_all_after_the_same_step(points):
    words = ("--config.mesh.processes=2", "--config.mesh.devices=2", "--config.train.epochs=1000")
    stopped = points.start(*words)
    while not points.steps:
        time.sleep(0.1)
    stopped.terminate()
    code, out, err = ended(stopped)
    assert code == 130 and gone(), out + err
    step = re.search(r"stopped by SIGTERM after step (\d+); it is saved", out)
    assert step and points.steps[0] == int(step[1])


@pytest.mark.full
@pytest.mark.parametrize(
    ("process", "what", "words"),
    [
        (1, "stop 9", "process 1 of 2 .* gave no sign of life for 6 s .*: it was stopped, as by SIGSTOP: the same"),
        (0, "stop 9", "process 0 of 2 .* gave no sign of life for 6 s .*: it was stopped, as by SIGSTOP: the same"),
        (1, "raise 9", "process 1 of 2 .* failed: ValueError: this row is bad: the same command"),
        (0, "kill 9", "process 0 of 2 .* was killed by SIGKILL .*: the same command"),
        (1, "sleep 9", "process 1 of 2 .* did not advance after step 7 .input., and the others waited 6 s; "),
    ],
)
def test_a_fault_is_one_sentence_that_names_the_process(points, process, what, words):
    points.order(process, what)
    begun = time.monotonic()
    code, out, err = points.train(2, "--fault_timeout=6")
    assert code == 2 and gone() and points.steps[0] in (3, 6), out + err
    assert re.fullmatch(f"jaxbench: {words}.* from the checkpoint at step [36]\\.\n", err), err
    assert time.monotonic() - begun < 60


@pytest.mark.full
def test_a_full_disk_ends_all_with_one_sentence_and_no_loss(points, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("only root can make a small disk")
    try:
        points.run = disk / "run"
        code, out, err = points.train(2, "--config.train.keep=100", "--elastic")
        assert code == 2 and gone() and points.steps, out + err
        # Both may find the disk full before one has ended the other: then no process is to blame.
        said = r"jaxbench: (process \d of 2 .*)?cannot write to .*No space left on device.*: free some space, .*\n"
        assert re.fullmatch(said, err), err
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def by_hand(points: Points, *words: str) -> list[subprocess.Popen[str]]:
    """A launch of two, as on two hosts that share the folder. The first leads."""
    place = (f"--coordinator={start.free_address()}", "--processes=2", "--config.mesh.devices=2")
    return [points.start(*place, f"--process={process}", *words) for process in (0, 1)]


@pytest.mark.full
def test_a_launch_trains_together_and_continues_what_one_process_began(points, alone):
    points.order(0, "kill 9")
    assert points.train(1)[0] == -signal.SIGKILL
    leader, follower = map(ended, by_hand(points))
    assert leader[0] == 1 and "continuing from the checkpoint at step" in leader[1], leader
    assert follower == (1, "", "")
    assert points.losses == pytest.approx(alone.losses, rel=1e-5)
    manifest = json.loads((points.run / "manifest.json").read_text())
    assert [session["processes"] for session in manifest["sessions"]] == [1, 2] and gone()


@pytest.mark.full
@pytest.mark.parametrize("elastic", [False, True])
def test_a_launch_with_a_killed_rank(points, alone, elastic):
    points.order(1, "kill 9")
    leader, follower = map(ended, by_hand(points, *(["--elastic"] if elastic else [])))
    assert gone()
    if not elastic:
        assert leader[0] == follower[0] == 2 and follower[1:] == ("", ""), (leader, follower)
        assert re.fullmatch(r"jaxbench: process 1 of 2 \(on .*\) was killed by SIGKILL .* at step [36]\.\n", leader[2])
        return
    assert leader[0] == follower[0] == 1, (leader, follower)
    assert "was killed by SIGKILL" in leader[1] and "continuing with 1 process from the checkpoint" in leader[1]
    assert points.losses == pytest.approx(alone.losses, rel=1e-5)


@pytest.mark.full
def test_elastic_goes_on_when_a_whole_follower_is_gone(points, alone):
    """As when its host is lost: the leader does not learn how it ended, only that it is silent."""
    points.order(1, "stop 9")
    leader, follower = by_hand(points, "--elastic")
    while not points.steps:
        time.sleep(0.1)
    follower.kill()
    code, out, err = ended(leader)
    assert code == 1, out + err
    assert re.search(r"process 1 of 2 \(on .*\) is gone: .*: continuing with 1 process from the checkpoint", out)
    assert points.losses == pytest.approx(alone.losses, rel=1e-5)
    ended(follower)
    for pid in ranks():  # SIGSTOP outlasts the end of its stdin
        os.kill(pid, signal.SIGKILL)


@pytest.mark.full
def test_a_launch_with_a_killed_leader_ends(points):
    leader, follower = by_hand(points, "--config.train.epochs=1000")
    while not (points.run / "checkpoints").exists() or not points.steps:
        time.sleep(0.1)
    leader.kill()
    code, out, err = ended(follower, 60)
    assert code == 2 and "process 0, which leads this launch from 127.0.0.1, is gone" in err
    ended(leader)
    assert gone()


@pytest.mark.parametrize(
    ("beats", "now", "words"),
    [
        ([("steps", 5, 9), ("steps", 5, 9)], 9.0, None),
        ([("steps", 5, 9), None], 11.0, (1, "gave no sign of life for 10 s")),
        ([("steps", 7, 9), ("input", 6, 8)], 11.0, (1, r"did not advance after step 6 \(input\)")),
        ([("evaluation", 7, 9), ("steps", 7, 8)], 11.0, None),
    ],
)
def test_which_process_is_lost(beats, now, words):
    """Two processes with a limit of 10 s. Both repeat the same message, or one is silent."""
    watch = Watch(2, 10.0)
    for second in range(int(now) + 1):
        for process, beat in enumerate(beats):
            if beat is not None:
                watch.heard(process, Beat(**dict(zip(("kind", "step", "ticks"), beat, strict=True))), float(second))
    found = watch.fault([0, 1], now)
    if words is None:
        assert found is None
    else:
        assert found is not None and found[0] == words[0] and re.match(words[1], found[1])


class Two:
    """The first of two processes; the answers of the second are scripted."""

    alone, leads, processes = False, True, (0, 1)

    def __init__(self, other):
        self.other, self.asked = other, 0

    def on_leader(self, call):
        return call()

    def all_gather(self, value):
        self.asked += 1
        return [value, self.other]


def test_a_folder_that_another_process_does_not_see_is_refused(tmp_path):
    with (
        pytest.raises(UserError, match="process 1 does not see what process 0 wrote into"),
        folder.locked_folder(tmp_path / "run", {}, Two(other=False)),
    ):
        pass
    assert not list((tmp_path / "run").glob("seen-*"))
    with folder.locked_folder(tmp_path / "run", {}, Two(other=True)) as checkpoints:
        assert checkpoints == Path(tmp_path / "run" / "checkpoints")


def test_a_signal_of_one_process_is_seen_at_a_step_that_all_look_at():
    """Steps of 0.1 s: they look at the first step and the second, then twice as far ahead each time, up to 5 steps."""
    now = [0.0]
    stop, members = Stop(), Two(other=[None, 1])
    agreed = Agreed(stop, members, clock=lambda: now[0])
    seen = []
    for step in range(1, 16):
        now[0] = step / 10
        before = members.asked
        if step == 9:
            stop.ask("SIGTERM")
        ended = agreed.at(step)
        seen += [step] if members.asked > before else []
        if ended:
            break
    assert seen == [1, 2, 4, 8, 13] and agreed.name == "SIGTERM"


def test_rows_are_read_only_where_they_are_needed():
    array, numbers = np.arange(60).reshape(10, 6), np.array([7, 1, 3, 9])
    rows = multihost.Rows(array, numbers)
    assert rows.shape == (4, 6)
    assert (rows[slice(2, 4), slice(0, 3)] == array[[3, 9], :3]).all()
    stacked = rows.reshape(2, 2, 6)
    assert stacked.shape == (2, 2, 6)
    assert (stacked[slice(1, 2), slice(None), slice(None)] == array[[[3, 9]]]).all()
    assert (np.asarray(rows) == array[numbers]).all()


@pytest.mark.parametrize("seconds", [0.0, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(UserError, match="--fault_timeout="):
        Faults(timeout_s=seconds)

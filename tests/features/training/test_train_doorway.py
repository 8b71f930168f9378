# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train` from the command line: killed at any moment, restarted, and the same parameters bit for bit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time

import pytest
from doorway import ROOT, command, environment, jaxbench
from thin import thin
from train_cases import NOISE, STEPS_PER_EPOCH, train_toy

import jaxbench as jb
from jaxbench.features.training import trainings

WORDS = (
    "--config.mesh.platform=cpu",
    "--config.mesh.devices=2",
    "--config.train.epochs=40",
    "--config.train.target=1.0",
    "--config.train.checkpoint_every=7",
)


def trained(text: str) -> str:
    """The line with the digest of the trained parameters."""
    (line,) = (line for line in text.splitlines() if line.startswith("params_sha256: "))
    return line


TREES = ("--config.model.table=digits", "--config.model.trees=12", "--config.model.depth=3", "--config.train.batch=128")
FOREST = ("--config.model.count=4", "--config.model.depth=4", "--config.model.rounds=10", "--config.train.batch=112")


@pytest.mark.full
@pytest.mark.parametrize(("experiment", "more"), [("mlp", ()), ("gbdt", TREES), ("forest", FOREST)])
def test_kill_9_and_the_same_command(tmp_path, experiment, more):
    words = (experiment, *WORDS, *more)
    whole = jaxbench("train", *words, f"--workdir={tmp_path / 'whole'}")
    assert whole.returncode in (0, 1), whole.stdout + whole.stderr  # target reached or not
    assert trained(whole.stdout)

    words = command("train", *words, f"--workdir={tmp_path / 'killed'}")
    with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 200
        checkpoints = tmp_path / "killed" / "checkpoints"
        while not (checkpoints.is_dir() and any(entry.isdigit() for entry in os.listdir(checkpoints))):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
    again = jaxbench(*words[3:])
    assert "continuing from the checkpoint at step" in again.stdout, again.stdout + again.stderr
    assert trained(again.stdout) == trained(whole.stdout)
    assert again.returncode == whole.returncode


@pytest.mark.full
def test_cnn_reaches_its_target_by_default(tmp_path):
    done = jaxbench("train", "cnn", f"--workdir={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["test_accuracy"] >= 0.97
    assert "target 0.97 reached" in done.stdout


@pytest.mark.full
def test_presets_for_measuring_leave_training_alone_and_a_file_may_not_change(tmp_path):
    """As a user would: a preset, another preset and strategy for the rest, and an edited file in between."""
    mine, folder = tmp_path / "mine.py", tmp_path / "run"
    mine.write_text((ROOT / "experiments" / "mlp.py").read_text())
    words = ("train", str(mine), f"--workdir={folder}", "--config.mesh.platform=cpu", "--config.train.target=1.0")

    done = jaxbench(*words, "--preset=smoke", "--config.train.epochs=1")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "strategy jit_auto" in done.stdout

    source = mine.read_text()
    mine.write_text(source + "# another experiment\n")
    done = jaxbench(*words, "--config.train.epochs=2")
    assert done.returncode == 2 and "the experiment file 'mine.py' has changed" in done.stderr

    mine.write_text(source)
    done = jaxbench(*words, "--preset=paper", "--config.train.strategy=shard_map", "--config.train.epochs=2")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "strategy jit_auto: the final bits may differ" in done.stdout
    sessions = json.loads((folder / "manifest.json").read_text())["sessions"]
    assert [session["strategy"] for session in sessions] == ["jit_auto", "shard_map"]


@pytest.mark.full
def test_a_step_with_independent_reductions_is_trained_with_the_threads_of_the_default(tmp_path):
    """Its reductions can wait at once: with too few threads, or with steps that run ahead without limit, it hangs."""
    words = ("--config.mesh.platform=cpu", "--config.mesh.devices=4", "--config.train.strategy=zero2")
    done = jaxbench("train", "mlp", f"--workdir={tmp_path}", *words, "--config.train.epochs=1")
    assert trained(done.stdout) and (tmp_path / "metrics.jsonl").read_text(), done.stderr


WRONG = [
    ("--config.lever.part=forward", "--config.lever.part=forward is not for training"),
    ("--config.train.strategy=jit_atuo", "did you mean 'jit_auto'?"),
    ("--config.train.strategy=all", "there is no strategy 'all'"),
    ("--config.strategy=pmap", "use --config.train.strategy=pmap for training"),
    ("--config.mesh.devices=1,2", "training uses one device count"),
    ("--config.data.path=/no/such/file.npz", "/no/such/file.npz"),
    ("--config.train.batch=0", "train.batch"),
]


@pytest.mark.parametrize(("word", "sentence"), thin(WRONG, 1))
def test_bad_input_is_a_sentence(tmp_path, word, sentence):
    done = jaxbench("train", "mlp", f"--workdir={tmp_path}", "--config.mesh.platform=cpu", word)
    assert done.returncode == 2, word
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_training_leaves_a_page_that_report_makes_again(tmp_path):
    done = jaxbench("train", "mlp", f"--workdir={tmp_path}", "--config.mesh.platform=cpu", "--config.train.epochs=1")
    page = tmp_path / "training.html"
    assert "starting the process" in done.stdout and page.exists(), done.stdout + done.stderr
    assert f"Page: {page}\n" in done.stdout
    page.unlink()
    again = jaxbench("report", f"--run={tmp_path}")
    assert again.returncode == 0 and "the goodput is" in again.stdout and page.exists(), again.stderr
    assert f"Page: {page}\n" in again.stdout
    found = jb.load(tmp_path)
    assert len(found.table) >= 1 and "test_accuracy" in found.table and "learning" in found.figures


SEED = 20260101


def child(folder, when="never", *keys):
    command = [sys.executable, str(ROOT / "tests" / "train_cases.py"), str(folder), "4", when, *keys]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The last line of an uninterrupted training."""
    result = train_toy(tmp_path_factory.mktemp("whole"), devices=4)
    return f"params_sha256: {result.params_sha256}"


def ends_with(expected, folder, *keys):
    ended = child(folder, "never", *keys)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == expected


def accounts_for_all_time(folder, *, starts):
    """Steps are repeated exactly if a start continued from an earlier step than the previous start had completed."""
    found = trainings.read_ledger(folder)
    assert len(found) == starts and found[0].from_step == 0 and found[-1].finished
    for before, after, again in zip(found, found[1:], trainings.again_ns(found), strict=False):
        assert after.begun_ns >= before.end_ns and 0 <= again <= before.ns["steps"]
        assert (again > 0) == (after.from_step < before.step)
    spent = trainings.totals(found)
    assert sum(spent.values()) == found[-1].end_ns - found[0].begun_ns
    assert spent["again"] > 0 and spent["idle"] > 0 and spent["restore"] > 0


@pytest.mark.full
def test_kill_9_before_a_step_and_the_same_command_ends_with_the_same_bits(tmp_path, expected):
    killed = child(tmp_path, f"step:{random.Random(SEED).randrange(STEPS_PER_EPOCH, 4 * STEPS_PER_EPOCH)}")
    assert killed.returncode == -9, killed.stderr
    ends_with(expected, tmp_path)
    accounts_for_all_time(tmp_path, starts=2)


@pytest.mark.parametrize("kills", thin(["save:4", "save:1 save:4"], 1))
def test_kill_9_while_a_checkpoint_is_being_saved(tmp_path, expected, kills):
    """In a later checkpoint; and in the first one, and in a later one after the training continued."""
    for when in kills.split():
        killed = child(tmp_path, when)
        assert killed.returncode == -9, killed.stderr  # it dies when it has seen an unfinished checkpoint
    ends_with(expected, tmp_path)
    accounts_for_all_time(tmp_path, starts=1 + len(kills.split()))


@pytest.mark.full
def test_kill_9_at_drawn_moments(tmp_path, expected):
    """One training, killed repeatedly: between steps, in a save, while an older checkpoint is removed."""
    moment = random.Random(SEED)
    codes = [child(tmp_path, f"after:{moment.uniform(0, 0.5):.3f}").returncode for _ in range(3)]
    assert codes[0] == -9 and set(codes) <= {-9, 0}  # the last kill may come too late
    ends_with(expected, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("keys", NOISE)
def test_kill_9_where_the_optimizer_has_a_random_key_of_its_own(tmp_path, keys):
    whole = train_toy(tmp_path / "whole", devices=4, keys=keys)
    killed = child(tmp_path / "killed", f"step:{STEPS_PER_EPOCH + 3}", keys)
    assert killed.returncode == -9, killed.stderr
    ends_with(f"params_sha256: {whole.params_sha256}", tmp_path / "killed", keys)

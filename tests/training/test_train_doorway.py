# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train` as a person types it: killed, started again, and the same parameters bit for bit."""

import os
import subprocess
import time

from doorway import command, environment, jaxbench

WORDS = (
    "--config.mesh.platform=cpu",
    "--config.mesh.devices=2",
    "--config.train.epochs=40",
    "--config.train.target=1.0",
    "--config.train.checkpoint_every=7",
)


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_kill_9_and_the_same_command(tmp_path):
    whole = jaxbench("train", "mlp", f"--workdir={tmp_path / 'whole'}", *WORDS)
    assert whole.returncode == 1, whole.stdout + whole.stderr  # no perceptron gets every digit right
    assert last_line(whole.stdout).startswith("params_sha256: ")

    words = command("train", "mlp", f"--workdir={tmp_path / 'killed'}", *WORDS)
    with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 200
        checkpoints = tmp_path / "killed" / "checkpoints"
        while not (checkpoints.is_dir() and any(entry.isdigit() for entry in os.listdir(checkpoints))):
            assert process.poll() is None
            assert time.monotonic() < deadline
        process.kill()
    again = jaxbench("train", "mlp", f"--workdir={tmp_path / 'killed'}", *WORDS)
    assert "continuing from the checkpoint of step" in again.stdout, again.stdout + again.stderr
    assert last_line(again.stdout) == last_line(whole.stdout)


def test_bad_input_is_a_sentence(tmp_path):
    for word, sentence in [
        ("--config.strategy=all", "training uses one strategy"),
        ("--config.mesh.devices=1,2", "training uses one device count"),
        ("--config.data.path=/no/such/file.npz", "/no/such/file.npz"),
        ("--config.train.batch=0", "train.batch"),
    ]:
        done = jaxbench("train", "mlp", f"--workdir={tmp_path}", "--config.mesh.platform=cpu", word)
        assert done.returncode == 2, word
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""kill -9, for real: a child process dies at a drawn step, and the same command ends with the same bits."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from train_cases import STEPS_PER_EPOCH, train_toy

ROOT = Path(__file__).parents[2]
SEED = 20260101


def child(folder, kill_at=0):
    command = [sys.executable, str(ROOT / "tests" / "train_cases.py"), str(folder), "4", str(kill_at)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )


def test_kill_9_and_the_same_command_ends_with_the_same_bits(tmp_path):
    killed = child(tmp_path / "killed", kill_at=random.Random(SEED).randrange(STEPS_PER_EPOCH, 4 * STEPS_PER_EPOCH))
    assert killed.returncode == -9, killed.stderr
    ended = child(tmp_path / "killed")
    assert ended.returncode == 0, ended.stderr
    uninterrupted = train_toy(tmp_path / "whole", devices=4)
    assert ended.stdout.splitlines()[-1] == f"params_sha256: {uninterrupted.params_sha256}"

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A real kill -9: a child process dies at any moment, and the same command ends with the same bits."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from train_cases import NOISE, STEPS_PER_EPOCH, train_toy

from jaxbench.records import trainings

ROOT = Path(__file__).parents[2]
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


def test_kill_9_while_a_checkpoint_is_being_saved(tmp_path, expected):
    """Twice: in the first checkpoint, and in a later one after the training continued."""
    unfinished = []
    for when in ("save:1", "save:4"):
        killed = child(tmp_path, when)
        assert killed.returncode == -9, killed.stderr
        unfinished += (tmp_path / "checkpoints").glob("*.part")
    assert unfinished  # one of them may have been finished between being seen and the kill
    ends_with(expected, tmp_path)
    accounts_for_all_time(tmp_path, starts=3)


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

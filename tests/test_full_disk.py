# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A full disk is one sentence and loses nothing: real commands on a small file system in memory, if one may mount."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from doorway import QUICK_MLP, command, environment
from thin import thin

WORDS = {
    "run": ("run", "mlp", *QUICK_MLP),
    "train": ("train", "mlp", "--preset=smoke", "--config.mesh.platform=cpu", "--config.train.target=0.5"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


@pytest.mark.parametrize(
    ("verb", "kib"), thin([(verb, kib) for verb in WORDS for kib in (16, 64, 200, 300, 400, 600, 900)], 7)
)
def test_a_full_disk_is_one_sentence_and_the_same_command_continues(disk: Path, verb: str, kib: int) -> None:
    words = command(*WORDS[verb], f"--workdir={disk / 'run'}")
    subprocess.run(["mount", "-o", f"remount,size={kib}k", disk], check=True)
    full = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=240)
    if full.returncode == 0:
        pytest.skip(f"all of it fits into {kib} KiB")
    assert full.returncode == 2 and "No space left on device" in full.stderr, full.stdout + full.stderr
    assert len(full.stderr.splitlines()) == 1
    subprocess.run(["mount", "-o", "remount,size=60m", disk], check=True)
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr

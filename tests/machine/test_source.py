# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parent and workers run the same copy of the package: real processes, and copies of the package on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import QUICK_MLP, ROOT, environment

from jaxbench.errors import UserError
from jaxbench.machine import manifest, source
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Setup

CONFIG = {"measures": "cases", "seed": 0}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second checkout, in addition to the installed copy."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("jaxbench", "experiments", "configs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.full
def test_a_run_from_another_checkout_ends_with_both_places_named(copy: Path) -> None:
    """`python -m` puts the current folder before the installed package; workers do not use that folder."""
    words = [sys.executable, "-m", "jaxbench", "run", "mlp", "--workdir=run", *QUICK_MLP]
    done = subprocess.run(words, cwd=copy, env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert f"'{copy / 'jaxbench'}'" in done.stderr and f"'{ROOT / 'jaxbench'}'" in done.stderr
    assert not (copy / "run").exists()


def test_the_description_of_the_machine_is_of_the_same_copy(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(copy))
    manifest.probe.cache_clear()
    with pytest.raises(
        UserError, match=f"'{source.PACKAGE}', but its worker processes run it from '{copy / 'jaxbench'}'"
    ):
        manifest.probe("cpu")


def worker(folder: Path, package: Path) -> Worker:
    about = {"experiment": "mlp", "config": CONFIG, "worker": "w", "environment": {"PYTHONPATH": str(package)}}
    return Worker(Setup(platform="cpu", devices=1, **about), folder / "log")


def test_an_edit_to_a_timed_file_ends_the_run(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit is in the worker's copy; this process stands for one that started before the edit."""
    monkeypatch.setattr(source, "HERE", {**source.HERE, "folder": str(copy / "jaxbench")})
    same = worker(tmp_path, copy)
    same.wait_ready()  # the same text in another folder has the same hash
    same.close()
    clock = copy / "jaxbench" / "core" / "clock.py"
    text = clock.read_text()
    clock.write_text(f"{text}\n# edited\n")
    os.utime(clock)
    edited = worker(tmp_path, copy)
    try:
        with pytest.raises(UserError, match="changed during this run"):
            edited.wait_ready()
    finally:
        edited.close()
        clock.write_text(text)

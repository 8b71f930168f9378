# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench launch` as a user runs it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import environment, jaxbench
from thin import thin

CPU = ("--devices=cpu:1", "--dry_run")


def test_a_dry_run_shows_the_line_and_starts_and_writes_nothing(tmp_path: Path) -> None:
    words = ("run", "mlp", "--config.data.path=", "--config.model.width=8")
    done = jaxbench("launch", "mpi", *CPU, f"--workdir={tmp_path / 'a b'}", "--", *words)
    assert done.returncode == 0, done.stderr
    line = shlex.split(done.stdout.splitlines()[1])
    assert line[0] == "mpirun"
    assert line[line.index(sys.executable) :] == [
        *(sys.executable, "-m", "jaxbench", *words, "--config.mesh.platform=cpu", "--config.mesh.devices=1"),
        f"--workdir={tmp_path / 'a b' / 'nodes-1'}",
    ]
    assert not list(tmp_path.iterdir())


def test_a_dry_run_for_slurm_needs_nothing_that_is_not_installed(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['submitit'] = None; from jaxbench import app; app.main()"
    words = ("launch", "slurm", "--devices=gpu:8", "--dry_run", f"--workdir={tmp_path / 'x'}", "--", "run", "mlp")
    command = [sys.executable, "-c", hidden, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "#SBATCH --gpus-per-node=8" in done.stdout and "jaxbench run mlp" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    thin(
        [
            (("mpi", *CPU, "--", "run", "mlp", "--config.bach=4"), "--config.bach"),
            (("mpi", *CPU, "--", "run", "mlp", "--config.strategy=jitauto"), "did you mean 'jit_auto'?"),
            (("mpi", *CPU, "--", "run", "mlq"), "unknown experiment 'mlq': did you mean 'mlp'?"),
            (("mpi", *CPU, "--", "run", "mlp", "--worksdir=x"), "there is no flag --worksdir"),
            (("slrm", *CPU, "--", "run", "mlp"), "there is no engine 'slrm' to launch with: did you mean 'slurm'?"),
            (("mpi", *CPU), "jaxbench launch needs run or train and its experiment after '--'"),
            (("mpi", "--strategy=x", "--", "run", "mlp"), "there is no flag --strategy"),
            (("mpi", "--nodes=0", "--", "run", "mlp"), "--nodes=0 is not a list of different node counts"),
            ((), "jaxbench launch takes one engine"),
        ],
        1,
    ),
)
def test_a_mistake_is_one_sentence_before_anything_is_queued(words: tuple[str, ...], sentence: str) -> None:
    done = jaxbench("launch", *words)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.full
def test_only_launch_takes_a_command() -> None:
    done = jaxbench("list", "--", "run", "mlp")
    assert done.returncode == 2 and "jaxbench list takes nothing after '--'" in done.stderr

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench launch slurm -- accept` on two real nodes: a node that computes wrongly is kept out of the next job."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cluster.own_slurm import happens, idle
from doorway import command, environment

from jaxbench.features.accept import bits, files

pytestmark = [pytest.mark.cluster, pytest.mark.full]


def sh(*words: str, **more: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, env={**environment(), **more})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_failing_node_is_kept_out_of_the_next_job(slurm_here: None, tmp_path: Path) -> None:
    nodes = sorted({*sh("sinfo", "--noheader", "--Node", "--format=%N").split()})[:2]
    launch = ("launch", "ENGINE=slurm", "NODES=2", "--devices=cpu:1", "--minutes=5", f"--workdir={tmp_path}")
    words = ("accept", "--probes=triad", "--budget_s=2", "--margin=90%")
    sh(*command(*launch, "--", *words), **{bits.FLIP: f"triad:0@{nodes[1]}"})
    folder = tmp_path / "nodes-2"
    assert happens((folder / files.PAGE).exists, 180), [*tmp_path.rglob("*.err")]
    found = json.loads((folder / "accept.json").read_text())
    assert found["exit_code"] == 1 and found["failing"] == [nodes[1]] == (folder / files.FAILING).read_text().split()
    assert "computes wrong bits in triad" in found["sentences"][0]
    assert happens(idle)
    where = tmp_path / "where"
    asked = (f"--exclude={folder / files.FAILING}", f"--output={where}", "--wait", "--wrap=echo $SLURMD_NODENAME")
    sh("sbatch", "--nodes=1", *asked)
    assert where.read_text().strip() == nodes[0]

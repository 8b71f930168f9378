# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The examples for ReFrame and JUBE, with the real programs where they are installed."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import QUICK_MLP, environment
from house.tree import ROOT

pytestmark = pytest.mark.cluster
SMALL = " ".join(QUICK_MLP)
REFRAME = shutil.which("reframe") or shutil.which(str(ROOT / ".venv-reframe" / "bin" / "reframe"))
JUBE = shutil.which("jube")
SITE = """
site_configuration = {"systems": [{"name": "here", "hostnames": [".*"], "partitions": [{
    "name": "login", "scheduler": "local", "launcher": "local", "environs": ["builtin"]}]}]}
"""


def surroundings(folder: Path) -> dict[str, str]:
    """With `jaxbench` on the path, as an installation has it."""
    (folder / "bin").mkdir()
    (folder / "bin" / "jaxbench").write_text(f'#!/bin/sh\nexec {sys.executable} -m jaxbench "$@"\n')
    (folder / "bin" / "jaxbench").chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**environment(), "PATH": path}


SLURM_SITE = SITE.replace('"scheduler": "local", "launcher": "local"', '"scheduler": "squeue", "launcher": "srun"')


def reframe(folder: Path, *words: str, site: str = SITE) -> subprocess.CompletedProcess[str]:
    (folder / "site.py").write_text(site)
    check = str(ROOT / "examples" / "reframe" / "jaxbench_check.py")
    command = [str(REFRAME), "-C", "site.py", "-c", check, "-r", "--performance-report", *words]
    variables = {**surroundings(folder), "RFM_ENABLE_RESULTS_STORAGE": "0"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=200)


@pytest.mark.skipif(REFRAME is None, reason="ReFrame is not installed")
def test_reframe_checks_a_run_and_reports_its_times(tmp_path: Path) -> None:
    done = reframe(tmp_path, "-S", "experiment=mlp", "-S", f"settings={SMALL} --config.mesh.devices=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mlp_jit_auto_strong_1_step" in done.stdout and "ms" in done.stdout


@pytest.mark.skipif(REFRAME is None, reason="ReFrame is not installed")
def test_reframe_fails_a_run_that_is_slower_than_its_card(tmp_path: Path) -> None:
    (path := tmp_path / "card.json").write_text(
        json.dumps({"name": {"experiment": "mlp"}, "points": [{"point": "jit_auto/strong/1", "step_s": 1e-9}]})
    )
    done = reframe(
        tmp_path, "-S", "experiment=mlp", "-S", f"settings={SMALL} --config.mesh.devices=1", "-S", f"card={path}"
    )
    assert done.returncode == 1 and "failed to meet reference" in done.stdout, done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.skipif(REFRAME is None, reason="ReFrame is not installed")
def test_reframe_runs_one_job_on_two_nodes_of_slurm(slurm_here: None, tmp_path: Path) -> None:
    """Both tasks of one `srun` are the processes of one launch: the run has points on both nodes.

    A gate may refuse the times of steps this short on a busy machine, and ReFrame reports what the run exported.
    """
    settings = f"{SMALL} --config.mesh.devices=1,2"
    done = reframe(
        tmp_path, "-S", "experiment=mlp", "-S", f"settings={settings}", "-S", "num_tasks=2",
        "-S", "num_tasks_per_node=1", "--keep-stage-files", site=SLURM_SITE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (manifest,) = tmp_path.rglob("manifest.json")
    assert len(json.loads(manifest.read_text())["hosts"]) == 2
    rows = csv.DictReader((manifest.parent / "summary.csv").read_text().splitlines())
    assert [(row["devices"], row["processes"]) for row in rows] == [("1", "1"), ("2", "2")]
    exported = json.loads((manifest.parent / "bmf.json").read_text())
    assert exported
    for point in exported:
        assert f"{point.replace('/', '_')}_step" in done.stdout


@pytest.mark.skipif(JUBE is None, reason="JUBE is not installed")
def test_jube_runs_each_setting_and_makes_one_table(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "jube" / "jaxbench.yaml").read_text()
    text = text.replace('"mlp,cnn"', '"mlp"').replace("--preset=auto", SMALL)
    (tmp_path / "jaxbench.yaml").write_text(text)
    variables = surroundings(tmp_path)
    for words in (["run", "jaxbench.yaml"], ["result", "jaxbench_runs", "--id", "last"]):
        done = subprocess.run([str(JUBE), *words], cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    table = next((tmp_path / "jaxbench_runs").glob("*/result/result.*"))
    rows = [*csv.DictReader(table.read_text().splitlines())]
    assert [(row["experiment"], row["devices"]) for row in rows] == [("mlp", "1"), ("mlp", "2")]
    assert all(float(row["step_s[s]"]) > 0 for row in rows)

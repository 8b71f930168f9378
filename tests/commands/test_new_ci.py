# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench new ci`: the workflow is valid YAML, and its own commands work in an empty clone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from doorway import QUICK_MLP, environment, jaxbench
from house.tree import ROOT

from jaxbench.commands import new


def commands(service: str, path: Path) -> tuple[dict[str, str], list[str]]:
    """(variables, the commands of a job in order) of a workflow."""
    document = yaml.safe_load(path.read_text())
    if service == "gitlab":
        job = document["jaxbench"]
        return job["variables"], [*job["before_script"], *job["script"], *job["after_script"]]
    job = document["jobs"]["compare"]
    return job["env"], [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("service", sorted(new.FILES))
def test_the_workflow_is_written_where_the_service_reads_it_and_is_not_overwritten(
    tmp_path: Path, service: str
) -> None:
    done = jaxbench("new", "ci", f"--for={service}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / new.FILES[service]
    assert f"Written: {new.FILES[service]}." in done.stdout
    variables, told = commands(service, path)
    assert variables["EXPERIMENT"] == "mlp" and any("install --quiet jaxbench" in each for each in told)
    for each in told:
        subprocess.run(["bash", "-n", "-c", each], check=True)
    again = jaxbench("new", "ci", f"--for={service}", cwd=tmp_path)
    assert again.returncode == 2 and "already exists and is not overwritten" in again.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("new", "ci", "--for=githb"), "--for=githb is unknown: did you mean 'github'?"),
        (("new", "ci"), "a workflow is written by jaxbench new ci --for=github"),
        (("new", "mine.py", "--for=github"), "a workflow is written by jaxbench new ci --for=github"),
    ],
)
def test_a_wrong_call_is_one_sentence(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    done = jaxbench(*words, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr and not [*tmp_path.iterdir()]


@pytest.mark.full
@pytest.mark.parametrize("service", sorted(new.FILES))
def test_its_own_commands_compare_and_comment_in_an_empty_clone(tmp_path: Path, service: str) -> None:
    """Only the services are absent: `gh` and `curl` are programs that write down what they get."""
    clone, tools = tmp_path / "clone", tmp_path / "tools"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "update-ref", "refs/remotes/origin/main", "HEAD"], cwd=clone, check=True)
    tools.mkdir()
    for name in ("gh", "curl"):
        (tools / name).write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/{name}.log\necho "[]"\n')
        (tools / name).chmod(0o755)
    path = new.write_ci(service, clone)
    variables, told = commands(service, path)
    small = " ".join([*QUICK_MLP, "--config.mesh.devices=1", "--budget_s=0.1"])
    service_only = {"PULL_REQUEST": "7", "JAXBENCH_TOKEN": "x", "CI_API_V4_URL": "https://example.org"}
    kept = {**os.environ, **environment(), "PYTHONPATH": ""}
    kept |= {
        "PATH": f"{tools}{os.pathsep}{kept['PATH']}",
        **variables,
        "OPTIONS": small.replace("--config.measure.rounds=2", ""),
        **service_only,
    }
    kept |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "page.md"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    kept.pop("PIP_CACHE_DIR", None)
    for each in told:
        done = subprocess.run(["bash", "-e", "-c", each], cwd=clone, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, f"{each}\n{done.stdout}{done.stderr}"
    assert "## mlp: A (ref:origin/main) against B" in (tmp_path / "page.md").read_text()
    comment = (tmp_path / ("gh.log" if service == "github" else "curl.log")).read_text()
    assert "results/ci/summary.md" in comment if service == "github" else "--request POST" in comment

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real launches: the arguments arrive in each process unchanged, with the variables for JAX's coordination."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.own_slurm import happens
from doorway import QUICK_MLP, command, environment

from jaxbench.errors import UserError
from jaxbench.features.launch.engines import mpi, slurm
from jaxbench.features.launch.job import Job

pytestmark = [pytest.mark.cluster, pytest.mark.full]

HARD = """it's "quoted" $HOME `x` é * \\ #"""
# Each process writes its arguments into the folder, under its rank.
WRITE = """
import json, os, sys
names = ("SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_hnp_uri")
about = {"words": sys.argv[2:], **{name: os.environ.get(name) for name in names}}
path = os.path.join(sys.argv[1], f"{os.getpid()}.json")
with open(path + ".part", "w") as file:
    json.dump(about, file)
os.rename(path + ".part", path)
"""


def job(folder: Path, **changes: object) -> Job:
    (folder / "told").mkdir()
    facts = {
        "name": "told", "nodes": 2, "processes_per_node": 1, "platform": "cpu", "devices_per_node": 1,
        "minutes": 5, "folder": folder / "nodes-2",
        "command": (sys.executable, "-c", WRITE, str(folder / "told"), HARD),
    }  # fmt: skip
    return Job(**{**facts, **changes})  # type: ignore[arg-type]


def told(folder: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in (folder / "told").glob("*.json")]


@pytest.fixture
def mpirun() -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("Open MPI is not installed")
    if "Open MPI" not in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout:
        pytest.skip("mpirun is not that of Open MPI")


def test_mpirun_starts_each_process(mpirun: None, tmp_path: Path) -> None:
    asked = job(tmp_path, nodes=1, processes_per_node=4)
    done = mpi.submit(asked)
    assert done.code == 0
    found = told(tmp_path)
    assert {about["OMPI_COMM_WORLD_RANK"] for about in found} == {"0", "1", "2", "3"}
    assert all(about["words"] == [HARD, f"--workdir={asked.folder}"] for about in found)
    assert all(about["OMPI_MCA_orte_hnp_uri"] for about in found), "by which JAX finds the world"


def test_an_exit_code_comes_back_through_mpirun(mpirun: None, tmp_path: Path) -> None:
    done = mpi.submit(job(tmp_path, nodes=1, command=(sys.executable, "-c", "raise SystemExit(3)")))
    assert done.code == 3 and "exit code 3" in done.sentence


def test_a_run_is_launched_and_reported(mpirun: None, tmp_path: Path) -> None:
    words = ("launch", "mpi", "--devices=cpu:1", f"--workdir={tmp_path / 'runs'}", "--", "run", "mlp", *QUICK_MLP)
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=240, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "runs" / "nodes-1" / "records.jsonl").exists()
    assert "jit_auto,strong,1," in (tmp_path / "runs" / "summary.csv").read_text()


def test_slurm_starts_a_process_on_each_node(slurm_here: None, tmp_path: Path) -> None:
    asked = job(tmp_path)
    done = slurm.submit(asked)
    assert done.id.isdecimal() and done.code is None
    assert happens(lambda: len(told(tmp_path)) == 2)
    assert {(about["SLURM_PROCID"], about["SLURM_NTASKS"]) for about in told(tmp_path)} == {("0", "2"), ("1", "2")}
    assert all(about["words"] == [HARD, f"--workdir={asked.folder}"] for about in told(tmp_path))


def test_slurm_says_what_it_refuses(slurm_here: None, tmp_path: Path) -> None:
    asked = job(tmp_path, options=("--partition=nowhere",))
    with pytest.raises(UserError, match="Slurm refused the job of 2 nodes x 1 process, 2 devices: .*partition"):
        slurm.submit(asked)


def submitted_to_ray(tmp_path: Path, changes: str = "") -> subprocess.CompletedProcess[str]:
    """A job on a cluster of one node, from a separate process that prints the outcome."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: EXTRAS=ray installs it")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    code = f"""
import sys
from cluster.test_launchers import job
from jaxbench.features.launch.engines import ray
from pathlib import Path
ended = ray.submit(job(Path({str(tmp_path)!r}), {changes}))
print(ended.sentence)
sys.exit(ended.code)
"""
    path = os.pathsep.join((str(Path(__file__).parents[1]), str(Path(__file__).parents[2])))
    words, environ = [sys.executable, "-c", code], {**environ, "PYTHONPATH": path}
    return subprocess.run(words, env=environ, stdout=subprocess.PIPE, text=True, timeout=240)


def test_ray_starts_a_process_a_worker_that_knows_the_first(tmp_path: Path) -> None:
    assert submitted_to_ray(tmp_path).returncode == 0
    found = sorted(told(tmp_path), key=lambda about: str(about["words"]))
    assert [len(about["words"]) for about in found] == [5, 5]  # type: ignore[arg-type]
    words = [dict(word.split("=") for word in about["words"][2:]) for about in found]  # type: ignore[index]
    assert {each["--process"] for each in words} == {"0", "1"} and {each["--processes"] for each in words} == {"2"}
    assert len({each["--coordinator"] for each in words}) == 1


def test_a_command_that_fails_under_ray_says_why(tmp_path: Path) -> None:
    fails = """command=(sys.executable, "-c", "import sys; sys.exit('no model is named nosuch.')"), nodes=1"""
    done = submitted_to_ray(tmp_path, fails)
    assert done.returncode == 1
    assert "no model is named nosuch" in done.stdout.splitlines()[-1]

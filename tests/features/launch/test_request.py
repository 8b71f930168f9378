# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From the arguments of `launch` to jobs: one for each node count, with the command as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jaxbench.errors import UserError
from jaxbench.features.launch import engines
from jaxbench.features.launch.job import LaunchRequest


def request(*command: str, **changes: Any) -> LaunchRequest:
    facts: dict[str, Any] = {"engine": "slurm", "command": command or ("run", "gpt"), "workdir": Path("/runs/gpt")}
    return LaunchRequest(**{**facts, **changes})


def test_each_node_count_is_a_job_that_measures_its_own_devices_in_its_own_folder() -> None:
    jobs = request("run", "gpt", "--config.model.text=a b", nodes="4,1,2", devices="gpu:8").jobs()
    assert [(job.nodes, job.devices, job.folder) for job in jobs] == [
        (n, 8 * n, Path(f"/runs/gpt/nodes-{n}")) for n in (1, 2, 4)
    ]
    assert jobs[1].argv()[1:] == [
        *("-m", "jaxbench", "run", "gpt", "--config.model.text=a b"),
        *("--config.mesh.platform=gpu", "--config.mesh.devices=16", "--workdir=/runs/gpt/nodes-2"),
    ]


def test_one_job_may_say_its_devices_itself() -> None:
    (job,) = request("run", "gpt", "--config.mesh.devices=1,2", "--config.mesh.platform=cpu", devices="cpu:2").jobs()
    assert [word for word in job.argv() if "mesh" in word] == [
        "--config.mesh.devices=1,2",
        "--config.mesh.platform=cpu",
    ]


def test_a_training_chooses_its_devices_itself() -> None:
    (job,) = request("train", "gpt", nodes="2").jobs()
    assert not [word for word in job.argv() if "mesh" in word]


def test_paths_hold_in_any_folder() -> None:
    (job,) = request("run", "mine.py", "--preset=sub/own.py", "--config.data.path=x.py").jobs()
    here = Path.cwd()
    assert job.argv()[4:7] == [str(here / "mine.py"), f"--preset={here / 'sub/own.py'}", "--config.data.path=x.py"]
    assert job.name == "mine-1"


@pytest.mark.parametrize(
    ("command", "changes", "sentence"),
    [
        (("run", "gpt"), {"nodes": "1,x"}, "--nodes=1,x is not a list of different node counts: use 1,2,4"),
        (("run", "gpt"), {"nodes": "2,2"}, "--nodes=2,2 is not a list of different node counts"),
        (("run", "gpt"), {"devices": "h100:8"}, "--devices=h100:8 is not what one node gives: use gpu:8"),
        (("run", "gpt"), {"devices": "gpu:0"}, "--devices=gpu:0 is not what one node gives"),
        (("run", "gpt"), {"processes_per_node": 0}, "--processes_per_node=0 is not above 0"),
        (("run", "gpt"), {"minutes": -1}, "--minutes=-1 is not above 0"),
        (("run", "gpt"), {"devices": "gpu:8", "processes_per_node": 3}, "--devices=gpu:8 does not divide over"),
        (("run", "gpt"), {"options": "--a='b"}, "cannot be split"),
        (("ru", "gpt"), {}, "launch cannot start 'ru': did you mean 'run'?"),
        (("run", "--config.batch=4"), {}, "needs the experiment right after 'run'"),
        (("run", "gpt", "--workdir=x"), {}, "'--workdir=x' is for launch: write it before the '--'"),
        (("run", "gpt", "--dry_run"), {}, "'--dry_run' is for launch"),
        (("train", "gpt"), {"nodes": "1,2"}, "would train several times"),
        (("run", "gpt", "--config.mesh.devices=4"), {"nodes": "1,2"}, "does not fit several node counts"),
    ],
)
def test_bad_words_are_one_sentence(command: tuple[str, ...], changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        request(*command, **changes).jobs()
    assert sentence in str(caught.value)


def test_a_command_is_needed() -> None:
    with pytest.raises(UserError, match="needs a command after '--'"):
        LaunchRequest(engine="mpi", command=(), workdir=Path("x")).jobs()


def test_engines_are_found_by_their_files() -> None:
    assert engines.names() == ["k8s", "mpi", "ray", "slurm"]
    for name in engines.names():
        engine = engines.load(name)
        assert engine.OPTIONS and all(callable(getattr(engine, part)) for part in ("check", "text", "require_here"))
    with pytest.raises(UserError, match="there is no engine 'slrm' to launch with: did you mean 'slurm'"):
        engines.load("slrm")

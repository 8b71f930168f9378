# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From the arguments of `launch` to jobs: one for each node count, with the command as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jaxbench.errors import UserError
from jaxbench.features.launch import engines
from jaxbench.features.launch import job as launch
from jaxbench.features.launch.job import Job


def jobs(*command: str, **flags: Any) -> list[Job]:
    return launch.jobs(command, Path("/runs/gpt"), **flags)


def test_each_node_count_is_a_job_that_measures_its_own_devices_in_its_own_folder() -> None:
    made = jobs("run", "gpt", "--config.model.text=a b", nodes="4,1,2", devices="gpu:8")
    assert [(job.nodes, job.devices, job.folder) for job in made] == [
        (n, 8 * n, Path(f"/runs/gpt/nodes-{n}")) for n in (1, 2, 4)
    ]
    assert made[1].argv()[1:] == [
        *("-m", "jaxbench", "run", "gpt", "--config.model.text=a b"),
        *("--config.mesh.platform=gpu", "--config.mesh.devices=16", "--workdir=/runs/gpt/nodes-2"),
    ]


def test_one_job_may_say_its_devices_itself() -> None:
    (job,) = jobs("run", "gpt", "--config.mesh.devices=1,2", "--config.mesh.platform=cpu", devices="cpu:2")
    assert [word for word in job.argv() if "mesh" in word] == [
        "--config.mesh.devices=1,2",
        "--config.mesh.platform=cpu",
    ]


def test_a_training_chooses_its_devices_itself() -> None:
    (job,) = jobs("train", "gpt", nodes="2")
    assert not [word for word in job.argv() if "mesh" in word]


def test_paths_hold_in_any_folder() -> None:
    (job,) = jobs("run", "mine.py", "--preset=sub/own.py", "--config.data.path=x.py")
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
        (("run", "gpt"), {"processes_per_node": 0}, "does not divide over --processes_per_node=0: use 1 process"),
        (("run", "gpt"), {"devices": "gpu:8", "processes_per_node": 3}, "--devices=gpu:8 does not divide over"),
        ((), {}, "needs run or train and its experiment after '--': jaxbench launch slurm"),
        (("ru", "gpt"), {}, "needs run or train and its experiment after '--'"),
        (("run", "--config.batch=4"), {}, "needs run or train and its experiment"),
        (("run", "gpt", "--workdir=x"), {}, "'--workdir=x' is for launch: write it before the '--'"),
        (("run", "gpt", "--dry_run"), {}, "'--dry_run' is for launch"),
        (("train", "gpt"), {"nodes": "1,2"}, "would train several times"),
        (("run", "gpt", "--config.mesh.devices=4"), {"nodes": "1,2"}, "does not fit several node counts"),
    ],
)
def test_bad_words_are_one_sentence(command: tuple[str, ...], changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        jobs(*command, **changes)
    assert sentence in str(caught.value)


def test_engines_are_found_by_their_files() -> None:
    assert engines.names() == ["k8s", "mpi", "ray", "slurm"]
    for name in engines.names():
        engine = engines.load(name)
        assert engine.OPTIONS and all(callable(getattr(engine, part)) for part in ("check", "text", "require_here"))
    with pytest.raises(UserError, match="there is no engine 'slrm' to launch with: did you mean 'slurm'"):
        engines.load("slrm")

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Concurrent trainings (lever.trainings): real processes that share a core, and refusals."""

import csv
from types import SimpleNamespace

import pytest
from doorway import QUICK_MLP, jaxbench

from jaxbench.core import plan as sharing
from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.levers import DEFAULTS, Arm

CPU = {"platform": "cpu", "devices": 1, "cores": 2}


def settings(*trainings: str, processes: str = "1") -> SimpleNamespace:
    arms = tuple(Arm(f"trainings={each}", {**DEFAULTS, "trainings": each}) for each in trainings)
    return SimpleNamespace(arms=arms, mesh_processes=processes)


@pytest.mark.full
def test_two_trainings_share_a_core_and_each_is_timed_and_checked(tmp_path):
    words = (*QUICK_MLP, "--config.mesh.devices=1", "--config.lever.trainings=1,2", "--config.measure.processes=1")
    done = jaxbench("run", "mlp", f"--workdir={tmp_path / 'run'}", *words, formats=("svg",))
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunFolder(tmp_path / "run")
    alone, both = "jit_auto/strong/1/trainings=1", "jit_auto/strong/1/trainings=2"
    records = run.records()
    points = {record.point: record for record in records if isinstance(record, schema.PointRecord)}
    assert points.keys() == {alone, both}
    assert all(check.ok for record in points.values() for check in record.checks)
    assert points[both].processes == 1, "of one training"
    rounds = [record for record in records if isinstance(record, schema.RoundRecord)]
    assert {record.point: len(record.process_block_s) for record in rounds} == {alone: 0, both: 2}
    workers = run.manifest()["workers"]
    one, two = (workers[f"session0/cpu1{name}"]["cpus"] for name in ("", "-2trainings"))
    assert one == two and len(one) == 1, "all are pinned to the same core"
    rows = list(csv.DictReader((run.path / "summary.csv").read_text().splitlines()))
    fairness = {row["trainings"]: row["fairness"] for row in rows}
    assert fairness["1"] == "" and 0.5 <= float(fairness["2"]) <= 1
    assert len(list((run.path / "figures").glob("sharing.*"))) >= 1


@pytest.mark.parametrize(
    ("asked", "machine", "words"),
    [
        (settings("2:mps"), CPU, "trainings=2:mps needs an NVIDIA GPU, .* measures on the cpu: use 2"),
        (settings("2"), {**CPU, "platform": "tpu"}, "trainings=2 is not possible on a TPU"),
        (settings("1", "2"), {**CPU, "hosts": ["a", "b"]}, "trainings=2 is measured by processes of this machine"),
        (settings("2", processes="2"), CPU, "so --config.mesh.processes=2 has no place"),
    ],
)
def test_what_cannot_share(asked, machine, words):
    with pytest.raises(UserError, match=words):
        sharing.require_sharable(asked, machine)


def test_a_gpu_needs_the_service_only_for_mps(tmp_path, monkeypatch):
    gpu = {**CPU, "platform": "gpu"}
    monkeypatch.setenv(sharing.PIPES, str(tmp_path))
    sharing.require_sharable(settings("1", "2"), gpu)
    with pytest.raises(UserError, match="start it with nvidia-cuda-mps-control -d"):
        sharing.require_sharable(settings("2:mps"), gpu)
    (tmp_path / "control").touch()
    sharing.require_sharable(settings("2:mps"), gpu)


def test_the_processes_of_all_arms_share_a_gpus_memory(tmp_path, monkeypatch):
    monkeypatch.setenv(sharing.PIPES, str(tmp_path))
    arms = settings("1", "2", "2:mps").arms
    share = sharing.memory_share(arms, "gpu")
    assert share == pytest.approx(0.9 / 5)
    assert sharing.memory_share(arms, "cpu") == 0 and sharing.memory_share(arms[:1], "gpu") == 0
    alone, two, mps = (sharing.sharing_of(arm.levers, share) for arm in arms)
    assert [alone[0], two[0], mps[0]] == ["", "-2trainings", "-2trainings-mps"]
    assert all(variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.180" for _, variables in (alone, two, mps))
    assert mps[1][sharing.PIPES] == str(tmp_path) != two[1][sharing.PIPES]

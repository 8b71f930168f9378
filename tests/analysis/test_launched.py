# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Jobs of one launch write separate run folders, which are read as one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fabricate import run_folder

from jaxbench.analysis import launched, points
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.report import build, run_report

COMMAND = ("run", "cnn")


def about(nodes: int, **changes: Any) -> launched.Job:
    text = f"{nodes} nodes x 1 process, {nodes} devices"
    return launched.Job(**{"folder": f"nodes-{nodes}", "nodes": nodes, "text": text, "id": str(40 + nodes), **changes})


def workdir(tmp_path: Path, *, begun: tuple[int, ...] = (1, 2), jobs: tuple[int, ...] = (1, 2, 4)) -> Path:
    for nodes in jobs:
        launched.note(tmp_path, "slurm", COMMAND, about(nodes))
    for nodes in begun:
        run_folder(tmp_path / f"nodes-{nodes}", devices=(nodes,), scalings=("strong",), seed=nodes)
    return tmp_path


def test_the_jobs_are_one_run_with_the_points_of_all(tmp_path: Path) -> None:
    launched.gather(workdir(tmp_path))
    found = points.load(RunFolder(tmp_path))
    assert [(point.devices, point.status, len(point.rounds)) for point in found] == [(1, "ok", 5), (2, "ok", 5)]
    alone = {n: points.load(RunFolder(tmp_path / f"nodes-{n}"))[0] for n in (1, 2)}
    assert [[r.block_s for r in p.rounds] for p in found] == [[r.block_s for r in alone[n].rounds] for n in (1, 2)]


def test_rounds_of_two_jobs_are_not_taken_for_simultaneous(tmp_path: Path) -> None:
    """Both jobs count their sessions and rounds from 0. Pairing them would cancel drift that they do not share."""
    launched.gather(workdir(tmp_path))
    one, two = points.load(RunFolder(tmp_path))
    assert not {*one.units} & {*two.units}
    (_, row) = run_report.find(RunFolder(tmp_path)).rows
    assert row.efficiency.known and not row.efficiency.has_interval


def test_queued_jobs_are_shown_and_the_run_is_incomplete(tmp_path: Path) -> None:
    outcome = build.write(workdir(tmp_path))
    assert not outcome.ok
    assert outcome.sentences[0] == "4 nodes x 1 process, 4 devices: slurm job 44 has not begun."
    assert "slurm job 44 has not begun" in (tmp_path / "report.html").read_text()
    run_folder(tmp_path / "nodes-4", devices=(4,), scalings=("strong",), seed=4)
    assert build.write(tmp_path).sentences == []


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "I0000\njaxbench: the disk is full.\nTraceback\n",
            "because the disk is full.",
        ),
        ("Traceback\nOSError\n", "see '.*slurm'."),
    ],
)
def test_a_job_that_failed_does_not_seem_to_wait(tmp_path: Path, log: str, said: str) -> None:
    workdir(tmp_path, begun=(), jobs=(1,))
    (tmp_path / "slurm").mkdir()
    with pytest.raises(UserError, match="slurm job 41 has not begun"):
        launched.gather(tmp_path)
    (tmp_path / "slurm" / "41_0_log.err").write_text(log)
    (tmp_path / "slurm" / "41_0_result.pkl").write_bytes(b"never opened")
    with pytest.raises(UserError, match=f"slurm job 41 ended before it measured[:,] {said}"):
        launched.gather(tmp_path)


def test_a_job_that_is_writing_a_record_is_read_up_to_it(tmp_path: Path) -> None:
    records = workdir(tmp_path) / "nodes-2" / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-9])
    launched.gather(tmp_path)
    found = [(point.status, len(point.rounds)) for point in points.load(RunFolder(tmp_path))]
    assert found == [("ok", 5), ("partial", 4)]
    records.write_bytes(b"{nonsense\n")
    with pytest.raises(UserError, match="line 1 is damaged"):
        launched.gather(tmp_path)


def test_machines_that_differ_are_named(tmp_path: Path) -> None:
    manifest = workdir(tmp_path) / "nodes-2" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "cpu_model": "another"}))
    first = tmp_path / "nodes-1" / "manifest.json"
    first.write_text(json.dumps({**json.loads(first.read_text()), "cpu_model": "this"}))
    launched.gather(tmp_path)
    assert "nodes-1 and nodes-2: processor 'this' and 'another'." in run_report.find(RunFolder(tmp_path)).repairs


def test_nothing_begun_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="no job of .* has measured yet: 1 nodes x 1 process, 1 devices: slurm job 41 has not"
    ):
        build.write(workdir(tmp_path, begun=(), jobs=(1,)))
    assert not launched.begun(tmp_path)


def test_configs_that_differ_in_more_than_devices_are_refused(tmp_path: Path) -> None:
    config = workdir(tmp_path) / "nodes-2" / "config.json"
    changed = json.loads(config.read_text())
    config.write_text(json.dumps({**changed, "batch": 8, "mesh": {**changed.get("mesh", {}), "devices": "2"}}))
    with pytest.raises(UserError, match=r"different configs \(batch\)"):
        launched.gather(tmp_path)


def test_a_job_is_launched_again_into_its_place_and_another_command_is_refused(tmp_path: Path) -> None:
    workdir(tmp_path)
    launched.note(tmp_path, "slurm", COMMAND, about(2, id="99"))
    assert [job.id for job in launched.read(tmp_path).jobs] == ["41", "99", "44"]
    with pytest.raises(UserError, match=r"has jobs of another command \(run cnn\)"):
        launched.note(tmp_path, "slurm", ("run", "gpt"), about(8))
    for nodes in (1, 2, 4):
        launched.forget(tmp_path, f"nodes-{nodes}")
    assert not launched.is_launched(tmp_path)


def test_a_run_and_a_launch_do_not_share_a_folder(tmp_path: Path) -> None:
    launched.gather(workdir(tmp_path))
    with pytest.raises(UserError, match="gathers the runs of launched jobs"):
        RunFolder.begin(tmp_path, RunFolder(tmp_path).config())
    plain = run_folder(tmp_path / "plain")
    with pytest.raises(UserError, match="a run that was not launched"):
        launched.note(plain, "slurm", COMMAND, about(1))


def test_two_jobs_of_one_count_cannot_write_at_once(tmp_path: Path) -> None:
    first = RunFolder.begin(workdir(tmp_path, begun=()) / "nodes-2", {"batch": 4})
    with pytest.raises(UserError, match="another process is using"):
        RunFolder.begin(tmp_path / "nodes-2", {"batch": 4})
    other = RunFolder.begin(tmp_path / "nodes-4", {"batch": 4})
    first.close()
    other.close()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The same command started twice by hand: real processes, as from a launcher."""

import csv
import dataclasses
import os
import re
import signal

import pytest
from launched import children_of, ended, is_measuring, started, until

from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.machine import lock, start
from jaxbench.machine.position import Position
from jaxbench.processes import launch as launch_lib
from jaxbench.processes.counts import launched_process_counts
from jaxbench.processes.messages import Devices, HostFacts


@pytest.mark.full
def test_two_processes_are_led_by_the_first(tmp_path):
    address = start.free_address()
    follower, leader = started(tmp_path, address, 1), started(tmp_path, address, 0)
    code, out, err = ended(leader)
    assert code == 0, out + err
    assert ended(follower) == (0, "", "")
    assert not (tmp_path / "run1").exists()
    run = RunFolder(tmp_path / "run0")
    records = run.records()
    made, rounds = ([r for r in records if isinstance(r, kind)] for kind in (schema.PointRecord, schema.RoundRecord))
    assert {r.point: r.processes for r in made} == {"jit_auto/strong/1": 1, "jit_auto/strong/2": 2}
    assert all(check.ok for r in made for check in r.checks)
    assert {r.point: len(r.process_block_s) for r in rounds} == {"jit_auto/strong/1": 0, "jit_auto/strong/2": 2}
    assert len(run.manifest()["hosts"]) == 2 and run.manifest()["plan"]["processes"] == 2
    summary = csv.DictReader((run.path / "summary.csv").read_text().splitlines())
    assert [row["processes"] for row in summary] == ["1", "2"]


@pytest.mark.full
def test_other_settings_of_a_follower_end_both_with_one_sentence(tmp_path):
    address = start.free_address()
    follower, leader = started(tmp_path, address, 1, "--config.batch=32"), started(tmp_path, address, 0)
    code, _, err = ended(leader)
    assert code == 2
    assert re.fullmatch(
        r"jaxbench: the settings of process 0 \(on .*: batch 16\) and process 1 \(on .*: batch 32\) differ: .*\n", err
    )
    assert ended(follower) == (2, "", "")


@pytest.mark.full
def test_a_follower_of_a_killed_leader_ends_with_a_sentence(tmp_path):
    address = start.free_address()
    follower, leader = started(tmp_path, address, 1), started(tmp_path, address, 0)
    until(lambda: (tmp_path / "run0" / "logs").exists() and is_measuring(follower))
    everyone = children_of(leader.pid) + children_of(follower.pid)
    os.kill(leader.pid, signal.SIGKILL)
    code, out, err = ended(follower, 60)
    assert code == 2 and out == ""
    assert re.fullmatch("jaxbench: process 0, which leads this launch from 127.0.0.1, is gone, so .*\n", err)
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in everyone))
    ended(leader)


@pytest.mark.full
def test_a_leader_names_its_killed_follower_and_ends(tmp_path):
    address = start.free_address()
    long = "--config.measure.rounds=200"
    follower, leader = started(tmp_path, address, 1, long), started(tmp_path, address, 0, long)
    until(lambda: (tmp_path / "run0" / "records.jsonl").exists() and is_measuring(follower))
    os.kill(follower.pid, signal.SIGKILL)
    code, _, err = ended(leader)
    assert code == 2
    assert re.search(r"jaxbench: process 1 \(on .*\) is gone, and only its launcher can start it again: ", err)
    ended(follower)


ABOUT = HostFacts(
    host="a", order=(0, 1), cpu_quota=None, device=None, devices=Devices(kind="cpu", count=1),
    versions={"jax": "1", "jaxbench": "1"}, source="abcd", config={"batch": 1}, experiment="e",
)  # fmt: skip


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"versions": {"jax": "2", "jaxbench": "1"}}, r"versions .* \(on a: jax 1\) and process 3 \(on b: jax 2\)"),
        ({"source": "ef01"}, r"source of jaxbench of process 0 \(on a: abcd\) and process 3 \(on b: ef01\)"),
        ({"devices": Devices(kind="H100", count=8)}, r"devices of .*on b: count 8, kind H100"),
    ],
)
def test_a_difference_is_reported_for_both(other, words):
    launch_lib.require_same(ABOUT, dataclasses.replace(ABOUT, host="b"), 3)
    with pytest.raises(UserError, match=words):
        launch_lib.require_same(ABOUT, dataclasses.replace(ABOUT, host="b", **other), 3)


def test_the_cores_of_a_host_are_counted_once():
    machine = {"platform": "cpu", "devices": 1, "cores": 2}
    bound = [dataclasses.replace(ABOUT, order=(core,)) for core in (0, 1)]
    bound.append(dataclasses.replace(ABOUT, order=(0, 1, 2), host="b"))
    assert launch_lib.merged_machine(machine, bound)["cores"] == 5
    assert launch_lib.merged_machine(machine, [ABOUT, dataclasses.replace(ABOUT, cpu_quota=1.5)])["cores"] == 1
    four = dataclasses.replace(ABOUT, devices=Devices(kind="gpu", count=4))
    of_gpus = launch_lib.merged_machine({**machine, "platform": "gpu"}, [four] * 2)
    assert of_gpus["devices"] == 8 and of_gpus["hosts"] == ["a", "a"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("h:1", 2, None), "--process is missing: "),
        (("h", 2, 0), "--coordinator=h is no address: use host:port"),
        (("h:1", 2, 2), "--process=2 of --processes=2 is not possible: number the processes from 0 to 1"),
    ],
)
def test_flags_that_are_no_launch(flags, words):
    with pytest.raises(UserError, match=words):
        launch_lib.of(*flags)


def test_launches_are_detected(monkeypatch):
    assert launch_lib.of("h:12", 4, 3) == Position(address="h:12", processes=4, process=3)
    assert launch_lib.of("h:12", 1, 0) is None
    for name in [name for name in os.environ if name.startswith(("SLURM_", "OMPI_"))]:
        monkeypatch.delenv(name)
    assert launch_lib.of(None, None, None) is None
    step = {"JOB_ID": "5", "STEP_NODELIST": "n[3-4]", "NTASKS": "2", "PROCID": "1", "LOCALID": "0"}
    for name, value in step.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    found = launch_lib.of(None, None, None)
    assert (found.host, found.processes, found.process, found.device) == ("n3", 2, 1, 0)


def test_a_launch_runs_each_point_on_its_first_processes():
    class Settings:
        mesh_processes = "1"

    on = {"platform": "cpu", "hosts": ["a", "b"]}
    assert launched_process_counts(Settings, (1, 2, 4), on) == {1: 1, 2: 2, 4: 2}
    of_gpus = {"platform": "gpu", "hosts": ["a", "b"], "devices": 8}
    assert launched_process_counts(Settings, (1, 4, 8), of_gpus) == {1: 1, 4: 1, 8: 2}
    with pytest.raises(UserError, match="3 devices do not divide over the 2 processes that were started"):
        launched_process_counts(Settings, (1, 3), on)


def test_the_processes_of_a_launch_on_one_machine_measure_together(tmp_path, monkeypatch):
    monkeypatch.setenv(lock.FOLDER, str(tmp_path))
    with lock.measuring("jaxbench run mlp", tmp_path, launch="h:1"):
        monkeypatch.delenv(lock.PARENT)
        with lock.measuring("jaxbench run mlp", tmp_path, launch="h:1"):
            pass
        with (
            pytest.raises(UserError, match="another process measures"),
            lock.measuring("jaxbench run mlp", tmp_path, launch="h:2"),
        ):
            pass
        monkeypatch.setenv(lock.PARENT, "0")

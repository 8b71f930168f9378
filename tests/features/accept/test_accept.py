# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench accept` as a user runs it: one machine, and two processes of a launch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from doorway import command, environment, jaxbench
from launched import children_of, ended, until

from jaxbench.features.accept import bits, files
from jaxbench.machine import start

QUICK = ("--probes=triad,start", "--budget_s=2", "--devices=cpu:2")


def test_a_machine_is_tested_and_its_files_written(tmp_path: Path) -> None:
    done = jaxbench("accept", f"--workdir={tmp_path / 'a'}", *QUICK, "--margin=90%")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = json.loads((tmp_path / "a" / "accept.json").read_text())
    assert found["exit_code"] == done.returncode and found["margin"] == 0.9
    assert {cell["probe"] for cell in found["cells"]} == {"triad", "start"}
    assert all((tmp_path / "a" / name).exists() for name in files.ALL)


def test_a_flipped_bit_fails_a_device_whatever_its_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bits.FLIP, "triad:1")
    done = jaxbench("accept", f"--workdir={tmp_path / 'a'}", *QUICK, "--margin=90%")
    assert done.returncode == 1 and "device 1 of" in done.stdout and "computes wrong bits in triad" in done.stdout
    assert len((tmp_path / "a" / files.FAILING).read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("--margin=0%", "--margin=0 must be between 0 and 1: use 5% or 0.05."),
        ("--margin=five", "--margin=five is not a number: use 0.02"),
        ("--against=card:/no/such", "--against=card:/no/such names no file"),
        ("--probes=trad", "did you mean 'triad'?"),
        ("--devices=cpu", "is not what one node gives"),
        ("--fault_timeout=0", "is too short"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(tmp_path: Path, word: str, sentence: str) -> None:
    done = jaxbench("accept", f"--workdir={tmp_path / 'a'}", word)
    assert done.returncode == 2 and sentence in done.stderr and not (tmp_path / "a").exists()


def begun(folder: Path, address: str, process: int, *words: str) -> subprocess.Popen[str]:
    place = (f"--coordinator={address}", "--processes=2", f"--process={process}", f"--workdir={folder / 'run'}")
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command("accept", *place, *words), env=environment(), cwd=folder, **output)


def test_two_processes_are_tested_together(tmp_path: Path) -> None:
    words = ("--probes=triad,host_pairs,hosts_allreduce_1,software", "--budget_s=2", "--margin=90%")
    address = start.free_address()
    processes = [begun(tmp_path, address, number, *words) for number in (0, 1)]
    (code, out, err), (other, _, other_err) = (ended(process, 150) for process in processes)
    assert code == other and code in (0, 3), out + err + other_err
    found = json.loads((tmp_path / "run" / "accept.json").read_text())
    assert len(found["hosts"]) == 2 and {cell["probe"] for cell in found["cells"]} >= {"host_pairs", "triad"}
    links = {cell["unit"] for cell in found["cells"] if cell["probe"] == "host_pairs"}
    names = [host["name"] for host in found["hosts"]]
    assert links == {f"{names[0]} > {names[1]}", f"{names[1]} > {names[0]}"}


def test_a_host_that_hangs_is_a_result(tmp_path: Path) -> None:
    address = start.free_address()
    words = ("--probes=triad", "--budget_s=8", "--fault_timeout=10")
    leader, follower = (begun(tmp_path, address, number, *words) for number in (0, 1))
    until(lambda: len(children_of(follower.pid)) > 0)
    for pid in (follower.pid, *children_of(follower.pid)):
        os.kill(pid, signal.SIGSTOP)
    try:
        code, out, err = ended(leader, 120)
    finally:
        for pid in (*children_of(follower.pid), follower.pid):
            os.kill(pid, signal.SIGKILL)
        follower.communicate()
    assert code == 1, out + err
    found = json.loads((tmp_path / "run" / "accept.json").read_text())
    assert [host["verdict"] == "fail" for host in found["hosts"]] == [False, True]
    assert "does not answer" in out


def test_a_host_that_never_comes_is_a_result(tmp_path: Path) -> None:
    leader = begun(tmp_path, start.free_address(), 0, "--probes=triad", "--budget_s=1", "--fault_timeout=1")
    code, out, err = ended(leader, 120)
    assert code == 1 and "process-1 does not answer: no answer in 1 s." in out, out + err

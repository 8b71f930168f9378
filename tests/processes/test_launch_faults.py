# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Faults in a launch: processes killed or stopped, full disks, different versions. With real processes.

Each fault ends all processes with an exit code and one sentence, leaves no process behind, and keeps the records.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from doorway import ROOT
from launched import alive, children_of, ended, is_measuring, started, until

from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.machine import start
from jaxbench.machine.position import Position
from jaxbench.processes import launch as launch_lib
from jaxbench.processes.child import Child, ready
from jaxbench.processes.messages import Answered, Ended, Exit, Setup, Unfit

LONG = "--config.measure.rounds=200"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB and 200 files."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=200", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can make a small file system")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Fills the disk. Returns the file that fills it."""
    filler = disk / "filler"
    with open(filler, "ab", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk has no end")


def rounds(folder: Path) -> int:
    return sum(isinstance(record, schema.RoundRecord) for record in RunFolder(folder).records())


def measuring(folder: Path, follower: subprocess.Popen[str], leader: subprocess.Popen[str]) -> list[int]:
    """Waits for the first round in two processes. Returns the processes of both apps, without these."""
    records = folder / "run0" / "records.jsonl"
    until(lambda: records.exists() and '"process_block_s":[[' in records.read_text() and is_measuring(follower))
    return children_of(leader.pid) + children_of(follower.pid)


def test_a_full_disk_is_one_sentence_and_loses_no_record(small_disk):
    failure = {"experiment": "cnn", "devices": 1, "stage": "measure", "reason": "none"}
    run = RunFolder.begin(small_disk / "run", {})
    run.append(schema.FailureRecord(point="first", **failure))
    filler = fill(small_disk)
    with pytest.raises(UserError, match=r"cannot write to .* \(No space left on device\): make room and continue"):
        for number in range(100):
            run.append(schema.FailureRecord(point=f"more{number}" * 100, **failure))
    run.close()
    filler.unlink()
    again = RunFolder.begin(small_disk / "run", {})
    again.append(schema.FailureRecord(point="last", **failure))
    again.close()
    points = [record.point for record in RunFolder(small_disk / "run").records()]
    assert points[0] == "first" and points[-1] == "last"


def test_a_disk_that_is_full_when_a_worker_starts_is_one_sentence(small_disk):
    with contextlib.suppress(OSError):  # this file system can also run out of files, not only of blocks
        for number in range(200):
            (small_disk / f"{number}").touch()
    full = r"cannot write '.*cpu1.log' \(No space left on device\): make room and continue"
    with pytest.raises(UserError, match=full):
        Child(Setup(platform="cpu", devices=1), small_disk / "logs" / "cpu1.log")


@pytest.mark.parametrize("told", [True, False])
def test_a_follower_that_was_told_how_it_ends_has_not_lost_process_0(told):
    leader = Position(address=start.free_address(), processes=2, process=0)
    follower, hello = Position(address=leader.address, processes=2, process=1), Unfit(error="none", host="b")
    with ThreadPoolExecutor() as threads:
        listening = threads.submit(launch_lib.listen, leader)
        connection = launch_lib.connect(follower)
        process_0 = listening.result()[1]
        ending = threads.submit(launch_lib.follow, follower, connection, hello, "mlp")
        assert process_0.read() == hello
        if told:
            process_0.send(Exit(code=2))
        process_0.socket.shutdown(socket.SHUT_RDWR)
        if told:
            assert ending.result() == 2
        else:
            with pytest.raises(UserError, match="^process 0, which leads this launch from 127.0.0.1, is gone"):
                ending.result()
        process_0.close()


@pytest.fixture
def joined() -> Iterator[tuple[launch_lib.Followers, launch_lib.Connection]]:
    """(process 0's view of a launch of two processes, the connection of process 1)."""
    address = start.free_address()
    leader, follower = (Position(address=address, processes=2, process=process) for process in (0, 1))
    with ThreadPoolExecutor() as threads:
        listening = threads.submit(launch_lib.listen, leader)
        connection = launch_lib.connect(follower)
        followers = launch_lib.Followers(leader, listening.result())
    yield followers, connection
    connection.close()
    followers.end(0)


def test_an_answer_that_nobody_reads_does_not_hold_up_others(joined):
    """A worker that is killed because another process of its group failed may have answered already."""
    followers, connection = joined
    setup, long = Setup(platform="cpu", devices=1), {"do": "done", "text": "x" * 200_000}  # a pipe takes 65,536 bytes
    killed, other = (followers.start(1, setup) for _ in range(2))
    numbers = [connection.read().child for _ in range(2)]
    for number in numbers:
        connection.send(Answered(child=number, answer=long))
    killed.kill()
    assert ready([other], 5.0) == [other] and other.read() == long
    for number in numbers:
        connection.send(Ended(child=number, code=0, how="ended", log=""))
    assert other.read() is None and other.end() == (0, "ended")
    assert killed.read() == long and killed.read() is None


def test_a_worker_that_has_ended_leaves_no_pipe_open(joined):
    """A long run replaces its workers many times, and a process may open about a thousand files."""
    followers, connection = joined
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        worker = followers.start(1, Setup(platform="cpu", devices=1))
        connection.send(Ended(child=connection.read().child, code=0, how="ended", log=""))
        worker.close()
        del worker
    until(lambda: len(os.listdir("/proc/self/fd")) == before, 5)


def test_a_stranger_and_a_second_process_of_a_number_do_not_join():
    address = start.free_address()
    leader, follower = (Position(address=address, processes=3, process=process) for process in (0, 1))
    with ThreadPoolExecutor() as threads:
        listening = threads.submit(launch_lib.listen, leader, all_within_s=2)
        second = [threads.submit(launch_lib.connect, follower, wait_s=2) for _ in range(2)]

        def disturb() -> bool:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection((leader.host, leader.port)) as s:
                s.sendall(b"GET / HTTP/1.1\r\n")
                return True
            return False

        until(disturb)  # its thread may not listen yet
        for waiting in (listening, *second):
            with pytest.raises(
                UserError, match="^not all of 3 processes came to 127.0.0.1:.* within 2 s: start .*process of its own"
            ):
                waiting.result()


@pytest.mark.full
def test_a_full_disk_of_the_leader_ends_all(small_disk, tmp_path):
    address, where = start.free_address(), f"--workdir={small_disk / 'run'}"
    follower, leader = started(tmp_path, address, 1, LONG), started(tmp_path, address, 0, LONG, where)
    records = small_disk / "run" / "records.jsonl"
    until(lambda: records.exists() and '"process_block_s":[[' in records.read_text())
    everyone = children_of(leader.pid) + children_of(follower.pid)
    fill(small_disk)
    code, _, err = ended(leader)
    assert code == 2 and re.search(r"^jaxbench: cannot write .*\(No space left on device\): make room", err, re.M), err
    assert "Traceback" not in err and ended(follower) == (2, "", "")
    until(lambda: not alive(everyone))
    assert rounds(small_disk / "run") >= 1


@pytest.mark.full
def test_a_whole_job_that_is_killed_goes_on_where_it_was(tmp_path):
    words = ("--config.measure.rounds=40",)
    address = start.free_address()
    follower, leader = (started(tmp_path, address, process, *words) for process in (1, 0))
    everyone = measuring(tmp_path, follower, leader)
    for process in (leader, follower):
        process.kill()
        process.communicate()
    until(lambda: not alive(everyone))
    before = rounds(tmp_path / "run0")
    assert 1 <= before < 80
    address = start.free_address()
    follower, leader = (started(tmp_path, address, process, *words) for process in (1, 0))
    code, out, err = ended(leader)
    # On a loaded machine a gate may refuse the times, with exit code 1; here only their number counts.
    assert code == 0 or "two clocks agree" in out, out + err
    assert ended(follower)[0] == code, "it is that of process 0"
    kept = [record for record in RunFolder(tmp_path / "run0").records() if isinstance(record, schema.RoundRecord)]
    assert len(kept) == 80 == len({(record.point, record.round) for record in kept})


@pytest.mark.full
def test_a_process_that_is_stopped_is_missed(tmp_path):
    address = start.free_address()
    follower, leader = (started(tmp_path, address, process, LONG) for process in (1, 0))
    everyone = measuring(tmp_path, follower, leader)
    stopped = [follower.pid, *children_of(follower.pid)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        code, _, err = ended(leader)
    finally:
        for pid in alive(stopped):
            os.kill(pid, signal.SIGCONT)
    assert code == 2 and re.search(r"jaxbench: process 1 \(on .*\) is gone", err), err
    assert ended(follower)[0] != 0
    until(lambda: not alive(everyone))


@pytest.mark.full
def test_a_process_with_another_version_is_named(tmp_path):
    """Python finds another release of optax first."""
    other = tmp_path / "other" / "optax-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: optax\nVersion: 0.0.1\n")
    address, path = start.free_address(), f"{other.parent}:{ROOT}"
    follower, leader = started(tmp_path, address, 1, PYTHONPATH=path), started(tmp_path, address, 0)
    code, _, err = ended(leader)
    assert code == 2
    assert re.fullmatch(
        r"jaxbench: the versions of packages of process 0 \(on .*: optax .*\) and process 1 \(on .*: optax 0.0.1\) "
        "differ: start .*\n",
        err,
    ), err
    assert ended(follower) == (2, "", "")


@pytest.mark.full
def test_a_folder_that_another_leader_has_is_refused_once(tmp_path):
    address = start.free_address()
    follower, leader = started(tmp_path, address, 1, LONG), started(tmp_path, address, 0, LONG)
    measuring(tmp_path, follower, leader)
    try:
        share, other = "--share_machine", start.free_address()
        second = [started(tmp_path, other, process, LONG, share) for process in (1, 0)]
        code, _, err = ended(second[1])
        assert code == 2 and re.fullmatch("jaxbench: another process is using '.*run0': .*\n", err), err
        assert ended(second[0]) == (2, "", "")
    finally:
        leader.send_signal(signal.SIGINT)
        ended(leader)
        ended(follower)


@pytest.mark.full
def test_a_follower_is_told_that_process_0_is_missing_or_its_port_is_taken(tmp_path):
    """Both in one test, because a follower waits for a minute."""
    absent = start.free_address()
    (tmp_path / "lonely").mkdir()
    lonely = started(tmp_path / "lonely", absent, 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        follower, leader = started(tmp_path, address, 1), started(tmp_path, address, 0)
        code, _, err = ended(leader)
        assert code == 2
        assert re.fullmatch(f"jaxbench: the port {address[10:]} of 127.0.0.1, .*, is taken .*\n", err), err
        for process, where in ((lonely, absent), (follower, address)):
            code, out, err = ended(process, 150)
            assert code == 2 and out == ""
            assert re.fullmatch(f"jaxbench: not all of 2 processes came to {where} within .*\n", err), err

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Workers that a server forks: they are like new programs, and a server ends with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.processes import child
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import KEEP_MEMORY, Setup

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks are safe on Linux only")
BENCH = ["jaxbench.features.ablations.recipe"]


def setup_of(devices: int) -> Setup:
    config = config_lib.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("smoke"))
    return Setup(
        platform="cpu", devices=devices, experiment="mlp", config=config_lib.plain(config),
        environment=KEEP_MEMORY, worker=f"w{devices}",
    )  # fmt: skip


def facts(pid: int) -> dict[str, Any]:
    """Of a worker: its parent, number of threads, their CPUs, and its memory map."""
    process = Path(f"/proc/{pid}")
    tasks = [int(task.name) for task in (process / "task").iterdir()]
    maps = [line.split() for line in (process / "maps").read_text().splitlines()]
    return {
        "parent": int((process / "stat").read_text().rpartition(")")[2].split()[1]),
        "threads": len(tasks),
        "cpus": {tuple(sorted(os.sched_getaffinity(task))) for task in tasks},
        "heap": max(int(line[0].split("-")[1], 16) for line in maps if line[-1] == "[heap]"),
        "gaps": {line[0] for line in maps if line[1] == "---s"},
        "libraries": {line[0] for line in maps if line[-1].endswith("_jax.so")},
    }


def test_a_fork_is_like_a_new_program_with_a_layout_of_its_own(tmp_path):
    forks = ForkServers(BENCH)
    children = [child.Child(setup_of(2), tmp_path / f"log{i}", forks if i else None) for i in range(5)]
    try:
        for each in children:
            assert each.read()["do"] == "ready", each.log_tail()
        new, *forked = (facts(each.pid) for each in children)
        first, second, *_ = forked
        assert new["parent"] == os.getpid() and first["parent"] == second["parent"] != os.getpid()
        # A new program also has a thread for NumPy's products, which no step uses.
        assert 2 < new["threads"] - 1 <= first["threads"] == second["threads"] <= new["threads"]
        assert new["cpus"] == first["cpus"] == second["cpus"]
        assert first["libraries"] == second["libraries"] != new["libraries"]
        heaps = [each["heap"] for each in forked]
        assert max(heaps) - min(heaps) > 2**17, "without a gap they differ by less than 50 KiB"
        assert len(set.union(*(each["gaps"] for each in forked))) == len(forked) and not new["gaps"]
        children[1].kill()
        assert children[1].end() == (-signal.SIGKILL, "was killed by SIGKILL (as by the system when memory runs out)")
        assert not children[2].ended
        children[2].close()  # lets it end
        assert children[2].end() == (0, "ended with exit code 0")
    finally:
        for each in children:
            each.kill()
            each.close()
        forks.close()


def test_a_fork_that_fails_says_so_in_its_log(tmp_path):
    forks = ForkServers(["jaxbench.errors"])
    with open(tmp_path / "log", "wb") as log:
        process = forks.start("jaxbench.no_such_module", {**os.environ}, log)
    assert process.wait(30) == 1 and process.poll() == 1
    assert "no_such_module" in (tmp_path / "log").read_text()
    process.stdin.close()
    process.stdout.close()
    forks.close()


def test_a_process_with_threads_is_not_forked(tmp_path, monkeypatch):
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    forks = ForkServers(["threaded"])
    with open(tmp_path / "log", "wb") as log:
        assert forks.start("jaxbench.worker", {**os.environ}, log) is None
    forks.close()


def test_a_child_of_an_imported_module_does_not_end_the_server(tmp_path, monkeypatch):
    (tmp_path / "starts_a_child.py").write_text(
        "import subprocess\nof_its_own = subprocess.Popen(['sleep', '0.2'])\n"  # it ends after the server has begun
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    forks = ForkServers(["starts_a_child"])
    for _ in range(2):
        with open(tmp_path / "log", "wb") as log:
            process = forks.start("jaxbench.no_such_module", {**os.environ}, log)
        assert process is not None and process.wait(30) == 1
        process.stdin.close()
        process.stdout.close()
        time.sleep(0.3)
    forks.close()


PARENT = """
import json, os, sys
from jaxbench.processes.forkserver import ForkServers
forks = ForkServers(["jaxbench.errors"])
process = forks.start("jaxbench.worker", {**os.environ}, open(sys.argv[1], "wb"))
(server,) = forks._servers.values()
print(json.dumps([process.pid, server._process.pid]), flush=True)
sys.stdin.read()
"""


def test_server_and_forks_end_with_a_killed_parent(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pids = json.loads(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while alive := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"{alive} live on"
        time.sleep(0.05)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two real processes that connect, agree, and notice each other's absence."""

import json
import subprocess
import sys

from doorway import environment

from jaxbench.machine import start
from jaxbench.processes.group import ProcessGroup

MEMBER = """
import json, os, sys
import jax
from jaxbench.machine import start
from jaxbench.machine.position import Position
from jaxbench.processes import group

place = Position(**json.loads(sys.argv[1]))
start.start("cpu", 2, position=place)
low = [os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in os.listdir("/proc/self/task")].count(19)
both, first = group.ProcessGroup.of(jax.devices()), group.ProcessGroup.of(jax.devices()[:1])
me = jax.process_index()
found = {
    "processes": both.processes,
    "here": first.include_this,
    "low": low > 0,
    "gathered": both.all_gather({"from": me}),
    "decided": both.broadcast(me == 0),
    "all": [both.all(True), both.all(me == 0)],
    "calls": [both.after_barrier(lambda x: x + 1)(2), first.all_gather(me)],
}
group.BARRIER_LIMIT_S = 1.0
if me == 0:
    try:
        both.barrier()
    except TimeoutError as error:
        found["missing"] = str(error)
sys.stdout.write("found " + json.dumps(found) + chr(10))
sys.stdout.flush()
sys.stdin.read()  # until both have answered: the service is process 0's
os._exit(0)
"""


def test_members_of_a_world_agree():
    address = start.free_address()
    places = [{"address": address, "processes": 2, "process": i} for i in range(2)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    members = [subprocess.Popen([sys.executable, "-c", MEMBER, json.dumps(place)], **pipes) for place in places]
    try:
        answers = []
        for member in members:
            line = next((line for line in member.stdout if line.startswith("found ")), "found {}")
            answers.append(json.loads(line.removeprefix("found ")))
    finally:
        for member in members:
            member.kill()
            member.communicate()
    common = {
        "processes": [0, 1],
        "gathered": [{"from": 0}, {"from": 1}],
        "decided": True,
        "all": [True, False],
        "low": True,
    }
    late = "process 1 did not arrive within 1 s at the point where the others wait for it"
    assert answers[0] == {**common, "here": True, "calls": [3, [0]], "missing": late}
    assert answers[1] == {**common, "here": False, "calls": [3, [1]]}


def test_threads_that_wait_for_sockets_come_last(tmp_path, monkeypatch):
    own, tasks, lowered = "python\n", tmp_path / "task", []
    (tmp_path / "comm").write_text(own)
    threads = (1, own, "202 0x1"), (2, own, "232 0x5"), (3, "event_engine\n", "232 0x6"), (4, own, "")
    for number, name, call in threads:
        (tasks / str(number)).mkdir(parents=True)
        (tasks / str(number) / "comm").write_text(name)
        if call:  # a thread that has ended in the meantime has none
            (tasks / str(number) / "syscall").write_text(call)
    monkeypatch.setattr(start.os, "setpriority", lambda which, thread, nice: lowered.append((thread, nice)))
    assert start.read_sockets_last(tasks) == 1 and set(lowered) == {(2, 19)}
    assert start.read_sockets_last(tmp_path / "other system") == 0


def test_a_process_alone_agrees_with_itself():
    assert ProcessGroup().all_gather(3) == [3] and ProcessGroup().broadcast(False) is False
    assert ProcessGroup.of([]) == ProcessGroup()

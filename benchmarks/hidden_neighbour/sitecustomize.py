# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Simulates a virtual machine with a neighbour that its kernel does not show, for the processes of one run.

A real process takes half of a core's time. In a virtual machine nothing would show that: the clocks of a process count
the time that a neighbour on the other hardware thread takes as if the process had used it, and work on the core takes
longer by them. So this module, which Python imports when a process starts, adds that time to the clocks.
`benchmarks.neighbours` puts this folder on PYTHONPATH. Nothing of jaxbench is changed.
"""

import json
import os
import threading
import time

_STATE = os.environ.get(
    "HIDDEN_NEIGHBOUR", ""
)  # a file that names the neighbour's process, its CPU, and whether it runs
_SLOWER = 2.0  # two processes of the same priority share a core
_real_thread_time, _real_process_time = time.thread_time, time.process_time
_thread = threading.local()


def _neighbour() -> dict:
    try:
        with open(_STATE) as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def _used_s(pid: int) -> float:
    """The CPU time of a process. It stays the same while the process is stopped."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_time() -> float:
    """The clock of this thread, which runs fast while the thread is pinned to the core that the neighbour uses."""
    real, neighbour = _real_thread_time(), _neighbour()
    slowed = neighbour.get("runs") and os.sched_getaffinity(0) == {neighbour["cpu"]}
    last, shown = getattr(_thread, "times", (real, real))
    shown += (real - last) * (_SLOWER if slowed else 1.0)
    _thread.times = (real, shown)
    return shown


def process_time() -> float:
    """The clock of this process, with the time that the neighbour has taken on one of its cores."""
    neighbour = _neighbour()
    mine = neighbour and neighbour["cpu"] in os.sched_getaffinity(0)
    return _real_process_time() + (_used_s(neighbour["pid"]) if mine else 0.0)


if _STATE:
    time.thread_time, time.process_time = thread_time, process_time

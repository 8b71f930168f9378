# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which lines of functions of the package each test runs, in its own process and in those that it starts.

A plugin of pytest that every Python of the tests also runs at its start (`recording.py`). Needs Python >= 3.12.
Lines are written as they run, because tests kill processes. Lines outside functions are left out: an import runs them.
"""

from __future__ import annotations

import contextlib
import glob
import inspect
import os
import sys
from types import CodeType
from typing import Any

TOOL = 4  # a free number: debuggers, coverage, profilers and hypothesis have others


class Recorder:
    """Appends the lines of a test to a file of this process, each once: `=test`, then `file:line` for each."""

    def __init__(self, folder: str, package: str) -> None:
        self.folder, self.package = folder, package
        self.pid, self.file, self.test = 0, -1, ""

    def start(self) -> None:
        watch = sys.monitoring
        watch.use_tool_id(TOOL, "lines of tests")
        watch.register_callback(TOOL, watch.events.PY_START, self.begins)
        watch.register_callback(TOOL, watch.events.LINE, self.runs)
        watch.set_events(TOOL, watch.events.PY_START)
        os.register_at_fork(after_in_child=watch.restart_events)

    def begins(self, code: CodeType, offset: int) -> Any:
        if code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(self.package):  # a function
            sys.monitoring.set_local_events(TOOL, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE

    def runs(self, code: CodeType, line: int) -> Any:
        test = os.environ.get("TEST_THAT_RUNS", "")
        if self.pid != os.getpid():
            self.pid, self.test = os.getpid(), ""
            self.file = os.open(f"{self.folder}/{self.pid}.lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if test != self.test:
            self.test = test
            os.write(self.file, f"={test}\n".encode())
        os.write(self.file, f"{code.co_filename[len(self.package) :]}:{line}\n".encode())
        return sys.monitoring.DISABLE


def spent_s() -> float:
    """CPU seconds of this process and of those that it has started. They are the same on a busy machine."""
    return sum(os.times()[:4]) + sum(map(spent_by_s, children_of("self")))


def spent_by_s(pid: str) -> float:
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # it has just ended, and is among the ended ones of its parent
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(spent_by_s, children_of(pid)))


def children_of(pid: str) -> list[str]:
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):  # Linux; elsewhere running children are not counted
        with contextlib.suppress(OSError), open(path) as file:
            found += file.read().split()
    return found


class Running:
    """The test that runs in this process."""

    name, began_s, outcome = "", 0.0, "passed"


def pytest_runtest_protocol(item: Any) -> None:
    """Only for a process that runs tests. With xdist, the one that starts such processes hears of tests, too."""
    Running.name, Running.began_s, Running.outcome = item.nodeid, spent_s(), "passed"


def pytest_runtest_logstart(nodeid: str) -> None:
    os.environ["TEST_THAT_RUNS"] = nodeid
    sys.monitoring.restart_events()


def pytest_runtest_logreport(report: Any) -> None:
    Running.outcome = "failed" if report.failed else Running.outcome


def pytest_runtest_logfinish(nodeid: str) -> None:
    if nodeid == Running.name:
        with open(f"{os.environ['LINES_TO']}/seconds", "a") as file:
            file.write(f"{spent_s() - Running.began_s:.4f}\t{Running.outcome}\t{nodeid}\n")


if "LINES_TO" in os.environ and sys.monitoring.get_tool(TOOL) is None:
    Recorder(os.environ["LINES_TO"], os.environ["LINES_OF"]).start()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which lines of functions of the package each test runs, in its own process and in those that it starts.

A plugin of pytest that every Python of the tests also runs at its start (`recording.py`). Needs Python >= 3.12.
Lines are written as they run, because tests kill processes. Lines outside functions are left out: an import runs them.
"""

from __future__ import annotations

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


def pytest_runtest_logstart(nodeid: str) -> None:
    os.environ["TEST_THAT_RUNS"] = nodeid
    sys.monitoring.restart_events()


def pytest_runtest_logreport(report: Any) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:  # one process hears of all tests
        with open(f"{os.environ['LINES_TO']}/seconds", "a") as file:
            file.write(f"{report.duration:.4f}\t{report.outcome}\t{report.nodeid}\n")


if "LINES_TO" in os.environ and sys.monitoring.get_tool(TOOL) is None:
    Recorder(os.environ["LINES_TO"], os.environ["LINES_OF"]).start()

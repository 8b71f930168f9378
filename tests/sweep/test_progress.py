# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A log never falls silent: `heartbeat` prints what is done and what is left."""

from __future__ import annotations

import io
import re
import time

import pytest
from house.tree import ROOT, python_files
from rich.console import Console

from jaxbench.sweep import progress
from jaxbench.sweep.progress import heartbeat, working


def test_every_line_in_a_log_says_what_is_true_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.SILENT_S < 30, "as the documents promise"
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    log, done = io.StringIO(), [0]
    with heartbeat(Console(file=log), lambda: f"pair {done[0]} of 6"):
        _wait_for(log, "0 s: pair 0 of 6\n")
        done[0] = 1
        _wait_for(log, "0 s: pair 1 of 6\n")
    ended = log.getvalue()
    time.sleep(0.1)
    assert log.getvalue() == ended  # nothing after the block


def test_a_line_before_the_first_task_does_not_say_what_is_left_and_a_spinner_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    log = io.StringIO()
    with progress.ProgressLine(Console(file=log), 8):
        _wait_for(log, "0 s: starting: 0 of 8 done\n")
    log = io.StringIO()
    with working(Console(file=log), "searching"):
        _wait_for(log, "0 s: searching\n")


def test_an_error_ends_it_and_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    log = io.StringIO()
    with pytest.raises(KeyError), heartbeat(Console(file=log), lambda: "at work"):
        _wait_for(log, "at work")
        raise KeyError
    ended = log.getvalue()
    time.sleep(0.1)
    assert log.getvalue() == ended


@pytest.mark.parametrize("terminal", [False, True])
def test_a_terminal_has_its_own_line_unless_asked(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    screen = io.StringIO()
    with heartbeat(Console(file=screen, force_terminal=True), lambda: "at work", terminal=terminal):
        time.sleep(0.1)
    assert ("at work" in screen.getvalue()) is terminal


def test_what_a_terminal_shows_a_log_says_too() -> None:
    """Rich draws spinners and bars on terminals only, so a file that uses them must keep its log alive."""
    elsewhere = {"jaxbench/features/training/loop.py"}  # its caller, train.py, does that
    drawn = re.compile(r"\.status\(|\bLive\(|[^_\w]Progress\(")
    found = {str(path): (ROOT / path).read_text() for path in python_files("jaxbench")}
    silent = {path for path, text in found.items() if drawn.search(text) and "heartbeat(" not in text}
    assert silent == elsewhere and "heartbeat(" in found["jaxbench/features/training/train.py"]


def _wait_for(log: io.StringIO, line: str) -> None:
    until = time.monotonic() + 10
    while line not in log.getvalue():
        assert time.monotonic() < until, log.getvalue()
        time.sleep(0.005)

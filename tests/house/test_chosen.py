# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The choice of `make test` (tests/chosen): its lists name what exists, and it keeps what adds lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from chosen import choice, mutations, recorder, recording
from house.tree import ROOT

FAULTS, LOST = 60, 3  # faults that no longer fit the package: replace them before there are more


def test_each_test_that_is_left_out_or_kept_exists() -> None:
    assert not choice.left_out() & choice.kept_for_faults()
    names = choice.left_out() | choice.kept_for_faults()
    texts = {file: (ROOT / file).read_text() for file in {name.partition("::")[0] for name in names}}
    for name in names:
        file, _, function = choice.function(name).rpartition("::")
        assert re.search(rf"def {function}\b", texts[file.partition("::")[0]]), (
            f"delete {name} from left_out.txt or kept.txt"
        )


def test_the_faults_fit_the_package() -> None:
    faults = mutations.faults()
    lost = [fault.name for fault in faults if fault.place(ROOT / "jaxbench") is None]
    assert len(faults) == FAULTS and len(lost) <= LOST, lost


def test_tests_are_chosen_by_new_lines_a_second_until_the_time_is_used() -> None:
    seconds = {"a.py::cheap": 0.1, "a.py::twice[x]": 2.0, "a.py::twice[y]": 2.0, "b.py::slow": 9.0, "b.py::same": 3.0}
    lines = {
        "a.py::cheap": {"one:1"},
        "a.py::twice[x]": {f"one:{line}" for line in range(90)},
        "a.py::twice[y]": {f"one:{line}" for line in range(95)},
        "b.py::slow": {f"two:{line}" for line in range(500)},
        "b.py::same": {"one:1"},
    }
    told = recording.Recording(lines, seconds)
    assert choice.chosen(3, told) == ["a.py::cheap", "a.py::twice[y]"]
    assert choice.chosen(12, told) == ["a.py::cheap", "a.py::twice[y]", "b.py::slow"]
    assert choice.chosen(99, told) == ["a.py::cheap", "a.py::twice[y]", "b.py::slow", "b.py::same"]
    failed = recording.Recording(lines, seconds, failed={"b.py::slow"})
    assert choice.chosen(3, failed) == ["a.py::cheap", "b.py::slow"]


def test_what_is_left_out_and_was_not_recorded_stays_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LEFT_OUT", tmp_path / "left_out.txt")
    choice.LEFT_OUT.write_text("# why\na.py::now_worth_it\nb.py::not_recorded\n")
    seconds = {"a.py::now_worth_it": 2.0, "a.py::slow": 9.0}
    told = recording.Recording({"a.py::now_worth_it": {"one:1"}, "a.py::slow": {"one:1"}}, seconds)
    assert choice.choose(3, told) == 0
    assert choice.LEFT_OUT.read_text() == "# why\na.py::slow\nb.py::not_recorded\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has sys.monitoring from 3.12 on")
def test_lines_are_recorded_by_test_also_in_a_child_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n\n\nclass A:\n    y = 1\n")
    code = (
        f"exec(open({str(recording.RECORDER)!r}).read(), {{'__name__': 'recorder'}})\n"
        "import os, signal, sys, own\n"
        "own.f(1)\n"
        "if not (pid := os.fork()):\n"
        "    os.environ['TEST_THAT_RUNS'] = 'second'\n"
        "    own.f(0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.waitpid(pid, 0)\n"
    )
    variables = {"LINES_TO": str(tmp_path), "LINES_OF": f"{tmp_path}/", "TEST_THAT_RUNS": "first"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **variables}, check=True)
    (tmp_path / "seconds").write_text("1.5\tpassed\tfirst\n0.5\tpassed\tfirst\n")
    told = recording.read([str(tmp_path)])
    assert told.lines == {"first": {"own.py:2", "own.py:3"}, "second": {"own.py:2", "own.py:4"}}
    assert told.seconds == {"first": 2.0}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the CPU time of a child that runs")
def test_the_seconds_of_a_test_are_those_of_all_its_processes() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before = recorder.spent_s()
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin and child.stdout and child.stdout.readline()
        running = recorder.spent_s() - before
        child.communicate(b"\n")
    ended = recorder.spent_s() - before
    assert running > 0.25 and ended >= running

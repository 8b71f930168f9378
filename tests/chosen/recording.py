# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Records of the lines and seconds of tests: how they are made and read."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDER = Path(__file__).with_name("recorder.py")
# A line of a `.pth` file is run by each Python that starts, the tests' own processes among them.
AT_START = "import os; 'LINES_TO' in os.environ and exec(open({path!r}).read(), {{'__name__': 'recorder'}})\n"


@dataclass
class Recording:
    """By id of a test: the lines that it ran, as `file:line` below jaxbench/, and its CPU seconds. And what failed."""

    lines: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failed: set[str] = field(default_factory=set)

    def all_lines(self) -> set[str]:
        return set().union(*self.lines.values())


def record(folder: Path, words: list[str]) -> int | str:
    """Runs pytest with these words. Returns its exit code."""
    if sys.version_info < (3, 12):
        return "record needs Python >= 3.12: make env VENV=.venv-newest PYTHON=python3.13, and use that environment."
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "LINES_TO": str(folder.resolve()),
        "LINES_OF": f"{ROOT}/jaxbench/",
        "PYTHONPATH": str(RECORDER.parent),
    }
    with every_python_records():
        command = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", *words]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode


@contextlib.contextmanager
def every_python_records() -> Iterator[None]:
    """While this lasts, each process of this environment records lines if LINES_TO is in its variables."""
    path = Path(sysconfig.get_path("purelib")) / "lines_of_tests.pth"
    path.write_text(AT_START.format(path=str(RECORDER)))
    try:
        yield
    finally:
        path.unlink()


def read(folders: list[str]) -> Recording:
    recording = Recording()
    for folder in map(Path, folders):
        for path in folder.glob("*.lines"):
            test = ""
            for line in path.read_text().splitlines():
                if line.startswith("="):
                    test = line[1:]
                elif test:  # what runs before the first test, at an import, is run by every test
                    recording.lines[test].add(sys.intern(line))
        for line in (folder / "seconds").read_text().splitlines():
            seconds, outcome, test = line.split("\t", 2)
            recording.seconds[test] += float(seconds)
            if outcome == "failed":
                recording.failed.add(test)
    return recording

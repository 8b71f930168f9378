# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Plants one fault after the other in a copy of the package, and says whether the tests of `make test` see it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .choice import left_out
from .recording import ROOT, Recording

FAULTS = Path(__file__).with_name("mutations.toml")
COPIED = ("jaxbench", "tests", "experiments", "configs", "benchmarks", "docs", "cards", "examples", "pyproject.toml")
LIMIT_S = 240.0  # for the tests of one fault
MOST = 150  # tests of one fault, those with the fewest seconds


@dataclass(frozen=True)
class Fault:
    """`old`, which is once in the package, becomes `new`."""

    name: str
    old: str
    new: str
    about: str

    def place(self, package: Path) -> tuple[Path, set[int]] | None:
        """(the file, the numbers of the lines that change); None if the text is not there exactly once."""
        found = [path for path in sorted(package.rglob("*.py")) for _ in range(path.read_text().count(self.old))]
        if len(found) != 1:
            return None
        first = found[0].read_text().partition(self.old)[0].count("\n") + 1
        return found[0], set(range(first, first + self.old.count("\n") + 1))


def faults() -> list[Fault]:
    groups = tomllib.loads(FAULTS.read_text())
    return [
        Fault(f"{group}.{name}", each["old"], each["new"], each["fault"])
        for group, named in groups.items()
        for name, each in named.items()
    ]


def tests_of(file: Path, lines: set[int], recording: Recording, out: set[str]) -> list[str]:
    """The tests that ran these lines, and the folder of tests that mirrors the file if it was not recorded.

    Those of the mirroring folder come first, then the quick ones. Of a test function two cases are enough.
    """
    name = file.relative_to(ROOT / "jaxbench").as_posix()
    mirror = "tests/" + name.rpartition("/")[0]
    keys = {f"{name}:{line}" for line in lines}
    found = [test for test, ran in recording.lines.items() if keys & ran and test not in out]
    found.sort(key=lambda test: (not test.startswith(mirror), recording.seconds.get(test, 0.0)))
    cases: dict[str, int] = {}
    some = []
    for test in found:
        function = test.partition("[")[0]
        cases[function] = cases.get(function, 0) + 1
        some += [test] if cases[function] <= 2 else []
    unrecorded = (ROOT / mirror).is_dir() and not any(test.startswith(mirror) for test in recording.seconds)
    return [*([mirror] if unrecorded else []), *some[:MOST]] or ["tests"]


def run(results: Path, recording: Recording) -> int:
    """Appends a line for each fault that `results` does not have yet, or has by a test that `make test` leaves out now.

    Returns 1 if a fault was not seen.
    """
    lines = results.read_text().splitlines() if results.exists() else []
    told = {(each := json.loads(line))["fault"]: each for line in lines}
    told = {name: each for name, each in told.items() if each["by"] not in left_out()}
    with tempfile.TemporaryDirectory(prefix="jaxbench-faults-") as folder:
        copy = copied(Path(folder))
        for fault in faults():
            if fault.name not in told:
                told[fault.name] = {"fault": fault.name, **plant(fault, copy, recording)}
                with results.open("a") as file:
                    file.write(json.dumps(told[fault.name]) + "\n")
                print(told[fault.name]["verdict"], fault.name, f"({fault.about})", flush=True)
    verdicts = [told[fault.name]["verdict"] for fault in faults()]
    print(", ".join(f"{verdicts.count(each)} {each}" for each in sorted({*verdicts})), f"of {len(verdicts)} faults")
    return int(any(verdict != "seen" for verdict in verdicts))


def copied(folder: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(source, folder / name)
    return folder


def plant(fault: Fault, copy: Path, recording: Recording) -> dict[str, str]:
    place = fault.place(ROOT / "jaxbench")
    if place is None:
        return {"verdict": "not planted", "by": "its text is not in the package exactly once"}
    file, lines = place
    planted, text = copy / file.relative_to(ROOT), file.read_text()
    planted.write_text(text.replace(fault.old, fault.new))
    try:
        return tried(tests_of(file, lines, recording, left_out()), copy)
    finally:
        planted.write_text(text)


def tried(tests: Iterable[str], copy: Path) -> dict[str, str]:
    """Runs tests until one fails. Those that a change of the tests has taken away are left out by pytest itself."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", "--tb=no", "-rfE", *tests]
    # A planted file has a new time, so compiled files may stay: compiling all again is half of a start.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(copy)
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"verdict": "out of time", "by": f"{LIMIT_S:g} s"}
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if process.returncode == 1 and failed:
        return {"verdict": "seen", "by": failed[0].partition(" - ")[0].partition(" ")[2]}
    if process.returncode == 0:
        return {"verdict": "NOT seen", "by": said.splitlines()[-1]}
    return {"verdict": "not tried", "by": said[-500:]}

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tests pass whatever a shell exports: a few of them run again with `HOSTILE` variables, and any can."""

from __future__ import annotations

import os
import subprocess
import sys

import surroundings
from house.tree import ROOT

# One of each kind: of the manifest's variables, of a width, of a jitted step, of a figure, of a process, of git.
AGAIN = (
    "tests/machine/test_identity.py::test_the_manifest_has_an_identity_and_the_variables_of_this_process",
    "tests/report/test_columns.py",
    "tests/core/test_timed_region.py",
    "tests/statistics/test_looks.py",
    "tests/test_app.py::test_the_version_is_a_line",
    "tests/house/test_doorway.py::test_variables_become_flags",
)


def pytest_of(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *words]
    known = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True, timeout=300)


def test_some_tests_pass_in_a_hostile_shell() -> None:
    done = pytest_of(*AGAIN, **surroundings.HOSTILE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "failed" not in done.stdout


def test_every_hostile_variable_is_taken_out_except_those_that_a_processor_needs() -> None:
    code = f"import os; os.environ.update({surroundings.HOSTILE}); import surroundings; print(sorted(os.environ))"
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "tests"), "MINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=known, capture_output=True, text=True, check=True)
    left = set(eval(done.stdout))
    assert left - {"LC_CTYPE"} == {*known, *surroundings.KEPT}

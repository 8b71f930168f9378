# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""PYTHONOPTIMIZE removes asserts (1) and docstrings (2): a run ends as without it, and its figures have captions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import QUICK_MLP, environment, sketching

from jaxbench.report import build

CAPTIONS = (
    "import json; from jaxbench.report import build;"
    "print(json.dumps({name: plot.caption for name, plot in build.figures().items()}))"
)


def optimized(level: int, words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """A process that is killed after two minutes: a request that is never sent would wait for its answer."""
    variables = {**environment(), "PYTHONOPTIMIZE": str(level)}
    return subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, timeout=120)


@pytest.mark.full
@pytest.mark.parametrize("level", [1, 2])
def test_a_run_ends_right_without_asserts(tmp_path: Path, level: int) -> None:
    done = optimized(level, sketching("run", "mlp", "--workdir=run", *QUICK_MLP), tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("<figcaption>") == page.count("<figure>") > 0


def test_every_figure_keeps_its_caption_without_docstrings(tmp_path: Path) -> None:
    done = optimized(2, [sys.executable, "-c", CAPTIONS], tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: plot.caption for name, plot in build.figures().items()}

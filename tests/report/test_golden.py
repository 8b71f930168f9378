# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Committed runs, reported again, give the committed table and page. `python -m benchmarks.redraw` accepts a change.

Figures are left out of the comparison, because their bytes depend on the version of matplotlib, and so is the copy of
docs/metrics that each page carries. Numbers may differ by rounding: other processors sum in another order.
"""

from __future__ import annotations

import csv
import math
import re
import shutil
from pathlib import Path

import pytest
from report import runs

from jaxbench.features.time_to_target import page as targets
from jaxbench.report import build

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "figures"
QUICK = ("cnn", "h100/cnn", "h100/gpt", "ladder", "remat", "time_to_target", "zero", "machine/collectives")
FULL = ("versus", "machine/dispatch", "machine/matmul", "machine/stream", "machine/transfer")


def cells(file: Path) -> list[list[str]]:
    return list(csv.reader(file.read_text().splitlines()))


def alike(made: str, committed: str) -> bool:
    if made == committed:
        return True
    try:
        return math.isclose(float(made), float(committed), rel_tol=1e-6, abs_tol=1e-12)
    except ValueError:
        return False


def words(page: Path) -> list[str]:
    """The page without its figures and definitions."""
    text = re.sub(r"<svg.*?</svg>", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r'<div class="phone.*?</div>(<label>.*?</label>)?</div>', "", text, flags=re.DOTALL)
    text = re.sub(r'<section class="definitions".*?</section>', "", text, flags=re.DOTALL)
    return text.split("\n")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.full) for name in FULL)])
@runs.blank()
def test_a_committed_run_is_reported_as_it_was(name: str, tmp_path: Path) -> None:
    run = tmp_path / Path(name).name
    shutil.copytree(COMMITTED / name, run)
    for file in ("report.html", "summary.csv", "targets.csv"):
        (run / file).unlink(missing_ok=True)
    if (run / "targets.jsonl").exists():
        targets.write(run)
    else:
        build.write(run)
    tables = [file for file in ("summary.csv", "targets.csv") if (COMMITTED / name / file).exists()]
    assert tables
    for file in tables:
        header, *rows = cells(COMMITTED / name / file)
        made_header, *made = cells(run / file)
        assert made_header == header and len(made) == len(rows)
        for row, (new, old) in enumerate(zip(made, rows, strict=True)):
            differing = {h: (a, b) for h, a, b in zip(header, new, old, strict=True) if not alike(a, b)}
            assert not differing, f"{file}, row {row + 1}"
    assert words(run / "report.html") == words(COMMITTED / name / "report.html")

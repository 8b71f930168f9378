# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The ratios of `benchmarks/processes.py`, from known times."""

import io

import numpy as np
import pytest
from rich.console import Console

from benchmarks import processes
from benchmarks.processes import ALONE, BY_HAND, ONE, TWO

TIMES = {
    (ALONE, "strong"): [0.100, 0.100, 0.120],
    (ONE, "strong"): [0.080, 0.080, 0.080],
    (ONE, "weak"): [0.160, 0.160, 0.160],
    (TWO, "strong"): [0.052, 0.052, 0.052],
    (TWO, "weak"): [0.104, 0.104, 0.104],
    (BY_HAND, "strong"): [0.050, 0.050, 0.050],
}


def test_efficiency_and_overhead() -> None:
    console = Console(file=io.StringIO(), width=100)
    found = processes.report({name: np.array(values) for name, values in TIMES.items()}, console)
    assert found["efficiency, strong, one process"] == pytest.approx(0.625)
    assert found["efficiency, strong, two processes"] == pytest.approx(0.1 / 0.104)
    assert found["efficiency, weak, two processes"] == pytest.approx(0.1 / 0.104)
    assert found["time of two processes over one, strong"] == pytest.approx(0.65)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "strong efficiency of the better: 0.96 (goal: at least 0.9, met)" in said
    assert "overhead: 1.040 (goal: at most 1.01, missed)" in said

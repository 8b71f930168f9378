# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Simulated times on a known line: the intervals cover this line, and not another."""

import numpy as np

from benchmarks import alpha_beta_coverage as coverage
from jaxbench.statistics.bootstrap import BootstrapSamples

PROCESS = np.arange(10) // 2
DRAWS = BootstrapSamples(range(10), [(unit, str(number)) for unit, number in enumerate(PROCESS)])


def test_intervals_contain_the_line_that_was_simulated():
    random = np.random.default_rng(0)
    found = [coverage.covered(coverage.simulate(random, PROCESS), DRAWS) for _ in range(10)]
    assert np.sum(found, axis=0).min() >= 7  # of 95 %, fewer are less likely than 1 in 1,000
    times = coverage.simulate(np.random.default_rng(0), PROCESS)
    assert coverage.covered(1.5 * times, DRAWS) == (False, False)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Faults are injected at the stated rate, from a seed, until the command is done."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import goodput
from jaxbench.features.training.costs import Costs
from jaxbench.features.training.trainings import KINDS, Save, Start

ROOT = Path(__file__).parents[2]


def test_times_before_faults_are_exponential_and_follow_the_seed():
    first, again, other = (list(itertools.islice(goodput.times_before_faults(30, seed), 1600)) for seed in (0, 0, 1))
    assert first == again != other
    assert np.mean(first) == pytest.approx(30, rel=0.01) and np.std(first) == pytest.approx(30, rel=0.05)
    assert np.mean(np.array(first) > 30) == pytest.approx(np.exp(-1), abs=0.02)
    assert np.mean(first[:16]) == pytest.approx(30, rel=0.15)


def train(code: str, times: list[float], most: int = 9) -> tuple[int, float]:
    return goodput.train([sys.executable, "-c", code], iter(times), most, Console(file=io.StringIO()))


def test_the_observed_rate_counts_the_time_in_which_a_kill_could_happen():
    """100 s with 5 s without a process and one kill: one kill in 95 s."""
    ns = dict.fromkeys(KINDS, 0)
    first = Start(0, {**ns, "start": 10 * 10**9, "steps": 16 * 10**9}, 0, 15, (Save(10, 10 * 10**9),), 1, 0, False)
    last = Start(31 * 10**9, {**ns, "steps": 69 * 10**9}, 10, 60, (Save(60, 50 * 10**9),), 1, 0, False)
    costs = Costs(interval_s=30.0, checkpoint_s=2.0, latency_s=0.0, restart_s=10.0, down_s=5.0, useful=0.9)
    seen_s, share = goodput.expected([first, last], costs, 1)
    assert seen_s == pytest.approx(95) and 0.3 < share < 0.9


@pytest.mark.full
def test_a_command_is_killed_until_it_is_done(tmp_path):
    """Each start leaves a mark; the third finds two and ends."""
    code = f"import pathlib, time; p = pathlib.Path({str(tmp_path / 'marks')!r}); p.open('a').write('x'); "
    code += "len(p.read_text()) > 2 or time.sleep(60)"
    kills, down_s = train(code, [2.0, 2.0, 60.0])
    assert kills == 2 and down_s > 0


def test_a_wrong_or_missing_end_is_a_sentence():
    with pytest.raises(SystemExit, match="exit code 2: no such model"):
        train("import sys; sys.stderr.write('no such model'); sys.exit(2)", [60.0])
    with pytest.raises(SystemExit, match="Not done after 1 kills: use a larger --mtbf_s"):
        train("import time; time.sleep(60)", [0.01, 0.01], most=1)


@pytest.mark.parametrize(
    ("word", "sentence"), [("--mtbf_s=0", "--mtbf_s=0 is not a time"), ("--workdir={}", "holds a training")]
)
def test_bad_input_is_a_sentence(tmp_path, word, sentence):
    (tmp_path / "account.jsonl").touch()
    words = [sys.executable, "-m", "benchmarks.goodput", word.format(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and sentence in done.stderr and "Traceback" not in done.stderr

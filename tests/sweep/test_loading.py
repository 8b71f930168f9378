# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The other sets load at the same time only what fits the memory together."""

from __future__ import annotations

import io
import subprocess
import sys

import fabricate
from doorway import QUICK_MLP, ROOT, environment
from rich.console import Console

from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.sweep import preparation
from jaxbench.sweep.progress import AGAIN, SweepProgress


def test_each_process_needs_the_memory_of_its_largest_step(tmp_path):
    path = fabricate.run_folder(tmp_path / "run", devices=(1, 2, 4), rounds=1)
    checked = {r.point: r for r in RunFolder(path).records() if isinstance(r, schema.PointRecord)}
    one, two, four = (f"shard_map/strong/{devices}" for devices in (1, 2, 4))
    sizes = {name: checked[name].devices * checked[name].compile_report.peak_bytes for name in checked}
    assert all(sizes.values())
    loads = [("a", one), ("a", two), ("b", four), ("c", one)]
    assert preparation.bytes_at_once(checked, loads) == max(sizes[one], sizes[two]) + sizes[four] + sizes[one]
    assert preparation.bytes_at_once(checked, []) == 0


def test_tasks_that_become_known_later_count_in_the_time_left():
    with SweepProgress(Console(file=io.StringIO()), [("round", "p")]) as progress:
        before = progress.left_s()
        progress.expect(AGAIN, ["p", "p", "q"])
        expected = progress.left_s()
        assert expected >= before + 3
        for name in ("p", "p", "q"):
            progress.begin(AGAIN, name, f"load {name}")
            progress.end(AGAIN, name)
        assert progress.left_s() < expected


SHORT_OF_MEMORY = """
from jaxbench import app
from jaxbench.sweep import preparation
def too_many(checked, loads):
    print(len(list(loads)), "loads in turns")
    return float("inf")
preparation.bytes_at_once = too_many
app.main()
"""


def test_sets_load_in_turns_where_memory_is_short_and_measure_the_same(tmp_path):
    words = ["run", "mlp", *QUICK_MLP, "--config.measure.processes=2", f"--workdir={tmp_path / 'run'}"]
    command = [sys.executable, "-c", SHORT_OF_MEMORY, *words]
    done = subprocess.run(command, cwd=ROOT, env=environment(), text=True, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "2 loads in turns" in done.stdout
    records = RunFolder(tmp_path / "run").records()
    points = {r.point for r in records if isinstance(r, schema.PointRecord)}
    rounds = [r for r in records if isinstance(r, schema.RoundRecord)]
    assert points == {r.point for r in rounds} and len({r.worker for r in rounds}) > len(points)

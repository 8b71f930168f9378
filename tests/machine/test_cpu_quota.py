# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The tightest quota of this process' control groups, and how long it stopped the process."""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxbench.core import clock
from jaxbench.machine import cpu_quota
from jaxbench.machine.cores import LoadCounters
from jaxbench.machine.cpu_quota import Quota

V1 = "5:cpu,cpuacct:/job\n3:memory:/elsewhere\n0::/\n"
CASES = [
    ({"cpu.max": "max 100000\n"}, "", None), ({"cpu.max": "150000 100000\n"}, "", 1.5),
    ({"cpu.max": "nonsense\n"}, "", None), ({}, "", None),
    ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "", None),
    ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, "", 2.0),
    # The group of this process and those above it: the tightest counts
    ({"a/b/cpu.max": "300000 100000", "a/cpu.max": "100000 100000", "cpu.max": "max 100000"}, "0::/a/b\n", 1.0),
    ({"a/b/cpu.max": "50000 100000", "a/cpu.max": "100000 100000"}, "0::/a/b\n", 0.5),
    ({"c/cpu.max": "50000 100000"}, "0::/a/b\n", None),  # another group
    ({"cpu/job/cpu.cfs_quota_us": "100000", "cpu/job/cpu.cfs_period_us": "100000"}, V1, 1.0),
    ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, "5:cpu:/docker/1f\n", 1.0),  # as the host
]  # fmt: skip


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(("files", "membership", "limit"), CASES)
def test_the_quota_of_both_versions_of_control_groups(tmp_path, files, membership, limit):
    write(tmp_path, {**files, "membership": membership})
    assert cpu_quota.limit(tmp_path, tmp_path / "membership") == limit


@pytest.mark.parametrize(
    ("stat", "quota"),
    [
        ("nr_periods 20\nnr_throttled 5\nthrottled_usec 250000\n", Quota(1.0, 0.25, 0.25)),
        ("nr_periods 20\nnr_throttled 20\nthrottled_time 1500000000\n", Quota(1.0, 1.5, 1.0)),
        ("usage_usec 7\n", Quota(1.0, None, None)),
        ("", Quota(1.0, None, None)),
    ],
)
def test_what_the_kernel_counts(tmp_path, stat, quota):
    write(tmp_path, {"cpu.max": "100000 100000", "cpu.stat": stat})
    assert cpu_quota.read(tmp_path, tmp_path / "none") == quota


def counters(quota: Quota | None) -> LoadCounters:
    return LoadCounters(cpu_s=0.0, switches=0, busy_s=None, steal_s=None, cpus=2, quota=quota)


def test_a_round_has_the_time_that_a_quota_stopped_each_block():
    readings = [Quota(1.0, s, None) for s in (2.0, 2.5, 2.5, 3.5)]
    samples = [(counters(a), counters(b)) for a, b in (readings[:2], readings[2:])]
    load = clock.loads(samples)
    assert (load["quota"], load["throttled_s"]) == (1.0, (0.5, 1.0))
    assert "quota" not in clock.loads([(counters(None), counters(None))])
    assert clock.loads([(counters(Quota(1.0, None, None)),) * 2])["throttled_s"] == ()


@contextlib.contextmanager
def group(cores: float) -> Iterator[Path]:
    """A real control group with a quota. Skips the test where this process may not make one."""
    first = cpu_quota.MOUNT / "cpu"
    parent = first if first.is_dir() else cpu_quota.MOUNT
    folder = parent / f"jaxbench-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")
    try:
        try:
            if first.is_dir():
                (folder / "cpu.cfs_quota_us").write_text(str(int(cores * 100_000)))
            else:
                (folder / "cpu.max").write_text(f"{int(cores * 100_000)} 100000")
        except OSError as error:
            pytest.skip(f"no quota can be set here: {error}")
        yield folder
    finally:
        folder.rmdir()


# Ends when the kernel has stopped it, so no clock is compared. The quota is small, because on a busy machine a process
# never uses up a larger one.
BURN = """
import os, sys
from jaxbench.machine import cores
open(sys.argv[1], "w").write(str(os.getpid()))
before = cores.load_before().quota
while (after := cores.load_after().quota).throttled_s <= before.throttled_s:
    sum(range(10_000))
print(before.cores, cores.available_cores())
"""


def test_a_real_group_is_read_from_inside():
    with group(0.05) as folder:
        command = [sys.executable, "-c", BURN, str(folder / "cgroup.procs")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    assert (done.returncode, done.stdout.split()) == (0, ["0.05", "1"]), done.stderr

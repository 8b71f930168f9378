# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Memory and its limits, the disk, and the clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from doctor.fabricated import by_name, machine

from jaxbench.doctor import resources

GB = 1_000_000_000


def meminfo(total: int, free: int, *, swap: int = 0, swap_free: int = 0) -> str:
    sizes = {"MemTotal": total, "MemAvailable": free, "SwapTotal": swap, "SwapFree": swap_free}
    return "\n".join(f"{name}:   {size // 1024} kB" for name, size in sizes.items()) + "\nHugePages_Total:   0"


@pytest.mark.parametrize(("free", "state"), [(20, "good"), (3, "doubtful"), (0, "bad")])
def test_memory(free: int, state: str, tmp_path: Path) -> None:
    root = machine(tmp_path, {"proc/meminfo": meminfo(32 * GB, free * GB)})
    found = resources.memory(root)
    assert found.state == state and found.numbers["swap_used_bytes"] == 0
    assert f"{free}.0 of 32.0 GB" in found.message


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
)
def test_the_containers_limit_is_nearer(names: tuple[str, str], tmp_path: Path) -> None:
    limits = {f"sys/fs/cgroup/{name}": size for name, size in zip(names, (2 * GB, GB + GB // 2), strict=True)}
    found = resources.memory(machine(tmp_path, {"proc/meminfo": meminfo(32 * GB, 20 * GB), **limits}))
    assert found.state == "bad" and found.numbers["available_memory_bytes"] == GB // 2


@pytest.mark.parametrize("text", ["max", str(2**63 - 4096)])
def test_no_limit(text: str, tmp_path: Path) -> None:
    names = ("memory.max", "memory/memory.limit_in_bytes")
    assert resources.container(machine(tmp_path, {f"sys/fs/cgroup/{name}": text for name in names})) is None


def test_swap_and_an_empty_machine(tmp_path: Path) -> None:
    assert resources.memory(tmp_path).state == "unknown"
    machine(tmp_path, {"proc/meminfo": meminfo(32 * GB, 20 * GB, swap=8 * GB, swap_free=3 * GB)})
    assert resources.memory(tmp_path).state == "doubtful"


@pytest.mark.parametrize(("free", "state"), [(50 * GB, "good"), (GB, "doubtful"), (1000, "bad")])
def test_room(free: int, state: str) -> None:
    assert resources.room(free).state == state


def test_the_disk_is_asked_where_the_folder_will_be(tmp_path: Path) -> None:
    found = by_name(resources.examine(tmp_path / "not" / "yet"))
    assert found["disk"].numbers["free_bytes"] > 0
    assert not list(tmp_path.iterdir())


def test_the_source_of_the_clock_is_named(tmp_path: Path) -> None:
    readings = np.arange(1000) * 1e-5
    assert "(hpet)" not in resources.resolution(readings, tmp_path).message
    machine(tmp_path, {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"})
    found = resources.resolution(readings, tmp_path)
    assert "(hpet)" in found.message and found.state == "doubtful"


@pytest.mark.parametrize(
    ("step_s", "state"), [(5e-8, "good"), (1e-5, "doubtful"), (1e-2, "bad"), (0.0, "bad"), (-1e-6, "bad")]
)
def test_resolution(step_s: float, state: str) -> None:
    found = resources.resolution(np.arange(1000) * step_s)
    assert found.state == state
    if step_s > 0:
        assert found.numbers["timer_step_s"] == pytest.approx(step_s, rel=1e-6)


def test_a_coarse_clock_that_is_read_fast_shows_its_step() -> None:
    readings = np.floor(np.arange(5000) * 1e-7 / 1e-5) * 1e-5
    assert resources.resolution(readings).numbers["timer_step_s"] == pytest.approx(1e-5, rel=1e-6)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Machines of one name are distinguished by processor and reference product; fake files and fake clocks."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doorway import QUICK_MLP, ROOT, environment

from jaxbench.analysis import machine_profile, roofline
from jaxbench.errors import UserError
from jaxbench.features.comparison import calibration
from jaxbench.machine import cores, manifest, source, start
from jaxbench.processes import server
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Setup
from jaxbench.records import identity as compared

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: {family}
model\t\t: {model}
model name\t: AMD EPYC
stepping\t: 1
cpu MHz\t\t: {mhz}
flags\t\t: fpu hypervisor avx2 {flags} rdtscp fma
bogomips\t: 5192.26

processor\t: 1
cpu family\t: 99
"""
ARM = """processor\t: 0
BogoMIPS\t: 2100.00
Features\t: fp asimd sve
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd4f
CPU revision\t: 0
"""


def machine(folder: Path, cpuinfo: str) -> dict[str, Any]:
    """A manifest of a machine with this /proc/cpuinfo, and nothing else that can be read."""
    folder.mkdir()
    (folder / "cpuinfo").write_text(cpuinfo)
    return {"cpu_model": "AMD EPYC", "cores": 2, "identity": manifest.processor(folder, folder / "none")}


def test_two_processors_that_are_both_called_amd_epyc(tmp_path: Path) -> None:
    zen4 = machine(tmp_path / "a", X86.format(family=25, model=17, flags="avx512f", mhz=2596))
    zen2 = machine(tmp_path / "b", X86.format(family=23, model=49, flags="sse4a", mhz=2596))
    same = machine(tmp_path / "c", X86.format(family=25, model=17, flags="avx512f", mhz=3100))
    assert not compared.differences(zen4, same)  # the current frequency is not a property of the machine
    assert compared.sentence(compared.hardware(zen4, zen2)) == (
        "processor family '25', here '23'; processor model '17', here '49'; "
        "instruction sets that the other lacks 'avx512f', here 'sse4a'"
    )
    facts = zen4["identity"]
    assert facts["nominal_hz"] == 2596.13e6 and facts["instruction_sets"] == ["avx2", "avx512f", "fma"]


def test_an_arm_processor(tmp_path: Path) -> None:
    facts = machine(tmp_path / "a", ARM)["identity"]
    assert [facts[name] for name in ("vendor", "family", "model", "stepping")] == ["0x41", "8", "0xd4f", "0"]
    assert facts["instruction_sets"] == ["asimd", "fp", "sve"] and facts["nominal_hz"] is None


def test_caches_and_the_nominal_frequency_are_read_where_they_are_told(tmp_path: Path) -> None:
    core = tmp_path / f"cpu{cores.physical_cores(topology=tmp_path)[0]}"
    files = {"cache/index0": {"level": "1", "type": "Data", "size": "32K"}, "cpufreq": {"base_frequency": "2600000"}}
    for folder, values in files.items():
        (core / folder).mkdir(parents=True)
        for name, value in values.items():
            (core / folder / name).write_text(value + "\n")
    facts = manifest.processor(tmp_path / "none", tmp_path)
    assert (facts["caches"], facts["nominal_hz"]) == ("L1 Data 32K", 2.6e9)


def test_a_system_that_tells_nothing_has_no_facts_and_differs_in_none(tmp_path: Path) -> None:
    facts = manifest.processor(tmp_path, tmp_path)
    assert set(facts.values()) == {None}
    known = machine(tmp_path / "a", X86.format(family=25, model=17, flags="", mhz=2596))
    assert not compared.differences({"identity": facts}, known)


def manifest_of(product_s: float | None, by: str = "numpy 2", **facts: Any) -> dict[str, Any]:
    return {"platform": "cpu", "identity": {"product_s": product_s, "product_by": by}, **facts}


@pytest.mark.parametrize(
    ("then", "now", "differ"),
    [
        (manifest_of(0.00046), manifest_of(0.00086), False),  # a neighbour on the physical core
        (manifest_of(0.0238), manifest_of(0.00087), False),
        (manifest_of(0.00100), manifest_of(None), False),
        (manifest_of(None, memory_bytes=16 << 30), manifest_of(None, memory_bytes=15 << 30), False),
        (manifest_of(None, memory_bytes=16 << 30), manifest_of(None, memory_bytes=64 << 30), True),
        (manifest_of(None, devices=1), manifest_of(None, devices=8), False),
        (manifest_of(None, platform="gpu", devices=1), manifest_of(None, platform="gpu", devices=8), True),
    ],
)
def test_the_same_machine_is_what_differs_in_nothing_that_both_know(then: dict, now: dict, differ: bool) -> None:
    assert bool(compared.differences(then, now)) == differ


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (0.00100, 0.00114, ""),
        (0.00046, 0.00086, "the same machine ran a reference product 1.9 times slower now than then (0.00046 s then"),
        (0.0238, 0.00087, "the same machine ran a reference product 27.4 times slower then than now"),
        (0.00046, None, ""),
    ],
)
def test_another_speed_is_a_fact_and_no_other_machine(then: float, now: float | None, said: str) -> None:
    found = compared.cautions(manifest_of(then), manifest_of(now), "then", "now")
    assert len(found) == bool(said) and said in "".join(found)
    assert not compared.cautions(manifest_of(then), manifest_of(now, by="numpy 3"), "then", "now")


@pytest.mark.parametrize("seconds", [0.00046, 0.00087, 0.0238])
def test_a_profile_and_a_calibration_hold_at_every_speed(seconds: float) -> None:
    then, now = manifest_of(0.00087), manifest_of(seconds)
    card: Any = {"machine": then, "peaks": [peak(1e9)]}
    assert not machine_profile.matches(card, now)
    at_speed = machine_profile.at_speed_of(card, now)
    ceiling = roofline.measured_ceilings(at_speed, "cpu", 1, "float32").flop
    assert ceiling.room == pytest.approx(max(1.0, 0.00087 / seconds))  # a faster machine may exceed the profile's peak
    assert ("times" in machine_profile.speed_note(card, now)) == (seconds != 0.00087)
    file = calibration.CalibrationFile(machines={f"{calibration.machine_key(then)} #1": {}}, facts={})
    file.facts[next(iter(file.machines))] = then
    assert file.key_of(now)


def peak(value: float) -> dict[str, Any]:
    return {"quantity": "flop_per_s", "dtype": "float32", "platform": "cpu", "cores": 1, "level": "", "value": value}


def test_another_gpu_of_the_same_kind_is_a_fact_and_no_other_machine() -> None:
    one, both, other = ({"platform": "gpu", "identity": {"gpus": ids}} for ids in (["a"], ["a", "b"], ["c"]))
    assert not compared.differences(one, other) and not compared.cautions(one, both, "then", "now")
    assert compared.cautions(one, other, "then", "now") == ["the GPUs are others of the same kind (a then, c now)"]


def test_a_kernel_is_a_difference_but_no_other_hardware() -> None:
    then, now = {"identity": {"kernel": "6.1"}}, {"identity": {"kernel": "6.2"}}
    assert compared.refused(compared.differences(then, now)) == "with another kernel (kernel '6.1', here '6.2')"
    assert not compared.hardware(then, now)


def product(seconds: float, *, share: float = 1.0, stolen: float = 0.0) -> dict[str, Any]:
    """One reference product of a given CPU time; this process gets a share of the wall time."""
    used = itertools.count()
    now = {"s": 0.0}

    def multiply() -> None:
        now["s"] += seconds * (1 + next(used) % 3)  # the smallest counts

    return manifest.reference_product(
        multiply, processor_s=lambda: now["s"], wall_s=lambda: now["s"] / share, taken=lambda core: stolen * now["s"]
    )


@pytest.mark.parametrize(
    ("how", "known"),
    [({}, True), ({"share": 0.95}, True), ({"share": 0.8}, False), ({"stolen": 0.05}, True), ({"stolen": 0.2}, False)],
)
def test_the_product_of_a_busy_core_is_not_known(how: dict[str, float], known: bool) -> None:
    assert product(0.001, **how)["product_s"] == (pytest.approx(0.001) if known else None)


def test_the_share_of_others_on_a_core(tmp_path: Path) -> None:
    """Stolen time of the core, and all time of its other hardware thread."""
    folder = tmp_path / "cpu0" / "topology"
    folder.mkdir(parents=True)
    (folder / "thread_siblings_list").write_text("0,2\n")
    columns = "cpu {0} 1 1 1 9 9 1 1 7 0 0"
    lines = [f"cpu{name} 100 10 10 900 90 5 5 {steal} 0 0" for name, steal in enumerate((50, 60, 70))]
    (tmp_path / "stat").write_text("\n".join([columns, *lines, "intr 1"]))
    seconds = manifest._taken(0, tmp_path / "stat", tmp_path)
    assert seconds == pytest.approx((50 + (100 + 10 + 10 + 5 + 5 + 70)) / 100)
    assert manifest._taken(0, tmp_path / "none", tmp_path) == 0


def test_the_manifest_has_an_identity_and_the_variables_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"NPROC": "3", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "2", "CUDA_MODULE_LOADING": "EAGER"}
    for name, value in {**ours, "TF_CPP_MIN_LOG_LEVEL": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(start, "changed_settings", {})  # as in a new process: another test may have trained in this one
    found = manifest.probe.__wrapped__("cpu")
    assert ours.items() <= found["environment"].items()
    # Those that the probe itself sets are not of this process.
    assert not {"TF_CPP_MIN_LOG_LEVEL", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} & found["environment"].keys()
    assert server.surroundings("cpu").environment == found["environment"]
    assert found["identity"]["kernel"] and found["identity"]["product_by"].startswith("numpy")
    assert compared.cannot_tell(found, {}) and not compared.cannot_tell(found, found)
    assert calibration.machine_key(found).startswith("cpu, cpu, ")


# Parent and workers run the same copy of the package: real processes, and copies of the package on disk.


CONFIG = {"measures": "cases", "seed": 0}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second checkout, in addition to the installed copy."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("jaxbench", "experiments", "configs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.full
def test_a_run_from_another_checkout_ends_with_both_places_named(copy: Path) -> None:
    """`python -m` puts the current folder before the installed package; workers do not use that folder."""
    words = [sys.executable, "-m", "jaxbench", "run", "mlp", "--workdir=run", *QUICK_MLP]
    done = subprocess.run(words, cwd=copy, env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert f"'{copy / 'jaxbench'}'" in done.stderr and f"'{ROOT / 'jaxbench'}'" in done.stderr
    assert not (copy / "run").exists()


def test_the_description_of_the_machine_is_of_the_same_copy(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(copy))
    manifest.probe.cache_clear()
    with pytest.raises(
        UserError, match=f"'{source.PACKAGE}', but its worker processes run it from '{copy / 'jaxbench'}'"
    ):
        manifest.probe("cpu")


def worker(folder: Path, package: Path) -> Worker:
    about = {"experiment": "mlp", "config": CONFIG, "worker": "w", "environment": {"PYTHONPATH": str(package)}}
    return Worker(Setup(platform="cpu", devices=1, **about), folder / "log")


def test_an_edit_to_a_timed_file_ends_the_run(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit is in the worker's copy; this process stands for one that started before the edit."""
    monkeypatch.setattr(source, "HERE", {**source.HERE, "folder": str(copy / "jaxbench")})
    same = worker(tmp_path, copy)
    same.wait_ready()  # the same text in another folder has the same hash
    same.close()
    clock = copy / "jaxbench" / "core" / "clock.py"
    text = clock.read_text()
    clock.write_text(f"{text}\n# edited\n")
    os.utime(clock)
    edited = worker(tmp_path, copy)
    try:
        with pytest.raises(UserError, match="changed during this run"):
            edited.wait_ready()
    finally:
        edited.close()
        clock.write_text(text)

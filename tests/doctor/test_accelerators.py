# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The devices of the machine against those of JAX; a JAX that does not start is a finding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doctor.fabricated import by_name, machine

from jaxbench.doctor import accelerators
from jaxbench.doctor.accelerators import Host
from jaxbench.machine import manifest

BASE = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {**BASE, "jax-cuda13-plugin": "0.10.2"}
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (x)"


def sees(platform: str, *kinds: str) -> dict[str, Any]:
    return {"platform": platform, "devices": len(kinds)}


@pytest.mark.parametrize(("text", "driver"), [(CLOSED, "535.54.03"), (OPEN, "580.65.06"), ("nonsense", "")])
def test_the_driver_is_read_without_nvidia_smi(text: str, driver: str, tmp_path: Path) -> None:
    machine(tmp_path, {"proc/driver/nvidia/version": text, "dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""})
    assert accelerators.read_host(tmp_path) == Host(nvidia_driver=driver, nvidia=2)


def test_cards_tpus_and_amd(tmp_path: Path) -> None:
    pci = "sys/bus/pci/devices"
    files = {f"{pci}/{n}/vendor": vendor for n, vendor in enumerate(("0x10de", "0x10de", "0x8086"))}
    files |= {f"{pci}/{n}/class": kind for n, kind in enumerate(("0x030200", "0x040300", "0x030000"))}
    machine(tmp_path, {**files, "dev/kfd": "", "dev/accel0": "", "dev/accel1": ""})
    assert accelerators.read_host(tmp_path) == Host(nvidia=1, amd=True, tpu=2)
    assert accelerators.read_host(tmp_path / "nothing") == Host()


@pytest.mark.parametrize(
    ("host", "answer", "found", "environment", "state", "advice"),
    [
        (Host(), sees("cpu", "cpu"), BASE, {}, "good", ""),
        (Host("580.1", 1), sees("gpu", "H100"), CUDA, {}, "good", ""),
        (Host("580.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "'.[cuda13]'"),
        (Host("535.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "'.[cuda12]'"),
        (Host("470.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "Update NVIDIA's driver (470.1) to 525"),
        (Host("", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "Install NVIDIA's driver, 580 or newer"),
        (Host("580.1", 1), sees("cpu", "cpu"), CUDA, {}, "doubtful", "JAX_PLATFORMS=cuda"),
        (Host("580.1", 2), sees("gpu", "H100"), CUDA, {}, "doubtful", "JAX_PLATFORMS=cuda"),
        (Host("580.1", 2), sees("gpu", "H100"), CUDA, {"CUDA_VISIBLE_DEVICES": "0"}, "doubtful", "DEVICES='0' may"),
        (Host(amd=True), sees("cpu", "cpu"), BASE, {}, "doubtful", "jax-rocm7-plugin) of jaxlib 0.10.2"),
        (Host(amd=True), sees("gpu", "MI300"), BASE, {}, "good", ""),
        (Host(tpu=4), sees("cpu", "cpu"), BASE, {}, "doubtful", "'.[tpu]'"),
        (Host(tpu=4), sees("cpu", "cpu"), {**BASE, "libtpu": "0"}, {}, "doubtful", "holds the TPU"),
        (Host(tpu=4), sees("tpu", *["v4"] * 4), BASE, {}, "good", ""),
    ],
)
def test_shown_against_seen(
    host: Host, answer: dict[str, Any], found: dict[str, str], environment: dict[str, str], state: str, advice: str
) -> None:
    last = accelerators.accelerators(host, **answer, packages=found, environment=environment)
    assert last.state == state and advice in last.advice and bool(advice) == bool(last.advice)


def test_a_jax_that_does_not_start_is_bad_and_the_driver_is_still_judged() -> None:
    found = by_name(accelerators.examine(None, CUDA, Host("470.1", 1)))
    assert found["NVIDIA driver"].state == "bad" and "accelerators" not in found


def test_a_gpu_without_a_driver() -> None:
    found = by_name(accelerators.examine(sees("cpu", "cpu"), BASE, Host(nvidia=1)))
    assert found["NVIDIA driver"].state == found["accelerators"].state == "doubtful"


def test_jax_is_asked_in_a_child() -> None:
    facts, finding = accelerators.probe()
    assert facts is not None and finding.state == "good" and finding.numbers["devices"] == facts["devices"] > 0


def test_a_jax_that_cannot_even_be_imported_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So only the doctor's child processes import it."""
    machine(tmp_path, {"jax/__init__.py": "raise RuntimeError('jaxlib is version 0.1')"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(manifest, "probe", manifest.probe.__wrapped__)  # without its cache
    facts, finding = accelerators.probe()
    assert facts is None and finding.state == "bad" and "RuntimeError: jaxlib is version 0.1" in finding.message
    subprocess.run([sys.executable, "-P", "-c", "import jaxbench.doctor.examine"], check=True, timeout=60)

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the machine shows against what JAX sees; a child that crashes, hangs or talks nonsense is a finding."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from doctor.fabricated import by_name, machine

from jaxbench.doctor import accelerators, child
from jaxbench.doctor.accelerators import Host
from jaxbench.doctor.child import Answer

BASE = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {**BASE, "jax-cuda13-plugin": "0.10.2"}
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (x)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def sees(platform: str, *kinds: str) -> Answer:
    return Answer(value={"platform": platform, "kinds": list(kinds)})


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it was killed by SIGSEGV"),
        ("import sys; sys.stderr.write('one\\ntwo\\n'); sys.exit(3)", "it ended with code 3: two"),
        ("print('no json')", "it gave no answer"),
        ("print('[1]')", "it gave no answer"),
        ("pass", "it gave no answer"),
    ],
)
def test_a_child_that_fails_says_how(code: str, reason: str) -> None:
    answer = child.ask(python(code), limit_s=30)
    assert answer.value is None and answer.reason == reason


def test_an_answer_stands_on_the_last_line() -> None:
    answer = child.ask(python("import os; print('noise'); print('{\"a\": ' + os.environ['A_B'] + '}')"), limit_s=30,
                       A_B="1")  # fmt: skip
    assert answer.value == {"a": 1} and not answer.reason


def test_a_child_that_hangs_dies_with_all_it_started(tmp_path: Path) -> None:
    """Its own child holds the pipe open: waiting for the end of the output would never end."""
    file = tmp_path / "pid"
    sleeper = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {sleeper!r}])"
    answer = child.ask(python(code), limit_s=3)
    assert answer.reason == "it hung for more than 3 s"
    if file.exists() and file.read_text():  # a machine too busy to start it in time has nothing to kill
        assert gone(int(file.read_text()))


def gone(pid: int) -> bool:
    """Killed, if perhaps not yet collected by whoever inherited it."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("text", "driver"), [(CLOSED, "535.54.03"), (OPEN, "580.65.06"), ("nonsense", "")])
def test_the_driver_is_read_without_nvidia_smi(text: str, driver: str, tmp_path: Path) -> None:
    machine(tmp_path, {"proc/driver/nvidia/version": text, "dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""})
    assert accelerators.look(tmp_path) == Host(nvidia_driver=driver, nvidia=2)


def test_cards_tpus_and_amd(tmp_path: Path) -> None:
    pci = "sys/bus/pci/devices"
    files = {f"{pci}/{n}/vendor": vendor for n, vendor in enumerate(("0x10de", "0x10de", "0x8086"))}
    files |= {f"{pci}/{n}/class": kind for n, kind in enumerate(("0x030200", "0x040300", "0x030000"))}
    machine(tmp_path, {**files, "dev/kfd": "", "dev/accel0": "", "dev/accel1": ""})
    assert accelerators.look(tmp_path) == Host(nvidia=1, amd=True, tpu=2)
    assert accelerators.look(tmp_path / "nothing") == Host()


@pytest.mark.parametrize(
    ("host", "answer", "found", "environment", "state", "advice"),
    [
        (Host(), sees("cpu", "cpu"), BASE, {}, "good", ""),
        (Host("580.1", 1), sees("gpu", "H100"), CUDA, {}, "good", ""),
        (Host("580.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "EXTRAS=cuda13"),
        (Host("535.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "EXTRAS=cuda12"),
        (Host("470.1", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "Update NVIDIA's driver (470.1) to 525"),
        (Host("", 1), sees("cpu", "cpu"), BASE, {}, "doubtful", "Install NVIDIA's driver, 580 or newer"),
        (Host("580.1", 1), sees("cpu", "cpu"), CUDA, {}, "doubtful", "JAX_PLATFORMS=cuda"),
        (Host("580.1", 2), sees("gpu", "H100"), CUDA, {}, "doubtful", "JAX_PLATFORMS=cuda"),
        (Host("580.1", 2), sees("gpu", "H100"), CUDA, {"CUDA_VISIBLE_DEVICES": "0"}, "doubtful", "DEVICES='0' may"),
        (Host(amd=True), sees("cpu", "cpu"), BASE, {}, "doubtful", "jax-rocm7-plugin) of jaxlib 0.10.2"),
        (Host(amd=True), sees("gpu", "MI300"), BASE, {}, "good", ""),
        (Host(tpu=4), sees("cpu", "cpu"), BASE, {}, "doubtful", "EXTRAS=tpu"),
        (Host(tpu=4), sees("cpu", "cpu"), {**BASE, "libtpu": "0"}, {}, "doubtful", "holds the TPU"),
        (Host(tpu=4), sees("tpu", *["v4"] * 4), BASE, {}, "good", ""),
    ],
)
def test_shown_against_seen(
    host: Host, answer: Answer, found: dict[str, str], environment: dict[str, str], state: str, advice: str
) -> None:
    last = by_name(accelerators.examine(host, answer, found, environment))["accelerators"]
    assert last.state == state and advice in last.advice and bool(advice) == bool(last.advice)


def test_a_jax_that_does_not_start_is_bad_and_the_driver_is_still_judged() -> None:
    answer = accelerators.seen(limit_s=30, command=python("import sys; sys.exit('RuntimeError: no libcuda')"))
    found = accelerators.examine(Host("470.1", 1), answer, CUDA)
    assert [(f.name, f.state) for f in found] == [("JAX", "bad"), ("NVIDIA driver", "bad")]
    assert "RuntimeError: no libcuda" in found[0].message


def test_a_gpu_without_a_driver() -> None:
    found = by_name(accelerators.examine(Host(nvidia=1), sees("cpu", "cpu"), BASE, {}))
    assert found["NVIDIA driver"].state == "doubtful" and found["JAX"].message == "JAX sees cpu: 1 x cpu."


def test_jax_is_asked_in_a_child() -> None:
    answer = accelerators.seen()
    assert answer.value is not None and answer.value["kinds"], answer.reason


def test_a_jax_that_cannot_even_be_imported_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So nothing of the doctor but its children imports it."""
    machine(tmp_path, {"jax/__init__.py": "raise RuntimeError('jaxlib is version 0.1')"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = accelerators.seen()
    assert answer.reason.endswith("RuntimeError: jaxlib is version 0.1")
    assert child.ask(python("import jaxbench.doctor.examine; print('{}')"), limit_s=60).value == {}

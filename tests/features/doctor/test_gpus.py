# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the doctor says about NVML's answers.

No machine gave these answers: we wrote `nvml_answers.json` by hand from NVML's documentation. The tests show how
answers are read and judged, not that a driver answers so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from features.doctor.fabricated import by_name

from jaxbench.features.doctor import examine, gpus
from jaxbench.features.doctor.finding import DoctorFinding

ANSWERS = json.loads((Path(__file__).parent / "nvml_answers.json").read_text())


class NVMLError(Exception):
    pass


class Answers:
    """The module `pynvml` with the written answers of a machine. A handle is the GPU's index. `open` says whether NVML
    is started. A function in `absent` is missing from the module."""

    NVMLError = NVMLError

    def __init__(self, name: str, absent: str = ""):
        self._answers, self._absent, self.open = ANSWERS[name], absent, False

    def nvmlInit(self) -> None:
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return int(self._answers["count"])

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def __getattr__(self, function: str) -> Any:
        if function == self._absent:
            raise AttributeError(function)
        answers = self._answers.get(function.removeprefix("nvmlDeviceGet"), {})

        def answer(*given: int) -> Any:
            key = ",".join(map(str, given))
            if not self.open or key not in answers:
                raise NVMLError("Not Supported")
            return answers[key]

        return answer


def found(name: str) -> dict[str, DoctorFinding]:
    nvml = Answers(name)
    read = gpus.read(nvml)
    assert not nvml.open
    return by_name(gpus.findings(read))


def test_a_rented_machine_shows_what_slows_it_down() -> None:
    seen = found("rented")
    assert set(seen) == {"peer-to-peer", "GPU slots", "GPU power", "GPU clocks"}  # it has no NVLink
    assert all(each.state == "doubtful" and each.advice for each in seen.values())
    peer = seen["peer-to-peer"]
    assert peer.numbers == {"pairs": 6, "pairs_without_peer_to_peer": 6}
    assert "off between GPUs 0 and 1 and 5 more pairs, which are connected through a host bridge" in peer.message
    assert "these GPUs do not support it" in peer.message and "memory of the host" in peer.message
    slots = seen["GPU slots"].message
    assert "GPU 1 uses 8 of 16 lanes" in slots
    assert "GPU 2 uses PCIe 3.0 of 4.0 while it works" in slots
    assert "GPU 3" not in slots  # it is idle, and an idle GPU lowers its generation
    assert seen["GPU power"].message == "Power limits below the default: GPU 2 300 of 450 W."
    assert seen["GPU clocks"].message == (
        "Clocks are lowered: GPU 1: the power limit; GPU 2: the power limit, heat (by the driver)."
    )


def test_a_bridge_with_a_dead_link_is_named_and_a_power_limit_at_work_is_normal() -> None:
    seen = found("bridged")
    assert seen["NVLink"].state == "doubtful"
    assert seen["NVLink"].message == "Inactive: 1 of 4 NVLinks of GPU 0."
    assert seen["NVLink"].numbers == {"nvlinks": 8, "inactive_nvlinks": 1}
    assert {name for name, each in seen.items() if each.state == "good"} == set(seen) - {"NVLink"}
    assert "Peer-to-peer is on between all 2 GPUs" in seen["peer-to-peer"].message
    assert "PCIe 4.0 x16" in seen["GPU slots"].message


def test_a_gpu_that_answers_nothing_is_unknown_and_nothing_fails() -> None:
    silent = [gpus.Gpu(index=0, name="one"), gpus.Gpu(index=1, name="two")]
    seen = by_name(gpus.findings(silent))
    assert {name: each.state for name, each in seen.items()} == {
        "peer-to-peer": "unknown", "GPU slots": "unknown", "GPU power": "unknown", "GPU clocks": "unknown",
    }  # fmt: skip


def test_a_function_that_an_older_package_lacks_is_an_answer_not_given() -> None:
    (seen,) = (
        each for each in gpus.findings(gpus.read(Answers("rented", absent="nvmlDeviceGetCurrentClocksEventReasons")))
        if each.state == "unknown"
    )  # fmt: skip
    assert seen.name == "GPU clocks"


def test_a_machine_without_gpus_is_not_asked_and_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpus.examine(0) == []

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(gpus.importlib, "import_module", missing)
    (finding,) = gpus.examine(2)
    assert finding.state == "unknown" and "nvml" in finding.advice
    assert examine.ok([finding])


def test_a_driver_that_does_not_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Answers("bridged")
    monkeypatch.setattr(nvml, "nvmlInit", lambda: nvml.nvmlDeviceGetUnknown())
    monkeypatch.setattr(gpus.importlib, "import_module", lambda name: nvml)
    (finding,) = gpus.examine(2)
    assert finding.state == "unknown" and "NVML does not answer (Not Supported)" in finding.message

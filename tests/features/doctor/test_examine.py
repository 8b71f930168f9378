# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The whole examination: its table, its verdict, its file."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from features.doctor.fabricated import by_name
from rich.console import Console

from jaxbench.features.doctor import examine, gpus, speed, system
from jaxbench.features.doctor.finding import DoctorFinding, graded

GOOD = DoctorFinding("memory", "good", "20 GB are available.", "", {"bytes": 2e10, "unknown": math.nan})
DOUBT = DoctorFinding("turbo", "doubtful", "Turbo is on.", "Switch it off.")
BAD = DoctorFinding("other load", "bad", "Others keep 2 of 2 CPUs busy.", "Stop what else runs.")
UNKNOWN = DoctorFinding("heat", "unknown", "Not counted here.")


def console() -> Console:
    return Console(file=io.StringIO(), width=100, markup=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("findings", "said", "ok"),
    [
        ([GOOD, UNKNOWN], "This machine is fit to measure on.", True),
        ([GOOD, DOUBT, DOUBT], "This machine is fit to measure on, with doubts: turbo.", True),
        ([BAD, DOUBT], "This machine is not fit to measure on: other load.", False),
    ],
)
def test_verdict(findings: list[DoctorFinding], said: str, ok: bool) -> None:
    assert examine.verdict(findings) == said and examine.ok(findings) is ok


def test_grades() -> None:
    values = (0.0, 0.1, 0.2, 0.5, 0.6, math.nan)
    grades = ["good", "good", "doubtful", "doubtful", "bad", "unknown"]
    assert [graded(value, good=0.1, bad=0.5) for value in values] == grades


def test_the_table_says_everything_and_ends_with_the_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def questions(folder: Path, seconds: float) -> Iterator[examine.Question]:
        def broken() -> list[DoctorFinding]:
            raise OSError("the disk is gone")

        yield "Reading", lambda: [GOOD, BAD]
        yield "Writing to the disk (1 s)", broken

    monkeypatch.setattr(examine, "questions", questions)
    out = console()
    findings = examine.examine(out, folder=tmp_path)
    assert findings[:2] == [GOOD, BAD] and findings[2].state == "unknown"
    for words in ("Others keep 2 of 2 CPUs busy.", "Stop what else runs.", "the disk is gone"):
        assert words in printed(out)
    assert printed(out).rstrip().endswith("This machine is not fit to measure on: other load.")


def test_the_file(tmp_path: Path) -> None:
    path = tmp_path / examine.FILE
    examine.write([GOOD, DOUBT], path)
    value = json.loads(path.read_text())
    assert value["ok"] is True and value["verdict"] == examine.verdict([DOUBT])
    good, doubt = value["findings"]
    assert good["numbers"] == {"bytes": 2e10, "unknown": None} and doubt["advice"] == "Switch it off."
    assert [p.name for p in path.parent.iterdir()] == [examine.FILE]


def test_every_question_is_asked_and_none_raises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real questions, except slow ones, which have their own tests."""
    jax = DoctorFinding("JAX", "good", "JAX sees cpu.")
    monkeypatch.setattr(system, "WATCH_S", 0.01)
    monkeypatch.setattr(speed, "contention", lambda: [])
    monkeypatch.setattr(system, "probe_jax", lambda: ({"platform": "cpu", "devices": 1}, jax))
    monkeypatch.setattr(speed, "stability", lambda *asked: [DoctorFinding("reference kernel", "good", f"{asked}")])
    findings = examine.examine(console(), folder=tmp_path, seconds=3.0)
    names = {finding.name for finding in findings}
    assert {"cores", "memory", "disk", "timer", "versions", "JAX", "accelerators", "heat", "clock"} <= names
    assert "load meanwhile" in names
    assert any("('cpu', 3.0)" in finding.message for finding in findings)
    assert not any("{" in finding.message for finding in findings)
    monkeypatch.setattr(system, "probe_jax", lambda: (None, jax))
    names = {finding.name for finding in examine.examine(console(), folder=tmp_path)}
    assert "JAX" in names and not {"reference kernel", "accelerators"} & names


# What the doctor says about NVML's answers.


ANSWERS = json.loads((Path(__file__).parent / "nvml_answers.json").read_text())


UNASKED = {"GPU processes", "GPU persistence", "GPU memory correction"}  # these answers do not have them


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
    return by_name([*gpus.spoiling(read), *gpus.at_work(read)])


def test_a_rented_machine_shows_what_slows_it_down() -> None:
    seen = found("rented")
    known = {name for name, each in seen.items() if each.state != "unknown"}
    assert known == {"peer-to-peer", "GPU slots", "GPU slots at work", "GPU power", "GPU clocks"}  # it has no NVLink
    assert all(seen[name].state == "doubtful" and seen[name].advice for name in known)
    peer = seen["peer-to-peer"]
    assert peer.numbers == {"pairs": 6, "pairs_without_peer_to_peer": 6}
    assert "off between GPUs 0 and 1 and 5 more pairs, which are connected through a host bridge" in peer.message
    assert "these GPUs do not support it" in peer.message and "memory of the host" in peer.message
    assert seen["GPU slots"].message == "GPU 1 uses 8 of 16 lanes."
    slots = seen["GPU slots at work"].message
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
    assert {name for name, each in seen.items() if each.state == "good"} == set(seen) - {"NVLink"} - UNASKED
    assert "Peer-to-peer is on between all 2 GPUs" in seen["peer-to-peer"].message
    assert "PCIe 4.0 x16" in seen["GPU slots"].message


def test_a_gpu_that_answers_nothing_is_unknown_and_nothing_fails() -> None:
    silent = [gpus.Gpu(index=0, name="one"), gpus.Gpu(index=1, name="two")]
    seen = [*gpus.spoiling(silent), *gpus.at_work(silent)]
    assert [each.name for each in seen[:3]] == ["GPU processes", "GPU persistence", "GPU power"], (
        "what spoils all first"
    )
    assert len(seen) == 8 and all(each.state == "unknown" for each in seen)


def test_another_process_persistence_and_memory_correction_are_named() -> None:
    spoilt = [
        gpus.Gpu(index=0, name="one", others=(77,), persistent=False, ecc=True),
        gpus.Gpu(index=1, name="two", others=(), persistent=True, ecc=False),
    ]
    seen = by_name(gpus.spoiling(spoilt))
    assert seen["GPU processes"].message == "Another process uses GPU 0 (process 77)."
    assert not examine.ok([seen["GPU processes"]])
    assert seen["GPU persistence"].message == "Persistence mode is off on GPU 0."
    assert "on for 1 of 2 GPUs" in seen["GPU memory correction"].message
    alike = [dataclasses.replace(each, others=(), persistent=True, ecc=True) for each in spoilt]
    assert all(each.state in ("good", "unknown") for each in gpus.spoiling(alike))


def test_a_function_that_an_older_package_lacks_is_an_answer_not_given() -> None:
    (seen,) = (
        each for each in gpus.at_work(gpus.read(Answers("rented", absent="nvmlDeviceGetCurrentClocksEventReasons")))
        if each.state == "unknown"
    )  # fmt: skip
    assert seen.name == "GPU clocks"


def test_a_machine_without_gpus_is_not_asked_and_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpus.examine(0, gpus.spoiling) == []

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(gpus.importlib, "import_module", missing)
    (finding,) = gpus.examine(2, gpus.spoiling)
    assert finding.state == "unknown" and "nvml" in finding.advice
    assert examine.ok([finding])


def test_a_driver_that_does_not_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Answers("bridged")
    monkeypatch.setattr(nvml, "nvmlInit", lambda: nvml.nvmlDeviceGetUnknown())
    monkeypatch.setattr(gpus.importlib, "import_module", lambda name: nvml)
    (finding,) = gpus.examine(2, gpus.spoiling)
    assert finding.state == "unknown" and "NVML does not answer (Not Supported)" in finding.message

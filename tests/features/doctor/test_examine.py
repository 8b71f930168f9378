# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The whole examination: its table, its verdict, its file."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from jaxbench.features.doctor import examine, speed, system
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
    assert (
        value["findings"][0]["numbers"] == {"bytes": 2e10, "unknown": None}
        and value["findings"][1]["advice"] == "Switch it off."
    )
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

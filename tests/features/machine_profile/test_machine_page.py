# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a machine: its profile, the figures of its runs, links to them, and their errors."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import pytest
from fabricate_cases import Made
from report import runs
from rich.console import Console

from jaxbench.analysis import machine_profile
from jaxbench.core.store import RunFolder, write_json
from jaxbench.errors import UserError
from jaxbench.features.machine_profile import page as machine
from jaxbench.report import build

HOSTILE = "<b>cpu</b>&{{ 1 }}"


ALL = ("dispatch", "stream", "matmul", "collectives")


def made(
    folder: Path,
    changes: dict[str, Sequence[Made]] | None = None,
    *,
    views: Sequence[str] = ("dispatch", "matmul"),
    reports: bool = False,
    **facts: Any,
) -> tuple[list[Path], dict[str, Any]]:
    """Runs of `jaxbench machine`: each with the profile and, if requested, its report."""
    found = []
    for view in views:
        cases = (changes or {}).get(view, runs.VIEWS[view]())
        named = [dataclasses.replace(m, record=dataclasses.replace(m.record, experiment=view)) for m in cases]
        found.append(runs.folder(folder / view, view, named, rounds=4, **facts))
    card = machine_profile.build([RunFolder(path) for path in found])
    for path in found:
        write_json(path / "machine.json", card)
        if reports:
            build.write(path)
    return found, card


@pytest.mark.full
def test_everything_is_on_one_page(tmp_path: Path) -> None:
    folders, card = made(tmp_path, views=ALL, reports=True)
    outcome = machine.write(tmp_path, folders, card)
    assert outcome.ok and outcome.sentences == []
    text = (tmp_path / "machine.html").read_text()
    assert "Fabricated CPU, 2 cores: machine profile" in text
    for said in (
        "Matrix products on 1 core: float32 ",
        "from memory, ",
        "empty pipelined ",
        "2 devices: all_reduce ",
    ):
        assert said in text
    figures = re.findall(r'aria-label="(\S+) figure"', text)
    named = ["stream-stream", "matmul-matmul", "dispatch-dispatch", "collectives-busbw", "collectives-alpha_beta"]
    assert figures == ["roofline", *named]
    assert (tmp_path / "figures/roofline.svg").is_file()
    for peak in card["peaks"]:
        assert f"{peak['value'] / 1e9:.3g}"[:3] in text
    links = re.findall(r'<a href="([^#"]+)"', text)
    assert links == [f"{path.name}/report.html" for path in folders]
    assert all((tmp_path / link).is_file() for link in links)


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    folders, card = made(tmp_path, views=("dispatch",), reports=True)
    pages = []
    for _ in range(2):
        machine.write(tmp_path, folders, card)
        pages.append((tmp_path / "machine.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_problem_of_any_run_is_shown_here(tmp_path: Path) -> None:
    bad = [runs.removed(fab.matmul(320, call_s=0.01)), runs.wrong(fab.matmul(512, call_s=0.01))]
    bad.append(dataclasses.replace(fab.matmul(1024, call_s=0.02), rounds=0, failure="out of memory"))
    folders, card = made(tmp_path, {"matmul": [*runs.matmul(), *bad[:1], *bad[2:]]})
    outcome = machine.write(tmp_path, folders, card)
    assert not outcome.ok
    assert outcome.sentences == [
        "matmul: matmul/float32/1024x1024x1024/jit is recorded as failed: measure: out of memory."
    ]
    text = (tmp_path / "machine.html").read_text()
    assert "matmul: matmul/float32/320x320x320/jit: two clocks agree" in text and "Incomplete or failed" in text


def test_no_run_is_not_ok(tmp_path: Path) -> None:
    _, card = made(tmp_path)
    assert machine.write(tmp_path, [], card).sentences == ["No run was measured."]


def test_the_card_is_printed_at_100_columns(tmp_path: Path) -> None:
    folders, card = made(tmp_path, views=ALL)
    with open(tmp_path / "out.txt", "w") as file:
        machine.write(tmp_path, folders[:1], card, Console(width=100, file=file))
    text = (tmp_path / "out.txt").read_text()
    assert max(map(len, text.splitlines())) <= 100
    for said in ("streaming, memory", "matrix product", "empty program", "µs + S / (", "2 devices° along x of 2x4"):
        assert said in text


def test_of_many_copies_the_terminal_shows_the_ends_and_the_page_all(tmp_path: Path) -> None:
    card = fab.card()
    card["transfers"] = [
        {
            "op": "d2d",
            "source": "a",
            "target": f"b{i}",
            "payload_bytes": 2**20,
            "value": 1e9 * i,
            "lo": None,
            "hi": None,
        }
        for i in range(1, 9)
    ]
    assert len([number for number in machine.numbers(card) if number.what == "d2d"]) == 8
    assert len(machine.brief(card).lines) == len(card["peaks"]) + 2


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    folders, card = made(tmp_path, manifest={"cpu_model": HOSTILE})
    machine.write(tmp_path, folders, card)
    text = (tmp_path / "machine.html").read_text()
    assert "<b>" not in text and "&lt;b&gt;cpu" in text
    assert "default-src 'none'" in text and not re.search(r"https?://|<script|<img|<image", text)


def test_a_link_of_an_odd_folder_is_an_address(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" #c'
    folders, card = made(folder)
    machine.write(tmp_path, folders, card)
    text = (tmp_path / "machine.html").read_text()
    assert 'href="a%20%22b%22%20%23c/matmul/report.html"' in text


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="not a run folder"):
        machine.write(tmp_path, [tmp_path / "empty"], fab.card())

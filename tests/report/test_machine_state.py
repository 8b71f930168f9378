# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The machine's state on a page, and the block timeline, from fabricated records."""

import dataclasses
from pathlib import Path
from typing import Any

import fabricate
import numpy as np
import pytest

from jaxbench.analysis import points
from jaxbench.records.store import RunFolder
from jaxbench.report import findings, machine_state
from jaxbench.report.drawing import canvas
from jaxbench.report.figures import blocks

MANIFEST = {"cpu_model": "EPYC", "cores": 2, "identity": {"family": 25, "product_s": 0.0123, "kernel": "6.1"}}


def loaded(path: Path, *, own: float = 1.0, **taken: float) -> list[Any]:
    """Points of a fabricated run; every block lost these shares of its CPU time. own: the share that it had."""
    made = points.load(RunFolder(fabricate.run_folder(path, devices=(1, 2), rounds=5)))

    def with_load(each: Any) -> Any:
        seconds = np.array([*each.block_s, *each.double_block_s])
        facts = {name: tuple(share * seconds) for name, share in taken.items()}
        return dataclasses.replace(each, cpu_s=tuple(own * seconds), switches=(0,) * len(seconds), cpus=1, **facts)

    return [dataclasses.replace(point, rounds=tuple(map(with_load, point.rounds))) for point in made]


def test_a_busy_machine_is_said_and_a_quiet_one_is_not(tmp_path: Path) -> None:
    busy = loaded(tmp_path / "busy", others_s=0.4, steal_s=0.01)
    (sentence,) = machine_state.warnings({}, busy)
    assert sentence.endswith(": in one of them, other processes took 40 % of its CPUs.")
    assert machine_state.warnings({}, loaded(tmp_path / "quiet", others_s=0.0, steal_s=0.0)) == []
    (sentence,) = machine_state.warnings({}, loaded(tmp_path / "waiting", own=0.8, others_s=0.0, steal_s=0.0))
    assert sentence.endswith(": in one of them, its process ran for only 80 % of the time.")
    assert "jaxbench run" in machine_state.warnings({"shared_with": "jaxbench run (process 7)"}, [])[0]


def test_an_unreported_stolen_time_is_not_zero(tmp_path: Path) -> None:
    (_, said) = machine_state.description(MANIFEST, loaded(tmp_path / "silent", others_s=0.02))
    assert "took 2.0 % of its CPUs' time" in said and said.endswith("; the hypervisor's share is not reported.")
    (_, said) = machine_state.description(MANIFEST, loaded(tmp_path / "told", others_s=0.02, steal_s=0.0))
    assert "the hypervisor took 0.0 %" in said and "not reported" not in said


def test_the_machine_is_described_by_what_is_known() -> None:
    (known,) = machine_state.description(MANIFEST, [])
    assert known == "EPYC, family 25, kernel 6.1, 2 usable cores, the reference product takes 12.3 ms on a core."
    assert machine_state.description({}, []) == ["unknown processor."]


@pytest.mark.parametrize("rounds", [1, 5])
def test_every_timed_block_is_drawn(tmp_path: Path, rounds: int) -> None:
    run = findings.find(RunFolder(fabricate.run_folder(tmp_path, rounds=rounds, blocks=2)))
    with canvas.style():
        figure = blocks.draw(run)
    assert figure is not None
    marks = sum(len(collection.get_offsets()) for collection in figure.axes[0].collections)
    timed = [each for row in run.rows for each in row.point.rounds]
    assert marks == sum(len(r.block_s) + len(r.double_block_s) + len(r.warmup_block_s) for r in timed) > 0
    places = [float(collection.get_offsets()[0][0]) for collection in figure.axes[0].collections]
    assert places[1] - places[0] > 0.0025 * (max(places) - min(places)), "blocks of a round do not hide each other"


def test_a_block_far_away_is_a_triangle_and_a_contended_one_a_cross() -> None:
    with canvas.style():
        axes = canvas.Sheet().only()
        assert blocks._strip(axes, [(0.0, 5.0, False), (0.1, -0.9, False), (0.2, 0.1, True)], 0, "#000000", "x") == {
            "^",
            "v",
            "x",
        }

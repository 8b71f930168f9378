# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two runs whose points are explained: their factors side by side, and which of them made B faster."""

from __future__ import annotations

import io
from pathlib import Path

import fabricate
import fabricate_losses as fab
import pytest
from fabricate_losses import Loss
from rich.console import Console

from jaxbench.report.verdicts.markdown import markdown
from jaxbench.report.verdicts.terminal import show
from jaxbench.verdicts import comparison, factors
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.metric import METRICS

USUAL = Loss(share=0.97, machine=0.91, communication=0.7)


def compared(path: Path, b: Loss, *, strategy: str = "fsdp", margin: float = 0.02) -> Comparison:
    one = fab.folder(path / "a", {2: USUAL}, noise=0.004)
    two = fab.folder(path / "b", {2: b}, strategies=(strategy,), noise=0.005)
    across = () if strategy == "shard_map" else ("strategy",)
    return comparison.compare(one, two, METRICS["step_s"], margin=margin, across=across)


def test_the_factor_that_made_b_faster_is_named(tmp_path: Path) -> None:
    found = compared(tmp_path, Loss(share=0.97, machine=0.93, communication=0.98))
    names = [change.name for change in found.factors]
    assert names == ["one device", "smaller share", "shared machine", "communication"]
    changes = {change.name: change for change in found.factors}
    assert changes["communication"].faster.value == pytest.approx(1.4, rel=0.02) and changes["communication"].clear
    assert not changes["smaller share"].clear
    (said,) = factors.sentences(found.factors, found.answers.points)
    assert said.startswith("strong/2: B is faster most of all by communication (1.4")
    product = 1.0
    for change in found.factors:
        product *= change.faster.value
    (answer,) = (point for point in found.answers.points if point.name == "strong/2")
    assert product == pytest.approx(1 / answer.ratio.value, rel=1e-6)


def test_a_slower_b_has_its_factor_too(tmp_path: Path) -> None:
    found = compared(tmp_path, Loss(share=0.97, machine=0.6, communication=0.72), strategy="shard_map")
    (said,) = factors.sentences(found.factors, found.answers.points)
    assert said.startswith("shard_map/strong/2: B is slower most of all by shared machine (1.5")


def test_both_tables_are_shown(tmp_path: Path) -> None:
    found, out = compared(tmp_path, Loss(share=0.97, machine=0.93, communication=0.98)), io.StringIO()
    show(found, Console(file=out, width=110))
    for text in (out.getvalue(), markdown(found, "a against b")):
        assert "B faster by it" in text and "smaller share" in text and "most of all by communication" in text


def test_runs_without_such_points_have_no_table(tmp_path: Path) -> None:
    one, two = (fabricate.run_folder(tmp_path / name, seed=seed) for seed, name in enumerate("ab"))
    found, out = comparison.compare(one, two, METRICS["step_s"], margin=0.02), io.StringIO()
    show(found, Console(file=out, width=110))
    assert found.factors == () and "B faster by it" not in out.getvalue()

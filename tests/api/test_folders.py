# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`load` of trainings, comparisons, audits and papers: the table and the headline of what the command wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from doorway import jaxbench
from house.tree import ROOT

import jaxbench as jb
from jaxbench.errors import UserError


def test_an_audit_is_a_table_of_its_rows(tmp_path: Path) -> None:
    table = ROOT / "benchmarks/tables/kempnerforge_h200.csv"
    done = jaxbench("audit", str(table), "model=Llama 3 8B", "seq_len=4096", "device=H200", f"--workdir={tmp_path}")
    assert (tmp_path / "audit.csv").exists(), done.stdout + done.stderr
    found = jb.load(tmp_path)
    assert len(found.table) == 4 and set(found.table["verdict"]) <= {"consistent", "inconsistent", "cannot tell"}
    assert found.headline.startswith("4 rows: ") and found.sentences["Why not 100 %"] == []


def test_trainings_to_a_target_load_with_their_figure() -> None:
    found = jb.load(ROOT / "docs/figures/time_to_target")
    assert {"model", "batch", "devices", "steps"} <= set(found.table.columns) and len(found.table) > 10
    assert "targets" in found.figures and "the fastest batch reaches the target" in found.headline


def test_a_damaged_comparison_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(UserError, match=r"comparison.json"):
        jb.load(tmp_path)

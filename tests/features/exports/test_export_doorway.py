# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""--export on run, compare, ab and check, as real commands."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import fabricate
import pytest
from doorway import QUICK_MLP, jaxbench

ONE = (*QUICK_MLP, "--config.mesh.devices=1")
FILES = {"summary": "summary.md", "bmf": "bmf.json", "pytest-benchmark": "pytest-benchmark.json"}
FILES["openmetrics"] = "jaxbench.prom"


def test_a_run_writes_all_formats_into_its_folder_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = jaxbench("run", "mlp", *ONE, f"--workdir={folder}", f"--export={','.join(FILES)}")
    assert done.returncode == 0, done.stderr
    said = ", ".join(str(folder / name) for name in FILES.values())
    assert f"Exported: {said}\n" in done.stdout
    found = json.loads((folder / "bmf.json").read_text())
    # On a busy machine a gate may refuse the two short rounds, whatever the code does: then no number may be exported.
    (row,) = csv.DictReader(io.StringIO((folder / "summary.csv").read_text()))
    assert [*found] == ["mlp/jit_auto/strong/1"] * (row["gate"] != "refused")
    for measured in found.values():
        assert measured["latency"].keys() == {"value"}  # two rounds have no interval


def test_ab_exports_the_comparison_next_to_its_arms(tmp_path: Path) -> None:
    words = ("ab", "mlp", *ONE, "--a=", "--b=--config.model.width=300", "--budget_s=0.1", f"--workdir={tmp_path}")
    done = jaxbench(*words, "--export=bmf,summary")
    assert done.returncode == 2, done.stderr
    assert "ratio" in json.loads((tmp_path / "bmf.json").read_text())["mlp/jit_auto/strong/1"]
    assert (tmp_path / "summary.md").read_text().startswith("## mlp: A (default settings) against B")


def test_compare_exports_into_a_new_folder(tmp_path: Path) -> None:
    facts = dict(devices=(1, 2), scalings=("strong",), rounds=12, processes=3, noise=0.002)
    sides = [fabricate.run_folder(tmp_path / name, seed=seed, **facts) for seed, name in enumerate("ab")]
    done = jaxbench("compare", f"--a={sides[0]}", f"--b={sides[1]}", "--export=openmetrics", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert "jaxbench_comparison_ratio" in (folder / "jaxbench.prom").read_text()
    assert f"Exported: results/{folder.name}/jaxbench.prom" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "mlp", *ONE, "--export=bmff"), "--export=bmff names the unknown format 'bmff': did you mean 'bmf'?"),
        (("run", "mlp", *ONE, "--export="), "--export= names the unknown format ''"),
        (("run", "mlp", *ONE, "--export=mlperf"), "--export=mlperf logs trainings to a target"),
        (("run", "time_to_target", "--export=pytest-benchmark"), "trainings to a target have none: use bmf."),
        (("run", "mlp", *ONE, "--dry_run", "--export=bmf"), "--dry_run measures nothing: drop one."),
        (("check", "mlp", "--name=x", "--export=x"), "names the unknown format 'x'"),
        (("ab", "mlp", *ONE, "--a=", "--b=", "--export=x"), "names the unknown format 'x'"),
        (("report", "--run=x", "--export=bmf"), "jaxbench report does not take --export"),
    ],
)
def test_a_wrong_export_is_said_before_anything_is_measured(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    done = jaxbench(*words, cwd=tmp_path)
    assert done.returncode in (2, 3) and says in done.stderr and len(done.stderr.splitlines()) == 1
    assert not [*tmp_path.iterdir()]

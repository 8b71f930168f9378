# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""examples/: each trainer trains by itself, and its wrapper's step does on two devices what it does on one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import environment, jaxbench
from house.tree import ROOT

EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir())
SMALL = ("--config.mesh.platform=cpu", "--config.mesh.devices=1,2", "--config.scaling=strong", "--config.explain=off")


def test_there_are_three_and_no_trainer_knows_jaxbench() -> None:
    assert EXAMPLES == ["equinox", "linen_pmap", "nnx"]
    readme = (ROOT / "examples/README.md").read_text()
    for name in EXAMPLES:
        assert "import jaxbench" not in (ROOT / "examples" / name / "trainer.py").read_text()
        assert f"examples/{name}/scaling.py" in readme and (ROOT / "examples" / name / "scaling.png").is_file()


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_trainer_trains_alone(name: str) -> None:
    script = str(ROOT / "examples" / name / "trainer.py")
    done = subprocess.run([sys.executable, script], env=environment(), capture_output=True, text=True, timeout=200)
    losses = [float(line.split()[1]) for line in done.stdout.splitlines() if re.match(r"\d+ ", line)]
    assert done.returncode == 0 and len(losses) == 20 and losses[-1] < losses[0], done.stderr[-2000:]


@pytest.mark.parametrize("name", [EXAMPLES[0], *(pytest.param(name, marks=pytest.mark.full) for name in EXAMPLES[1:])])
def test_a_wrapper_measures_its_trainer_and_makes_the_figure(name: str, tmp_path: Path) -> None:
    quick = ("--config.measure.rounds=2", "--config.measure.processes=1", "--config.measure.block_s=0.005")
    file = str(ROOT / "examples" / name / "scaling.py")
    done = jaxbench("run", file, f"--workdir={tmp_path}", *SMALL, *quick, "--share_machine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "summary.csv").read_text().count(",true,ok,") == 2, "right on one and on two devices"

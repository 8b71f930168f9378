# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""docs/PYTHON.md: its code runs as it is printed, one block after the other in a new process."""

import re
import subprocess
import sys

import doorway
import pytest
from house.tree import ROOT

# Only how much is measured differs from what a reader types.
SMALLER = """
import functools, jaxbench
less = dict(preset="smoke", strategy="jit_auto", mesh={"platform": "cpu"}, measure={"rounds": 2, "block_s": 0.001})
jaxbench.run = functools.partial(jaxbench.run, **less)
"""
CHECKS = """
assert run.ok, run.shortfalls
assert run.table["devices"].tolist() == [1, 2] and len(run.records) >= 4
"""


@pytest.mark.full  # half a minute on two busy cores
def test_the_code_of_the_page_runs(tmp_path):
    page = (ROOT / "docs/PYTHON.md").read_text()
    listed = page.partition("## Results")[2].partition("## Errors")[0]
    lines = [code for code in re.findall(r"`(run\.[^`\n]+)`", listed) if code != "run.figures"]
    assert len(lines) >= 8, "the attributes that the page lists"
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    script = tmp_path / "script.py"
    script.write_text("\n".join([SMALLER, *blocks, *lines, CHECKS]))
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path, env=doorway.environment(), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "scaling.pdf").stat().st_size > 1000
    assert {re.sub(r"-\d+-\d+$", "", each.name) for each in (tmp_path / "results").iterdir()} == {"cnn", "my_model"}

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""docs/notebook.ipynb: it runs, and it is committed as it ran."""

import os
import re

import doorway
import nbformat
import pytest
from house.tree import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def read():
    return nbformat.read(NOTEBOOK, as_version=4)


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text(output):
    return output.get("text", "") + "".join(str(part) for part in output.get("data", {}).values())


def check(notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) == 11 and [cell.execution_count for cell in code] == [*range(1, 12)]
    every = outputs(notebook)
    assert not [output for output in every if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum('<div class="jaxbench">' in text(output) for output in every) == 2
    assert sum("image/png" in output.get("data", {}) for output in every) == 2
    assert sum("<details><summary>jaxbench run" in text(output) for output in every) == 6, "progress, folded"
    mistakes = "".join(text(output) for output in every if output.get("name") == "stdout")
    assert "did you mean 'mlp'?" in mistakes and "did you mean 'batch'?" in mistakes
    assert "per token (TPOT)" in mistakes
    assert re.search(r"^Cell In\[7\], line 2: TypeError: .*'units'", mistakes, re.MULTILINE)


def test_the_notebook_is_committed_as_it_ran():
    notebook = read()
    check(notebook)
    assert not re.search(r"(?<![\w.=+/])/(?:tmp|work|home|Users)/", "".join(map(text, outputs(notebook))))


@pytest.mark.full  # two minutes on two busy cores
@pytest.mark.filterwarnings("default")  # those of Jupyter's libraries
def test_the_notebook_runs(tmp_path, monkeypatch):
    for name in {*os.environ} - {*doorway.environment()}:
        monkeypatch.delenv(name)
    for name, value in doorway.environment().items():
        monkeypatch.setenv(name, value)
    notebook = read()
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    check(notebook)
    assert (tmp_path / "scaling.pdf").is_file() and (tmp_path / "results/my_model/report.html").is_file()

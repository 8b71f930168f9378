# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The names of the Python API are a promise, and importing them starts nothing."""

import subprocess
import sys

import pytest
from house.tree import ROOT

import jaxbench

NAMES = [
    "JaxbenchError",
    "OwnStep",
    "Run",
    "StepWorkload",
    "compare",
    "export",
    "forecast",
    "load",
    "log",
    "machine",
    "run",
    "try_model",
]


def test_the_names_are_these():
    assert jaxbench.__all__ == ["__version__", *NAMES]
    assert all(callable(getattr(jaxbench, name)) for name in NAMES)
    assert {*NAMES} <= {*dir(jaxbench)}


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        jaxbench.runn  # noqa: B018


def test_neither_importing_nor_the_results_need_jax():
    code = (
        "import sys, jaxbench as jb; assert 'jaxbench.api' not in sys.modules\n"
        f"run = jb.load({str(ROOT / 'docs/figures/cnn')!r}); run.table, run.records, run._repr_html_()\n"
        "import jaxbench.machine.lock; assert callable(jb.machine) and callable(jb.forecast)\n"
        "print({'jax', 'jaxbench.commandline', 'IPython'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "set()\n", done.stderr

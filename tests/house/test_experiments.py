# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An experiment says what is measured: no clock, no file, no picture, no mesh axis; it is short and found by name."""

from __future__ import annotations

import ast

import pytest
from house.tree import findings, parsed, python_files

from jaxbench import discovery
from jaxbench.parallel.axes import AXES

MAX_LINES = {"experiments": 120, "configs": 120}
MODULES = {"time", "timeit", "datetime", "matplotlib", "pandas", "os", "pathlib"}
NAMES = {
    *("Mesh", "PartitionSpec", "NamedSharding", "make_mesh", "set_mesh"),
    *("shard_map", "pmap", "pmean", "psum", "open"),
}


def intrusions(path: str, text: str) -> list[str]:
    found = []
    if len(text.splitlines()) > MAX_LINES[path.split("/")[0]]:
        found.append(f"{path}: more than {MAX_LINES[path.split('/')[0]]} lines")
    for node in ast.walk(parsed(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0], *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Name):
            names = [node.id]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Call):
            found += [
                f"{path}:{node.lineno}: the mesh axis '{word.value}'"
                for word in node.args
                if isinstance(word, ast.Constant) and word.value in AXES
            ]
        banned = MODULES | NAMES if isinstance(node, (ast.Import, ast.ImportFrom)) else NAMES
        found += [f"{path}:{node.lineno}: {name}" for name in names if name in banned]
    return found


def test_experiments_keep_to_what_is_measured() -> None:
    assert not findings(intrusions, python_files("experiments", "configs"))


def test_planted_violations_are_found() -> None:
    for line in (
        "import time",
        "from time import perf_counter",
        "import matplotlib.pyplot as plt",
        "from jax.sharding import PartitionSpec as P",
        "mesh = jax.sharding.Mesh(devices, 'data')",
        "g = jax.lax.pmean(g, 'data')",
        "sent = share.over('tensor')",
        "x = 1\n" * 121,
    ):
        assert intrusions("experiments/cnn.py", line), line
    assert not intrusions("experiments/cnn.py", "import jax\nfrom flax import nnx\nlr = config.time")


@pytest.mark.parametrize("name", sorted([*discovery.experiments(), *discovery.presets()]))
def test_every_experiment_and_preset_loads_and_says_what_it_is(name: str) -> None:
    if name in discovery.experiments():
        assert callable(discovery.load_experiment(name).build)
    else:
        assert callable(discovery.load_preset(name).get_config)
    assert discovery.describe({**discovery.presets(), **discovery.experiments()}[name])

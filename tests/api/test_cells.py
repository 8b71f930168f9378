# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A build function of a notebook as an experiment file: what is written, what is unpickled, and what never is."""

import linecache
import os
import sys
import types

import pytest

from jaxbench import discovery
from jaxbench.api import cells
from jaxbench.errors import JaxbenchError, UserError

CELL = """
import json
WIDTH = 3

class Layer:
    width = WIDTH

def scale(config):
    return Layer.width * config

def build(config):
    if config < 0:
        raise ValueError("negative")
    return scale(config)
"""


def run_cell(text, number=1):
    """The namespace of a cell, as IPython runs it: in __main__, from a file that exists only in `linecache`."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    return space


@pytest.fixture
def written(tmp_path, monkeypatch):
    with cells.written(run_cell(CELL)["build"], tmp_path) as (path, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield path


def test_the_function_reaches_another_module(written):
    path = written
    assert path.name == "build.py" and discovery.build(str(path), 2) == 6
    assert path.with_suffix(".pickle").stat().st_mode & 0o777 == 0o600
    assert "a build function of a notebook" in discovery.describe(path)


def test_an_error_names_the_line_of_the_cell(tmp_path, monkeypatch):
    with pytest.raises(JaxbenchError) as caught, cells.written(run_cell(CELL)["build"], tmp_path) as (path, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        discovery.build(str(path), -1)
    assert str(caught.value) == "'<cell 1>', line 13: ValueError: negative"
    (copy,) = tmp_path.glob("cell-*.py")
    assert copy.read_text() == CELL, "the file to which tracebacks in the logs refer"


def test_nothing_else_is_unpickled(written, tmp_path):
    path = written
    sign = tmp_path / "opened"
    path.with_suffix(".pickle").write_bytes(f"[]\ncos\nsystem\n(Vtouch {sign}\ntR.".encode())
    with pytest.raises(UserError, match="call jaxbench.run"):
        discovery.load_experiment(str(path))
    assert not sign.exists()


def test_after_the_call_no_pickle_is_left(tmp_path):
    with cells.written(run_cell(CELL)["build"], tmp_path) as (path, variables):
        os.environ |= variables
    try:
        assert not [*tmp_path.glob("*.pickle")]
        with pytest.raises(UserError, match="is a build function of a notebook"):
            discovery.load_experiment(str(path))
    finally:
        for name in variables:
            del os.environ[name]


def test_a_cell_that_runs_again_is_the_same_experiment():
    once, again = (cells.Pickled(run_cell(CELL, number)["build"]).sha256 for number in (1, 2))
    wider = cells.Pickled(run_cell(CELL.replace("WIDTH = 3", "WIDTH = 4"))["build"]).sha256
    assert once == again != wider


def test_functions_of_modules_go_by_name(tmp_path, monkeypatch):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "models.py").write_text("from . import sizes\ndef build(config):\n    return sizes.WIDTH * config\n")
    (package / "sizes.py").write_text("WIDTH = 5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine.models

    (tmp_path / "run").mkdir()
    with cells.written(mine.models, tmp_path / "run") as (path, variables):
        assert path.name == "models.py"
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        before = discovery.digest(str(path))
        assert discovery.build(str(path), 2) == 10
        (package / "sizes.py").write_text("WIDTH = 6\n")
        assert discovery.digest(str(path)) != before, "the files that it imports are a part of the experiment"
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]


def test_a_function_may_use_jaxbench_by_its_name(tmp_path, monkeypatch):
    cell = (
        "import jaxbench as jb\ndef build(config):\n    return jb.StepWorkload(name='mine', make=print, batch=config)\n"
    )
    with cells.written(run_cell(cell)["build"], tmp_path) as (path, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert discovery.build(str(path), 8).batch == 8


def test_what_is_no_model_is_said():
    for model in (3, types.ModuleType("empty")):
        with pytest.raises(UserError, match="has no build.config.: give a name such as 'cnn'"):
            cells.Pickled(model)
    lock = run_cell("import threading\nlock = threading.Lock()\ndef build(config):\n    return lock\n")
    with pytest.raises(UserError, match="create what it needs inside it"):
        cells.Pickled(lock["build"])

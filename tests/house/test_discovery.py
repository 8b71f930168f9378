# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a name or a path to a module, and every way a file can be wrong is one sentence."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from jaxbench import discovery
from jaxbench.errors import UserError


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_names_come_from_files_and_helpers_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cnn" in discovery.experiments()
    package = tmp_path / "jaxbench"
    (tmp_path / "experiments").mkdir()
    for name in ("a.py", "_b.py", "c.txt"):
        (tmp_path / "experiments" / name).touch()
    monkeypatch.setattr(discovery, "__file__", str(package / "discovery.py"))
    assert list(discovery.experiments()) == ["a"] and discovery.presets() == {}
    bundled = package / "_bundled" / "experiments"
    bundled.mkdir(parents=True)
    (bundled / "z.py").touch()
    assert list(discovery.experiments()) == ["z"]


def test_a_persons_own_file_loads_with_its_siblings(tmp_path: Path) -> None:
    write(tmp_path / "sibling_of_mine.py", "WIDTH = 3\n")
    text = "import sibling_of_mine\nclass C:\n    pass\ndef build(config):\n    return sibling_of_mine.WIDTH\n"
    path = write(tmp_path / "mine.py", text)
    before = list(sys.path)
    module = discovery.load_experiment(path)
    assert module.build(None) == 3 and sys.path == before
    assert sys.modules[module.__name__] is module and "mine" not in sys.modules
    assert isinstance(pickle.loads(pickle.dumps(module.C())), module.C)


def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    modules = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        text = f"def build(config):\n    return '{folder}'\n"
        modules.append(discovery.load_experiment(write(tmp_path / folder / "mine.py", text)))
    assert [m.build(None) for m in modules] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "defines no build(config)"),
        ("build = 3\n", "build must be a function, build(config), but it is int"),
        ("get_config = 3\ndef build(config): ...\n", "get_config must be a function"),
        ("\nimport no_such_module_at_all\n", "line 2: ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("def f(:\n", "line 1: SyntaxError: "),
        ("def f():\n    1 / 0\nx = 1\nf()\n", "line 2: ZeroDivisionError: division by zero"),
        ("class E(Exception): ...\nraise E('two\\nlines')\n", "line 2: E: two lines"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
    ],
)
def test_a_wrong_file_is_named_with_line_and_error(text: str, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py", text)
    with pytest.raises(UserError) as caught:
        discovery.load_experiment(path)
    assert path in str(caught.value) and sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cnnn", "unknown experiment 'cnnn': did you mean 'cnn'?"),
        ("xyzzy", "unknown experiment 'xyzzy': choose one of: accumulate, activation, "),
        ("", "unknown experiment '': choose one of"),
        ("no/such.py", "there is no file 'no/such.py'"),
        ("no/such", "'no/such' is not a Python file"),
    ],
)
def test_an_unknown_name_or_path_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        discovery.load_experiment(name)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_is_not_a_file_and_a_preset_needs_get_config(tmp_path: Path) -> None:
    (tmp_path / "x.py").mkdir()
    with pytest.raises(UserError, match="is not a Python file"):
        discovery.load_experiment(str(tmp_path / "x.py"))
    with pytest.raises(UserError, match=r"defines no get_config\(experiment_config\): every preset file needs one"):
        discovery.load_preset(write(tmp_path / "mine.py", "x = 1\n"))


def test_describe_reads_without_running(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    write(path, '"""First line.\n\nMore."""\nraise ValueError\n')
    assert discovery.describe(path) == "First line."
    write(path, "x = 1\n")
    assert discovery.describe(path) == ""
    write(path, "def f(:\n")
    assert discovery.describe(path).startswith("(cannot be read: ")


def test_it_lists_without_jax() -> None:
    code = "import sys; from jaxbench import discovery as d; [d.describe(p) for p in d.experiments().values()]; "
    done = subprocess.run([sys.executable, "-c", code + "sys.exit('jax' in sys.modules)"])
    assert done.returncode == 0

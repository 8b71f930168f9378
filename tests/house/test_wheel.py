# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The built wheel carries all it needs, and works from an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from doorway import QUICK, QUICK_MLP
from house.tree import ROOT, files, python_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_wheel_carries_code_experiments_presets_data_and_licence_under_one_name(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("experiments", "configs"):
        assert {f"jaxbench/_bundled/{p.as_posix()}" for p in python_files(folder)} <= names
    assert {p.as_posix() for p in python_files("jaxbench")} <= names
    data = [p.as_posix() for p in files() if p.parts[0] == "jaxbench" and p.suffix != ".py"]
    assert any("csv" in name for name in data) and any("html" in name for name in data)
    assert set(data) <= names
    assert "jaxbench/py.typed" in names, "type checkers ignore the hints of a package without it"
    assert "jaxbench/_bundled/docs/metrics/README.md" in names, "a page carries the definitions of its numbers"
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"jaxbench"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.full
def test_wheel_works_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """Unpacked as an installer would, ahead of the checkout on the path."""
    site, empty = tmp_path / "site", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(site)
    empty.mkdir()
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    code = (
        "from jaxbench import discovery as d; print(*d.experiments().values(), *d.presets().values(), sep='\\n');"
        "print(d.load_experiment('cnn').__file__)"
    )
    sweep = ["-m", "jaxbench", "run", "mlp", "--workdir=out", *QUICK_MLP]
    for command in (["-c", code], ["-m", "jaxbench", "list"], sweep):
        done = subprocess.run([sys.executable, *command], cwd=empty, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if command[0] == "-c":
            assert all(line.startswith(str(site)) for line in done.stdout.splitlines())
        elif command[-1] == "list":
            assert "cnn" in done.stdout and "smoke" in done.stdout
            assert not list(empty.iterdir())
    assert (empty / "out" / "report.html").is_file()


@pytest.mark.full
@pytest.mark.parametrize("tool", ["pip", "uv", "uvx"])
def test_it_installs_into_an_empty_environment(wheel: Path, tmp_path: Path, tool: str) -> None:
    """From the configured index, with nothing else of this environment: a minute with pip."""
    if tool != "pip" and shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    if subprocess.run([sys.executable, "-m", "pip", "index", "versions", "jax"], capture_output=True).returncode:
        pytest.skip("no package index is reachable")
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    site = tmp_path / "empty"
    python = site / "bin" / "python"
    if tool == "uvx":
        app = ["uvx", "--python", sys.executable, "--from", str(ROOT), "jaxbench"]
    else:
        venv.EnvBuilder(with_pip=tool == "pip", symlinks=True).create(site)
        pip = [str(python), "-m", "pip"] if tool == "pip" else ["uv", "pip"]
        chosen = [] if tool == "pip" else ["--python", str(python)]
        done = subprocess.run(
            [*pip, "install", "--quiet", *chosen, str(wheel)], capture_output=True, text=True, env=env
        )
        assert done.returncode == 0, done.stderr
        app = [str(site / "bin" / "jaxbench")]
    words = ["run", "cnn", "--workdir=out", "--share_machine", *QUICK, "--config.mesh.devices=1"]
    for command in (["list"], words):
        done = subprocess.run([*app, *command], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "out" / "report.html").is_file()

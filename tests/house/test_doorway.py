# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The Makefile as a person types at it. Its Python is a stand-in that reports how it was called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from house.tree import ROOT

MAKE = shutil.which("make") or "make"
TARGETS = "run train new first-run report list env test test-all lint lock clean ci help".split()
REPORT_CALL = "import json, os, sys; print(json.dumps([sys.argv[1:], sorted(os.environ)])); sys.exit(7)\n"


def make(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs make in the repository, without the variables of a make that may have started these tests."""
    ours = "MFLAGS EXP FROM ARGS VENV EXTRAS K JOBS PYTHON PRESET WORKDIR RUN".split()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k not in ours}
    return subprocess.run([MAKE, *args], cwd=ROOT, env={**clean, **env}, capture_output=True, text=True, timeout=60)


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def bare_path(folder: Path) -> Path:
    """A folder for PATH with only what the recipes need, so that no real uv or Python is found."""
    folder.mkdir()
    for tool in ("sh", "touch", "awk"):
        (folder / tool).symlink_to(str(shutil.which(tool)))
    return folder


@pytest.fixture
def call(tmp_path: Path):
    """Calls make with an environment that looks installed; returns (make's result, the app's argv, its environment)."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    for stamp in (".created", ".installed-run", ".installed-dev"):
        (venv / stamp).touch()
    for module in ("jaxbench", "pytest"):
        (tmp_path / "fake" / module).mkdir(parents=True)
        (tmp_path / "fake" / module / "__main__.py").write_text(REPORT_CALL)
        (tmp_path / "fake" / module / "__init__.py").touch()

    def run(*args: str) -> tuple[subprocess.CompletedProcess[str], list[str], list[str]]:
        done = make(*args, f"VENV={venv}", PYTHONPATH=str(tmp_path / "fake"), PYTHONSAFEPATH="1")
        argv, env = json.loads(done.stdout) if done.stdout else ([], [])
        return done, argv, env

    return run


def test_help_is_the_default_and_lists_every_doorway() -> None:
    done = make()
    assert done.returncode == 0 and done.stdout == make("help").stdout
    for target in TARGETS:
        assert f"  make {target} " in done.stdout
    assert "EXP=" in done.stdout and "PRESET=" in done.stdout and "WORKDIR=" in done.stdout and "ARGS=" in done.stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["run"], "EXP is missing, say which experiment: make run EXP=cnn"),
        (["train", "EXP= "], "EXP is missing, say which experiment: make train EXP=cnn"),
        (["report"], "RUN is missing, say which run folder"),
        (["run", "EXP=cnn", "EXTRAS=cuda11"], "cuda12 cuda13 tpu"),
    ],
)
def test_what_is_missing_is_said_in_one_line_before_anything_is_installed(args: list[str], sentence: str) -> None:
    done = make(*args)
    assert done.returncode != 0 and not done.stdout
    assert sentence in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_extras_are_those_of_the_project() -> None:
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("known_extras")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # `make peers` and `make test-trackers` install these without the lock, which they contradict.
    unlocked = {"peers", "trackio", "trackers"}
    assert set(line.split(":=")[1].split()) == set(project["optional-dependencies"]) - unlocked


def test_variables_become_flags(call) -> None:
    assert call("run", "EXP=cnn")[1] == ["run", "cnn"]
    assert call("run", "EXP=cnn", "PRESET=smoke", "WORKDIR=a b")[1] == ["run", "cnn", "--preset=smoke", "--workdir=a b"]
    assert call("train", "EXP=my models/mine.py")[1] == ["train", "my models/mine.py"]
    assert call("new", "EXP=my models/mine.py")[1] == ["new", "my models/mine.py"]
    assert call("new", "EXP=mine.py", "FROM=linen")[1] == ["new", "mine.py", "--from=linen"]
    assert call("report", "RUN=results/x")[1] == ["report", "--run=results/x"]
    assert call("first-run", "WORKDIR=a b")[1] == ["first-run", "--workdir=a b"]
    assert call("list")[1] == ["list"]
    assert call("test", "K=house", "JOBS=2")[1][-4:] == ["-m", "", "-k", "house"]  # a word: of all tests
    assert call("test-all")[1] == [*call("test")[1], "-m", ""]
    assert call("test-all", "QUARTER=3")[1] == [*call("test-all")[1], "--quarter=3"]


def test_python_is_started_for_tests_as_if_a_shell_exported_nothing_for_it(call, monkeypatch) -> None:
    ours = {"PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE"}
    for name, value in zip(sorted(ours), ("1", "ascii", "1", "error"), strict=True):
        monkeypatch.setenv(name, value)
    found = {*call("test")[2]}
    assert "PYTHONUTF8" in found and not ours & found
    assert ours <= {*call("run", "EXP=cnn")[2]}, "the app runs as the shell says"


def test_the_readme_names_the_tests_next_to_its_first_command() -> None:
    block = (ROOT / "README.md").read_text().split("```")[1].split("\n")
    assert [line.split("  ")[0] for line in block[1:3]] == ["make run EXP=cnn", "make test"]


def test_hosted_checks_are_those_of_the_repository() -> None:
    """Neither file has a list of its own of what is checked."""
    assert "run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "entry: make lint\n" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_nothing_in_a_variable_is_run(call, tmp_path: Path) -> None:
    bomb = f"x; touch {tmp_path}/boom; `touch {tmp_path}/boom` '\" && touch {tmp_path}/boom"
    bomb += f" $(shell touch {tmp_path}/boom) $HOME $$"
    done, argv, _ = call("run", f"EXP={bomb}")
    assert argv == ["run", bomb]
    words = call("run", "EXP=cnn", f"ARGS=--a=1; touch {tmp_path}/boom | (x) *")[1][2:]
    assert words == ["--a=1;", "touch", f"{tmp_path}/boom", "|", "(x)", "*"]
    assert not (tmp_path / "boom").exists()


def test_args_keep_their_quotes_and_exit_codes_come_through(call) -> None:
    done, argv, env = call("run", "EXP=cnn", "ARGS=--config.data.path='/a b' --config.mesh.devices=\"1,2\"")
    assert argv == ["run", "cnn", "--config.data.path=/a b", "--config.mesh.devices=1,2"]
    assert done.returncode != 0 and "Error 7" in done.stderr
    assert not {"ARGS", "EXP", "MAKEFLAGS", "WITH_ARGS"} & set(env)
    assert "ARGS cannot be split into words" in call("run", "EXP=cnn", "ARGS=--a='x")[0].stderr


def test_an_interrupted_installation_leaves_no_stamp(tmp_path: Path) -> None:
    path, venv = bare_path(tmp_path / "path"), tmp_path / "venv"
    script(path / "python3", 'case "$1" in -m) mkdir -p "$3/bin";; esac')
    (path / "mkdir").symlink_to(str(shutil.which("mkdir")))
    script(venv / "bin" / "python", "kill -INT $$")
    assert make("list", f"VENV={venv}", PATH=str(path)).returncode != 0
    assert (venv / ".created").exists() and not list(venv.glob(".installed*"))


def test_a_python_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    path = bare_path(tmp_path / "path")
    script(path / "python3", "echo 'shim: command not found' >&2; exit 127")
    script(path / "python3.12", f'echo "$@" >> {tmp_path}/log; exit 0')
    make("list", f"VENV={tmp_path}/venv", PATH=str(path))
    assert f"-m venv {tmp_path}/venv" in (tmp_path / "log").read_text()


def test_no_python_is_one_sentence(tmp_path: Path) -> None:
    path = bare_path(tmp_path / "path")
    done = make("list", f"VENV={tmp_path}/venv", PATH=str(path))
    assert done.returncode != 0 and done.stderr.startswith("No Python >= 3.11 with venv was found: install one")
    done = make("list", f"VENV={tmp_path}/venv", "PYTHON=python9", PATH=str(path))
    assert done.returncode != 0 and done.stderr.startswith("PYTHON=python9 is not a Python >= 3.11")

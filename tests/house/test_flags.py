# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The flags are a promise: a new one needs a decision, which is a change of this list. Settings are config fields."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from house.tree import ROOT, findings, parsed, python_files
from rich.padding import Padding
from rich.text import Text

from jaxbench import app, command_form, commandline
from jaxbench.command_form import as_typed, with_extra

FLAGS = {"preset", "workdir", "dry_run", "target", "from", "template", "run", "config"} | {
    "a", "b", "across", "metric", "margin", "budget_s", "name", "card", "share_machine", "elastic", "fault_timeout",
    "nodes", "devices", "processes_per_node", "minutes", "options",
    "targets", "counts", "depths", "link",
    "export", "tokens", "examples", "deadline", "prices", "price_per_hour", "docs", "clear",
    "coordinator", "processes", "process", "to",
    "against", "probes",
}  # fmt: skip


def flags_defined(path: str, text: str) -> list[str]:
    """The names given to absl's DEFINE_* calls."""
    calls = [n for n in ast.walk(parsed(text)) if isinstance(n, ast.Call) and n.args]
    named = [c.args[0] for c in calls if "DEFINE_" in ast.unparse(c.func)]
    return [str(name.value) if isinstance(name, ast.Constant) else ast.unparse(name) for name in named]


def test_the_list_of_flags_is_frozen_and_there_is_no_second_command_line() -> None:
    assert sorted(findings(flags_defined, python_files("jaxbench"))) == sorted(FLAGS)
    assert not findings(flags_defined, python_files("experiments", "configs"))
    assert not [p for p in python_files("jaxbench") if "argparse" in (ROOT / p).read_text()]


def test_planted_flags_are_found() -> None:
    text = "from absl import flags\nflags.DEFINE_string('more', '', '')\nX = DEFINE_bool(NAME, False, '')\n"
    assert flags_defined("a.py", text) == ["more", "NAME"]
    assert not flags_defined("a.py", "flags.FLAGS.more = 'x'")


# Messages name commands and flags in the form in which the person started jaxbench.


CASES = {
    "no threshold: run jaxbench calibrate first.": "no threshold: run make calibrate first.",
    "add --across=strategy.": "add ACROSS=strategy.",
    "choose a new --workdir.": "choose a new WORKDIR.",
    "the same command with --workdir=results/a.b continues.": "the same command with WORKDIR=results/a.b continues.",
    "jaxbench run cnn --preset=smoke --config.a.b=1 --config.c=2.": (
        'make run EXP=cnn PRESET=smoke ARGS="--config.a.b=1 --config.c=2".'
    ),
    "wait, or add --share_machine to measure": "wait, or add ARGS=--share_machine to measure",
    "add --options='--host a:2,b:2' or wait": "add LAUNCH=\"--options='--host a:2,b:2'\" or wait",
    "jaxbench launch slurm --nodes=1,2 -- run gpt": "make launch ENGINE=slurm EXP=gpt LAUNCH=--nodes=1,2",
    "'jaxbench run collectives', give": "'make run EXP=collectives', give",
    "jaxbench baseline --run=DIR --name=NAME.": "make baseline RUN=DIR NAME=NAME.",
    "jaxbench paper goyal2017, or jaxbench ab would": "make paper ID=goyal2017, or make ab would",
    "jaxbench try my/mine.py": "make try EXP=my/mine.py",
    "this jaxbench reads 3; --config.batch=0 is too small.": "this jaxbench reads 3; --config.batch=0 is too small.",
}


@pytest.mark.parametrize(("text", "under_make"), CASES.items())
def test_a_message_says_what_its_reader_can_type(text: str, under_make: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert as_typed(text) == text
    monkeypatch.setenv(command_form.FORM, "make")
    assert as_typed(text) == under_make
    assert as_typed(under_make) == under_make  # a worker's message is rendered by its parent again


def test_the_terminal_renders_whatever_a_verb_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(command_form.FORM, "make")
    console = app.Terminal(file=io.StringIO(), width=200)
    console.print("choose a new --workdir", Padding(Text("add --across=x", style="dim"), 0), style="yellow")
    console.out("python -m jaxbench run cnn --workdir=x")
    assert "python -m jaxbench run cnn --workdir=x\n" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "WORKDIR" in console.file.getvalue() and "ACROSS=x" in console.file.getvalue()  # type: ignore[attr-defined]


def test_every_verb_and_every_variable_is_the_makefiles() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for verb, about in commandline.VERBS.items():
        if verb in ("help", "version", "install-completion"):
            continue
        variable = command_form.ARGUMENTS.get(verb, "EXP") if about.argument not in ("", "...") else ""
        (recipe,) = re.findall(rf"^{verb}:.*\n\t.*", makefile, re.MULTILINE)
        assert f"$(app) {verb}" in recipe and (not variable or f"$${variable}" in recipe or "${EXP:-mlp}" in recipe)
    for flag, variable in command_form.VARIABLES.items():
        assert f'--{flag}="$${variable}"' in makefile


def test_the_makefile_says_that_it_started_the_app(tmp_path: Path) -> None:
    """A real make and a real app in an environment that looks installed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    for stamp in (".created", ".installed-run"):
        (tmp_path / stamp).touch()
    clean = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    env = {**clean, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = ["make", "check", "EXP=mlp", "NAME=none", f"VENV={tmp_path}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=env)
    assert "keep one with make baseline RUN=DIR NAME=NAME." in done.stderr, done.stderr


def test_an_extra_is_installed_from_what_the_person_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_extra("slurm") == "pip install '.[slurm]' in a clone, or 'FILE.whl[slurm]' for a wheel"
    monkeypatch.setenv(command_form.FORM, "make")
    assert with_extra("slurm") == "add EXTRAS=slurm"


def test_the_package_writes_one_form_only() -> None:
    """Nothing in a string is in make's form, or names a package of an index that does not hold it."""
    wrong = re.compile(r"WORKDIR|EXTRAS=|\bmake (run|card|paper|machine|train)\b|'jaxbench\[")
    found = []
    for path in python_files("jaxbench"):
        if path.name in ("command_form.py",) or "templates" in path.parts:
            continue
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and wrong.search(node.value):
                found.append(f"{path}:{node.lineno}: {wrong.search(node.value)}")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found += [str(page) for page in pages if re.search(r"install ['\"]?jaxbench\b", page.read_text())]
    assert not found and len(pages) > 20

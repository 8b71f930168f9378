# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The flags are a promise: a new one needs a decision, which is a change of this list. Settings are config fields."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from house.tree import ROOT, findings, parsed, python_files

from jaxbench import command_form, commandline
from jaxbench.command_form import with_extra

FLAGS = {"preset", "workdir", "dry_run", "target", "from", "template", "run", "config"} | {
    "a", "b", "across", "metric", "margin", "budget_s", "name", "card", "share_machine", "elastic", "fault_timeout",
    "nodes", "devices", "processes_per_node", "minutes", "options",
    "targets", "counts", "depths", "link",
    "export", "for", "tokens", "examples", "deadline", "prices", "tpot", "ttft", "context", "price_per_hour", "docs",
    "clear",
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


def test_an_error_says_to_a_person_at_make_how_to_type_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "this machine is not calibrated: run jaxbench calibrate first."
    assert command_form.for_make(said) == ""
    monkeypatch.setenv(command_form.FORM, "make")
    assert "jaxbench; make takes a flag as ARGS=--flag=value" in command_form.for_make(said)
    assert "ARGS=" in command_form.for_make("choose a new --workdir.")
    assert command_form.for_make("the disk is full.") == ""


# The Makefile's variable for a flag, and for the argument of a verb; of all other verbs with an argument: EXP.
VARIABLES = {name: name.upper() for name in "preset workdir from to run a b across name card docs".split()}
VARIABLES["targets"] = "TARGET"
ARGUMENTS = {"paper": "ID", "launch": "ENGINE"}


def test_every_verb_and_every_variable_is_the_makefiles() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for verb, about in commandline.VERBS.items():
        if verb in ("help", "version", "install-completion"):
            continue
        variable = ARGUMENTS.get(verb, "EXP") if about.argument not in ("", "...") else ""
        (recipe,) = re.findall(rf"^{verb}:.*\n\t.*", makefile, re.MULTILINE)
        assert f"$(app) {verb}" in recipe and (not variable or f"$${variable}" in recipe or "${EXP:-mlp}" in recipe)
    for flag, variable in VARIABLES.items():
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
    assert "keep one with jaxbench baseline --run=DIR" in done.stderr, done.stderr
    assert "/bin/jaxbench; make takes a flag as ARGS=--flag=value" in done.stderr, done.stderr


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

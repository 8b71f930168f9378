# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The flags are a promise: a new one needs a decision, which is a change of this list. Settings are config fields."""

from __future__ import annotations

import ast

from house.tree import ROOT, findings, python_files

FLAGS = {"preset", "workdir", "dry_run", "target", "from", "template", "run", "config"} | {
    "a", "b", "across", "metric", "margin", "budget_s", "name", "card", "share_machine", "elastic", "fault_timeout",
    "nodes", "devices", "processes_per_node", "minutes", "options",
    "targets", "counts", "depths", "link",
    "tokens", "examples", "deadline", "prices", "price_per_hour", "docs",
    "coordinator", "processes", "process",
}  # fmt: skip


def flags_defined(path: str, text: str) -> list[str]:
    """The names given to absl's DEFINE_* calls."""
    calls = [n for n in ast.walk(ast.parse(text, path)) if isinstance(n, ast.Call) and n.args]
    named = [c.args[0] for c in calls if "DEFINE_" in ast.unparse(c.func)]
    return [str(name.value) if isinstance(name, ast.Constant) else ast.unparse(name) for name in named]


def test_the_list_of_flags_is_frozen() -> None:
    assert sorted(findings(flags_defined, python_files("jaxbench"))) == sorted(FLAGS)


def test_experiments_and_presets_define_no_flags() -> None:
    assert not findings(flags_defined, python_files("experiments", "configs"))


def test_no_second_command_line() -> None:
    assert not [p for p in python_files("jaxbench") if "argparse" in (ROOT / p).read_text()]


def test_planted_flags_are_found() -> None:
    text = "from absl import flags\nflags.DEFINE_string('more', '', '')\nX = DEFINE_bool(NAME, False, '')\n"
    assert flags_defined("a.py", text) == ["more", "NAME"]
    assert not flags_defined("a.py", "flags.FLAGS.more = 'x'")

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cohesive files, short functions, no print, nothing swallowed."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from house.tree import ROOT, SOURCES, findings, parsed, python_files

HEADER = "# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0"
BROAD = {"Exception", "BaseException"}
MARK = "# the one broad except"
MAY_PRINT = ("jaxbench/app.py", "jaxbench/report/")
MAX_FUNCTION, MAX_FILE = 70, 600


def prints(path: str, text: str) -> list[str]:
    if path.startswith(MAY_PRINT):
        return []
    calls = (n for n in ast.walk(parsed(text)) if isinstance(n, ast.Call))
    return [f"{path}:{n.lineno}: print" for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]


def asserts(path: str, text: str) -> list[str]:
    """Python leaves them out under -O, and the work in them. ruff's S101 says the same, without the tests."""
    return [f"{path}:{n.lineno}: assert" for n in ast.walk(parsed(text)) if isinstance(n, ast.Assert)]


def broad_excepts(path: str, text: str) -> list[str]:
    """Bare except, Exception and BaseException, in a handler or in suppress(); except the marked one."""
    lines, found = text.splitlines(), []
    for node in ast.walk(parsed(text)):
        caught: list[ast.expr] = []
        if isinstance(node, ast.ExceptHandler):
            if node.type is not None:
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "suppress":
            caught = node.args
        else:
            continue
        if caught and not any(isinstance(c, ast.Name) and c.id in BROAD for c in caught):
            continue
        if not (MARK in lines[node.lineno - 1] and path == "jaxbench/processes/server.py"):
            found.append(f"{path}:{node.lineno}: broad except")
    return found


def no_header(path: str, text: str) -> list[str]:
    first = [line for line in text.splitlines()[:2] if not line.startswith("#!")]
    return [] if first and first[0] == HEADER else [f"{path}: the licence header is missing"]


def too_long(path: str, text: str) -> list[str]:
    found = []
    if len(text.splitlines()) > MAX_FILE:
        found.append(f"{path}: more than {MAX_FILE} lines")
    for node in ast.walk(parsed(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                found.append(f"{path}:{node.lineno}: {node.name} has {length} lines")
    return found


def drawers(paths: list[Path]) -> list[Path]:
    """Files named for being a place where things are put."""
    return [p for p in paths if p.stem in {"utils", "util", "helpers", "misc", "common"}]


def test_no_print_outside_app_and_report() -> None:
    assert not findings(prints, python_files(*SOURCES))


def test_no_work_and_no_check_is_in_an_assert() -> None:
    assert not findings(asserts, python_files("jaxbench", "experiments", "configs"))
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S101" in lint["select"] and [*lint["per-file-ignores"].values()] == [["S101"], ["F722"]]
    assert [*lint["per-file-ignores"]] == ["{tests,benchmarks}/**", "jaxbench/statistics/**"]


def test_only_one_broad_except() -> None:
    assert not findings(broad_excepts, python_files(*SOURCES))
    marked = [p for p in python_files(*SOURCES) for line in (ROOT / p).read_text().splitlines() if MARK in line]
    assert len(marked) <= 1, marked


def test_every_file_has_the_licence_header() -> None:
    assert not findings(no_header, python_files())


def test_files_and_functions_are_small() -> None:
    assert not findings(too_long, python_files(*SOURCES))


def test_no_drawer_files() -> None:
    assert not drawers(python_files())


def test_planted_violations_are_found() -> None:
    assert prints("jaxbench/core/clock.py", "def f():\n    print(1)")
    assert not prints("jaxbench/report/tables.py", "print(1)")
    assert not prints("jaxbench/core/clock.py", "console.print(1)")
    assert asserts("jaxbench/core/clock.py", "def f(x):\n    assert x.pop() == 1")
    for caught in ("", " Exception", " BaseException as error", " (ValueError, Exception)"):
        assert broad_excepts("jaxbench/sweep/point.py", f"try:\n    f()\nexcept{caught}:\n    pass")
    assert broad_excepts("jaxbench/sweep/point.py", "with contextlib.suppress(Exception):\n    f()")
    one = f"try:\n    f()\nexcept Exception as error:  {MARK}\n    pass"
    assert not broad_excepts("jaxbench/processes/server.py", one)
    assert broad_excepts("jaxbench/core/clock.py", one)
    assert not broad_excepts("jaxbench/core/clock.py", "try:\n    f()\nexcept (ValueError, OSError):\n    pass")
    assert no_header("a.py", '"""Text."""') and not no_header("a.py", f"#!/usr/bin/env python3\n{HEADER}\n")
    assert too_long("a.py", "def f():\n" + "    x = 1\n" * MAX_FUNCTION)
    assert too_long("a.py", "x = 1\n" * (MAX_FILE + 1))
    assert not too_long("a.py", "def f():\n" + "    x = 1\n" * (MAX_FUNCTION - 1))
    assert drawers([Path("jaxbench/measure/utils.py")])

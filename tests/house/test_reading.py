# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Files from outside are read by `records/reading.py` alone: no other code calls a parser and catches its errors."""

from __future__ import annotations

import ast

from house.tree import findings, parsed, python_files

PARSERS = {"json": {"load", "loads"}, "csv": {"reader", "DictReader"}, "tomllib": {"load", "loads"}, "np": {"load"}}
READING = "jaxbench/records/reading.py"
# Texts that this program's own processes send to each other, and values that are only made plain.
OWN = {
    "jaxbench/api/cells.py": "its own child's folders",
    "jaxbench/catalog/__init__.py": "tables of the package",
    "jaxbench/core/store.py": "a config as it will be read back",
    "jaxbench/features/comparison/other_commit.py": "the answer of a child",
    "jaxbench/features/doctor/speed.py": "the answer of a child",
    "jaxbench/features/own_step/reference.py": "arrays that a worker of the same run wrote",
    "jaxbench/features/training/checkpoint.py": "its own header",
    "jaxbench/features/training/folder.py": "a config as it will be read back",
    "jaxbench/features/training/worker.py": "messages of the parent",
    "jaxbench/machine/lock.py": "the holder, which may be writing at this moment",
    "jaxbench/machine/manifest.py": "the answer of a child",
    "jaxbench/processes/": "messages of processes",
}


def parses(path: str, text: str) -> list[str]:
    if path == READING or path.startswith(tuple(OWN)):
        return []
    calls = [node.func for node in ast.walk(parsed(text)) if isinstance(node, ast.Call)]
    return [
        f"{path}:{call.lineno}: {ast.unparse(call)}: use records/reading.py"
        for call in calls
        if isinstance(call, ast.Attribute)
        and isinstance(call.value, ast.Name)
        and call.attr in PARSERS.get(call.value.id, ())
    ]


def test_only_one_file_parses_what_is_from_outside() -> None:
    assert not findings(parses, python_files("jaxbench"))


def test_a_reader_of_its_own_is_found() -> None:
    assert parses("jaxbench/report/new.py", "import json\nx = json.loads(path.read_text())\n")
    assert not parses(READING, "json.loads(text)\n")

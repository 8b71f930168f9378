# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What is committed works on anyone's machine: it names no one's folders and no package registry."""

from __future__ import annotations

import re
from pathlib import Path

from house.tree import ROOT, files, findings

# Put together from parts, so that this file does not find itself.
MACHINE = re.compile(
    r"(?<![\w.}$])/(?:" + "|".join(["root", r"home/\w+", r"Users/\w+", "work/(?:main|shared)"]) + r")\b"
)
REGISTRY = re.compile("|".join([r"py" + r"pi\.org", r"python" + r"hosted\.org", r"anaconda" + r"\.org"]))


def personal(path: str, text: str) -> list[str]:
    matches = [match for pattern in (MACHINE, REGISTRY) for match in pattern.finditer(text)]
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}" for match in matches]


def is_text(path: Path) -> bool:
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_no_machine_paths_and_no_registry() -> None:
    assert not findings(personal, [p for p in files() if is_text(p)])


def test_planted_violations_are_found() -> None:
    for planted in (
        "/ro" + "ot/x",
        "see /ho" + "me/ada/run",
        '"/Us' + 'ers/ada"',
        "/wo" + "rk/main",
        "https://py" + "pi.org/simple",
    ):
        assert personal("README.md", f"first line\n{planted}") == [
            f"README.md:2: {personal('', planted)[0].split(': ')[1]}"
        ]
    assert not personal("README.md", "experiments/root/x, example.com/home/page, results/, a/home/b")

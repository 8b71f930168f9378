# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model's file that ends the process early cannot end a command with exit code 0 and no word."""

from __future__ import annotations

from pathlib import Path

import pytest
from doorway import jaxbench

MODEL = '''"""A model that ends the process."""
{top}
def get_config():
    {config}
    return {{}}
def build(config):
    {build}
'''
ENDS = {
    "in build": dict(build="import os; os._exit(0)"),
    "by a name of its own": dict(top="from os import _exit as leave", build="leave(0)"),
    "below os": dict(build="import posix; posix._exit(0)"),
    "by another program": dict(build="import os; os.execvp('true', ['true'])"),
    "in get_config": dict(config="import os; os._exit(0)"),
    "while it is imported": dict(top="import os; os._exit(0)"),
    "with SystemExit": dict(build="raise SystemExit(0)"),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("verb", ["run", pytest.param("try", marks=pytest.mark.full)])
def test_a_file_that_ends_the_process_is_a_sentence_with_its_line(tmp_path: Path, name: str, verb: str) -> None:
    (tmp_path / "mine.py").write_text(MODEL.format(**{"top": "", "config": "pass", "build": "pass", **ENDS[name]}))
    done = jaxbench(verb, "mine.py", *(["--preset=smoke"] if verb == "run" else []), cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "mine.py', line" in done.stderr and done.stderr.count("\n") == 1


def test_a_child_of_the_file_may_end_as_it_likes(tmp_path: Path) -> None:
    child = (
        "import os\n    pid = os.fork()\n    if not pid: os._exit(7)\n    raise ValueError(os.waitpid(pid, 0)[1] >> 8)"
    )
    (tmp_path / "mine.py").write_text(MODEL.format(top="", config="pass", build=child))
    done = jaxbench("run", "mine.py", "--preset=smoke", cwd=tmp_path)
    assert done.returncode == 2 and "ValueError: 7" in done.stderr

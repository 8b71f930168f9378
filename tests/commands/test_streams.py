# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Output that nobody reads: closed streams, and a reader that leaves. No stack trace, and the same exit code."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import fabricate
import pytest
from doorway import command, environment
from thin import thin

# verb -> (its words, its exit code when somebody reads it)
VERBS = {
    "list": (["list"], 0),
    "help": (["help"], 0),
    "version": (["version"], 0),
    "paper list": (["paper", "list"], 0),
    "paper --dry_run": (["paper", "goyal2017", "--dry_run"], 0),
    "report": (["report", "--run=a"], 0),
    "audit": (["audit", "table.csv", "--workdir=out"], 1),
    "compare": (["compare", "--a=a", "--b=b"], 0),
    "launch": (["launch", "mpi", "--dry_run", "--devices=cpu:1", "--", "run", "mlp"], 0),
    "a mistake": (["reprot"], 2),
    "new": (["new", "mine.py"], 0),
}
CLOSED = {"no output": ">&-", "no errors": "2>&-", "neither": ">&- 2>&-", "no input": "<&-", "a reader": "| head -1"}
PRODUCT = [(verb, how) for verb in VERBS for how in CLOSED]
QUICK = [("compare", "no output"), ("list", "a reader"), ("a mistake", "neither"), ("help", "no errors")]


def ended(path: Path, words: list[str], how: str) -> subprocess.CompletedProcess[str]:
    """The exit code is that of jaxbench, not of the last process of a pipe."""
    line = f"{shlex.join(command(*words))} {CLOSED[how]}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", line], cwd=path, env=environment(), capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(("verb", "how"), thin(PRODUCT, QUICK))
def test_a_verb_ends_with_its_code_and_no_stack_trace(tmp_path: Path, verb: str, how: str) -> None:
    for name, step_s in (("a", 0.012), ("b", 0.006)):
        if verb in ("report", "compare"):
            fabricate.run_folder(tmp_path / name, devices=(1, 2), scalings=("strong",), rounds=12, processes=3,
                                 noise=0.002, seed=len(name), base_step_s=step_s)  # fmt: skip
    (tmp_path / "table.csv").write_text("gpus,tokens/s/gpu,step time (s),tokens per step\n8,12.5,10.0,2000\n")
    words, code = VERBS[verb]
    done = ended(tmp_path, words, how)
    assert done.returncode == code, done.stdout + done.stderr
    assert not any(word in done.stderr for word in ("Traceback", "Exception ignored", "Broken pipe"))


def test_a_backend_of_a_notebook_or_an_unknown_one_draws_files(tmp_path: Path) -> None:
    run = fabricate.run_folder(tmp_path / "a", devices=(1, 2), scalings=("strong",), rounds=4)
    for backend in ("nonsense", "module://matplotlib_inline.backend_inline", "module://no.such.notebook"):
        done = subprocess.run(
            command("report", f"--run={run}"),
            env={**environment(), "MPLBACKEND": backend},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert (run / "figures" / "scaling.png").stat().st_size

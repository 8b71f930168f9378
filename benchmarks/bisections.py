# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench bisect --run` of planted slow wheels, slow commits, and versions that do not differ.

VERSIONS versions of a tiny package are wheels in a folder, or commits of a repository. From a random one on, its work
takes SLOWER times the operations. The program prints the processor seconds of the work. Each trial is a bisection in a
process of its own, with a new position. In an A/A trial all versions are equal.

Run: python -m benchmarks.bisections [--trials=20] [--kinds=wheel,commit,same] [--folder=DIR]
With --folder, trials that have ended are kept, and the same command continues.
Exit code 1 if a trial of a slow version names another one, or fewer than 19 of 20 A/A trials end with "no difference".
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks import planted

VERSIONS = 16
SLOWER = 1.4
OPERATIONS = 10_000  # half a millisecond, so that a start of Python costs more
MARGIN = 0.05
SAME_OF = 19 / 20
WORK = """
def work():
    total = 0
    for number in range({operations}):
        total += number * number
    return total
# version {version}
"""
# The least of several: others may use the processor's caches meanwhile.
PROGRAM = """
import time
import pace

def once():
    begun = time.process_time()
    pace.work()
    return time.process_time() - begun

print(min(once() for _ in range(40)))
"""
ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class Trial:
    """first: number of the first slow version; None: there is none. said: what the bisection named, or its verdict."""

    first: int | None
    said: str
    seconds: float
    pairs: int

    @property
    def right(self) -> bool:
        return self.said == ("same" if self.first is None else f"{self.first}")


def code(number: int, first: int | None) -> str:
    slow = first is not None and number >= first
    return WORK.format(operations=round(OPERATIONS * (SLOWER if slow else 1)), version=number)


def wheels(folder: Path, first: int | None) -> tuple[dict[str, str], list[str]]:
    """(the variables, the ends) of a trial with an index of its own."""
    for number in range(VERSIONS):
        planted.wheel(folder / "index", "pace", f"1.{number}", code(number, first))
    variables = planted.variables(folder / "index", folder / "cache")
    return variables, ["--from=pace==1.0", f"--to=pace==1.{VERSIONS - 1}"]


def commits(folder: Path, first: int | None) -> tuple[dict[str, str], list[str]]:
    """The same with a repository in the folder."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *ADA, *words], check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    for number in range(VERSIONS):
        (folder / "pace.py").write_text(code(number, first))
        git("add", "pace.py")
        git("commit", "--quiet", f"--message={number}")
    git("tag", "oldest", f"HEAD~{VERSIONS - 1}")
    return {}, ["--from=ref:oldest", "--to=ref:main"]


def trial(kind: str, first: int | None, folder: Path) -> Trial:
    if (folder / "trial.json").is_file():
        return Trial(**json.loads((folder / "trial.json").read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variables, ends = (commits if kind == "commit" else wheels)(folder, first)
    (folder / "program.py").write_text(PROGRAM)
    words = ["--run=python program.py", "--workdir=out", "--share_machine", f"--margin={MARGIN}", "--budget_s=60"]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "jaxbench", "bisect", *words, *ends],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1, 2) or not (folder / "out" / "bisect.json").is_file():
        raise SystemExit(done.stderr)
    answer = json.loads((folder / "out" / "bisect.json").read_text())
    named = next((each for each in answer["versions"] if each["name"] == answer["first_slow"]), None)
    if named is None:
        said = answer["verdict"] if not answer["candidates"] else " ".join(answer["candidates"])
    else:
        said = named["about"] or named["name"].rpartition(".")[2]
    pairs = sum(each["pairs"] for each in answer["versions"])
    made = Trial(first, said, time.monotonic() - begun, pairs)
    (folder / "trial.json").write_text(json.dumps(vars(made)))
    return made


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--kinds", default="wheel,commit,same")
    parser.add_argument("--folder", default="")
    asked = parser.parse_args()
    console, order, failed = Console(), random.Random(0), False
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(asked.folder or scratch)
        for kind in asked.kinds.split(","):
            made = []
            for number in range(asked.trials):
                first = None if kind == "same" else order.randrange(1, VERSIONS)
                made.append(trial(kind, first, folder / f"{kind}-{number}"))
                console.print(f"{kind} {number}: {made[-1]}", highlight=False, soft_wrap=True)
            right, seconds = sum(each.right for each in made), sum(each.seconds for each in made)
            failed |= right < (SAME_OF if kind == "same" else 1) * len(made)
            others = Counter(each.said for each in made if not each.right)
            console.print(
                f"{kind}: {right} of {len(made)} right; {seconds / len(made):.1f} s and "
                f"{sum(each.pairs for each in made) / len(made):.0f} pairs each; others: {dict(others)}",
                highlight=False,
                soft_wrap=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pairs of runs of a program that prints a number, each in a process of its own. A larger number is slower.

The number is the last word of what the program prints. Both programs of a pair run after each other, in an order that
alternates, and each pair is appended to a file, from which a second start continues.

A commit's program runs in the commit's files, in the folder that corresponds to the current one. A file that the
command names and that the commit lacks is copied there.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from jaxbench.core.store import write_atomic
from jaxbench.environments import needs, store
from jaxbench.environments.store import Environment
from jaxbench.errors import UserError
from jaxbench.features.bisect.versions import Version
from jaxbench.features.comparison import other_commit, sequential
from jaxbench.features.comparison.judge import Answers, Metric
from jaxbench.features.comparison.other_commit import Checkout
from jaxbench.features.comparison.ratio import Sample
from jaxbench.records import reading
from jaxbench.records.documents import Positive, decode

METRIC = Metric("number", "", 1, more_is_better=False)
LIMIT_S = 3600.0  # a program that takes longer hangs


class OldestFailed(UserError):
    """The oldest version cannot be measured, so there is nothing to compare with."""


class Failed(Exception):
    """The program of a version did not print a number. The message says why, as a clause."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The numbers of the oldest version, and of the other one."""

    a: Positive
    b: Positive


@dataclass(frozen=True)
class Arm:
    """A version's program.

    Attributes:
      asked: the words of the command as they were typed.
      words: with the program's own path.
      folder: where it runs.
      variables: that it gets in addition.
    """

    version: Version
    asked: Sequence[str]
    words: Sequence[str]
    folder: Path
    variables: dict[str, str]

    def number(self) -> float:
        """Runs the program. Raises Failed."""
        try:
            done = subprocess.run(
                self.words,
                cwd=self.folder,
                env={**os.environ, **self.variables},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(f"'{shlex.join(self.words)}' cannot run ({error})") from error
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1].strip()
            raise Failed(f"it ended with exit code {done.returncode} ({last})")
        word = (done.stdout.split() or [""])[-1]
        try:
            found = float(word)
        except ValueError as error:
            raise Failed(f"the last word that it prints is {word!r}, not a number") from error
        if not (math.isfinite(found) and found > 0):
            raise Failed(f"it prints {word}, which is no number above 0")
        return found


def words_of(command: str) -> list[str]:
    """The words of --run. Raises UserError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--run={command!r} cannot be read ({error}).") from error
    if not words:
        raise UserError('--run is empty: write a command that prints a number, such as --run="python my_script.py".')
    return words


@contextlib.contextmanager
def opened(version: Version, words: Sequence[str]) -> Iterator[Arm]:
    """Yields the program of a version. A commit's files are removed when the context ends. Raises UserError."""
    with contextlib.ExitStack() as stack:
        repository = other_commit.repository_of(Path.cwd()) if version.ref else None
        checkout = stack.enter_context(other_commit.files(version.ref, repository)) if version.ref else None
        folder = _folder_in(checkout, words) if checkout else Path.cwd()
        made = _environment(version, words) if version.release else None
        variables = made.variables if made else _own_python()
        if checkout:  # its modules, not the working tree's
            others = os.environ.get("PYTHONPATH")
            places = [str(place) for place in (checkout.folder / "src", checkout.folder) if place.is_dir()]
            variables = {**variables, "PYTHONPATH": os.pathsep.join([*places, *([others] if others else [])])}
        # The program is looked up on the path that it will have, which is not that of this process.
        first = shutil.which(words[0], path=variables.get("PATH"))
        yield Arm(version, words, [first or words[0], *words[1:]], folder, variables)


def _environment(version: Version, words: Sequence[str]) -> Environment:
    """The environment of a version: its release, and what the command's file imports."""
    wanted = needs.of_command(words, Path.cwd())
    return store.environment(version.release, needs.of_jaxbench() if wanted is None else wanted)


def _own_python() -> dict[str, str]:
    """Without an active environment, `python` is that of this process."""
    if any(os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")):
        return {}
    return {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])}


def _folder_in(checkout: Checkout, words: Sequence[str]) -> Path:
    """The folder of a commit's files in which its program runs."""
    here = Path.cwd().resolve()
    inside = here.relative_to(checkout.repository) if here.is_relative_to(checkout.repository) else Path()
    folder = checkout.folder / inside
    folder.mkdir(parents=True, exist_ok=True)
    for word in words:
        if not Path(word).is_absolute() and (here / word).is_file() and not (folder / word).exists():
            (folder / word).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here / word, folder / word)
    return folder


def compare(
    arms: tuple[Arm, Arm],
    file: Path,
    seconds: float,
    *,
    margin: float,
    alpha: float,
    enough: Callable[[Answers], bool],
    clock: Callable[[], float] = time.monotonic,
) -> Answers:
    """Measures pairs until a look is enough or the time is spent. Raises Failed, and OldestFailed.

    file: keeps the pairs. seconds: no new pair starts after these. margin, alpha: as in `judge`.
    """
    pairs = read(file)
    write_atomic(file, "".join(_pair_line(pair) for pair in pairs))  # without the end of an interrupted write
    begun, longest = clock(), 0.0
    while True:
        start = clock()
        if pairs:
            answers = judged(pairs, margin=margin, alpha=alpha)
            over = sequential.next_look(len(pairs)) is None or start - begun + longest > seconds
            if over or (len(pairs) in sequential.LOOKS and enough(answers)):
                return answers
        values = _pair(arms, len(pairs))
        pairs.append(values)
        with open(file, "a") as lines:
            lines.write(_pair_line(values))
        longest = max(longest, clock() - start)


def _pair(arms: tuple[Arm, Arm], number: int) -> Pair:
    """The one that runs first alternates."""
    values = [math.nan, math.nan]
    for which in (0, 1) if number % 2 == 0 else (1, 0):
        try:
            values[which] = arms[which].number()
        except Failed as error:
            if which:
                raise
            raise OldestFailed(
                f"{arms[0].version.name} cannot be measured: {error}. Correct the program or choose another --from."
            ) from error
    return Pair(a=values[0], b=values[1])


def judged(pairs: Sequence[Pair], *, margin: float, alpha: float) -> Answers:
    names = tuple(f"pair {number}" for number in range(len(pairs)))
    a, b = (tuple((np.array([getattr(pair, side)]),) for pair in pairs) for side in ("a", "b"))
    left, right = ({"program": Sample(processes=each, names=names)} for each in (a, b))
    return sequential.judge_pairs(left, right, METRIC, margin=margin, alpha=alpha)


def read(file: Path) -> list[Pair]:
    """The pairs of a file. The end of an interrupted write is left out. Raises UserError for a damaged file."""
    advice = f"delete '{file}'."
    return [*reading.read_lines(file, partial(decode, Pair), advice)] if file.is_file() else []


def _pair_line(pair: Pair) -> str:
    return json.dumps({"a": pair.a, "b": pair.b}) + "\n"

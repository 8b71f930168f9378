# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cold and warm starts of a run, in pairs: with an empty folder of compiled programs, and with a filled one.

A first run, which is not counted, fills the folder of the warm runs. The order within a pair is random, so that a drift
of the machine reaches both alike. Goals: a warm run compiles nothing, and its preparation takes at most half.

Run: python -m benchmarks.startup [--pairs=9] [--experiment=cnn] [--workdir=results/startup]. The same command
continues. --short takes the smallest run, to try the benchmark. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxbench.core.store import RunFolder, write_json

HALF = 0.5  # goal: the preparation of a warm run over that of a cold one
SHORT = ("--preset=smoke", "--config.mesh.platform=cpu", "--config.explain=off")
COLD, WARM, FILL = "cold", "warm", "fill"
SHOWN = {"seconds": "whole command, s", "preparation_s": "preparation, s"}


@dataclass(frozen=True, kw_only=True)
class Started:
    """A run that has ended. seconds: wall time of the command. The others are of its preparation ledger."""

    seconds: float
    preparation_s: float
    compiled: int
    loaded: int


def measure(words: Sequence[str], folder: Path, programs: Path) -> Started:
    """Runs `jaxbench run` in a new folder. programs: where compiled programs are kept. Raises SystemExit."""
    shutil.rmtree(folder, ignore_errors=True)
    # -P: the current folder may have another copy of the package than the environment
    command = [sys.executable, "-P", "-m", "jaxbench", "run", *words, f"--workdir={folder}"]
    log, environment = folder.with_suffix(".log"), {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(programs.resolve())}
    begun_s = time.monotonic()
    with log.open("w") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False).returncode
    seconds = time.monotonic() - begun_s
    if code or "preparation" not in (manifest := RunFolder(folder).manifest()):
        raise SystemExit(f"'jaxbench run {' '.join(words)}' ended with exit code {code}: see '{log}'.")
    found = manifest["preparation"]
    shutil.rmtree(folder)
    return Started(
        seconds=seconds,
        preparation_s=found["preparation_s"],
        compiled=found["compiled"],
        loaded=found["loaded"],
    )


def pairs_of(words: Sequence[str], count: int, folder: Path, console: Console) -> list[dict[str, Started]]:
    """`count` pairs of a cold and a warm run. Those that an earlier start has measured count. Raises SystemExit."""
    folder.mkdir(parents=True, exist_ok=True)
    kept, filled = folder / "pairs.json", folder / "filled"
    document = json.loads(kept.read_text()) if kept.exists() else {"words": [*words], "pairs": []}
    if document["words"] != [*words]:
        raise SystemExit(f"'{folder}' has runs of {' '.join(document['words'])}: choose another --workdir.")
    if len(document["pairs"]) < count:
        measure(words, folder / FILL, filled)
    order = random.Random(len(document["pairs"]))
    while len(document["pairs"]) < count:
        pair = {}
        for which in order.sample((COLD, WARM), 2):
            shutil.rmtree(folder / "empty", ignore_errors=True)
            pair[which] = measure(words, folder / which, filled if which == WARM else folder / "empty")
            console.print(f"{which}: {pair[which].seconds:.1f} s", highlight=False)
        document["pairs"].append({which: asdict(started) for which, started in pair.items()})
        write_json(kept, document)
    shutil.rmtree(folder / "empty", ignore_errors=True)
    return [{which: Started(**each) for which, each in pair.items()} for pair in document["pairs"][:count]]


def median(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """(median, low, high): with the 95 % interval of medians of resampled values, (values,)."""
    drawn = np.median(rng.choice(values, (2000, len(values))), axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(np.median(values)), float(low), float(high)


def table(pairs: Sequence[dict[str, Started]], rng: np.random.Generator) -> Table:
    """A line for each time: medians over pairs, and the ratio within pairs."""
    shown = Table("median [95 %]", COLD, WARM, "warm / cold", title=f"{len(pairs)} pairs")
    for name, text in SHOWN.items():
        cold, warm = (np.array([getattr(pair[which], name) for pair in pairs]) for which in (COLD, WARM))
        shown.add_row(text, *(_interval(median(each, rng)) for each in (cold, warm, warm / cold)))
    for name in ("compiled", "loaded"):
        counts = [[getattr(pair[which], name) for pair in pairs] for which in (COLD, WARM)]
        shown.add_row(f"programs {name}", *(_range(each) for each in counts), "")
    return shown


def missed(pairs: Sequence[dict[str, Started]], rng: np.random.Generator) -> list[str]:
    """The goals that are missed, as sentences."""
    found = []
    if most := max(pair[WARM].compiled for pair in pairs):
        found.append(f"A warm run compiled {most} programs.")
    ratio = median(np.array([pair[WARM].preparation_s / pair[COLD].preparation_s for pair in pairs]), rng)
    if ratio[0] > HALF:
        found.append(f"A warm preparation takes {_interval(ratio)} of a cold one: more than {HALF:g}.")
    return found


def _interval(values: tuple[float, float, float]) -> str:
    value, low, high = values
    return f"{value:.3g} [{low:.3g}, {high:.3g}]"


def _range(counts: Sequence[int]) -> str:
    return str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", default="cnn")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--short", action="store_true", help="the smallest run")
    parser.add_argument("--workdir", type=Path, default=Path("results/startup"))
    flags, console = parser.parse_args(arguments), Console(width=120)
    words = [flags.experiment, *(SHORT if flags.short else ())]
    pairs = pairs_of(words, flags.pairs, flags.workdir, console)
    console.print(table(pairs, np.random.default_rng(0)))
    goals = missed(pairs, np.random.default_rng(0))
    for sentence in goals:
        console.print(sentence, highlight=False, soft_wrap=True)
    return 1 if goals else 0


if __name__ == "__main__":
    raise SystemExit(main())

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tests the verdicts on simulated runs, whose truth is known, and on this machine compared with itself.

Simulated: each process and each round has its own effect, all rounds of a run drift, and blocks have heavy tails and
occasional outliers of 1.5 times. On the machine: `jaxbench ab` compares steps of the mlp on 640 examples with
themselves, and with steps on 704 examples, which is 10 % more work.

Run: python -m benchmarks.verdicts [--simulations=1000] [--machine=0] [--budget_s=240]
Goals: intervals cover 93 to 97 %; at most 5 % of A/A tables have a false alarm; a slow-down of 5 % is found in 95 %; on
the machine at most 1 false alarm in 20, and the planted slow-down is found each time.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxbench.verdicts import judge, metric, ratio, sequential
from jaxbench.verdicts.judge import FASTER, SLOWER
from jaxbench.verdicts.ratio import ASSUMED, Spread
from jaxbench.verdicts.samples import Sample, of_times

NOISE = 0.02  # of a block
POINTS = 6  # of a table


def run(
    random: np.random.Generator, *, processes: int, rounds: int = 4, blocks: int = 3, effect: float = 1.0,
    between: float = 0.01, drift: float = 0.01,
) -> Sample:  # fmt: skip
    """Seconds per step of one point, from a distribution whose median is `effect`."""
    shape = (processes, rounds, blocks)
    tails = NOISE * random.standard_t(3, shape) / math.sqrt(3)  # Student's t with 3 degrees has variance 3
    logs = (
        between * random.standard_normal((processes, 1, 1))
        + NOISE / 2 * random.standard_normal((*shape[:2], 1))
        + tails
    )
    trend = drift * random.standard_normal() * np.linspace(-1, 1, processes * rounds).reshape(*shape[:2], 1)
    slow = np.where(random.random(shape) < 0.02, 1.5, 1.0)
    return of_times(effect * np.exp(logs + trend) * slow)


def coverage(processes: int, times: int, *, spread: Spread = ASSUMED, between: float = 0.02) -> float:
    """The share of 95 % intervals of B / A that contain the truth."""
    hits, random, truth = 0, np.random.default_rng(processes), 1.05
    for seed in range(times):
        a, b = ({"p": run(random, processes=processes, effect=e, between=between, rounds=10 // processes + 3)}
                for e in (1.0, truth))  # fmt: skip
        interval = ratio.compare(a, b, spread, seed)["p"].estimate()
        hits += interval.lo <= truth <= interval.hi
    return hits / times


def tables(times: int, *, effect: float = 1.0, processes: int = 5, by: str = "step_s") -> Counter[str]:
    """Verdicts of `times` tables of POINTS points; "alarm" counts tables with any "faster" or "slower"."""
    counts: Counter[str] = Counter()
    random = np.random.default_rng(7)
    for _ in range(times):
        a, b = ({f"p{i}": run(random, processes=processes, effect=e) for i in range(POINTS)} for e in (1.0, effect))
        result = judge.judge(a, b, metric.METRICS[by], ASSUMED)
        counts[result.verdict] += 1
        counts["alarm"] += any(each.verdict in (FASTER, SLOWER) for each in (*result.points, result.overall))
    return counts


def sequential_verdicts(times: int, *, effect: float = 1.0) -> tuple[Counter[str], float]:
    """Verdicts of `times` sequential tests of up to 36 pairs, and the mean number of pairs."""
    counts: Counter[str] = Counter()
    random, pairs = np.random.default_rng(11), []
    for _ in range(times):
        a, b = (run(random, processes=36, effect=e, drift=0).log_medians() for e in (1.0, effect))
        verdict, used = _first_verdict(b - a)
        counts[verdict] += 1
        pairs.append(used)
    return counts, float(np.mean(pairs))


def _first_verdict(logs: np.ndarray) -> tuple[str, int]:
    """The verdict of the first look that has one, and the number of pairs it used."""
    for number, count in enumerate(sequential.LOOKS, 1):
        if count > len(logs):
            break
        alpha = judge.ALPHA * sequential.share(number)
        verdict = judge.decide(sequential.of_pairs(logs[:count]), alpha, judge.MARGIN)
        if verdict != judge.CANNOT_TELL:
            return verdict, count
    return judge.CANNOT_TELL, len(logs)


def simulated(times: int, console: Console) -> None:
    table = Table("simulated", "result", "goal", title=f"{times} simulations each")
    known = Spread(sd=0.02, df=15, source="")
    for processes, spread in ((1, known), (3, ASSUMED), (5, ASSUMED), (8, ASSUMED)):
        label = f"95 % interval, {processes} process{'es' if processes > 1 else ', spread calibrated'}"
        table.add_row(label, f"{100 * coverage(processes, times, spread=spread):.1f} %", "93 to 97 %")
    same, slow = tables(times), tables(times, effect=1.05)
    table.add_row(f"A/A tables of {POINTS}, false alarms", f"{100 * same['alarm'] / times:.1f} %", "at most 5 %")
    table.add_row("B 5 % slower, found", f"{100 * slow[SLOWER] / times:.1f} %", "at least 95 %")
    for effect, goal in ((1.0, "at most 5 %"), (1.05, "at least 95 %")):
        counts, pairs = sequential_verdicts(times, effect=effect)
        positives = counts[SLOWER] if effect > 1 else counts[SLOWER] + counts[FASTER]
        label = f"sequential, B / A = {effect:g}: " + ("found" if effect > 1 else "false alarms")
        table.add_row(label, f"{100 * positives / times:.1f} %, {pairs:.1f} pairs", goal)
    console.print(table)


def on_machine(times: int, budget_s: float, console: Console) -> None:
    """A/A and planted runs alternate, so that both see the same state of the machine."""
    counts: dict[str, Counter[str]] = {"A/A": Counter(), "planted": Counter()}
    ratios: dict[str, list[float]] = {"A/A": [], "planted": []}
    for _ in range(times):
        for kind, examples in (("A/A", 640), ("planted", 704)):
            verdict, value = _ab(examples, budget_s)
            counts[kind][verdict] += 1
            ratios[kind].append(value)
            console.print(f"{kind}: {verdict}, {value:.3f}", highlight=False)
    for kind in counts:
        low, middle, high = np.quantile(ratios[kind], [0, 0.5, 1])
        console.print(f"{kind}: {dict(counts[kind])}, ratio {middle:.3f} ({low:.3f} to {high:.3f})", highlight=False)


def _ab(examples: int, budget_s: float) -> tuple[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        words = [
            *("ab", "mlp", f"--workdir={folder}/ab", f"--budget_s={budget_s}", "--config.mesh.platform=cpu"),
            *("--config.mesh.devices=1", "--config.model.width=512", "--config.model.depth=2"),
            *("--a=--config.batch=640", f"--b=--config.batch={examples}"),
        ]
        process = subprocess.run([sys.executable, "-m", "jaxbench", *words], capture_output=True, text=True)
        path = Path(folder) / "ab" / "comparison.json"
        if not path.exists():
            raise SystemExit(process.stdout + process.stderr)
        comparison = json.loads(path.read_text())
        return comparison["verdict"], comparison["overall"]["ratio"]["value"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--machine", type=int, default=0, help="runs of each kind on this machine")
    parser.add_argument("--budget_s", type=float, default=240.0)
    args = parser.parse_args()
    console = Console()
    if args.simulations:
        simulated(args.simulations, console)
    if args.machine:
        on_machine(args.machine, args.budget_s, console)


if __name__ == "__main__":
    main()

# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""False alarms and power of the verdicts: the table of docs/STATISTICS.md, Validation.

Simulated runs with a known truth: all points of a process share its effect, all processes of a run share the effect
of its day, rounds drift, blocks have heavy tails and occasional outliers of 1.5 times. A false alarm is a table of
POINTS points with any "faster" or "slower" although nothing differs. On the machine (--machine): `jaxbench ab` compares
steps of the mlp on 640 examples with themselves, and with steps on 704 examples, which is 10 % more work.

Run: python -m benchmarks.verdicts [--simulations=400] [--machine=0] [--budget_s=600]
Exit code 1 if a false alarm, or a false "same", is more frequent than 5 % (plus the sampling error of 400 simulations).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from jaxbench.features.comparison import calibration, judge, sequential
from jaxbench.features.comparison.judge import FASTER, SAME, SLOWER
from jaxbench.features.comparison.ratio import Sample
from jaxbench.statistics.bootstrap import ASSUMED, RunVariance

NOISE = 0.02  # of a block
POINTS = 4  # of a table
GOAL = 0.05
Random = np.random.Generator


def of_times(times: Sequence[Sequence[Sequence[float]]], name: str = "process") -> Sample:
    """The sample from plain numbers. times: seconds per step, indexed by process, round and block."""
    processes = tuple(tuple(np.asarray(blocks, dtype=float) for blocks in rounds) for rounds in times)
    return Sample(processes=processes, names=tuple(f"{name} {i}" for i in range(len(processes))))


Pairs = Callable[[Random], np.ndarray]


def autocorrelated(random: Random, count: int, phi: float) -> np.ndarray:
    """(count,) of variance 1."""
    values = random.standard_normal(count)
    for i in range(1, count):
        values[i] = phi * values[i - 1] + math.sqrt(1 - phi**2) * values[i]
    return values


def run(
    random: Random, *, processes: int = 5, rounds: int = 4, blocks: int = 3, effect: float = 1.0,
    between: float = 0.01, day: float = 0.0, drift: float = 0.0, points: int = POINTS,
) -> dict[str, Sample]:  # fmt: skip
    """Seconds per step of every point, from a distribution with median `effect`.

    between, day: standard deviations of the effects of a process and of the run. drift: of an autocorrelation of 0.9
    from round to round.
    """
    shape = (processes, rounds, blocks)
    shared = day * random.standard_normal() + between * random.standard_normal((processes, 1, 1))
    shared = shared + drift * autocorrelated(random, processes * rounds, 0.9).reshape(processes, rounds, 1)
    found = {}
    for point in range(points):
        tails = NOISE * random.standard_t(3, shape) / math.sqrt(3)  # Student's t with 3 degrees has variance 3
        logs = shared + NOISE / 2 * random.standard_normal((*shape[:2], 1)) + tails
        found[f"p{point}"] = of_times(effect * np.exp(logs) * np.where(random.random(shape) < 0.02, 1.5, 1.0))
    return found


def calibrated(random: Random, sessions: int, **facts: float) -> RunVariance:
    """The result of a number of sessions of `jaxbench calibrate`."""
    found = [
        calibration.session_of(run(random, processes=8, rounds=3, **facts), f"2026-01-{day + 1:02}")  # type: ignore[arg-type]
        for day in range(sessions)
    ]
    sd = math.sqrt(float(np.mean([session.sd**2 for session in found])))
    whole = calibration.Calibration(
        sd=sd, df=sum(session.df for session in found), threshold=0.0, comparisons=0, alarms=0, experiment="simulated",
        time="", sessions=tuple(found),
    )  # fmt: skip
    return whole.spread


def tables(
    times: int, *, effect: float = 1.0, processes: int = 5, by: str = "step_s", sessions: int = 0, **facts: float
) -> Counter[str]:
    """Verdicts of `times` tables; "alarm" counts tables with any "faster" or "slower". sessions: calibrated with; 0:
    not calibrated."""
    counts: Counter[str] = Counter()
    random = np.random.default_rng(7)
    for _ in range(times):
        spread = calibrated(random, sessions, **facts) if sessions else ASSUMED
        a, b = (run(random, processes=processes, effect=e, **facts) for e in (1.0, effect))  # type: ignore[arg-type]
        result = judge.judge(a, b, judge.METRICS[by], spread)
        counts[result.verdict] += 1
        counts["alarm"] += any(each.verdict in (FASTER, SLOWER) for each in (*result.points, result.overall))
    return counts


def sequences(times: int, pairs: Pairs) -> tuple[Counter[str], float]:
    """Verdicts of `times` sequential tests of up to 36 pairs, and the mean number of pairs."""
    counts: Counter[str] = Counter()
    random, used = np.random.default_rng(11), []
    for _ in range(times):
        verdict, count = _first_verdict(pairs(random))
        counts[verdict] += 1
        used.append(count)
    return counts, float(np.mean(used))


def _first_verdict(logs: np.ndarray) -> tuple[str, int]:
    """The verdict of the first look that has one, and the number of pairs it used. logs: (pairs,)."""
    for number, count in enumerate(sequential.LOOKS, 1):
        if count > len(logs):
            break
        alpha = judge.ALPHA * sequential.share(number)
        verdict = judge.decide(
            sequential.of_pairs(logs[:count]), alpha, judge.MARGIN, same=count >= sequential.SAME_PAIRS
        )
        if verdict != judge.CANNOT_TELL:
            return verdict, count
    return judge.CANNOT_TELL, len(logs)


def pairs(effect: float = 0.0, sd: float = 0.014, phi: float = 0.0) -> Pairs:
    return lambda random: effect + sd * autocorrelated(random, 36, phi)


def coins(random: Random) -> np.ndarray:
    """Each pair is 5 % faster or slower, by chance."""
    return 0.05 * random.choice([-1.0, 1.0], 36) + 0.002 * random.standard_normal(36)


def modes(random: Random) -> np.ndarray:
    """Three of ten processes of either arm take 10 % longer."""
    slow = random.random((2, 36)) < 0.3
    return 0.1 * (slow[1] * 1.0 - slow[0]) + 0.003 * random.standard_normal(36)


def three_of_ten(random: Random) -> np.ndarray:
    """Three of ten pairs are 10 % slower: these are not the same."""
    return math.log(1.1) * (random.random(36) < 0.3) + 0.003 * random.standard_normal(36)


ALARMS: dict[str, dict[str, float]] = {
    "days differ by 0 %": {},
    "days differ by 1 %": dict(day=0.01),
    "days differ by 2 %": dict(day=0.02),
    "days differ by 3 %": dict(day=0.03),
    "days differ by 1 %, calibrated in 3 sessions": dict(day=0.01, sessions=3),
    "days differ by 3 %, calibrated in 3 sessions": dict(day=0.03, sessions=3),
    "days differ by 3 %, calibrated in 8 sessions": dict(day=0.03, sessions=8),
    "drift of 3 %, autocorrelation 0.9": dict(drift=0.03),
    "drift of 3 %, calibrated in 3 sessions": dict(drift=0.03, sessions=3),
    "1 process, not calibrated, processes differ by 10 %": dict(between=0.1, processes=1),
    "2 processes, not calibrated, processes differ by 10 %": dict(between=0.1, processes=2),
    "1 process, calibrated in 3 sessions, processes differ by 10 %": dict(between=0.1, processes=1, sessions=3),
    "3 processes, processes differ by 10 %": dict(between=0.1, processes=3),
}  # fmt: skip
POWER: dict[str, dict[str, float]] = {
    "10 % slower, not calibrated": dict(effect=1.1),
    "15 % slower, not calibrated": dict(effect=1.15),
    "5 % slower, days differ by 1 %, calibrated in 3 sessions": dict(effect=1.05, day=0.01, sessions=3),
    "5 % slower, days differ by 1 %, calibrated in 8 sessions": dict(effect=1.05, day=0.01, sessions=8),
    "10 % slower, days differ by 1 %, calibrated in 8 sessions": dict(effect=1.1, day=0.01, sessions=8),
}
SEQUENCES: dict[str, Pairs] = {
    "ab, independent pairs, 1.4 %": pairs(),
    "ab, independent pairs, 5 %": pairs(sd=0.05),
    "ab, pairs of two modes": coins,
    "ab, processes of two modes": modes,
    "ab, pairs of autocorrelation 0.3, 3 %": pairs(sd=0.03, phi=0.3),
    "ab, pairs of autocorrelation 0.6, 3 %": pairs(sd=0.03, phi=0.6),
    "ab, pairs of autocorrelation 0.9, 3 %": pairs(sd=0.03, phi=0.9),
    "ab, pairs of autocorrelation 0.9, 10 %": pairs(sd=0.1, phi=0.9),
}
FOUND: dict[str, Pairs] = {
    "ab, 3 % slower": pairs(math.log(1.03)),
    "ab, 5 % slower": pairs(math.log(1.05)),
    "ab, 10 % slower, pairs 5 %": pairs(math.log(1.1), sd=0.05),
}


def simulated(times: int, console: Console) -> bool:
    """Prints the tables as Markdown. Returns whether all false alarm rates meet the goal within two standard errors."""
    limit = GOAL + 2 * math.sqrt(GOAL * (1 - GOAL) / times)
    rates = {name: tables(times, **facts)["alarm"] / times for name, facts in ALARMS.items()}  # type: ignore[arg-type]
    for name, made in SEQUENCES.items():
        counts, _ = sequences(times, made)
        rates[name] = (counts[SLOWER] + counts[FASTER]) / times
    rates['ab, 3 of 10 pairs 10 % slower called "same"'] = sequences(times, three_of_ten)[0][SAME] / times
    _markdown(console, "false alarms", {name: f"{100 * rate:.1f} %" for name, rate in rates.items()})
    found = {
        name: f"{100 * tables(times, **facts)[SLOWER] / times:.0f} %"  # type: ignore[arg-type]
        for name, facts in POWER.items()
    }
    for name, made in FOUND.items():
        counts, mean = sequences(times, made)
        found[name] = f"{100 * counts[SLOWER] / times:.0f} % after {mean:.0f} pairs"
    counts, mean = sequences(times, pairs())
    found["ab, no difference: same"] = f"{100 * counts[SAME] / times:.0f} % after {mean:.0f} pairs"
    _markdown(console, "found", found)
    return max(rates.values()) <= limit


def _markdown(console: Console, heading: str, lines: dict[str, str]) -> None:
    console.print(f"\n| simulated | {heading} |\n|---|---|", highlight=False)
    for name, value in lines.items():
        console.print(f"| {name} | {value} |", highlight=False, soft_wrap=True)


def on_machine(times: int, budget_s: float, console: Console) -> None:
    """A/A and planted runs alternate, so that both see the same state of the machine."""
    counts: dict[str, Counter[str]] = {"A/A": Counter(), "planted": Counter()}
    for _ in range(times):
        for kind, examples in (("A/A", 640), ("planted", 704)):
            verdict, value = _ab(examples, budget_s)
            counts[kind][verdict] += 1
            console.print(f"{kind}: {verdict}, {value:.3f}", highlight=False)
    for kind in counts:
        console.print(f"{kind}: {dict(counts[kind])}", highlight=False)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--machine", type=int, default=0, help="runs of each kind on this machine")
    parser.add_argument("--budget_s", type=float, default=600.0)
    args = parser.parse_args()
    console = Console()
    kept = simulated(args.simulations, console) if args.simulations else True
    if args.machine:
        on_machine(args.machine, args.budget_s, console)
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
